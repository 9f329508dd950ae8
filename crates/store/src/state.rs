//! The store's contents: live objects and kept history. All under one lock, none of it asynchronous.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::Waker;

use crate::body::Body;
use crate::error::{CommitError, Compacted};
use crate::event::{Change, Event};
use crate::feed::Feed;
use crate::options::{Options, Stats};
use crate::record::{Key, Record};
use crate::write::{Action, Expect, Write};

/// The revision of a new store. Zero is left out because clients read it as "any revision".
pub(crate) const FIRST_REVISION: u64 = 1;

/// Encoded frames are kept for at most this many of the newest events …
const FRAME_EVENTS: usize = 1024;
/// … whose bodies add up to at most this many bytes.
const FRAME_BYTES: usize = 4 << 20;

/// Namespace and name: an object's place within its resource.
pub(crate) type Place = (Arc<str>, Arc<str>);

#[derive(Debug)]
pub(crate) struct State {
    options: Options,
    revision: u64,
    /// Everything at and before this revision is forgotten, except the state it led to.
    oldest: u64,
    tables: HashMap<Arc<str>, Table>,
    all: Feed,
    history_bytes: usize,
    object_bytes: usize,
    /// How many of the newest events may keep their frame, and the size of their bodies.
    framed: usize,
    framed_bytes: usize,
    /// Set when a store in memory takes no more writes.
    pub(crate) closed: bool,
}

/// The objects and events of one resource. Exists while there are objects, events or watches.
#[derive(Debug)]
pub(crate) struct Table {
    resource: Arc<str>,
    pub(crate) objects: BTreeMap<Place, Arc<Record>>,
    /// Objects per namespace. The keys are also the strings that all records of the namespace share.
    pub(crate) namespaces: HashMap<Arc<str>, usize>,
    pub(crate) feed: Feed,
}

impl State {
    /// A state without history.
    pub(crate) fn new(options: Options, revision: u64, records: impl IntoIterator<Item = Record>) -> Self {
        let mut state = Self {
            options,
            revision,
            oldest: revision,
            tables: HashMap::new(),
            all: Feed::default(),
            history_bytes: 0,
            object_bytes: 0,
            framed: 0,
            framed_bytes: 0,
            closed: false,
        };
        for mut record in records {
            let table = state.table_mut(&record.key.resource);
            table.share_strings(&mut record.key);
            table.put(Arc::new(record));
        }
        state.object_bytes = state.records().map(|record| record.stored_size()).sum();
        state
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Record>> {
        // The map's key is a pair of shared strings; cloning two pointers beats a borrowed-pair wrapper.
        self.tables.get(&key.resource)?.objects.get(&(key.namespace.clone(), key.name.clone()))
    }

    pub(crate) fn table(&self, resource: &str) -> Option<&Table> {
        self.tables.get(resource)
    }

    pub(crate) fn resources(&self) -> Vec<Arc<str>> {
        let mut names: Vec<_> =
            self.tables.values().filter(|t| !t.objects.is_empty()).map(|t| t.resource.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Refuses a revision whose following events are no longer all kept.
    pub(crate) fn check_kept(&self, revision: u64) -> Result<(), Compacted> {
        if revision < self.oldest { Err(Compacted { oldest: self.oldest }) } else { Ok(()) }
    }

    /// The event that a write would be; changes nothing.
    pub(crate) fn plan_one(&self, write: Write) -> Result<Event, CommitError> {
        let current = self.get(&write.key).cloned();
        self.plan(write, current.as_ref(), self.revision + 1)
    }

    /// The event that a write would be at some revision, given the object's current state; changes nothing.
    pub(crate) fn plan(
        &self,
        write: Write,
        current: Option<&Arc<Record>>,
        revision: u64,
    ) -> Result<Event, CommitError> {
        let holds = match write.expect {
            Expect::Absent => current.is_none() && matches!(write.action, Action::Put(_)),
            Expect::Revision(expected) => current.is_some_and(|record| record.revision == expected),
        };
        if !holds {
            return Err(CommitError::Conflict { current: current.cloned() });
        }
        let (change, body) = match (write.action, current) {
            (Action::Put(body), None) => (Change::Added, body),
            (Action::Put(body), Some(_)) => (Change::Modified, body),
            (Action::Delete(body), _) => (Change::Deleted, body),
        };
        let record = Arc::new(self.record(write.key, current, revision, body));
        Ok(Event::new(change, record, current.cloned()))
    }

    fn record(&self, mut key: Key, current: Option<&Arc<Record>>, revision: u64, body: Body) -> Record {
        match current {
            Some(current) => key = current.key.clone(),
            None => {
                if let Some(table) = self.tables.get(&key.resource) {
                    table.share_strings(&mut key);
                }
            }
        }
        Record { key, revision, created: current.map_or(revision, |record| record.created), body }
    }

    /// Makes a planned event the newest one, and notes whom to wake once the lock is released.
    pub(crate) fn apply(&mut self, event: Event, wakes: &mut Wakes) -> Arc<Record> {
        assert_eq!(event.revision, self.revision + 1, "revisions are gapless");
        let event = Arc::new(event);
        self.revision = event.revision;
        let table = self.table_mut(&event.record.key.resource);
        match event.change {
            Change::Added | Change::Modified => table.put(event.record.clone()),
            Change::Deleted => table.remove(&event.record.key),
        }
        table.feed.push(event.clone());
        table.feed.wake(&event.record.key.namespace, &mut wakes.0);
        self.all.push(event.clone());
        self.all.wake(&event.record.key.namespace, &mut wakes.0);

        if event.change != Change::Deleted {
            self.object_bytes += event.record.stored_size();
        }
        self.object_bytes -= event.previous.as_ref().map_or(0, |record| record.stored_size());
        self.history_bytes += event.superseded_bytes();
        self.keep_frame(&event);
        self.trim();
        event.record.clone()
    }

    /// Forgets all events up to a revision.
    pub(crate) fn compact(&mut self, revision: u64) {
        while self.all.front().is_some_and(|event| event.revision <= revision) {
            self.drop_oldest();
        }
        self.oldest = self.oldest.max(revision.min(self.revision));
    }

    pub(crate) fn history(&self, from: u64) -> Vec<Arc<Event>> {
        self.all.after(from).cloned().collect()
    }

    /// The events of one resource, or of all if it is empty.
    pub(crate) fn feed(&self, resource: &str) -> Option<&Feed> {
        if resource.is_empty() { Some(&self.all) } else { self.tables.get(resource).map(|table| &table.feed) }
    }

    /// The same for a watch that is to be added, and so creating what is missing.
    pub(crate) fn feed_mut(&mut self, resource: &str) -> &mut Feed {
        if resource.is_empty() { &mut self.all } else { &mut self.table_mut(resource).feed }
    }

    pub(crate) fn remove_watch(&mut self, resource: &str, number: u64) {
        self.feed_mut(resource).remove_watch(number);
        self.forget_if_unused(resource);
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            revision: self.revision,
            oldest: self.oldest,
            objects: self.tables.values().map(|table| table.objects.len()).sum(),
            object_bytes: self.object_bytes,
            history_events: self.all.len(),
            history_bytes: self.history_bytes,
            watches: self.all.watches()
                + self.tables.values().map(|table| table.feed.watches()).sum::<usize>(),
        }
    }

    fn records(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.tables.values().flat_map(|table| table.objects.values())
    }

    fn table_mut(&mut self, resource: &str) -> &mut Table {
        if !self.tables.contains_key(resource) {
            let resource: Arc<str> = resource.into();
            self.tables.insert(resource.clone(), Table::new(resource));
        }
        self.tables.get_mut(resource).expect("inserted above if it was missing")
    }

    fn forget_if_unused(&mut self, resource: &str) {
        if self.tables.get(resource).is_some_and(Table::is_unused) {
            self.tables.remove(resource);
        }
    }

    fn trim(&mut self) {
        while self.all.len() > 1
            && (self.all.len() > self.options.history_events
                || self.history_bytes > self.options.history_bytes)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        // The oldest event may still be among the newest few that keep a frame.
        if self.framed == self.all.len() {
            self.retire_oldest_frame();
        }
        let Some(event) = self.all.pop_oldest() else { return };
        self.oldest = event.revision;
        self.history_bytes -= event.superseded_bytes();
        let resource = &event.record.key.resource;
        if let Some(table) = self.tables.get_mut(resource) {
            table.feed.pop_oldest();
            self.forget_if_unused(resource);
        }
    }

    fn keep_frame(&mut self, event: &Event) {
        self.framed += 1;
        self.framed_bytes += event.record.size();
        while self.framed > FRAME_EVENTS || (self.framed > 1 && self.framed_bytes > FRAME_BYTES) {
            self.retire_oldest_frame();
        }
    }

    fn retire_oldest_frame(&mut self) {
        let Some(event) = self.all.nth_newest(self.framed) else { return };
        event.frame.retire();
        self.framed_bytes -= event.record.size();
        self.framed -= 1;
    }
}

impl Table {
    fn new(resource: Arc<str>) -> Self {
        Self { resource, objects: BTreeMap::new(), namespaces: HashMap::new(), feed: Feed::default() }
    }

    /// Replaces the key's strings by equal ones that are in memory already.
    fn share_strings(&self, key: &mut Key) {
        key.resource = self.resource.clone();
        if let Some((namespace, _)) = self.namespaces.get_key_value(&key.namespace) {
            key.namespace = namespace.clone();
        }
    }

    fn put(&mut self, record: Arc<Record>) {
        let place = (record.key.namespace.clone(), record.key.name.clone());
        if self.objects.insert(place, record.clone()).is_none() {
            *self.namespaces.entry(record.key.namespace.clone()).or_default() += 1;
        }
    }

    fn remove(&mut self, key: &Key) {
        if self.objects.remove(&(key.namespace.clone(), key.name.clone())).is_none() {
            return;
        }
        if let Some(count) = self.namespaces.get_mut(&key.namespace) {
            *count -= 1;
            if *count == 0 {
                self.namespaces.remove(&key.namespace);
            }
        }
    }

    fn is_unused(&self) -> bool {
        self.objects.is_empty() && self.feed.len() == 0 && self.feed.watches() == 0
    }
}

/// Watches to wake after one or more events, once the lock is released.
#[derive(Default)]
#[must_use = "watches sleep until they are woken"]
pub(crate) struct Wakes(Vec<Waker>);

impl Wakes {
    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}
