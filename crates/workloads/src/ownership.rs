//! Owners and the children they make: claiming, handing down annotations, pods from templates.

use crate::Kind;
use crate::behaviour::{INHERITED, inheritance};
use crate::decision::Decision;
use crate::family::Family;
use crate::object::{
    annotation, controlled_by, controller, created, deleting, items, map, name, namespace, owner_reference,
    text,
};
use crate::selector;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The children of `owner`, oldest first. Orphans that its selector matches are adopted and count from
/// the next decision on.
pub(crate) fn claim<'a>(
    decision: &mut Decision,
    owner: &Value,
    family: &Family<'a>,
    kind: Kind,
) -> Vec<&'a Value> {
    let mut children = Vec::new();
    for child in family.of_kind(kind).filter(|child| namespace(child) == namespace(owner)) {
        if controlled_by(child, owner) {
            children.push(child);
        } else if controller(child).is_none()
            && !deleting(child)
            && selector::matches(&owner["spec"]["selector"], child)
        {
            let mut owners = items(child, &["metadata", "ownerReferences"]).to_vec();
            owners.push(owner_reference(owner));
            decision.patch(child, json!({"metadata": {"ownerReferences": owners}}));
        }
    }
    children.sort_by_cached_key(|child| (created(child).unwrap_or(Timestamp::MIN), name(child)));
    children
}

/// Keeps the owner's `sim.baton.dev/` annotations visible on its children.
pub(crate) fn hand_down(decision: &mut Decision, owner: &Value, children: &[&Value]) {
    let wanted = inheritance(owner).unwrap_or_default();
    for child in children.iter().filter(|child| annotation(child, INHERITED) != wanted) {
        decision.annotate(child, INHERITED, Some(wanted.as_str()).filter(|wanted| !wanted.is_empty()));
    }
}

/// A pod of `owner` from `template`, with `labels` on top of the template's.
pub(crate) fn pod_from(owner: &Value, template: &Value, pod_name: &str, labels: &[(&str, &str)]) -> Value {
    let mut all_labels = map(template, &["metadata", "labels"]);
    for (key, value) in labels {
        all_labels.insert((*key).to_owned(), (*value).into());
    }
    let mut annotations = map(template, &["metadata", "annotations"]);
    if let Some(inherited) = inheritance(owner) {
        annotations.insert(INHERITED.to_owned(), inherited.into());
    }
    let mut metadata = Map::new();
    metadata.insert("name".into(), pod_name.into());
    metadata.insert("generateName".into(), format!("{}-", name(owner)).into());
    metadata.insert("namespace".into(), namespace(owner).into());
    metadata.insert("labels".into(), Value::Object(all_labels));
    if !annotations.is_empty() {
        metadata.insert("annotations".into(), Value::Object(annotations));
    }
    metadata.insert("ownerReferences".into(), json!([owner_reference(owner)]));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": map(template, &["spec"]),
    })
}

pub(crate) fn is_finished(pod: &Value) -> bool {
    matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed")
}

/// Counts towards the wanted replicas: neither finished nor on its way out.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_finished(pod) && !deleting(pod)
}
