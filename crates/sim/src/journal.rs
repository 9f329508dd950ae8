//! Every write to every cluster with the moment it was made, read from the clusters' histories alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_apiserver::Cluster;
use baton_apiserver::store::{self, Event};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::checker::{Change, Entry};

/// The revision of a store nobody has written to.
const FIRST: u64 = 1;

/// What a judge may want to know of: the rest of a history is not kept.
const TOLD: [&str; 6] = [
    "applications.argoproj.io",
    "applicationsets.argoproj.io",
    "configmaps",
    "deployments.apps",
    "secrets",
    "appprojects.argoproj.io",
];

/// Where good states of Applications are kept.
const GOOD_STATES: &str = "controllerrevisions.apps";

/// Follows the histories of clusters.
pub(crate) struct Journal {
    noted: Arc<Mutex<Vec<Noted>>>,
    clusters: BTreeMap<Arc<str>, Cluster>,
    followers: Vec<JoinHandle<()>>,
}

struct Noted {
    at: Timestamp,
    cluster: Arc<str>,
    event: Arc<Event>,
}

impl Journal {
    /// From the first write on.
    pub(crate) fn of(clusters: BTreeMap<Arc<str>, Cluster>) -> Journal {
        let noted = Arc::default();
        let follow = |(name, cluster): (&Arc<str>, &Cluster)| {
            tokio::spawn(follow(name.clone(), cluster.clone(), Arc::clone(&noted)))
        };
        let followers = clusters.iter().map(follow).collect();
        Journal { noted, clusters, followers }
    }

    /// When anything but Events and Leases was last written anywhere, and what.
    pub(crate) fn last_write(&self) -> Option<(Timestamp, String)> {
        let noted = self.noted.lock();
        let told = noted.iter().rev().find(|noted| is_write(&noted.event.record.key.resource))?;
        let key = &told.event.record.key;
        Some((told.at, format!("{}: {} {}/{}", told.cluster, key.resource, key.namespace, key.name)))
    }

    /// Every write to the record of good states, in order.
    pub(crate) fn good_states(&self) -> Vec<Entry> {
        let noted = self.noted.lock();
        noted.iter().filter(|noted| &*noted.event.record.key.resource == GOOD_STATES).map(entry).collect()
    }

    /// Everything a judge may want to know of, in order.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        let written: usize = self.clusters.values().map(|cluster| cluster.store().history(FIRST).len()).sum();
        while self.noted.lock().len() < written && !self.followers.iter().any(JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
        let noted = self.noted.lock();
        noted.iter().filter(|noted| TOLD.contains(&&*noted.event.record.key.resource)).map(entry).collect()
    }
}

fn is_write(resource: &str) -> bool {
    !matches!(resource, "events" | "events.events.k8s.io" | "leases.coordination.k8s.io")
}

/// The clock stands still while anything can be done, so an event is seen at the moment it was made.
async fn follow(name: Arc<str>, cluster: Cluster, noted: Arc<Mutex<Vec<Noted>>>) {
    let Ok(mut watch) = cluster.store().watch("", None, FIRST) else { return };
    while let Ok(event) = watch.next().await {
        let at = cluster.now();
        noted.lock().push(Noted { at, cluster: name.clone(), event });
    }
}

fn entry(noted: &Noted) -> Entry {
    let key = &noted.event.record.key;
    Entry {
        at: noted.at,
        cluster: noted.cluster.clone(),
        resource: key.resource.clone(),
        name: key.name.clone(),
        change: match noted.event.change {
            store::Change::Added => Change::Added,
            store::Change::Modified => Change::Modified,
            store::Change::Deleted => Change::Deleted,
        },
        object: serde_json::from_slice(&noted.event.record.json()).unwrap_or(Value::Null),
    }
}
