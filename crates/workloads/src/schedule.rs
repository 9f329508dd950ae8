//! Which node takes a pod: selectors, taints and readiness, but no resources (a simulated node is endless).

use crate::condition::is_true;
use crate::naming::digest;
use crate::object::{deleting, flag, items, label, name, text, uid};
use serde_json::Value;

/// A node for `pod`, the same one every time for the same nodes; `None` if none will take it.
pub(crate) fn choose<'a>(pod: &Value, nodes: &[&'a Value]) -> Option<&'a Value> {
    nodes
        .iter()
        .copied()
        .filter(|node| accepts(node, &pod["spec"]))
        .filter(|node| !flag(node, &["spec", "unschedulable"]) && is_true(node, "Ready"))
        // Rendezvous hashing spreads the pods evenly and keeps the choice stable as nodes come and go.
        .max_by_key(|node| (digest(&[uid(pod), name(pod), name(node)]), name(node)))
}

/// Whether the pod's node selector and tolerations allow `node`.
pub(crate) fn accepts(node: &Value, pod_spec: &Value) -> bool {
    !deleting(node) && selected(node, pod_spec) && tolerated(node, items(pod_spec, &["tolerations"]))
}

fn selected(node: &Value, pod_spec: &Value) -> bool {
    pod_spec["nodeSelector"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| node["metadata"]["labels"][key].is_string() && *value == label(node, key))
}

fn tolerated(node: &Value, tolerations: &[Value]) -> bool {
    items(node, &["spec", "taints"])
        .iter()
        .filter(|taint| matches!(text(taint, &["effect"]), "NoSchedule" | "NoExecute"))
        // The node lifecycle taints follow conditions that the caller looks at itself.
        .filter(|taint| !text(taint, &["key"]).starts_with("node.kubernetes.io/"))
        .all(|taint| tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let effect = text(toleration, &["effect"]);
    let key = text(toleration, &["key"]);
    let exists = text(toleration, &["operator"]) == "Exists";
    (effect.is_empty() || effect == text(taint, &["effect"]))
        && (key == text(taint, &["key"]) || (key.is_empty() && exists))
        && (exists || text(toleration, &["value"]) == text(taint, &["value"]))
}
