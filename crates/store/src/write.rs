//! A request to change one object.

use crate::body::Body;
use crate::record::Key;

/// A change to one object, made only if the object is in the expected state.
#[derive(Clone, Debug)]
pub struct Write {
    /// The object.
    pub key: Key,
    /// The state it must be in.
    pub expect: Expect,
    /// The change.
    pub action: Action,
}

/// The state an object must be in for a [`Write`] to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It does not exist. Deleting what does not exist is always a conflict.
    Absent,
    /// It exists and was last written at this revision.
    Revision(u64),
}

/// What a [`Write`] does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Creates or replaces the object.
    Put(Body),
    /// Removes the object. The body is its final state, which watchers are shown.
    Delete(Body),
}
