//! `baton appset generate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::live::Live;
use super::{manifests, offline};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::print;

/// What to generate from.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --kubeconfig nothing is asked of a cluster: clusters and other objects come from \
--clusters.
Nothing is written anywhere; the Applications, sorted by name, are all that is printed on standard output.

Examples:
  baton appset generate -f web.yaml --clusters clusters.yaml
  baton appset generate -f web.yaml --repo https://git.example.com/config.git=../config
  baton appset generate -f web.yaml --kubeconfig ~/.kube/config -o name
  diff <(git show main:web.yaml | baton appset generate -f -) <(baton appset generate -f web.yaml)"
)]
pub(crate) struct Arguments {
    /// Files or directories with ApplicationSets; - is standard input.
    #[arg(short = 'f', long = "filename", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    offline: offline::Offline,
    #[command(flatten)]
    connection: Connection,
    /// How to print them.
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Yaml,
    Json,
    Name,
    Wide,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let sets = manifests::sets(&arguments.files, true)?;
    let cache =
        tempfile::tempdir().map_err(|error| Failure::failed(format!("no temporary directory: {error}")))?;
    let generators =
        arguments.offline.generators(cache.path().to_owned(), &arguments.connection.namespace)?;
    let mut applications = Vec::new();
    if arguments.connection.kubeconfig.is_some() {
        if !arguments.offline.clusters.is_empty() {
            return Err(Failure::usage(
                "--clusters and --kubeconfig are two answers to one question: give one",
            ));
        }
        let client = arguments.connection.client().await?;
        let world = Live::new(client, &arguments.connection.namespace);
        for set in &sets {
            applications.extend(offline::applications(&set.set, &generators, &world).await?);
        }
    } else {
        let world = arguments.offline.objects(&arguments.connection.namespace)?;
        for set in &sets {
            applications.extend(offline::applications(&set.set, &generators, &world).await?);
        }
    }
    applications.sort_by_key(name);
    print::out(&match arguments.output {
        Output::Yaml => print::yaml(&applications)?,
        Output::Json => print::json(&applications, false)?,
        Output::Name => {
            applications.iter().map(|one| format!("application.argoproj.io/{}\n", name(one))).collect()
        }
        Output::Wide => table(&applications),
    })?;
    match applications.windows(2).find(|pair| name(&pair[0]) == name(&pair[1])) {
        Some(pair) => Err(Failure::failed(format!(
            "several Applications are named {:?}: a controller would create or update none of them",
            name(&pair[0])
        ))),
        None => Ok(()),
    }
}

fn name(application: &Value) -> String {
    application["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn table(applications: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows: Vec<Vec<String>> = applications
        .iter()
        .map(|application| {
            let spec = &application["spec"];
            let destination = &spec["destination"];
            let source = if spec["sources"].is_array() { &spec["sources"][0] } else { &spec["source"] };
            let cluster =
                if destination["name"].is_string() { &destination["name"] } else { &destination["server"] };
            vec![
                name(application),
                text(&spec["project"]),
                text(cluster),
                text(&destination["namespace"]),
                text(&source["repoURL"]),
                text(&source["targetRevision"]),
                text(if source["chart"].is_string() { &source["chart"] } else { &source["path"] }),
            ]
        })
        .collect();
    print::table(&["NAME", "PROJECT", "CLUSTER", "NAMESPACE", "REPOSITORY", "REVISION", "PATH"], &rows)
}
