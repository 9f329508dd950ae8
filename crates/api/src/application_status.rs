//! What was seen of an Application.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::application::{Destination, ManagedNamespaceMetadata, ResourceIgnoreDifferences};
use crate::operation::{Operation, OperationInitiator};
use crate::source::{Source, SourceHydrator};
use crate::wire::{wire, words};

wire! {
    /// What was seen of an application.
    pub struct ApplicationStatus {
        optional {
            /// The application's resources.
            resources: Vec<ResourceStatus>,
            /// Whether the cluster matches the source.
            sync: SyncStatus,
            /// Health of the whole.
            health: HealthStatus,
            /// Past syncs, oldest first.
            history: Vec<RevisionHistory>,
            /// Errors and warnings.
            conditions: Vec<ApplicationCondition>,
            /// When a full comparison began last.
            reconciled_at: Option<Time>,
            /// The running operation, or the last one.
            operation_state: Option<OperationState>,
            /// Deprecated.
            observed_at: Option<Time>,
            /// Tool of the source.
            source_type: SourceType,
            /// Tool of each source.
            source_types: Vec<SourceType>,
            /// Links and images.
            summary: ApplicationSummary,
            /// `appTree` when resource health is not kept in `resources`.
            resource_health_source: String,
            /// Namespace of the controller.
            controller_namespace: String,
            /// State of the source hydrator.
            source_hydrator: SourceHydratorStatus,
        }
    }

    /// One resource of an application or of an application set.
    pub struct ResourceStatus {
        optional {
            /// API group.
            group: String,
            /// API version.
            version: String,
            /// Kind.
            kind: String,
            /// Namespace.
            namespace: String,
            /// Name.
            name: String,
            /// Whether it matches the source.
            status: SyncCode,
            /// Its health.
            health: Option<HealthStatus>,
            /// Whether it is a hook.
            hook: bool,
            /// Whether it is no longer in the source.
            requires_pruning: bool,
            /// Its sync wave.
            sync_wave: i64,
            /// Whether its options ask for confirmation before it is deleted.
            requires_deletion_confirmation: bool,
            /// Whether its deletion waits for approval now.
            requires_deletion_approval: bool,
        }
    }

    /// Whether the cluster matches the source.
    pub struct SyncStatus {
        required {
            /// The verdict.
            status: SyncCode,
        }
        optional {
            /// What was compared.
            compared_to: ComparedTo,
            /// Revision compared, for one source.
            revision: String,
            /// Revisions compared, one per source.
            revisions: Vec<String>,
        }
    }

    /// What a comparison was made against.
    pub struct ComparedTo {
        required {
            /// The destination.
            destination: Destination,
        }
        optional {
            /// The source.
            source: Source,
            /// The sources.
            sources: Vec<Source>,
            /// Differences that did not count.
            ignore_differences: Vec<ResourceIgnoreDifferences>,
        }
    }

    /// Health of a resource or of a whole application.
    pub struct HealthStatus {
        optional {
            /// The verdict.
            status: HealthCode,
            /// Why.
            message: String,
            /// When the verdict changed last.
            last_transition_time: Option<Time>,
        }
    }

    /// One past sync.
    pub struct RevisionHistory {
        required {
            /// Number of the sync, growing by one.
            id: i64,
            /// When it ended.
            deployed_at: Option<Time>,
        }
        optional {
            /// When it began.
            deploy_started_at: Option<Time>,
            /// Revision synced, for one source.
            revision: String,
            /// Revisions synced, one per source.
            revisions: Vec<String>,
            /// The source.
            source: Source,
            /// The sources.
            sources: Vec<Source>,
            /// Who asked for it.
            initiated_by: OperationInitiator,
        }
    }

    /// An error or a warning.
    pub struct ApplicationCondition {
        required {
            /// Its class; the ending tells error, warning or information.
            #[serde(rename = "type")]
            kind: String,
            /// What is wrong.
            message: String,
        }
        optional {
            /// When it appeared.
            last_transition_time: Option<Time>,
        }
    }

    /// The running operation, or the last one.
    pub struct OperationState {
        required {
            /// The request.
            operation: Operation,
            /// How far it is.
            phase: OperationPhase,
            /// When it began.
            started_at: Option<Time>,
        }
        optional {
            /// What it waits for, or how it ended.
            message: String,
            /// What a sync did.
            sync_result: Option<SyncOperationResult>,
            /// When it ended, or when the last attempt did.
            finished_at: Option<Time>,
            /// How often it was retried.
            retry_count: i64,
        }
    }

    /// What a sync did.
    pub struct SyncOperationResult {
        required {
            /// Revision synced, for one source.
            revision: String,
        }
        optional {
            /// Revisions synced, one per source.
            revisions: Vec<String>,
            /// The source.
            source: Source,
            /// The sources.
            sources: Vec<Source>,
            /// What was done to each resource.
            resources: Vec<ResourceResult>,
            /// Metadata given to the namespace.
            managed_namespace_metadata: Option<ManagedNamespaceMetadata>,
        }
    }

    /// What a sync did to one resource.
    pub struct ResourceResult {
        required {
            /// API group.
            group: String,
            /// API version.
            version: String,
            /// Kind.
            kind: String,
            /// Namespace.
            namespace: String,
            /// Name.
            name: String,
        }
        optional {
            /// What was done.
            status: ResultCode,
            /// In words.
            message: String,
            /// Which hook it is.
            hook_type: String,
            /// How far it is.
            hook_phase: OperationPhase,
            /// In which part of the sync it was done.
            sync_phase: SyncPhase,
            /// Images it uses.
            images: Vec<String>,
        }
    }

    /// Links and images of an application.
    pub struct ApplicationSummary {
        optional {
            /// Links found in ingresses and services.
            #[serde(rename = "externalURLs")]
            external_urls: Vec<String>,
            /// Images in use.
            images: Vec<String>,
            /// Whether it manages other applications.
            is_app_of_apps: bool,
        }
    }

    /// State of the source hydrator.
    pub struct SourceHydratorStatus {
        optional {
            /// The last run that worked.
            last_successful_operation: Option<SuccessfulHydrateOperation>,
            /// The running or last run.
            current_operation: Option<HydrateOperation>,
            /// Unrendered revision looked at last.
            last_compared_dry_revision: String,
        }
    }

    /// One run of the source hydrator.
    pub struct HydrateOperation {
        required {
            /// How far it is.
            phase: HydratePhase,
            /// How it ended.
            message: String,
        }
        optional {
            /// When it began.
            started_at: Option<Time>,
            /// When it ended.
            finished_at: Option<Time>,
            /// Unrendered commit.
            #[serde(rename = "drySHA")]
            dry_sha: String,
            /// Rendered commit.
            #[serde(rename = "hydratedSHA")]
            hydrated_sha: String,
            /// The settings it ran with.
            source_hydrator: SourceHydrator,
        }
    }

    /// A run of the source hydrator that worked.
    pub struct SuccessfulHydrateOperation {
        optional {
            /// Unrendered commit.
            #[serde(rename = "drySHA")]
            dry_sha: String,
            /// Rendered commit.
            #[serde(rename = "hydratedSHA")]
            hydrated_sha: String,
            /// The settings it ran with.
            source_hydrator: SourceHydrator,
        }
    }
}

words! {
    /// Whether the cluster matches the source.
    open enum SyncCode {
        /// It does.
        Synced = "Synced",
        /// It does not.
        OutOfSync = "OutOfSync",
        /// It could not be told.
        Unknown = "Unknown",
    }

    /// Health of something.
    open enum HealthCode {
        /// All is well.
        Healthy = "Healthy",
        /// On its way.
        Progressing = "Progressing",
        /// Paused.
        Suspended = "Suspended",
        /// Not there.
        Missing = "Missing",
        /// Broken.
        Degraded = "Degraded",
        /// It could not be told.
        Unknown = "Unknown",
    }

    /// How far an operation is.
    open enum OperationPhase {
        /// It runs, or waits to be retried.
        Running = "Running",
        /// It is being stopped.
        Terminating = "Terminating",
        /// It ended with resources that could not be synced.
        Failed = "Failed",
        /// It could not be carried out.
        Error = "Error",
        /// It ended well.
        Succeeded = "Succeeded",
    }

    /// What a sync did to a resource.
    open enum ResultCode {
        /// Applied.
        Synced = "Synced",
        /// Could not be applied or deleted.
        SyncFailed = "SyncFailed",
        /// Deleted.
        Pruned = "Pruned",
        /// Left although no longer in the source.
        PruneSkipped = "PruneSkipped",
    }

    /// Part of a sync.
    open enum SyncPhase {
        /// Before.
        PreSync = "PreSync",
        /// The sync itself.
        Sync = "Sync",
        /// After.
        PostSync = "PostSync",
        /// After a failure.
        SyncFail = "SyncFail",
    }

    /// The tool that renders a source.
    open enum SourceType {
        /// Helm.
        Helm = "Helm",
        /// Kustomize.
        Kustomize = "Kustomize",
        /// Plain manifests and Jsonnet.
        Directory = "Directory",
        /// A config management plugin.
        Plugin = "Plugin",
    }

    /// How far a run of the source hydrator is.
    closed enum HydratePhase {
        /// It runs.
        Hydrating = "Hydrating",
        /// It failed.
        Failed = "Failed",
        /// It worked.
        Hydrated = "Hydrated",
    }
}

// === impl OperationPhase ===

impl OperationPhase {
    /// Whether the operation has ended.
    pub fn is_completed(&self) -> bool {
        matches!(self, OperationPhase::Failed | OperationPhase::Error | OperationPhase::Succeeded)
    }
}
