//! Projects that people create, change and delete.

use baton_api::{AppProject, Application};
use baton_sync::project::{DestinationCluster, ProjectRules};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::applications::project as project_of;
use super::project_faults;
use super::projects::no_project;
use crate::audit::{Affected, Deed};
use crate::error::Error;
use crate::masking;
use crate::objects::{PROJECTS, text};
use crate::server::{Context, Server, plain};

/// A project as it shall be.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ProjectRequest {
    /// The project.
    pub project: Value,
    /// Whether one that is there is changed.
    pub upsert: bool,
}

impl Server {
    /// Creates a project, or with `upsert` changes the one that is there.
    ///
    /// # Errors
    /// The caller may not, or there is another already.
    pub async fn create_project(&self, context: &Context, request: ProjectRequest) -> Result<Value, Error> {
        let wanted = request.project;
        let name = typed(&wanted)?.metadata.name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Error::invalid("the project has no name"))?;
        self.demand(context, "projects", "create", &name)?;
        let projects = self.objects(PROJECTS, &self.0.settings.namespace);
        if let Some(stored) = projects.find(&name).await? {
            let mut same = wanted.clone();
            masking::restore(&mut same, &stored);
            keep_tokens(&mut same["spec"], &stored["spec"]);
            if same["spec"] == stored["spec"] {
                return Ok(plain(stored));
            }
            if !request.upsert {
                return Err(Error::invalid(
                    "existing project spec is different, use upsert flag to force update",
                ));
            }
            self.demand(context, "projects", "update", &name)?;
            return self.replace_project(context, &stored, wanted).await;
        }
        let mut object = json!({
            "apiVersion": baton_api::names::API_VERSION, "kind": "AppProject",
            "metadata": {"name": name, "namespace": self.0.settings.namespace}, "spec": wanted["spec"],
        });
        for field in ["labels", "annotations", "finalizers"] {
            if !wanted["metadata"][field].is_null() {
                object["metadata"][field] = wanted["metadata"][field].clone();
            }
        }
        keep_tokens(&mut object["spec"], &Value::Null);
        project_faults::judge(&typed(&object)?, self.now())?;
        let result = projects.create(&object, false).await;
        let deed = self.project_deed("create", "ResourceCreated", result.as_ref().unwrap_or(&object));
        self.0.configured.forget().await;
        self.audited(context, deed, result.map(plain)).await
    }

    /// Puts a project in the place of the one that is there: its labels, annotations, finalizers and spec.
    ///
    /// # Errors
    /// The caller may not, there is none, or Applications use what it would no longer permit.
    pub async fn update_project(
        &self,
        context: &Context,
        name: &str,
        request: ProjectRequest,
    ) -> Result<Value, Error> {
        let wanted = request.project;
        if typed(&wanted)?.metadata.name.as_deref() != Some(name) {
            return Err(Error::invalid("the name in the path is not the name of the project"));
        }
        self.demand(context, "projects", "update", name)?;
        let stored = self.objects(PROJECTS, &self.0.settings.namespace).find(name).await?;
        self.replace_project(context, &stored.ok_or_else(|| no_project(name))?, wanted).await
    }

    /// Deletes a project that no Application uses.
    ///
    /// # Errors
    /// The caller may not, there is none, it is `default`, or Applications use it.
    pub async fn delete_project(&self, context: &Context, name: &str) -> Result<Value, Error> {
        self.demand(context, "projects", "delete", name)?;
        if name == baton_api::names::DEFAULT_PROJECT {
            return Err(Error::invalid("name 'default' is reserved and cannot be deleted"));
        }
        let projects = self.objects(PROJECTS, &self.0.settings.namespace);
        let stored = projects.find(name).await?.ok_or_else(|| no_project(name))?;
        self.0.applications.synced().await?;
        let used = self.0.applications.all().iter().filter(|one| project_of(one) == name).count();
        if used > 0 {
            return Err(Error::precondition(format!("project is referenced by {used} applications")));
        }
        let result = projects.delete(name, "Background", text(&stored, "/metadata/uid")).await;
        let deed = self.project_deed("delete", "ResourceDeleted", &stored);
        self.0.configured.forget().await;
        self.audited(context, deed, result.map(|()| json!({}))).await
    }

    async fn replace_project(
        &self,
        context: &Context,
        stored: &Value,
        mut wanted: Value,
    ) -> Result<Value, Error> {
        masking::restore(&mut wanted, stored);
        let mut replaced = stored.clone();
        replaced["spec"] = wanted["spec"].take();
        // Who names a version means no other.
        for field in ["labels", "annotations", "finalizers", "resourceVersion"] {
            let value = wanted["metadata"][field].take();
            if !value.is_null() && value != "" {
                replaced["metadata"][field] = value;
            }
        }
        keep_tokens(&mut replaced["spec"], &stored["spec"]);
        project_faults::judge(&typed(&replaced)?, self.now())?;
        self.0.applications.synced().await?;
        let stranded = self.stranded(&typed(stored)?, &typed(&replaced)?);
        let result = match stranded.first() {
            None => {
                let projects = self.objects(PROJECTS, &self.0.settings.namespace);
                projects.replace(text(stored, "/metadata/name"), &replaced).await
            }
            Some(first) => Err(Error::precondition(format!(
                "{} applications use a source or a destination that the project would no longer permit, {first} among them",
                stranded.len()
            ))),
        };
        let deed = self.project_deed("update", "ResourceUpdated", stored);
        self.0.configured.forget().await;
        self.audited(context, deed, result.map(plain)).await
    }

    /// The Applications of a project, wherever they live, that could be deployed before and not after.
    fn stranded(&self, before: &AppProject, after: &AppProject) -> Vec<String> {
        let name = before.metadata.name.as_deref().unwrap_or_default();
        let rules = [before, after].map(|project| ProjectRules::new(project, &[], &[], &[]));
        let all = self.0.applications.all().into_iter();
        let own = all.filter(|one| project_of(one) == name);
        let read = own.filter_map(|one| Application::deserialize(&*one).ok());
        let lost = read.filter(|one| permits(&rules[0], one) && !permits(&rules[1], one));
        lost.filter_map(|one| one.metadata.name).collect()
    }

    fn project_deed(&self, verb: &'static str, reason: &'static str, project: &Value) -> Deed {
        let name = text(project, "/metadata/name").to_owned();
        let (namespace, uid) = (self.0.settings.namespace.clone(), text(project, "/metadata/uid").to_owned());
        let object = Affected { kind: "AppProject", namespace, project: name.clone(), name, uid };
        Deed { verb, reason, object, ..Deed::default() }
    }
}

fn typed(project: &Value) -> Result<AppProject, Error> {
    // A list of values would be read as the fields in their order.
    if !project.is_object() || !project["spec"].is_object() {
        return Err(Error::invalid("this is no AppProject: it and its spec are objects"));
    }
    AppProject::deserialize(project)
        .map_err(|error| Error::invalid(format!("this is no AppProject: {error}")))
}

/// Whether a project permits where an Application comes from and where it goes.
fn permits(rules: &ProjectRules, application: &Application) -> bool {
    let (spec, destination) = (&application.spec, &application.spec.destination);
    let mut sources = spec.source.iter().chain(&spec.sources);
    let cluster = DestinationCluster { server: &destination.server, name: &destination.name };
    sources.all(|source| rules.permits_source(&source.repo_url))
        && rules.permits_destination(cluster, &destination.namespace)
}

/// Leaves the tokens of roles as they are: only who makes or revokes one changes them, so that none that was revoked
/// comes back.
fn keep_tokens(spec: &mut Value, stored: &Value) {
    let known = |name: &Value| {
        let mut roles = stored["roles"].as_array().into_iter().flatten();
        roles.find(|role| role["name"] == *name).map(|role| role["jwtTokens"].clone())
    };
    let roles = spec.get_mut("roles").and_then(Value::as_array_mut).into_iter().flatten();
    for role in roles.filter_map(Value::as_object_mut) {
        let tokens = known(role.get("name").unwrap_or(&Value::Null)).filter(|tokens| !tokens.is_null());
        set(role, "jwtTokens", tokens);
    }
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => fields.insert(name.to_owned(), value),
        None => fields.remove(name),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_roles_are_nobodys_to_write() {
        let stored = json!({"roles": [{"name": "ci", "jwtTokens": [{"iat": 1}]}, {"name": "idle"}]});
        let mut sent = json!({"roles": [
            {"name": "ci", "jwtTokens": [{"iat": 7}], "policies": ["p"]},
            {"name": "idle", "jwtTokens": [{"iat": 8}]},
            {"name": "new", "jwtTokens": [{"iat": 9}]},
        ]});
        keep_tokens(&mut sent, &stored);
        assert_eq!(
            sent,
            json!({"roles": [{"name": "ci", "jwtTokens": [{"iat": 1}], "policies": ["p"]}, {"name": "idle"}, {"name": "new"}]})
        );
        keep_tokens(&mut json!({"roles": [[], "x", null]}), &stored);
        keep_tokens(&mut json!([]), &stored);
    }
}
