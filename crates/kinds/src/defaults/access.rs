//! Secrets and who may do what.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::lookup::{ensure, fill, list_mut, remove, set, text};

const RBAC: &str = "rbac.authorization.k8s.io";

/// `stringData` is only for writing: its texts become `data`.
pub(super) fn secret(object: &mut Value) {
    fill(object, "type", "Opaque");
    match object.get("stringData") {
        Some(Value::Object(texts)) if texts.values().all(Value::is_string) => {}
        Some(Value::Null) => return drop(remove(object, "stringData")),
        _ => return,
    }
    let Some(Value::Object(texts)) = remove(object, "stringData") else { return };
    let Some(data) = ensure(object, "data") else { return };
    for (key, value) in texts {
        if let Value::String(value) = value {
            set(data, &key, STANDARD.encode(value));
        }
    }
}

pub(super) fn binding(object: &mut Value) {
    if let Some(role) = object.get_mut("roleRef") {
        fill(role, "apiGroup", RBAC);
    }
    for subject in list_mut(object, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill(subject, "apiGroup", RBAC);
        }
    }
}
