//! What is known of the cluster, kept by watches.
//!
//! # Guarantees
//! - A cache never shows a state older than this controller's own completed writes: answers to writes are folded in,
//!   and events that are older than what is known are dropped.
//! - While a watch starts anew, the old state stays until the new list is complete; a part of a list is never shown.

mod applications;
mod follow;
mod gone;
mod known;
mod observed;
mod secrets;
mod sets;
mod store;

pub(crate) use applications::{ApplicationChange, Applications, Record};
pub(crate) use follow::{Follower, Synced, follow};
pub(crate) use known::Known;
pub(crate) use observed::{Observed, is_always_preserved, is_guard_of};
pub(crate) use secrets::{ClusterChange, Secrets};
pub(crate) use sets::{Held, Listed, SetChange, Sets, Whole, written};
pub(crate) use store::{Change, Kept, Store};

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ObjectKey {
        ObjectKey { namespace: namespace.into(), name: name.into() }
    }

    pub(crate) fn of(metadata: &ObjectMeta) -> ObjectKey {
        let text = |field: &Option<String>| Arc::<str>::from(field.as_deref().unwrap_or_default());
        ObjectKey { namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The resourceVersion as a number, which Kubernetes now promises it to be; 0 if it is none.
pub(crate) fn version(metadata: &ObjectMeta) -> u64 {
    metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}
