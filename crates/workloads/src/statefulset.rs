//! StatefulSets: numbered pods with their own claims, made, updated and removed in order.

use crate::Kind;
use crate::decision::{Decision, Removal};
use crate::family::Family;
use crate::object::{
    controlled_by, deleting, generation, int, items, label, map, name, namespace, put_count, text,
};
use crate::ownership::{claim, hand_down, is_finished, pod_from};
use crate::pod;
use crate::replicaset::{BURST, replicas, total};
use crate::revision::{REVISION_HASH, Revisions};
use crate::settings::Settings;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

pub(crate) fn decide(set: &Value, family: &Family<'_>, settings: &Settings, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if deleting(set) {
        return decision;
    }
    let revisions = Revisions::sync(&mut decision, set, family);
    let pods = claim(&mut decision, set, family, Kind::Pod);
    hand_down(&mut decision, set, &pods);
    let numbered = Numbered::new(set, revisions, &pods, settings, now);
    numbered.converge(&mut decision);
    numbered.report(&mut decision, &pods);
    decision
}

/// A StatefulSet with its pods by ordinal.
struct Numbered<'a> {
    set: &'a Value,
    revisions: Revisions<'a>,
    /// Name of the revision of the current template.
    update: String,
    /// Name of the revision that was last rolled out completely.
    current: String,
    pods: BTreeMap<i64, &'a Value>,
    start: i64,
    end: i64,
    now: Timestamp,
}

// === impl Numbered ===

impl<'a> Numbered<'a> {
    fn new(
        set: &'a Value,
        revisions: Revisions<'a>,
        pods: &[&'a Value],
        settings: &Settings,
        now: Timestamp,
    ) -> Self {
        let update = format!("{}-{}", name(set), revisions.update_hash);
        let current = match text(set, &["status", "currentRevision"]) {
            "" => update.clone(),
            known => known.to_owned(),
        };
        let start = int(set, &["spec", "ordinals", "start"]).unwrap_or(0).max(0);
        let size = replicas(set).min(total(settings.max_pods_per_owner));
        let pods = pods.iter().filter_map(|pod| Some((ordinal(set, pod)?, *pod))).collect();
        Self { set, revisions, update, current, pods, start, end: start.saturating_add(size), now }
    }

    fn converge(&self, decision: &mut Decision) {
        let ordered = text(self.set, &["spec", "podManagementPolicy"]) != "Parallel";
        let filled = self.fill(decision, ordered);
        if ordered && !filled {
            return;
        }
        if !self.shrink(decision, ordered) && ordered {
            return;
        }
        if filled {
            self.update(decision);
        }
    }

    /// Creates missing pods and replaces finished ones. True if every wanted pod is there and available.
    fn fill(&self, decision: &mut Decision, ordered: bool) -> bool {
        let mut made = 0;
        let mut filled = true;
        for ordinal in self.start..self.end {
            match self.pods.get(&ordinal) {
                None => {
                    self.create(decision, ordinal);
                    made += 1;
                }
                Some(pod) if deleting(pod) => {}
                Some(pod) if is_finished(pod) => decision.delete(pod, Removal::Graceful),
                Some(pod) => match pod::available(pod, self.min_ready(), self.now) {
                    Ok(()) => continue,
                    Err(later) => decision.wake_by(later),
                },
            }
            filled = false;
            if ordered || made >= BURST {
                break;
            }
        }
        filled
    }

    fn create(&self, decision: &mut Decision, ordinal: i64) {
        let old = self.wants_current(ordinal).then(|| self.revisions.template(&self.current)).flatten();
        let (template, revision) = match old {
            Some(template) => (template, &self.current),
            None => (&self.set["spec"]["template"], &self.update),
        };
        let pod_name = format!("{}-{ordinal}", name(self.set));
        let index = ordinal.to_string();
        let labels = [
            (REVISION_HASH, revision.as_str()),
            ("statefulset.kubernetes.io/pod-name", pod_name.as_str()),
            ("apps.kubernetes.io/pod-index", index.as_str()),
        ];
        let mut pod = pod_from(self.set, template, &pod_name, &labels);
        let mut volumes = items(&pod, &["spec", "volumes"]).to_vec();
        for claim_template in items(self.set, &["spec", "volumeClaimTemplates"]) {
            let volume = name(claim_template);
            let claim_name = format!("{volume}-{pod_name}");
            decision.create(self.claim(claim_template, &claim_name));
            volumes.retain(|existing| existing["name"] != volume);
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim_name}}));
        }
        if let Some(spec) = pod["spec"].as_object_mut() {
            spec.insert("hostname".into(), pod_name.into());
            if !text(self.set, &["spec", "serviceName"]).is_empty() {
                spec.insert("subdomain".into(), text(self.set, &["spec", "serviceName"]).into());
            }
            if !volumes.is_empty() {
                spec.insert("volumes".into(), Value::Array(volumes));
            }
        }
        decision.create(pod);
    }

    fn claim(&self, template: &Value, claim_name: &str) -> Value {
        let mut labels = map(self.set, &["spec", "selector", "matchLabels"]);
        labels.extend(map(template, &["metadata", "labels"]));
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": claim_name,
                "namespace": namespace(self.set),
                "labels": labels,
                "annotations": map(template, &["metadata", "annotations"]),
            },
            "spec": map(template, &["spec"]),
        })
    }

    /// Whether a pod made now at `ordinal` still gets the old template: below the partition, or among
    /// those the rolling update has not reached.
    fn wants_current(&self, ordinal: i64) -> bool {
        if self.current == self.update || !self.rolls() {
            return false;
        }
        let boundary = match self.partition() {
            0 => self.start.saturating_add(self.count_at(&self.current)),
            partition => partition,
        };
        ordinal < boundary
    }

    /// Deletes pods outside the wanted range, highest first. True if none is left.
    fn shrink(&self, decision: &mut Decision, ordered: bool) -> bool {
        let condemned: Vec<_> =
            self.pods.iter().rev().filter(|(ordinal, _)| !(self.start..self.end).contains(ordinal)).collect();
        if ordered && condemned.iter().any(|(_, pod)| deleting(pod)) {
            return false;
        }
        let step = if ordered { 1 } else { BURST };
        for (_, pod) in condemned.iter().filter(|(_, pod)| !deleting(pod)).take(step) {
            decision.delete(pod, Removal::Graceful);
        }
        condemned.is_empty()
    }

    /// Replaces the highest outdated pod; every pod above it must be available first.
    fn update(&self, decision: &mut Decision) {
        if !self.rolls() {
            return;
        }
        let first = self.start.max(self.partition());
        let outdated = self
            .pods
            .iter()
            .rev()
            .filter(|(ordinal, _)| (first..self.end).contains(ordinal))
            .find(|(_, pod)| label(pod, REVISION_HASH) != self.update);
        if let Some((_, pod)) = outdated.filter(|(_, pod)| !deleting(pod)) {
            decision.delete(pod, Removal::Graceful);
        }
    }

    fn report(&self, decision: &mut Decision, pods: &[&Value]) {
        let present: Vec<&Value> = self.pods.values().copied().filter(|pod| !is_finished(pod)).collect();
        let alive = |pod: &&&Value| !deleting(pod);
        let ready = present.iter().filter(alive).filter(|pod| pod::is_ready(pod)).count();
        let available = present
            .iter()
            .filter(alive)
            .filter(|pod| pod::available(pod, self.min_ready(), self.now).is_ok())
            .count();
        let updated = self.count_at(&self.update);
        let complete = self.rolls() && updated == total(present.len()) && ready == present.len();
        let current = if complete { &self.update } else { &self.current };
        let mut status = map(self.set, &["status"]);
        status.insert("observedGeneration".into(), generation(self.set).into());
        status.insert("replicas".into(), present.len().into());
        put_count(&mut status, "readyReplicas", total(ready));
        status.insert("availableReplicas".into(), available.into());
        put_count(&mut status, "currentReplicas", self.count_at(current));
        put_count(&mut status, "updatedReplicas", updated);
        status.insert("currentRevision".into(), current.as_str().into());
        status.insert("updateRevision".into(), self.update.as_str().into());
        decision.status(self.set, status);
        let prefix = format!("{}-", name(self.set));
        let mut live: HashSet<&str> = pods.iter().map(|pod| hash_of(pod, &prefix)).collect();
        live.insert(&self.revisions.update_hash);
        live.insert(current.strip_prefix(&prefix).unwrap_or(current));
        self.revisions.trim(decision, self.set, &live);
    }

    fn count_at(&self, revision: &str) -> i64 {
        let at = |pod: &&&Value| !deleting(pod) && !is_finished(pod) && label(pod, REVISION_HASH) == revision;
        total(self.pods.values().filter(at).count())
    }

    fn rolls(&self) -> bool {
        text(self.set, &["spec", "updateStrategy", "type"]) != "OnDelete"
    }

    fn partition(&self) -> i64 {
        int(self.set, &["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0).max(0)
    }

    fn min_ready(&self) -> i64 {
        int(self.set, &["spec", "minReadySeconds"]).unwrap_or(0)
    }
}

fn hash_of<'p>(pod: &'p Value, prefix: &str) -> &'p str {
    let revision = label(pod, REVISION_HASH);
    revision.strip_prefix(prefix).unwrap_or(revision)
}

fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    let number = name(pod).strip_prefix(name(set))?.strip_prefix('-')?;
    number.parse().ok().filter(|ordinal| *ordinal >= 0 && controlled_by(pod, set))
}
