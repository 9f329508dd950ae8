//! What a committed write did.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::record::Record;

/// What a write did to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object did not exist before.
    Added,
    /// The object existed before and still does.
    Modified,
    /// The object no longer exists.
    Deleted,
}

/// One committed write.
#[derive(Debug)]
pub struct Event {
    /// The revision this write took.
    pub revision: u64,
    /// What it did.
    pub change: Change,
    /// The object after the write. For a deletion: its final state, carrying the deletion's revision.
    pub record: Arc<Record>,
    /// The object before the write; `None` for [`Change::Added`].
    pub previous: Option<Arc<Record>>,
    /// The encoded watch frame, shared by all watchers.
    pub frame: Frame,
}

impl Event {
    pub(crate) fn new(change: Change, record: Arc<Record>, previous: Option<Arc<Record>>) -> Self {
        Self { revision: record.revision, change, record, previous, frame: Frame::default() }
    }

    /// Bytes of bodies that stay in memory only because this event is kept.
    pub(crate) fn superseded_bytes(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, |record| record.stored_size());
        match self.change {
            Change::Added | Change::Modified => previous,
            Change::Deleted => previous + self.record.stored_size(),
        }
    }
}

/// A slot for an event's encoded form, so that a hundred watchers of one event encode it once.
///
/// Encoded frames are many times larger than the event, and almost all watchers read an event right after
/// it was committed. So the store empties the slots of all but the newest events.
#[derive(Default)]
pub struct Frame(Mutex<Slot>);

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    Filled(Bytes),
    /// The event is no longer among the newest: nothing is kept here again.
    Retired,
}

impl Frame {
    /// The frame kept here; if there is none, the one `encode` makes, which is kept while the event is
    /// among the newest. All callers must encode alike.
    pub fn get_or_init(&self, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut slot = self.0.lock();
        match &*slot {
            Slot::Filled(frame) => frame.clone(),
            Slot::Empty => {
                let frame = encode();
                *slot = Slot::Filled(frame.clone());
                frame
            }
            Slot::Retired => {
                drop(slot);
                encode()
            }
        }
    }

    pub(crate) fn retire(&self) {
        *self.0.lock() = Slot::Retired;
    }
}

impl fmt::Debug for Frame {
    /// Without the contents: the object may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_encoded_once_until_it_is_retired() {
        let frame = Frame::default();
        let mut encoded = 0;
        let mut read = || {
            frame.get_or_init(|| {
                encoded += 1;
                Bytes::from(format!("frame {encoded}"))
            })
        };
        assert_eq!(read(), "frame 1");
        assert_eq!(read(), "frame 1");
        frame.retire();
        assert_eq!(read(), "frame 2");
        assert_eq!(read(), "frame 3");
    }
}
