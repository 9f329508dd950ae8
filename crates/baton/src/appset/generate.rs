//! `baton appset generate`.

use std::path::PathBuf;

use baton_generators::{Generators, World};
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::live::Live;
use super::manifests::{self, Written};
use super::offline;
use super::sets::Sets;
use crate::failure::Failure;
use crate::listing::{self, Column};
use crate::objects::{or, text};
use crate::place::Place;
use crate::print;

/// What to generate from.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --live and --kubeconfig nothing is asked of anybody: clusters and other objects come from \
--clusters. With --live the server one has signed in at generates.
Nothing is written anywhere; the Applications, sorted by name, are all that is printed on standard output.

Examples:
  baton appset generate -f web.yaml --clusters clusters.yaml
  baton appset generate -f web.yaml --repo https://git.example.com/config.git=../config
  baton appset generate -f web.yaml --kubeconfig ~/.kube/config -o name
  baton appset generate -f web.yaml --live
  diff <(git show main:web.yaml | baton appset generate -f -) <(baton appset generate -f web.yaml)"
)]
pub(crate) struct Arguments {
    /// Files or directories with ApplicationSets; - is standard input.
    #[arg(short = 'f', long = "filename", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Have the server generate, or with --core the cluster's own objects count.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    offline: offline::Offline,
    #[command(flatten)]
    place: Place,
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
    let place = &arguments.place;
    let named = place.core || place.connection.kubeconfig.is_some() || place.connection.context.is_some();
    let mut applications = match arguments.live || named {
        true => live(&arguments, &sets).await?,
        false => {
            let (_cache, generators) = arguments.generators()?;
            let world = arguments.offline.objects(place.namespace())?;
            generated(&sets, &generators, &world).await?
        }
    };
    applications.sort_by_key(name);
    print::out(&match arguments.output {
        Output::Yaml => print::yaml(&applications)?,
        Output::Json => print::json(&applications, false)?,
        Output::Name => {
            applications.iter().map(|one| format!("application.argoproj.io/{}\n", name(one))).collect()
        }
        Output::Wide => listing::table(COLUMNS, &applications, true),
    })?;
    match applications.windows(2).find(|pair| name(&pair[0]) == name(&pair[1])) {
        Some(pair) => Err(Failure::failed(format!(
            "several Applications are named {:?}: a controller would create or update none of them",
            name(&pair[0])
        ))),
        None => Ok(()),
    }
}

async fn live(arguments: &Arguments, sets: &[Written]) -> Result<Vec<Value>, Failure> {
    if !arguments.offline.clusters.is_empty() {
        return Err(Failure::usage(
            "--clusters and --kubeconfig or --live are two answers to one question: give one",
        ));
    }
    match Sets::at(&arguments.place).await? {
        Sets::Cluster(there) => {
            let (_cache, generators) = arguments.generators()?;
            generated(sets, &generators, &Live::new(there.client, &there.namespace)).await
        }
        Sets::Server(there) => {
            if arguments.offline.maps_repositories() {
                return Err(Failure::usage(
                    "a server reads repositories itself: leave --repo out, or add --core to have this command read them",
                ));
            }
            let mut applications = Vec::new();
            for set in sets {
                applications.extend(there.generate(&set.document).await?);
            }
            Ok(applications)
        }
    }
}

async fn generated(
    sets: &[Written],
    generators: &Generators,
    world: &impl World,
) -> Result<Vec<Value>, Failure> {
    let mut applications = Vec::new();
    for set in sets {
        applications.extend(offline::applications(&set.set, generators, world).await?);
    }
    Ok(applications)
}

impl Arguments {
    /// The generators, and the directory that their copies are in.
    fn generators(&self) -> Result<(tempfile::TempDir, Generators), Failure> {
        let cache = tempfile::tempdir()
            .map_err(|error| Failure::failed(format!("no temporary directory: {error}")))?;
        let generators = self.offline.generators(cache.path().to_owned(), self.place.namespace())?;
        Ok((cache, generators))
    }
}

fn name(application: &Value) -> String {
    application["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// What a table shows of Applications on paper.
const COLUMNS: &[Column<Value>] = &[
    Column::new("NAME", name),
    Column::new("PROJECT", |one| text(one, "/spec/project")),
    Column::new("CLUSTER", |one| {
        or(text(one, "/spec/destination/name"), &text(one, "/spec/destination/server"))
    }),
    Column::new("NAMESPACE", |one| text(one, "/spec/destination/namespace")),
    Column::new("REPOSITORY", |one| text(source(one), "/repoURL")),
    Column::new("REVISION", |one| text(source(one), "/targetRevision")),
    Column::new("PATH", |one| or(text(source(one), "/chart"), &text(source(one), "/path"))),
];

fn source(application: &Value) -> &Value {
    let spec = &application["spec"];
    if spec["sources"].is_array() { &spec["sources"][0] } else { &spec["source"] }
}
