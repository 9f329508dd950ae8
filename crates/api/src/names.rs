//! Names of groups, annotations, labels and finalizers: Argo CD's, which are kept, and Baton's own.

/// API group of all three kinds.
pub const GROUP: &str = "argoproj.io";
/// API version inside [`GROUP`].
pub const VERSION: &str = "v1alpha1";
/// [`GROUP`] and [`VERSION`] as objects state them.
pub const API_VERSION: &str = "argoproj.io/v1alpha1";
/// The version of Argo CD whose objects, rules and API Baton keeps to.
pub const ARGO_CD_VERSION: &str = "3.6.0";
/// Name of the cluster the controllers run in.
pub const IN_CLUSTER_NAME: &str = "in-cluster";
/// URL of the cluster the controllers run in.
pub const IN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";
/// Project of Applications that name none.
pub const DEFAULT_PROJECT: &str = "default";

/// Annotations on managed resources.
pub mod resource {
    /// Options of sync and deletion, separated by commas.
    pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
    /// Wave, a whole number.
    pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
    /// When the resource runs as a hook.
    pub const HOOK: &str = "argocd.argoproj.io/hook";
    /// When a hook is deleted.
    pub const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
    /// How the resource is compared.
    pub const COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
    /// Which Application the resource belongs to.
    pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
    /// Which installation the resource belongs to.
    pub const INSTALLATION_ID: &str = "argocd.argoproj.io/installation-id";
    /// Leaves the resource out of the Application's health.
    pub const IGNORE_HEALTHCHECK: &str = "argocd.argoproj.io/ignore-healthcheck";
    /// Judges a Pod's health without its restart policy.
    pub const IGNORE_RESTART_POLICY: &str = "argocd.argoproj.io/ignore-restart-policy";
    /// Ignores updates of the resource as the operator configured.
    pub const IGNORE_RESOURCE_UPDATES: &str = "argocd.argoproj.io/ignore-resource-updates";
    /// Hides links found by default.
    pub const IGNORE_DEFAULT_LINKS: &str = "argocd.argoproj.io/ignore-default-links";
    /// Prefix of links shown to people.
    pub const LINK_PREFIX: &str = "link.argocd.argoproj.io/";
    /// Approves the deletion of this resource: `true` or an RFC 3339 time.
    pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";
    /// Finalizer that holds a hook until its outcome is known.
    pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";
    /// Helm's way to say when a resource runs as a hook.
    pub const HELM_HOOK: &str = "helm.sh/hook";
    /// Helm's wave among hooks.
    pub const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";
    /// Helm's way to say when a hook is deleted.
    pub const HELM_HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
    /// Helm's way to keep a resource on deletion.
    pub const HELM_RESOURCE_POLICY: &str = "helm.sh/resource-policy";
    /// Label that tracks the Application by default.
    pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
    /// What client-side apply wrote last.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
}

/// Annotations on Applications.
pub mod application {
    /// Asks for a comparison: `normal` or `hard`.
    pub const REFRESH: &str = "argocd.argoproj.io/refresh";
    /// Tells one refresh request from the next.
    pub const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/refresh-timestamp";
    /// Asks the source hydrator to run.
    pub const HYDRATE: &str = "argocd.argoproj.io/hydrate";
    /// Tells one hydrate request from the next.
    pub const HYDRATE_TIMESTAMP: &str = "argocd.argoproj.io/hydrate-timestamp";
    /// Makes the controller leave the object alone.
    pub const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
    /// Approves deletions of the running operation: an RFC 3339 time.
    pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";
    /// Paths whose change makes manifests stale, separated by `;`.
    pub const MANIFEST_GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";
    /// Field manager whose fields are taken over by server-side apply.
    pub const CLIENT_SIDE_APPLY_MIGRATION_MANAGER: &str =
        "argocd.argoproj.io/client-side-apply-migration-manager";
    /// URL of the Argo CD that manages the Application.
    pub const MANAGED_BY_URL: &str = "argocd.argoproj.io/managed-by-url";
    /// What has been notified already.
    pub const NOTIFIED: &str = "notified.notifications.argoproj.io";
    /// Prefix of notification subscriptions.
    pub const SUBSCRIBE_PREFIX: &str = "notifications.argoproj.io/subscribe.";
}

/// Annotations on ApplicationSets.
pub mod application_set {
    /// Asks for generators to be run anew; only its presence counts.
    pub const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
    /// Least version of the controller that may act on the set.
    pub const MIN_VERSION: &str = "argocd.argoproj.io/min-version";
    /// Prefix of the mirror of the current phase, followed by the generator's field.
    pub const PHASE_PREFIX: &str = "applicationset.argoproj.io/phase-";
    /// Prefix of the mirror of a rollback, followed by the phase's name.
    pub const ROLLBACK_PHASE_PREFIX: &str = "applicationset.argoproj.io/rollback-phase-";
}

/// Finalizers.
pub mod finalizer {
    /// Deletes what the object deployed, in the foreground.
    pub const RESOURCES: &str = "resources-finalizer.argocd.argoproj.io";
    /// The same, said outright.
    pub const RESOURCES_FOREGROUND: &str = "resources-finalizer.argocd.argoproj.io/foreground";
    /// Deletes what the object deployed, in the background.
    pub const RESOURCES_BACKGROUND: &str = "resources-finalizer.argocd.argoproj.io/background";
    /// Runs hooks before deletion; `/cleanup` may follow.
    pub const PRE_DELETE: &str = "pre-delete-finalizer.argocd.argoproj.io";
    /// Runs hooks after deletion; `/cleanup` may follow.
    pub const POST_DELETE: &str = "post-delete-finalizer.argocd.argoproj.io";
}

/// Labels and annotations of Secrets that hold settings.
pub mod secret {
    /// Label that says what the Secret holds.
    pub const TYPE_LABEL: &str = "argocd.argoproj.io/secret-type";
    /// A cluster.
    pub const TYPE_CLUSTER: &str = "cluster";
    /// A repository.
    pub const TYPE_REPOSITORY: &str = "repository";
    /// Credentials for repositories.
    pub const TYPE_REPO_CREDS: &str = "repo-creds";
    /// A repository that rendered manifests are written to.
    pub const TYPE_REPOSITORY_WRITE: &str = "repository-write";
    /// Credentials for repositories that are written to.
    pub const TYPE_REPO_WRITE_CREDS: &str = "repo-write-creds";
    /// Credentials of a source code host.
    pub const TYPE_SCM_CREDS: &str = "scm-creds";
    /// Annotation on Secrets that a controller made.
    pub const MANAGED_BY: &str = "managed-by";
    /// Value of [`MANAGED_BY`].
    pub const MANAGED_BY_ARGOCD: &str = "argocd.argoproj.io";
    /// Label that allows a Secret to be used by hooks, with the value `true`.
    pub const HOOKS_LABEL: &str = "baton.dev/hooks";
}

/// Baton's own annotations and labels.
pub mod baton {
    /// On an Application: the run and pin it was last written for, as `<set uid>/<run>/<n>/<pin hash>`.
    pub const PIN: &str = "baton.dev/pin";
    /// On an Application: the request for a comparison whose answer is known to be in its status, by the value it had as
    /// `refresh-timestamp`.
    pub const COMPARED: &str = "baton.dev/compared";
    /// On an ApplicationSet: the head of its rollout, where no object of its own may hold it.
    pub const ROLLOUT: &str = "baton.dev/rollout";
    /// On an Application: `ordered` sends drift through the steps instead of healing it in place.
    pub const HEAL: &str = "baton.dev/heal";
    /// On an ApplicationSet: the share of Applications that may vanish without approval.
    pub const DELETION_FUSE: &str = "baton.dev/deletion-fuse";
    /// On an ApplicationSet: approves the deletion of exactly the Applications whose fingerprint it is.
    pub const DELETION_APPROVED: &str = "baton.dev/deletion-approved";
    /// On an ApplicationSet: `true` holds its rollout.
    pub const PAUSED: &str = "baton.dev/paused";
    /// On an ApplicationSet: ends the run; a text that was not there before asks anew.
    pub const ABORT: &str = "baton.dev/abort";
    /// On an ApplicationSet: tries again what failed, as `<nonce>` or `<nonce>/<Application>,…`; a text that was not
    /// there before asks anew.
    pub const RETRY: &str = "baton.dev/retry";
    /// On an ApplicationSet with phases: ends the wait of a phase, or goes on after one that failed; a text that was not
    /// there before asks anew.
    pub const ADVANCE: &str = "baton.dev/advance";
    /// On an ApplicationSet with phases: puts back what the present phase changed; a text that was not there before asks
    /// anew.
    pub const ROLLBACK: &str = "baton.dev/rollback";
    /// On an ApplicationSet with phases: puts back what the whole run changed; a text that was not there before asks anew.
    pub const ROLLBACK_ALL: &str = "baton.dev/rollback-all";
    /// On an ApplicationSet: Applications that count as done at a pin, as `<Application>=<pin hash>,…`.
    pub const SKIP: &str = "baton.dev/skip";
    /// On an ApplicationSet: `Finish` ends a run before a newer one begins, `Restart` does not.
    pub const SUPERSEDE: &str = "baton.dev/supersede";
    /// Ending of the name of the ConfigMap that guards the Applications of an ordered set and holds the head of its
    /// rollout.
    pub const GUARD_SUFFIX: &str = ".baton-rollout";
    /// Ending of the name of the ConfigMap that tells how an ordered set was deleted.
    pub const WITNESS_SUFFIX: &str = ".baton-witness";
    /// On an Application: label that names its set.
    pub const SET_LABEL: &str = "baton.dev/application-set";
    /// On what is kept beside a set for its phases: label that names the set.
    pub const PHASES_LABEL: &str = "baton.dev/phases";
    /// On a good state of an Application: label that names the Application.
    pub const APPLICATION_LABEL: &str = "baton.dev/application";
    /// On a resource, beside the approval of its deletion: when, by whom, for which operation and which set.
    pub const APPROVAL: &str = "baton.dev/approval";
    /// On an Application that is being deleted: who asked the server for it.
    pub const DELETION_ASKED_BY: &str = "baton.dev/deletion-asked-by";
    /// On an AppProject: `true` lets tokens of programs approve deletions in it, where a policy allows it.
    pub const TOKENS_APPROVE: &str = "baton.dev/tokens-approve";
    /// On a hook: the operation that created it.
    pub const OPERATION: &str = "baton.dev/operation";
    /// Prefix of every name above.
    pub const PREFIX: &str = "baton.dev/";
}

/// Lease that Argo CD's ApplicationSet controller holds.
pub const APPLICATION_SET_LEASE: &str = "58ac56fa.applicationsets.argoproj.io";
/// Field manager of applied manifests.
pub const FIELD_MANAGER: &str = "argocd-controller";
