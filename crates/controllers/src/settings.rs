//! What an operator can choose: Argo CD's flags of the ApplicationSet controller, and its environment.

use std::path::PathBuf;
use std::time::Duration;

use baton_api::application_set::{ApplicationSetSyncPolicy, ApplicationsSync};

use baton_rollout::fuse::Fuse;
use baton_traces::Traces;

use crate::clock::Clock;
use crate::environment::Environment;
use crate::leader::LeaseTimes;
use crate::namespaces::{AllowedNamespaces, PatternError};

/// Prefix of the environment variables.
const PREFIX: &str = "ARGOCD_APPLICATIONSET_CONTROLLER_";
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Settings of the ApplicationSet controller. Names and defaults are those of Argo CD's flags.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Argo CD's namespace: that of projects, clusters and repositories.
    pub namespace: String,
    /// Other namespaces ApplicationSets may live in: globs, and regular expressions between slashes.
    pub application_set_namespaces: Vec<String>,
    /// What may be done to Applications; unset is everything.
    pub policy: Option<Policy>,
    /// Whether a set may choose its own policy; unset is "if `policy` is unset".
    pub policy_override: Option<bool>,
    /// Ask the API to check every write and to make none.
    pub dry_run: bool,
    /// Roll out step by step where a set asks for it.
    pub progressive_syncs: bool,
    /// Annotations of Applications that are left alone.
    pub preserved_annotations: Vec<String>,
    /// Labels of Applications that are left alone.
    pub preserved_labels: Vec<String>,
    /// How many sets are worked on at once.
    pub concurrent_reconciliations: usize,
    /// How many Applications of one set are written at once.
    pub concurrent_application_updates: usize,
    /// How many Applications are listed in a set's status; 0 is all.
    pub max_resources_status_count: usize,
    /// Labels of ApplicationSets shown in a metric.
    pub metrics_labels: Vec<String>,
    /// How often every set is looked at anew; zero is never.
    pub cache_sync_period: Duration,
    /// How often git and cluster decisions are looked at, where a generator does not say.
    pub requeue_after: Duration,
    /// Match files of git generators with doublestar globs.
    pub new_git_file_globbing: bool,
    /// Whether source code hosts may be asked.
    pub scm_providers: bool,
    /// Custom URLs of source code hosts that may be asked; empty is any.
    pub allowed_scm_providers: Vec<String>,
    /// Certificates to trust source code hosts by.
    pub scm_root_ca: Option<PathBuf>,
    /// Proxy to source code hosts.
    pub scm_proxy_url: String,
    /// Hosts that are asked without the proxy, separated by commas.
    pub scm_no_proxy: String,
    /// Use a Secret as a token only if its label says that it is one.
    pub token_ref_strict_mode: bool,
    /// Count requests to GitHub.
    pub github_api_metrics: bool,
    /// How many webhooks are handled at once.
    pub webhook_parallelism: usize,
    /// Let only one controller act.
    pub leader_election: bool,
    /// How long it leads without being heard of.
    pub lease: LeaseTimes,
    /// How many of a set's Applications generators may drop at once without approval. Baton's own; Argo CD has none.
    pub deletion_fuse: Fuse,
    /// What hooks and checks of phased deployments may do. Baton's own; Argo CD has none.
    pub hooks: HookSettings,
    /// Who is told of runs that have ended. Baton's own; Argo CD has none.
    pub traces: Traces,
    /// Where dates come from.
    pub clock: Clock,
    /// Decides the jitter of retries.
    pub seed: u64,
}

/// What an operator decides about the hooks and checks of phased deployments. Where nothing is said there are no commands,
/// no calls to addresses that lead inward, none without TLS, and none for sets outside Argo CD's namespace.
#[derive(Debug, Clone, Default)]
pub struct HookSettings {
    /// What calls and commands may do.
    pub calls: baton_hooks::Settings,
    /// Other namespaces whose sets may make HTTP calls: globs, and regular expressions between slashes. Commands are for
    /// sets in Argo CD's namespace only.
    pub namespaces: Vec<String>,
}

/// What may be done to Applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Create.
    CreateOnly,
    /// Create and update.
    CreateUpdate,
    /// Create and delete.
    CreateDelete,
    /// Create, update and delete.
    Sync,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A value that cannot be read or is out of bounds.
    #[error("{name}={value:?}: {expected}")]
    Value {
        /// The environment variable.
        name: String,
        /// What it holds.
        value: String,
        /// What it may hold.
        expected: String,
    },
    /// A namespace pattern that cannot be read.
    #[error(transparent)]
    Namespace(#[from] PatternError),
    /// Several namespaces with unlimited source code hosts: a team could have its tokens' requests sent anywhere.
    #[error(
        "When enabling applicationset in any namespace using applicationset-namespaces, you must either set \
         --enable-scm-providers=false or specify --allowed-scm-providers"
    )]
    UnlimitedScmProviders,
    /// The controller's namespace is not given.
    #[error("the namespace of Argo CD must be given")]
    NoNamespace,
}

// === impl Policy ===

impl Policy {
    /// The policy of this name; empty is none.
    pub fn named(name: &str) -> Option<Option<Policy>> {
        match name {
            "" => Some(None),
            "create-only" => Some(Some(Policy::CreateOnly)),
            "create-update" => Some(Some(Policy::CreateUpdate)),
            "create-delete" => Some(Some(Policy::CreateDelete)),
            "sync" => Some(Some(Policy::Sync)),
            _ => None,
        }
    }

    /// Whether Applications may be changed.
    pub fn allows_update(self) -> bool {
        matches!(self, Policy::CreateUpdate | Policy::Sync)
    }

    /// Whether Applications may be deleted.
    pub fn allows_delete(self) -> bool {
        matches!(self, Policy::CreateDelete | Policy::Sync)
    }
}

// === impl Settings ===

impl Settings {
    /// Argo CD's defaults.
    pub fn new(namespace: impl Into<String>) -> Settings {
        Settings {
            namespace: namespace.into(),
            application_set_namespaces: Vec::new(),
            policy: None,
            policy_override: None,
            dry_run: false,
            progressive_syncs: false,
            preserved_annotations: Vec::new(),
            preserved_labels: Vec::new(),
            concurrent_reconciliations: 10,
            concurrent_application_updates: 1,
            max_resources_status_count: 5000,
            metrics_labels: Vec::new(),
            cache_sync_period: Duration::from_secs(10 * 3600),
            requeue_after: Duration::from_secs(180),
            new_git_file_globbing: false,
            scm_providers: true,
            allowed_scm_providers: Vec::new(),
            scm_root_ca: None,
            scm_proxy_url: String::new(),
            scm_no_proxy: String::new(),
            token_ref_strict_mode: false,
            github_api_metrics: false,
            webhook_parallelism: 50,
            leader_election: false,
            lease: LeaseTimes::default(),
            deletion_fuse: Fuse::Off,
            hooks: HookSettings::default(),
            traces: Traces::default(),
            clock: Clock::System,
            seed: 0,
        }
    }

    /// Argo CD's defaults, changed by what `variable` finds under `ARGOCD_APPLICATIONSET_CONTROLLER_…`.
    ///
    /// # Errors
    /// The first value that cannot be read or is out of bounds. Argo CD logs such a value and goes on with the default.
    pub fn from_environment(
        namespace: impl Into<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, SettingsError> {
        let defaults = Settings::new(namespace);
        let environment = Environment::new(PREFIX, variable);
        let policy_name = environment.text("POLICY").unwrap_or_default();
        let policy = Policy::named(&policy_name).ok_or_else(|| {
            let expected = "must be sync, create-only, create-update, create-delete or empty".to_owned();
            SettingsError::Value { name: format!("{PREFIX}POLICY"), value: policy_name, expected }
        })?;
        Ok(Settings {
            application_set_namespaces: environment.list("NAMESPACES"),
            policy,
            policy_override: environment.switch("ENABLE_POLICY_OVERRIDE")?,
            dry_run: environment.switch("DRY_RUN")?.unwrap_or(false),
            progressive_syncs: environment.switch("ENABLE_PROGRESSIVE_SYNCS")?.unwrap_or(false),
            preserved_annotations: environment.list("GLOBAL_PRESERVED_ANNOTATIONS"),
            preserved_labels: environment.list("GLOBAL_PRESERVED_LABELS"),
            concurrent_reconciliations: environment.number(
                "CONCURRENT_RECONCILIATIONS",
                defaults.concurrent_reconciliations,
                1,
                usize::MAX,
            )?,
            concurrent_application_updates: environment.number(
                "CONCURRENT_APPLICATION_UPDATES",
                defaults.concurrent_application_updates,
                1,
                200,
            )?,
            max_resources_status_count: environment.number(
                "MAX_RESOURCES_STATUS_COUNT",
                defaults.max_resources_status_count,
                0,
                usize::MAX,
            )?,
            metrics_labels: environment.list("METRICS_APPLICATIONSET_LABELS"),
            cache_sync_period: environment.duration(
                "CACHE_SYNC_PERIOD",
                defaults.cache_sync_period,
                Duration::ZERO,
                DAY,
            )?,
            requeue_after: environment.duration(
                "REQUEUE_AFTER",
                defaults.requeue_after,
                Duration::from_secs(1),
                YEAR,
            )?,
            new_git_file_globbing: environment.switch("ENABLE_NEW_GIT_FILE_GLOBBING")?.unwrap_or(false),
            scm_providers: environment.switch("ENABLE_SCM_PROVIDERS")?.unwrap_or(true),
            allowed_scm_providers: environment.list("ALLOWED_SCM_PROVIDERS"),
            scm_root_ca: environment.text("SCM_ROOT_CA_PATH").map(PathBuf::from),
            scm_proxy_url: environment.text("SCM_PROXY_URL").unwrap_or_default(),
            scm_no_proxy: environment.text("SCM_NO_PROXY").unwrap_or_default(),
            token_ref_strict_mode: environment.switch("TOKENREF_STRICT_MODE")?.unwrap_or(false),
            github_api_metrics: environment.switch("ENABLE_GITHUB_API_METRICS")?.unwrap_or(false),
            webhook_parallelism: environment.number(
                "WEBHOOK_PARALLELISM_LIMIT",
                defaults.webhook_parallelism,
                1,
                1000,
            )?,
            leader_election: environment.switch("ENABLE_LEADER_ELECTION")?.unwrap_or(false),
            ..defaults
        })
    }

    /// The policy of a set.
    pub fn policy_of(&self, sync_policy: Option<&ApplicationSetSyncPolicy>) -> Policy {
        let own = sync_policy.map(|policy| &policy.applications_sync).filter(|word| !word.is_unset());
        let may_override = self.policy_override.unwrap_or(self.policy.is_none());
        match own {
            Some(word) if may_override => match word {
                ApplicationsSync::CreateUpdate => Policy::CreateUpdate,
                ApplicationsSync::CreateDelete => Policy::CreateDelete,
                ApplicationsSync::Sync => Policy::Sync,
                // The CRD lets no other word pass; if one does, the least is done.
                ApplicationsSync::CreateOnly | ApplicationsSync::Other(_) => Policy::CreateOnly,
            },
            _ => self.policy.unwrap_or(Policy::Sync),
        }
    }

    /// The namespaces ApplicationSets may live in.
    ///
    /// # Errors
    /// Patterns that cannot be read, no namespace at all, or several without a limit on source code hosts.
    pub fn allowed_namespaces(&self) -> Result<AllowedNamespaces, SettingsError> {
        if self.namespace.is_empty() {
            return Err(SettingsError::NoNamespace);
        }
        let allowed = AllowedNamespaces::new(&self.namespace, &self.application_set_namespaces)?;
        if allowed.only().is_none() && self.scm_providers && self.allowed_scm_providers.is_empty() {
            return Err(SettingsError::UnlimitedScmProviders);
        }
        Ok(allowed)
    }

    /// The namespaces whose sets may make HTTP calls.
    ///
    /// # Errors
    /// A pattern that cannot be read.
    pub fn hook_namespaces(&self) -> Result<AllowedNamespaces, PatternError> {
        AllowedNamespaces::new(&self.namespace, &self.hooks.namespaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from_environment("argocd", |name| {
            let name = name.strip_prefix(PREFIX)?;
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_environment_gives_the_defaults() {
        assert_eq!(
            format!("{:?}", read(&[])),
            format!("{:?}", Ok::<_, SettingsError>(Settings::new("argocd")))
        );
    }

    #[test]
    fn variables_change_what_they_name() {
        let settings = read(&[
            ("NAMESPACES", "team-*, other"),
            ("POLICY", "create-update"),
            ("DRY_RUN", "T"),
            ("CONCURRENT_APPLICATION_UPDATES", "20"),
            ("REQUEUE_AFTER", "1m30s"),
            ("ENABLE_SCM_PROVIDERS", "false"),
            ("METRICS_APPLICATIONSET_LABELS", "team,env"),
        ])
        .expect("settings");
        assert_eq!(settings.application_set_namespaces, ["team-*", "other"]);
        assert_eq!(settings.policy, Some(Policy::CreateUpdate));
        assert!(settings.dry_run && !settings.scm_providers);
        assert_eq!(settings.concurrent_application_updates, 20);
        assert_eq!(settings.requeue_after, Duration::from_secs(90));
        assert_eq!(settings.metrics_labels, ["team", "env"]);
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (name, value, expected) in [
            ("POLICY", "delete-all", "must be sync, create-only, create-update, create-delete or empty"),
            ("DRY_RUN", "yes", "must be true or false"),
            ("CONCURRENT_APPLICATION_UPDATES", "201", "must be a whole number from 1 to 200"),
            ("CONCURRENT_RECONCILIATIONS", "0", "must be a whole number of at least 1"),
            ("REQUEUE_AFTER", "0s", "must be a duration from 1 s to 31536000 s"),
            ("CACHE_SYNC_PERIOD", "-1s", "must be a duration from 0 s to 86400 s"),
            ("REQUEUE_AFTER", "soon", "time: invalid duration \"soon\""),
        ] {
            let error = read(&[(name, value)]).expect_err("refused").to_string();
            assert_eq!(error, format!("{PREFIX}{name}={value:?}: {expected}"));
        }
    }

    #[test]
    fn a_set_chooses_its_policy_only_where_it_may() {
        let wish = |word: &str| ApplicationSetSyncPolicy {
            applications_sync: ApplicationsSync::from(word.to_owned()),
            ..ApplicationSetSyncPolicy::default()
        };
        let mut settings = Settings::new("argocd");
        assert_eq!(settings.policy_of(None), Policy::Sync);
        assert_eq!(settings.policy_of(Some(&wish(""))), Policy::Sync);
        assert_eq!(settings.policy_of(Some(&wish("create-delete"))), Policy::CreateDelete);
        settings.policy = Some(Policy::CreateUpdate);
        assert_eq!(settings.policy_of(Some(&wish("sync"))), Policy::CreateUpdate);
        settings.policy_override = Some(true);
        assert_eq!(settings.policy_of(Some(&wish("sync"))), Policy::Sync);
    }

    #[test]
    fn several_namespaces_need_a_limit_on_source_code_hosts() {
        let mut settings = Settings::new("argocd");
        assert!(settings.allowed_namespaces().is_ok());
        settings.application_set_namespaces = vec!["team-*".to_owned()];
        assert_eq!(settings.allowed_namespaces().err(), Some(SettingsError::UnlimitedScmProviders));
        settings.allowed_scm_providers = vec!["https://git.example.com".to_owned()];
        assert!(settings.allowed_namespaces().is_ok());
    }
}
