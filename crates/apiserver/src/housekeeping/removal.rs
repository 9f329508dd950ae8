//! Finishing what is going away: a namespace once it is empty, a definition once its objects are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_store::{Change, Event, Key, Page};
use serde_json::{Value, json};

use crate::catalog::Resource;
use crate::cluster::{Core, DEFINITIONS};
use crate::definitions::CLEANUP;
use crate::delete::{DeleteOptions, Propagation};
use crate::housekeeping::report;
use crate::object;
use crate::write::{CLAIM_PROTECTION, Part, Proposal, VOLUME_PROTECTION, WriteOptions};

const MANAGER: &str = "namespace-controller";
const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";

/// Follows the history for ever.
pub(crate) async fn run(core: Arc<Core>) {
    loop {
        let revision = core.store.revision();
        let Ok(mut watch) = core.store.watch("", None, revision) else { continue };
        let mut remover =
            Remover { core: core.clone(), namespaces: BTreeSet::new(), definitions: BTreeSet::new() };
        for storage in ["namespaces", DEFINITIONS, CLAIMS, VOLUMES] {
            for record in core.everything(storage) {
                remover.consider(&record).await;
            }
        }
        while let Ok(event) = watch.next().await {
            remover.observe(&event).await;
        }
    }
}

struct Remover {
    core: Arc<Core>,
    /// Terminating and not yet empty.
    namespaces: BTreeSet<String>,
    /// Terminating definitions, which are also storage names, that still have objects.
    definitions: BTreeSet<String>,
}

impl Remover {
    async fn observe(&mut self, event: &Event) {
        let key = &event.record.key;
        if event.change != Change::Deleted {
            if matches!(&*key.resource, "namespaces" | DEFINITIONS | CLAIMS | VOLUMES) {
                self.consider(&event.record).await;
            } else if self.namespaces.contains(&*key.namespace) && event.change == Change::Added {
                // Let in by a request that looked just before the namespace began to go.
                self.empty_namespace(&key.namespace).await;
            }
            return;
        }
        match &*key.resource {
            "namespaces" => {
                self.namespaces.remove(&*key.name);
            }
            DEFINITIONS => {
                self.definitions.remove(&*key.name);
                self.core.refresh_definition(&key.name);
            }
            storage => {
                if storage == "pods" {
                    for claim in self.names(CLAIMS, Some(&key.namespace)) {
                        self.release_claim(&claim).await;
                    }
                }
                if self.definitions.contains(storage) && self.core.store.count(storage) == 0 {
                    self.finish_definition(storage).await;
                }
                if self.namespaces.contains(&*key.namespace) && self.is_empty(&key.namespace) {
                    self.finish_namespace(&key.namespace).await;
                }
            }
        }
    }

    async fn consider(&mut self, record: &baton_store::Record) {
        let found = object::read(record);
        if !object::is_terminating(&found) {
            return;
        }
        let name = record.key.name.to_string();
        if &*record.key.resource == CLAIMS {
            self.release_claim(&record.key).await;
        } else if &*record.key.resource == VOLUMES {
            if found["status"]["phase"] != "Bound" && object::has_finalizer(&found, VOLUME_PROTECTION) {
                self.core.drop_finalizer(&record.key, VOLUME_PROTECTION, MANAGER).await;
            }
        } else if &*record.key.resource == DEFINITIONS {
            if object::has_finalizer(&found, CLEANUP) && self.definitions.insert(name.clone()) {
                self.empty_definition(&name).await;
            }
        } else if self.namespaces.insert(name.clone()) {
            self.empty_namespace(&name).await;
        }
    }

    /// Namespaced resources, each storage once.
    fn namespaced(&self) -> Vec<Arc<Resource>> {
        let mut seen = BTreeSet::new();
        let catalog = self.core.catalog();
        let ours = |resource: &&Arc<Resource>| resource.namespaced && resource.verbs().contains(&"delete");
        catalog
            .resources()
            .iter()
            .filter(ours)
            .filter(|resource| seen.insert(resource.storage.clone()))
            .cloned()
            .collect()
    }

    fn names(&self, storage: &str, namespace: Option<&str>) -> Vec<Key> {
        self.core
            .store
            .list(storage, namespace, Page::default())
            .map(|listing| listing.records.iter().map(|record| record.key.clone()).collect())
            .unwrap_or_default()
    }

    fn is_empty(&self, namespace: &str) -> bool {
        self.namespaced().iter().all(|resource| self.names(&resource.storage, Some(namespace)).is_empty())
    }

    async fn empty_namespace(&mut self, namespace: &str) {
        for resource in self.namespaced() {
            for key in self.names(&resource.storage, Some(namespace)) {
                self.delete(&resource, &key).await;
            }
        }
        match self.remains(namespace) {
            remains if remains.is_empty() => self.finish_namespace(namespace).await,
            remains => self.tell(namespace, &remains).await,
        }
    }

    /// What is left in a namespace: each resource with its objects.
    fn remains(&self, namespace: &str) -> Vec<(String, Vec<Value>)> {
        let page = |storage: &str| self.core.store.list(storage, Some(namespace), Page::default());
        self.namespaced()
            .iter()
            .filter_map(|resource| {
                let records = page(&resource.storage).map(|listing| listing.records).unwrap_or_default();
                let objects: Vec<Value> = records.iter().map(|record| object::read(record)).collect();
                (!objects.is_empty()).then(|| (resource.storage.to_string(), objects))
            })
            .collect()
    }

    /// Says in the namespace's status what it waits for.
    async fn tell(&self, namespace: &str, remains: &[(String, Vec<Value>)]) {
        let Some(resource) = self.core.catalog().find("", "v1", "namespaces") else { return };
        let conditions = removal_conditions(remains, &self.core.clock.stamp());
        let options = WriteOptions::internal(MANAGER);
        let outcome = self
            .core
            .modify(&resource, "", namespace, Part::Status, &options, |current| {
                let mut next = current.clone();
                next["status"]["conditions"] = conditions.clone().into();
                Ok(Proposal::Object(next))
            })
            .await;
        report(outcome, MANAGER, &Key::new("namespaces", "", namespace));
    }

    async fn finish_namespace(&mut self, namespace: &str) {
        let Some(resource) = self.core.catalog().find("", "v1", "namespaces") else { return };
        let options = WriteOptions::internal(MANAGER);
        let outcome = self
            .core
            .modify(&resource, "", namespace, Part::Other("finalize"), &options, |current| {
                let mut next = current.clone();
                let kept: Vec<_> = current["spec"]["finalizers"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|finalizer| *finalizer != "kubernetes")
                    .cloned()
                    .collect();
                next["spec"] = if kept.is_empty() { json!({}) } else { json!({"finalizers": kept}) };
                Ok(Proposal::Object(next))
            })
            .await;
        report(outcome, MANAGER, &Key::new("namespaces", "", namespace));
    }

    async fn empty_definition(&mut self, name: &str) {
        if let Some(resource) = self.core.catalog().by_storage(name) {
            for key in self.names(name, None) {
                self.delete(&resource, &key).await;
            }
        }
        if self.core.store.count(name) == 0 {
            self.finish_definition(name).await;
        }
    }

    async fn finish_definition(&mut self, name: &str) {
        self.core.drop_finalizer(&Key::new(DEFINITIONS, "", name), CLEANUP, MANAGER).await;
    }

    /// Lets a terminating claim go once no Pod uses it.
    async fn release_claim(&self, key: &Key) {
        let Some(record) = self.core.store.get(key) else { return };
        let claim = object::read(&record);
        if !object::is_terminating(&claim) || !object::has_finalizer(&claim, CLAIM_PROTECTION) {
            return;
        }
        let uses = |pod: &Value| {
            let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
            let finished = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            !finished
                && volumes.clone().any(|volume| volume["persistentVolumeClaim"]["claimName"] == *key.name)
        };
        let pods = self.names("pods", Some(&key.namespace));
        if pods.iter().filter_map(|pod| self.core.store.get(pod)).any(|pod| uses(&object::read(&pod))) {
            return;
        }
        self.core.drop_finalizer(key, CLAIM_PROTECTION, MANAGER).await;
    }

    async fn delete(&self, resource: &Resource, key: &Key) {
        // In the background: what waits for its dependents would hold up the rest, and they go too.
        let options =
            DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
        let outcome = self.core.delete(resource, &key.namespace, &key.name, &options).await;
        report(outcome, MANAGER, key);
    }
}

/// The conditions of a namespace that is not empty yet.
fn removal_conditions(remains: &[(String, Vec<Value>)], now: &str) -> Vec<Value> {
    let content: Vec<String> = remains
        .iter()
        .map(|(storage, objects)| format!("{storage} has {} resource instances", objects.len()))
        .collect();
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for object in remains.iter().flat_map(|(_, objects)| objects) {
        for finalizer in object::finalizers(object) {
            *finalizers.entry(finalizer).or_default() += 1;
        }
    }
    let held: Vec<String> =
        finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
    let condition = |type_: &str, status: bool, reason: &str, message: String| {
        json!({
            "type": type_, "status": if status { "True" } else { "False" }, "reason": reason, "message": message,
            "lastTransitionTime": now,
        })
    };
    let content = format!("Some resources are remaining: {}", content.join(", "));
    let held_message = match held.is_empty() {
        true => "All content-preserving finalizers finished".to_owned(),
        false => format!("Some content in the namespace has finalizers remaining: {}", held.join(", ")),
    };
    let held_reason = if held.is_empty() { "ContentHasNoFinalizers" } else { "SomeFinalizersRemain" };
    vec![
        condition("NamespaceContentRemaining", true, "SomeResourcesRemain", content),
        condition("NamespaceFinalizersRemaining", !held.is_empty(), held_reason, held_message),
    ]
}
