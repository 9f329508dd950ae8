//! Pods: scheduler and kubelet in one. Bound to a node at once, ready (or finished) after the delay.

mod containers;

use crate::Kind;
use crate::behaviour::Behaviour;
use crate::condition::{self, Condition};
use crate::decision::{Decision, Removal};
use crate::family::Family;
use crate::naming::address;
use crate::object::{after, at, count, deleting, items, map, name, seconds, stamp, text, time, uid};
use crate::ownership::is_finished;
use crate::schedule;
use crate::settings::Settings;
use containers::Stage;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub(crate) fn decide(pod: &Value, family: &Family<'_>, settings: &Settings, now: Timestamp) -> Decision {
    let behaviour = Behaviour::of(pod);
    if deleting(pod) {
        return terminate(pod, &behaviour, settings, now);
    }
    if is_finished(pod) {
        return Decision::default();
    }
    let mut decision = Decision::default();
    let bound = text(pod, &["spec", "nodeName"]);
    let nodes: Vec<_> = family.of_kind(Kind::Node).collect();
    let node = if !bound.is_empty() {
        bound
    } else {
        match find_node(pod, &nodes, &behaviour) {
            Ok(node) => {
                decision.patch(pod, json!({"spec": {"nodeName": name(node)}}));
                name(node)
            }
            Err((reason, message)) => {
                decision.status(pod, unscheduled(pod, reason, &message, now));
                return decision;
            }
        }
    };
    let (stage, wake_at) = stage(pod, &behaviour, settings, now);
    decision.status(pod, status(pod, node, &stage, now));
    decision.wake_by(wake_at);
    decision
}

/// Whether a pod counts as ready for its owners.
pub(crate) fn is_ready(pod: &Value) -> bool {
    text(pod, &["status", "phase"]) == "Running" && condition::is_true(pod, "Ready")
}

/// Whether a pod has been ready for `min_ready` seconds; otherwise, if it is ready, when it will have been.
pub(crate) fn available(pod: &Value, min_ready: i64, now: Timestamp) -> Result<(), Option<Timestamp>> {
    if !is_ready(pod) {
        return Err(None);
    }
    let since = condition::find(pod, "Ready").and_then(|ready| time(ready, &["lastTransitionTime"]));
    match since.map(|since| after(since, seconds(min_ready))) {
        Some(at) if min_ready > 0 && at > now => Err(Some(at)),
        _ => Ok(()),
    }
}

fn terminate(pod: &Value, behaviour: &Behaviour, settings: &Settings, now: Timestamp) -> Decision {
    let grace = seconds(count(pod, &["metadata", "deletionGracePeriodSeconds"]));
    let stop = behaviour.deletion_delay.unwrap_or_else(|| settings.termination_delay.min(grace));
    // The recorded timestamp is the end of the grace period, not the request.
    let requested = time(pod, &["metadata", "deletionTimestamp"])
        .and_then(|end| end.checked_sub(grace).ok())
        .unwrap_or(Timestamp::MIN);
    let gone_at = after(requested, stop);
    if gone_at > now {
        return Decision::wake(gone_at);
    }
    let mut decision = Decision::default();
    // With the grace period already zero only finalizers keep the object, and those are not ours.
    if !grace.is_zero() || items(pod, &["metadata", "finalizers"]).is_empty() {
        decision.delete(pod, Removal::Final);
    }
    decision
}

fn find_node<'a>(
    pod: &Value,
    nodes: &[&'a Value],
    behaviour: &Behaviour,
) -> Result<&'a Value, (&'static str, String)> {
    if !items(pod, &["spec", "schedulingGates"]).is_empty() {
        return Err(("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates".into()));
    }
    if behaviour.fail.as_deref() == Some("Unschedulable") {
        return Err(("Unschedulable", format!("0/{} nodes are available: simulated.", nodes.len())));
    }
    schedule::choose(pod, nodes).ok_or_else(|| match nodes.len() {
        0 => ("Unschedulable", "no nodes available to schedule pods".into()),
        total => ("Unschedulable", format!("0/{total} nodes are available.")),
    })
}

fn unscheduled(pod: &Value, reason: &str, message: &str, now: Timestamp) -> Map<String, Value> {
    let mut status = map(pod, &["status"]);
    status.insert("phase".into(), "Pending".into());
    status.entry("qosClass").or_insert_with(|| quality_of_service(pod).into());
    condition::set(&mut status, &Condition { kind: "PodScheduled", status: "False", reason, message }, now);
    status
}

/// Where in its life the pod is now, and when that changes by itself.
fn stage(
    pod: &Value,
    behaviour: &Behaviour,
    settings: &Settings,
    now: Timestamp,
) -> (Stage, Option<Timestamp>) {
    let finite = matches!(text(pod, &["spec", "restartPolicy"]), "Never" | "OnFailure");
    let due = settings.due(pod, if finite { Kind::Job } else { Kind::Pod }, behaviour);
    let was_ready = !finite && condition::is_true(pod, "Ready");
    let elapsed = due <= now || was_ready;
    let failure = behaviour.fail.as_deref().filter(|reason| *reason != "Unschedulable");
    let stage = match failure {
        Some(reason) if elapsed => Stage::failing(reason, text(pod, &["spec", "restartPolicy"])),
        _ if was_ready => Stage::Running { ready: true },
        _ if elapsed && !behaviour.stuck && finite => Stage::Succeeded,
        _ if elapsed && !behaviour.stuck => Stage::Running { ready: true },
        _ if finite => Stage::Running { ready: true },
        _ => Stage::Creating,
    };
    let moves_on = !elapsed && (failure.is_some() || !behaviour.stuck);
    (stage, moves_on.then_some(due))
}

fn status(pod: &Value, node: &str, stage: &Stage, now: Timestamp) -> Map<String, Value> {
    let mut status = map(pod, &["status"]);
    status.insert("phase".into(), stage.phase().into());
    status.entry("startTime").or_insert_with(|| stamp(now).into());
    status.entry("qosClass").or_insert_with(|| quality_of_service(pod).into());
    let host = address("172.18", &[node]);
    status.insert("hostIPs".into(), json!([{"ip": host}]));
    status.insert("hostIP".into(), host.into());
    if stage.has_network() || status.contains_key("podIP") {
        let ip = address("10.244", &[uid(pod), name(pod)]);
        status.insert("podIPs".into(), json!([{"ip": ip}]));
        status.insert("podIP".into(), ip.into());
    }
    conditions(pod, &mut status, stage, now);
    containers::describe(pod, &mut status, stage, now);
    status
}

fn conditions(pod: &Value, status: &mut Map<String, Value>, stage: &Stage, now: Timestamp) {
    let truth = |yes: bool| if yes { "True" } else { "False" };
    let idle = match stage {
        Stage::Succeeded => Some("PodCompleted"),
        Stage::Failed { .. } => Some("PodFailed"),
        _ => None,
    };
    let unready = format!("containers with unready status: [{}]", container_names(pod).join(" "));
    let (reason, message) = match (stage.is_ready(), idle) {
        (true, _) => ("", ""),
        (false, Some(reason)) => (reason, ""),
        (false, None) => ("ContainersNotReady", unready.as_str()),
    };
    let gates_open = items(pod, &["spec", "readinessGates"])
        .iter()
        .all(|gate| condition::is_true(pod, text(gate, &["conditionType"])));
    let ready = if stage.is_ready() && !gates_open {
        Condition { kind: "Ready", status: "False", reason: "ReadinessGatesNotReady", message: "" }
    } else {
        Condition { kind: "Ready", status: truth(stage.is_ready()), reason, message }
    };
    let all = [
        Condition {
            kind: "PodReadyToStartContainers",
            status: truth(stage.has_network()),
            reason: "",
            message: "",
        },
        Condition {
            kind: "Initialized",
            status: "True",
            reason: if matches!(stage, Stage::Succeeded) { "PodCompleted" } else { "" },
            message: "",
        },
        ready,
        Condition { kind: "ContainersReady", status: truth(stage.is_ready()), reason, message },
        Condition { kind: "PodScheduled", status: "True", reason: "", message: "" },
    ];
    for wanted in &all {
        condition::set(status, wanted, now);
    }
}

fn container_names(pod: &Value) -> Vec<&str> {
    items(pod, &["spec", "containers"]).iter().map(|container| text(container, &["name"])).collect()
}

fn quality_of_service(pod: &Value) -> &'static str {
    let sides = |container: &Value| {
        let side = |name| map(container, &["resources", name]);
        (side("requests"), side("limits"))
    };
    let containers = items(pod, &["spec", "containers"]);
    if containers.iter().map(sides).all(|(requests, limits)| requests.is_empty() && limits.is_empty()) {
        return "BestEffort";
    }
    let guaranteed = containers.iter().all(|container| {
        ["cpu", "memory"].iter().all(|resource| {
            let limit = at(container, &["resources", "limits", resource]);
            let request = at(container, &["resources", "requests", resource]);
            !limit.is_null() && (request.is_null() || request == limit)
        })
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}
