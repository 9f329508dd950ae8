//! Whole deletions, with crashes between any two writes, a view of the cluster that lags behind, hooks that fail or
//! vanish, and objects that are slow to go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::Application;
use baton_api::application_status::HealthCode;
use baton_api::health::Health;
use baton_api::names::resource::{DELETION_APPROVED, HOOK, HOOK_FINALIZER, SYNC_OPTIONS, SYNC_WAVE};
use baton_api::object::{KindInfo, Object, ResourceKey};
use baton_api::project::AppProject;
use baton_sync::action::{Outcome, Verb};
use baton_sync::deletion::{self, Cluster, DeletionSettings, Observation, Rendered, Stage};
use baton_sync::hooks::{self, HookType};
use baton_sync::normalize::Project;
use baton_sync::project::{DestinationCluster, ProjectRules};
use baton_sync::wave;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

const DELETED: &str = "2026-01-01T12:00:00Z";
const FINALIZERS: [&str; 5] = [
    "resources-finalizer.argocd.argoproj.io",
    "pre-delete-finalizer.argocd.argoproj.io",
    "pre-delete-finalizer.argocd.argoproj.io/cleanup",
    "post-delete-finalizer.argocd.argoproj.io",
    "post-delete-finalizer.argocd.argoproj.io/cleanup",
];

/// Choices, from the bytes of a test case.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// A cluster, an Application in it that is being deleted, and what was seen of the deletion so far.
struct World {
    dice: Dice,
    now: Timestamp,
    application: Application,
    objects: BTreeMap<ResourceKey, Value>,
    /// The cluster as it is seen, which may be as it was a while ago.
    seen: Vec<Arc<Value>>,
    pre_delete: Vec<Arc<Value>>,
    post_delete: Vec<Arc<Value>>,
    /// How often each hook completed.
    completed: BTreeMap<String, u32>,
    /// Runs of hooks that will fail.
    failures: u64,
    versions: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice(seed | 1);
        let mut objects = BTreeMap::new();
        for number in 0..dice.roll(8) {
            let kind = ["ConfigMap", "Service", "Widget", "Namespace"][dice.roll(4) as usize];
            let options = ["", "", "", "Delete=confirm", "Delete=false"][dice.roll(5) as usize];
            let held = if dice.roll(5) == 0 { json!(["example.com/slow"]) } else { json!([]) };
            let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {
                "name": format!("o{number}"), "namespace": if kind == "Namespace" { "" } else { "n" },
                "uid": format!("u{number}"), "finalizers": held,
                "annotations": {SYNC_OPTIONS: options, SYNC_WAVE: (dice.roll(3) as i64 - 1).to_string()}}});
            objects.insert(object.key(), object);
        }
        let hook = |dice: &mut Dice, stage: &str, number: u64| {
            Arc::new(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {
                "name": format!("{}-{number}", stage.to_lowercase()), "namespace": "n",
                "annotations": {HOOK: stage, SYNC_WAVE: dice.roll(2).to_string()}}}))
        };
        let pre_delete = (0..dice.roll(3)).map(|number| hook(&mut dice, "PreDelete", number)).collect();
        let post_delete = (0..dice.roll(3)).map(|number| hook(&mut dice, "PostDelete", number)).collect();
        let application = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "argocd", "uid": "app", "deletionTimestamp": DELETED,
                "finalizers": FINALIZERS},
            "spec": {"project": "p", "destination": {"name": "c", "namespace": "n"}}}));
        World {
            seen: objects.values().cloned().map(Arc::new).collect(),
            failures: dice.roll(3),
            dice,
            now: DELETED.parse().expect("a time"),
            application: application.expect("an Application"),
            objects,
            pre_delete,
            post_delete,
            completed: BTreeMap::new(),
            versions: 0,
        }
    }

    fn is_approved(&self) -> bool {
        self.application.metadata.annotations.is_some()
    }

    fn resources(&self) -> impl Iterator<Item = &Value> {
        let is_kept = |object: &&Value| object.annotation(SYNC_OPTIONS) != Some("Delete=false");
        self.objects.values().filter(|object| !hooks::is_hook(object)).filter(is_kept)
    }

    /// One look of the controller, which may die after any of its writes.
    fn controller(&mut self) {
        if self.dice.roll(3) != 0 {
            self.seen = self.objects.values().cloned().map(Arc::new).collect();
        }
        let live = self.seen.clone();
        let stage = deletion::stage(&self.application);
        let hooks = match stage.needs_hooks() {
            None => Rendered::Not,
            Some(HookType::PreDelete) => Rendered::Hooks(&self.pre_delete),
            Some(_) => Rendered::Hooks(&self.post_delete),
        };
        let decision = deletion::decide(&Observation {
            application: &self.application,
            project: Project::Found(&rules()),
            own_namespace: "argocd",
            cluster: Cluster::Ready(DestinationCluster { server: "https://c", name: "c" }),
            live: &live,
            kinds: &kinds,
            hooks,
            health: &health,
            guarded_in_namespace: &|_| Vec::new(),
            settings: &DeletionSettings::default(),
            now: self.now,
        });
        let acts = !decision.verbs.is_empty() || decision.finalizers.is_some();
        assert!(acts || !decision.found.is_empty(), "a wait without a name in {stage:?}");
        for verb in &decision.verbs {
            if self.dice.roll(6) == 0 {
                return;
            }
            let outcome = self.perform(verb, stage);
            assert_eq!(deletion::failure(verb, &outcome), None);
        }
        if let Some(finalizers) = decision.finalizers
            && self.dice.roll(6) != 0
        {
            self.application.metadata.finalizers = Some(finalizers);
        }
    }

    fn perform(&mut self, verb: &Verb, stage: Stage) -> Outcome {
        match verb {
            Verb::Apply(apply) => self.create(&apply.object, stage),
            Verb::Delete(delete) => {
                let current = self.objects.get(&delete.key);
                if current.is_none_or(|object| object.uid() != delete.uid) {
                    return Outcome::Gone;
                }
                self.judge_deletion(&delete.key, stage);
                self.remove(&delete.key);
                Outcome::Gone
            }
            Verb::ReleaseHook { key, .. } => {
                self.drop_finalizer(key, HOOK_FINALIZER);
                Outcome::Done
            }
            Verb::Revoke { .. } | Verb::Look { .. } => Outcome::Gone,
        }
    }

    fn create(&mut self, hook: &Value, stage: Stage) -> Outcome {
        if let Some(object) = self.objects.get(&hook.key()) {
            return Outcome::Exists(Arc::new(object.clone()));
        }
        let name = hook.name().to_owned();
        assert!(!self.completed.contains_key(&name), "{name} completed and is run again");
        if hooks::has_type(hook, HookType::PostDelete) {
            assert_eq!(self.resources().count(), 0, "{name} runs before the resources are gone");
        } else {
            assert_eq!(stage, Stage::Hooks(HookType::PreDelete));
        }
        let mut hook = hook.clone();
        self.versions += 1;
        hook["metadata"]["uid"] = json!(format!("hook-{}", self.versions));
        hook["metadata"]["creationTimestamp"] = json!(self.now.to_string());
        hook["health"] = json!("Progressing");
        self.objects.insert(hook.key(), hook.clone());
        Outcome::Applied { message: String::new(), object: Arc::new(hook) }
    }

    fn judge_deletion(&self, key: &ResourceKey, stage: Stage) {
        let Some(object) = self.objects.get(key).filter(|object| !hooks::is_hook(object)) else { return };
        assert_eq!(stage, Stage::Cascade);
        assert!(self.completed.len() >= self.pre_delete.len(), "{key} goes before the hooks ran");
        let guarded = self.resources().any(|object| {
            object.annotation(SYNC_OPTIONS) == Some("Delete=confirm") && object.deletion_timestamp().is_none()
        });
        assert!(!guarded || self.is_approved(), "{key} goes before approval");
        let highest = self.resources().map(wave::of).max();
        assert_eq!(Some(wave::of(object)), highest, "{key} goes before a higher wave");
        assert_ne!(object.annotation(SYNC_OPTIONS), Some("Delete=false"));
    }

    fn remove(&mut self, key: &ResourceKey) {
        if let Some(object) = self.objects.get_mut(key) {
            object["metadata"]["deletionTimestamp"] = json!(self.now.to_string());
        }
        self.collect(key);
    }

    fn drop_finalizer(&mut self, key: &ResourceKey, finalizer: &str) {
        if let Some(finalizers) =
            self.objects.get_mut(key).and_then(|object| object["metadata"]["finalizers"].as_array_mut())
        {
            finalizers.retain(|own| own != finalizer);
        }
        self.collect(key);
    }

    fn collect(&mut self, key: &ResourceKey) {
        let gone = |object: &Value| object.deletion_timestamp().is_some() && object.finalizers().is_empty();
        if self.objects.get(key).is_some_and(gone) {
            self.objects.remove(key);
        }
    }

    /// What others do meanwhile.
    fn others(&mut self) {
        self.now =
            self.now.saturating_add(SignedDuration::from_secs(self.dice.roll(40) as i64)).expect("a time");
        if self.dice.roll(12) == 0 {
            let annotation = [(DELETION_APPROVED.to_owned(), self.now.to_string())];
            self.application.metadata.annotations = Some(annotation.into());
        }
        let keys: BTreeSet<ResourceKey> = self.objects.keys().cloned().collect();
        for key in keys {
            let object = &self.objects[&key];
            let running = object["health"] == "Progressing";
            let completed = object["health"] == "Healthy";
            match self.dice.roll(4) {
                0 if running => {
                    let fails = self.failures > 0;
                    self.failures = self.failures.saturating_sub(1);
                    if !fails {
                        *self.completed.entry(key.name.clone()).or_default() += 1;
                    }
                    let health = if fails { "Degraded" } else { "Healthy" };
                    self.objects.get_mut(&key).expect("it is there")["health"] = json!(health);
                }
                // A Job whose time to live is over.
                1 if completed => self.remove(&key),
                2 if object.deletion_timestamp().is_some() => self.drop_finalizer(&key, "example.com/slow"),
                _ => {}
            }
        }
    }
}

fn rules() -> ProjectRules {
    let spec = json!({"destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]});
    let project: AppProject =
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a project");
    ProjectRules::new(&project, &[], &[], &[])
}

fn kinds(_: &str, kind: &str) -> Result<Option<KindInfo>, String> {
    Ok(Some(KindInfo { plural: String::new(), namespaced: kind != "Namespace" }))
}

fn health(object: &Value) -> Result<Option<Health>, String> {
    let word = object["health"].as_str();
    Ok(word.map(|word| Health::new(HealthCode::from(word.to_owned()), "")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_deletion_keeps_its_order_and_comes_to_its_end(seed in any::<u64>()) {
        let mut world = World::new(seed);
        let kept: Vec<ResourceKey> = world
            .objects
            .values()
            .filter(|object| object.annotation(SYNC_OPTIONS) == Some("Delete=false"))
            .map(|object| object.key())
            .collect();
        for _ in 0..2_000 {
            if deletion::stage(&world.application) == Stage::Done {
                break;
            }
            world.controller();
            world.others();
        }
        prop_assert_eq!(deletion::stage(&world.application), Stage::Done);
        let ran = world.completed.values().all(|count| *count == 1);
        prop_assert!(ran && world.completed.len() == world.pre_delete.len() + world.post_delete.len());
        let left: Vec<ResourceKey> =
            world.objects.values().filter(|object| !object.finalizers().is_empty() || !hooks::is_hook(object))
                .map(|object| object.key()).collect();
        prop_assert_eq!(left, kept);
    }
}
