//! An event sequence that watches read by position while its front is trimmed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use crate::event::Event;

/// Events in revision order: those of one resource, or all.
///
/// A position counts events since the feed began, so it stays valid while events are dropped from the
/// front; a position below the front means that its reader has missed something.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    events: VecDeque<Arc<Event>>,
    dropped: u64,
    /// By number, and so in order of creation: who wakes first must not depend on chance.
    watches: BTreeMap<u64, Sleeper>,
    next_watch: u64,
}

/// A watch, as far as the feed needs to know it.
#[derive(Debug)]
struct Sleeper {
    namespace: Option<Arc<str>>,
    /// Set while the watch waits for an event.
    waker: Option<Waker>,
}

impl Feed {
    pub(crate) fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
    }

    pub(crate) fn pop_oldest(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.dropped += 1;
        Some(event)
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn front(&self) -> Option<&Arc<Event>> {
        self.events.front()
    }

    /// The newest event for 1, the one before it for 2, and so on.
    pub(crate) fn nth_newest(&self, nth: usize) -> Option<&Arc<Event>> {
        self.events.get(self.events.len().checked_sub(nth)?)
    }

    /// Position of the first event after a revision.
    pub(crate) fn position_after(&self, revision: u64) -> u64 {
        self.dropped + self.events.partition_point(|event| event.revision <= revision) as u64
    }

    /// The event at a position, if it is neither dropped nor still to come.
    pub(crate) fn at(&self, position: u64) -> Option<&Arc<Event>> {
        self.events.get(usize::try_from(position.checked_sub(self.dropped)?).ok()?)
    }

    /// Whether events from this position on have been dropped.
    pub(crate) fn has_dropped(&self, position: u64) -> bool {
        position < self.dropped
    }

    /// Events after a revision, oldest first.
    pub(crate) fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        self.events.range(self.events.partition_point(|event| event.revision <= revision)..)
    }

    /// Adds a watch and returns its number.
    pub(crate) fn add_watch(&mut self, namespace: Option<Arc<str>>) -> u64 {
        let number = self.next_watch;
        self.next_watch += 1;
        self.watches.insert(number, Sleeper { namespace, waker: None });
        number
    }

    pub(crate) fn remove_watch(&mut self, number: u64) {
        self.watches.remove(&number);
    }

    pub(crate) fn watches(&self) -> usize {
        self.watches.len()
    }

    /// Has a watch woken by the next event in its namespace.
    pub(crate) fn sleep(&mut self, number: u64, waker: &Waker) {
        let Some(sleeper) = self.watches.get_mut(&number) else { return };
        match &mut sleeper.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Takes the wakers of those who wait for an event in this namespace.
    pub(crate) fn wake(&mut self, namespace: &str, wakers: &mut Vec<Waker>) {
        let interested = self
            .watches
            .values_mut()
            .filter(|sleeper| sleeper.namespace.as_deref().is_none_or(|own| own == namespace));
        wakers.extend(interested.filter_map(|sleeper| sleeper.waker.take()));
    }
}
