//! ReplicaSets: as many pods as asked for, the least useful ones deleted first.

use crate::Kind;
use crate::condition::{self, Condition};
use crate::decision::{Decision, Removal};
use crate::family::Family;
use crate::naming::fresh_names;
use crate::object::{created, deleting, generation, int, label, map, name, put_count, text, time, uid};
use crate::ownership::{claim, hand_down, is_active, is_finished, pod_from};
use crate::pod;
use crate::settings::Settings;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::HashSet;

/// Pods made or deleted in one decision; the resulting changes bring the next decision.
pub(crate) const BURST: usize = 250;

pub(crate) const TEMPLATE_HASH: &str = "pod-template-hash";

pub(crate) fn decide(set: &Value, family: &Family<'_>, settings: &Settings, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if deleting(set) {
        return decision;
    }
    let pods = claim(&mut decision, set, family, Kind::Pod);
    hand_down(&mut decision, set, &pods);
    let active: Vec<&Value> = pods.iter().copied().filter(|pod| is_active(pod)).collect();
    let wanted = usize::try_from(replicas(set)).unwrap_or(0);
    let limit = settings.max_pods_per_owner;
    if active.len() < wanted.min(limit) {
        let missing = wanted.min(limit) - active.len();
        let taken: HashSet<&str> = pods.iter().map(|pod| name(pod)).collect();
        for pod_name in fresh_names(name(set), uid(set), &taken, missing.min(BURST)) {
            decision.create(pod_from(set, &set["spec"]["template"], &pod_name, &[]));
        }
    } else if active.len() > wanted {
        let surplus = active.len() - wanted;
        for pod in least_useful(&active, now).into_iter().take(surplus.min(BURST)) {
            decision.delete(pod, Removal::Graceful);
        }
    }
    let refused = wanted > limit && active.len() >= limit;
    let terminating = pods.iter().filter(|pod| deleting(pod) && !is_finished(pod)).count();
    let mut status = status(&mut decision, set, &active, terminating, now);
    if refused {
        let message = format!("the simulator makes at most {limit} pods for one owner");
        condition::set(
            &mut status,
            &Condition { kind: "ReplicaFailure", status: "True", reason: "FailedCreate", message: &message },
            now,
        );
    } else {
        condition::remove(&mut status, "ReplicaFailure");
    }
    decision.status(set, status);
    decision
}

/// `spec.replicas`, one where it is absent.
pub(crate) fn replicas(object: &Value) -> i64 {
    int(object, &["spec", "replicas"]).unwrap_or(1).max(0)
}

fn least_useful<'a>(active: &[&'a Value], now: Timestamp) -> Vec<&'a Value> {
    let mut ranked = active.to_vec();
    ranked.sort_by_cached_key(|pod| {
        (
            !text(pod, &["spec", "nodeName"]).is_empty(),
            text(pod, &["status", "phase"]) == "Running",
            pod::is_ready(pod),
            // Ready for the shortest time first, so that an available pod outlives one that only just got ready.
            Reverse(ready_since(pod).unwrap_or(now)),
            Reverse(created(pod).unwrap_or(now)),
            name(pod),
        )
    });
    ranked
}

fn ready_since(pod: &Value) -> Option<Timestamp> {
    condition::find(pod, "Ready").and_then(|ready| time(ready, &["lastTransitionTime"]))
}

fn status(
    decision: &mut Decision,
    set: &Value,
    active: &[&Value],
    terminating: usize,
    now: Timestamp,
) -> Map<String, Value> {
    let min_ready = int(set, &["spec", "minReadySeconds"]).unwrap_or(0);
    let mut available = 0;
    for pod in active {
        match pod::available(pod, min_ready, now) {
            Ok(()) => available += 1,
            Err(later) => decision.wake_by(later),
        }
    }
    let labels = map(set, &["spec", "template", "metadata", "labels"]);
    let labelled = |pod: &&&Value| labels.iter().all(|(key, value)| *value == label(pod, key));
    let mut status = map(set, &["status"]);
    status.insert("observedGeneration".into(), generation(set).into());
    status.insert("replicas".into(), active.len().into());
    put_count(&mut status, "fullyLabeledReplicas", total(active.iter().filter(labelled).count()));
    put_count(&mut status, "readyReplicas", total(active.iter().filter(|pod| pod::is_ready(pod)).count()));
    put_count(&mut status, "availableReplicas", available);
    put_count(&mut status, "terminatingReplicas", total(terminating));
    status
}

pub(crate) fn total(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
