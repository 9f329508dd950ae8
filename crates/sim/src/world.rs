//! A control plane, member clusters, a repository and both controllers, in virtual time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use baton_apiserver::store;
use baton_apiserver::{Cluster, Options, WorkloadSettings};
use baton_clusters::{ClusterAccess, Connect};
use baton_controllers::{ApplicationController, ApplicationSettings, Clock, Controller, Settings};
use baton_generators::Generators;
use baton_manifests::Manifests;
use baton_rollout::fuse::Fuse;
use baton_scm::Hosts;
use jiff::SignedDuration;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::fleet::{NAMESPACE, TARGET_NAMESPACE, files, server};
use crate::foreign::{self, Memory, Temper};
use crate::journal::Journal;
use crate::receiver::{Log, Manner, Receiver};
use crate::repository::{Files, Repositories};
use crate::scenario::{Kind, Process, Scenario};
use crate::sequencer::Sequencer;
use crate::wire::{Air, Blow, Doom, Fault, Life, Wire};

/// When every world begins.
const EPOCH: &str = "2026-01-01T00:00:00Z";
/// Name of the control plane in a history.
pub(crate) const CONTROL: &str = "control";
/// Kinds the Application controller looks at: fewer watches, faster worlds.
const INCLUSIONS: &str = r#"
- apiGroups: [""]
  kinds: [ConfigMap, Pod, Namespace]
- apiGroups: [apps]
  kinds: [Deployment, ReplicaSet]
"#;
/// Fewer still, in wide and phased worlds.
const FEW_INCLUSIONS: &str = r#"
- apiGroups: [""]
  kinds: [ConfigMap, Namespace]
- apiGroups: [apps]
  kinds: [Deployment]
"#;

/// A world that runs.
pub(crate) struct World {
    pub(crate) control: Cluster,
    pub(crate) members: BTreeMap<String, Cluster>,
    pub(crate) repositories: Arc<Repositories>,
    pub(crate) journal: Journal,
    pub(crate) air: Arc<Air>,
    behind: Duration,
    /// Whether hooks that are to fail do so.
    turned: Arc<AtomicBool>,
    /// Who called hooks and checks.
    pub(crate) log: Arc<Log>,
    /// Controllers that ended by themselves, which none may.
    pub(crate) ended: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

/// What a controller is made of.
#[derive(Clone)]
struct Parts {
    seed: u64,
    /// How hooks are answered, and whether those that are to fail do so.
    receiver: (Manner, Arc<AtomicBool>, Arc<Log>),
    control: Cluster,
    members: BTreeMap<String, Cluster>,
    repositories: Arc<Repositories>,
    behind: Duration,
    slow_git: Duration,
    air: Arc<Air>,
    begun: Instant,
    /// How the stand-in behaves, where the Application controller is one.
    foreign: Option<Temper>,
    /// What every commit holds, for a stand-in.
    memory: Arc<Memory>,
    /// How wrong the clock of either controller is, in seconds.
    skew: BTreeMap<Process, i64>,
    ended: Arc<Mutex<Vec<String>>>,
}

/// Connects to members by the names in their URLs.
struct InProcess(BTreeMap<String, Wire>);

impl Connect for InProcess {
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String> {
        let wire = self.0.get(&*cluster.server).ok_or_else(|| format!("no route to {}", cluster.server))?;
        Ok(Client::new(wire.clone(), "default"))
    }
}

impl World {
    /// The world of a scenario before anything happens in it. Call it inside a runtime whose clock is paused.
    ///
    /// # Panics
    /// If the machine gives no temporary directory or runs no git.
    pub(crate) async fn new(scenario: &Scenario) -> World {
        let branch = |commits: &Vec<_>| commits.iter().map(files).collect();
        let branches: Vec<_> = scenario.commits.iter().map(branch).collect();
        let repositories = Repositories::new(&scenario.branches, &branches, scenario.tagged)
            .expect("a temporary directory, and git in PATH");
        let (repositories, behind) = (Arc::new(repositories), scenario.behind);
        if behind > Duration::ZERO {
            repositories.mirrored().expect("a directory that can be written");
        }
        let memory = match scenario.foreign {
            Some(_) => remembered(&repositories, branches),
            None => Memory::new(),
        };
        let control = control(scenario).await;
        let mut members = BTreeMap::new();
        for (number, name) in scenario.members.iter().enumerate() {
            members.insert(name.clone(), member(scenario.seed.wrapping_add(1 + number as u64)).await);
        }
        let clusters = members.iter().map(|(name, cluster)| (Arc::from(name.as_str()), cluster.clone()));
        let journal = Journal::of(clusters.chain([(CONTROL.into(), control.clone())]).collect());
        let sequencer = Sequencer::default();
        let air =
            Air::new(scenario.seed, repositories.directory(), sequencer.clone(), scenario.weather.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(sequencer.run());
        let (ended, turned, log) = (Arc::default(), Arc::new(AtomicBool::new(false)), Arc::<Log>::default());
        let parts = Parts {
            seed: scenario.seed,
            receiver: (scenario.receiver.clone(), turned.clone(), log.clone()),
            foreign: scenario.foreign.clone(),
            memory: Arc::new(memory),
            skew: scenario.skew.clone(),
            control: control.clone(),
            members: members.clone(),
            repositories: repositories.clone(),
            behind: scenario.behind,
            slow_git: scenario.slow_git,
            air: air.clone(),
            begun: Instant::now(),
            ended: Arc::clone(&ended),
        };
        for process in [Process::Sets, Process::Applications] {
            let dooms = scenario.dooms.get(&process).cloned().unwrap_or_default();
            tasks.spawn(lives(process, dooms, parts.clone()));
        }
        if let Some((begin, length)) = scenario.second {
            tasks.spawn(beside(begin, length, parts.clone()));
        }
        World { control, members, repositories, journal, air, behind, turned, log, ended, _tasks: tasks }
    }

    /// Lets hooks fail that are to.
    pub(crate) fn turn(&self) {
        self.turned.store(true, Ordering::Relaxed);
    }

    /// Moves a branch to a commit; mirrors follow.
    ///
    /// # Panics
    /// If a repository cannot be written.
    pub(crate) fn push(&self, branch: usize, commit: usize) {
        self.repositories.push(branch, commit).expect("a repository that can be written");
        if self.behind > Duration::ZERO {
            self.air.count(Fault::GitBehind);
            let (repositories, behind) = (self.repositories.clone(), self.behind);
            tokio::spawn(async move {
                tokio::time::sleep(behind).await;
                repositories.push_on(branch, commit).expect("a mirror that can be written");
            });
        }
    }

    /// The objects of a kind in a cluster, by name.
    pub(crate) fn objects(cluster: &Cluster, resource: &str) -> BTreeMap<String, Value> {
        let Ok(listing) = cluster.store().list(resource, None, store::Page::default()) else {
            return BTreeMap::new();
        };
        let read = |record: &Arc<store::Record>| {
            let object = serde_json::from_slice(&record.json()).unwrap_or(Value::Null);
            (record.key.name.to_string(), object)
        };
        listing.records.iter().map(read).collect()
    }
}

pub(crate) fn epoch() -> jiff::Timestamp {
    EPOCH.parse().expect("a date that is written here")
}

/// Runs a controller from one blow to the next.
async fn lives(process: Process, dooms: Vec<(Doom, Duration)>, parts: Parts) {
    let mut dooms = dooms.into_iter();
    let mut ghosts = JoinSet::new();
    for number in 0.. {
        let doom = dooms.next();
        let life = Life::new(format!("{process:?} {number}"), doom.map(|(doom, _)| doom));
        let mut running = start(process, &parts, &life);
        tokio::select! {
            biased;
            () = life.struck() => {}
            () = ends(&mut running, process, &parts) => {
                life.end();
                return;
            }
        }
        match doom {
            Some((Doom { blow: Blow::Freeze(nap), .. }, beside)) => {
                // It is still there when its successor begins.
                let parts = parts.clone();
                ghosts.spawn(async move {
                    tokio::select! {
                        biased;
                        () = ends(&mut running, process, &parts) => {}
                        () = calm_or_after(&parts, nap + beside) => {}
                    }
                    life.end();
                });
                tokio::time::sleep(nap / 4).await;
            }
            _ => {
                running.abort_all();
                while running.join_next().await.is_some() {}
                tokio::time::sleep(doom.map_or(Duration::ZERO, |(_, pause)| pause)).await;
            }
        }
    }
}

/// A second controller of sets, for a while.
async fn beside(begin: Duration, length: Duration, parts: Parts) {
    tokio::time::sleep(begin).await;
    if parts.air.is_calm() {
        return;
    }
    parts.air.count(Fault::SecondLeader);
    let mut parts = parts;
    if let Some(wrong) = parts.skew.get_mut(&Process::Sets).filter(|wrong| **wrong != 0) {
        parts.air.count(Fault::ApartClocks);
        *wrong = -*wrong;
    }
    let life = Life::new("Sets beside".to_owned(), None);
    let mut running = start(Process::Sets, &parts, &life);
    tokio::select! {
        biased;
        () = ends(&mut running, Process::Sets, &parts) => {}
        () = calm_or_after(&parts, length) => {}
    }
    life.end();
}

fn start(process: Process, parts: &Parts, life: &Arc<Life>) -> JoinSet<String> {
    let mut tasks = JoinSet::new();
    match process {
        Process::Sets => tasks.spawn(run_sets(parts.clone(), life.clone())),
        Process::Applications => match parts.foreign.clone() {
            Some(temper) => tasks.spawn(run_foreign(temper, parts.clone(), life.clone())),
            None => tasks.spawn(run_applications(parts.clone(), life.clone())),
        },
    };
    tasks
}

/// Waits for a controller to end by itself, and notes that it did.
async fn ends(running: &mut JoinSet<String>, process: Process, parts: &Parts) {
    let how = match running.join_next().await {
        Some(Ok(how)) => how,
        Some(Err(error)) => error.to_string(),
        None => "nothing ran".to_owned(),
    };
    parts.ended.lock().push(format!("{process:?}: {how}"));
}

/// Waits for so long, or until faults have stopped.
async fn calm_or_after(parts: &Parts, time: Duration) {
    let end = Instant::now() + time;
    while !parts.air.is_calm() && Instant::now() < end {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn run_sets(parts: Parts, life: Arc<Life>) -> String {
    let client = Client::new(Wire::new(&parts.control, CONTROL, &life, &parts.air), NAMESPACE);
    let settings = Settings {
        clock: parts.clock(Process::Sets),
        seed: parts.seed,
        progressive_syncs: true,
        deletion_fuse: Fuse::Share(50),
        ..Settings::new(NAMESPACE)
    };
    // No set of a world asks a host, and to make what asks them costs more than most of what a world does.
    static HOSTS: LazyLock<Option<Hosts>> = LazyLock::new(|| Hosts::new(baton_scm::Settings::default()).ok());
    let Some(hosts) = HOSTS.clone() else { return "no hosts".to_owned() };
    let generating =
        baton_generators::Settings { argocd_namespace: NAMESPACE.to_owned(), ..Default::default() };
    let generators = Generators::new(parts.sources(Process::Sets), hosts, generating);
    let caller = Arc::new(Receiver::new(
        parts.seed,
        parts.receiver.clone(),
        (settings.clock.clone(), parts.control.clone()),
        (parts.air.clone(), life.clone()),
    ));
    match Controller::calling(client, settings, generators, caller) {
        Ok(controller) => format!("{:?}", controller.run(std::future::pending()).await),
        Err(error) => error.to_string(),
    }
}

async fn run_applications(parts: Parts, life: Arc<Life>) -> String {
    let client = Client::new(Wire::new(&parts.control, CONTROL, &life, &parts.air), NAMESPACE);
    let settings = ApplicationSettings {
        clock: parts.clock(Process::Applications),
        seed: parts.seed,
        ..ApplicationSettings::new(NAMESPACE)
    };
    let manifests =
        Manifests::new(parts.sources(Process::Applications), baton_manifests::Settings::default());
    let wire =
        |(name, cluster): (&String, &Cluster)| (server(name), Wire::new(cluster, name, &life, &parts.air));
    let connect = Arc::new(InProcess(parts.members.iter().map(wire).collect()));
    match ApplicationController::new(client, settings, manifests, connect) {
        Ok(controller) => format!("{:?}", controller.run(std::future::pending()).await),
        Err(error) => error.to_string(),
    }
}

async fn run_foreign(temper: Temper, parts: Parts, life: Arc<Life>) -> String {
    let client =
        |cluster: &Cluster, place: &str| Client::new(Wire::new(cluster, place, &life, &parts.air), NAMESPACE);
    let clock = parts.clock(Process::Applications);
    let members = parts.members.iter().map(|(name, cluster)| (server(name), client(cluster, name)));
    foreign::run(foreign::Parts {
        seed: parts.seed,
        temper,
        control: client(&parts.control, CONTROL),
        namespace: NAMESPACE.to_owned(),
        members: members.collect(),
        target: TARGET_NAMESPACE.to_owned(),
        git: Arc::new(Remembered(parts.clone())),
        now: Arc::new(move || clock.now()),
    })
    .await;
    "the stand-in ended".to_owned()
}

/// Every file of every commit.
fn remembered(repositories: &Repositories, branches: Vec<Vec<Files>>) -> Memory {
    let mut memory = Memory::new();
    for (branch, commits) in branches.into_iter().enumerate() {
        let ids = repositories.commits(branch).iter().cloned();
        memory.extend(ids.zip(commits).map(|(id, files)| (id, files.into_iter().collect())));
    }
    for (alias, commit) in repositories.aliases() {
        memory.extend(memory.get(commit).cloned().map(|files| (alias.to_owned(), files)));
    }
    memory
}

/// Git for a stand-in: branches are read where they are, files are known.
struct Remembered(Parts);

impl foreign::Git for Remembered {
    fn resolve(&self, url: &str, target: &str) -> Result<String, String> {
        let repository = self.0.repository(Process::Applications, url);
        // What was put back follows a commit, and no branch.
        if repository.exists() && self.0.memory.contains_key(target) {
            return Ok(target.to_owned());
        }
        (self.0.repositories.tip(&repository, target))
            .map_err(|_| format!("unable to resolve '{target}' to a commit SHA"))
    }

    fn peel(&self, revision: &str) -> String {
        let mut aliases = self.0.repositories.aliases();
        let named = aliases.find(|(alias, _)| *alias == revision);
        named.map_or(revision, |(_, commit)| commit).to_owned()
    }

    fn file(&self, url: &str, commit: &str, path: &str) -> Result<String, String> {
        if !self.0.repository(Process::Applications, url).exists() {
            return Err("repository not found".to_owned());
        }
        let text = self.0.memory.get(commit).and_then(|files| files.get(path));
        text.cloned().ok_or_else(|| format!("{path}: app path does not exist"))
    }
}

impl Parts {
    /// The time as a controller has it.
    fn clock(&self, process: Process) -> Clock {
        let wrong = self.skew.get(&process).copied().unwrap_or(0);
        if wrong != 0 {
            self.air.count(Fault::Skew);
        }
        Clock::Virtual { epoch: epoch() + SignedDuration::from_secs(wrong), start: self.begun }
    }

    /// Where a controller reads the repository of a URL.
    fn repository(&self, process: Process, url: &str) -> PathBuf {
        match process == Process::Applications && self.behind > Duration::ZERO {
            true => self.repositories.mirror(url),
            false => self.repositories.path(url),
        }
    }

    fn sources(&self, process: Process) -> baton_source::Repositories {
        let branches = self.repositories.branches().iter();
        let local = branches.map(|branch| (branch.url.to_string(), self.repository(process, &branch.url)));
        if !self.slow_git.is_zero() {
            self.air.count(Fault::GitSlow);
        }
        baton_source::Repositories::new(baton_source::Settings {
            local: local.collect(),
            local_delay: self.slow_git,
            cache_dir: self.repositories.cache(&format!("{process:?}")),
            ..baton_source::Settings::default()
        })
    }
}

async fn control(scenario: &Scenario) -> Cluster {
    let cluster = cluster(scenario.seed, None);
    let mut found = definitions();
    found.push(namespace(NAMESPACE));
    found.push(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {
            "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    }));
    found.push(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/part-of": "argocd"},
        },
        "data": {
            "timeout.reconciliation": "60s", "timeout.reconciliation.jitter": "10s",
            "resource.inclusions": if scenario.kind == Kind::Usual { INCLUSIONS } else { FEW_INCLUSIONS },
        },
    }));
    found.extend(scenario.members.iter().map(|name| cluster_secret(name)));
    for object in found {
        cluster.apply("person", &object).await.expect("an object that is written here");
    }
    cluster
}

async fn member(seed: u64) -> Cluster {
    let cluster = cluster(seed, Some(WorkloadSettings::default()));
    let namespace = namespace(TARGET_NAMESPACE);
    cluster.apply("person", &namespace).await.expect("an object that is written here");
    cluster
}

fn cluster(seed: u64, workloads: Option<WorkloadSettings>) -> Cluster {
    let clock = baton_apiserver::Clock::starting_at(epoch());
    let nodes = usize::from(workloads.is_some());
    let store = store::Options::unlimited();
    Cluster::memory(Options { store, clock, seed: Some(seed), workloads, nodes, ..Options::default() })
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The kinds without their schemas, whose reading would take most of a world's time.
fn definitions() -> Vec<Value> {
    let kinds = [
        ("applications", "Application"),
        ("applicationsets", "ApplicationSet"),
        ("appprojects", "AppProject"),
    ];
    let definition = |(plural, kind): (&str, &str)| {
        let mut version = json!({
            "name": "v1alpha1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        });
        if kind == "ApplicationSet" {
            version["subresources"] = json!({"status": {}});
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.argoproj.io")},
            "spec": {
                "group": "argoproj.io", "scope": "Namespaced", "versions": [version],
                "names": {
                    "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                    "listKind": format!("{kind}List"),
                },
            },
        })
    };
    kinds.into_iter().map(definition).collect()
}

fn cluster_secret(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": format!("cluster-{name}"), "namespace": NAMESPACE,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "stringData": {"name": name, "server": server(name), "config": "{}"},
    })
}
