//! ApplicationSets, whole, and those that cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::application_status::{HealthCode, HealthStatus, ResourceStatus, SyncCode};
use baton_api::names::{GROUP, VERSION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DeserializeGuard, Resource};

use super::{ObjectKey, version};
use crate::digest::{Digest, Hasher};

/// An ApplicationSet as far as it could be read.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// As a whole.
    Whole(Whole),
    /// Not at all: it harms nobody but itself.
    Unreadable {
        /// Why.
        error: Arc<str>,
        /// Its metadata.
        metadata: Arc<ObjectMeta>,
    },
}

/// An ApplicationSet. Of the Applications listed in its status only a digest is kept: they are most of a large set.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    pub(crate) set: Arc<ApplicationSet>,
    pub(crate) listed: Listed,
}

/// The Applications that a set's status lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) count: usize,
    digest: Digest,
}

/// What changed about a set.
#[derive(Debug)]
pub(crate) struct SetChange {
    pub(crate) key: ObjectKey,
    pub(crate) before: Option<Held>,
    pub(crate) after: Option<Held>,
}

/// Every ApplicationSet.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    held: BTreeMap<ObjectKey, Entry>,
    /// Number of the present list.
    list: u32,
    /// What the list under way has shown.
    seen: Option<BTreeSet<ObjectKey>>,
}

#[derive(Debug)]
struct Entry {
    held: Held,
    /// A write of it may or may not have taken effect.
    doubtful: bool,
    /// The list during or after which this controller wrote it last.
    written: u32,
}

// === impl Whole ===

impl Whole {
    pub(crate) fn new(mut set: ApplicationSet) -> Whole {
        set.meta_mut().managed_fields = None;
        let resources = std::mem::take(&mut set.status.resources);
        let listed = Listed::read(&resources, set.metadata.namespace.as_deref().unwrap_or_default());
        Whole { set: Arc::new(set), listed }
    }
}

impl Deref for Whole {
    type Target = ApplicationSet;

    fn deref(&self) -> &ApplicationSet {
        &self.set
    }
}

// === impl Listed ===

impl Listed {
    /// Of names, sync verdicts and health verdicts, for entries that are otherwise as this controller writes them.
    pub(crate) fn of<'a>(entries: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> Listed {
        let mut hasher = Hasher::new();
        let mut count = 0;
        for (name, sync, health) in entries {
            [name, sync, health].into_iter().for_each(|text| hasher.str(text));
            count += 1;
        }
        Listed { count, digest: hasher.finish() }
    }

    fn read(resources: &[ResourceStatus], namespace: &str) -> Listed {
        let usual = resources.iter().all(|resource| {
            // A health that says nothing may be left out on its way through the API.
            let mut resource = resource.clone();
            let health = resource.health.get_or_insert_default().status.clone();
            resource == written(&resource.name, namespace, resource.status.clone(), health)
        });
        let entries = resources.iter().map(|resource| {
            let health = resource.health.as_ref().map_or("", |health| health.status.as_str());
            (resource.name.as_str(), resource.status.as_str(), health)
        });
        let listed = Listed::of(entries);
        // An entry that somebody else wrote is like none of ours, so the list is written anew.
        if usual { listed } else { Listed { digest: Digest::of(&"unusual".into()), ..listed } }
    }
}

/// An Application in the status of its set.
pub(crate) fn written(name: &str, namespace: &str, sync: SyncCode, health: HealthCode) -> ResourceStatus {
    ResourceStatus {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        kind: "Application".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        status: sync,
        health: Some(HealthStatus { status: health, ..HealthStatus::default() }),
        ..ResourceStatus::default()
    }
}

// === impl Held ===

impl Held {
    pub(crate) fn metadata(&self) -> &ObjectMeta {
        match self {
            Held::Whole(set) => &set.metadata,
            Held::Unreadable { metadata, .. } => metadata,
        }
    }

    fn new(object: DeserializeGuard<ApplicationSet>) -> Held {
        match object.0 {
            Ok(set) => Held::Whole(Whole::new(set)),
            Err(invalid) => {
                Held::Unreadable { error: invalid.error.into(), metadata: Arc::new(invalid.metadata) }
            }
        }
    }
}

// === impl Sets ===

impl Sets {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Held> {
        self.held.get(key).map(|entry| entry.held.clone())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&ObjectKey, &Held)> {
        self.held.iter().map(|(key, entry)| (key, &entry.held))
    }

    /// Those that could be read.
    pub(crate) fn whole(&self) -> impl Iterator<Item = Arc<ApplicationSet>> {
        self.held.values().filter_map(|entry| match &entry.held {
            Held::Whole(whole) => Some(whole.set.clone()),
            Held::Unreadable { .. } => None,
        })
    }

    /// Whether a read of the API must come before what is held is trusted.
    pub(crate) fn is_doubtful(&self, key: &ObjectKey) -> bool {
        self.held.get(key).is_some_and(|entry| entry.doubtful)
    }

    /// A write of it may or may not have taken effect.
    pub(crate) fn doubt(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.held.get_mut(key) {
            entry.doubtful = true;
        }
    }

    pub(crate) fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
        self.seen = Some(BTreeSet::new());
    }

    pub(crate) fn listed(&mut self, object: DeserializeGuard<ApplicationSet>) -> Option<SetChange> {
        let key = ObjectKey::of(object.meta());
        // A list is the truth even when versions went backwards, as they do when a backup is restored; only what was
        // written since it began may be newer.
        let newer = self.held.get(&key).is_some_and(|entry| {
            entry.written == self.list && is_newer(entry.held.metadata(), object.meta())
        });
        if let Some(seen) = &mut self.seen {
            seen.insert(key.clone());
        }
        if newer { None } else { Some(self.put(key, object)) }
    }

    pub(crate) fn complete(&mut self) -> Vec<SetChange> {
        let Some(seen) = self.seen.take() else { return Vec::new() };
        let lost: Vec<ObjectKey> = self.held.keys().filter(|key| !seen.contains(key)).cloned().collect();
        lost.into_iter().filter_map(|key| self.remove(key)).collect()
    }

    pub(crate) fn applied(&mut self, object: DeserializeGuard<ApplicationSet>) -> Option<SetChange> {
        let key = ObjectKey::of(object.meta());
        let newer = self.held.get(&key).is_some_and(|entry| is_newer(entry.held.metadata(), object.meta()));
        if newer { None } else { Some(self.put(key, object)) }
    }

    pub(crate) fn deleted(&mut self, metadata: &ObjectMeta) -> Option<SetChange> {
        self.remove(ObjectKey::of(metadata))
    }

    /// A write or a read of this controller answered with this state. A set that the watch saw go stays gone.
    pub(crate) fn fold(&mut self, set: ApplicationSet) {
        let key = ObjectKey::of(&set.metadata);
        let Some(entry) = self.held.get_mut(&key) else { return };
        let known = entry.held.metadata();
        if known.uid == set.metadata.uid && !is_newer(known, &set.metadata) {
            let held = Held::new(DeserializeGuard(Ok(set)));
            *entry = Entry { held, doubtful: false, written: self.list };
        }
    }

    fn put(&mut self, key: ObjectKey, object: DeserializeGuard<ApplicationSet>) -> SetChange {
        let before = self.held.get(&key);
        let same = before.filter(|entry| entry.held.metadata().uid == object.meta().uid);
        let doubtful = same
            .is_some_and(|entry| entry.doubtful && version(entry.held.metadata()) == version(object.meta()));
        let written = same.map_or(self.list.wrapping_sub(1), |entry| entry.written);
        let held = Held::new(object);
        let before = self.held.insert(key.clone(), Entry { held: held.clone(), doubtful, written });
        SetChange { key, before: before.map(|entry| entry.held), after: Some(held) }
    }

    fn remove(&mut self, key: ObjectKey) -> Option<SetChange> {
        let entry = self.held.remove(&key)?;
        Some(SetChange { key, before: Some(entry.held), after: None })
    }
}

fn is_newer(known: &ObjectMeta, seen: &ObjectMeta) -> bool {
    known.uid == seen.uid && version(known) > version(seen)
}
