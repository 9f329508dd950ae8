//! What can go wrong, and what the caller is told.

use std::io;
use std::path::{Path, PathBuf};
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
    /// Writing to disk failed, now or earlier. Whether this write was made is unknown.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a store on disk could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another handle in this one, has the store open.
    #[error("the store in {} is in use by another process", path.display())]
    InUse {
        /// The store's directory or file.
        path: PathBuf,
    },
    /// The file is not what this program wrote.
    #[error("the store file {} is damaged: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file was written by a version with another format.
    #[error("the store file {} has format {found}; this version reads format {supported}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The only format this version reads.
        supported: u64,
    },
    /// The system refused access.
    #[error("cannot open the store file {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Writing the store's file failed. The store refuses writes from then on, because what the file holds is
/// unknown until it is opened again; reading goes on.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot write the store file {}: {source}; no writes are taken until the store is reopened", path.display())]
pub struct StorageError {
    /// The file.
    pub path: Arc<Path>,
    /// What the database said.
    pub source: Arc<redb::Error>,
}
