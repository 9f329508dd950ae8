//! An event sequence that watches read by position while its front is trimmed.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::event::Event;

/// Events in revision order: those of one resource, or all.
///
/// A position counts events since the feed began, so it stays valid while events are dropped from the
/// front; a position below the front means that its reader has missed something.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    events: VecDeque<Arc<Event>>,
    dropped: u64,
    pub(crate) watches: usize,
    pub(crate) wake: Arc<Notify>,
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
}
