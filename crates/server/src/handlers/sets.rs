//! ApplicationSets: found, listed, written, deleted.

use baton_api::ApplicationSet;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::applications::{ATTEMPTS, busy};
use super::filter::{Filter, Test};
use crate::audit::{Affected, Deed};
use crate::error::{Code, Error};
use crate::masking;
use crate::objects::{SETS, text};
use crate::rollouts::action::rights_to_change;
use crate::server::{Context, Server, plain};

/// A set whose Applications are asked for.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Generation {
    /// The set.
    pub application_set: Value,
}

/// A set, as it is stored and as it reads.
pub(crate) struct FoundSet {
    pub(crate) raw: Value,
    pub(crate) typed: ApplicationSet,
    /// How policies name it.
    pub(crate) object: String,
}

impl Server {
    /// The sets that the caller may see.
    ///
    /// # Errors
    /// The selector cannot be read, or not everything was seen yet.
    pub async fn sets(&self, context: &Context, filter: &Filter) -> Result<Value, Error> {
        self.0.sets.synced().await?;
        let rest = Filter { projects: Vec::new(), ..filter.clone() };
        let test = Test::new(&rest)?;
        let of_project =
            |set: &Value| filter.projects.is_empty() || filter.projects.iter().any(|one| one == project(set));
        let all = self.0.sets.all().into_iter();
        let seen = all.filter(|set| of_project(set) && test.holds(set) && self.sees_set(context, set));
        let items: Vec<Value> = seen.map(|set| Value::clone(&set)).collect();
        let newest = items.iter().filter_map(|set| crate::mirror::version(set).parse::<u64>().ok()).max();
        Ok(json!({"metadata": {"resourceVersion": newest.unwrap_or_default().to_string()}, "items": items}))
    }

    /// One set.
    ///
    /// # Errors
    /// The caller may not see it, or there is none: both read the same.
    pub async fn set(&self, context: &Context, namespace: &str, name: &str) -> Result<Value, Error> {
        Ok(plain(self.find_set(context, namespace, name, "get").await?.raw))
    }

    /// Creates a set, or with `upsert` changes the one that is there.
    ///
    /// # Errors
    /// The caller may not, or there is another already.
    pub async fn create_set(
        &self,
        context: &Context,
        mut wanted: Value,
        upsert: bool,
        dry_run: bool,
    ) -> Result<Value, Error> {
        let after = typed(&wanted)?;
        let name = after.metadata.name.clone().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Error::invalid("the ApplicationSet has no name"))?;
        let asked = after.metadata.namespace.clone().unwrap_or_default();
        let namespace = self.namespace(&asked)?.to_owned();
        let project = &after.spec.template.spec.project;
        if project.contains("{{") {
            return Err(Error::invalid(
                "the Argo CD API does not currently support creating ApplicationSets with templated `project` fields",
            ));
        }
        let object = self.policy_name(project, &namespace, &name);
        self.demand(context, "applicationsets", "create", &object)?;
        if dry_run {
            let applications = self.generated(&after).await?;
            let mut shown = wanted;
            shown["status"] = json!({"resources": applications.iter().map(resource).collect::<Vec<_>>()});
            return Ok(shown);
        }
        wanted["apiVersion"] = baton_api::names::API_VERSION.into();
        wanted["kind"] = "ApplicationSet".into();
        wanted["metadata"]["namespace"] = namespace.as_str().into();
        if let Some(fields) = wanted.as_object_mut() {
            fields.remove("status");
        }
        let sets = self.objects(SETS, &namespace);
        for _ in 0..ATTEMPTS {
            let stored = sets.find(&name).await?;
            let result = match &stored {
                None => self.first(context, &wanted, &after, &object).await,
                Some(stored) => self.second(context, stored, &wanted, upsert).await,
            };
            if matches!(&result, Err(error) if matches!(error.code, Code::Aborted)) {
                continue;
            }
            let (verb, reason) = match stored {
                None => ("create", "ResourceCreated"),
                Some(_) => ("update", "ResourceUpdated"),
            };
            let about = stored.as_ref().or(result.as_ref().ok()).unwrap_or(&wanted);
            let deed = set_deed(verb, reason, about);
            return self.audited(context, deed, result.map(plain)).await;
        }
        Err(busy(&name))
    }

    /// Deletes a set, and its Applications with it.
    ///
    /// # Errors
    /// The caller may not, or there is none.
    pub async fn delete_set(&self, context: &Context, namespace: &str, name: &str) -> Result<Value, Error> {
        let found = self.find_set(context, namespace, name, "delete").await?;
        let deed = set_deed("delete", "ResourceDeleted", &found.raw);
        let sets = self.objects(SETS, text(&found.raw, "/metadata/namespace"));
        let result = sets.delete(name, "Background", text(&found.raw, "/metadata/uid")).await;
        self.audited(context, deed, result.map(|()| json!({}))).await
    }

    /// The Applications of a set, as a tree of one level.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn set_tree(&self, context: &Context, namespace: &str, name: &str) -> Result<Value, Error> {
        let found = self.find_set(context, namespace, name, "get").await?;
        self.0.applications.synced().await?;
        let parent = json!({
            "group": baton_api::names::GROUP, "version": "v1alpha1", "kind": "ApplicationSet", "name": name,
            "namespace": found.raw["metadata"]["namespace"], "uid": found.raw["metadata"]["uid"],
        });
        let key = crate::mirror::key(&found.raw);
        let all = self.0.applications.all().into_iter();
        let own =
            all.filter(|one| crate::rollouts::set_of(one).as_ref() == Some(&key) && self.sees(context, one));
        let nodes: Vec<Value> = own
            .map(|one| {
                let mut node = resource(&one);
                node["uid"] = one["metadata"]["uid"].clone();
                node["resourceVersion"] = one["metadata"]["resourceVersion"].clone();
                node["createdAt"] = one["metadata"]["creationTimestamp"].clone();
                node["parentRefs"] = json!([parent]);
                node["health"] = one["status"]["health"].clone();
                node
            })
            .collect();
        Ok(json!({"nodes": nodes}))
    }

    /// The Events about a set.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn set_events(&self, context: &Context, namespace: &str, name: &str) -> Result<Value, Error> {
        let found = self.find_set(context, namespace, name, "get").await?;
        let namespace = text(&found.raw, "/metadata/namespace").to_owned();
        self.events_about(&namespace, name, text(&found.raw, "/metadata/uid")).await
    }

    /// Finds a set for somebody who wants to do something to it. Whoever may not see it cannot tell whether it is there.
    pub(crate) async fn find_set(
        &self,
        context: &Context,
        namespace: &str,
        name: &str,
        action: &str,
    ) -> Result<FoundSet, Error> {
        let namespace = self.namespace(namespace)?;
        let Some(raw) = self.objects(SETS, namespace).find(name).await? else {
            // Whoever may see a set of that name in any project learns that there is none.
            return Err(
                match self.may(context, "applicationsets", "get", &self.policy_name("*", namespace, name)) {
                    true => Error::not_found(format!("applicationsets.argoproj.io \"{name}\" not found")),
                    false => Error::hidden(),
                },
            );
        };
        let object = self.policy_name(project(&raw), namespace, name);
        if !self.may(context, "applicationsets", "get", &object) {
            return Err(Error::hidden());
        }
        if action != "get" {
            self.demand(context, "applicationsets", action, &object)?;
        }
        Ok(FoundSet { typed: typed(&raw)?, raw, object })
    }

    pub(crate) fn sees_set(&self, context: &Context, set: &Value) -> bool {
        let (namespace, name) = (text(set, "/metadata/namespace"), text(set, "/metadata/name"));
        self.0.settings.allows(namespace)
            && self.may(context, "applicationsets", "get", &self.policy_name(project(set), namespace, name))
    }

    async fn first(
        &self,
        context: &Context,
        wanted: &Value,
        after: &ApplicationSet,
        object: &str,
    ) -> Result<Value, Error> {
        for right in rights_to_change(None, after) {
            self.demand(context, "applicationsets", &right, object)?;
        }
        let mut wanted = wanted.clone();
        told(&mut wanted)?;
        if let Some(metadata) = wanted["metadata"].as_object_mut() {
            for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"] {
                metadata.remove(field);
            }
        }
        self.objects(SETS, text(&wanted, "/metadata/namespace")).create(&wanted, false).await
    }

    async fn second(
        &self,
        context: &Context,
        stored: &Value,
        wanted: &Value,
        upsert: bool,
    ) -> Result<Value, Error> {
        let mut wanted = wanted.clone();
        masking::restore(&mut wanted, stored);
        told(&mut wanted)?;
        let same = |field: &str| {
            let (stored, wanted) = (&stored["metadata"][field], &wanted["metadata"][field]);
            // An empty map is not stored.
            let empty = wanted.as_object().is_some_and(Map::is_empty) && stored.is_null();
            stored == wanted || wanted.is_null() || empty
        };
        if stored["spec"] == wanted["spec"] && same("labels") && same("annotations") {
            return Ok(stored.clone());
        }
        if !upsert {
            return Err(Error::invalid(
                "existing ApplicationSet spec is different, use upsert flag to force update",
            ));
        }
        let (before, after) = (typed(stored)?, typed(&wanted)?);
        let (namespace, name) = (text(stored, "/metadata/namespace"), text(stored, "/metadata/name"));
        // Both the set that is there and the one that shall be are the caller's to change.
        for project in [&before.spec.template.spec.project, &after.spec.template.spec.project] {
            let object = self.policy_name(project, namespace, name);
            self.demand(context, "applicationsets", "update", &object)?;
        }
        let object = self.policy_name(&before.spec.template.spec.project, namespace, name);
        for right in rights_to_change(Some(&before), &after) {
            self.demand(context, "applicationsets", &right, &object)?;
        }
        let mut replaced = stored.clone();
        replaced["spec"] = wanted["spec"].clone();
        for field in ["labels", "annotations", "finalizers"] {
            if !wanted["metadata"][field].is_null() {
                replaced["metadata"][field] = wanted["metadata"][field].clone();
            }
        }
        // The head of a rollout is nobody's to change.
        let head = baton_api::names::baton::ROLLOUT;
        match stored["metadata"]["annotations"].get(head) {
            Some(text) => replaced["metadata"]["annotations"][head] = text.clone(),
            None => {
                if let Some(annotations) = replaced["metadata"]["annotations"].as_object_mut() {
                    annotations.remove(head);
                }
            }
        }
        self.objects(SETS, namespace).replace(name, &replaced).await
    }
}

/// Whether all credentials of a set's hooks are said: what stands where they were hidden is none.
fn told(set: &mut Value) -> Result<(), Error> {
    match masking::left_hidden(set) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "{name} of a hook holds what stands where its value was hidden: say the value, or keep it in a Secret"
        ))),
    }
}

/// The project of a set's Applications, as policies name it.
pub(crate) fn project(set: &Value) -> &str {
    text(set, "/spec/template/spec/project")
}

/// The record of something done to a set.
pub(crate) fn set_deed(verb: &'static str, reason: &'static str, set: &Value) -> Deed {
    let field = |pointer: &str| text(set, pointer).to_owned();
    let object = Affected {
        kind: "ApplicationSet",
        namespace: field("/metadata/namespace"),
        name: field("/metadata/name"),
        uid: field("/metadata/uid"),
        project: project(set).to_owned(),
    };
    Deed { verb, reason, object, ..Deed::default() }
}

pub(crate) fn typed(set: &Value) -> Result<ApplicationSet, Error> {
    // A list of values would be read as the fields in their order.
    if !set.is_object() {
        return Err(Error::invalid("this is no ApplicationSet: it is no object"));
    }
    ApplicationSet::deserialize(set)
        .map_err(|error| Error::invalid(format!("this is no ApplicationSet: {error}")))
}

fn resource(application: &Value) -> Value {
    json!({
        "group": baton_api::names::GROUP, "version": baton_api::names::VERSION, "kind": "Application",
        "namespace": application["metadata"]["namespace"], "name": application["metadata"]["name"],
    })
}
