//! The public face: one handle for both kinds of store.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::body::Body;
use crate::disk::Disk;
use crate::error::{CommitError, Compacted, ListError, OpenError};
use crate::event::Event;
use crate::list::{self, Listing, Page};
use crate::options::{Options, Stats};
use crate::record::{Key, Record};
use crate::state::{FIRST_REVISION, State, Wakes};
use crate::watch::Watch;
use crate::write::Write;

/// A handle to one cluster's objects and their history. Clones share the same store.
#[derive(Clone)]
pub struct Store {
    state: Arc<Mutex<State>>,
    /// `None` for a store in memory.
    disk: Option<Arc<Disk>>,
    /// Whether bodies are held compressed.
    compress: bool,
}

impl Store {
    /// A new, empty store that lives as long as its handles.
    ///
    /// It uses no threads and no timers: what it does depends only on the calls made to it.
    pub fn memory(options: Options) -> Self {
        let state = Arc::new(Mutex::new(State::new(options, FIRST_REVISION, [])));
        Self { state, disk: None, compress: options.compress }
    }

    /// Opens the store kept in a directory, creating it if there is none.
    ///
    /// # Guarantees
    ///
    /// The store holds every write that was ever acknowledged, and continues its revision counter.
    ///
    /// # Caveats
    ///
    /// The history before the opening is not kept: [`Store::oldest`] is the revision found.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let (state, disk) = Disk::open(dir, options)?;
        Ok(Self { state, disk: Some(Arc::new(disk)), compress: options.compress })
    }

    /// A body as this store holds them; see [`Body::new`].
    ///
    /// # Panics
    ///
    /// If the JSON is 4 GiB or longer.
    pub fn body(&self, json: &[u8], splice_at: usize) -> Body {
        Body::held(json, splice_at, self.compress)
    }

    /// The revision of the newest write; 1 on a new store.
    pub fn revision(&self) -> u64 {
        self.state.lock().revision()
    }

    /// The oldest revision that can be listed at or watched from.
    pub fn oldest(&self) -> u64 {
        self.state.lock().oldest()
    }

    /// The object, if it exists.
    pub fn get(&self, key: &Key) -> Option<Arc<Record>> {
        self.state.lock().get(key).cloned()
    }

    /// The objects of a resource in one namespace, or in all and cluster-scoped, now or at an earlier
    /// revision. Listing further pages `at` the first page's revision gives one consistent snapshot.
    ///
    /// # Errors
    ///
    /// If the page's revision is no longer kept or has not happened yet.
    pub fn list(&self, resource: &str, namespace: Option<&str>, page: Page) -> Result<Listing, ListError> {
        list::list(&self.state.lock(), resource, namespace, page)
    }

    /// How many objects a resource has.
    pub fn count(&self, resource: &str) -> usize {
        self.state.lock().table(resource).map_or(0, |table| table.objects.len())
    }

    /// The resources that have objects, in order.
    pub fn resources(&self) -> Vec<Arc<str>> {
        self.state.lock().resources()
    }

    /// Makes a write and returns the object as written; for a deletion, its final state. The record's
    /// revision is the write's.
    ///
    /// # Guarantees
    ///
    /// On success the write is visible to every later call, and durable if the store is on disk. Dropping
    /// the future before it completes leaves open whether the write is made.
    ///
    /// # Errors
    ///
    /// See [`CommitError`]. After [`CommitError::Conflict`] nothing has changed.
    pub async fn commit(&self, write: Write) -> Result<Arc<Record>, CommitError> {
        match &self.disk {
            None => self.commit_to_memory(write),
            Some(disk) => disk.commit(write).await,
        }
    }

    fn commit_to_memory(&self, write: Write) -> Result<Arc<Record>, CommitError> {
        let mut wakes = Wakes::default();
        let mut state = self.state.lock();
        if state.closed {
            return Err(CommitError::Closed);
        }
        let event = state.plan_one(write)?;
        let record = state.apply(event, &mut wakes);
        drop(state);
        wakes.wake();
        Ok(record)
    }

    /// Follows the events after a revision: those of one resource (of all if empty), in one namespace (in
    /// all and cluster-scoped if `None`).
    ///
    /// # Errors
    ///
    /// [`Compacted`] if an event after that revision may no longer be kept.
    pub fn watch(&self, resource: &str, namespace: Option<&str>, from: u64) -> Result<Watch, Compacted> {
        Watch::new(&self.state, resource, namespace, from)
    }

    /// The kept events after a revision, oldest first.
    pub fn history(&self, from: u64) -> Vec<Arc<Event>> {
        self.state.lock().history(from)
    }

    /// Forgets the events up to a revision, as happens by itself when the bounds of [`Options`] are reached.
    pub fn compact(&self, revision: u64) {
        self.state.lock().compact(revision);
    }

    /// What the store holds now.
    pub fn stats(&self) -> Stats {
        self.state.lock().stats()
    }

    /// Completes the writes under way, refuses further ones with [`CommitError::Closed`], and releases the
    /// files. Reading what is in memory still works. Happens by itself when the last handle is dropped.
    ///
    /// Blocks for as long as the writes take that are under way on disk.
    pub fn close(&self) {
        match &self.disk {
            None => self.state.lock().closed = true,
            Some(disk) => disk.close(),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("on_disk", &self.disk.is_some()).field("stats", &self.stats()).finish()
    }
}
