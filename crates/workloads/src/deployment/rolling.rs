//! How many replicas each ReplicaSet of a Deployment should have next.

use super::{DESIRED, Rollout, is_observed, is_recreate};
use crate::decision::Decision;
use crate::object::{annotation, count};
use crate::replicaset::replicas;
use serde_json::{Value, json};

/// One step of the rollout; the sets' answers bring the next.
pub(super) fn step(decision: &mut Decision, rollout: &Rollout<'_>) {
    if is_recreate(rollout.deployment) {
        return recreate(decision, rollout);
    }
    // A set that has not answered its last scaling may have more pods, or fewer available ones, than its
    // status says; counting on it could break the bounds.
    if !rollout.all().all(is_observed) {
        return;
    }
    if let Some(new) = rollout.new {
        let size = replicas(new);
        let wanted = size.saturating_add(room(rollout)).min(rollout.replicas).max(size.min(rollout.replicas));
        if wanted != size {
            scale(decision, rollout, new, wanted);
            return;
        }
    }
    shrink_old(decision, rollout);
}

/// The size with which the new set starts.
pub(super) fn first_size(rollout: &Rollout<'_>) -> i64 {
    if is_recreate(rollout.deployment) {
        return rollout.replicas;
    }
    if !rollout.all().all(is_observed) {
        return 0;
    }
    room(rollout).min(rollout.replicas)
}

/// While paused nothing rolls, but a change of `spec.replicas` still reaches the pods.
pub(super) fn rescale(decision: &mut Decision, rollout: &Rollout<'_>) {
    let active: Vec<&Value> = rollout.all().filter(|set| replicas(set) > 0).collect();
    let wanted_text = rollout.replicas.to_string();
    let candidates = if active.is_empty() { rollout.all().last().into_iter().collect() } else { active };
    if candidates.iter().all(|set| annotation(set, DESIRED) == wanted_text) {
        return;
    }
    let total = |sets: &[&Value]| sets.iter().map(|set| replicas(set)).fold(0, i64::saturating_add);
    let target = match candidates.len() {
        0 | 1 => rollout.replicas,
        _ => total(&candidates).clamp(rollout.replicas, rollout.most()),
    };
    let mut surplus = total(&candidates).saturating_sub(target);
    for (index, set) in candidates.iter().enumerate() {
        let newest = index + 1 == candidates.len();
        let size = if surplus > 0 {
            replicas(set).saturating_sub(surplus).max(0)
        } else if newest {
            replicas(set).saturating_sub(surplus)
        } else {
            replicas(set)
        };
        surplus = surplus.saturating_sub(replicas(set).saturating_sub(size));
        scale(decision, rollout, set, size);
    }
}

/// Whether no pod of the set is left, not even one on its way out.
pub(super) fn is_drained(set: &Value) -> bool {
    replicas(set) == 0
        && is_observed(set)
        && count(set, &["status", "replicas"]) == 0
        && count(set, &["status", "terminatingReplicas"]) == 0
}

fn recreate(decision: &mut Decision, rollout: &Rollout<'_>) {
    let mut drained = true;
    for set in &rollout.old {
        drained &= is_drained(set);
        if replicas(set) > 0 {
            scale(decision, rollout, set, 0);
        }
    }
    if let Some(new) = rollout.new.filter(|new| drained && replicas(new) != rollout.replicas) {
        scale(decision, rollout, new, rollout.replicas);
    }
}

/// How many pods may still be added. A set that shrinks counts in full until its pods are gone.
fn room(rollout: &Rollout<'_>) -> i64 {
    let pods = rollout
        .all()
        .map(|set| replicas(set).max(count(set, &["status", "replicas"])))
        .fold(0, i64::saturating_add);
    rollout.most().saturating_sub(pods).max(0)
}

fn shrink_old(decision: &mut Decision, rollout: &Rollout<'_>) {
    let least = rollout.replicas.saturating_sub(rollout.max_unavailable);
    let sum = |of: fn(&Value) -> i64| rollout.all().map(of).fold(0, i64::saturating_add);
    let new_unavailable = rollout.new.map_or(0, |new| replicas(new).saturating_sub(available(new)));
    // First the old pods that do not work anyway, oldest set first: deleting them costs no availability,
    // but the pods that remain must still be enough if the new ones never come up.
    let mut unhealthy = sum(replicas).saturating_sub(least).saturating_sub(new_unavailable).max(0);
    let mut healthy = sum(available).saturating_sub(least).max(0);
    for set in &rollout.old {
        let broken = replicas(set).saturating_sub(available(set)).min(unhealthy);
        let surplus = available(set).min(healthy);
        unhealthy -= broken;
        healthy -= surplus;
        if broken + surplus > 0 {
            scale(decision, rollout, set, replicas(set).saturating_sub(broken + surplus));
        }
    }
}

/// Available pods that will still be there once the set has reached its size: it deletes others first.
fn available(set: &Value) -> i64 {
    count(set, &["status", "availableReplicas"]).min(replicas(set))
}

fn scale(decision: &mut Decision, rollout: &Rollout<'_>, set: &Value, size: i64) {
    decision.patch(
        set,
        json!({"metadata": {"annotations": rollout.size_annotations()}, "spec": {"replicas": size}}),
    );
}
