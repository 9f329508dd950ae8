//! A cluster and an Application in memory: performs what the engine asks for, keeps a history, and can stop anywhere.

mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::Application;
use baton_api::application_status::{
    HealthCode, OperationPhase, OperationState, ResourceResult, SyncOperationResult,
};
use baton_api::health::Health;
use baton_api::names::{application, resource};
use baton_api::object::{KindInfo, Object, ResourceKey};
use baton_api::operation::{Operation, SyncOperation};
use baton_sync::action::{Apply, Delete, Outcome, Verb};
use baton_sync::hooks;
use baton_sync::targets::{self, Place};
use baton_sync::{Engine, EngineSettings, Next, Observation};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

pub(crate) use objects::*;

/// What happened to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Created(ResourceKey),
    Updated(ResourceKey),
    /// Its deletion was asked for, by an action or on the way to creating it anew.
    DeleteAsked(ResourceKey),
    Removed(ResourceKey),
    /// A person agreed.
    Approved,
}

/// How a pass went.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pass {
    Waits {
        message: String,
        approvals: Vec<ResourceKey>,
    },
    Ended {
        phase: OperationPhase,
        message: String,
    },
    /// It was stopped, and nothing of it is remembered but what was written.
    Crashed,
}

pub(crate) type Objects = BTreeMap<ResourceKey, Arc<Value>>;

/// A cluster and an Application.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) application: Application,
    pub(crate) state: OperationState,
    pub(crate) manifests: Vec<Arc<Value>>,
    pub(crate) objects: Objects,
    pub(crate) history: Vec<Event>,
    pub(crate) settings: EngineSettings,
    /// Health that objects of a name come to.
    pub(crate) outcomes: BTreeMap<String, HealthCode>,
    /// Names of objects that cannot be applied, and why.
    pub(crate) refused: BTreeMap<String, String>,
    /// Names of objects that can only be changed by creating them anew.
    pub(crate) immutable: BTreeSet<String>,
    /// Names of objects that cannot be read past the cache.
    pub(crate) unreadable: BTreeSet<String>,
    /// Names of objects that must not be deleted.
    pub(crate) undeletable: BTreeSet<String>,
    /// Names of objects whose finalizers nobody takes off.
    pub(crate) stuck: BTreeSet<String>,
    /// Kinds that are not served.
    pub(crate) unserved: BTreeSet<String>,
    /// Kinds the project does not permit.
    pub(crate) forbidden: BTreeSet<String>,
    /// Text of a warning that objects are shared.
    pub(crate) shared: Option<String>,
    /// Writes until the controller stops; it goes on for ever without.
    pub(crate) crash_after: Option<usize>,
    /// How many writes the cache lags behind.
    pub(crate) lag: usize,
    /// What the cache shows of one object, whatever it is.
    pub(crate) cached: Option<Value>,
    /// Names of objects the cache does not show.
    pub(crate) hidden: BTreeSet<String>,
    /// Health that objects of a name come to during a pause.
    pub(crate) reactions: BTreeMap<String, HealthCode>,
    /// Whether a check fails for objects whose namespace is not there.
    pub(crate) check_namespaces: bool,
    /// Pauses that were asked for.
    pub(crate) pauses: usize,
    /// Every verb that was performed, dry runs aside.
    pub(crate) performed: Vec<Verb>,
    pub(crate) dry_runs: usize,
    past: Vec<Objects>,
    versions: u64,
}

// === impl World ===

impl World {
    /// An Application `a` with these manifests and a sync that prunes, just begun.
    pub(crate) fn new(manifests: Vec<Value>) -> World {
        let now: Timestamp = "2026-01-01T10:00:00Z".parse().expect("a time");
        let application = serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "argocd"},
            "spec": {"project": "default", "destination": {"name": "in-cluster", "namespace": "shop"}}}))
        .expect("an Application");
        let mut world = World {
            now,
            application,
            state: OperationState::default(),
            manifests: manifests.into_iter().map(Arc::new).collect(),
            objects: Objects::new(),
            history: Vec::new(),
            settings: EngineSettings::default(),
            outcomes: BTreeMap::new(),
            refused: BTreeMap::new(),
            immutable: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            undeletable: BTreeSet::new(),
            stuck: BTreeSet::new(),
            unserved: BTreeSet::new(),
            forbidden: BTreeSet::new(),
            shared: None,
            crash_after: None,
            lag: 0,
            cached: None,
            hidden: BTreeSet::new(),
            reactions: BTreeMap::new(),
            check_namespaces: false,
            pauses: 0,
            performed: Vec::new(),
            dry_runs: 0,
            past: Vec::new(),
            versions: 0,
        };
        world.ask(SyncOperation { prune: true, ..SyncOperation::default() });
        world
    }

    /// Begins an operation.
    pub(crate) fn ask(&mut self, sync: SyncOperation) {
        self.state = OperationState {
            operation: Operation { sync: Some(sync), ..Operation::default() },
            phase: OperationPhase::Running,
            started_at: Some(Time(self.now)),
            ..OperationState::default()
        };
    }

    /// The running sync, to change.
    pub(crate) fn sync(&mut self) -> &mut SyncOperation {
        self.state.operation.sync.get_or_insert_default()
    }

    /// Adds options to the running sync.
    pub(crate) fn with_options(mut self, options: &[&str]) -> World {
        self.sync().sync_options.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// Puts an object into the cluster, marked as the Application's and healthy.
    pub(crate) fn with_live(mut self, mut object: Value) -> World {
        self.settings.tracking.stamp(&mut object, "a", "shop");
        if object["metadata"]["namespace"].is_null() && !cluster_scoped(object.kind()) {
            object["metadata"]["namespace"] = json!("shop");
        }
        if has_health(object.kind()) && object["status"].is_null() {
            object["status"] = json!({"health": "Healthy"});
        }
        object["metadata"]["creationTimestamp"] = json!("2025-12-01T00:00:00Z");
        self.put(object);
        self
    }

    /// Runs passes, with what is between them, until the operation ends or waits for something that does not come.
    pub(crate) fn drive(&mut self) -> Pass {
        let mut last = None;
        loop {
            let pass = self.pass();
            if matches!(pass, Pass::Ended { .. }) || last.as_ref() == Some(&pass) {
                return pass;
            }
            last = Some(pass);
            self.tick();
        }
    }

    /// One pass of the controller.
    pub(crate) fn pass(&mut self) -> Pass {
        let seen = self.seen();
        let application = self.application.clone();
        let settings = self.settings.clone();
        let shared = self.shared.clone();
        let (unserved, forbidden) = (self.unserved.clone(), self.forbidden.clone());
        let crds: BTreeSet<String> = seen
            .values()
            .filter_map(|object| object["spec"]["names"]["kind"].as_str().map(str::to_owned))
            .collect();
        let kinds = move |_: &str, kind: &str| -> Result<Option<KindInfo>, String> {
            let served = !unserved.contains(kind) || crds.contains(kind);
            Ok(served.then(|| KindInfo { plural: kind.to_lowercase(), namespaced: !cluster_scoped(kind) }))
        };
        let permitted = move |object: &Value, _: &KindInfo| match forbidden.contains(object.kind()) {
            true => Err(format!(
                "resource {}:{} is not permitted in project default",
                object.group(),
                object.kind()
            )),
            false => Ok(()),
        };
        let guarded: Vec<(ResourceKey, Arc<Value>)> = seen
            .iter()
            .filter(|(_, live)| baton_sync::approval::guarded(Some(live), None, &Default::default()))
            .map(|(key, live)| (key.clone(), live.clone()))
            .collect();
        let guarded_in = move |namespace: &str| -> Vec<(ResourceKey, Arc<Value>)> {
            guarded.iter().filter(|(key, _)| key.namespace == namespace).cloned().collect()
        };
        let place = Place { namespace: "shop", instance: "a", tracking: &settings.tracking, kinds: &kinds };
        let targets = targets::prepare(&self.manifests, &place);
        let managed: Vec<Arc<Value>> =
            seen.values().filter(|live| settings.tracking.manages(live, "a")).cloned().collect();
        let mut pairs = targets::pair(&targets.resources, &managed, &|key| seen.get(key).cloned(), &kinds);
        for pair in &mut pairs {
            if let (Some(target), Some(live)) = (&pair.target, &pair.live) {
                pair.modified = !contains(live, target);
            }
        }
        let observation = Observation {
            application: &application,
            instance: "a",
            now: self.now,
            revision: "0123456789abcdef",
            pairs: &pairs,
            hooks: &targets.hooks,
            live: &seen,
            kinds: &kinds,
            permitted: &permitted,
            health: &health,
            guarded_in_namespace: &guarded_in,
            shared: shared.as_deref(),
            settings: &settings,
        };
        let mut engine = Engine::new(observation, &self.state);
        loop {
            match engine.next() {
                Next::Do(groups) => {
                    if self.save(engine.results()).is_none() {
                        return Pass::Crashed;
                    }
                    for action in groups.into_iter().flatten() {
                        let Some(outcome) = self.perform(&action.verb) else { return Pass::Crashed };
                        engine.record(action.id, outcome);
                    }
                }
                Next::Pause(_) => {
                    self.pauses += 1;
                    for (name, health) in self.reactions.clone() {
                        self.edit(&name, |live| live["status"]["health"] = json!(health.as_str()));
                    }
                }
                Next::Wait { message, approvals } => {
                    return match self.save(engine.results()) {
                        Some(()) => Pass::Waits { message, approvals },
                        None => Pass::Crashed,
                    };
                }
                Next::Done { phase, message } => {
                    if self.save(engine.results()).is_none() || self.write().is_none() {
                        return Pass::Crashed;
                    }
                    self.state.phase = phase.clone();
                    self.state.message.clone_from(&message);
                    return Pass::Ended { phase, message };
                }
            }
        }
    }

    /// What happens between passes: objects come to what they come to, and what is deleted vanishes.
    pub(crate) fn tick(&mut self) {
        self.now = self.now.checked_add(SignedDuration::from_secs(10)).expect("a time");
        for (key, live) in self.objects.clone() {
            let progressing = live["status"]["health"] == json!("Progressing");
            let outcome = self.outcomes.get(&key.name).cloned().unwrap_or(HealthCode::Healthy);
            if progressing && outcome != HealthCode::Progressing {
                let mut live = Value::clone(&live);
                live["status"]["health"] = json!(outcome.as_str());
                self.put(live);
            }
            self.collect(&key);
        }
        self.past.clear();
    }

    /// Approves everything of the operation, on the Application.
    pub(crate) fn approve(&mut self) {
        let annotations = self.application.metadata.annotations.get_or_insert_default();
        annotations.insert(application::DELETION_APPROVED.to_owned(), self.now.to_string());
        self.history.push(Event::Approved);
    }

    /// Approves one object, as `kubectl annotate` does it.
    pub(crate) fn approve_object(&mut self, name: &str) {
        self.annotate(name, "kubectl-annotate", "true");
        self.history.push(Event::Approved);
    }

    /// Writes the approval on an object in somebody's name.
    pub(crate) fn annotate(&mut self, name: &str, manager: &str, value: &str) {
        let mut live = Value::clone(self.named(name).expect("a live object"));
        let field = format!("f:{}", resource::DELETION_APPROVED);
        live["metadata"]["annotations"][resource::DELETION_APPROVED] = json!(value);
        live["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Update",
            "time": self.now.to_string(), "fieldsV1": {"f:metadata": {"f:annotations": {field: {}}}}}]);
        self.put(live);
    }

    /// The live object of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Value>> {
        self.objects.values().find(|object| object.name() == name)
    }

    /// Whether an object of a name is there and not on its way out.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.named(name).is_some_and(|object| object.deletion_timestamp().is_none())
    }

    /// Names of what was created or updated, deleted ones with a minus before them, in order.
    pub(crate) fn told(&self) -> Vec<String> {
        let told = self.history.iter().filter_map(|event| match event {
            Event::Created(key) | Event::Updated(key) => Some(key.name.clone()),
            Event::DeleteAsked(key) => Some(format!("-{}", key.name)),
            Event::Removed(_) | Event::Approved => None,
        });
        told.collect()
    }

    /// Results, one line each.
    pub(crate) fn results(&self) -> Vec<String> {
        let results = self.state.sync_result.as_ref().map_or(&[][..], |result| &result.resources);
        let line = |result: &ResourceResult| {
            format!("{} {} {} {}", result.name, result.status, result.hook_phase, result.message)
        };
        results.iter().map(|result| line(result).trim_end().to_owned()).collect()
    }

    /// Changes a live object directly.
    pub(crate) fn edit(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut live = Value::clone(self.named(name).expect("a live object"));
        change(&mut live);
        self.put(live);
    }

    /// Takes an object out of the cluster, as somebody else would.
    pub(crate) fn remove(&mut self, name: &str) {
        let key = self.named(name).expect("a live object").key();
        self.objects.remove(&key);
        self.history.push(Event::Removed(key));
    }

    fn seen(&self) -> Objects {
        let past = self.past.len();
        let mut seen = match self.lag.min(past) {
            0 => self.objects.clone(),
            lag => self.past[past - lag].clone(),
        };
        if let Some(cached) = &self.cached {
            seen.insert(self.key_of(cached), Arc::new(cached.clone()));
        }
        seen.retain(|key, _| !self.hidden.contains(&key.name));
        seen
    }

    /// Counts a write: `None` once the controller is stopped before it.
    fn write(&mut self) -> Option<()> {
        if let Some(left) = &mut self.crash_after {
            if *left == 0 {
                self.crash_after = None;
                return None;
            }
            *left -= 1;
        }
        self.past.push(self.objects.clone());
        Some(())
    }

    fn save(&mut self, results: Vec<ResourceResult>) -> Option<()> {
        let stored = self.state.sync_result.get_or_insert_with(SyncOperationResult::default);
        if stored.resources == results {
            return Some(());
        }
        self.write()?;
        self.state.sync_result.get_or_insert_default().resources = results;
        Some(())
    }

    fn perform(&mut self, verb: &Verb) -> Option<Outcome> {
        match verb {
            Verb::Look { key, .. } if self.unreadable.contains(&key.name) => {
                return Some(Outcome::Failed { message: "no answer".to_owned() });
            }
            Verb::Look { key, .. } => {
                return Some(
                    self.objects.get(key).map_or(Outcome::Gone, |live| Outcome::Found(live.clone())),
                );
            }
            Verb::Apply(apply) if apply.dry_run => {
                self.dry_runs += 1;
                return Some(self.check(apply));
            }
            _ => {}
        }
        self.write()?;
        self.performed.push(verb.clone());
        Some(match verb {
            Verb::Apply(apply) => self.apply(apply),
            Verb::Delete(delete) => self.delete(delete),
            Verb::ReleaseHook { key, .. } => self.release(key),
            Verb::Revoke { .. } => unreachable!("the engine takes no approval back"),
            Verb::Look { .. } => unreachable!("looked above"),
        })
    }

    fn check(&self, apply: &Apply) -> Outcome {
        let object = &apply.object;
        let namespace = object.namespace();
        let known = namespace == "shop" || namespace.is_empty() || self.has(namespace);
        if self.check_namespaces && !known {
            return Outcome::Failed { message: format!("namespaces \"{namespace}\" not found") };
        }
        match self.refused.get(object.name()) {
            Some(message) if message.starts_with("invalid") => Outcome::Failed { message: message.clone() },
            _ => Outcome::Applied { message: format!("{} checked", object.name()), object: object.clone() },
        }
    }

    fn apply(&mut self, apply: &Apply) -> Outcome {
        let key = self.key_of(&apply.object);
        if !apply.object["metadata"].is_object() || key.name.is_empty() {
            return Outcome::Failed { message: "the object is none".to_owned() };
        }
        if let Some(message) = self.refused.get(&key.name) {
            return Outcome::Failed { message: message.clone() };
        }
        let named = format!("{}/{}", key.kind.to_lowercase(), key.name);
        let live = self.objects.get(&key).cloned();
        let Some(live) = live else {
            let mut object = Value::clone(&apply.object);
            object["metadata"]["creationTimestamp"] = json!(self.now.to_string());
            if has_health(object.kind()) {
                object["status"] = json!({"health": "Progressing"});
            }
            let object = self.put(object);
            self.history.push(Event::Created(key));
            return Outcome::Applied { message: format!("{named} created"), object };
        };
        if apply.create_only {
            return Outcome::Exists(live);
        }
        let mut merged = Value::clone(&live);
        merge(&mut merged, &apply.object);
        let changes = merged != *live;
        // What a binding binds cannot be changed; another is made without being asked for.
        let rebound = key.kind == "RoleBinding" && merged["roleRef"] != live["roleRef"];
        let recreate = (changes && self.immutable.contains(&key.name)) || (apply.replace && apply.force);
        if recreate || rebound {
            if !apply.force && !rebound {
                return Outcome::Failed { message: "field is immutable".to_owned() };
            }
            if apply.guarded {
                return Outcome::NeedsApproval;
            }
            self.history.push(Event::DeleteAsked(key.clone()));
            self.objects.remove(&key);
            self.history.push(Event::Removed(key.clone()));
            return self.apply(&Apply { force: false, ..apply.clone() });
        }
        if !changes {
            return Outcome::Applied { message: format!("{named} unchanged"), object: live };
        }
        let object = self.put(merged);
        self.history.push(Event::Updated(key));
        Outcome::Applied { message: format!("{named} configured"), object }
    }

    fn delete(&mut self, delete: &Delete) -> Outcome {
        let Some(live) = self.objects.get(&delete.key).cloned() else { return Outcome::Gone };
        if live.uid() != delete.uid {
            return Outcome::Gone;
        }
        if delete.resource_version.as_ref().is_some_and(|version| version != live.resource_version()) {
            return Outcome::Changed;
        }
        if self.undeletable.contains(&delete.key.name) {
            return Outcome::Failed { message: "not allowed".to_owned() };
        }
        self.history.push(Event::DeleteAsked(delete.key.clone()));
        if live.deletion_timestamp().is_none() {
            let mut live = Value::clone(&live);
            live["metadata"]["deletionTimestamp"] = json!(self.now.to_string());
            self.put(live);
        }
        // Objects go at once where nothing holds them, except those that have others to go first.
        if !has_health(&delete.key.kind) && self.collect(&delete.key) {
            Outcome::Gone
        } else {
            Outcome::Terminating
        }
    }

    fn release(&mut self, key: &ResourceKey) -> Outcome {
        let Some(live) = self.objects.get(key).cloned() else { return Outcome::Gone };
        let mut live = Value::clone(&live);
        hooks::release(&mut live);
        self.put(live);
        if self.objects[key].deletion_timestamp().is_some() && self.collect(key) {
            Outcome::Gone
        } else {
            Outcome::Done
        }
    }

    /// Removes an object whose deletion nothing holds up.
    fn collect(&mut self, key: &ResourceKey) -> bool {
        let Some(live) = self.objects.get(key) else { return true };
        let held = !live.finalizers().is_empty() || self.stuck.contains(&key.name);
        if live.deletion_timestamp().is_none() || held {
            return false;
        }
        self.objects.remove(key);
        self.history.push(Event::Removed(key.clone()));
        true
    }

    fn put(&mut self, mut object: Value) -> Arc<Value> {
        self.versions += 1;
        if object.uid().is_empty() {
            object["metadata"]["uid"] = json!(format!("u{}", self.versions));
        }
        object["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        let object = Arc::new(object);
        self.objects.insert(self.key_of(&object), object.clone());
        object
    }

    fn key_of(&self, object: &Value) -> ResourceKey {
        if cluster_scoped(object.kind()) { object.key().in_namespace("") } else { object.key() }
    }
}

fn has_health(kind: &str) -> bool {
    matches!(kind, "Deployment" | "Job")
}

fn cluster_scoped(kind: &str) -> bool {
    matches!(kind, "Namespace" | "ClusterRole" | "CustomResourceDefinition")
}

fn health(object: &Value) -> Result<Option<Health>, String> {
    let Some(word) = object["status"]["health"].as_str() else { return Ok(None) };
    match word {
        "Broken" => Err("the health check is broken".to_owned()),
        word => Ok(Some(Health::new(HealthCode::from(word.to_owned()), format!("is {word}")))),
    }
}

fn merge(live: &mut Value, wanted: &Value) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            for (name, value) in wanted {
                merge(live.entry(name).or_insert(Value::Null), value);
            }
        }
        (live, wanted) => *live = wanted.clone(),
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
