//! Deployments: one ReplicaSet per template, rolled from the old ones to the new.

mod rolling;
mod status;

use crate::Kind;
use crate::behaviour::{INHERITED, PREFIX, inheritance};
use crate::decision::{Decision, Removal};
use crate::family::Family;
use crate::naming::template_hash;
use crate::object::{
    annotation, count, deleting, flag, generation, int, label, map, name, namespace, owner_reference,
    portion, text,
};
use crate::ownership::{claim, hand_down};
use crate::replicaset::{TEMPLATE_HASH, replicas};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";

pub(crate) fn decide(deployment: &Value, family: &Family<'_>, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if deleting(deployment) {
        return decision;
    }
    let sets = claim(&mut decision, deployment, family, Kind::ReplicaSet);
    hand_down(&mut decision, deployment, &sets);
    let rollout = Rollout::new(deployment, sets);
    let mut created = None;
    if flag(deployment, &["spec", "paused"]) {
        rolling::rescale(&mut decision, &rollout);
    } else {
        created = rollout.ensure_new(&mut decision);
        if created.is_none() {
            rolling::step(&mut decision, &rollout);
        }
        if status::is_complete(&rollout) {
            rollout.trim_history(&mut decision);
        }
    }
    status::report(&mut decision, &rollout, created.as_deref(), now);
    decision
}

/// A Deployment with its ReplicaSets told apart.
struct Rollout<'a> {
    deployment: &'a Value,
    hash: String,
    /// The set with the current template.
    new: Option<&'a Value>,
    /// All others that are not being deleted, oldest first.
    old: Vec<&'a Value>,
    replicas: i64,
    max_surge: i64,
    max_unavailable: i64,
}

// === impl Rollout ===

impl<'a> Rollout<'a> {
    fn new(deployment: &'a Value, sets: Vec<&'a Value>) -> Self {
        let hash = template_hash(&deployment["spec"]["template"]);
        let mut old: Vec<_> = sets.into_iter().filter(|set| !deleting(set)).collect();
        let place = old.iter().position(|set| label(set, TEMPLATE_HASH) == hash);
        let new = place.map(|index| old.remove(index));
        let replicas = replicas(deployment);
        let (max_surge, max_unavailable) = if is_recreate(deployment) {
            (0, replicas)
        } else {
            bounds(&deployment["spec"]["strategy"]["rollingUpdate"], replicas)
        };
        Self { deployment, hash, new, old, replicas, max_surge, max_unavailable }
    }

    fn all(&self) -> impl Iterator<Item = &'a Value> {
        self.old.iter().copied().chain(self.new)
    }

    fn most(&self) -> i64 {
        self.replicas.saturating_add(self.max_surge)
    }

    /// Creates the set for the current template if it is missing (and may exist yet), and gives it the
    /// newest revision. Returns the name of a set just asked for.
    fn ensure_new(&self, decision: &mut Decision) -> Option<String> {
        let newest_old = self.old.iter().map(|set| revision(set)).max().unwrap_or(0);
        let Some(new) = self.new else {
            if is_recreate(self.deployment) && !self.old.iter().all(|set| rolling::is_drained(set)) {
                return None;
            }
            let revision = newest_old.saturating_add(1);
            let set = self.make_set(revision);
            let set_name = name(&set).to_owned();
            decision.create(set);
            self.show_revision(decision, revision);
            return Some(set_name);
        };
        let wanted = if revision(new) > newest_old { revision(new) } else { newest_old.saturating_add(1) };
        let stale =
            self.annotations(wanted).into_iter().filter(|(key, value)| *value != annotation(new, key));
        let stale: Map<String, Value> = stale.collect();
        if !stale.is_empty() {
            decision.patch(new, json!({"metadata": {"annotations": stale}}));
        }
        self.show_revision(decision, wanted);
        None
    }

    fn make_set(&self, revision: i64) -> Value {
        let deployment = self.deployment;
        let template = &deployment["spec"]["template"];
        let mut labels = map(template, &["metadata", "labels"]);
        labels.insert(TEMPLATE_HASH.into(), self.hash.clone().into());
        let mut selector = map(deployment, &["spec", "selector"]);
        let mut match_labels = map(deployment, &["spec", "selector", "matchLabels"]);
        match_labels.insert(TEMPLATE_HASH.into(), self.hash.clone().into());
        selector.insert("matchLabels".into(), Value::Object(match_labels));
        let mut template_metadata = map(template, &["metadata"]);
        template_metadata.insert("labels".into(), Value::Object(labels.clone()));
        let mut annotations = self.annotations(revision);
        if let Some(inherited) = inheritance(deployment) {
            annotations.insert(INHERITED.into(), inherited.into());
        }
        let mut spec = json!({
            "replicas": rolling::first_size(self),
            "selector": selector,
            "template": {"metadata": template_metadata, "spec": map(template, &["spec"])},
        });
        if let (Some(spec), Some(seconds)) = (spec.as_object_mut(), min_ready_seconds(deployment)) {
            spec.insert("minReadySeconds".into(), seconds.into());
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{}-{}", name(deployment), self.hash),
                "namespace": namespace(deployment),
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [owner_reference(deployment)],
            },
            "spec": spec,
        })
    }

    /// What the new set carries: the Deployment's annotations and the rollout's own.
    fn annotations(&self, revision: i64) -> Map<String, Value> {
        let mut annotations = map(self.deployment, &["metadata", "annotations"]);
        annotations.retain(|key, value| {
            value.is_string()
                && !key.starts_with(PREFIX)
                && !key.starts_with("deployment.kubernetes.io/")
                && key != "kubectl.kubernetes.io/last-applied-configuration"
        });
        annotations.insert(REVISION.into(), revision.to_string().into());
        annotations.extend(self.size_annotations());
        annotations
    }

    fn size_annotations(&self) -> Map<String, Value> {
        let entries = [(DESIRED, self.replicas), (MAXIMUM, self.most())];
        entries.into_iter().map(|(key, size)| (key.to_owned(), size.to_string().into())).collect()
    }

    fn show_revision(&self, decision: &mut Decision, revision: i64) {
        let revision = revision.to_string();
        if annotation(self.deployment, REVISION) != revision {
            decision.annotate(self.deployment, REVISION, Some(&revision));
        }
    }

    fn trim_history(&self, decision: &mut Decision) {
        let limit = int(self.deployment, &["spec", "revisionHistoryLimit"]).unwrap_or(10).max(0);
        let keep = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut history = self.old.clone();
        history.sort_by_key(|set| revision(set));
        let surplus = history.len().saturating_sub(keep);
        for set in history.into_iter().take(surplus).filter(|set| rolling::is_drained(set)) {
            decision.delete(set, Removal::Graceful);
        }
    }
}

fn bounds(rolling_update: &Value, replicas: i64) -> (i64, i64) {
    let quarter = json!("25%");
    let or_quarter = |key: &str| if rolling_update[key].is_null() { &quarter } else { &rolling_update[key] };
    let surge = portion(or_quarter("maxSurge"), replicas, true).unwrap_or(1);
    let unavailable = portion(or_quarter("maxUnavailable"), replicas, false).unwrap_or(0).min(replicas);
    // With neither room above nor below nothing could ever move.
    if surge == 0 && unavailable == 0 { (0, 1.min(replicas)) } else { (surge, unavailable) }
}

fn is_recreate(deployment: &Value) -> bool {
    text(deployment, &["spec", "strategy", "type"]) == "Recreate"
}

fn min_ready_seconds(deployment: &Value) -> Option<i64> {
    int(deployment, &["spec", "minReadySeconds"]).filter(|seconds| *seconds > 0)
}

fn revision(set: &Value) -> i64 {
    annotation(set, REVISION).parse().unwrap_or(0)
}

/// Whether the set's status speaks of its current spec.
fn is_observed(set: &Value) -> bool {
    count(set, &["status", "observedGeneration"]) >= generation(set)
}
