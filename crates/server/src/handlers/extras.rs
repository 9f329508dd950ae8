//! What is told around Applications and projects: links, badges, and projects that hold for others.

use baton_api::AppProject;
use baton_grammar::labels::Selector;
use serde_json::{Map, Value, json};

use super::applications::Named;
use super::resources::Resource;
use crate::badge::Badge;
use crate::error::Error;
use crate::links::links;
use crate::masking;
use crate::objects::text;
use crate::server::{Context, Server};

/// Digits of a revision that a badge shows.
const SHORT: usize = 7;

/// Which badge is asked for.
#[derive(Debug, Clone, Default)]
pub struct BadgeQuery {
    /// Of this Application.
    pub name: String,
    /// In this namespace; the control plane's where it is empty.
    pub namespace: String,
    /// Of all Applications of these projects, where no Application is named.
    pub projects: Vec<String>,
    /// Whether the revision is told.
    pub revision: bool,
    /// Whether all of it.
    pub whole_revision: bool,
    /// Whether the name is told.
    pub named: bool,
    /// How wide it is at least.
    pub width: Option<u32>,
}

impl Server {
    /// How an Application or projects fare, as a picture for everybody. Where badges are off, nothing is told.
    pub fn badge(&self, context: &Context, query: &BadgeQuery) -> String {
        if !context.configuration.is_on("statusbadge.enabled") {
            return Badge::word("Unknown").svg();
        }
        let namespace = match query.namespace.as_str() {
            "" => self.0.settings.namespace.as_str(),
            namespace => namespace,
        };
        let badge = match (query.name.as_str(), query.projects.as_slice()) {
            ("", []) => Badge::word("Unknown"),
            ("", projects) => self.badge_of_projects(projects),
            (name, _) => {
                let found = self.0.applications.get(namespace, name);
                match found.filter(|_| self.0.settings.allows(namespace)) {
                    Some(application) => badge_of(&application, query),
                    None => Badge::word("Not Found"),
                }
            }
        };
        Badge { width: query.width, ..badge }.svg()
    }

    fn badge_of_projects(&self, projects: &[String]) -> Badge {
        let all = self.0.applications.all();
        let own = all.iter().filter(|one| {
            let project = super::applications::project(one);
            projects.iter().any(|named| named == project)
        });
        let mut own = own.peekable();
        if own.peek().is_none() {
            return Badge::word("Not Found");
        }
        let (mut health, mut sync) = ("Healthy", "Synced");
        for one in own {
            if text(one, "/status/health/status") != "Healthy" {
                health = "Degraded";
            }
            if text(one, "/status/sync/status") != "Synced" {
                sync = "OutOfSync";
            }
        }
        Badge { sync: sync.to_owned(), ..Badge::word(health) }
    }

    /// The links that are set for an Application.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn application_links(&self, context: &Context, at: &Named) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let things = self.things(context, Some(&found.raw), &found.typed.spec.project);
        Ok(self.linked(context, "application.links", things))
    }

    /// The links that are set for a resource of an Application.
    ///
    /// # Errors
    /// The caller may not see it, or it is none of the Application's.
    pub async fn resource_links(
        &self,
        context: &Context,
        at: &Named,
        which: &Resource,
    ) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let place = self.place(context, &found).await?;
        let live = self.own(&found, &place, which).await?;
        let mut things = self.things(context, Some(&found.raw), &found.typed.spec.project);
        things.insert("resource".to_owned(), place.shown(&live));
        Ok(self.linked(context, "resource.links", things))
    }

    /// The links that are set for a project.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn project_links(&self, context: &Context, name: &str) -> Result<Value, Error> {
        self.project(context, name).await?;
        let things = self.things(context, None, name);
        Ok(self.linked(context, "project.links", things))
    }

    /// The projects whose rules hold for a project too, as far as the caller may see them.
    ///
    /// # Errors
    /// The caller may not see the project, or the setting cannot be read.
    pub async fn global_projects(&self, context: &Context, name: &str) -> Result<Value, Error> {
        let project = self.project(context, name).await?;
        let named =
            global_names(context.configuration.setting("globalProjects").unwrap_or_default(), &project)?;
        let known = named.iter().filter(|global| self.may(context, "projects", "get", global));
        let known = known.filter_map(|global| context.configuration.projects.get(global.as_str()));
        let items: Vec<&AppProject> = known.map(AsRef::as_ref).collect();
        Ok(json!({"items": items}))
    }

    /// What templates of links may speak of. Nothing in it is hidden from whoever follows the link.
    fn things(&self, context: &Context, application: Option<&Value>, project: &str) -> Map<String, Value> {
        let mut things = Map::new();
        if let Some(application) = application {
            let mut shown = crate::server::plain(application.clone());
            masking::hide(&mut shown);
            things.insert("app".to_owned(), shown.clone());
            things.insert("application".to_owned(), shown);
        }
        // Roles and their tokens are no business of a link.
        let known = context.configuration.projects.get(project);
        let known = known.and_then(|project| serde_json::to_value(project.as_ref()).ok());
        if let Some(mut project) = known {
            if let Some(spec) = project["spec"].as_object_mut() {
                spec.remove("roles");
            }
            if let Some(fields) = project.as_object_mut() {
                fields.remove("status");
            }
            masking::hide(&mut project);
            things.insert("project".to_owned(), project);
        }
        things
    }

    fn linked(&self, context: &Context, setting: &str, things: Map<String, Value>) -> Value {
        let text = context.configuration.setting(setting).unwrap_or_default();
        json!({"items": links(setting, text, &things, self.now())})
    }
}

fn badge_of(application: &Value, query: &BadgeQuery) -> Badge {
    let or = |pointer: &str, otherwise: &str| match text(application, pointer) {
        "" => otherwise.to_owned(),
        word => word.to_owned(),
    };
    let revision = match text(application, "/status/operationState/syncResult/revision") {
        "" => text(application, "/status/sync/revision"),
        revision => revision,
    };
    let digits = if query.whole_revision { usize::MAX } else { SHORT };
    Badge {
        health: or("/status/health/status", "Unknown"),
        sync: or("/status/sync/status", "Unknown"),
        revision: revision.chars().take(digits).filter(|_| query.revision).collect(),
        name: text(application, "/metadata/name").chars().filter(|_| query.named).collect(),
        width: None,
    }
}

/// The projects that a setting makes global for a project, by its labels.
fn global_names(setting: &str, project: &Value) -> Result<Vec<String>, Error> {
    let fault =
        |what: &dyn std::fmt::Display| Error::precondition(format!("argocd-cm: globalProjects: {what}"));
    let list = baton_grammar::yaml::first(setting).map_err(|error| fault(&error))?;
    let mut names = Vec::new();
    for item in list.as_array().into_iter().flatten() {
        let selector = match &item["labelSelector"] {
            Value::Null => json!({}),
            selector => selector.clone(),
        };
        let selector = Selector::from_object(&selector).map_err(|error| fault(&error))?;
        let name = text(item, "/projectName");
        if selector.matches_object(project) && name != text(project, "/metadata/name") && !name.is_empty() {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_global_for_those_that_its_selector_means() {
        let project = json!({"metadata": {"name": "shop", "labels": {"tier": "prod"}}});
        let setting = "- projectName: rules\n  labelSelector: {matchLabels: {tier: prod}}\n\
            - projectName: dev\n  labelSelector: {matchLabels: {tier: dev}}\n\
            - projectName: shop\n";
        assert_eq!(global_names(setting, &project), Ok(vec!["rules".to_owned()]));
        assert_eq!(global_names("", &project), Ok(Vec::new()));
        assert!(global_names("a: [", &project).is_err());
    }
}
