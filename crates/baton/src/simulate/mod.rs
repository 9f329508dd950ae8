//! `baton simulate`: an ApplicationSet rolled out in a made-up world.

mod ground;
mod tell;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL};
use baton_sim::given::{Faults, Given, Plan};
use baton_sim::run::{self, Report};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::appset::{manifests, offline};
use crate::failure::Failure;
use crate::print;
use crate::up::fleet::{self, Member, MemberArgument};

/// The namespace of the made-up control plane.
const NAMESPACE: &str = "argocd";

/// What to simulate.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = after_help())]
pub(crate) struct Arguments {
    /// A file with one ApplicationSet; - is standard input.
    #[arg(short = 'f', long = "filename", required_unless_present = "world", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show a world of `make soak` instead, by its seed.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["file", "faults", "commits", "failing", "failing_hook", "delete", "seed", "seeds"],
        value_parser = clap::value_parser!(u64).range(1..3_000_000))]
    world: Option<u64>,
    /// What everything that is left to chance is drawn from; the same seed gives the same world again.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// How many worlds, from this seed on. Of several only the judge's word is told.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// What goes wrong: none, all, or names from the list below with commas between them.
    #[arg(long, default_value = "none", value_name = "FAULTS", value_parser = Faults::read)]
    faults: Faults,
    /// How many commits come to everything that is followed.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=50))]
    commits: u8,
    /// An Application whose workload is not ready from the first of these commits on. May be repeated.
    #[arg(long, value_name = "APPLICATION")]
    failing: Vec<String>,
    /// A hook or a check of a phase that does not pass from the first of these commits on. May be repeated.
    #[arg(long, value_name = "NAME")]
    failing_hook: Vec<String>,
    /// Delete the set in the end: in which order do its Applications go?
    #[arg(long)]
    delete: bool,
    /// A cluster for cluster generators. May be repeated; without any they are those of `baton up`.
    #[arg(long = "cluster", value_name = "NAME,LABEL=VALUE…", conflicts_with = "clusters")]
    cluster: Vec<MemberArgument>,
    #[command(flatten)]
    offline: offline::Offline,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
}

fn after_help() -> String {
    let faults: Vec<String> =
        Faults::known().into_iter().map(|(name, words)| format!("  {name:<15} {words}")).collect();
    format!(
        "Both controllers run as they are, over an embedded API and in virtual time. Steps, phases, labels and policies are the \
set's own; repositories, clusters, workloads and whom hooks call are made up. A judge reads the history of the API alone.

Faults (the first word stands for all that begin with it, as crash):
{}

Examples:
  baton simulate -f web.yaml
  baton simulate -f web.yaml --faults late,crash --commits 3 --seed 7
  baton simulate -f web.yaml --faults all --seeds 100
  baton simulate -f web.yaml --failing web-dev
  baton simulate -f web.yaml --failing-hook error-rate
  baton simulate -f web.yaml --delete --faults crash
  baton simulate --world 42

Exit codes: 0 every invariant was kept, 1 usage, 3 one was broken, 130 ended by Ctrl-C",
        faults.join("\n")
    )
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    crate::crypto::install();
    let _ground = ground::prepare()?;
    if let Some(seed) = arguments.world {
        let report = run::seed(seed, true);
        let about = tell::About { title: format!("world {seed} of the soak"), notes: Vec::new() };
        return arguments.show(&about, &report, &format!("baton simulate --world {seed}"));
    }
    let (name, given, mut notes) = arguments.given()?;
    notes.extend_from_slice(given.notes());
    let plan = Plan {
        commits: usize::from(arguments.commits),
        faults: arguments.faults.clone(),
        failing: arguments.failing.iter().cloned().collect::<BTreeSet<_>>(),
        failing_calls: arguments.failing_hook.iter().cloned().collect(),
        deletes: arguments.delete,
    };
    let unfit = |error: baton_sim::given::Unfit| Failure::usage(format!("{name}: {error}"));
    let about =
        tell::About { title: format!("ApplicationSet {name}: {}", tell::list(given.applications())), notes };
    if arguments.seeds == 1 {
        let report = given.simulate(&plan, arguments.seed).map_err(unfit)?;
        return arguments.show(&about, &report, "the same command");
    }
    arguments.summarise(&about, &arguments.several(&given, &plan).map_err(unfit)?)
}

impl Arguments {
    /// The set of the file, and the world around it.
    fn given(&self) -> Result<(String, Given, Vec<String>), Failure> {
        let files: Vec<PathBuf> = self.file.iter().cloned().collect();
        let sets = manifests::sets(&files, true)?;
        let [written] = sets.as_slice() else {
            return Err(Failure::usage(format!("{} ApplicationSets: one world has one", sets.len())));
        };
        let name = written.set.metadata.name.clone().unwrap_or_default();
        let mut notes = Vec::new();
        let gives = crate::run(self.generated(written, &mut notes))?;
        let given = Given::new(&written.document, &gives.applications, &gives.targets)
            .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        Ok((name, given, notes))
    }

    /// The Applications of a set, as `baton appset generate` gives them, and their parameters.
    async fn generated(
        &self,
        written: &manifests::Written,
        notes: &mut Vec<String>,
    ) -> Result<offline::Generated, Failure> {
        let cache = tempfile::tempdir()
            .map_err(|error| Failure::failed(format!("no temporary directory: {error}")))?;
        let generators = self.offline.generators(cache.path().to_owned(), NAMESPACE)?;
        let mut objects = self.offline.objects(NAMESPACE)?;
        for member in self.members(written, notes)? {
            objects
                .add_yaml(&secret(&member).to_string())
                .map_err(|error| Failure::usage(format!("cluster {}: {error}", member.name)))?;
        }
        offline::generated(&written.set, &generators, &objects).await
    }

    fn members(&self, written: &manifests::Written, notes: &mut Vec<String>) -> Result<Vec<Member>, Failure> {
        if !self.cluster.is_empty() {
            return fleet::named(self.cluster.clone()).map_err(Failure::usage);
        }
        let asks = offline::kinds(&written.document["spec"]["generators"]).contains(&"clusters");
        if !asks || !self.offline.clusters.is_empty() {
            return Ok(Vec::new());
        }
        let members = fleet::counted(3);
        let names = tell::list(members.iter().map(|member| member.name.as_str()));
        notes.push(format!(
            "the clusters are those of `baton up`: {names}; --cluster and --clusters name others"
        ));
        Ok(members)
    }

    /// Many worlds, on every core; in the order of their seeds.
    fn several(&self, given: &Given, plan: &Plan) -> Result<Vec<Report>, baton_sim::given::Unfit> {
        let done = Mutex::new(Vec::new());
        baton_sim::run::each(self.seeds, |number| {
            let report = given.simulate(plan, self.seed.wrapping_add(number));
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, report));
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, report)| report).collect()
    }

    fn show(&self, about: &tell::About, report: &Report, again: &str) -> Result<(), Failure> {
        print::out(&match self.output {
            Some(Output::Json) => tell::json(about, report)?,
            None => tell::text(about, report),
        })?;
        match report.violations.len() {
            0 => Ok(()),
            number => Err(Failure::failed(format!("{number} violations; {again} shows them again"))),
        }
    }

    fn summarise(&self, about: &tell::About, reports: &[Report]) -> Result<(), Failure> {
        print::out(&match self.output {
            Some(Output::Json) => tell::json_of_many(about, reports)?,
            None => tell::text_of_many(about, reports),
        })?;
        let failed: Vec<String> = reports
            .iter()
            .filter(|report| !report.violations.is_empty())
            .map(|report| report.seed.to_string())
            .collect();
        match failed.as_slice() {
            [] => Ok(()),
            failed => Err(Failure::failed(format!(
                "invariants were broken; each is shown again by --seed with one of {}",
                failed.join(", ")
            ))),
        }
    }
}

fn secret(member: &Member) -> Value {
    let mut labels = json!(member.labels);
    labels[TYPE_LABEL] = TYPE_CLUSTER.into();
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("cluster-{}", member.name), "namespace": NAMESPACE, "labels": labels},
        "stringData": {"name": member.name, "server": format!("https://{}.example.com", member.name)},
    })
}
