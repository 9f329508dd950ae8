//! A cluster in memory: a store, a queue and a clock around the decisions, as the real shell has them.
#![allow(dead_code, reason = "each test file uses its own part")]

use baton_workloads::{
    Action, Affected, Decision, Family, Kind, Lookup, Removal, Settings, Target, affected_by, decide,
    relatives,
};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(crate) type Key = (Kind, String, String);

pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) settings: Settings,
    objects: BTreeMap<Key, Value>,
    queue: BTreeSet<Key>,
    timers: BTreeMap<Key, Timestamp>,
    version: u64,
    /// Chooses which queued object comes next; changed by tests to try other orders.
    pub(crate) order: u64,
    /// Writes that changed something.
    pub(crate) writes: usize,
    /// Names of created and deleted pods, in order.
    pub(crate) log: Vec<String>,
    /// Called after every change, to check what must hold at every moment.
    pub(crate) check: Option<fn(&World)>,
}

impl World {
    pub(crate) fn new() -> Self {
        let settings = Settings {
            ready_delay: Duration::from_secs(2),
            termination_delay: Duration::from_secs(1),
            ..Settings::default()
        };
        Self {
            now: "2026-01-01T00:00:00Z".parse().expect("a constant in the right form"),
            settings,
            objects: BTreeMap::new(),
            queue: BTreeSet::new(),
            timers: BTreeMap::new(),
            version: 0,
            order: 0,
            writes: 0,
            log: Vec::new(),
            check: None,
        }
    }

    /// A world with `count` ready nodes.
    pub(crate) fn with_nodes(count: usize) -> Self {
        let mut world = Self::new();
        for index in 0..count {
            world.create(
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{index}")}}),
            );
        }
        world.run();
        world
    }

    pub(crate) fn create(&mut self, mut object: Value) -> bool {
        let key = key_of(&object);
        if self.objects.contains_key(&key) {
            return false;
        }
        self.version += 1;
        let uid = format!("00000000-0000-0000-0000-{:012}", self.version);
        let metadata = object["metadata"].as_object_mut().expect("test objects have metadata");
        metadata.insert("uid".into(), uid.into());
        metadata.insert("generation".into(), 1.into());
        metadata.insert("creationTimestamp".into(), self.stamp().into());
        if key.0 == Kind::Pod {
            self.log.push(format!("+{}", key.2));
        }
        self.store(key, object);
        true
    }

    /// A user's merge patch.
    pub(crate) fn patch(&mut self, kind: Kind, name: &str, patch: Value) {
        let key = self.key(kind, name);
        let mut object = self.objects[&key].clone();
        let spec = object["spec"].clone();
        merge(&mut object, &patch);
        if object == self.objects[&key] {
            return;
        }
        if object["spec"] != spec {
            let next = object["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = next.into();
        }
        self.store(key, object);
    }

    pub(crate) fn annotate(&mut self, kind: Kind, name: &str, key: &str, value: Option<&str>) {
        let key = format!("sim.baton.dev/{key}");
        self.patch(kind, name, json!({"metadata": {"annotations": {key: value}}}));
    }

    pub(crate) fn delete(&mut self, kind: Kind, name: &str) {
        let key = self.key(kind, name);
        self.remove(&key, Removal::Graceful);
    }

    pub(crate) fn get(&self, kind: Kind, name: &str) -> &Value {
        self.objects.get(&self.key(kind, name)).unwrap_or(&Value::Null)
    }

    pub(crate) fn list(&self, kind: Kind) -> Vec<&Value> {
        self.objects.iter().filter(|(key, _)| key.0 == kind).map(|(_, object)| object).collect()
    }

    /// Runs until nothing is left to do, and checks that the cluster is then really quiet.
    pub(crate) fn run(&mut self) {
        self.run_until(Timestamp::MAX);
        self.assert_quiet();
    }

    pub(crate) fn advance(&mut self, seconds: i64) {
        let end = self.now + seconds.seconds();
        self.run_until(end);
        self.now = end;
    }

    pub(crate) fn assert_quiet(&self) {
        for object in self.objects.values() {
            assert_eq!(self.decide(object), Decision::default(), "not settled: {object:#}");
        }
    }

    fn run_until(&mut self, end: Timestamp) {
        for _ in 0..200_000 {
            if self.queue.is_empty() {
                let Some(next) = self.timers.values().min().copied().filter(|at| *at <= end) else { return };
                self.now = self.now.max(next);
                let due: Vec<Key> = self
                    .timers
                    .iter()
                    .filter(|(_, at)| **at <= self.now)
                    .map(|(key, _)| key.clone())
                    .collect();
                for key in due {
                    self.timers.remove(&key);
                    self.queue.insert(key);
                }
            }
            self.step();
        }
        panic!("the cluster does not come to rest");
    }

    fn step(&mut self) {
        self.order = self.order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = usize::try_from(self.order >> 33).unwrap_or(0) % self.queue.len();
        let key = self.queue.iter().nth(place).expect("the place is below the length").clone();
        self.queue.remove(&key);
        self.timers.remove(&key);
        let Some(object) = self.objects.get(&key) else { return };
        let decision = self.decide(object);
        assert_eq!(decision, self.decide(object), "a decision must not depend on anything hidden");
        if let Some(at) = decision.wake_at {
            assert!(at > self.now, "a wake-up lies in the future");
            self.timers.insert(key, at);
        }
        for action in decision.actions {
            self.apply(action);
            if let Some(check) = self.check {
                check(self);
            }
        }
    }

    fn decide(&self, object: &Value) -> Decision {
        let family =
            Family { members: relatives(object).iter().flat_map(|lookup| self.find(lookup)).collect() };
        decide(object, &family, &self.settings, self.now)
    }

    fn find(&self, lookup: &Lookup) -> Vec<&Value> {
        let listed = |kind: Kind, namespace: &str| {
            let namespace = namespace.to_owned();
            self.objects.iter().filter(move |(key, _)| key.0 == kind && key.1 == namespace).map(|(_, o)| o)
        };
        match lookup {
            Lookup::All { kind, namespace } => listed(*kind, namespace).collect(),
            Lookup::Named { kind, namespace, name } => {
                self.objects.get(&(*kind, namespace.clone(), name.clone())).into_iter().collect()
            }
            Lookup::Controlled { kind, namespace, uid } => listed(*kind, namespace)
                .filter(|object| controller_uid(object).is_none_or(|owner| owner == uid))
                .collect(),
        }
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Create(object) => {
                self.create(object);
            }
            Action::Patch { target, patch } => {
                assert!(patch.get("status").is_none(), "a patch leaves the status alone");
                let key = self.seen(&target);
                let before = self.objects[&key].clone();
                self.patch_key(&key, &patch);
                assert_ne!(before, self.objects[&key], "a patch changes something: {patch}");
            }
            Action::Status { target, status } => {
                let key = self.seen(&target);
                let mut object = self.objects[&key].clone();
                assert_ne!(object["status"], status, "a status write changes something");
                object["status"] = status;
                self.store(key, object);
            }
            Action::Delete { target, removal } => {
                let key = self.seen(&target);
                self.remove(&key, removal);
            }
        }
    }

    fn patch_key(&mut self, key: &Key, patch: &Value) {
        let mut object = self.objects[key].clone();
        let spec = object["spec"].clone();
        merge(&mut object, patch);
        if object["spec"] != spec {
            let next = object["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = next.into();
        }
        self.store(key.clone(), object);
    }

    fn seen(&self, target: &Target) -> Key {
        let key = (target.kind, target.namespace.clone(), target.name.clone());
        assert_eq!(self.objects[&key]["metadata"]["uid"], target.uid.as_str());
        key
    }

    fn store(&mut self, key: Key, mut object: Value) {
        self.version += 1;
        self.writes += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.touch(&object);
        self.objects.insert(key, object);
    }

    fn remove(&mut self, key: &Key, removal: Removal) {
        let Some(object) = self.objects.get(key).cloned() else { return };
        if key.0 == Kind::Pod && removal == Removal::Graceful {
            if object["metadata"]["deletionTimestamp"].is_null() {
                self.log.push(format!("-{}", key.2));
                let end = (self.now + 30.seconds()).to_string();
                let marks = json!({"deletionTimestamp": end, "deletionGracePeriodSeconds": 30});
                self.patch_key(key, &json!({"metadata": marks}));
            }
            return;
        }
        self.objects.remove(key);
        self.writes += 1;
        self.touch(&object);
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let dependents: Vec<Key> = self
            .objects
            .iter()
            .filter(|(_, child)| controller_uid(child).is_some_and(|owner| owner == uid))
            .map(|(key, _)| key.clone())
            .collect();
        for dependent in dependents {
            self.remove(&dependent, Removal::Graceful);
        }
    }

    fn touch(&mut self, object: &Value) {
        for affected in affected_by(object) {
            match affected {
                Affected::One { kind, namespace, name } => {
                    self.queue.insert((kind, namespace, name));
                }
                Affected::Every { kind, namespace } => {
                    let keys = self.objects.keys();
                    let matching =
                        keys.filter(|k| k.0 == kind && namespace.as_ref().is_none_or(|n| *n == k.1));
                    self.queue.extend(matching.cloned());
                }
                Affected::UnscheduledPods => {
                    let pods = self.objects.iter().filter(|(key, _)| key.0 == Kind::Pod);
                    let waiting = pods.filter(|(_, pod)| pod["spec"]["nodeName"].is_null());
                    self.queue.extend(waiting.map(|(key, _)| key.clone()));
                }
            }
        }
    }

    fn key(&self, kind: Kind, name: &str) -> Key {
        let namespace = if kind.namespaced() { "default" } else { "" };
        (kind, namespace.to_owned(), name.to_owned())
    }

    fn stamp(&self) -> String {
        Timestamp::from_second(self.now.as_second()).expect("in range").to_string()
    }
}

/// A workload of `kind` with one container, `spec` merged over it.
pub(crate) fn workload(kind: Kind, name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind(),
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    });
    merge(&mut object["spec"], &spec);
    object
}

/// The patch that gives a workload another image.
pub(crate) fn image(tag: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": format!("app:{tag}")}]}}}})
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let list = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "True"
}

pub(crate) fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn key_of(object: &Value) -> Key {
    let kind = Kind::of(object).expect("the test world knows the simulator's kinds");
    let read = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (kind, read("namespace"), read("name"))
}

fn controller_uid(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}
