//! Volumes, claims and their classes.

use serde_json::Value;

use super::Row;
use super::selectors::or_none;
use crate::lookup::{annotation, at, flag, list, text};

/// Where claims and volumes named their class before they had a field for it.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn volume(row: Row<'_>) -> Vec<Value> {
    let claim = at(row.object, "spec.claimRef")
        .map(|claim| format!("{}/{}", text(claim, "namespace"), text(claim, "name")))
        .unwrap_or_default();
    vec![
        row.name(),
        row.text_or("spec.capacity.storage", "0"),
        access_modes(row.object, "spec.accessModes").into(),
        row.text("spec.persistentVolumeReclaimPolicy"),
        phase(row),
        claim.into(),
        class_name(row.object).into(),
        row.text_or("spec.volumeAttributesClassName", "<unset>"),
        row.text("status.reason"),
        row.age(),
        row.text_or("spec.volumeMode", "<unset>"),
    ]
}

pub(super) fn claim(row: Row<'_>) -> Vec<Value> {
    let bound = !text(row.object, "spec.volumeName").is_empty();
    let (capacity, modes) = if bound {
        (row.text_or("status.capacity.storage", "0"), access_modes(row.object, "status.accessModes"))
    } else {
        ("".into(), String::new())
    };
    vec![
        row.name(),
        phase(row),
        row.text("spec.volumeName"),
        capacity,
        modes.into(),
        class_name(row.object).into(),
        row.text_or("spec.volumeAttributesClassName", "<unset>"),
        row.age(),
        row.text_or("spec.volumeMode", "<unset>"),
    ]
}

fn phase(row: Row<'_>) -> Value {
    if row.deleted() { "Terminating".into() } else { row.text("status.phase") }
}

fn class_name(object: &Value) -> String {
    match annotation(object, CLASS_ANNOTATION) {
        "" => text(object, "spec.storageClassName").to_owned(),
        class => class.to_owned(),
    }
}

/// In one order, each once, by their short names.
fn access_modes(object: &Value, path: &str) -> String {
    const MODES: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| list(object, path).iter().any(|known| known == mode);
    let short: Vec<&str> = MODES.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}

pub(super) fn class(row: Row<'_>) -> Vec<Value> {
    let mut name = text(row.object, "metadata.name").to_owned();
    if annotation(row.object, "storageclass.kubernetes.io/is-default-class") == "true" {
        name.push_str(" (default)");
    }
    vec![
        name.into(),
        row.text("provisioner"),
        row.text_or("reclaimPolicy", "Delete"),
        row.text_or("volumeBindingMode", "Immediate"),
        flag(row.object, "allowVolumeExpansion").into(),
        row.age(),
    ]
}

pub(super) fn driver(row: Row<'_>) -> Vec<Value> {
    let attach = at(row.object, "spec.attachRequired").and_then(Value::as_bool).unwrap_or(true);
    let join = |path: &str, field: Option<&str>| {
        let all: Vec<&str> = list(row.object, path)
            .iter()
            .map(|item| field.map_or_else(|| item.as_str().unwrap_or_default(), |field| text(item, field)))
            .collect();
        all.join(",")
    };
    let tokens = match at(row.object, "spec.tokenRequests") {
        Some(_) => join("spec.tokenRequests", Some("audience")),
        None => "<unset>".to_owned(),
    };
    vec![
        row.name(),
        attach.into(),
        flag(row.object, "spec.podInfoOnMount").into(),
        flag(row.object, "spec.storageCapacity").into(),
        tokens.into(),
        flag(row.object, "spec.requiresRepublish").into(),
        or_none(join("spec.volumeLifecycleModes", None)),
        row.age(),
    ]
}

pub(super) fn attachment(row: Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.text("spec.attacher"),
        row.text("spec.source.persistentVolumeName"),
        row.text("spec.nodeName"),
        flag(row.object, "status.attached").into(),
        row.age(),
    ]
}
