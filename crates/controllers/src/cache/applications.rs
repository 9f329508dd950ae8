//! The Applications that belong to ApplicationSets: a small record of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use jiff::Timestamp;

use super::gone::Gone;
use super::{ObjectKey, Observed, version};
use crate::digest::{Digest, Hasher};

/// What is kept of an owned Application.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) uid: Box<str>,
    pub(crate) version: u64,
    /// Of spec, labels, annotations, finalizers and owner references; none when the last write may or may not have
    /// taken effect.
    pub(crate) digest: Option<Digest>,
    /// Of the same without the spec.
    pub(crate) outline: Digest,
    pub(crate) sync: SyncCode,
    pub(crate) health: HealthCode,
    pub(crate) phase: Option<OperationPhase>,
    /// Since when it is being deleted, if it is.
    pub(crate) deleting: Option<Timestamp>,
    /// Whether it carries the label by which its set, if it keeps an order, lists it.
    pub(crate) marked: bool,
    /// Whether the guard of its set is among its owners.
    pub(crate) guarded: bool,
    owner: Arc<str>,
    /// The list during or after which this controller wrote it last.
    written: u32,
}

/// What changed for the set that owns, or owned, an Application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApplicationChange {
    /// Not known before.
    Added {
        /// Its set.
        owner: ObjectKey,
    },
    /// What the set decides about changed.
    Content {
        /// Its set.
        owner: ObjectKey,
    },
    /// Only its verdicts changed.
    Status {
        /// Its set.
        owner: ObjectKey,
    },
    /// It is no longer there, or no longer the set's.
    Removed {
        /// Its former set.
        owner: ObjectKey,
    },
}

/// Every owned Application, by namespace and set.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    namespaces: BTreeMap<Arc<str>, Namespace>,
    gone: Gone,
    /// Number of the present list.
    list: u32,
    /// What the list under way has shown.
    seen: Option<BTreeSet<ObjectKey>>,
    /// How often an Application has come to a set.
    joins: u64,
}

#[derive(Debug, Default)]
struct Namespace {
    records: BTreeMap<Arc<str>, Arc<Record>>,
    owned: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// When an Application last came to each set, by [`Applications::joins`].
    joined: BTreeMap<Arc<str>, u64>,
}

// === impl Applications ===

impl Applications {
    /// The Applications of a set by name.
    pub(crate) fn owned_by(&self, set: &ObjectKey) -> BTreeMap<Arc<str>, Arc<Record>> {
        let Some(namespace) = self.namespaces.get(&set.namespace) else { return BTreeMap::new() };
        let names = namespace.owned.get(&set.name).into_iter().flatten();
        names.filter_map(|name| Some((name.clone(), namespace.records.get(name)?.clone()))).collect()
    }

    /// One Application of a set.
    pub(crate) fn one_of(&self, set: &ObjectKey, name: &str) -> Option<Arc<Record>> {
        let record = self.namespaces.get(&set.namespace)?.records.get(name)?;
        (record.owner == set.name).then(|| record.clone())
    }

    /// Changes whenever an Application comes to a set.
    pub(crate) fn joined(&self, set: &ObjectKey) -> u64 {
        let namespace = self.namespaces.get(&set.namespace);
        namespace.and_then(|namespace| namespace.joined.get(&set.name)).copied().unwrap_or_default()
    }

    /// Adds to `hasher` what tells one state of a set's Applications from another.
    pub(crate) fn describe(&self, set: &ObjectKey, hasher: &mut Hasher) {
        let Some(namespace) = self.namespaces.get(&set.namespace) else { return };
        let names = namespace.owned.get(&set.name).into_iter().flatten();
        for record in names.filter_map(|name| namespace.records.get(name)) {
            // The version is that of one object's one state; what is unsure of it is another.
            hasher.number(record.version);
            hasher.number(u64::from(record.digest.is_some()));
        }
    }

    /// Name of the set that an Application belongs to, as far as is known.
    pub(crate) fn owner_of(&self, key: &ObjectKey) -> Option<Arc<str>> {
        self.record(key).map(|record| record.owner.clone())
    }

    /// How many owned Applications there are in a namespace, whoever owns them.
    pub(crate) fn count_in(&self, namespace: &str) -> usize {
        self.namespaces.get(namespace).map_or(0, |namespace| namespace.records.len())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.namespaces.values().map(|namespace| namespace.records.len()).sum()
    }

    /// A list begins.
    pub(crate) fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
        self.seen = Some(BTreeSet::new());
    }

    /// The list under way holds this.
    pub(crate) fn listed(&mut self, observed: Observed) -> Vec<ApplicationChange> {
        let key = ObjectKey::of(&observed.metadata);
        if let Some(seen) = &mut self.seen {
            seen.insert(key.clone());
        }
        // A list is the truth even when versions went backwards, as they do when a backup is restored; only what was
        // written since it began may be newer.
        let newer = self.record(&key).is_some_and(|known| {
            known.written == self.list
                && *known.uid == *uid(&observed)
                && known.version > version(&observed.metadata)
        });
        if newer { Vec::new() } else { self.put(key, observed, false) }
    }

    /// The list is complete: what it did not show is gone, unless it was written meanwhile; then it is unsure.
    pub(crate) fn complete(&mut self) -> Vec<ApplicationChange> {
        let Some(seen) = self.seen.take() else { return Vec::new() };
        let mut changes = Vec::new();
        let known: Vec<ObjectKey> = self.keys().filter(|key| !seen.contains(key)).collect();
        for key in known {
            let list = self.list;
            match self.record_mut(&key) {
                Some(record) if record.written == list => {
                    record.digest = None;
                    let owner = ObjectKey { namespace: key.namespace.clone(), name: record.owner.clone() };
                    changes.push(ApplicationChange::Content { owner });
                }
                _ => changes.extend(self.remove(&key)),
            }
        }
        changes
    }

    /// The watch saw this state of an Application.
    pub(crate) fn applied(&mut self, observed: Observed) -> Vec<ApplicationChange> {
        let key = ObjectKey::of(&observed.metadata);
        let older = self.record(&key).is_some_and(|known| known.version > version(&observed.metadata));
        if older || self.gone.contains(uid(&observed)) { Vec::new() } else { self.put(key, observed, false) }
    }

    /// The watch saw it go.
    pub(crate) fn deleted(&mut self, observed: &Observed) -> Vec<ApplicationChange> {
        self.evict(&ObjectKey::of(&observed.metadata), uid(observed))
    }

    /// A write of this controller, or a read it made, answered with this state.
    pub(crate) fn fold(&mut self, observed: Observed) {
        let key = ObjectKey::of(&observed.metadata);
        let older = self.record(&key).is_some_and(|known| known.version > version(&observed.metadata));
        if !older && !self.gone.contains(uid(&observed)) {
            self.put(key, observed, true);
        }
    }

    /// It is known to be gone.
    pub(crate) fn evict(&mut self, key: &ObjectKey, uid: &str) -> Vec<ApplicationChange> {
        self.gone.insert(uid);
        let same = self.record(key).is_some_and(|known| *known.uid == *uid);
        if same { self.remove(key).into_iter().collect() } else { Vec::new() }
    }

    /// A write of it may or may not have taken effect.
    pub(crate) fn doubt(&mut self, key: &ObjectKey) {
        if let Some(record) = self.record_mut(key) {
            record.digest = None;
        }
    }

    fn put(&mut self, key: ObjectKey, observed: Observed, written: bool) -> Vec<ApplicationChange> {
        let Some(owner) = observed.owner.clone() else { return self.remove(&key).into_iter().collect() };
        let written_in = match self.record(&key) {
            _ if written => self.list,
            Some(known) if *known.uid == *uid(&observed) => known.written,
            _ => self.list.wrapping_sub(1),
        };
        let owner_key = ObjectKey { namespace: key.namespace.clone(), name: owner.clone() };
        let record = Record {
            uid: uid(&observed).into(),
            version: version(&observed.metadata),
            digest: Some(observed.digest),
            outline: observed.outline,
            sync: observed.sync,
            health: observed.health,
            phase: observed.phase,
            deleting: observed.metadata.deletion_timestamp.as_ref().map(|time| time.0),
            marked: observed.marked,
            guarded: observed.guarded,
            owner,
            written: written_in,
        };
        let mut changes = Vec::new();
        match self.record(&key) {
            Some(known) if known.owner == record.owner && known.uid == record.uid => {
                if known.digest != record.digest {
                    changes.push(ApplicationChange::Content { owner: owner_key.clone() });
                } else if (&known.sync, &known.health, &known.phase)
                    != (&record.sync, &record.health, &record.phase)
                {
                    changes.push(ApplicationChange::Status { owner: owner_key.clone() });
                }
            }
            Some(_) => {
                changes.extend(self.remove(&key));
                changes.push(ApplicationChange::Added { owner: owner_key.clone() });
            }
            None => changes.push(ApplicationChange::Added { owner: owner_key.clone() }),
        }
        let joins = changes.iter().any(|change| matches!(change, ApplicationChange::Added { .. }));
        self.joins += u64::from(joins);
        let namespace = self.namespaces.entry(key.namespace).or_default();
        // The set's name is held once for all its Applications.
        let shared_owner = namespace.owned.get_key_value(&owner_key.name).map(|(name, _)| name.clone());
        let record = Record { owner: shared_owner.unwrap_or(record.owner), ..record };
        let name = namespace.records.get_key_value(&key.name).map_or(key.name, |(name, _)| name.clone());
        namespace.owned.entry(record.owner.clone()).or_default().insert(name.clone());
        if joins {
            namespace.joined.insert(record.owner.clone(), self.joins);
        }
        namespace.records.insert(name, Arc::new(record));
        changes
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<ApplicationChange> {
        let namespace = self.namespaces.get_mut(&key.namespace)?;
        let record = namespace.records.remove(&key.name)?;
        if let Some(names) = namespace.owned.get_mut(&record.owner) {
            names.remove(&key.name);
            if names.is_empty() {
                namespace.owned.remove(&record.owner);
                namespace.joined.remove(&record.owner);
            }
        }
        if namespace.records.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
        let owner = ObjectKey { namespace: key.namespace.clone(), name: record.owner.clone() };
        Some(ApplicationChange::Removed { owner })
    }

    fn record(&self, key: &ObjectKey) -> Option<&Record> {
        self.namespaces.get(&key.namespace)?.records.get(&key.name).map(|record| &**record)
    }

    fn record_mut(&mut self, key: &ObjectKey) -> Option<&mut Record> {
        self.namespaces.get_mut(&key.namespace)?.records.get_mut(&key.name).map(Arc::make_mut)
    }

    fn keys(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        self.namespaces.iter().flat_map(|(namespace, held)| {
            held.records.keys().map(|name| ObjectKey { namespace: namespace.clone(), name: name.clone() })
        })
    }
}

fn uid(observed: &Observed) -> &str {
    observed.metadata.uid.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    fn seen(name: &str, uid: &str, version: u64, path: &str) -> Observed {
        observed(json!({
            "metadata": {
                "name": name, "namespace": "ns", "uid": uid, "resourceVersion": version.to_string(),
                "ownerReferences": [{
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set", "uid": "s",
                    "controller": true,
                }],
            },
            "spec": {"source": {"path": path}},
        }))
    }

    fn observed(value: Value) -> Observed {
        Observed::deserialize(value).expect("an Application")
    }

    fn set() -> ObjectKey {
        ObjectKey::new("ns", "set")
    }

    fn versions(applications: &Applications) -> Vec<(String, u64)> {
        let owned = applications.owned_by(&set());
        owned.iter().map(|(name, record)| (name.to_string(), record.version)).collect()
    }

    #[test]
    fn news_older_than_our_own_write_is_dropped() {
        let mut applications = Applications::default();
        applications.applied(seen("a", "1", 5, "old"));
        applications.fold(seen("a", "1", 9, "new"));
        assert_eq!(applications.applied(seen("a", "1", 7, "between")), []);
        assert_eq!(applications.applied(seen("a", "1", 9, "new")), [], "our own write comes back");
        assert_eq!(versions(&applications), [("a".to_owned(), 9)]);
        assert_eq!(
            applications.applied(seen("a", "1", 12, "theirs")),
            [ApplicationChange::Content { owner: set() }]
        );
    }

    #[test]
    fn what_is_gone_does_not_come_back() {
        let mut applications = Applications::default();
        applications.fold(seen("a", "1", 5, "x"));
        applications.evict(&ObjectKey::new("ns", "a"), "1");
        assert_eq!(applications.applied(seen("a", "1", 4, "x")), [], "late news of before");
        applications.fold(seen("a", "1", 6, "x"));
        assert_eq!(versions(&applications), []);
        applications.applied(seen("a", "2", 8, "x"));
        assert_eq!(applications.deleted(&seen("a", "1", 7, "x")), [], "the one before, told late");
        assert_eq!(versions(&applications), [("a".to_owned(), 8)]);
    }

    #[test]
    fn a_list_replaces_what_is_known_except_what_was_written_meanwhile() {
        let mut applications = Applications::default();
        for (name, version) in [("gone", 1), ("older", 20), ("written", 3)] {
            applications.applied(seen(name, name, version, "x"));
        }
        applications.begin();
        applications.fold(seen("written", "written", 30, "y"));
        applications.fold(seen("created", "created", 31, "y"));
        applications.listed(seen("older", "older", 10, "x"));
        applications.listed(seen("written", "written", 3, "x"));
        let changes = applications.complete();
        let removed = ApplicationChange::Removed { owner: set() };
        assert!(changes.contains(&removed) && changes.contains(&ApplicationChange::Content { owner: set() }));
        let expected = [("created", 31), ("older", 10), ("written", 30)];
        assert_eq!(versions(&applications), expected.map(|(name, version)| (name.to_owned(), version)));
        let owned = applications.owned_by(&set());
        assert_eq!(owned["created"].digest, None, "whether it is still there, a look will tell");
        assert!(owned["written"].digest.is_some());
    }

    #[test]
    fn an_application_belongs_to_the_set_that_controls_it() {
        let mut applications = Applications::default();
        applications.applied(seen("a", "1", 1, "x"));
        let mut other = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "2"}, "spec": {}});
        assert_eq!(
            applications.applied(observed(other.clone())),
            [ApplicationChange::Removed { owner: set() }]
        );
        assert_eq!(applications.len(), 0, "nobody's Applications are not kept");
        other["metadata"]["resourceVersion"] = "3".into();
        other["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "other", "uid": "o", "controller": true,
        }]);
        applications.applied(observed(other));
        assert_eq!(applications.owned_by(&ObjectKey::new("ns", "other")).len(), 1);
    }
}
