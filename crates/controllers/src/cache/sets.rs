//! ApplicationSets, whole, and those that cannot be read.

use std::ops::Deref;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::application_status::{HealthCode, HealthStatus, ResourceStatus, SyncCode};
use baton_api::names::{GROUP, VERSION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Resource;
use serde::Deserialize;
use serde_json::Value;

use super::ObjectKey;
use super::store::{Change, Kept, Store};
use crate::digest::{Digest, Hasher};
use crate::guarded::Guarded;

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

impl Kept for Held {
    type Object = Guarded<ApplicationSet>;

    fn metadata(&self) -> &ObjectMeta {
        match self {
            Held::Whole(set) => &set.metadata,
            Held::Unreadable { metadata, .. } => metadata,
        }
    }

    fn keep(object: Guarded<ApplicationSet>) -> Held {
        match object.0 {
            Ok(set) => Held::Whole(Whole::new(set)),
            Err(invalid) => {
                Held::Unreadable { error: invalid.error.into(), metadata: Arc::new(invalid.metadata) }
            }
        }
    }
}

// === impl Sets ===

/// Every ApplicationSet.
pub(crate) type Sets = Store<Held>;
/// What changed about a set.
pub(crate) type SetChange = Change<Held>;

impl Sets {
    /// [`Store::fold`] of what the API answered.
    pub(crate) fn fold_raw(&mut self, key: &ObjectKey, raw: &Value) {
        match ApplicationSet::deserialize(raw) {
            Ok(set) => self.fold(Guarded(Ok(set))),
            Err(_) => self.doubt(key),
        }
    }

    /// [`Store::learn`] of what the API answered.
    pub(crate) fn learn_raw(&mut self, key: &ObjectKey, raw: &Value) {
        match ApplicationSet::deserialize(raw) {
            Ok(set) => self.learn(Guarded(Ok(set))),
            Err(_) => self.doubt(key),
        }
    }

    /// Those that could be read.
    pub(crate) fn whole(&self) -> impl Iterator<Item = Arc<ApplicationSet>> {
        self.all().filter_map(|(_, held)| match held {
            Held::Whole(whole) => Some(whole.set.clone()),
            Held::Unreadable { .. } => None,
        })
    }
}
