//! Whole syncs, step by step.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::Application;
use baton_api::application_status::{OperationPhase, OperationState, SyncOperationResult};
use baton_api::object::{KindInfo, Object};
use baton_sync::project::{DestinationCluster, ProjectRules};
use baton_sync::targets::{self, Place};
use baton_sync::{Engine, EngineSettings, GateScope, Next, Observation};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{Cluster, health};
use crate::decisions::{application, project};
use crate::table::{directory, document, field, optional};

const INSTANCE: &str = "shop";
const APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// Passes within which every step of a story settles.
const PASSES: usize = 20;

struct Story {
    application: Application,
    rules: ProjectRules,
    revision: String,
    now: Timestamp,
    manifests: Vec<Arc<Value>>,
    untracked: Vec<String>,
    state: OperationState,
    cluster: Cluster,
    settings: EngineSettings,
}

#[test]
fn syncs_go_as_in_argo_cd() {
    let mut files: Vec<_> = std::fs::read_dir(directory().join("stories"))
        .expect("the goldens are in the repository")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        wrong.extend(differences(&document(file)).into_iter().map(|text| format!("{name}: {text}")));
    }
    assert!(files.len() > 150, "the stories are there");
    assert!(wrong.is_empty(), "{} of {} stories:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

/// The first step of a story that goes otherwise than expected.
fn differences(text: &Value) -> Option<String> {
    let mut story = Story::new(text);
    let steps: Vec<Value> = field(text, "steps");
    let differs = text.get("difference").is_some();
    let mut seen_difference = false;
    for (number, step) in steps.iter().enumerate() {
        let ours = step.get("ours").filter(|_| differs);
        let expected = ours.unwrap_or(&step["expect"]);
        let outcome = story.go(step);
        let told = compare(expected, &outcome);
        if !told.is_empty() {
            return Some(format!("step {}\n{}", number + 1, told.join("\n")));
        }
        seen_difference |= ours.is_some_and(|ours| !compare(&step["expect"], ours).is_empty());
    }
    (differs && !seen_difference).then(|| "does not differ any more".to_owned())
}

fn compare(expected: &Value, outcome: &Value) -> Vec<String> {
    let mut told = Vec::new();
    for field in ["phase", "message", "calls", "results", "left"] {
        if expected[field] != outcome[field] {
            told.push(format!(
                "  {field} expected {}\n  {field} got      {}",
                expected[field], outcome[field]
            ));
        }
    }
    // What is as wanted was found to be so by asking, and is not checked again.
    let allowed = expected["checked"].as_array().expect("a list");
    let unexpected: Vec<&Value> = outcome["checked"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|checked| !allowed.contains(checked))
        .collect();
    if !unexpected.is_empty() {
        told.push(format!("  checked besides {allowed:?}: {unexpected:?}"));
    }
    told
}

// === impl Story ===

impl Story {
    fn new(text: &Value) -> Story {
        let everything = json!({
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        });
        let spec = Some(&text["project"]).filter(|spec| !spec.is_null()).unwrap_or(&everything);
        let revision: String = field(text, "revision");
        let mut operation = text["operation"].clone();
        if operation.is_null() {
            operation = json!({});
        }
        operation["revision"] = json!(revision);
        let state = json!({
            "operation": {"sync": operation},
            "phase": "Running",
            "startedAt": text["startedAt"],
        });
        let mut story = Story {
            application: application(&text["application"]),
            rules: ProjectRules::new(&project(spec.clone()), &[], &[], &[]),
            revision,
            now: "2026-01-02T03:10:00Z".parse().expect("a time"),
            manifests: optional(text, "targets"),
            untracked: optional(text, "untracked"),
            state: serde_json::from_value(state).expect("an operation's state"),
            cluster: Cluster::new(),
            settings: EngineSettings {
                wave_delay: Default::default(),
                gate: GateScope::Wave,
                ..EngineSettings::default()
            },
        };
        story.cluster.slow = optional(text, "slow");
        for object in optional::<Vec<Value>>(text, "live") {
            story.put(object);
        }
        story
    }

    /// Puts an object into the cluster, marked as the Application's unless it is said to be nobody's.
    fn put(&mut self, mut object: Value) {
        let kind = self.cluster.kind(object.api_version(), object.kind());
        if object.namespace().is_empty() && kind.is_some_and(|kind| kind.namespaced) {
            object["metadata"]["namespace"] = json!(self.application.spec.destination.namespace);
        }
        let name = format!("{}/{}", object.kind(), object.name());
        let marked = object.annotation("argocd.argoproj.io/tracking-id").is_some();
        if !self.untracked.contains(&name) && !marked {
            self.settings.tracking.stamp(&mut object, INSTANCE, &self.application.spec.destination.namespace);
        }
        self.cluster.put(object);
    }

    /// Lets happen what happens before a step, then runs passes until nothing more comes of them.
    fn go(&mut self, step: &Value) -> Value {
        self.cluster.health.extend(optional::<BTreeMap<String, String>>(step, "health"));
        for name in optional::<Vec<String>>(step, "gone") {
            self.cluster.forget(&name);
        }
        for object in optional::<Vec<Value>>(step, "put") {
            self.put(object);
        }
        if !step["targets"].is_null() {
            self.manifests = field(step, "targets");
        }
        if let Some(time) = step["approve"].as_str() {
            let annotations = self.application.metadata.annotations.get_or_insert_default();
            annotations.insert(APPROVED.to_owned(), time.to_owned());
        }
        if optional(step, "terminate") {
            self.state.phase = OperationPhase::Terminating;
        }
        if optional(step, "retry") {
            self.state.phase = OperationPhase::Running;
            self.state.sync_result = None;
        }
        self.cluster.failures = optional(step, "fail");
        self.cluster.calls.clear();
        self.cluster.checked.clear();
        let mut before = Value::Null;
        for _ in 0..PASSES {
            self.pass();
            let mut outcome = self.outcome();
            let calls = outcome.as_object_mut().expect("a map").remove("calls");
            if outcome == before || self.state.phase.is_completed() {
                outcome["calls"] = calls.unwrap_or_default();
                outcome["checked"] = json!(self.cluster.checked);
                return outcome;
            }
            before = outcome;
        }
        panic!("does not settle: {before}");
    }

    fn outcome(&self) -> Value {
        let results = self.state.sync_result.as_ref().map_or(&[][..], |result| &result.resources);
        let rows: Vec<Value> = results
            .iter()
            .map(|result| {
                let mut row = json!(result);
                let empty = |value: &Value| value == "" || value.is_null() || value == &json!([]);
                row.as_object_mut().expect("a map").retain(|_, value| !empty(value));
                row
            })
            .collect();
        json!({
            "phase": self.state.phase,
            "message": self.state.message,
            "results": rows,
            "calls": self.cluster.calls,
            "left": self.cluster.left(),
        })
    }

    /// One pass, as the controller makes it.
    fn pass(&mut self) {
        let seen = self.cluster.objects.clone();
        let (told, rules) = (self.cluster.health.clone(), self.rules.clone());
        let served: BTreeMap<(String, String), KindInfo> = self.cluster.served();
        let kinds = |api_version: &str, kind: &str| -> Result<Option<KindInfo>, String> {
            Ok(served.get(&(api_version.to_owned(), kind.to_owned())).cloned())
        };
        let destination = DestinationCluster { server: "https://cluster.test", name: "" };
        let permitted =
            |object: &Value, kind: &KindInfo| rules.permits_target(object, Some(kind), destination);
        let health = |object: &Value| Ok(health(object, &told));
        let application = self.application.clone();
        let namespace = application.spec.destination.namespace.clone();
        let tracking = self.settings.tracking.clone();
        let place = Place { namespace: &namespace, instance: INSTANCE, tracking: &tracking, kinds: &kinds };
        let targets = targets::prepare(&self.manifests, &place);
        let managed: Vec<Arc<Value>> = seen
            .values()
            .filter(|live| tracking.manages(live, INSTANCE) && live.owners().is_empty())
            .filter(|live| self.rules.permits_live(live, destination))
            .cloned()
            .collect();
        let mut pairs = targets::pair(&targets.resources, &managed, &|key| seen.get(key).cloned(), &kinds);
        for pair in &mut pairs {
            if let (Some(target), Some(live)) = (&pair.target, &pair.live) {
                pair.modified = !contains(live, target);
            }
        }
        let observation = Observation {
            application: &application,
            instance: INSTANCE,
            now: self.now,
            revision: &self.revision,
            pairs: &pairs,
            hooks: &targets.hooks,
            live: &seen,
            kinds: &kinds,
            permitted: &permitted,
            health: &health,
            guarded_in_namespace: &|_| Vec::new(),
            shared: None,
            settings: &self.settings,
        };
        let mut engine = Engine::new(observation, &self.state);
        let (phase, message) = loop {
            match engine.next() {
                Next::Do(groups) => {
                    for (id, outcome) in self.cluster.perform(groups) {
                        engine.record(id, outcome);
                    }
                }
                Next::Pause(_) => {}
                Next::Wait { message, .. } => break (OperationPhase::Running, message),
                Next::Done { phase, message } => break (phase, message),
            }
        };
        let results = engine.results();
        self.state.sync_result.get_or_insert_with(SyncOperationResult::default).resources = results;
        self.state.phase = phase;
        self.state.message = message;
    }
}

fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| live.get(name).is_some_and(|live| contains(live, value)))
        }
        (live, wanted) => live == wanted,
    }
}
