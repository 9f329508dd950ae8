//! `baton controller`: the reconcilers, beside a Kubernetes API.

use std::convert::Infallible;
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
use crate::listening::{Address, listen};
use crate::logging::Wanted;
use crate::machinery::Controllers;
use crate::repositories::RepositoryArguments;
use crate::shutdown::Shutdown;
use crate::traces::TraceArguments;
use crate::{http, logging, machinery, terminal};

/// What a variable holds, by its name.
pub(crate) type Variable<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Prefix of the variables of Argo CD's controller.
const PREFIX: &str = "ARGOCD_APPLICATIONSET_CONTROLLER_";

/// How many Applications generators may drop without approval.
pub(crate) const USUAL_FUSE: Fuse = Fuse::Share(50);

/// What to run.
#[derive(Debug, Args)]
#[command(
    // As Go's flags: of one that is given twice the last counts.
    args_override_self = true,
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
    /// Address of /metrics, /healthz and /readyz; nothing is served without it, or with 0.
    #[arg(long, alias = "metrics-addr", value_name = "ADDR")]
    metrics_listen: Option<Address>,
    /// Address of /api/webhook; nothing is served without it, or with 0.
    #[arg(long, alias = "webhook-addr", value_name = "ADDR")]
    webhook_listen: Option<Address>,
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
    ///
    /// # Errors
    /// A value that cannot be read, with its name.
    pub(crate) fn log(&self, variable: &Variable<'_>) -> Result<Wanted, Failure> {
        let prefix = match self.controllers.first() {
            Some(ControllerName::Application) => "ARGOCD_APPLICATION_CONTROLLER_",
            Some(ControllerName::Notifications) => "ARGOCD_NOTIFICATIONS_CONTROLLER_",
            Some(ControllerName::Applicationset) | None => PREFIX,
        };
        let read = |name: &str, read: fn(&str) -> Result<String, String>| {
            let name = format!("{prefix}{name}");
            let Some(value) = variable(&name).filter(|value| !value.is_empty()) else { return Ok(None) };
            let refused = |how| Failure::usage(format!("{name}={value:?}: {how}"));
            read(&value).map(Some).map_err(refused)
        };
        // All are looked at, so that one that cannot be read is told whatever the others say.
        let [debug, level, form] =
            [read("DEBUG", switch)?, read("LOGLEVEL", logging::level)?, read("LOGFORMAT", logging::form)?];
        let flags = &self.flags;
        let debug = flags.debug.clone().or(debug).is_some_and(|debug| debug == "true");
        let level = flags.loglevel.clone().or(level);
        let form = flags.logformat.clone().or(form);
        Ok(Wanted {
            filter: if debug { Some("debug".to_owned()) } else { level },
            json: form.map(|form| form == "json"),
        })
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
    applicationset_namespaces: Vec<String>,
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
    preserved_annotations: Vec<String>,
    /// Labels of Applications that are left alone.
    #[arg(long, value_name = "KEYS")]
    preserved_labels: Vec<String>,
    /// Labels of ApplicationSets shown in a metric.
    #[arg(long, value_name = "KEYS")]
    metrics_applicationset_labels: Vec<String>,
    /// Whether source code hosts may be asked.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    enable_scm_providers: Option<String>,
    /// Custom URLs of source code hosts that may be asked.
    #[arg(long, value_name = "URLS")]
    allowed_scm_providers: Vec<String>,
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
    #[arg(long, value_name = "ADDR")]
    probe_addr: Option<Address>,
    /// Level of the log: trace, debug, info, warn or error; --log says it more finely.
    #[arg(long, value_name = "LEVEL", value_parser = logging::level)]
    pub(crate) loglevel: Option<String>,
    /// Form of the log: text or json.
    #[arg(long, value_name = "FORM", value_parser = logging::form)]
    pub(crate) logformat: Option<String>,
    /// Log at level debug.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = switch)]
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

/// What every program of Argo CD's takes about its way to the API.
pub(crate) const CLIENT: [&str; 19] = [
    "as",
    "as-group",
    "as-uid",
    "certificate-authority",
    "client-certificate",
    "client-key",
    "cluster",
    "context",
    "disable-compression",
    "insecure-skip-tls-verify",
    "kubeconfig",
    "password",
    "proxy-url",
    "request-timeout",
    "server",
    "tls-server-name",
    "token",
    "user",
    "username",
];

/// What to do instead of a flag that Argo CD's programs take and this one does not.
pub(crate) fn instead(flag: &str) -> Option<String> {
    let name = flag.strip_prefix("--")?.split('=').next()?;
    CLIENT.contains(&name).then(|| {
        format!("--{name} is about the way to the API: say it in a kubeconfig, and name that with --kubeconfig and --context")
    })
}

/// A flag that is on or off, as Go reads it.
fn switch(text: &str) -> Result<String, String> {
    baton_controllers::switch(text).map(|on| on.to_string()).ok_or_else(|| "must be true or false".to_owned())
}

impl Flags {
    /// Argo CD's defaults, changed by the environment and then by the flags.
    pub(crate) fn settings(&self, namespace: &str) -> Result<Settings, Failure> {
        let given = self.given();
        let flag = |name: &str| {
            let short = name.strip_prefix(PREFIX)?;
            given.iter().find(|(variable, _)| *variable == short).and_then(|(_, value)| value.clone())
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
    fn given(&self) -> [(&'static str, Option<String>); 22] {
        let one = |value: &Option<String>| value.clone();
        // A list may be given in parts.
        let all = |values: &[String]| (!values.is_empty()).then(|| values.join(","));
        [
            ("NAMESPACES", all(&self.applicationset_namespaces)),
            ("POLICY", one(&self.policy)),
            ("ENABLE_POLICY_OVERRIDE", one(&self.enable_policy_override)),
            ("DRY_RUN", one(&self.dry_run)),
            ("ENABLE_PROGRESSIVE_SYNCS", one(&self.enable_progressive_syncs)),
            ("ENABLE_NEW_GIT_FILE_GLOBBING", one(&self.enable_new_git_file_globbing)),
            ("CONCURRENT_RECONCILIATIONS", one(&self.concurrent_reconciliations)),
            ("CONCURRENT_APPLICATION_UPDATES", one(&self.concurrent_application_updates)),
            ("MAX_RESOURCES_STATUS_COUNT", one(&self.max_resources_status_count)),
            ("CACHE_SYNC_PERIOD", one(&self.cache_sync_period)),
            ("GLOBAL_PRESERVED_ANNOTATIONS", all(&self.preserved_annotations)),
            ("GLOBAL_PRESERVED_LABELS", all(&self.preserved_labels)),
            ("METRICS_APPLICATIONSET_LABELS", all(&self.metrics_applicationset_labels)),
            ("ENABLE_SCM_PROVIDERS", one(&self.enable_scm_providers)),
            ("ALLOWED_SCM_PROVIDERS", all(&self.allowed_scm_providers)),
            ("SCM_ROOT_CA_PATH", one(&self.scm_root_ca_path)),
            ("SCM_PROXY_URL", one(&self.scm_proxy_url)),
            ("SCM_NO_PROXY", one(&self.scm_no_proxy)),
            ("TOKENREF_STRICT_MODE", one(&self.token_ref_strict_mode)),
            ("ENABLE_GITHUB_API_METRICS", one(&self.enable_github_api_metrics)),
            ("WEBHOOK_PARALLELISM_LIMIT", one(&self.webhook_parallelism_limit)),
            ("ENABLE_LEADER_ELECTION", one(&self.leader_elect)),
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
    let metrics = listen(arguments.metrics_listen.as_ref()).await?;
    let probes = listen(arguments.flags.probe_addr.as_ref()).await?;
    let webhooks = listen(arguments.webhook_listen.as_ref()).await?;
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

async fn serve(listener: Option<TcpListener>, router: axum::Router) -> Infallible {
    match listener {
        Some(listener) => http::serve(listener, router).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn read(words: &[&str]) -> Arguments {
        let line = Line::try_parse_from([&["baton"], words].concat());
        line.unwrap_or_else(|error| panic!("{words:?}: {error}")).arguments
    }

    #[test]
    fn flags_may_be_repeated_as_go_lets_them_be() {
        let words =
            ["--preserved-labels", "a", "--preserved-labels=b,c", "--policy", "sync", "--policy=create-only"];
        let arguments =
            read(&[&words[..], &["--cache-sync-period=1h", "--cache-sync-period=2h", "--dry-run"]].concat());
        let settings = arguments.flags.settings("argocd").expect("settings");
        assert_eq!(settings.preserved_labels, ["a", "b", "c"]);
        assert_eq!(settings.policy, Some(baton_controllers::Policy::CreateOnly));
        assert_eq!(settings.cache_sync_period, Duration::from_secs(2 * 3600));
        let twice = read(&["--customizations", "a", "--customizations", "b"]);
        assert_eq!(twice.customizations.len(), 2, "what may be repeated still may");
    }

    #[test]
    fn argo_cds_words_about_the_log_are_taken_and_no_others() {
        let of = |words: &[&str], variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let (_, value) = variables.iter().find(|(key, _)| name.strip_prefix(PREFIX) == Some(key))?;
                Some((*value).to_owned())
            };
            read(words).log(&variable).map(|wanted| (wanted.filter, wanted.json))
        };
        let said = |filter: &str, json: Option<bool>| (Some(filter.to_owned()), json);
        for (words, variables, expected) in [
            (&["--loglevel", "INFO", "--logformat", "JSON"][..], &[][..], said("info", Some(true))),
            (
                &["--loglevel=warning"],
                &[("LOGLEVEL", "debug"), ("LOGFORMAT", "Text")],
                said("warn", Some(false)),
            ),
            (&["--debug=1"], &[("LOGLEVEL", "trace")], said("debug", None)),
            (&[], &[("DEBUG", ""), ("LOGLEVEL", "trace")], said("trace", None)),
            (&["--debug=false"], &[("DEBUG", "true"), ("LOGLEVEL", "error")], said("error", None)),
        ] {
            assert_eq!(of(words, variables).expect("a log"), expected, "{words:?} {variables:?}");
        }
        for (name, value) in [("DEBUG", "bogus"), ("LOGLEVEL", "bogus"), ("LOGFORMAT", "xml")] {
            let refused =
                of(&["--loglevel=info", "--logformat=json"], &[(name, value)]).expect_err("refused");
            let start = format!("{PREFIX}{name}={value:?}: must be ");
            assert!(refused.to_string().starts_with(&start), "{refused}");
        }
        assert!(Line::try_parse_from(["baton", "--debug=bogus"]).is_err());
    }
}
