//! Garbage collection by owner references: dependents go after their owner (background), before it (foreground), or are
//! let go (orphan).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use baton_store::{Change, Event, Key, Record};
use memchr::memmem;
use serde_json::Value;

use crate::catalog::Resource;
use crate::cluster::Core;
use crate::delete::{DeleteOptions, Propagation};
use crate::housekeeping::report;
use crate::object::{self, FOREGROUND, ORPHAN};
use crate::write::{Part, Proposal, WriteOptions};

const MANAGER: &str = "garbage-collector";

/// Follows the history for ever.
pub(crate) async fn run(core: Arc<Core>) {
    loop {
        let mut collector = Collector {
            core: core.clone(),
            dependents: HashMap::new(),
            owners: HashMap::new(),
            standings: HashMap::new(),
        };
        let revision = core.store.revision();
        let Ok(mut watch) = core.store.watch("", None, revision) else { continue };
        for storage in core.store.resources() {
            for record in core.everything(&storage) {
                if mentions(&record.json()) {
                    collector.put(&record).await;
                }
            }
        }
        // A watch that fell behind starts over with what is there now.
        while let Ok(event) = watch.next().await {
            collector.observe(&event).await;
        }
    }
}

/// Whether an object can concern the collector at all; spares parsing the many that cannot.
fn mentions(json: &[u8]) -> bool {
    memmem::find(json, b"\"ownerReferences\"").is_some()
        || memmem::find(json, b"\"deletionTimestamp\"").is_some()
}

struct Collector {
    core: Arc<Core>,
    /// Owner uid to the objects that name it.
    dependents: HashMap<String, BTreeSet<Key>>,
    /// The reverse, so that a changed object can be taken out again.
    owners: HashMap<Key, Vec<String>>,
    /// What owners were when last looked at. A set owns thousands, and is too large to be read for each of them.
    standings: HashMap<Key, Standing>,
}

/// What an owner's own object says of its dependents' future.
#[derive(Debug, Clone)]
struct Standing {
    revision: u64,
    uid: String,
    /// It goes, and waits for its dependents to go first.
    waits: bool,
}

/// What has become of one of an object's owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// There, or of a kind nobody can look up.
    Solid,
    /// Gone for good.
    Absent,
    /// Waiting for its dependents to go first.
    Waiting,
}

impl Collector {
    async fn observe(&mut self, event: &Event) {
        match event.change {
            Change::Deleted => {
                if self.dependents.is_empty() && !self.owners.contains_key(&event.record.key) {
                    return;
                }
                self.gone(&object::view(&event.record), &event.record.key).await;
            }
            _ => {
                let known = self.owners.contains_key(&event.record.key);
                if known || mentions(&event.record.json()) {
                    self.put(&event.record).await;
                }
            }
        }
    }

    async fn put(&mut self, record: &Record) {
        let object = object::view(record);
        let uids: Vec<String> = references(&object).map(|owner| text(owner, "uid").to_owned()).collect();
        let before = self.index(&record.key, uids.clone());
        if !uids.is_empty() && before != uids {
            self.check(&record.key).await;
        }
        if object::is_terminating(&object) {
            if object::has_finalizer(&object, ORPHAN) {
                self.orphan(&record.key, &object).await;
            } else if object::has_finalizer(&object, FOREGROUND) {
                self.foreground(&record.key, object::uid(&object)).await;
            }
        }
    }

    async fn gone(&mut self, object: &Value, key: &Key) {
        self.index(key, Vec::new());
        self.standings.remove(key);
        for dependent in self.dependents.remove(object::uid(object)).unwrap_or_default() {
            self.check(&dependent).await;
        }
        // An owner may have waited for this one.
        for owner in references(object) {
            if let Some((_, key)) = self.locate(owner, object::namespace(object))
                && let Some(standing) = self.standing(&key)
                && standing.waits
            {
                self.finish_foreground(&key, &standing.uid).await;
            }
        }
    }

    /// Records an object's owners and returns those it had before.
    fn index(&mut self, key: &Key, uids: Vec<String>) -> Vec<String> {
        let before = self.owners.remove(key).unwrap_or_default();
        for uid in &before {
            if let Some(dependents) = self.dependents.get_mut(uid) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        for uid in &uids {
            self.dependents.entry(uid.clone()).or_default().insert(key.clone());
        }
        if !uids.is_empty() {
            self.owners.insert(key.clone(), uids);
        }
        before
    }

    /// Deletes an object none of whose owners is left, or drops the references to those that are gone.
    async fn check(&mut self, key: &Key) {
        let Some(record) = self.core.store.get(key) else { return };
        let Some(resource) = self.core.catalog().by_storage(&key.resource) else { return };
        let item = object::view(&record);
        if object::is_terminating(&item) && !object::has_finalizer(&item, FOREGROUND) {
            return;
        }
        let mut states: Vec<(String, Owner)> = Vec::new();
        for owner in references(&item) {
            states.push((text(owner, "uid").to_owned(), self.state(owner, object::namespace(&item))));
        }
        if states.is_empty() || states.iter().all(|(_, state)| *state == Owner::Solid) {
            return;
        }
        if states.iter().any(|(_, state)| *state == Owner::Solid) {
            let lost: Vec<&str> = states
                .iter()
                .filter(|(_, state)| *state != Owner::Solid)
                .map(|(uid, _)| uid.as_str())
                .collect();
            self.release(&resource, key, &lost).await;
            return;
        }
        let waited_for = states.iter().any(|(_, state)| *state == Owner::Waiting);
        let has_dependents = self.dependents.contains_key(object::uid(&item));
        let propagation = if waited_for && has_dependents {
            Propagation::Foreground
        } else if object::has_finalizer(&item, ORPHAN) {
            Propagation::Orphan
        } else if object::has_finalizer(&item, FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        if propagation == Propagation::Foreground && self.is_in_a_cycle(&item) {
            self.unblock(&resource, key).await;
        }
        let options = DeleteOptions {
            uid: Some(object::uid(&item).to_owned()),
            // An owner that was added meanwhile keeps it.
            revision: Some(object::meta_text(&item, "resourceVersion").to_owned()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        match self.core.delete(&resource, &key.namespace, &key.name, &options).await {
            Err(failure) if failure.reason == "Conflict" => Box::pin(self.check(key)).await,
            outcome => report(outcome, MANAGER, key),
        }
    }

    fn state(&mut self, owner: &Value, namespace: &str) -> Owner {
        let Some((resource, key)) = self.locate(owner, namespace) else { return Owner::Solid };
        // A namespaced owner of a cluster-scoped object cannot exist.
        if resource.namespaced && namespace.is_empty() {
            return Owner::Absent;
        }
        match self.standing(&key) {
            Some(standing) if standing.uid != text(owner, "uid") => Owner::Absent,
            Some(standing) if standing.waits => Owner::Waiting,
            Some(_) => Owner::Solid,
            None => Owner::Absent,
        }
    }

    /// What an owner is now, if it is there.
    fn standing(&mut self, key: &Key) -> Option<Standing> {
        let Some(record) = self.core.store.get(key) else {
            self.standings.remove(key);
            return None;
        };
        if let Some(known) = self.standings.get(key).filter(|known| known.revision == record.revision) {
            return Some(known.clone());
        }
        let object = object::view(&record);
        let standing = Standing {
            revision: record.revision,
            uid: object::uid(&object).to_owned(),
            waits: object::is_terminating(&object) && object::has_finalizer(&object, FOREGROUND),
        };
        self.standings.insert(key.clone(), standing.clone());
        Some(standing)
    }

    fn locate(&self, owner: &Value, namespace: &str) -> Option<(Arc<Resource>, Key)> {
        let resource = self.core.catalog().find_kind(text(owner, "apiVersion"), text(owner, "kind"))?;
        let key = crate::write::key(&resource, namespace, text(owner, "name"));
        Some((resource, key))
    }

    /// Takes references to these owners out of an object.
    async fn release(&self, resource: &Resource, key: &Key, uids: &[&str]) {
        let options = WriteOptions::internal(MANAGER);
        let outcome = self
            .core
            .modify(resource, &key.namespace, &key.name, Part::Other(""), &options, |current| {
                let kept: Vec<Value> = references(current)
                    .filter(|owner| !uids.contains(&text(owner, "uid")))
                    .cloned()
                    .collect();
                let mut next = current.clone();
                let value = if kept.is_empty() { Value::Null } else { kept.into() };
                object::set_meta(&mut next, "ownerReferences", value);
                Ok(Proposal::Object(next))
            })
            .await;
        report(outcome, MANAGER, key);
    }

    async fn orphan(&mut self, key: &Key, owner: &Value) {
        let uid = object::uid(owner).to_owned();
        for dependent in self.dependents.get(&uid).cloned().unwrap_or_default() {
            if let Some(resource) = self.core.catalog().by_storage(&dependent.resource) {
                self.release(&resource, &dependent, &[&uid]).await;
            }
        }
        self.core.drop_finalizer(key, ORPHAN, MANAGER).await;
    }

    async fn foreground(&mut self, key: &Key, uid: &str) {
        let dependents = self.dependents.get(uid).cloned().unwrap_or_default();
        for dependent in &dependents {
            Box::pin(self.check(dependent)).await;
        }
        self.finish_foreground(key, uid).await;
    }

    /// Lets an owner go that none of its dependents holds back any more.
    async fn finish_foreground(&self, key: &Key, uid: &str) {
        let blocks = |dependent: &Key| {
            let item = self.core.store.get(dependent).map(|record| object::view(&record)).unwrap_or_default();
            references(&item).any(|owner| text(owner, "uid") == uid && owner["blockOwnerDeletion"] == true)
        };
        if !self.dependents.get(uid).into_iter().flatten().any(blocks) {
            self.core.drop_finalizer(key, FOREGROUND, MANAGER).await;
        }
    }

    /// Whether something that waits for this object's owner is itself waited for by it.
    fn is_in_a_cycle(&self, item: &Value) -> bool {
        let dependents = self.dependents.get(object::uid(item)).into_iter().flatten();
        dependents.filter_map(|dependent| self.core.store.get(dependent)).any(|record| {
            let dependent = object::view(&record);
            object::is_terminating(&dependent) && object::has_finalizer(&dependent, FOREGROUND)
        })
    }

    /// Lets the owners of an object go before it: of a cycle, one must.
    async fn unblock(&self, resource: &Resource, key: &Key) {
        let options = WriteOptions::internal(MANAGER);
        let outcome = self
            .core
            .modify(resource, &key.namespace, &key.name, Part::Other(""), &options, |current| {
                let mut next = current.clone();
                let owners = next["metadata"]["ownerReferences"].as_array_mut();
                for owner in owners.into_iter().flatten() {
                    owner["blockOwnerDeletion"] = false.into();
                }
                Ok(Proposal::Object(next))
            })
            .await;
        report(outcome, MANAGER, key);
    }
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object::meta(object, "ownerReferences").as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
