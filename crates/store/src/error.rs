//! What can go wrong, and what the caller is told.

use std::sync::Arc;

use crate::record::Record;

/// The history needed for an answer is no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the requested revision has been compacted; the oldest available revision is {oldest}")]
pub struct Compacted {
    /// The oldest revision that can still be listed at or watched from.
    pub oldest: u64,
}

/// Why a listing was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The requested revision is too old.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// The requested revision has not happened yet.
    #[error("the requested revision is in the future; the current revision is {current}")]
    Future {
        /// The store's current revision.
        current: u64,
    },
}

/// Why a write was not committed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// The object was not in the expected state.
    #[error("the object is not in the expected state")]
    Conflict {
        /// The object as it is; `None` if it does not exist.
        current: Option<Arc<Record>>,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}
