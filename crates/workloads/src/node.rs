//! Nodes: registered and ready, as their kubelet would report.

use crate::Kind;
use crate::behaviour::Behaviour;
use crate::condition::{self, Condition};
use crate::decision::Decision;
use crate::naming::{address, digest};
use crate::object::{deleting, label, map, name};
use crate::settings::Settings;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub(crate) fn decide(node: &Value, settings: &Settings, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if deleting(node) {
        return decision;
    }
    let missing: Map<String, Value> = [
        ("kubernetes.io/hostname", name(node)),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ]
    .into_iter()
    .filter(|(key, _)| label(node, key).is_empty())
    .map(|(key, value)| (key.to_owned(), value.into()))
    .collect();
    if !missing.is_empty() {
        decision.patch(node, json!({"metadata": {"labels": missing}}));
    }
    let behaviour = Behaviour::of(node);
    let due = settings.due(node, Kind::Node, &behaviour);
    let was_ready = condition::is_true(node, "Ready");
    let ready = match &behaviour.fail {
        Some(reason) => Condition { kind: "Ready", status: "False", reason, message: "simulated" },
        None if was_ready || (due <= now && !behaviour.stuck) => Condition {
            kind: "Ready",
            status: "True",
            reason: "KubeletReady",
            message: "kubelet is posting ready status",
        },
        None => {
            decision.wake_by((!behaviour.stuck).then_some(due));
            Condition {
                kind: "Ready",
                status: "False",
                reason: "KubeletNotReady",
                message: "container runtime network not ready",
            }
        }
    };
    decision.status(node, status(node, &ready, now));
    decision
}

fn status(node: &Value, ready: &Condition, now: Timestamp) -> Map<String, Value> {
    let mut status = map(node, &["status"]);
    let size = json!({"cpu": "16", "memory": "64Gi", "ephemeral-storage": "256Gi", "pods": "110"});
    let capacity = status.entry("capacity").or_insert(size).clone();
    status.entry("allocatable").or_insert(capacity);
    status.entry("addresses").or_insert_with(|| {
        json!([
            {"type": "InternalIP", "address": address("172.18", &[name(node)])},
            {"type": "Hostname", "address": name(node)},
        ])
    });
    status.entry("nodeInfo").or_insert_with(|| info(name(node)));
    for (kind, reason, message) in [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ] {
        condition::set(&mut status, &Condition { kind, status: "False", reason, message }, now);
    }
    condition::set(&mut status, ready, now);
    status
}

fn info(node: &str) -> Value {
    let id = format!("{:016x}", digest(&[node]));
    json!({
        "machineID": id,
        "systemUUID": id,
        "bootID": id,
        "kernelVersion": "simulated",
        "osImage": "simulated",
        "containerRuntimeVersion": "containerd://2.0.0",
        "kubeletVersion": "v1.33.0",
        "kubeProxyVersion": "v1.33.0",
        "operatingSystem": "linux",
        "architecture": "amd64",
    })
}
