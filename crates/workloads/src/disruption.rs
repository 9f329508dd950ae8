//! PodDisruptionBudgets: how many of the matching pods may be evicted now.

use crate::Kind;
use crate::condition::{self, Condition};
use crate::decision::Decision;
use crate::family::Family;
use crate::object::{deleting, generation, map, namespace, portion};
use crate::ownership::is_active;
use crate::pod;
use crate::replicaset::total;
use crate::selector;
use jiff::Timestamp;
use serde_json::Value;

pub(crate) fn decide(budget: &Value, family: &Family<'_>, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if deleting(budget) {
        return decision;
    }
    let pods: Vec<_> = family
        .of_kind(Kind::Pod)
        .filter(|pod| namespace(pod) == namespace(budget) && is_active(pod))
        .filter(|pod| covers(&budget["spec"]["selector"], pod))
        .collect();
    let expected = total(pods.len());
    let healthy = total(pods.iter().filter(|pod| pod::is_ready(pod)).count());
    let desired = match portion(&budget["spec"]["maxUnavailable"], expected, true) {
        Some(unavailable) => expected.saturating_sub(unavailable).max(0),
        None => portion(&budget["spec"]["minAvailable"], expected, true).unwrap_or(1),
    };
    let allowed = if expected == 0 { 0 } else { healthy.saturating_sub(desired).max(0) };
    let mut status = map(budget, &["status"]);
    for (key, value) in [
        ("observedGeneration", generation(budget)),
        ("expectedPods", expected),
        ("currentHealthy", healthy),
        ("desiredHealthy", desired),
        ("disruptionsAllowed", allowed),
    ] {
        status.insert(key.into(), value.into());
    }
    let (truth, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let wanted = Condition { kind: "DisruptionAllowed", status: truth, reason, message: "" };
    condition::set(&mut status, &wanted, now);
    decision.status(budget, status);
    decision
}

/// Unlike elsewhere, an empty selector here means every pod of the namespace.
fn covers(wanted: &Value, pod: &Value) -> bool {
    wanted.as_object().is_some_and(serde_json::Map::is_empty) || selector::matches(wanted, pod)
}
