//! Applications: found, listed, changed, deleted.

use std::time::Duration;

use baton_api::Application;
use baton_api::edit::difference;
use baton_api::names::application::{DELETION_APPROVED, REFRESH};
use baton_api::names::baton::{APPROVAL, DELETION_ASKED_BY, PIN};
use baton_api::names::finalizer::{RESOURCES, RESOURCES_BACKGROUND, RESOURCES_FOREGROUND};
use schemars::JsonSchema;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::filter::{Filter, Test};
use crate::approvals;
use crate::audit::{Affected, Deed};
use crate::error::{Code, Error};
use crate::masking;
use crate::objects::{APPLICATIONS, PROJECTS, text};
use crate::server::{Context, Server, fill, plain};

/// Annotations of an Application that no update brings along.
pub(super) const OWN: [&str; 3] = [PIN, APPROVAL, DELETION_ASKED_BY];
/// How often a write is made anew when the object changes under it.
pub(crate) const ATTEMPTS: usize = 10;
/// How long a comparison that was asked for is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which Application is meant.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its namespace; the control plane's where it is empty.
    pub namespace: String,
    /// Its project, where the caller says it.
    pub project: String,
}

/// How an Application is deleted.
#[derive(Debug, Clone, Default)]
pub struct Deletion {
    /// Whether what it deployed stays.
    pub keep_resources: bool,
    /// `foreground`, `background` or nothing.
    pub propagation: String,
}

/// A patch of an Application.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PatchRequest {
    /// The patch, as text.
    pub patch: String,
    /// `json` or `merge`.
    pub patch_type: String,
    /// Namespace of the Application, as in the query.
    pub app_namespace: String,
    /// Its project, as in the query.
    pub project: String,
}

/// A patch that was read.
enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
}

/// An Application, as it is stored and as it reads.
pub(crate) struct Found {
    pub(crate) raw: Value,
    pub(crate) typed: Application,
    /// How policies name it.
    pub(crate) object: String,
}

impl Server {
    /// The Applications that the caller may see.
    ///
    /// # Errors
    /// The selector cannot be read, or not everything was seen yet.
    pub async fn applications(&self, context: &Context, filter: &Filter) -> Result<Value, Error> {
        self.0.applications.synced().await?;
        let test = Test::new(filter)?;
        let seen = self.0.applications.all().into_iter();
        let seen = seen.filter(|application| test.holds(application) && self.sees(context, application));
        let mut newest = 0;
        let items: Vec<Value> = seen
            .map(|application| {
                newest = newest.max(crate::mirror::version(&application).parse().unwrap_or(0_u64));
                let mut application = Value::clone(&application);
                fill(&mut application);
                application
            })
            .collect();
        Ok(json!({"metadata": {"resourceVersion": newest.to_string()}, "items": items}))
    }

    /// One Application; with `refresh`, as it is after a comparison.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn application(&self, context: &Context, at: &Named, refresh: &str) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        if !matches!(refresh, "normal" | "hard" | "true") {
            return Ok(plain(found.raw));
        }
        let kind = if refresh == "hard" { "hard" } else { "normal" };
        let (namespace, name) = (text(&found.raw, "/metadata/namespace"), text(&found.raw, "/metadata/name"));
        let mut changes = self.0.applications.subscribe();
        let applications = self.objects(APPLICATIONS, namespace);
        let uid = text(&found.raw, "/metadata/uid");
        let patch = json!({"metadata": {"uid": uid, "annotations": {REFRESH: kind}}});
        let asked = applications.merge(name, &patch).await?;
        let pointer = format!("/metadata/annotations/{}", REFRESH.replace('/', "~1"));
        let mut now = asked;
        let wait = async {
            while now.pointer(&pointer).is_some() {
                let _ = tokio::time::timeout(Duration::from_secs(1), changes.recv()).await;
                now = applications.find(name).await?.ok_or_else(Error::hidden)?;
            }
            Ok(plain(now))
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(compared) => compared,
            Err(_) => Err(Error::new(Code::DeadlineExceeded, format!("{name} was not compared in time"))),
        }
    }

    /// Puts an Application in the place of the one that is there: its labels, annotations, finalizers and spec.
    ///
    /// # Errors
    /// The caller may not change it so, or there is none.
    pub async fn update_application(
        &self,
        context: &Context,
        at: &Named,
        wanted: Value,
    ) -> Result<Value, Error> {
        if text(&wanted, "/metadata/name") != at.name {
            return Err(Error::invalid("the name in the path is not the name of the Application"));
        }
        // Of which namespace it is, it says itself.
        let namespace = text(&wanted, "/metadata/namespace");
        if !at.namespace.is_empty() && !namespace.is_empty() && at.namespace != namespace {
            return Err(Error::invalid("appNamespace is not the namespace of the Application"));
        }
        let own = Named { namespace: namespace.to_owned(), ..at.clone() };
        let at = if namespace.is_empty() { at } else { &own };
        let deed = |found: &Found| deed("update", "ResourceUpdated", found);
        self.rewrite(context, at, deed, |_| Ok(wanted.clone())).await
    }

    /// Puts a spec in the place of an Application's.
    ///
    /// # Errors
    /// As [`Server::update_application`].
    pub async fn update_spec(&self, context: &Context, at: &Named, spec: Value) -> Result<Value, Error> {
        let deed = |found: &Found| deed("update", "ResourceUpdated", found);
        let with = |stored: &Value| {
            let mut wanted = stored.clone();
            wanted["spec"] = spec.clone();
            Ok(wanted)
        };
        Ok(self.rewrite(context, at, deed, with).await?["spec"].take())
    }

    /// Changes an Application by a patch.
    ///
    /// # Errors
    /// As [`Server::update_application`], or the patch cannot be read or applied.
    pub async fn patch_application(
        &self,
        context: &Context,
        at: &Named,
        request: &PatchRequest,
    ) -> Result<Value, Error> {
        let patch = Patch::read(request)?;
        let patched = |stored: &Value| patch.applied(stored);
        self.rewrite(context, at, |found| deed("patch", "ResourceUpdated", found), patched).await
    }

    /// Deletes an Application, and what it deployed unless that is to stay.
    ///
    /// # Errors
    /// The caller may not, or there is none.
    pub async fn delete_application(
        &self,
        context: &Context,
        at: &Named,
        how: &Deletion,
    ) -> Result<Value, Error> {
        if how.keep_resources && !how.propagation.is_empty() {
            return Err(Error::invalid("cannot set propagation policy when cascading is disabled"));
        }
        let cascade = match (how.keep_resources, how.propagation.as_str()) {
            (true, _) => None,
            (false, "") => Some(RESOURCES),
            (false, "foreground") => Some(RESOURCES_FOREGROUND),
            (false, "background") => Some(RESOURCES_BACKGROUND),
            (false, other) => return Err(Error::invalid(format!("invalid propagation policy: {other}"))),
        };
        let found = self.find(context, at, "delete").await?;
        let deed = deed("delete", "ResourceDeleted", &found);
        let result = self.remove(context, found, cascade, how).await;
        self.audited(context, deed, result).await
    }

    /// The Events about an Application.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn application_events(&self, context: &Context, at: &Named) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let field = |pointer: &str| text(&found.raw, pointer).to_owned();
        let (namespace, name) = (field("/metadata/namespace"), field("/metadata/name"));
        self.events_about(&namespace, &name, &field("/metadata/uid")).await
    }

    /// Finds an Application for somebody who wants to do something to it. Whoever may not see it cannot tell whether it is
    /// there.
    pub(crate) async fn find(&self, context: &Context, at: &Named, action: &str) -> Result<Found, Error> {
        let namespace = self.namespace(&at.namespace)?;
        let stored = self.objects(APPLICATIONS, namespace).find(&at.name).await?;
        let missing = || Error::not_found(format!("applications.argoproj.io \"{}\" not found", at.name));
        if !at.project.is_empty() {
            // The caller says the project, so the answer tells only what it may know of that one.
            let object = self.policy_name(&at.project, namespace, &at.name);
            self.demand(context, "applications", action, &object)?;
            let raw = stored.filter(|raw| project(raw) == at.project).ok_or_else(missing)?;
            return Ok(Found { typed: typed(&raw)?, raw, object });
        }
        let raw = stored.ok_or_else(Error::hidden)?;
        let object = self.policy_name(project(&raw), namespace, &at.name);
        if !self.may(context, "applications", "get", &object)
            && !self.may(context, "applications", action, &object)
        {
            return Err(Error::hidden());
        }
        if action != "get" {
            self.demand(context, "applications", action, &object)?;
        } else if !self.may(context, "applications", action, &object) {
            return Err(Error::hidden());
        }
        Ok(Found { typed: typed(&raw)?, raw, object })
    }

    pub(crate) fn sees(&self, context: &Context, application: &Value) -> bool {
        let (namespace, name) =
            (text(application, "/metadata/namespace"), text(application, "/metadata/name"));
        self.0.settings.allows(namespace)
            && self.may(
                context,
                "applications",
                "get",
                &self.policy_name(project(application), namespace, name),
            )
    }

    pub(super) async fn rewrite(
        &self,
        context: &Context,
        at: &Named,
        deed: impl Fn(&Found) -> Deed,
        wanted: impl Fn(&Value) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        for _ in 0..ATTEMPTS {
            let found = self.find(context, at, "update").await?;
            let mut deed = deed(&found);
            let wanted = wanted(&found.raw);
            if wanted.as_ref().is_ok_and(|wanted| approves(&found.raw, wanted)) {
                (deed.verb, deed.reason) = ("approve deletion", "BatonApproved");
            }
            let result = self.write(context, &found, wanted).await;
            if matches!(&result, Err(error) if error.code == Code::Aborted) {
                continue;
            }
            return self.audited(context, deed, result.map(plain)).await;
        }
        Err(busy(&at.name))
    }

    /// Lets an Application into a project only if there is one: it could not even be compared.
    pub(super) async fn check_project(
        &self,
        context: &Context,
        name: &str,
        project: &str,
    ) -> Result<(), Error> {
        let project = if project.is_empty() { "default" } else { project };
        // What was read of late may miss one that has just been made.
        let known = context.configuration.projects.contains_key(project)
            || self.objects(PROJECTS, &self.0.settings.namespace).find(project).await?.is_some();
        known.then_some(()).ok_or_else(|| {
            Error::invalid(format!(
                "application spec for {name} is invalid: InvalidSpecError: Application referencing project {project} \
                 which does not exist"
            ))
        })
    }

    /// Writes what an update may change, and nothing else: neither status nor operation.
    async fn write(
        &self,
        context: &Context,
        found: &Found,
        wanted: Result<Value, Error>,
    ) -> Result<Value, Error> {
        let mut wanted = wanted?;
        masking::restore(&mut wanted, &found.raw);
        let after = typed(&wanted)?;
        let (namespace, name) = (text(&found.raw, "/metadata/namespace"), text(&found.raw, "/metadata/name"));
        if after.spec.project != found.typed.spec.project {
            let object = self.policy_name(&after.spec.project, namespace, name);
            self.demand(context, "applications", "create", &object)?;
            self.check_project(context, name, &after.spec.project).await?;
        }
        let mut metadata = Map::new();
        for field in ["labels", "annotations", "finalizers"] {
            let (old, new) = (&found.raw["metadata"][field], &wanted["metadata"][field]);
            if old != new {
                metadata.insert(field.to_owned(), difference(old, new));
            }
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // The stamp of the rollout and what the server notes itself are nobody's to change.
            for own in OWN {
                annotations.remove(own);
            }
            if annotations.contains_key(DELETION_APPROVED) {
                self.stamp(context, found, annotations)?;
            }
        }
        metadata.insert("resourceVersion".to_owned(), found.raw["metadata"]["resourceVersion"].clone());
        let mut patch = json!({"metadata": metadata});
        if found.raw["spec"] != wanted["spec"] {
            patch["spec"] = difference(&found.raw["spec"], &wanted["spec"]);
        }
        self.objects(APPLICATIONS, namespace).merge(name, &patch).await
    }

    /// An approval that comes with an update needs the right to approve, and the server's time instead of the caller's.
    fn stamp(
        &self,
        context: &Context,
        found: &Found,
        annotations: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        if !context.configuration.is_on("approvals.allowUpdateAsApprove") {
            self.demand_approval(context, &found.object, &approvals::waiting(&found.typed), true)?;
        }
        match annotations[DELETION_APPROVED].is_null() {
            true => annotations.insert(APPROVAL.to_owned(), Value::Null).map_or((), drop),
            false => annotations.extend(self.word(context, found)),
        }
        Ok(())
    }

    async fn remove(
        &self,
        context: &Context,
        found: Found,
        cascade: Option<&str>,
        how: &Deletion,
    ) -> Result<Value, Error> {
        let [namespace, name] =
            ["namespace", "name"].map(|field| found.raw["metadata"][field].as_str().unwrap_or_default());
        let applications = self.objects(APPLICATIONS, namespace);
        let mut raw = found.raw.clone();
        for _ in 0..ATTEMPTS {
            let uid = text(&raw, "/metadata/uid").to_owned();
            let mut patch = json!({"metadata": {"resourceVersion": text(&raw, "/metadata/resourceVersion")}});
            let finalizers = finalizers(&raw, cascade, how);
            let goes = raw.pointer("/metadata/deletionTimestamp").is_some();
            let at_once = match &finalizers {
                Some(after) => after.is_empty(),
                None => raw["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty),
            };
            if let Some(finalizers) = &finalizers {
                patch["metadata"]["finalizers"] = json!(finalizers);
            }
            // What does not go at once may come to wait for somebody, who will ask who wanted it.
            let noted = !goes && !at_once;
            if noted {
                patch["metadata"]["annotations"] = json!({DELETION_ASKED_BY: context.caller.actor()});
            }
            if finalizers.is_some() || noted {
                match applications.merge(name, &patch).await {
                    Ok(_) => {}
                    Err(error) if error.code == Code::Aborted => {
                        raw = applications.find(name).await?.ok_or_else(Error::hidden)?;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            applications.delete(name, "Background", &uid).await?;
            return Ok(json!({}));
        }
        Err(busy(name))
    }
}

// === impl Patch ===

impl Patch {
    fn read(request: &PatchRequest) -> Result<Patch, Error> {
        let unreadable =
            |error: serde_json::Error| Error::invalid(format!("the patch cannot be read: {error}"));
        match request.patch_type.as_str() {
            "" | "json" => serde_json::from_str(&request.patch).map(Patch::Json).map_err(unreadable),
            "merge" => serde_json::from_str(&request.patch).map(Patch::Merge).map_err(unreadable),
            other => Err(Error::invalid(format!("{other:?} is no kind of patch: json or merge"))),
        }
    }

    fn applied(&self, stored: &Value) -> Result<Value, Error> {
        let mut wanted = stored.clone();
        match self {
            Patch::Json(patch) => json_patch::patch(&mut wanted, patch)
                .map_err(|error| Error::invalid(format!("the patch cannot be applied: {error}")))?,
            Patch::Merge(patch) => json_patch::merge(&mut wanted, patch),
        }
        Ok(wanted)
    }
}

/// Whether an update is a person's word that what waits may be deleted.
fn approves(stored: &Value, wanted: &Value) -> bool {
    let word =
        |object: &Value| object["metadata"]["annotations"][DELETION_APPROVED].as_str().map(str::to_owned);
    word(wanted).is_some_and(|text| Some(text) != word(stored))
}

/// The project of an Application, as policies name it.
pub(crate) fn project(application: &Value) -> &str {
    match text(application, "/spec/project") {
        "" => baton_api::names::DEFAULT_PROJECT,
        project => project,
    }
}

/// The typed view of an Application.
///
/// # Errors
/// It has not the shape of one.
pub(crate) fn typed(application: &Value) -> Result<Application, Error> {
    // A list of values would be read as the fields in their order.
    if !application.is_object() {
        return Err(Error::invalid("this is no Application: it is no object"));
    }
    Application::deserialize(application)
        .map_err(|error| Error::invalid(format!("this is no Application: {error}")))
}

/// The record of something done to an Application.
pub(crate) fn deed(verb: &'static str, reason: &'static str, found: &Found) -> Deed {
    let field = |pointer: &str| text(&found.raw, pointer).to_owned();
    let object = Affected {
        kind: "Application",
        namespace: field("/metadata/namespace"),
        name: field("/metadata/name"),
        uid: field("/metadata/uid"),
        project: project(&found.raw).to_owned(),
    };
    Deed { verb, reason, object, ..Deed::default() }
}

pub(crate) fn busy(name: &str) -> Error {
    Error::new(Code::Aborted, format!("{name} changed each time it was to be written: try again"))
}

/// The finalizers the object must have before it is deleted, where it does not have them.
fn finalizers(object: &Value, cascade: Option<&str>, how: &Deletion) -> Option<Vec<String>> {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    let present = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
    let present: Vec<&str> = present.filter_map(Value::as_str).collect();
    let cascades =
        |finalizer: &&str| [RESOURCES, RESOURCES_FOREGROUND, RESOURCES_BACKGROUND].contains(finalizer);
    // Whoever says nothing of how leaves it as it is.
    if cascade.is_some() && how.propagation.is_empty() && present.iter().any(cascades) {
        return None;
    }
    let mut after: Vec<&str> = present.iter().copied().filter(|finalizer| !cascades(finalizer)).collect();
    after.extend(cascade);
    (after != present).then(|| after.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizers_say_what_becomes_of_resources() {
        let object = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        let how = |propagation: &str| Deletion { keep_resources: false, propagation: propagation.to_owned() };
        let (plain, foreground) = (how(""), how("foreground"));
        assert_eq!(finalizers(&object(json!([])), Some(RESOURCES), &plain), Some(vec![RESOURCES.to_owned()]));
        assert_eq!(finalizers(&object(json!([RESOURCES_BACKGROUND])), Some(RESOURCES), &plain), None);
        let changed = finalizers(&object(json!(["x", RESOURCES])), Some(RESOURCES_FOREGROUND), &foreground);
        assert_eq!(changed, Some(vec!["x".to_owned(), RESOURCES_FOREGROUND.to_owned()]));
        assert_eq!(finalizers(&object(json!([RESOURCES])), None, &plain), Some(vec![]));
    }
}
