//! `baton controller`: the reconcilers, beside a Kubernetes API.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_clusters::OverNetwork;
use baton_controllers::{
    ApplicationController, ApplicationSettings, Controller, Fuse, LeaseTimes, NotificationController,
    NotificationSettings, RunError, Settings,
};
use baton_source::Repositories;
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::hooks::HookArguments;
use crate::machinery::Controllers;
use crate::repositories::RepositoryArguments;
use crate::shutdown::Shutdown;
use crate::traces::TraceArguments;
use crate::{http, machinery, terminal};

/// What a variable holds, by its name.
pub(crate) type Variable<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Prefix of the variables of Argo CD's controller.
const PREFIX: &str = "ARGOCD_APPLICATIONSET_CONTROLLER_";

/// How many Applications generators may drop without approval.
pub(crate) const USUAL_FUSE: Fuse = Fuse::Share(50);

/// What to run.
#[derive(Debug, Args)]
#[command(
    after_help = "Flags and ARGOCD_APPLICATIONSET_CONTROLLER_* variables of Argo CD's ApplicationSet controller \
are read as they are; a flag wins over its variable.

Examples:
  baton controller --kubeconfig .baton/kubeconfig
  baton controller --controllers applicationset,application,notifications
  baton controller --policy create-update --metrics-listen 127.0.0.1:9100
  baton controller --repo https://git.example.com/fleet/config.git=../config"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Which controllers to run.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "applicationset,application",
        value_name = "NAME"
    )]
    controllers: Vec<ControllerName>,
    /// Let only one of several controllers act at a time.
    #[arg(long, alias = "enable-leader-election", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    leader_elect: Option<String>,
    /// How long others believe in a leader that is not heard of: the time until another leads after one vanished.
    #[arg(long, default_value = "8s", value_name = "DURATION", value_parser = crate::apiserver::duration)]
    lease_duration: Duration,
    /// How long a leader goes on that cannot renew its lease.
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = crate::apiserver::duration)]
    renew_deadline: Duration,
    /// How often the lease is renewed, and looked at by who does not lead.
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = crate::apiserver::duration)]
    retry_period: Duration,
    /// Address of /metrics, /healthz and /readyz; nothing is served without it.
    #[arg(long, alias = "metrics-addr", value_name = "ADDR", value_parser = address)]
    metrics_listen: Option<SocketAddr>,
    /// Address of /api/webhook; nothing is served without it.
    #[arg(long, alias = "webhook-addr", value_name = "ADDR", value_parser = address)]
    webhook_listen: Option<SocketAddr>,
    /// Where copies of repositories are kept; without it a directory that goes with the process.
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    #[command(flatten)]
    repositories: RepositoryArguments,
    /// Health and actions of kinds: DIR/<group>/<Kind>/health.lua and actions/…; argocd-cm wins over it. May be repeated.
    #[arg(long, value_name = "DIR")]
    customizations: Vec<PathBuf>,
    /// Run the programs that cluster Secrets name for their credentials (execProviderConfig).
    #[arg(long)]
    allow_cluster_exec: bool,
    /// How many of a set's Applications generators may drop at once without approval: a share such as 50%, or off. The
    /// default is 50%, and off where only the ApplicationSet controller runs.
    #[arg(long, env = "BATON_DELETION_FUSE", value_name = "SHARE", value_parser = |text: &str| text.parse::<Fuse>())]
    deletion_fuse: Option<Fuse>,
    #[command(flatten)]
    hooks: HookArguments,
    #[command(flatten)]
    traces: TraceArguments,
    #[command(flatten)]
    flags: Flags,
}

impl Arguments {
    /// What to log, and whether as JSON, where a flag or variable of Argo CD's says so. Each of its controllers has variables of
    /// its own; those of the first one that runs here count.
    pub(crate) fn log(&self, variable: &Variable<'_>) -> (Option<String>, Option<bool>) {
        let prefix = match self.controllers.first() {
            Some(ControllerName::Application) => "ARGOCD_APPLICATION_CONTROLLER_",
            Some(ControllerName::Notifications) => "ARGOCD_NOTIFICATIONS_CONTROLLER_",
            Some(ControllerName::Applicationset) | None => PREFIX,
        };
        let variable = |name: &str| variable(&format!("{prefix}{name}")).filter(|value| !value.is_empty());
        (self.flags.filter(variable), self.flags.json(variable))
    }

    /// How long one leads without being heard of.
    fn lease(&self) -> Result<LeaseTimes, Failure> {
        let times = LeaseTimes {
            duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
        };
        times.check().map_err(Failure::usage)
    }

    fn application_settings(
        &self,
        namespace: &str,
        leader_election: bool,
    ) -> Result<ApplicationSettings, Failure> {
        let settings = ApplicationSettings::from_environment(namespace, |name| std::env::var(name).ok())
            .map_err(|error| Failure::usage(error.to_string()))?;
        let customizations = crate::health::customizations(&self.customizations)?;
        Ok(ApplicationSettings { leader_election, lease: self.lease()?, customizations, ..settings })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ControllerName {
    /// ApplicationSets: Applications from generators and templates.
    Applicationset,
    /// Applications: from git to clusters.
    Application,
    /// Notifications: who is told what about both. Not beside Argo CD's own, or everything is told twice.
    Notifications,
}

/// Argo CD's flags. Each stands for the variable of the same meaning, so both are read in one place.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of Argo CD's ApplicationSet controller")]
pub(crate) struct Flags {
    /// Namespaces of ApplicationSets beside Argo CD's own: globs, or regular expressions between slashes.
    #[arg(long, value_name = "PATTERNS")]
    applicationset_namespaces: Option<String>,
    /// What may be done to Applications: sync, create-only, create-update or create-delete.
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Let a set choose its own policy; the default is yes where --policy is not given.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    enable_policy_override: Option<String>,
    /// Let the API check every write, and make none.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    dry_run: Option<String>,
    /// Roll out step by step where a set asks for it.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    enable_progressive_syncs: Option<String>,
    /// Match files of git generators with doublestar globs.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    enable_new_git_file_globbing: Option<String>,
    /// How many sets are worked on at once.
    #[arg(long, value_name = "N")]
    concurrent_reconciliations: Option<String>,
    /// How many Applications of one set are written at once.
    #[arg(long, value_name = "N")]
    concurrent_application_updates: Option<String>,
    /// How many Applications are listed in a set's status; 0 is all.
    #[arg(long, value_name = "N")]
    max_resources_status_count: Option<String>,
    /// How often every set is looked at anew.
    #[arg(long, value_name = "DURATION")]
    cache_sync_period: Option<String>,
    /// Annotations of Applications that are left alone.
    #[arg(long, value_name = "KEYS")]
    preserved_annotations: Option<String>,
    /// Labels of Applications that are left alone.
    #[arg(long, value_name = "KEYS")]
    preserved_labels: Option<String>,
    /// Labels of ApplicationSets shown in a metric.
    #[arg(long, value_name = "KEYS")]
    metrics_applicationset_labels: Option<String>,
    /// Whether source code hosts may be asked.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    enable_scm_providers: Option<String>,
    /// Custom URLs of source code hosts that may be asked.
    #[arg(long, value_name = "URLS")]
    allowed_scm_providers: Option<String>,
    /// Certificates to trust source code hosts by.
    #[arg(long, value_name = "FILE")]
    scm_root_ca_path: Option<String>,
    /// Proxy to source code hosts.
    #[arg(long, value_name = "URL")]
    scm_proxy_url: Option<String>,
    /// Hosts that are asked without the proxy.
    #[arg(long, value_name = "HOSTS")]
    scm_no_proxy: Option<String>,
    /// Use a Secret as a token only if its label says that it is one.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    token_ref_strict_mode: Option<String>,
    /// Count requests to GitHub.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    enable_github_api_metrics: Option<String>,
    /// How many webhooks are handled at once.
    #[arg(long, value_name = "N")]
    webhook_parallelism_limit: Option<String>,
    /// Address of the health checks; they are on --metrics-listen too.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    probe_addr: Option<SocketAddr>,
    /// Level of the log: debug, info, warn or error; --log says it more finely.
    #[arg(long, value_name = "LEVEL", value_parser = ["debug", "info", "warn", "error"])]
    pub(crate) loglevel: Option<String>,
    /// Form of the log.
    #[arg(long, value_name = "FORM", value_parser = ["text", "json"])]
    pub(crate) logformat: Option<String>,
    /// Log at level debug.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) debug: Option<String>,
    /// Without effect: repositories are read by this process.
    #[arg(long, value_name = "ADDR", hide = true)]
    argocd_repo_server: Option<String>,
    /// Without effect.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", hide = true)]
    repo_server_plaintext: Option<String>,
    /// Without effect.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", hide = true)]
    repo_server_strict_tls: Option<String>,
    /// Without effect.
    #[arg(long, value_name = "SECONDS", hide = true)]
    repo_server_timeout_seconds: Option<String>,
    /// Given by a flag of Baton's own.
    #[arg(skip)]
    leader_elect: Option<String>,
}

/// An address to listen on; `:8080` is that port on every interface, as Go writes it.
fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    whole.parse().map_err(|_| "write it as ADDRESS:PORT or :PORT".to_owned())
}

impl Flags {
    /// What to log, where a flag or variable of Argo CD's says so.
    fn filter(&self, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        let debug = self.debug.clone().or_else(|| variable("DEBUG"));
        if debug.as_deref() == Some("true") {
            return Some("debug".to_owned());
        }
        self.loglevel.clone().or_else(|| variable("LOGLEVEL"))
    }

    fn json(&self, variable: impl Fn(&str) -> Option<String>) -> Option<bool> {
        self.logformat.clone().or_else(|| variable("LOGFORMAT")).map(|form| form == "json")
    }

    /// Argo CD's defaults, changed by the environment and then by the flags.
    pub(crate) fn settings(&self, namespace: &str) -> Result<Settings, Failure> {
        let given = self.given();
        let flag = |name: &str| {
            let short = name.strip_prefix(PREFIX)?;
            given.iter().find(|(variable, _)| *variable == short).and_then(|(_, value)| (*value).clone())
        };
        Settings::from_environment(namespace, |name| flag(name).or_else(|| std::env::var(name).ok())).map_err(
            |error| {
                // The words of a flag for a flag, those of a variable for a variable.
                let text = error.to_string();
                let flagged = text.split_once('=').and_then(|(name, rest)| flag(name).map(|_| (name, rest)));
                Failure::usage(match flagged {
                    Some((name, rest)) => format!("{}={rest}", spelled(name)),
                    None => text,
                })
            },
        )
    }

    /// The variable a flag stands for.
    fn given(&self) -> [(&'static str, &Option<String>); 22] {
        [
            ("NAMESPACES", &self.applicationset_namespaces),
            ("POLICY", &self.policy),
            ("ENABLE_POLICY_OVERRIDE", &self.enable_policy_override),
            ("DRY_RUN", &self.dry_run),
            ("ENABLE_PROGRESSIVE_SYNCS", &self.enable_progressive_syncs),
            ("ENABLE_NEW_GIT_FILE_GLOBBING", &self.enable_new_git_file_globbing),
            ("CONCURRENT_RECONCILIATIONS", &self.concurrent_reconciliations),
            ("CONCURRENT_APPLICATION_UPDATES", &self.concurrent_application_updates),
            ("MAX_RESOURCES_STATUS_COUNT", &self.max_resources_status_count),
            ("CACHE_SYNC_PERIOD", &self.cache_sync_period),
            ("GLOBAL_PRESERVED_ANNOTATIONS", &self.preserved_annotations),
            ("GLOBAL_PRESERVED_LABELS", &self.preserved_labels),
            ("METRICS_APPLICATIONSET_LABELS", &self.metrics_applicationset_labels),
            ("ENABLE_SCM_PROVIDERS", &self.enable_scm_providers),
            ("ALLOWED_SCM_PROVIDERS", &self.allowed_scm_providers),
            ("SCM_ROOT_CA_PATH", &self.scm_root_ca_path),
            ("SCM_PROXY_URL", &self.scm_proxy_url),
            ("SCM_NO_PROXY", &self.scm_no_proxy),
            ("TOKENREF_STRICT_MODE", &self.token_ref_strict_mode),
            ("ENABLE_GITHUB_API_METRICS", &self.enable_github_api_metrics),
            ("WEBHOOK_PARALLELISM_LIMIT", &self.webhook_parallelism_limit),
            ("ENABLE_LEADER_ELECTION", &self.leader_elect),
        ]
    }
}

/// A variable's name as its flag is written.
fn spelled(variable: &str) -> String {
    let short = variable.strip_prefix(PREFIX).unwrap_or(variable);
    let name = match short {
        "NAMESPACES" => "applicationset-namespaces".to_owned(),
        "ENABLE_LEADER_ELECTION" => "leader-elect".to_owned(),
        "TOKENREF_STRICT_MODE" => "token-ref-strict-mode".to_owned(),
        short => short.strip_prefix("GLOBAL_").unwrap_or(short).to_lowercase().replace('_', "-"),
    };
    format!("--{name}")
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let flags = Flags { leader_elect: arguments.leader_elect.clone(), ..arguments.flags.clone() };
    let mut settings = flags.settings(arguments.connection.namespace())?;
    // Beside Argo CD's own controllers nobody expects to be asked.
    let alone = !arguments.controllers.contains(&ControllerName::Application);
    let usual = if alone { Fuse::Off } else { USUAL_FUSE };
    settings.deletion_fuse = arguments.deletion_fuse.unwrap_or(usual);
    settings.hooks = arguments.hooks.settings()?;
    let (traces, exporting) = arguments.traces.begin()?;
    settings.traces = traces;
    settings.lease = arguments.lease()?;
    let scratch = match &arguments.cache_dir {
        Some(_) => None,
        None => Some(
            tempfile::tempdir()
                .map_err(|error| Failure::failed(format!("no temporary directory: {error}")))?,
        ),
    };
    let cache = match (&arguments.cache_dir, &scratch) {
        (Some(directory), _) => directory.clone(),
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => return Err(Failure::failed("no place for copies of repositories")),
    };
    let repositories = Repositories::new(arguments.repositories.settings(cache.join("repositories")));
    let client = arguments.connection.client().await?;
    let namespace = settings.namespace.clone();
    let workers = settings.webhook_parallelism;
    let leads = settings.leader_election;
    let set_namespaces = settings.application_set_namespaces.clone();
    let usage = |error: RunError| Failure::usage(error.to_string());
    let sets = if arguments.controllers.contains(&ControllerName::Applicationset) {
        let generators = machinery::generators(&settings, repositories.clone())?;
        Some(Controller::new(client.clone(), settings, generators).map_err(usage)?)
    } else {
        None
    };
    let applications = if arguments.controllers.contains(&ControllerName::Application) {
        let settings = arguments.application_settings(&namespace, leads)?;
        let manifests = machinery::manifests(repositories, cache.join("work"));
        let connect = Arc::new(OverNetwork { allow_exec: arguments.allow_cluster_exec });
        Some(ApplicationController::new(client.clone(), settings, manifests, connect).map_err(usage)?)
    } else {
        None
    };
    let notifications = if arguments.controllers.contains(&ControllerName::Notifications) {
        let settings = NotificationSettings::from_environment(&namespace, |name| std::env::var(name).ok())
            .map_err(|error| Failure::usage(error.to_string()))?;
        let settings = NotificationSettings {
            application_set_namespaces: set_namespaces,
            leader_election: leads,
            lease: arguments.lease()?,
            ..settings
        };
        Some(NotificationController::new(client, settings).map_err(usage)?)
    } else {
        None
    };
    let controllers = Controllers { sets, applications, notifications };
    let metrics = listen(arguments.metrics_listen).await?;
    let probes = listen(arguments.flags.probe_addr).await?;
    let webhooks = listen(arguments.webhook_listen).await?;
    let webhook_endpoint = async {
        let Some(sets) = &controllers.sets else { return std::future::pending().await };
        let (router, work) = machinery::webhook_endpoint(sets.clone(), workers);
        tokio::select! {
            ended = serve(webhooks, router) => match ended {},
            () = work => {}
        }
    };

    let mut shutdown = Shutdown::listen();
    let watched = match (&controllers.sets, &controllers.applications) {
        (Some(_), Some(_)) => "ApplicationSets and Applications",
        (Some(_), None) => "ApplicationSets",
        (None, Some(_)) => "Applications",
        (None, None) => "whom to tell about ApplicationSets and Applications",
    };
    terminal::remark(&format!(
        "Watching {watched} (Argo CD's namespace: {namespace}). Press Ctrl-C to stop."
    ));
    tokio::select! {
        ended = controllers.run(shutdown.asked()) => ended.map_err(|error| Failure::failed(error.to_string()))?,
        ended = serve(metrics, controllers.router()) => match ended {},
        ended = serve(probes, controllers.router()) => match ended {},
        () = webhook_endpoint => {}
    }
    exporting.end().await;
    terminal::remark("Stopped.");
    Ok(())
}

async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Failure> {
    let Some(address) = address else { return Ok(None) };
    match TcpListener::bind(address).await {
        Ok(listener) => {
            let bound = listener.local_addr().unwrap_or(address);
            terminal::remark(&format!("Listening on http://{bound}"));
            Ok(Some(listener))
        }
        Err(error) => Err(Failure::failed(format!("cannot listen on {address}: {error}"))),
    }
}

async fn serve(listener: Option<TcpListener>, router: axum::Router) -> Infallible {
    match listener {
        Some(listener) => http::serve(listener, router).await,
        None => std::future::pending().await,
    }
}
