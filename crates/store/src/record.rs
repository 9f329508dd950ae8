//! Where an object lives, and one revision of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::body::Body;

/// Where an object lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Plural resource and group, as in `deployments.apps`; the plural alone in the core group.
    pub resource: Arc<str>,
    /// Empty for a cluster-scoped object.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
}

impl Key {
    /// A key from its three parts; an empty namespace means cluster-scoped.
    pub fn new(
        resource: impl Into<Arc<str>>,
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }
}

/// One object at one revision.
#[derive(Clone, Debug)]
pub struct Record {
    /// Where the object lives.
    pub key: Key,
    /// Revision of the write that made this state.
    pub revision: u64,
    /// Revision of the write that created the object.
    pub created: u64,
    pub(crate) body: Body,
}

impl Record {
    /// The object's JSON with its `resourceVersion`.
    pub fn json(&self) -> Bytes {
        let mut out = Vec::new();
        self.write_json(&mut out);
        out.into()
    }

    /// Appends what [`Record::json`] returns to a buffer.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.body.write_json(self.revision, out);
    }

    /// The body, which no other write of the store shares.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Bytes of the object's JSON, without the `resourceVersion`.
    pub fn size(&self) -> usize {
        self.body.raw_len()
    }

    /// Bytes the object's body occupies in memory.
    pub(crate) fn stored_size(&self) -> usize {
        self.body.stored().len()
    }
}
