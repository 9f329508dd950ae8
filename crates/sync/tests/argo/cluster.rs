//! A cluster in memory that does what Argo CD's engine was given in the goldens: objects, their health, deletions that
//! take a while, requests that fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::application_status::HealthCode;
use baton_api::health::Health;
use baton_api::object::{KindInfo, Object, ResourceKey};
use baton_sync::action::{Action, Apply, Delete, Outcome, ServerSide, Verb};
use baton_sync::hooks;
use baton_sync::tracking::is_crd;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kinds::{self, Kind};

/// Kinds whose objects have health: what the story says, or else that they are not ready. A definition is
/// healthy at once.
const WITH_HEALTH: [&str; 6] = ["Deployment", "StatefulSet", "Job", "Pod", "Service", "Widget"];

/// A request that fails.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    verb: String,
    key: String,
    dry_run: Option<bool>,
    message: String,
}

/// The cluster.
pub(crate) struct Cluster {
    kinds: Vec<Kind>,
    pub(crate) objects: BTreeMap<ResourceKey, Arc<Value>>,
    /// Health by kind and name, as `Healthy: in words`.
    pub(crate) health: BTreeMap<String, String>,
    /// Objects whose deletion takes until they are said to be gone.
    pub(crate) slow: BTreeSet<String>,
    pub(crate) failures: Vec<Failure>,
    /// Requests that change something.
    pub(crate) calls: Vec<String>,
    /// Requests that only check.
    pub(crate) checked: Vec<String>,
    versions: u64,
}

/// A request, with what it is put in order by.
struct Call {
    verb: &'static str,
    key: ResourceKey,
    dry_run: bool,
    text: String,
}

impl Cluster {
    pub(crate) fn new() -> Cluster {
        Cluster {
            kinds: kinds::built_in(),
            objects: BTreeMap::new(),
            health: BTreeMap::new(),
            slow: BTreeSet::new(),
            failures: Vec::new(),
            calls: Vec::new(),
            checked: Vec::new(),
            versions: 0,
        }
    }

    /// What is served under a name.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<KindInfo> {
        let found = self.kinds.iter().find(|known| known.api_version == api_version && known.kind == kind)?;
        Some(KindInfo { plural: found.plural.clone(), namespaced: found.namespaced })
    }

    /// All that is served, by version and kind.
    pub(crate) fn served(&self) -> BTreeMap<(String, String), KindInfo> {
        let served = self.kinds.iter().map(|kind| {
            let info = KindInfo { plural: kind.plural.clone(), namespaced: kind.namespaced };
            ((kind.api_version.clone(), kind.kind.clone()), info)
        });
        served.collect()
    }

    /// Puts an object there as it is.
    pub(crate) fn put(&mut self, mut object: Value) -> Arc<Value> {
        let key = self.key_of(&object);
        self.versions += 1;
        if key.namespace.is_empty() {
            object["metadata"].as_object_mut().expect("metadata").remove("namespace");
        }
        if let Some(old) = self.objects.get(&key) {
            object["metadata"]["uid"] = json!(old.uid());
            if let Some(deleted) = old.deletion_timestamp() {
                object["metadata"]["deletionTimestamp"] = json!(deleted);
            }
        } else if object.uid().is_empty() {
            object["metadata"]["uid"] = json!(format!("uid-{}", self.versions));
        }
        object["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        self.define(&object);
        let object = Arc::new(object);
        self.objects.insert(key, object.clone());
        object
    }

    /// Serves what a definition defines.
    fn define(&mut self, object: &Value) {
        if !is_crd(object) {
            return;
        }
        let spec = &object["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for version in spec["versions"].as_array().into_iter().flatten() {
            let kind = Kind {
                api_version: format!("{}/{}", text(&spec["group"]), text(&version["name"])),
                kind: text(&spec["names"]["kind"]),
                plural: text(&spec["names"]["plural"]),
                namespaced: spec["scope"] != "Cluster",
            };
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
            }
        }
    }

    /// Takes objects away.
    pub(crate) fn forget(&mut self, name: &str) {
        self.objects.retain(|key, _| !is_named(key, name));
    }

    /// What is there, one line each.
    pub(crate) fn left(&self) -> Vec<String> {
        let line = |(key, object): (&ResourceKey, &Arc<Value>)| {
            let terminating = object.deletion_timestamp().map_or("", |_| " terminating");
            let held = if hooks::is_held(object) { " held" } else { "" };
            format!("{}{terminating}{held}", label(key))
        };
        let mut left: Vec<String> = self.objects.iter().map(line).collect();
        left.sort();
        left
    }

    /// Performs what was asked for at once.
    pub(crate) fn perform(&mut self, groups: Vec<Vec<Action>>) -> Vec<(usize, Outcome)> {
        let mut calls = Vec::new();
        let mut outcomes = Vec::new();
        for action in groups.into_iter().flatten() {
            outcomes.push((action.id, self.do_one(&action.verb, &mut calls)));
        }
        for run in calls.chunk_by_mut(|a, b| a.goes_with(b)) {
            run.sort_by_key(|call| {
                (call.key.kind.clone(), call.key.name.clone(), call.key.namespace.clone())
            });
        }
        for call in calls {
            if call.dry_run { self.checked.push(call.text) } else { self.calls.push(call.text) }
        }
        outcomes
    }

    fn do_one(&mut self, verb: &Verb, calls: &mut Vec<Call>) -> Outcome {
        match verb {
            Verb::Apply(apply) => self.apply(apply, calls),
            Verb::Delete(delete) => self.delete(delete, calls),
            Verb::ReleaseHook { key, .. } => self.release(key, calls),
            Verb::Revoke { key, .. } => unreachable!("the engine takes no approval back: {key}"),
            Verb::Look { key, .. } => match self.failure("get", key, false) {
                Some(message) => Outcome::Failed { message: internal(&message) },
                None => self.objects.get(key).map_or(Outcome::Gone, |live| Outcome::Found(live.clone())),
            },
        }
    }

    fn apply(&mut self, apply: &Apply, calls: &mut Vec<Call>) -> Outcome {
        let object = &apply.object;
        let key = self.key_of(object);
        let live = self.objects.get(&key).cloned();
        if apply.create_only
            && !apply.dry_run
            && let Some(live) = live
        {
            return Outcome::Exists(live);
        }
        let in_place = is_crd(object) || key.kind == "Namespace";
        let verb = match (apply.replace, &live) {
            (false, _) => "apply",
            (true, None) => "create",
            (true, Some(_)) if in_place => "update",
            (true, Some(_)) => "replace",
        };
        let mut text = format!("{verb} {}", label(&key));
        if matches!(verb, "apply" | "create") && !apply.validate {
            text.push_str(" unvalidated");
        }
        // Who merges fields matters only where they are merged, and for real.
        if verb == "apply" && apply.server_side == ServerSide::Asked && !apply.dry_run {
            text.push_str(" server-side");
        }
        if matches!(verb, "apply" | "replace") && apply.force {
            text.push_str(" force");
        }
        let unserved = self.kind(object.api_version(), object.kind()).is_none();
        let creation =
            self.failure("create", &key, false).filter(|_| apply.create_only).map(|why| internal(&why));
        let failure = self.failure("apply", &key, apply.dry_run).or(creation).or_else(|| {
            let (kind, version) = (object.kind(), object.api_version());
            unserved.then(|| format!("no matches for kind \"{kind}\" in version \"{version}\""))
        });
        if failure.is_some() {
            text.push_str(" failed");
        }
        calls.push(Call { verb, key: key.clone(), dry_run: apply.dry_run, text });
        if let Some(message) = failure {
            return Outcome::Failed { message };
        }
        let named = format!("{}/{}", key.kind, key.name);
        if apply.dry_run {
            return Outcome::Applied {
                message: format!("{named} applied (dry run)"),
                object: object.clone(),
            };
        }
        let mut stored = Value::clone(object);
        if let (Some(live), false) = (&live, apply.replace) {
            stored = Value::clone(live);
            merge(&mut stored, object);
        }
        let stored = self.put(stored);
        let message = if verb == "update" { format!("{named} updated") } else { format!("{named} applied") };
        Outcome::Applied { message, object: stored }
    }

    fn delete(&mut self, delete: &Delete, calls: &mut Vec<Call>) -> Outcome {
        let key = &delete.key;
        let mut text = format!("delete {}", label(key));
        if delete.propagation.as_str() != "Foreground" {
            text.push_str(&format!(" {}", delete.propagation.as_str()));
        }
        let failure = self.failure("delete", key, false);
        if failure.is_some() {
            text.push_str(" failed");
        }
        calls.push(Call { verb: "delete", key: key.clone(), dry_run: false, text });
        if let Some(message) = failure {
            return Outcome::Failed { message: internal(&message) };
        }
        let Some(live) = self.objects.get(key).filter(|live| live.uid() == delete.uid) else {
            return Outcome::Gone;
        };
        if delete.resource_version.as_ref().is_some_and(|version| version != live.resource_version()) {
            return Outcome::Changed;
        }
        if live.finalizers().is_empty() && !self.is_slow(key) {
            self.objects.remove(key);
            return Outcome::Gone;
        }
        let mut live = Value::clone(live);
        live["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:05:00Z");
        self.objects.insert(key.clone(), Arc::new(live));
        Outcome::Terminating
    }

    fn release(&mut self, key: &ResourceKey, calls: &mut Vec<Call>) -> Outcome {
        let failure = self.failure("release", key, false);
        let failed = if failure.is_some() { " failed" } else { "" };
        let text = format!("release {}{failed}", label(key));
        calls.push(Call { verb: "release", key: key.clone(), dry_run: false, text });
        if let Some(message) = failure {
            return Outcome::Failed { message: internal(&message) };
        }
        let Some(live) = self.objects.get(key) else { return Outcome::Gone };
        let mut live = Value::clone(live);
        hooks::release(&mut live);
        if live.deletion_timestamp().is_some() && live.finalizers().is_empty() && !self.is_slow(key) {
            self.objects.remove(key);
            return Outcome::Gone;
        }
        self.objects.insert(key.clone(), Arc::new(live));
        Outcome::Done
    }

    fn failure(&self, verb: &str, key: &ResourceKey, dry_run: bool) -> Option<String> {
        let fits = |failure: &&Failure| {
            let wanted = failure.dry_run.is_none_or(|wanted| wanted == dry_run);
            failure.verb == verb && is_named(key, &failure.key) && wanted
        };
        self.failures.iter().find(fits).map(|failure| failure.message.clone())
    }

    fn is_slow(&self, key: &ResourceKey) -> bool {
        self.slow.iter().any(|name| is_named(key, name))
    }

    fn key_of(&self, object: &Value) -> ResourceKey {
        match self.kind(object.api_version(), object.kind()) {
            Some(kind) if !kind.namespaced => object.key().in_namespace(""),
            _ => object.key(),
        }
    }
}

/// The health of an object, by what a story says of it.
pub(crate) fn health(object: &Value, told: &BTreeMap<String, String>) -> Option<Health> {
    if object.deletion_timestamp().is_some() && !hooks::is_held(object) {
        return Some(Health::new(HealthCode::Progressing, "Pending deletion"));
    }
    if is_crd(object) {
        return Some(Health::new(HealthCode::Healthy, "CRD is healthy"));
    }
    if !WITH_HEALTH.contains(&object.kind()) {
        return None;
    }
    let key = object.key();
    let told = told.iter().find(|(name, _)| is_named(&key, name));
    let (code, message) =
        told.and_then(|(_, told)| told.split_once(": ")).unwrap_or(("Progressing", "not ready"));
    Some(Health::new(HealthCode::from(code.to_owned()), message))
}

/// Whether a story means an object, by kind and name.
fn is_named(key: &ResourceKey, name: &str) -> bool {
    name.split_once('/').is_some_and(|(kind, name)| key.kind == kind && key.name == name)
}

fn label(key: &ResourceKey) -> String {
    let ResourceKey { kind, namespace, name, .. } = key;
    if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") }
}

fn internal(message: &str) -> String {
    format!("Internal error occurred: {message}")
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

// === impl Call ===

impl Call {
    /// Whether the order of two requests is free: deletions and releases are made in parallel.
    fn goes_with(&self, next: &Call) -> bool {
        matches!(self.verb, "delete" | "release") && self.verb == next.verb
    }
}
