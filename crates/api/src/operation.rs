//! A requested operation: what to sync, by whom, how.

use crate::application::{Info, RetryStrategy};
use crate::source::Source;
use crate::wire::wire;

wire! {
    /// A request that the Application controller carries out and then clears.
    pub struct Operation {
        optional {
            /// The sync to run.
            sync: Option<SyncOperation>,
            /// Who asked for it.
            initiated_by: OperationInitiator,
            /// Notes shown to people.
            info: Vec<Info>,
            /// Retries after failure.
            retry: RetryStrategy,
        }
    }

    /// Who asked for an operation.
    pub struct OperationInitiator {
        optional {
            /// Name of the user or component.
            username: String,
            /// Whether a controller asked.
            automated: bool,
        }
    }

    /// What to sync, and how.
    pub struct SyncOperation {
        optional {
            /// Revision to sync, for one source.
            revision: String,
            /// Revisions to sync, one per source.
            revisions: Vec<String>,
            /// Delete what is no longer in the source.
            prune: bool,
            /// Only show what would happen.
            dry_run: bool,
            /// Whether hooks run; they do when unset.
            sync_strategy: Option<SyncStrategy>,
            /// Sync only these resources.
            resources: Vec<SyncOperationResource>,
            /// Overrides the application's source.
            source: Option<Source>,
            /// Overrides the application's sources.
            sources: Vec<Source>,
            /// Manifests given instead of a source.
            manifests: Vec<String>,
            /// Options of this sync; those of the spec are not read.
            sync_options: Vec<String>,
            /// How often self-heal has tried this revision.
            #[serde(rename = "autoHealAttemptsCount")]
            self_heal_attempts_count: i64,
        }
    }

    /// Whether hooks run.
    pub struct SyncStrategy {
        optional {
            /// Apply manifests and skip hooks.
            apply: Option<SyncStrategyApply>,
            /// Run hooks as well.
            hook: Option<SyncStrategyHook>,
        }
    }

    /// Apply manifests and skip hooks.
    pub struct SyncStrategyApply {
        optional {
            /// Delete and re-create where an apply is refused.
            force: bool,
        }
    }

    /// Apply manifests and run hooks.
    pub struct SyncStrategyHook {
        optional {
            /// Delete and re-create where an apply is refused.
            force: bool,
        }
    }

    /// One resource of a selective sync.
    pub struct SyncOperationResource {
        required {
            /// Kind.
            kind: String,
            /// Name.
            name: String,
        }
        optional {
            /// API group.
            group: String,
            /// Namespace; empty is any.
            namespace: String,
        }
    }
}
