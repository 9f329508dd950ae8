//! What a Deployment reports: counters, and whether it is available and progressing.

use super::{Rollout, is_recreate};
use crate::condition::{self, Condition};
use crate::decision::Decision;
use crate::object::{after, count, flag, generation, int, map, name, put_count, seconds, text, time};
use crate::replicaset::replicas;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// A deadline of this size means none, as `kubectl` users write it.
const NO_DEADLINE: i64 = i32::MAX as i64;

pub(super) fn report(decision: &mut Decision, rollout: &Rollout<'_>, created: Option<&str>, now: Timestamp) {
    let deployment = rollout.deployment;
    let mut status = map(deployment, &["status"]);
    let counts = Counts::of(rollout);
    status.insert("observedGeneration".into(), generation(deployment).into());
    put_count(&mut status, "replicas", counts.total);
    put_count(&mut status, "updatedReplicas", counts.updated);
    put_count(&mut status, "readyReplicas", counts.ready);
    put_count(&mut status, "availableReplicas", counts.available);
    put_count(&mut status, "unavailableReplicas", counts.wanted.saturating_sub(counts.available));
    put_count(&mut status, "terminatingReplicas", counts.terminating);
    report_available(rollout, &counts, &mut status, now);
    let wake_at = report_progress(rollout, &counts, created, &mut status, now);
    decision.status(deployment, status);
    decision.wake_by(wake_at);
}

/// All pods are of the new template, all are available, and no old one is left.
pub(super) fn is_complete(rollout: &Rollout<'_>) -> bool {
    let counts = Counts::of(rollout);
    counts.updated == rollout.replicas
        && counts.total == rollout.replicas
        && counts.available == rollout.replicas
        && rollout.new.is_some_and(|new| replicas(new) == rollout.replicas)
}

struct Counts {
    wanted: i64,
    total: i64,
    updated: i64,
    ready: i64,
    available: i64,
    terminating: i64,
}

// === impl Counts ===

impl Counts {
    fn of(rollout: &Rollout<'_>) -> Self {
        let sum = |key| rollout.all().map(|set| count(set, &["status", key])).fold(0, i64::saturating_add);
        Self {
            wanted: rollout.all().map(replicas).fold(0, i64::saturating_add),
            total: sum("replicas"),
            updated: rollout.new.map_or(0, |new| count(new, &["status", "replicas"])),
            ready: sum("readyReplicas"),
            available: sum("availableReplicas"),
            terminating: sum("terminatingReplicas"),
        }
    }
}

fn report_available(rollout: &Rollout<'_>, counts: &Counts, status: &mut Map<String, Value>, now: Timestamp) {
    let tolerated = if is_recreate(rollout.deployment) { 0 } else { rollout.max_unavailable };
    let wanted = if counts.available >= rollout.replicas.saturating_sub(tolerated) {
        Condition {
            kind: "Available",
            status: "True",
            reason: "MinimumReplicasAvailable",
            message: "Deployment has minimum availability.",
        }
    } else {
        Condition {
            kind: "Available",
            status: "False",
            reason: "MinimumReplicasUnavailable",
            message: "Deployment does not have minimum availability.",
        }
    };
    condition::set_with_update_time(status, &wanted, false, now);
}

/// Sets the Progressing condition and returns when its deadline passes.
fn report_progress(
    rollout: &Rollout<'_>,
    counts: &Counts,
    created: Option<&str>,
    status: &mut Map<String, Value>,
    now: Timestamp,
) -> Option<Timestamp> {
    let deployment = rollout.deployment;
    let deadline = int(deployment, &["spec", "progressDeadlineSeconds"]).unwrap_or(600);
    if deadline >= NO_DEADLINE {
        condition::remove(status, "Progressing");
        return None;
    }
    let before = condition::find(deployment, "Progressing");
    let reason_before = before.map_or("", |condition| text(condition, &["reason"]));
    let set = |status: &mut _, truth, reason, message: &str, refresh| {
        let wanted = Condition { kind: "Progressing", status: truth, reason, message };
        condition::set_with_update_time(status, &wanted, refresh, now);
    };
    if flag(deployment, &["spec", "paused"]) {
        set(status, "Unknown", "DeploymentPaused", "Deployment is paused", false);
        return None;
    }
    let set_name = created.or(rollout.new.map(name)).unwrap_or_default();
    if let Some(created) = created {
        let message = format!("Created new replica set \"{created}\"");
        set(status, "True", "NewReplicaSetCreated", &message, true);
        return Some(after(now, seconds(deadline)));
    }
    if is_complete(rollout) {
        let message = format!("ReplicaSet \"{set_name}\" has successfully progressed.");
        set(status, "True", "NewReplicaSetAvailable", &message, false);
        return None;
    }
    // A finished rollout stays finished while its pods come and go or it is scaled.
    if reason_before == "NewReplicaSetAvailable" && counts.total == counts.updated {
        return None;
    }
    if reason_before == "DeploymentPaused" {
        set(status, "Unknown", "DeploymentResumed", "Deployment is resumed", true);
        return Some(after(now, seconds(deadline)));
    }
    if before.is_none() || reason_before == "NewReplicaSetAvailable" || has_moved(deployment, counts) {
        let message = format!("ReplicaSet \"{set_name}\" is progressing.");
        set(status, "True", "ReplicaSetUpdated", &message, true);
        return Some(after(now, seconds(deadline)));
    }
    if reason_before == "ProgressDeadlineExceeded" {
        return None;
    }
    let since = before.and_then(|condition| time(condition, &["lastUpdateTime"])).unwrap_or(now);
    let ends = after(since, seconds(deadline));
    if ends <= now {
        let message = format!("ReplicaSet \"{set_name}\" has timed out progressing.");
        set(status, "False", "ProgressDeadlineExceeded", &message, false);
        return None;
    }
    Some(ends)
}

/// Whether the counters are closer to the goal than those reported last.
fn has_moved(deployment: &Value, counts: &Counts) -> bool {
    let reported = |key| count(deployment, &["status", key]);
    let old_before = reported("replicas").saturating_sub(reported("updatedReplicas"));
    counts.updated > reported("updatedReplicas")
        || counts.ready > reported("readyReplicas")
        || counts.available > reported("availableReplicas")
        || counts.total.saturating_sub(counts.updated) < old_before
}
