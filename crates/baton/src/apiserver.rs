//! `baton apiserver`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use baton_apiserver::{
    Authorization, Cluster, Credentials, Options, WorkloadSettings, serve_with, write_private,
};
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::lock::Lock;
use crate::shutdown::Shutdown;
use crate::terminal;

/// How to serve.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  baton apiserver --listen 127.0.0.1:6443 --data-dir .baton-api &
  kubectl --kubeconfig .baton-api/kubeconfig get namespaces")]
pub(crate) struct Arguments {
    /// Address to serve on; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:6443", value_name = "ADDR")]
    listen: SocketAddr,
    /// Where the kubeconfig goes, and the objects unless --ephemeral.
    #[arg(long, default_value = ".baton-api", value_name = "DIR")]
    data_dir: PathBuf,
    /// Keep objects in memory only.
    #[arg(long)]
    ephemeral: bool,
    /// Who may do what: whoever gets in anything, or what Roles and bindings grant (the owner anything still). With rbac,
    /// `kubectl create token` gives tokens of service accounts.
    #[arg(long, value_enum, default_value = "always-allow", value_name = "MODE")]
    authorization_mode: AuthorizationMode,
    #[command(flatten)]
    simulation: Simulation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthorizationMode {
    AlwaysAllow,
    Rbac,
}

/// How the simulated workloads behave.
#[derive(Debug, Clone, Args)]
pub(crate) struct Simulation {
    /// How long a Pod takes to become ready.
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = duration)]
    ready_delay: Duration,
    /// Nodes of each simulated cluster.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=5000))]
    nodes: u16,
}

impl Simulation {
    /// Options for a cluster that behaves so.
    pub(crate) fn options(&self) -> Options {
        let settings = WorkloadSettings { ready_delay: self.ready_delay, ..WorkloadSettings::default() };
        Options { workloads: Some(settings), nodes: self.nodes.into(), ..Options::default() }
    }
}

/// Reads a duration such as `1s` or `1m30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let read: baton_grammar::duration::Duration =
        text.parse().map_err(|_| "expected a duration such as 500ms, 2s or 1m30s".to_owned())?;
    read.to_std().ok_or_else(|| "must not be negative".to_owned())
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut shutdown = Shutdown::listen();
    tokio::select! {
        ended = serve(&arguments) => ended.map(|never| match never {}),
        () = shutdown.asked() => Ok(()),
    }
}

/// Serves until it is dropped.
async fn serve(arguments: &Arguments) -> Result<Infallible, Failure> {
    let directory = &arguments.data_dir;
    let _lock = Lock::take(directory)?;
    let credentials = match arguments.ephemeral {
        true => Credentials::generate()?,
        false => Credentials::load_or_generate(&directory.join("pki"))?,
    };
    let authorization = match arguments.authorization_mode {
        AuthorizationMode::AlwaysAllow => Authorization::Owner,
        AuthorizationMode::Rbac => Authorization::Rbac(credentials.service_account_key().clone()),
    };
    let options = Options { authorization, ..arguments.simulation.options() };
    let cluster = match arguments.ephemeral {
        true => Cluster::memory(options),
        false => Cluster::open(&directory.join("store"), options).await?,
    };
    let server = serve_with(cluster, arguments.listen, credentials).await?;
    let kubeconfig = directory.join("kubeconfig");
    write_private(&kubeconfig, &server.kubeconfig())
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", kubeconfig.display())))?;
    terminal::tell(&format!("Kubernetes API on https://{}", server.addr()));
    terminal::tell(&format!("  kubectl --kubeconfig {} get namespaces", kubeconfig.display()));
    std::future::pending().await
}
