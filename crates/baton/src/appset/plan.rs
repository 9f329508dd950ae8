//! `baton appset plan`: what a set, or an edit of it, would do and in which order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use baton_api::ApplicationSet;
use baton_api::application_set::ApplicationsSync;
use baton_api::names::baton::{DELETION_APPROVED, DELETION_FUSE};
use baton_controllers::IgnoreRules;
use baton_generators::{Generators, kinds};
use baton_phases::preview::{self, Preview};
use baton_rollout::fuse::{self, Fuse};
use baton_rollout::head::Head;
use baton_rollout::plan::{self, Candidate, Change, Plan, Present, Proposal};
use baton_rollout::shift::{self, Shifts};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::live::Live;
use super::offline::{self, Generated, Offline};
use super::owned::{labels, name_of};
use super::plan_view::{self, Shown};
use super::revisions::{self, Revision};
use super::sets::{self, AtServer, Sets};
use super::{changes, manifests, plan_phases};
use crate::failure::Failure;
use crate::listing::{self, Column};
use crate::objects::text;
use crate::place::Place;
use crate::screen::Screen;
use crate::{print, terminal};

/// What to plan.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["set", "files"]),
    after_help = "With -f alone nothing is asked of a cluster, and the plan is one for a change of every Application. --against \
compares with another version of the file, --live with what the cluster has. Without -f the set in the cluster is planned: what it would do now. Nothing is written anywhere, and no repository is asked for a revision: it is told where an \
Application was compared with it or a run found it.

Applications go in the order of names; \"batch 2\" begins as places of maxUpdate become free in batch 1. On a terminal, of more than 40 Applications only the first of each \
kind have a row; --all shows every one. The phases of a generator are told with what they limit, call and wait for, who is in none, and where \
deploymentStrategy is taken away how many Applications go at once.

Exit codes: 0 planned; 1 usage, or a file that cannot be read; 3 it cannot be generated; 4 with --against or --live, there is \
a difference, or phases that cannot be followed hold Applications; 20 no such set, or the API refused or cannot be reached.

Examples:
  baton appset plan -f web.yaml --clusters clusters.yaml
  baton appset plan -f web.yaml --against <(git show main:web.yaml) --clusters clusters.yaml
  baton appset plan -f web.yaml --live --kubeconfig ~/.kube/config
  baton appset plan web --changed
  baton appset plan -f web.yaml --live -o json"
)]
pub(crate) struct Arguments {
    /// A set in the cluster.
    set: Option<String>,
    /// Files or directories with ApplicationSets; - is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What the sets were: compare with these files.
    #[arg(long, value_name = "FILE", requires = "files", conflicts_with = "live")]
    against: Vec<PathBuf>,
    /// Compare with the sets and Applications in the cluster.
    #[arg(long, requires = "files")]
    live: bool,
    /// Show only Applications that change.
    #[arg(long)]
    changed: bool,
    /// Show every Application, also on a terminal and however many there are.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    offline: Offline,
    #[command(flatten)]
    place: Place,
    /// How to print it; without it a table.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Yaml,
}

/// A plan as programs read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    name: String,
    namespace: String,
    /// What it was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<String>,
    #[serde(flatten)]
    plan: Plan,
    /// What the phases of generators do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Preview>,
    /// The revisions that are asked for.
    revisions: Vec<Revision>,
    /// What moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    shifts: Option<Shifts>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let online = arguments.live || arguments.set.is_some();
    let (documents, gone) = match online {
        false => on_paper(&arguments).await?,
        true => match Sets::at(&arguments.place).await? {
            Sets::Cluster(there) => (in_cluster(&arguments, &Sets::Cluster(there)).await?, 0),
            Sets::Server(there) => match &arguments.set {
                Some(name) => return told_by_server(&arguments, &there, name).await,
                None => (in_cluster(&arguments, &Sets::Server(there)).await?, 0),
            },
        },
    };
    print::out(&match arguments.output {
        None => {
            let screen = Screen::of_stdout();
            let texts: Vec<String> = documents.iter().map(|one| shown(one, &arguments, &screen)).collect();
            texts.join("\n")
        }
        Some(form) => {
            let values: Vec<Value> =
                documents.iter().filter_map(|one| serde_json::to_value(one).ok()).collect();
            match form {
                Output::Yaml => print::yaml(&values)?,
                Output::Json => print::json(&values, values.len() == 1)?,
            }
        }
    })?;
    let held: usize = documents.iter().map(|one| plan_phases::held(&one.phases)).sum();
    if held > 0 {
        return Err(Failure::finding(format!(
            "phases that cannot be followed hold {held} Applications: nothing of them would be deployed"
        )));
    }
    let asked = arguments.live || !arguments.against.is_empty();
    let differing = documents.iter().filter(|one| one.differs()).count() + gone;
    match (asked, differing) {
        (false, _) | (_, 0) => Ok(()),
        (true, 1) => Err(Failure::finding("there is a difference")),
        (true, count) => Err(Failure::finding(format!("there are differences in {count} sets"))),
    }
}

fn shown(document: &Document, arguments: &Arguments, screen: &Screen) -> String {
    let against = document.against.as_deref().zip(document.shifts.as_ref());
    let mut out = plan_view::text(
        &Shown {
            set: &format!("{}/{}", document.namespace, document.name),
            name: &document.name,
            plan: &document.plan,
            phases: &document.phases,
            revisions: &document.revisions,
            against,
            only_changed: arguments.changed,
            all: arguments.all,
            now: Timestamp::now(),
        },
        screen,
    );
    if let Some((what, _)) = against.filter(|_| !document.differs()) {
        out.push_str(&format!("\nNo difference from {what}.\n"));
    }
    out
}

/// The plan of a set as a server makes it.
async fn told_by_server(arguments: &Arguments, there: &AtServer, name: &str) -> Result<(), Failure> {
    if arguments.offline.maps_repositories() {
        return Err(Failure::usage(READS_ITSELF));
    }
    let plan = there.plan(name).await?.ok_or_else(|| {
        Failure::api(format!(
            "there is no ApplicationSet {name} that you may see at this server; `baton appset list` shows those there are"
        ))
    })?;
    match arguments.output {
        Some(Output::Json) => print::out(&print::json(&[plan], true)?),
        Some(Output::Yaml) => print::out(&print::yaml(&[plan])?),
        None => {
            let all = plan["items"].as_array().into_iter().flatten();
            let rows: Vec<Value> =
                all.filter(|item| !arguments.changed || item["action"] != "none").cloned().collect();
            let table = if rows.is_empty() { String::new() } else { listing::table(COLUMNS, &rows, false) };
            print::out(&format!("{}\n\n{table}", text(&plan, "/text")))
        }
    }
}

/// What a server tells of each Application.
const COLUMNS: &[Column<Value>] = &[
    Column::new("APPLICATION", |item| text(item, "/application")),
    Column::new("ACTION", |item| text(item, "/action")),
    Column::new("IN", |item| text(item, "/lane")),
    Column::new("WHY", |item| text(item, "/reason")),
];

/// Why a server's plan cannot be made of other repositories.
const READS_ITSELF: &str =
    "a server reads repositories itself: leave --repo out, or add --core to have this command read them";

/// The generators, and the directory that their copies are in.
fn generators(arguments: &Arguments) -> Result<(tempfile::TempDir, Generators), Failure> {
    let cache =
        tempfile::tempdir().map_err(|error| Failure::failed(format!("no temporary directory: {error}")))?;
    let generators = arguments.offline.generators(cache.path().to_owned(), arguments.place.namespace())?;
    Ok((cache, generators))
}

/// The plans, and how many sets there are no more.
async fn on_paper(arguments: &Arguments) -> Result<(Vec<Document>, usize), Failure> {
    let (_cache, generators) = &generators(arguments)?;
    let world = arguments.offline.objects(arguments.place.namespace())?;
    let mut before = BTreeMap::new();
    if !arguments.against.is_empty() {
        for old in manifests::sets(&arguments.against, true)? {
            let given = distinct(offline::generated(&old.set, generators, &world).await?)?;
            before.insert(old.set.metadata.name.clone(), (old.set, given.applications));
        }
    }
    let against = (!arguments.against.is_empty()).then(|| title(&arguments.against));
    let mut documents = Vec::new();
    for written in manifests::sets(&arguments.files, true)? {
        let given = distinct(offline::generated(&written.set, generators, &world).await?)?;
        let base = match (&against, before.remove(&written.set.metadata.name)) {
            (None, _) => None,
            (Some(what), Some((set, applications))) => {
                Some(Base { what, set: Some(set), head: None, applications })
            }
            (Some(what), None) => Some(Base { what, set: None, head: None, applications: Vec::new() }),
        };
        documents.push(document(&written.set, &given, base.as_ref(), arguments.place.namespace())?);
    }
    // A set that a file no longer has is deleted by whoever applies the file, and no plan of a set says so.
    let gone: Vec<String> = before.into_keys().flatten().collect();
    if !gone.is_empty() {
        let names = gone.join(", ");
        terminal::remark(&format!("Only in {}: {names}.", against.as_deref().unwrap_or_default()));
    }
    Ok((documents, gone.len()))
}

fn title(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| match file == Path::new("-") {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    };
    files.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Plans beside what is there, in a cluster or as far as a server shows it.
async fn in_cluster(arguments: &Arguments, sets: &Sets) -> Result<Vec<Document>, Failure> {
    if !arguments.offline.clusters.is_empty() {
        return Err(Failure::usage(
            "--clusters stands for a cluster, and this plan reads a real one: leave it out",
        ));
    }
    let namespace = arguments.place.namespace();
    let wanted: Vec<(ApplicationSet, Value)> = match &arguments.set {
        Some(name) => {
            let whole = sets.get(name).await?;
            vec![(sets::read(&whole)?, whole)]
        }
        None => {
            manifests::sets(&arguments.files, true)?.into_iter().map(|one| (one.set, one.document)).collect()
        }
    };
    let mut documents = Vec::new();
    for (mut set, written) in wanted {
        let place = set.metadata.namespace.get_or_insert_with(|| namespace.to_owned()).clone();
        let name = set.metadata.name.clone().unwrap_or_default();
        let given = distinct(generated(arguments, sets, &set, &written).await?)?;
        let there = match arguments.set.is_some() {
            true => Some(set.clone()),
            false => sets.find_in(&place, &name).await?,
        };
        let (head, applications) = match &there {
            Some(there) => (sets.head(there).await, sets.applications(there).await?),
            None => (None, Vec::new()),
        };
        let base = Base { what: "the cluster", set: there, head, applications };
        let mut document = document(&set, &given, Some(&base), namespace)?;
        if arguments.set.is_some() {
            // The set is compared with its own Applications only, not with itself.
            (document.against, document.shifts) = (None, None);
        }
        documents.push(document);
    }
    Ok(documents)
}

/// What a set gives with what is there.
async fn generated(
    arguments: &Arguments,
    sets: &Sets,
    set: &ApplicationSet,
    written: &Value,
) -> Result<Generated, Failure> {
    match sets {
        Sets::Cluster(there) => {
            let (_cache, generators) = generators(arguments)?;
            let world = Live::new(there.client.clone(), arguments.place.namespace());
            offline::generated(set, &generators, &world).await
        }
        Sets::Server(_) if arguments.offline.maps_repositories() => Err(Failure::usage(READS_ITSELF)),
        // Who is in which phase follows from parameters, which no server tells.
        Sets::Server(_) if super::control::has_phases(set) => Err(Failure::usage(format!(
            "a server does not tell who of {} would be in which phase: add --core to have this command find out",
            set.metadata.name.as_deref().unwrap_or_default()
        ))),
        Sets::Server(there) => {
            Ok(Generated { applications: there.generate(written).await?, ..Generated::default() })
        }
    }
}

/// What was there before.
struct Base<'a> {
    what: &'a str,
    set: Option<ApplicationSet>,
    head: Option<Head>,
    applications: Vec<Value>,
}

fn document(
    set: &ApplicationSet,
    given: &Generated,
    base: Option<&Base<'_>>,
    namespace: &str,
) -> Result<Document, Failure> {
    let wanted = &given.applications;
    let (update, delete) = policy(set);
    let ignored = IgnoreRules::read(&set.spec.ignore_application_differences)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let there: Option<BTreeMap<String, &Value>> =
        base.map(|base| base.applications.iter().map(|live| (name_of(live), live)).collect());
    let mut candidates = Vec::new();
    for application in wanted {
        let live = there.as_ref().map(|there| there.get(&name_of(application)));
        let change = match live {
            None => Change::Assumed,
            Some(None) => Change::New,
            Some(Some(live)) => {
                changes::change(application, live, &ignored, update).map_err(Failure::failed)?
            }
        };
        candidates.push(Candidate { name: name_of(application), labels: labels(application), change });
    }
    let present: Option<Vec<Present>> = base.map(|base| {
        let one = |live: &Value| Present {
            name: name_of(live),
            labels: labels(live),
            uid: text(live, "/metadata/uid"),
            terminating: live.pointer("/metadata/deletionTimestamp").is_some(),
        };
        base.applications.iter().map(one).collect()
    });
    let (fuse, unreadable) = fuse_of(set);
    // A person approves what the set in the cluster asks to be approved, whatever a file says.
    let approving = base.and_then(|base| base.set.as_ref()).unwrap_or(set);
    let approval = annotation(approving, DELETION_APPROVED).and_then(|text| text.parse().ok());
    let proposal = |set: &ApplicationSet, wanted: &[Candidate], present: Option<&[Present]>| {
        let strategy = set.spec.strategy.as_ref();
        plan::plan(&Proposal { strategy, wanted, present, may_delete: delete, fuse, approval })
    };
    let mut plan = proposal(set, &candidates, present.as_deref());
    plan.issues.extend(unreadable);
    if !update && base.is_some() {
        plan.issues.push("the set's policy lets no Application that exists be changed".to_owned());
    }
    if base.and_then(|base| base.set.as_ref()).is_some_and(|set| set.metadata.deletion_timestamp.is_some()) {
        plan.issues
            .push("the set is being deleted: all its Applications go, and no other is changed".to_owned());
    }
    let (there, head) = base.map_or((&[][..], None), |base| (&base.applications[..], base.head.as_ref()));
    let revisions = revisions::of(wanted, there, head);
    let shifts = base.map(|base| {
        let assumed =
            |live: &Value| Candidate { name: name_of(live), labels: labels(live), change: Change::Assumed };
        let old: Vec<Candidate> = base.applications.iter().map(assumed).collect();
        let Some(there) = &base.set else { return Shifts::default() };
        let mut shifts = shift::between(&proposal(there, &old, None), &plan);
        shifts.settings.extend(preview::changes(there, set));
        shifts
    });
    let labels: BTreeMap<&str, _> = candidates.iter().map(|one| (one.name.as_str(), &one.labels)).collect();
    let phases = preview::preview(&preview::Proposal {
        set,
        before: base.and_then(|base| base.set.as_ref()),
        targets: &given.targets,
        labels: &|name| labels.get(name).map(|labels| (*labels).clone()).unwrap_or_default(),
        kinds: &|at| set.spec.generators.get(at).map(kinds).unwrap_or_default().join(" and "),
    });
    Ok(Document {
        name: set.metadata.name.clone().unwrap_or_default(),
        namespace: set.metadata.namespace.clone().unwrap_or_else(|| namespace.to_owned()),
        against: base.map(|base| base.what.to_owned()),
        plan,
        phases,
        revisions,
        shifts,
    })
}

/// Whether Applications may be updated, and deleted.
fn policy(set: &ApplicationSet) -> (bool, bool) {
    let stated = set.spec.sync_policy.as_ref().map(|policy| &policy.applications_sync);
    match stated {
        Some(ApplicationsSync::CreateOnly) => (false, false),
        Some(ApplicationsSync::CreateUpdate) => (true, false),
        Some(ApplicationsSync::CreateDelete) => (false, true),
        _ => (true, true),
    }
}

/// The fuse of a set as a controller with default settings would have it, and what is wrong with its annotation.
fn fuse_of(set: &ApplicationSet) -> (Fuse, Option<String>) {
    let usual = if fuse::follows_hosts_only(&set.spec) { Fuse::Off } else { Fuse::Share(50) };
    match annotation(set, DELETION_FUSE).map(|text| text.parse::<Fuse>()) {
        None => (usual, None),
        Some(Ok(fuse)) => (fuse, None),
        Some(Err(error)) => (usual, Some(format!("annotation {DELETION_FUSE}: {error}"))),
    }
}

fn annotation<'a>(set: &'a ApplicationSet, key: &str) -> Option<&'a String> {
    set.metadata.annotations.as_ref()?.get(key)
}

/// Applications by name. Two of one name would keep a controller from doing anything.
fn distinct(mut given: Generated) -> Result<Generated, Failure> {
    given.applications.sort_by_key(name_of);
    match given.applications.windows(2).find(|pair| name_of(&pair[0]) == name_of(&pair[1])) {
        Some(pair) => Err(Failure::failed(format!(
            "several Applications are named {:?}: a controller would create or update none of them",
            name_of(&pair[0])
        ))),
        None => Ok(given),
    }
}

// === impl Document ===

impl Document {
    fn differs(&self) -> bool {
        let moves = self.shifts.as_ref().is_some_and(|shifts| !shifts.is_empty());
        moves
            || self.plan.deletion.leaving > 0
            || self.plan.applications.iter().any(|one| {
                matches!(
                    one.change,
                    Change::New | Change::Spec { .. } | Change::Revision { .. } | Change::Metadata { .. }
                )
            })
    }
}
