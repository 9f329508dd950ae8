//! The objects and their indexes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use baton_api::object::ResourceKey;

use super::digest::Digest;
use super::entry::{Entry, Uid};
use super::packed::Packed;
use crate::catalog::GroupKind;
use crate::gone::Gone;

/// How far up owners are followed.
const DEEPEST: usize = 16;

/// A kind among those that were ever watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KindId(u32);

/// An object's place.
pub(crate) type Place = u32;

/// The Applications that are concerned by what happened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wakes {
    /// An object of theirs changed.
    pub(crate) managed: BTreeSet<Arc<str>>,
    /// A child of theirs changed.
    pub(crate) children: BTreeSet<Arc<str>>,
}

/// All objects known of one cluster.
#[derive(Debug, Default)]
pub(crate) struct State {
    entries: Vec<Option<Entry>>,
    free: Vec<Place>,
    kinds: Vec<Kind>,
    kind_ids: HashMap<GroupKind, KindId>,
    uids: HashMap<Uid, Place>,
    children: HashMap<Uid, Vec<Place>>,
    instances: HashMap<Arc<str>, BTreeSet<Place>>,
    guarded: BTreeSet<Place>,
    /// Who wants an object whole, by its key.
    holders: HashMap<ResourceKey, BTreeSet<Arc<str>>>,
    held: HashMap<Arc<str>, BTreeSet<ResourceKey>>,
    /// Texts that many objects share.
    texts: HashSet<Arc<str>>,
    gone: Gone,
}

#[derive(Debug)]
struct Kind {
    group_kind: GroupKind,
    /// Version its objects are seen in.
    api_version: Arc<str>,
    members: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Place>>,
}

impl State {
    // --- kinds ---

    /// The kind, known from now on in this version.
    pub(crate) fn kind_id(&mut self, group_kind: &GroupKind, api_version: &Arc<str>) -> KindId {
        if let Some(id) = self.kind_ids.get(group_kind) {
            self.kinds[id.0 as usize].api_version = api_version.clone();
            return *id;
        }
        let id = KindId(self.kinds.len() as u32);
        self.kinds.push(Kind {
            group_kind: group_kind.clone(),
            api_version: api_version.clone(),
            members: BTreeMap::new(),
        });
        self.kind_ids.insert(group_kind.clone(), id);
        id
    }

    /// The highest version seen among the objects of a kind.
    pub(crate) fn newest(&self, kind: KindId) -> u64 {
        self.places(kind, None)
            .filter_map(|place| self.entry(place))
            .map(|entry| entry.version)
            .max()
            .unwrap_or(0)
    }

    /// Forgets the versions of a kind, so that whatever is seen next is believed.
    pub(crate) fn forget_versions(&mut self, kind: KindId) {
        let places: Vec<Place> = self.places(kind, None).collect();
        for place in places {
            if let Some(entry) = self.entries[place as usize].as_mut() {
                entry.version = 0;
            }
        }
    }

    /// Drops every object of a kind, or of one namespace of it.
    pub(crate) fn drop_kind(&mut self, group_kind: &GroupKind, namespace: Option<&str>, wakes: &mut Wakes) {
        let Some(kind) = self.kind_ids.get(group_kind).copied() else { return };
        let places: Vec<Place> = self.places(kind, namespace).collect();
        for place in places {
            self.take(place, wakes);
        }
    }

    // --- what is seen ---

    /// Whether somebody wants this object whole.
    pub(crate) fn is_held(&self, key: &ResourceKey) -> bool {
        self.holders.contains_key(key)
    }

    /// Takes in an object unless something newer is known of it.
    pub(crate) fn apply(&mut self, kind: KindId, seen: Digest, wakes: &mut Wakes) {
        if self.gone.contains(&seen.uid) {
            return;
        }
        let known = self.place(kind, &seen.namespace, &seen.name);
        if let Some(entry) = known.and_then(|place| self.entry(place)) {
            let same = entry.uid == seen.uid;
            // An equal version is taken in too: what is to be kept of it may have changed.
            if seen.version != 0 && seen.version < entry.version {
                return;
            }
            if !same {
                let place = known.unwrap_or_default();
                self.gone_for_good(place);
                self.take(place, wakes);
            }
        }
        let place = self.place(kind, &seen.namespace, &seen.name);
        let entry = self.entry_of(kind, seen);
        let holders = self.holders.get(&self.key_of(&entry)).cloned().unwrap_or_default();
        let before = place.and_then(|place| self.entry(place));
        let changed =
            before.is_none_or(|before| before.print != entry.print || before.health != entry.health);
        let moved =
            before.is_none_or(|before| before.owners != entry.owners || before.health != entry.health);
        let old_instance = before.and_then(|before| before.instance.clone());
        if old_instance != entry.instance {
            wakes.managed.extend(old_instance);
            wakes.managed.extend(entry.instance.clone());
        }
        if changed {
            wakes.managed.extend(entry.instance.clone());
            wakes.managed.extend(holders);
        }
        if !entry.owners.is_empty() && moved {
            wakes.children.extend(self.roots_above(&entry.owners));
        }
        if let Some(place) = place {
            self.unlink(place);
        }
        self.link(place, entry);
    }

    /// Notes that an object is gone.
    pub(crate) fn remove(&mut self, kind: KindId, namespace: &str, name: &str, uid: &Uid, wakes: &mut Wakes) {
        self.gone.insert(uid);
        let Some(place) = self.place(kind, namespace, name) else { return };
        if self.entry(place).is_some_and(|entry| entry.uid == *uid) {
            self.take(place, wakes);
        }
    }

    /// Drops what a complete list lacks, unless it is newer than the list.
    pub(crate) fn complete(
        &mut self,
        kind: KindId,
        namespace: Option<&str>,
        listed: &HashSet<Uid>,
        version: u64,
        wakes: &mut Wakes,
    ) {
        let lost = |entry: &Entry| !listed.contains(&entry.uid) && entry.version <= version;
        let places: Vec<Place> =
            self.places(kind, namespace).filter(|place| self.entry(*place).is_some_and(lost)).collect();
        for place in places {
            self.take(place, wakes);
        }
    }

    // --- who wants what ---

    /// Sets the keys an Application wants whole. Returns those that are there but not whole.
    pub(crate) fn hold(&mut self, instance: &str, keys: &[ResourceKey]) -> Vec<ResourceKey> {
        let wanted: BTreeSet<ResourceKey> = keys.iter().cloned().collect();
        let name = self.text(instance);
        let before = self.held.get(&name).cloned().unwrap_or_default();
        for key in before.difference(&wanted) {
            self.let_go(&name, key);
        }
        for key in wanted.difference(&before) {
            self.holders.entry(key.clone()).or_default().insert(name.clone());
        }
        let lacking = wanted.iter().filter(|key| self.is_trimmed(key)).cloned().collect();
        match wanted.is_empty() {
            true => drop(self.held.remove(&name)),
            false => drop(self.held.insert(name, wanted)),
        }
        lacking
    }

    fn is_trimmed(&self, key: &ResourceKey) -> bool {
        self.find(key).is_some_and(|entry| entry.whole.is_none())
    }

    fn let_go(&mut self, instance: &Arc<str>, key: &ResourceKey) {
        let Some(holders) = self.holders.get_mut(key) else { return };
        holders.remove(instance);
        if !holders.is_empty() {
            return;
        }
        self.holders.remove(key);
        let place = self.kind_ids.get(&GroupKind::new(&key.group, &key.kind)).copied();
        let place = place.and_then(|kind| self.place(kind, &key.namespace, &key.name));
        let entry = place.and_then(|place| self.entries[place as usize].as_mut());
        if let Some(entry) = entry
            && entry.instance.is_none()
            && !entry.guarded
        {
            entry.whole = None;
            entry.print = 0;
        }
    }

    // --- what is asked ---

    /// An object by key.
    pub(crate) fn find(&self, key: &ResourceKey) -> Option<&Entry> {
        let kind = *self.kind_ids.get(&GroupKind::new(&key.group, &key.kind))?;
        self.entry(self.place(kind, &key.namespace, &key.name)?)
    }

    /// The tracked roots of an Application.
    pub(crate) fn managed(&self, instance: &str) -> Vec<Arc<Packed>> {
        let places = self.instances.get(instance).into_iter().flatten();
        places.filter_map(|place| self.entry(*place)?.whole.clone()).collect()
    }

    /// Every tracked root of a namespace, with its Application.
    pub(crate) fn managed_in(&self, namespace: &str) -> Vec<(Arc<str>, Arc<Packed>)> {
        let all = self
            .instances
            .iter()
            .flat_map(|(instance, places)| places.iter().map(move |place| (instance, *place)));
        let inside = all.filter_map(|(instance, place)| {
            let entry = self.entry(place).filter(|entry| *entry.namespace == *namespace)?;
            Some((instance.clone(), entry.whole.clone()?))
        });
        inside.collect()
    }

    /// The guarded objects of a namespace.
    pub(crate) fn guarded_in(&self, namespace: &str) -> Vec<(ResourceKey, Arc<Packed>)> {
        let inside = self.guarded.iter().filter_map(|place| {
            let entry = self.entry(*place).filter(|entry| *entry.namespace == *namespace)?;
            Some((self.key_of(entry), entry.whole.clone()?))
        });
        inside.collect()
    }

    pub(super) fn children_of(&self, uid: &Uid) -> impl Iterator<Item = &Entry> {
        self.children.get(uid).into_iter().flatten().filter_map(|place| self.entry(*place))
    }

    pub(super) fn by_uid(&self, uid: &Uid) -> Option<&Entry> {
        self.entry(*self.uids.get(uid)?)
    }

    pub(super) fn in_namespace(
        &self,
        group: &str,
        kind: &str,
        namespace: &str,
    ) -> impl Iterator<Item = &Entry> {
        let kind = self.kind_ids.get(&GroupKind::new(group, kind)).copied();
        let names = kind.and_then(|kind| self.kinds[kind.0 as usize].members.get(namespace));
        names.into_iter().flat_map(BTreeMap::values).filter_map(|place| self.entry(*place))
    }

    pub(super) fn key_of(&self, entry: &Entry) -> ResourceKey {
        let kind = &self.kinds[entry.kind.0 as usize].group_kind;
        ResourceKey {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace: entry.namespace.to_string(),
            name: entry.name.to_string(),
        }
    }

    pub(super) fn api_version_of(&self, entry: &Entry) -> &Arc<str> {
        &self.kinds[entry.kind.0 as usize].api_version
    }

    /// How many objects are known.
    pub(crate) fn count(&self) -> usize {
        self.uids.len()
    }

    // --- places ---

    fn entry(&self, place: Place) -> Option<&Entry> {
        self.entries.get(place as usize)?.as_ref()
    }

    fn place(&self, kind: KindId, namespace: &str, name: &str) -> Option<Place> {
        self.kinds[kind.0 as usize].members.get(namespace)?.get(name).copied()
    }

    fn places(&self, kind: KindId, namespace: Option<&str>) -> impl Iterator<Item = Place> {
        let members = self.kinds[kind.0 as usize].members.iter();
        let inside = members.filter(move |(name, _)| namespace.is_none_or(|namespace| namespace == &***name));
        inside.flat_map(|(_, names)| names.values().copied())
    }

    fn entry_of(&mut self, kind: KindId, seen: Digest) -> Entry {
        let images: Vec<Arc<str>> = seen.images.iter().map(|image| self.text(image)).collect();
        Entry {
            kind,
            namespace: self.text(&seen.namespace),
            name: seen.name.into(),
            uid: seen.uid,
            version: seen.version,
            owners: seen.owners.into(),
            instance: seen.instance.map(|instance| self.text(&instance)),
            created: seen.created,
            health: seen.health.map(Box::new),
            images: images.into(),
            whole: seen.whole.map(Arc::new),
            print: seen.print,
            guarded: seen.guarded,
        }
    }

    fn link(&mut self, place: Option<Place>, entry: Entry) {
        let place = place.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as Place
        });
        self.uids.insert(entry.uid.clone(), place);
        for owner in &entry.owners {
            self.children.entry(owner.clone()).or_default().push(place);
        }
        if let Some(instance) = &entry.instance {
            self.instances.entry(instance.clone()).or_default().insert(place);
        }
        if entry.guarded {
            self.guarded.insert(place);
        }
        let members = &mut self.kinds[entry.kind.0 as usize].members;
        members.entry(entry.namespace.clone()).or_default().insert(entry.name.clone(), place);
        self.entries[place as usize] = Some(entry);
    }

    /// Takes an object out of all indexes but that of names.
    fn unlink(&mut self, place: Place) -> Option<Entry> {
        let entry = self.entries[place as usize].take()?;
        self.uids.remove(&entry.uid);
        for owner in &entry.owners {
            if let Some(places) = self.children.get_mut(owner) {
                places.retain(|child| *child != place);
                if places.is_empty() {
                    self.children.remove(owner);
                }
            }
        }
        if let Some(instance) = &entry.instance
            && let Some(places) = self.instances.get_mut(instance)
        {
            places.remove(&place);
            if places.is_empty() {
                self.instances.remove(instance);
            }
        }
        self.guarded.remove(&place);
        Some(entry)
    }

    /// Takes an object out altogether.
    fn take(&mut self, place: Place, wakes: &mut Wakes) {
        let Some(entry) = self.unlink(place) else { return };
        self.free.push(place);
        let members = &mut self.kinds[entry.kind.0 as usize].members;
        if let Some(names) = members.get_mut(&entry.namespace) {
            names.remove(&entry.name);
            if names.is_empty() {
                members.remove(&entry.namespace);
            }
        }
        wakes.managed.extend(entry.instance.clone());
        wakes.managed.extend(self.holders.get(&self.key_of(&entry)).into_iter().flatten().cloned());
        wakes.children.extend(self.roots_above(&entry.owners));
    }

    fn gone_for_good(&mut self, place: Place) {
        if let Some(uid) = self.entry(place).map(|entry| entry.uid.clone()) {
            self.gone.insert(&uid);
        }
    }

    /// The Applications at the top of these owners.
    fn roots_above(&self, owners: &[Uid]) -> BTreeSet<Arc<str>> {
        let mut found = BTreeSet::new();
        let mut level: Vec<&Uid> = owners.iter().collect();
        let mut seen: HashSet<&Uid> = HashSet::new();
        for _ in 0..DEEPEST {
            let mut above = Vec::new();
            for uid in level {
                let Some(entry) = self.by_uid(uid).filter(|_| seen.insert(uid)) else { continue };
                found.extend(entry.instance.clone());
                above.extend(entry.owners.iter());
            }
            level = above;
        }
        found
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        // Doubling before each clearance keeps the cost of clearing even.
        if self.texts.len() == self.texts.capacity() {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(new.clone());
        new
    }
}
