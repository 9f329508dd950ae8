//! Applications in a cluster, with the rights of a kubeconfig.

use baton_api::Application;
use baton_api::application_status::OperationPhase;
use baton_api::names::application::DELETION_APPROVED;
use baton_api::names::finalizer::{RESOURCES, RESOURCES_BACKGROUND, RESOURCES_FOREGROUND};
use futures::stream::BoxStream;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::super::PLURAL;
use super::super::operate::{ATTEMPTS, busy};
use super::{Creation, Deletion, Policy, Wish};
use crate::failure::Failure;
use crate::objects::{Objects, text};
use crate::session::Sight;
use crate::sight;

/// The Applications of one namespace.
pub(in crate::app) struct InCluster {
    pub(in crate::app) client: Client,
    pub(in crate::app) namespace: String,
    pub(super) objects: Objects,
}

// === impl InCluster ===

impl InCluster {
    pub(super) fn new(client: Client, namespace: &str) -> InCluster {
        let objects = Objects::new(client.clone(), PLURAL, namespace);
        InCluster { client, namespace: namespace.to_owned(), objects }
    }

    pub(in crate::app) async fn get(&self, name: &str) -> Result<Value, Failure> {
        self.objects.get(name).await
    }

    pub(super) async fn list(&self, selector: Option<&str>, everywhere: bool) -> Result<Vec<Value>, Failure> {
        let kind = ApiResource::erase::<Application>(&());
        let api: Api<DynamicObject> = match everywhere {
            true => Api::all_with(self.client.clone(), &kind),
            false => Api::namespaced_with(self.client.clone(), &self.namespace, &kind),
        };
        let parameters = ListParams { label_selector: selector.map(str::to_owned), ..ListParams::default() };
        let whole = |object| serde_json::to_value(object).map_err(|error| Failure::failed(error.to_string()));
        api.list(&parameters).await?.into_iter().map(whole).collect()
    }

    pub(super) async fn create(
        &self,
        document: &Value,
        how: Creation,
    ) -> Result<(Value, &'static str), Failure> {
        let namespace = match text(document, "/metadata/namespace") {
            namespace if namespace.is_empty() => self.namespace.clone(),
            namespace => namespace,
        };
        let name = text(document, "/metadata/name");
        let place = Objects::new(self.client.clone(), PLURAL, &namespace).dry_run(how.dry_run);
        let existing = if how.upsert { place.find(&name).await? } else { None };
        let Some(existing) = existing else { return Ok((place.create(document).await?, "created")) };
        // What the controller wrote is not the file's to remove.
        let patch = json!({
            "metadata": {"resourceVersion": text(&existing, "/metadata/resourceVersion"),
                "labels": document["metadata"]["labels"], "annotations": document["metadata"]["annotations"],
                "finalizers": document["metadata"]["finalizers"]},
        });
        let mut after = existing.clone();
        merge(&mut after, &patch);
        after["spec"] = document["spec"].clone();
        let version = text(&existing, "/metadata/resourceVersion");
        Ok((place.replace(&name, &after, &version).await?, "configured"))
    }

    pub(super) async fn start(&self, name: &str, seen: &Value, wish: &Wish) -> Result<bool, Failure> {
        let (Wish::Sync(operation) | Wish::Rollback(_, operation)) = wish;
        // The state of an operation before must not be taken for this one's.
        let patch = json!({
            "metadata": {"resourceVersion": text(seen, "/metadata/resourceVersion")},
            "operation": operation,
            "status": {"operationState": Value::Null},
        });
        Ok(self.objects.merge(name, &patch).await?.is_some())
    }

    pub(super) async fn change(&self, name: &str, seen: &Value, patch: &Value) -> Result<bool, Failure> {
        let mut patch = patch.clone();
        patch["metadata"]["resourceVersion"] = text(seen, "/metadata/resourceVersion").into();
        Ok(self.objects.merge(name, &patch).await?.is_some())
    }

    pub(super) async fn terminate(&self, name: &str, seen: &Value) -> Result<bool, Failure> {
        let patch = json!({
            "metadata": {"resourceVersion": text(seen, "/metadata/resourceVersion")},
            "status": {"operationState": {"phase": OperationPhase::Terminating.as_str()}},
        });
        Ok(self.objects.merge(name, &patch).await?.is_some())
    }

    pub(super) async fn approve(&self, name: &str, seen: &Value, at: Timestamp) -> Result<(), Failure> {
        let patch = json!({
            // Another Application of this name is not what the person looked at.
            "metadata": {"uid": text(seen, "/metadata/uid"), "annotations": {DELETION_APPROVED: at.to_string()}},
        });
        let written = self.objects.merge(name, &patch).await?;
        written.map(drop).ok_or_else(|| Failure::api(format!("{name} is no longer the Application it was")))
    }

    pub(in crate::app) async fn annotate(&self, name: &str, annotations: Value) -> Result<(), Failure> {
        self.objects.merge(name, &json!({"metadata": {"annotations": annotations}})).await.map(drop)
    }

    /// Sets the finalizers that say what becomes of the resources, and deletes the object.
    pub(super) async fn delete(&self, name: &str, how: Deletion) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let object = self.objects.get(name).await?;
            let uid = text(&object, "/metadata/uid");
            if let Some(finalizers) = finalizers(&object, how) {
                let version = text(&object, "/metadata/resourceVersion");
                let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
                if self.objects.merge(name, &patch).await?.is_none() {
                    continue;
                }
            }
            return self.objects.delete(name, "Background", &uid).await;
        }
        Err(busy(name))
    }

    pub(super) fn watch(&self, name: &str) -> BoxStream<'static, Sight> {
        let kind = ApiResource::erase::<Application>(&());
        sight::of(Api::namespaced_with(self.client.clone(), &self.namespace, &kind), name)
    }
}

/// The finalizers the object must have, where it does not have them.
fn finalizers(object: &Value, how: Deletion) -> Option<Vec<String>> {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    let present: Vec<String> = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|finalizer| finalizer.as_str().map(str::to_owned))
        .collect();
    let cascades = |finalizer: &String| {
        [RESOURCES, RESOURCES_FOREGROUND, RESOURCES_BACKGROUND].contains(&finalizer.as_str())
    };
    let wanted = match (how.cascade, how.policy) {
        (false, _) => None,
        (true, None) => match present.iter().find(|finalizer| cascades(finalizer)) {
            Some(_) => return None,
            None => Some(RESOURCES),
        },
        (true, Some(Policy::Foreground)) => Some(RESOURCES_FOREGROUND),
        (true, Some(Policy::Background)) => Some(RESOURCES_BACKGROUND),
    };
    let mut after: Vec<String> = present.iter().filter(|finalizer| !cascades(finalizer)).cloned().collect();
    after.extend(wanted.map(str::to_owned));
    (after != present).then_some(after)
}

/// Lays the maps of `patch` over those of `target`; `null` changes nothing.
fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (_, Value::Null) => {}
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(target.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizers_say_what_becomes_of_the_resources() {
        let with = |finalizers: &[&str], cascade: bool, policy: Option<Policy>| {
            super::finalizers(&json!({"metadata": {"finalizers": finalizers}}), Deletion { cascade, policy })
        };
        let all = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(with(&["mine"], true, None), all(&["mine", RESOURCES]));
        assert_eq!(with(&[RESOURCES_BACKGROUND], true, None), None);
        assert_eq!(with(&[RESOURCES, "mine"], false, None), all(&["mine"]));
        assert_eq!(with(&[RESOURCES], true, Some(Policy::Foreground)), all(&[RESOURCES_FOREGROUND]));
        assert_eq!(with(&[], false, None), None);
    }
}
