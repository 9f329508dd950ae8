//! One linear revision history of one cluster's objects, in memory or on disk.
//!
//! # Guarantees
//!
//! - There is one revision counter per [`Store`]. Every committed write takes the next revision, so the
//!   history is a gapless sequence and two observers never disagree about the order of two writes.
//! - A write is a compare-and-swap on one object ([`Expect`]): of two concurrent writers that read the same
//!   state, exactly one succeeds.
//! - Nothing is visible to a reader or a [`Watch`] before it is as durable as the store makes it; an
//!   acknowledged write to a store [opened on disk](Store::open) survives the death of the process.
//! - A watch delivers every event after its start, once, in revision order, or says [`Compacted`].
//!
//! The store knows nothing of Kubernetes: objects are JSON bytes under a (resource, namespace, name)
//! [`Key`]. It never parses them.

mod body;
mod disk;
mod error;
mod event;
mod feed;
mod list;
mod options;
mod record;
mod state;
mod store;
mod watch;
mod write;

pub use body::Body;
pub use error::{CommitError, Compacted, ListError, OpenError, StorageError};
pub use event::{Change, Event, Frame};
pub use list::{Listing, Page};
pub use options::{Options, Stats};
pub use record::{Key, Record};
pub use store::Store;
pub use watch::Watch;
pub use write::{Action, Expect, Write};
