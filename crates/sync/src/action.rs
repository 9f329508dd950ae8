//! What the engine asks to be done to a cluster, and what came of it.

use std::sync::Arc;

use baton_api::object::ResourceKey;
use serde_json::Value;

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Names the action when its outcome is told.
    pub id: usize,
    /// What to do.
    pub verb: Verb,
}

/// What to do to a cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// Make an object be as it is written.
    Apply(Apply),
    /// Delete an object.
    Delete(Delete),
    /// Take the hook finalizer off an object; one that is gone is as good as done.
    ReleaseHook {
        /// The hook.
        key: ResourceKey,
        /// The version it is known in.
        api_version: String,
    },
    /// Take back an approval that was not given for what is going on.
    Revoke {
        /// The object that carries it.
        key: ResourceKey,
        /// The version it is known in.
        api_version: String,
        /// Its UID.
        uid: String,
        /// Its version: an approval that was given meanwhile stays.
        resource_version: String,
    },
    /// Read an object past every cache.
    Look {
        /// The object.
        key: ResourceKey,
        /// The version to read it in.
        api_version: String,
    },
}

/// How an object is made to be as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Apply {
    /// The object, with namespace and tracking.
    pub object: Arc<Value>,
    /// The object as it was last seen.
    pub live: Option<Arc<Value>>,
    /// Whether the API only checks it.
    pub dry_run: bool,
    /// Whether unknown and doubled fields are refused.
    pub validate: bool,
    /// Whether the object replaces what is there instead of being merged into it.
    pub replace: bool,
    /// Whether it may be deleted and created anew where it cannot be changed.
    pub force: bool,
    /// Whether server-side apply is asked for.
    pub server_side: ServerSide,
    /// Field manager whose fields are taken over first, unless this is off.
    pub migrate_from: Option<String>,
    /// Whether deleting it on the way is forbidden without approval. Where it would be needed, nothing is done and the
    /// outcome is [`Outcome::NeedsApproval`].
    pub guarded: bool,
    /// Whether it must not exist yet. One that does is left alone and the outcome is [`Outcome::Exists`].
    pub create_only: bool,
}

/// Who merges fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerSide {
    /// The option is not set: as this product does by default.
    Default,
    /// `ServerSideApply=true`.
    Asked,
    /// `ServerSideApply=false`.
    Refused,
}

/// How an object is deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// The object.
    pub key: ResourceKey,
    /// The version it is known in.
    pub api_version: String,
    /// Its UID: another object of the same name is left alone.
    pub uid: String,
    /// Its version, where it must not have changed since it was judged.
    pub resource_version: Option<String>,
    /// What becomes of its dependants.
    pub propagation: Propagation,
}

/// What becomes of the dependants of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// They go first.
    #[default]
    Foreground,
    /// They go afterwards.
    Background,
    /// They stay.
    Orphan,
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was applied.
    Applied {
        /// As kubectl says it: `deployment.apps/web configured`.
        message: String,
        /// The object as the API returned it.
        object: Arc<Value>,
    },
    /// It is gone, was never there, or is not the one that was meant.
    Gone,
    /// It is being deleted and waits for its finalizers.
    Terminating,
    /// It was released, or is as it should be.
    Done,
    /// It was read.
    Found(Arc<Value>),
    /// It exists although it must not.
    Exists(Arc<Value>),
    /// It changed since it was judged, and nothing was done.
    Changed,
    /// It would have to be deleted on the way, which needs approval; nothing was done.
    NeedsApproval,
    /// It failed.
    Failed {
        /// Why, as the API said it.
        message: String,
    },
}

// === impl Propagation ===

impl Propagation {
    /// The word the API takes.
    pub fn as_str(self) -> &'static str {
        match self {
            Propagation::Foreground => "Foreground",
            Propagation::Background => "Background",
            Propagation::Orphan => "Orphan",
        }
    }
}
