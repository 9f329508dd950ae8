//! A cluster with one set, its Applications as far as phases see them, and rounds over it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::phase_status::{GeneratorPhases, PhaseState};
use baton_apiserver::{Cluster, Options};
use baton_phases::{Gate, Hold, Progress, Requests, Target, details};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::faults::{Call, Wire};
use super::script::Script;
use crate::cache::ObjectKey;
use crate::clock::Clock;
use crate::objects::{Objects, Seen};
use crate::phases::names::Owner;
use crate::phases::sides::DETAILS;
use crate::phases::{CallMetrics, Caller, PhaseError, PhaseParts, Phases, Round, Ruling, SeenApp};
use crate::queue::{Backoff, Queue, QueueMetrics};
use crate::settings::Settings;

pub(super) const NAMESPACE: &str = "argocd";
const EPOCH: &str = "2026-01-01T00:00:00Z";

/// A cluster with one set, and phases over it.
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) wire: Wire,
    pub(super) phases: Phases,
    pub(super) script: Script,
    pub(super) queue: Queue<ObjectKey>,
    pub(super) settings: Arc<Settings>,
    pub(super) key: ObjectKey,
    pub(super) run: u64,
    pub(super) targets: BTreeMap<usize, Vec<Target>>,
    pub(super) pins: BTreeMap<Arc<str>, Arc<str>>,
    pub(super) seen: BTreeMap<Arc<str>, SeenApp>,
    pub(super) requests: Requests,
    pub(super) hold: Hold,
    /// Parameters with their types, by Application.
    pub(super) typed: BTreeMap<Arc<str>, baton_template::Map>,
}

impl World {
    /// A set `web` with these phases over these Applications.
    pub(super) async fn new(phases: Value, names: &[&str]) -> World {
        World::with(json!({"type": "phaseDeployment", "phases": phases}), names, definition()).await
    }

    pub(super) async fn with(strategy: Value, names: &[&str], definition: Value) -> World {
        let epoch: Timestamp = EPOCH.parse().expect("a date");
        let clock = baton_apiserver::Clock::starting_at(epoch);
        let options = Options { clock, seed: Some(7), workloads: None, nodes: 0, ..Options::default() };
        let cluster = Cluster::memory(options);
        cluster.apply("test", &definition).await.expect("a definition");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        cluster.apply("test", &namespace).await.expect("a namespace");
        let set = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {
                "generators": [{"clusters": {}, "deploymentStrategy": strategy}],
                "template": {"metadata": {"name": "{{name}}"}, "spec": {"project": "default", "destination": {"name": "in-cluster"}}},
            },
        });
        cluster.apply("test", &set).await.expect("a set");
        let settings = Settings { clock: Clock::starting_at(epoch), ..Settings::new(NAMESPACE) };
        let settings = Arc::new(settings);
        let script = Script::new(cluster.clone(), settings.clock.clone());
        let wire = Wire::new(cluster.clone());
        let queue = Queue::new(Backoff::default(), 1, QueueMetrics::default());
        let phases = phases(&wire, &settings, Arc::new(script.clone()), &queue);
        let mut world = World {
            cluster,
            wire,
            phases,
            script,
            queue,
            settings,
            key: ObjectKey::new(NAMESPACE, "web"),
            run: 1,
            targets: BTreeMap::from([(0, fleet(names))]),
            pins: BTreeMap::new(),
            seen: BTreeMap::new(),
            requests: Requests::default(),
            hold: Hold::None,
            typed: BTreeMap::new(),
        };
        world.begin_run(1, "p1");
        world
    }

    /// A new run: everybody is to come to this pin, and nobody has begun.
    pub(super) fn begin_run(&mut self, run: u64, pin: &str) {
        self.run = run;
        for target in self.targets.values().flatten() {
            self.pins.insert(target.name.clone(), pin.into());
            let seen =
                SeenApp { progress: Progress::NotStarted, pin: pin.into(), touched: None, skipped: false };
            self.seen.insert(target.name.clone(), seen);
        }
    }

    /// Everything in memory is lost.
    pub(super) fn crash(&mut self) {
        self.phases = phases(&self.wire, &self.settings, Arc::new(self.script.clone()), &self.queue);
    }

    pub(super) async fn round(&self) -> Result<Ruling, PhaseError> {
        self.round_of(&self.set(), true).await
    }

    pub(super) async fn round_of(
        &self,
        set: &ApplicationSet,
        consistent: bool,
    ) -> Result<Ruling, PhaseError> {
        let specs = |name: &str| {
            let seen = self.seen.get(name)?;
            Some(json!({"project": "default", "source": {"targetRevision": &*seen.pin}}))
        };
        let round = Round {
            set,
            run: self.run,
            targets: &self.targets,
            pins: &self.pins,
            seen: &self.seen,
            specs: &specs,
            params: &|name| self.typed.get(name).cloned(),
            steps: &BTreeMap::new(),
            requests: self.requests.clone(),
            hold: self.hold,
            consistent,
            now: self.settings.clock.now(),
        };
        self.phases.round(&self.key, round).await
    }

    /// Rounds until none is wanted at once, and what was begun has had its chance.
    pub(super) async fn settle(&self) -> Ruling {
        for _ in 0..100 {
            let ruling = self.round().await.expect("a round");
            self.breathe().await;
            assert_eq!(self.script.wrong(), [""; 0]);
            if !ruling.again && self.queue.depth() == 0 {
                return ruling;
            }
            while self.queue.depth() > 0 {
                drop(self.queue.next().await);
            }
        }
        panic!("it does not come to rest: {:?}", self.set().status.phases);
    }

    /// Lets tasks run that can.
    pub(super) async fn breathe(&self) {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    }

    /// Everybody who may be changed is, and is well then. Tells who.
    pub(super) async fn deploy(&mut self) -> Vec<String> {
        let ruling = self.settle().await;
        let open = ruling.gates.iter().filter(|(_, ruled)| matches!(ruled.gate, Gate::Open { .. }));
        let names: Vec<Arc<str>> = open.map(|(name, _)| name.clone()).collect();
        let names = names.into_iter().filter(|name| self.seen[name].progress != Progress::Done);
        let names: Vec<Arc<str>> = names.collect();
        for name in &names {
            self.see(name, Progress::Done);
        }
        self.settle().await;
        names.into_iter().map(|name| name.to_string()).collect()
    }

    pub(super) fn see(&mut self, name: &str, progress: Progress) {
        let seen = self.seen.get_mut(name).expect("an Application");
        (seen.progress, seen.touched) = (progress, Some(self.run));
    }

    pub(super) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(super) fn set(&self) -> ApplicationSet {
        stored_set(&self.cluster, &self.key.name)
    }

    pub(super) fn status(&self) -> GeneratorPhases {
        self.set().status.phases.first().cloned().expect("a status")
    }

    pub(super) fn state(&self, phase: usize) -> PhaseState {
        self.status().phases[phase].state.clone()
    }

    /// Changes the set as a person would.
    pub(super) async fn edit(&self, patch: Value) {
        let client = Client::new(self.cluster.service(), NAMESPACE);
        let sets = Objects::new(client, "argoproj.io/v1alpha1", "applicationsets", NAMESPACE, false);
        let set = self.set();
        let seen = Seen { uid: set.metadata.uid.as_deref().expect("a UID"), version: None };
        sets.patch("web", patch, seen).await.expect("an edit");
    }

    /// Stores a status as another controller would, with its details beside it.
    pub(super) async fn store(&self, whole: &GeneratorPhases) {
        let set = self.set();
        let uid = set.metadata.uid.as_deref().expect("a UID");
        let owner = Owner { name: "web", namespace: NAMESPACE, uid };
        let parts = details::split(whole, &owner.base());
        for side in parts.objects {
            let data = json!({DETAILS: side.text});
            let metadata = owner.metadata(&side.name, None);
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
            self.cluster.apply("test", &map).await.expect("a ConfigMap");
        }
        let client = Client::new(self.cluster.service(), NAMESPACE);
        let sets = Objects::new(client, "argoproj.io/v1alpha1", "applicationsets", NAMESPACE, false);
        let patch = json!({"status": {"phases": [parts.status]}});
        sets.patch_status("web", patch, Seen { uid, version: None }).await.expect("a status");
    }

    /// Takes the phases away.
    pub(super) async fn remove_phases(&self) {
        self.edit(json!({"spec": {"generators": [{"clusters": {}}]}})).await;
    }

    pub(super) fn objects(&self, resource: &str) -> Vec<Value> {
        let listing = self.cluster.store().list(resource, None, Default::default()).expect("a listing");
        listing.records.iter().map(|record| serde_json::from_slice(&record.json()).expect("JSON")).collect()
    }

    /// The requests since the last call of this, as `METHOD resource/subresource`.
    pub(super) fn requests(&self) -> Vec<String> {
        self.wire.take_calls().iter().map(line).collect()
    }
}

fn line(call: &Call) -> String {
    let (resource, _, sub) = call.target();
    let sub = if sub.is_empty() { String::new() } else { format!("/{sub}") };
    format!("{} {resource}{sub}", call.method)
}

pub(super) fn phases(
    wire: &Wire,
    settings: &Arc<Settings>,
    caller: Arc<dyn Caller>,
    queue: &Queue<ObjectKey>,
) -> Phases {
    let client = Client::new(wire.clone(), NAMESPACE);
    let wake = queue.clone();
    Phases::new(PhaseParts {
        client,
        settings: settings.clone(),
        recorder: None,
        caller,
        calls: CallMetrics::default(),
        wake,
    })
}

pub(super) fn stored_set(cluster: &Cluster, name: &str) -> ApplicationSet {
    let listing =
        cluster.store().list("applicationsets.argoproj.io", None, Default::default()).expect("a listing");
    let record = listing.records.iter().find(|record| &*record.key.name == name).expect("a set");
    let mut object: Value = serde_json::from_slice(&record.json()).expect("JSON");
    object["metadata"]["resourceVersion"] = record.revision.to_string().into();
    ApplicationSet::deserialize(&object).expect("a set")
}

/// Targets by name; what stands before the dash is the parameter `env`.
pub(super) fn fleet(names: &[&str]) -> Vec<Target> {
    let one = |name: &&str| {
        let env = name.split('-').next().unwrap_or_default();
        let params = [("name", *name), ("env", env)].map(|(key, value)| (key.to_owned(), value.to_owned()));
        Target { name: (*name).into(), params: params.into() }
    };
    names.iter().map(one).collect()
}

/// A phase over the Applications of an environment, with more fields.
pub(super) fn phase(env: &str, more: Value) -> Value {
    let mut phase = json!({"name": env, "targets": [{"values": {"env": env}}]});
    for (key, value) in more.as_object().into_iter().flatten() {
        phase[key] = value.clone();
    }
    phase
}

pub(super) fn hook(name: &str) -> Value {
    json!({"name": name, "type": "http", "http": {"url": format!("https://example.com/{name}")}})
}

pub(super) fn hook_per_target(name: &str) -> Value {
    json!({"name": name, "type": "http", "http": {"url": "https://example.com/{{name}}"}})
}

/// ApplicationSets without a schema, whose reading would take most of a test's time.
pub(super) fn definition() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    defined(open)
}

pub(super) fn defined(schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "applicationsets.argoproj.io"},
        "spec": {
            "group": "argoproj.io", "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
            "names": {
                "plural": "applicationsets", "singular": "applicationset", "kind": "ApplicationSet",
                "listKind": "ApplicationSetList",
            },
        },
    })
}
