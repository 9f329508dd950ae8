//! The objects of a kind, as a watch shows them: what lists and streams are served from.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::{broadcast, watch};

use crate::error::{Code, Error};

/// Changes a slow reader may be behind before it has to look at everything again.
const BEHIND: usize = 4096;

/// Namespace and name.
pub(crate) type Key = (String, String);

/// Something that happened to an object.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// It is there for the first time.
    Added(Arc<Value>),
    /// It is another.
    Modified(Arc<Value>),
    /// It is gone; this is how it was.
    Deleted(Arc<Value>),
}

/// The objects of a kind. Clones are the same.
#[derive(Clone)]
pub(crate) struct Mirror {
    resource: ApiResource,
    objects: Arc<RwLock<BTreeMap<Key, Arc<Value>>>>,
    changes: broadcast::Sender<Change>,
    synced: Arc<watch::Sender<bool>>,
}

// === impl Change ===

impl Change {
    pub(crate) fn object(&self) -> &Arc<Value> {
        match self {
            Change::Added(object) | Change::Modified(object) | Change::Deleted(object) => object,
        }
    }
}

// === impl Mirror ===

impl Mirror {
    pub(crate) fn new<K: Resource<DynamicType = ()>>() -> Mirror {
        Mirror {
            resource: ApiResource::erase::<K>(&()),
            objects: Arc::default(),
            changes: broadcast::Sender::new(BEHIND),
            synced: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Follows the objects of a namespace, or of all, until dropped.
    pub(crate) async fn run(&self, client: Client, namespace: Option<&str>) {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &self.resource),
            None => Api::all_with(client, &self.resource),
        };
        let mut events = watcher::watcher(api, watcher::Config::default()).default_backoff().boxed();
        let mut listing = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listing.clear(),
                Ok(Event::InitApply(object)) => {
                    let object = self.plain(object);
                    listing.insert(key(&object), Arc::new(object));
                }
                Ok(Event::InitDone) => {
                    self.replace(std::mem::take(&mut listing));
                    self.synced.send_replace(true);
                }
                Ok(Event::Apply(object)) => self.put(Arc::new(self.plain(object))),
                Ok(Event::Delete(object)) => self.remove(&key(&self.plain(object))),
                Err(error) => {
                    let kind = &self.resource.kind;
                    tracing::warn!(error = %error, kind, "a watch failed and is tried again");
                }
            }
        }
    }

    /// Waits until everything was seen once.
    ///
    /// # Errors
    /// The watch cannot begin.
    pub(crate) async fn synced(&self) -> Result<(), Error> {
        let mut synced = self.synced.subscribe();
        let wait = synced.wait_for(|synced| *synced);
        match tokio::time::timeout(std::time::Duration::from_secs(20), wait).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Error::new(Code::Unavailable, "the server has not read everything yet: try again")),
        }
    }

    /// Every object, by namespace and name.
    pub(crate) fn all(&self) -> Vec<Arc<Value>> {
        self.objects.read().values().cloned().collect()
    }

    /// One of them.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.objects.read().get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// What happens from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn replace(&self, listed: BTreeMap<Key, Arc<Value>>) {
        let gone: Vec<Key> =
            self.objects.read().keys().filter(|key| !listed.contains_key(*key)).cloned().collect();
        gone.iter().for_each(|key| self.remove(key));
        for (_, object) in listed {
            self.put(object);
        }
    }

    fn put(&self, object: Arc<Value>) {
        let mut objects = self.objects.write();
        let change = match objects.insert(key(&object), object.clone()) {
            Some(before) if version(&before) == version(&object) => return,
            Some(_) => Change::Modified(object),
            None => Change::Added(object),
        };
        // Sent under the lock, so that whoever listens sees the order in which it happened.
        let _ = self.changes.send(change);
    }

    fn remove(&self, key: &Key) {
        let mut objects = self.objects.write();
        if let Some(gone) = objects.remove(key) {
            let _ = self.changes.send(Change::Deleted(gone));
        }
    }

    /// As it is shown: with its kind, without the record of its writers.
    fn plain(&self, object: DynamicObject) -> Value {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        value["apiVersion"] = self.resource.api_version.as_str().into();
        value["kind"] = self.resource.kind.as_str().into();
        value
    }
}

/// Namespace and name of an object.
pub(crate) fn key(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// The version of an object.
pub(crate) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}
