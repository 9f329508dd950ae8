//! `baton dev lag-proxy`.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_apiserver::write_private;
use baton_lag::{Faults, Proxy, serve};
use clap::Args;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::apiserver::duration;
use crate::failure::Failure;
use crate::shutdown::Shutdown;
use crate::{connection, terminal};

/// How often the numbers go to the log.
const EVERY: Duration = Duration::from_secs(60);
/// How long a proxy that runs takes to be noticed.
const ANSWERS: Duration = Duration::from_millis(500);

/// Where to stand, and what to do there.
#[derive(Debug, Args)]
#[command(
    after_help = "Writes and reads of single objects pass as they are. Only who has the token in the written \
kubeconfig is let in, for the proxy acts with the credentials it has for the cluster. exec, attach and port-forward are \
not passed on.

Each watch of a collection has its own delay, kept for its life, up to --delay; a quarter of them are prompt. A watch that \
goes on from a resourceVersion is refused with 410 Gone in --gone of 100 cases, so that its client lists anew and never \
sees what happened between.

Examples:
  baton dev lag-proxy --kubeconfig .baton/kubeconfig --write-kubeconfig lag.kubeconfig
  baton controller --kubeconfig lag.kubeconfig
  baton dev lag-proxy --delay 20s --cut 0s --seed 7     late and never cut, as in an earlier run

Exit codes: 0 stopped; 1 usage; 3 it cannot listen or write its kubeconfig"
)]
pub(crate) struct Arguments {
    /// Kubeconfig of the cluster; without it $KUBECONFIG, ~/.kube/config or the pod's own account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The cluster's URL, instead of a kubeconfig.
    #[arg(long, value_name = "URL", conflicts_with_all = ["kubeconfig", "context"])]
    upstream: Option<http::Uri>,
    /// Certificates to trust the URL by.
    #[arg(long, value_name = "FILE", requires = "upstream")]
    upstream_ca: Option<PathBuf>,
    /// File with the token for the URL.
    #[arg(long, value_name = "FILE", requires = "upstream")]
    upstream_token_file: Option<PathBuf>,
    /// Address to serve on; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    listen: SocketAddr,
    /// Where the kubeconfig for the proxy's clients goes.
    #[arg(long, default_value = "lag-proxy.kubeconfig", value_name = "FILE")]
    write_kubeconfig: PathBuf,
    /// Longest delay of a watch's events.
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = at_most_an_hour)]
    delay: Duration,
    /// Longest life of a watch; 0s cuts none.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = at_most_an_hour)]
    cut: Duration,
    /// Of 100 watches that go on from a version, how many are refused with 410 Gone.
    #[arg(long, default_value_t = 25, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    gone: u8,
    /// Of 100 lists with resourceVersion=0, how many are answered with an earlier answer.
    #[arg(long, default_value_t = 10, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    stale_lists: u8,
    /// Answer lists without a resourceVersion so too, which no API server does.
    #[arg(long)]
    stale_consistent_lists: bool,
    /// Where all choices come from; without it a new one, which is told.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Longer ones would only look like a proxy that hangs.
fn at_most_an_hour(text: &str) -> Result<Duration, String> {
    let read = duration(text)?;
    if read > Duration::from_secs(3600) { Err("must be an hour at most".to_owned()) } else { Ok(read) }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut shutdown = Shutdown::listen();
    let faults = Faults {
        seed: arguments.seed.unwrap_or_else(rand::random),
        delay: arguments.delay,
        cut: Some(arguments.cut).filter(|cut| !cut.is_zero()),
        gone: arguments.gone,
        stale_lists: arguments.stale_lists,
        stale_consistent_lists: arguments.stale_consistent_lists,
    };
    let seed = faults.seed;
    let kubeconfig = &arguments.write_kubeconfig;
    if let Some(why) = is_needed(kubeconfig) {
        return Err(Failure::usage(format!(
            "{} {why}; name another with --write-kubeconfig",
            kubeconfig.display()
        )));
    }
    let config = arguments.cluster().await?;
    let cluster = config.cluster_url.host().unwrap_or_default().to_owned();
    let proxy = serve(client(config)?, faults, arguments.listen).await?;
    write_private(kubeconfig, &proxy.kubeconfig())
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", kubeconfig.display())))?;
    terminal::tell(&format!("Lagging proxy before {cluster} on https://{}, seed {seed}", proxy.addr()));
    terminal::tell(&format!("  kubectl --kubeconfig {} get pods --watch", kubeconfig.display()));
    tokio::select! {
        () = shutdown.asked() => {}
        () = tell_now_and_then(&proxy) => {}
    }
    terminal::tell(&format!("Seed {seed}: {}", proxy.counts()));
    Ok(())
}

/// Why a file is not to be written over, if so: who names the kubeconfig of the cluster would lose its credentials, and the
/// clients of a proxy that runs would lose theirs.
fn is_needed(path: &Path) -> Option<&'static str> {
    // What cannot be read is told of when writing is tried.
    let text = std::fs::read_to_string(path).ok().filter(|text| !text.is_empty())?;
    if !text.contains("current-context: lag-proxy") {
        return Some("is there and is no kubeconfig of a lagging proxy: it would be lost");
    }
    let mut servers =
        text.lines().filter_map(|line| line.trim().strip_prefix("server: https://")?.parse().ok());
    let runs = |address: SocketAddr| TcpStream::connect_timeout(&address, ANSWERS).is_ok();
    servers.any(runs).then_some("is that of a lagging proxy that still runs")
}

async fn tell_now_and_then(proxy: &Proxy) {
    let mut last = proxy.counts();
    loop {
        tokio::time::sleep(EVERY).await;
        let counts = proxy.counts();
        if counts != last {
            tracing::info!("{counts}");
            last = counts;
        }
    }
}

/// A client that passes on what happens: it asks once, and waits as long as the proxy's own client does.
fn client(mut config: Config) -> Result<Client, Failure> {
    crate::crypto::install();
    config.default_retry = false;
    config.read_timeout = None;
    config.write_timeout = None;
    Client::try_from(config).map_err(|error| Failure::usage(format!("cannot make a client: {error}")))
}

impl Arguments {
    /// The cluster to stand before.
    async fn cluster(&self) -> Result<Config, Failure> {
        let Some(url) = &self.upstream else {
            return connection::config(self.kubeconfig.as_deref(), self.context.as_deref()).await;
        };
        if !matches!(url.scheme_str(), Some("https" | "http")) {
            return Err(Failure::usage("--upstream: write it as https://HOST:PORT"));
        }
        if url.scheme_str() == Some("http") && self.upstream_token_file.is_some() {
            return Err(Failure::usage("--upstream-token-file: a token goes over https only"));
        }
        let mut config = Config::new(url.clone());
        config.root_cert = self.upstream_ca.as_deref().map(certificates).transpose()?;
        if let Some(file) = &self.upstream_token_file {
            if !file.is_file() {
                return Err(Failure::usage(format!("cannot read {}: there is no such file", file.display())));
            }
            config.auth_info.token_file = Some(file.display().to_string());
        }
        Ok(config)
    }
}

/// The certificates of a PEM file.
fn certificates(file: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::usage(format!("cannot read {}: {error}", file.display()));
    let text = std::fs::read(file).map_err(|error| wrong(&error))?;
    let read: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(&text)
        .map(|certificate| certificate.map(|certificate| certificate.to_vec()))
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(&error))?;
    if read.is_empty() { Err(wrong(&"it holds no certificate")) } else { Ok(read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_lagging_proxy_wrote_and_nobody_needs_is_written_over() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("kubeconfig");
        assert_eq!(is_needed(&path), None, "there is nothing");
        let running = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let of = |address: SocketAddr| {
            format!(
                "kind: Config\ncurrent-context: lag-proxy\nclusters:\n- cluster:\n    server: https://{address}\n"
            )
        };
        let alive = of(running.local_addr().expect("an address"));
        let ended = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            of(listener.local_addr().expect("an address"))
        };
        for (text, expected) in [
            ("", None),
            (&*ended, None),
            (&*alive, Some("still runs")),
            ("apiVersion: v1\nkind: Config\ncurrent-context: production\n", Some("would be lost")),
            ("notes", Some("would be lost")),
        ] {
            std::fs::write(&path, text).expect("a file");
            let told = is_needed(&path);
            assert_eq!(told.is_some(), expected.is_some(), "{text:?}: {told:?}");
            assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{text:?}: {told:?}");
        }
    }
}
