//! Pods: how many containers are ready, and the one word for where it stands.

use jiff::Timestamp;
use serde_json::Value;

use super::Row;
use super::selectors::labels;
use crate::age::{human_age, moment};
use crate::lookup::{at, flag, int, list, text};

pub(super) fn pod(row: Row<'_>) -> Vec<Value> {
    let summary = Summary::of(row.object);
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts > 0 => {
            format!("{} ({} ago)", summary.restarts, human_age(last, row.now))
        }
        _ => summary.restarts.to_string(),
    };
    let address = list(row.object, "status.podIPs")
        .first()
        .map_or_else(|| text(row.object, "status.podIP"), |first| text(first, "ip"));
    vec![
        row.name(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        row.age(),
        if address.is_empty() { "<none>".into() } else { address.into() },
        row.text_or("spec.nodeName", "<none>"),
        row.text_or("status.nominatedNodeName", "<none>"),
        readiness_gates(row.object).into(),
    ]
}

pub(super) fn template(row: Row<'_>) -> Vec<Value> {
    let (names, images) = containers(row.object, "template.spec.containers");
    vec![row.name(), names, images, labels(row.object, "template.metadata.labels")]
}

/// The names and the images of containers.
pub(super) fn containers(object: &Value, path: &str) -> (Value, Value) {
    let join = |field: &str| {
        let all: Vec<&str> = list(object, path).iter().map(|container| text(container, field)).collect();
        Value::from(all.join(","))
    };
    (join("name"), join("image"))
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| holds(pod, text(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}

fn holds(pod: &Value, condition: &str) -> bool {
    list(pod, "status.conditions")
        .iter()
        .any(|known| text(known, "type") == condition && text(known, "status") == "True")
}

/// What the containers' states add up to.
#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Summary {
    fn of(pod: &Value) -> Summary {
        let sidecars = |name: &str| {
            let init = list(pod, "spec.initContainers");
            init.iter().any(|known| text(known, "name") == name && text(known, "restartPolicy") == "Always")
        };
        let mut summary = Summary {
            reason: reason_of_phase(pod),
            total: list(pod, "spec.containers").len(),
            ..Summary::default()
        };
        for container in list(pod, "spec.initContainers") {
            summary.total += usize::from(text(container, "restartPolicy") == "Always");
        }
        let mut of_sidecars = Summary::default();
        let mut initializing = false;
        let count = list(pod, "spec.initContainers").len();
        for (place, status) in list(pod, "status.initContainerStatuses").iter().enumerate() {
            summary.count_restarts(status);
            let sidecar = sidecars(text(status, "name"));
            if sidecar {
                of_sidecars.count_restarts(status);
            }
            match init_reason(status, sidecar, place, count) {
                None => {
                    summary.ready += usize::from(sidecar && flag(status, "started") && flag(status, "ready"))
                }
                Some(reason) => {
                    summary.reason = reason;
                    initializing = true;
                    break;
                }
            }
        }
        if !initializing || holds(pod, "Initialized") {
            summary.restarts = of_sidecars.restarts;
            summary.last_restart = of_sidecars.last_restart;
            summary.add_containers(pod);
        }
        let terminal = matches!(text(pod, "status.phase"), "Succeeded" | "Failed");
        if at(pod, "metadata.deletionTimestamp").is_some() {
            if text(pod, "status.reason") == "NodeLost" {
                summary.reason = "Unknown".into();
            } else if !terminal {
                summary.reason = "Terminating".into();
            }
        }
        summary
    }

    fn count_restarts(&mut self, status: &Value) {
        self.restarts = self.restarts.saturating_add(int(status, "restartCount").unwrap_or(0));
        let finished = at(status, "lastState.terminated.finishedAt").and_then(moment);
        self.last_restart = self.last_restart.max(finished);
    }

    fn add_containers(&mut self, pod: &Value) {
        let mut running = false;
        // The first container has the last word.
        for status in list(pod, "status.containerStatuses").iter().rev() {
            self.count_restarts(status);
            let waiting = text(status, "state.waiting.reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(ended) = at(status, "state.terminated") {
                self.reason = end_reason(ended);
            } else if flag(status, "ready") && at(status, "state.running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            self.reason = if holds(pod, "Ready") { "Running".into() } else { "NotReady".into() };
        }
    }
}

fn reason_of_phase(pod: &Value) -> String {
    let gated = list(pod, "status.conditions").iter().any(|condition| {
        text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated"
    });
    match text(pod, "status.reason") {
        _ if gated => "SchedulingGated",
        "" => text(pod, "status.phase"),
        reason => reason,
    }
    .to_owned()
}

/// What an init container that is not done says about its Pod.
fn init_reason(status: &Value, sidecar: bool, place: usize, count: usize) -> Option<String> {
    if let Some(ended) = at(status, "state.terminated") {
        if int(ended, "exitCode").unwrap_or(0) == 0 {
            return None;
        }
        return Some(format!("Init:{}", end_reason(ended)));
    }
    if sidecar && flag(status, "started") {
        return None;
    }
    match text(status, "state.waiting.reason") {
        "" | "PodInitializing" => Some(format!("Init:{place}/{count}")),
        reason => Some(format!("Init:{reason}")),
    }
}

fn end_reason(ended: &Value) -> String {
    match (text(ended, "reason"), int(ended, "signal").unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", int(ended, "exitCode").unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
