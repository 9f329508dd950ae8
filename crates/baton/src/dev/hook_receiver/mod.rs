//! `baton dev hook-receiver`: whom the hooks of phased deployments call, on this machine.

mod answers;
mod certificate;
mod journal;
mod serve;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use self::answers::{Answer, Answers};
use self::journal::{History, Journal};
use crate::failure::Failure;
use crate::shutdown::Shutdown;
use crate::terminal;

/// Whom to play, and how.
#[derive(Debug, Args)]
#[command(
    after_help = "It serves HTTPS with a certificate of its own authority for the hosts it is given, and answers 200 unless told \
otherwise. One line tells of each call when it is answered; what was sent is shown as it is, credentials included.

--answer takes [HOST]/PATH=STATUS, where a PATH that ends in * stands for all that begin so. What follows is optional: \
after=DURATION lets the answer wait, times=N gives it to the first N calls only. The first that fits counts.

Examples:
  baton dev hook-receiver --host hooks.slack.com
  baton dev hook-receiver --host changes.example.com --answer /v1/open=201 --answer /v1/close=503,times=2
  baton dev hook-receiver --host hooks.slack.com --kubeconfig .baton/kubeconfig -o json

It prints the options with which `baton up` and `baton controller` find it there.

Exit codes: 0 stopped; 1 usage; 3 it cannot listen or write its certificate"
)]
pub(crate) struct Arguments {
    /// A host to stand for. May be repeated.
    #[arg(long, required = true, value_name = "HOST", value_delimiter = ',')]
    host: Vec<String>,
    /// Address to serve on; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:8443", value_name = "ADDR")]
    listen: SocketAddr,
    /// Where the certificate of its authority goes, for --hooks-ca.
    #[arg(long, default_value = "hook-receiver-ca.pem", value_name = "FILE")]
    write_ca: PathBuf,
    /// What to answer. May be repeated.
    #[arg(long, value_name = "PATH=STATUS[,after=DURATION][,times=N]")]
    answer: Vec<Answer>,
    /// Kubeconfig of a control plane; each call is then told with the resourceVersion it was at.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// How to tell of calls; without it for people.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// An object per line; the first says where it listens.
    Json,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut shutdown = Shutdown::listen();
    crate::crypto::install();
    let hosts: BTreeSet<String> = arguments.host.iter().map(|host| host.to_ascii_lowercase()).collect();
    let (authority, tls) =
        certificate::issue(&hosts).map_err(|why| Failure::usage(format!("--host: {why}")))?;
    let cannot = |error| Failure::failed(format!("cannot listen on {}: {error}", arguments.listen));
    let listener = TcpListener::bind(arguments.listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    write(&arguments.write_ca, &authority)?;
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let journal = Journal::new(arguments.output == Some(Output::Json));
    let history = History::new(arguments.kubeconfig);
    let options = options(&arguments.write_ca, address, &hosts);
    terminal::tell(&announcement(address, &options, arguments.output));
    let receiver = serve::Receiver { answers: Answers::new(arguments.answer), journal, history };
    tokio::select! {
        () = shutdown.asked() => Ok(()),
        ended = serve::serve(listener, acceptor, Arc::new(receiver)) => match ended {},
    }
}

fn write(file: &Path, authority: &str) -> Result<(), Failure> {
    let cannot = |error| Failure::failed(format!("cannot write {}: {error}", file.display()));
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(cannot)?;
    }
    std::fs::write(file, authority).map_err(cannot)
}

/// Where it is; for programs as an object before those of the calls.
fn announcement(address: SocketAddr, options: &str, output: Option<Output>) -> String {
    match output {
        None => format!("Receiving on https://{address}. For `baton up`:\n  {options}"),
        Some(Output::Json) => json!({"listening": address, "options": options}).to_string(),
    }
}

/// What makes a controller call the receiver.
fn options(authority: &Path, address: SocketAddr, hosts: &BTreeSet<String>) -> String {
    let allowed: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let places: Vec<String> = hosts.iter().map(|host| format!("{host}={address}")).collect();
    format!(
        "--hooks-ca {} --hooks-allow {} --hooks-resolve {}",
        authority.display(),
        allowed.join(","),
        places.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_ready_to_be_copied() {
        let hosts = ["b.example", "a.example"].map(str::to_owned).into();
        let address = "127.0.0.1:8443".parse().expect("an address");
        assert_eq!(
            options(Path::new("ca.pem"), address, &hosts),
            "--hooks-ca ca.pem --hooks-allow a.example,b.example --hooks-resolve \
             a.example=127.0.0.1:8443,b.example=127.0.0.1:8443"
        );
    }
}
