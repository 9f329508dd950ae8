//! Finishing what is going away: a namespace once it is empty, a definition once its objects are gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_store::{Change, Event, Key, Page};
use serde_json::json;

use crate::catalog::Resource;
use crate::cluster::{Core, DEFINITIONS};
use crate::definitions::CLEANUP;
use crate::delete::DeleteOptions;
use crate::object;
use crate::write::{Part, Proposal, WriteOptions};

const MANAGER: &str = "namespace-controller";

/// Follows the history for ever.
pub(crate) async fn run(core: Arc<Core>) {
    loop {
        let revision = core.store.revision();
        let Ok(mut watch) = core.store.watch("", None, revision) else { continue };
        let mut remover =
            Remover { core: core.clone(), namespaces: BTreeSet::new(), definitions: BTreeSet::new() };
        for storage in ["namespaces", DEFINITIONS] {
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
            if matches!(&*key.resource, "namespaces" | DEFINITIONS) {
                self.consider(&event.record).await;
            } else if self.namespaces.contains(&*key.namespace) && event.change == Change::Added {
                // Let in by a request that looked just before the namespace began to go.
                self.empty_namespace(&key.namespace.to_string()).await;
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
                if self.definitions.contains(storage) && self.core.store.count(storage) == 0 {
                    self.finish_definition(&storage.to_owned()).await;
                }
                if self.namespaces.contains(&*key.namespace) && self.is_empty(&key.namespace) {
                    self.finish_namespace(&key.namespace.to_string()).await;
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
        if &*record.key.resource == DEFINITIONS {
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
        if self.is_empty(namespace) {
            self.finish_namespace(namespace).await;
        }
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
        if let Err(failure) = outcome
            && failure.reason != "NotFound"
        {
            tracing::warn!(namespace, "cannot finish the namespace: {}", failure.message);
        }
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
        let Some(resource) = self.core.catalog().by_storage(DEFINITIONS) else { return };
        let options = WriteOptions::internal(MANAGER);
        let outcome = self
            .core
            .modify(&resource, "", name, Part::Other(""), &options, |current| {
                let mut next = current.clone();
                object::set_finalizer(&mut next, CLEANUP, false);
                Ok(Proposal::Object(next))
            })
            .await;
        if let Err(failure) = outcome
            && failure.reason != "NotFound"
        {
            tracing::warn!(name, "cannot finish the definition: {}", failure.message);
        }
    }

    async fn delete(&self, resource: &Resource, key: &Key) {
        let outcome = self.core.delete(resource, &key.namespace, &key.name, &DeleteOptions::default()).await;
        if let Err(failure) = outcome
            && failure.reason != "NotFound"
        {
            tracing::warn!(resource = %key.resource, name = %key.name, "cannot delete: {}", failure.message);
        }
    }
}
