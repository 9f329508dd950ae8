//! Taking over fields that client-side apply wrote.
//!
//! They belong to a manager that updated them, so server-side apply would never remove one that left git. Moved to our
//! own manager first, they are removed like any other.

use baton_api::object::Object;
use serde_json::{Map, Value, json};

use super::FIELD_MANAGER;

/// The patch that moves the fields of `from`, and those Argo CD itself wrote by client-side apply, to our manager;
/// `None` if there are none.
pub(super) fn migration(live: &Value, from: &str) -> Option<Value> {
    let entries = live["metadata"]["managedFields"].as_array()?;
    let is_ours = |entry: &Value| {
        entry["manager"] == FIELD_MANAGER
            && entry["operation"] == "Apply"
            && entry.get("subresource").is_none()
    };
    let is_taken = |entry: &Value| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        entry["operation"] == "Update"
            && entry.get("subresource").is_none()
            && (manager == from || manager == FIELD_MANAGER || manager == "before-first-apply")
    };
    if !entries.iter().any(is_taken) {
        return None;
    }
    let newest = entries
        .iter()
        .find(|entry| is_ours(entry))
        .or_else(|| entries.iter().find(|entry| is_taken(entry)))?;
    // Entries of another version spell fields differently and stay as they are.
    let version = &newest["apiVersion"];
    let joined =
        entries.iter().filter(|entry| (is_ours(entry) || is_taken(entry)) && entry["apiVersion"] == *version);
    let mut fields = Value::Object(Map::new());
    for entry in joined {
        unite(&mut fields, &entry["fieldsV1"], 0);
    }
    let mut ours = newest.clone();
    ours["manager"] = FIELD_MANAGER.into();
    ours["operation"] = "Apply".into();
    ours["fieldsV1"] = fields;
    let others = entries
        .iter()
        .filter(|entry| !((is_ours(entry) || is_taken(entry)) && entry["apiVersion"] == *version));
    let all: Vec<Value> = std::iter::once(ours).chain(others.cloned()).collect();
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": live.uid()},
        {"op": "replace", "path": "/metadata/managedFields", "value": all},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()},
    ]))
}

/// Deeper fields than this are left out; the API has none.
const DEEPEST: usize = 128;

/// Adds the fields of one set to another. A field without fields is itself a member; one with fields is a member only
/// if it says so with a dot.
fn unite(into: &mut Value, from: &Value, depth: usize) {
    let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) else { return };
    if depth > DEEPEST {
        return;
    }
    for (name, fields) in from {
        match into.get_mut(name) {
            None => drop(into.insert(name.clone(), fields.clone())),
            Some(known) => {
                let is_leaf = |set: &Value| set.as_object().is_some_and(Map::is_empty);
                let mixed = is_leaf(known) != is_leaf(fields);
                unite(known, fields, depth + 1);
                if mixed
                    && name != "."
                    && let Some(known) = known.as_object_mut()
                {
                    known.insert(".".to_owned(), json!({}));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(entries: Value) -> Value {
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "managedFields": entries}})
    }

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields})
    }

    #[test]
    fn fields_of_client_side_apply_become_ours() {
        let patch = migration(
            &live(json!([
                entry("argocd-controller", "Apply", json!({"f:data": {"f:a": {}}})),
                entry("kubectl-client-side-apply", "Update", json!({"f:data": {".": {}, "f:b": {}}})),
                entry("someone", "Update", json!({"f:data": {"f:c": {}}})),
            ])),
            "kubectl-client-side-apply",
        )
        .expect("something to take over");
        let entries = patch[1]["value"].as_array().expect("entries");
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0]["operation"], "Apply");
        assert_eq!(entries[0]["fieldsV1"], json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        assert_eq!(entries[1]["manager"], "someone");
        assert_eq!(patch[2]["value"], "7");
    }

    #[test]
    fn nothing_is_done_where_nothing_is_to_be_taken_over() {
        let ours = entry("argocd-controller", "Apply", json!({}));
        let mut status = entry("kubectl-client-side-apply", "Update", json!({}));
        status["subresource"] = "status".into();
        assert_eq!(migration(&live(json!([ours, status])), "kubectl-client-side-apply"), None);
        assert_eq!(migration(&json!({}), "kubectl-client-side-apply"), None);
    }

    #[test]
    fn a_field_that_is_a_member_stays_one() {
        let mut into = json!({"f:a": {}, "f:b": {"f:x": {}}});
        unite(&mut into, &json!({"f:a": {"f:y": {}}, "f:b": {}, "f:c": {}}), 0);
        assert_eq!(into, json!({"f:a": {".": {}, "f:y": {}}, "f:b": {".": {}, "f:x": {}}, "f:c": {}}));
    }
}
