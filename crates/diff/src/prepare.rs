//! A target as it is sent to the API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_api::object::Object as _;
use serde_json::{Map, Value};

use crate::fields::DEEPEST;

/// What only the API server says of an object.
const GENERATED: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// The target as it is sent to a dry run and applied.
///
/// Without status and without what only the API server sets; with `stringData` of a Secret moved into `data`, because
/// the API owns and returns only the latter.
pub fn prepare(target: &Value) -> Value {
    let mut object = target.clone();
    let is_secret = is_secret(&object);
    let Some(fields) = object.as_object_mut() else { return object };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        GENERATED.iter().for_each(|name| drop(metadata.remove(*name)));
    }
    if is_secret {
        join_secret_data(fields);
    }
    drop_empty_creation(&mut object, 0);
    object
}

/// Whether an object is a core Secret.
pub(crate) fn is_secret(object: &Value) -> bool {
    object.kind() == "Secret" && object.group().is_empty()
}

/// Whether a value is one the API may drop without a trace.
pub(crate) fn is_void(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Moves `stringData` into `data`, which it beats. What is no text stays where it is, for the API to refuse.
pub(crate) fn join_secret_data(secret: &mut Map<String, Value>) {
    let texts = match secret.remove("stringData") {
        Some(Value::Object(texts)) => texts,
        Some(Value::Null) | None => Map::new(),
        Some(other) => {
            secret.insert("stringData".to_owned(), other);
            return;
        }
    };
    if !texts.is_empty() && !secret.get("data").is_some_and(Value::is_object) {
        secret.insert("data".to_owned(), Value::Object(Map::new()));
    }
    let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) else { return };
    let mut left = Map::new();
    for (name, text) in texts {
        match text {
            Value::String(text) => drop(data.insert(name, Value::String(STANDARD.encode(text)))),
            Value::Null => drop(data.insert(name, Value::String(String::new()))),
            other => drop(left.insert(name, other)),
        }
    }
    for value in data.values_mut().filter(|value| value.is_null()) {
        *value = Value::String(String::new());
    }
    if !left.is_empty() {
        secret.insert("stringData".to_owned(), Value::Object(left));
    }
}

/// Generated manifests say `creationTimestamp: null` in every metadata, also of templates; nobody means to own it.
fn drop_empty_creation(value: &mut Value, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(fields) => {
            if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut)
                && metadata.get("creationTimestamp").is_some_and(Value::is_null)
            {
                metadata.remove("creationTimestamp");
            }
            fields.values_mut().for_each(|below| drop_empty_creation(below, depth + 1));
        }
        Value::Array(items) => items.iter_mut().for_each(|below| drop_empty_creation(below, depth + 1)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_api_server_sets_is_not_sent() {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
            "name": "web", "creationTimestamp": null, "resourceVersion": "3", "uid": "u", "managedFields": []},
            "spec": {"template": {"metadata": {"creationTimestamp": null, "labels": {"a": "b"}}, "spec": {"x": null}}},
            "status": {}});
        assert_eq!(
            prepare(&target),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"x": null}}}})
        );
    }

    #[test]
    fn texts_of_a_secret_become_data() {
        let secret = |rest: Value| {
            let mut secret = json!({"apiVersion": "v1", "kind": "Secret"});
            secret.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
            secret
        };
        for (given, prepared) in [
            (json!({"stringData": {"a": "x"}}), json!({"data": {"a": "eA=="}})),
            (
                json!({"stringData": {"a": "x"}, "data": {"a": "eQ==", "b": null}}),
                json!({"data": {"a": "eA==", "b": ""}}),
            ),
            (json!({"stringData": null}), json!({})),
            (json!({"stringData": {"a": 1}}), json!({"data": {}, "stringData": {"a": 1}})),
            (json!({"stringData": "x"}), json!({"stringData": "x"})),
        ] {
            assert_eq!(prepare(&secret(given)), secret(prepared));
        }
        let other = json!({"apiVersion": "example.com/v1", "kind": "Secret", "stringData": {"a": "x"}});
        assert_eq!(prepare(&other), other);
    }
}
