//! Every write to every cluster with the moment it was made, read from the clusters' histories alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_apiserver::Cluster;
use baton_apiserver::store::{Change, Event};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::scene::{Scene, text};

/// The revision of a store nobody has written to.
const FIRST: u64 = 1;

/// Where an object lives: cluster, resource, namespace, name.
pub(super) type Spot = [String; 4];

/// One write.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    pub(super) spot: Spot,
    pub(super) change: Change,
    /// The object before; null where there was none.
    pub(super) before: Value,
    pub(super) after: Value,
}

/// Follows the histories of a scene's clusters.
pub(super) struct Journal {
    entries: Arc<Mutex<Vec<Entry>>>,
    clusters: BTreeMap<&'static str, Cluster>,
    followers: Vec<JoinHandle<()>>,
}

impl Journal {
    /// From the first write on.
    pub(super) fn of(scene: &Scene) -> Journal {
        let members = scene.members.iter().map(|(name, (cluster, _))| (*name, cluster.clone()));
        let clusters: BTreeMap<&'static str, Cluster> =
            members.chain([("control", scene.control.clone())]).collect();
        let entries = Arc::default();
        let follow = |(name, cluster): (&&'static str, &Cluster)| {
            tokio::spawn(follow(name, cluster.clone(), Arc::clone(&entries)))
        };
        let followers = clusters.iter().map(follow).collect();
        Journal { entries, clusters, followers }
    }

    /// Everything that was written until now, in order.
    pub(super) async fn entries(&self) -> Vec<Entry> {
        let written: usize = self.clusters.values().map(|cluster| cluster.store().history(FIRST).len()).sum();
        while self.entries.lock().len() < written {
            assert!(!self.followers.iter().any(JoinHandle::is_finished), "the journal has gaps");
            tokio::task::yield_now().await;
        }
        self.entries.lock().clone()
    }
}

/// The clock stands still while anything can be done, so an event is seen at the moment it was made.
async fn follow(name: &'static str, cluster: Cluster, entries: Arc<Mutex<Vec<Entry>>>) {
    let mut watch = cluster.store().watch("", None, FIRST).expect("nothing is forgotten yet");
    loop {
        let event = watch.next().await.expect("a test writes less than what is kept");
        let entry = entry(name, &cluster, &event);
        entries.lock().push(entry);
    }
}

fn entry(name: &str, cluster: &Cluster, event: &Event) -> Entry {
    let read = |record: &baton_apiserver::store::Record| -> Value {
        serde_json::from_slice(&record.json()).expect("JSON")
    };
    let key = &event.record.key;
    Entry {
        at: cluster.now(),
        spot: [name.into(), key.resource.to_string(), key.namespace.to_string(), key.name.to_string()],
        change: event.change,
        before: event.previous.as_deref().map_or(Value::Null, read),
        after: read(&event.record),
    }
}

impl Entry {
    /// Whether the object begins to go with this write.
    pub(super) fn begins_deletion(&self) -> bool {
        let going = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
        !self.before.is_null()
            && !going(&self.before)
            && (self.change == Change::Deleted || going(&self.after))
    }

    pub(super) fn resource(&self) -> &str {
        &self.spot[1]
    }

    pub(super) fn name(&self) -> &str {
        &self.spot[3]
    }
}

/// An annotation; empty where there is none.
pub(super) fn annotation(object: &Value, name: &str) -> String {
    text(object, &format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1")))
}
