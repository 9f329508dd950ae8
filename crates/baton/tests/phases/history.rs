//! Every write of sets and Applications, as the API's history tells them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::process::eventually;

/// A version of an object. What is gone has none.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) object: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Set,
    Application,
}

/// By resourceVersion: one API counts all its writes together, so this is their order.
pub(crate) type History = BTreeMap<u64, Version>;

/// Records from now on, until dropped.
pub(crate) struct Recorder {
    history: Arc<Mutex<History>>,
    apis: Vec<Api<DynamicObject>>,
    _watching: JoinSet<()>,
}

impl Recorder {
    pub(crate) async fn start(client: &Client) -> Recorder {
        let history: Arc<Mutex<History>> = Arc::default();
        let (mut watching, mut apis) = (JoinSet::new(), Vec::new());
        for (kind, name) in [(Kind::Set, "ApplicationSet"), (Kind::Application, "Application")] {
            let api = api(client, name);
            let from = api.list(&ListParams::default()).await.expect("a list").metadata.resource_version;
            watching.spawn(record(api.clone(), from.expect("a list has a version"), kind, history.clone()));
            apis.push(api);
        }
        Recorder { history, apis, _watching: watching }
    }

    /// All that was written up to now.
    pub(crate) async fn up_to_now(&self) -> History {
        let mut newest = BTreeMap::new();
        for (kind, api) in self.apis.iter().enumerate() {
            let list = api.list(&ListParams::default()).await.expect("a list");
            newest.insert(kind, list.items.iter().map(version).max().unwrap_or_default());
        }
        eventually("all of it is told", async || {
            let history = self.history.lock();
            newest.values().all(|version| *version == 0 || history.contains_key(version)).then_some(())
        })
        .await;
        self.history.lock().clone()
    }
}

pub(crate) fn api(client: &Client, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", kind));
    Api::namespaced_with(client.clone(), "argocd", &kind)
}

async fn record(api: Api<DynamicObject>, mut from: String, kind: Kind, history: Arc<Mutex<History>>) {
    loop {
        let mut events = api.watch(&WatchParams::default(), &from).await.expect("a watch").boxed();
        // A watch ends after some minutes; the next goes on where it ended.
        while let Some(event) = events.try_next().await.expect("an event") {
            let (mut object, is_there) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                WatchEvent::Deleted(object) => (object, false),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(error) => panic!("the history is not told to its end: {error:?}"),
            };
            from = object.resource_version().expect("a version");
            // Half of an object, and nothing that is asked for here.
            object.metadata.managed_fields = None;
            let content = is_there.then(|| serde_json::to_value(&object).expect("JSON"));
            let told = Version { kind, name: object.name_any(), object: content };
            history.lock().insert(version(&object), told);
        }
    }
}

fn version(object: &DynamicObject) -> u64 {
    object.resource_version().and_then(|text| text.parse().ok()).expect("the embedded API counts its writes")
}
