//! Who may do what, and whose Pods come first.

use serde_json::Value;

use super::Row;
use crate::lookup::{flag, list, text};

pub(super) fn binding(row: Row<'_>) -> Vec<Value> {
    let of = |kind: &str| {
        let names: Vec<String> = list(row.object, "subjects")
            .iter()
            .filter(|subject| text(subject, "kind") == kind)
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
                _ => text(subject, "name").to_owned(),
            })
            .collect();
        Value::from(names.join(", "))
    };
    vec![
        row.name(),
        format!("{}/{}", text(row.object, "roleRef.kind"), text(row.object, "roleRef.name")).into(),
        row.age(),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]
}

pub(super) fn priority_class(row: Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.int("value").into(),
        flag(row.object, "globalDefault").into(),
        row.age(),
        row.text("preemptionPolicy"),
    ]
}
