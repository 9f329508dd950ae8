//! Every write of the API, as its history tells them.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_sim::checker::{Change, Entry};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Name of the cluster Applications go to, as the judge tells it from the one that holds them.
pub(crate) const MEMBER: &str = "member";

const APPLICATIONS: &str = "applications.argoproj.io";

/// The kinds that are recorded: where the judge expects them, and how it calls them.
const KINDS: [(&str, &str, &str, &str, &str); 5] = [
    ("control", APPLICATIONS, "argoproj.io", "v1alpha1", "Application"),
    ("control", "applicationsets.argoproj.io", "argoproj.io", "v1alpha1", "ApplicationSet"),
    ("control", "configmaps", "", "v1", "ConfigMap"),
    (MEMBER, "configmaps", "", "v1", "ConfigMap"),
    (MEMBER, "deployments.apps", "apps", "v1", "Deployment"),
];

/// Where the set and its Applications are, and where what they make goes.
pub(crate) const CONTROL_NAMESPACE: &str = "argocd";
pub(crate) const MEMBER_NAMESPACE: &str = "work";

/// Records from now on, until dropped.
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    kinds: Vec<Api<DynamicObject>>,
    _watching: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    recorded: Mutex<Recorded>,
    more: Notify,
}

/// What is known so far.
#[derive(Default)]
pub(crate) struct Recorded {
    /// By version: one API counts all its writes together, so this is their order.
    entries: BTreeMap<u64, Entry>,
    /// The last version of each Application.
    applications: BTreeMap<Arc<str>, u64>,
}

impl Recorded {
    /// The Applications as they are now.
    pub(crate) fn applications(&self) -> impl Iterator<Item = &Value> {
        self.applications.values().filter_map(|version| self.entries.get(version)).map(|entry| &entry.object)
    }

    /// Whether none of them is left.
    pub(crate) fn are_gone(&self) -> bool {
        let last = self.applications.values().filter_map(|version| self.entries.get(version));
        last.clone().count() > 0 && last.into_iter().all(|entry| entry.change == Change::Deleted)
    }

    fn newest(&self) -> u64 {
        self.entries.last_key_value().map_or(0, |(version, _)| *version)
    }
}

impl Recorder {
    pub(crate) async fn start(client: &Client) -> Recorder {
        let shared = Arc::new(Shared::default());
        let mut watching = JoinSet::new();
        let mut kinds = Vec::new();
        for (cluster, resource, group, version, kind) in KINDS {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let namespace = if cluster == MEMBER { MEMBER_NAMESPACE } else { CONTROL_NAMESPACE };
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
            let from = api.list(&ListParams::default()).await.expect("a list").metadata.resource_version;
            let from = from.expect("a list has a version");
            watching.spawn(record(api.clone(), from, (cluster.into(), resource.into()), shared.clone()));
            kinds.push(api);
        }
        Recorder { shared, kinds, _watching: watching }
    }

    /// Looks at what is recorded whenever there is more, until there is an answer.
    pub(crate) async fn until<T>(&self, look: impl Fn(&Recorded) -> Option<T>) -> T {
        loop {
            let more = self.shared.more.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            if let Some(answer) = self.now(&look) {
                return answer;
            }
            more.await;
        }
    }

    /// Looks once.
    pub(crate) fn now<T>(&self, look: impl FnOnce(&Recorded) -> T) -> T {
        look(&self.shared.recorded.lock())
    }

    /// When something was last written.
    pub(crate) fn last(&self) -> Timestamp {
        self.now(|recorded| recorded.entries.values().next_back().map_or(Timestamp::MIN, |entry| entry.at))
    }

    /// The whole history up to now, in order.
    pub(crate) async fn end(self) -> Vec<Entry> {
        let mut newest = 0;
        for api in &self.kinds {
            let list = api.list(&ListParams::default()).await.expect("a list");
            newest = list.items.iter().map(version).chain([newest]).max().unwrap_or_default();
        }
        self.until(|recorded| (recorded.newest() >= newest).then_some(())).await;
        let mut entries: Vec<Entry> =
            std::mem::take(&mut self.shared.recorded.lock().entries).into_values().collect();
        // Each kind comes by a watch of its own, so that what was later may have come a moment earlier.
        let mut last = Timestamp::MIN;
        for entry in &mut entries {
            last = last.max(entry.at);
            entry.at = last;
        }
        entries
    }
}

async fn record(
    api: Api<DynamicObject>,
    mut from: String,
    (cluster, resource): (Arc<str>, Arc<str>),
    shared: Arc<Shared>,
) {
    loop {
        let mut events = api.watch(&WatchParams::default(), &from).await.expect("a watch").boxed();
        // A watch ends after some minutes; the next goes on where it ended.
        while let Some(event) = events.try_next().await.expect("an event") {
            let (change, mut object) = match event {
                WatchEvent::Added(object) => (Change::Added, object),
                WatchEvent::Modified(object) => (Change::Modified, object),
                WatchEvent::Deleted(object) => (Change::Deleted, object),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(error) => panic!("the history is not told to its end: {error:?}"),
            };
            from = object.resource_version().expect("a version");
            // Half of an object, and nothing the judge needs.
            object.metadata.managed_fields = None;
            let entry = Entry {
                at: Timestamp::now(),
                cluster: cluster.clone(),
                resource: resource.clone(),
                name: object.name_any().into(),
                change,
                object: serde_json::to_value(&object).expect("JSON"),
            };
            let mut recorded = shared.recorded.lock();
            if &*resource == APPLICATIONS {
                recorded.applications.insert(entry.name.clone(), version(&object));
            }
            recorded.entries.insert(version(&object), entry);
            drop(recorded);
            shared.more.notify_waiters();
        }
    }
}

fn version(object: &DynamicObject) -> u64 {
    object.resource_version().and_then(|text| text.parse().ok()).expect("the embedded API counts its writes")
}
