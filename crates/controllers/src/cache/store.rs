//! Objects of one kind, kept as long as they are there.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use super::{ObjectKey, version};

/// What is kept of an object.
pub(crate) trait Kept: Clone {
    /// The object as a watch shows it.
    type Object: Resource;

    /// What is kept of this one.
    fn keep(object: Self::Object) -> Self;

    fn metadata(&self) -> &ObjectMeta;
}

/// What changed about an object.
#[derive(Debug)]
pub(crate) struct Change<T> {
    pub(crate) key: ObjectKey,
    pub(crate) before: Option<T>,
    pub(crate) after: Option<T>,
}

/// Every object of a kind.
#[derive(Debug)]
pub(crate) struct Store<T> {
    held: BTreeMap<ObjectKey, Entry<T>>,
    /// Number of the present list.
    list: u32,
    /// What the list under way has shown.
    seen: Option<BTreeSet<ObjectKey>>,
}

#[derive(Debug)]
struct Entry<T> {
    held: T,
    /// A write of it may or may not have taken effect.
    doubtful: bool,
    /// The list during or after which this controller wrote it last.
    written: u32,
    /// What it was when its last change was told, where a read has shown more since.
    told: Option<T>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Store { held: BTreeMap::new(), list: 0, seen: None }
    }
}

impl<T: Kept> Store<T> {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<T> {
        self.held.get(key).map(|entry| entry.held.clone())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&ObjectKey, &T)> {
        self.held.iter().map(|(key, entry)| (key, &entry.held))
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

    pub(crate) fn listed(&mut self, object: T::Object) -> Option<Change<T>> {
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

    pub(crate) fn complete(&mut self) -> Vec<Change<T>> {
        let Some(seen) = self.seen.take() else { return Vec::new() };
        let lost: Vec<ObjectKey> = self.held.keys().filter(|key| !seen.contains(key)).cloned().collect();
        lost.into_iter().filter_map(|key| self.remove(key)).collect()
    }

    pub(crate) fn applied(&mut self, object: T::Object) -> Option<Change<T>> {
        let key = ObjectKey::of(object.meta());
        let newer = self.held.get(&key).is_some_and(|entry| is_newer(entry.held.metadata(), object.meta()));
        if newer { None } else { Some(self.put(key, object)) }
    }

    pub(crate) fn deleted(&mut self, metadata: &ObjectMeta) -> Option<Change<T>> {
        self.remove(ObjectKey::of(metadata))
    }

    /// A write of this controller to what is held answered with this state. What the watch saw go stays gone.
    pub(crate) fn fold(&mut self, object: T::Object) {
        self.keep(object, false);
    }

    /// A read of this controller answered with this state. Changes of others in it are told by the watch, which tells
    /// them later: whoever waits for them is still to hear of them.
    pub(crate) fn learn(&mut self, object: T::Object) {
        self.keep(object, true);
    }

    fn keep(&mut self, object: T::Object, untold: bool) {
        let key = ObjectKey::of(object.meta());
        let Some(entry) = self.held.get_mut(&key) else { return };
        let known = entry.held.metadata();
        if known.uid == object.meta().uid && !is_newer(known, object.meta()) {
            let before = std::mem::replace(&mut entry.held, T::keep(object));
            (entry.doubtful, entry.written) = (false, self.list);
            if untold {
                entry.told.get_or_insert(before);
            }
        }
    }

    fn put(&mut self, key: ObjectKey, object: T::Object) -> Change<T> {
        let before = self.held.get(&key);
        let same = before.filter(|entry| entry.held.metadata().uid == object.meta().uid);
        let doubtful = same
            .is_some_and(|entry| entry.doubtful && version(entry.held.metadata()) == version(object.meta()));
        let written = same.map_or(self.list.wrapping_sub(1), |entry| entry.written);
        let held = T::keep(object);
        let entry = Entry { held: held.clone(), doubtful, written, told: None };
        let before = self.held.insert(key.clone(), entry);
        Change { key, before: before.map(|entry| entry.told.unwrap_or(entry.held)), after: Some(held) }
    }

    fn remove(&mut self, key: ObjectKey) -> Option<Change<T>> {
        let entry = self.held.remove(&key)?;
        Some(Change { key, before: Some(entry.held), after: None })
    }
}

fn is_newer(known: &ObjectMeta, seen: &ObjectMeta) -> bool {
    known.uid == seen.uid && version(known) > version(seen)
}
