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
    doubt: Option<Doubt>,
    /// The list during or after which this controller wrote it last.
    written: u32,
    /// What it was when its last change was told, where a read has shown more since.
    told: Option<T>,
}

/// Why the API must be read before what is held is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// A write of it may or may not have taken effect.
    Write,
    /// A list showed an older state. Either the list was old, or versions went backwards, as they do when a backup is
    /// restored.
    List,
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
        self.held.get(key).is_some_and(|entry| entry.doubt.is_some())
    }

    /// A write of it may or may not have taken effect.
    pub(crate) fn doubt(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.held.get_mut(key) {
            entry.doubt = Some(Doubt::Write);
        }
    }

    pub(crate) fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
        self.seen = Some(BTreeSet::new());
    }

    pub(crate) fn listed(&mut self, object: T::Object) -> Option<Change<T>> {
        let key = ObjectKey::of(object.meta());
        if let Some(seen) = &mut self.seen {
            seen.insert(key.clone());
        }
        let held = self.held.get_mut(&key);
        match held.filter(|entry| is_newer(entry.held.metadata(), object.meta())) {
            // It was written since the list began.
            Some(entry) if entry.written == self.list => None,
            Some(entry) => {
                entry.doubt = Some(Doubt::List);
                let (shown, held) = (T::keep(object), entry.held.clone());
                let before = entry.told.replace(shown.clone()).unwrap_or(held);
                Some(Change { key, before: Some(before), after: Some(shown) })
            }
            None => Some(self.put(key, object)),
        }
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

    /// The watch saw it go. What is told once more of one before it leaves it alone.
    pub(crate) fn deleted(&mut self, metadata: &ObjectMeta) -> Option<Change<T>> {
        let key = ObjectKey::of(metadata);
        let known = self.held.get(&key)?.held.metadata();
        if known.uid == metadata.uid || !is_newer(known, metadata) { self.remove(key) } else { None }
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
        let (same, settles) = (known.uid == object.meta().uid, entry.doubt == Some(Doubt::List));
        if settles || (same && !is_newer(known, object.meta())) {
            let before = std::mem::replace(&mut entry.held, T::keep(object));
            (entry.doubt, entry.written) = (None, self.list);
            if untold {
                entry.told.get_or_insert(before);
            }
        }
    }

    fn put(&mut self, key: ObjectKey, object: T::Object) -> Change<T> {
        let before = self.held.get(&key);
        let same = before.filter(|entry| entry.held.metadata().uid == object.meta().uid);
        let same_state = same.filter(|entry| version(entry.held.metadata()) == version(object.meta()));
        let doubt = same_state.and_then(|entry| entry.doubt);
        let written = same.map_or(self.list.wrapping_sub(1), |entry| entry.written);
        let held = T::keep(object);
        let entry = Entry { held: held.clone(), doubt, written, told: None };
        let before = self.held.insert(key.clone(), entry);
        Change { key, before: before.map(|entry| entry.told.unwrap_or(entry.held)), after: Some(held) }
    }

    fn remove(&mut self, key: ObjectKey) -> Option<Change<T>> {
        let entry = self.held.remove(&key)?;
        Some(Change { key, before: Some(entry.held), after: None })
    }
}

/// Whether what is known is of a later time than what is seen, be it of the same object or of one before it.
fn is_newer(known: &ObjectMeta, seen: &ObjectMeta) -> bool {
    version(known) > version(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guarded::Guarded;
    use baton_api::ApplicationSet;
    use serde_json::json;

    fn set(version: u64) -> ApplicationSet {
        another("u", version)
    }

    fn another(uid: &str, version: u64) -> ApplicationSet {
        serde_json::from_value(json!({
            "metadata": {"name": "fleet", "namespace": "argocd", "uid": uid, "resourceVersion": version.to_string()},
            "spec": {"generators": [], "template": {}},
        }))
        .expect("a set")
    }

    fn held(sets: &Store<crate::cache::Held>) -> (u64, bool) {
        let key = ObjectKey { namespace: "argocd".into(), name: "fleet".into() };
        (version(sets.get(&key).expect("it is held").metadata()), sets.is_doubtful(&key))
    }

    fn relisted(known: u64, listed: u64) -> Store<crate::cache::Held> {
        let mut sets = Store::default();
        for version in [known, listed] {
            sets.begin();
            let change = sets.listed(Guarded(Ok(set(version)))).expect("it is told");
            let told: Option<crate::cache::Held> = change.after;
            assert_eq!(told.map(|after| super::version(after.metadata())), Some(version));
            sets.complete();
        }
        sets
    }

    #[test]
    fn an_older_list_turns_nothing_back_before_a_read_has_settled_it() {
        let mut sets = relisted(7, 5);
        assert_eq!(held(&sets), (7, true));
        sets.learn(Guarded(Ok(set(7))));
        assert_eq!(held(&sets), (7, false), "the list was old");
        let mut sets = relisted(7, 5);
        sets.learn(Guarded(Ok(set(5))));
        assert_eq!(held(&sets), (5, false), "a backup was restored");
        let mut sets = relisted(7, 5);
        let told = sets.applied(Guarded(Ok(set(8)))).expect("it is told");
        assert_eq!(told.before.map(|before| version(before.metadata())), Some(5), "what was told last");
        assert_eq!(held(&sets), (8, false));
    }

    #[test]
    fn what_is_told_once_more_of_the_one_before_takes_nothing_away() {
        let mut sets = Store::<crate::cache::Held>::default();
        let seen = |uid, version| Guarded(Ok(another(uid, version)));
        let told = sets.applied(seen("u", 3)).is_some() && sets.deleted(&another("u", 4).metadata).is_some();
        assert!(told && sets.applied(seen("v", 5)).is_some());
        assert!(sets.applied(seen("u", 3)).is_none() && sets.deleted(&another("u", 4).metadata).is_none());
        assert_eq!(held(&sets), (5, false));
        assert!(sets.deleted(&another("v", 6).metadata).is_some());
    }

    #[test]
    fn a_read_that_is_older_than_a_write_of_which_nothing_is_known_settles_nothing() {
        let mut sets = relisted(5, 7);
        sets.doubt(&ObjectKey { namespace: "argocd".into(), name: "fleet".into() });
        sets.learn(Guarded(Ok(set(5))));
        assert_eq!(held(&sets), (7, true));
    }
}
