//! What a decision can ask for.

use crate::Kind;
use crate::object::{name, namespace, sooner, text, uid};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The answer of [`decide`](crate::decide).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// Writes to make now, in this order.
    pub actions: Vec<Action>,
    /// When to decide again even if nothing changes. `None`: not before the next change.
    pub wake_at: Option<Timestamp>,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create this object. "Already exists" is no error; see [`decide`](crate::decide).
    Create(Value),
    /// Apply a JSON merge patch to the object (never touching `status`).
    Patch {
        /// The object to patch.
        target: Target,
        /// An RFC 7386 merge patch.
        patch: Value,
    },
    /// Replace `status` as a whole, through the status subresource.
    Status {
        /// The object whose status it is.
        target: Target,
        /// The complete new status; fields the simulator does not know are kept in it.
        status: Value,
    },
    /// Delete the object, its dependents in the background.
    Delete {
        /// The object to delete.
        target: Target,
        /// How.
        removal: Removal,
    },
}

/// How to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// As a client would: pods get their grace period, finalizers hold.
    Graceful,
    /// With grace period zero: the kubelet's word that a terminating pod is gone. Finalizers still hold.
    Final,
}

/// The object a write goes to, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: a write must not reach a namesake.
    pub uid: String,
    /// Its resourceVersion when it was read: a `Status` must not overwrite newer work.
    pub resource_version: String,
}

// === impl Decision ===

impl Decision {
    pub(crate) fn wake(at: Timestamp) -> Self {
        Self { actions: Vec::new(), wake_at: Some(at) }
    }

    pub(crate) fn wake_by(&mut self, at: Option<Timestamp>) {
        self.wake_at = sooner(self.wake_at, at);
    }

    pub(crate) fn create(&mut self, object: Value) {
        self.actions.push(Action::Create(object));
    }

    pub(crate) fn patch(&mut self, object: &Value, patch: Value) {
        if let Some(target) = Target::of(object) {
            self.actions.push(Action::Patch { target, patch });
        }
    }

    pub(crate) fn annotate(&mut self, object: &Value, key: &str, value: Option<&str>) {
        self.patch(object, json!({"metadata": {"annotations": {key: value}}}));
    }

    pub(crate) fn delete(&mut self, object: &Value, removal: Removal) {
        if let Some(target) = Target::of(object) {
            self.actions.push(Action::Delete { target, removal });
        }
    }

    /// Writes the status unless it already says so.
    pub(crate) fn status(&mut self, object: &Value, status: Map<String, Value>) {
        let same = match object["status"].as_object() {
            Some(current) => *current == status,
            None => status.is_empty(),
        };
        if same {
            return;
        }
        if let Some(target) = Target::of(object) {
            self.actions.push(Action::Status { target, status: Value::Object(status) });
        }
    }
}

// === impl Target ===

impl Target {
    /// The target for a stored object; `None` for a kind the simulator does not know.
    pub fn of(object: &Value) -> Option<Self> {
        Some(Self {
            kind: Kind::of(object)?,
            namespace: namespace(object).to_owned(),
            name: name(object).to_owned(),
            uid: uid(object).to_owned(),
            resource_version: text(object, &["metadata", "resourceVersion"]).to_owned(),
        })
    }
}
