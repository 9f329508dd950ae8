//! The CRDs' schemas, read and used as the API server does.

use std::sync::LazyLock;

use baton_schema::{Reader, Validator};
use serde_json::{Value, json};

static CRDS: LazyLock<Vec<Value>> = LazyLock::new(baton_api::crds);

/// The schema document of a kind.
pub(crate) fn document(kind: &str) -> &'static Value {
    let definition = CRDS.iter().find(|crd| crd["spec"]["names"]["kind"] == kind);
    let definition = definition.unwrap_or_else(|| panic!("no CRD for {kind}"));
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// The validator of a kind.
pub(crate) fn validator(kind: &str) -> Validator {
    let schema = Reader::standalone().read(document(kind)).expect("the schema is readable");
    Validator::new(schema).expect("the rules compile")
}

/// What is wrong with an object, one line each; empty if it is accepted.
pub(crate) fn complaints(validator: &Validator, object: &Value) -> Vec<String> {
    validator.validate(object, None).iter().map(ToString::to_string).collect()
}

/// An object in which every field the schema knows has a value that is not its zero value.
pub(crate) fn fullest(schema: &Value) -> Value {
    if let Some(word) = schema["enum"].as_array().and_then(|words| words.first()) {
        return word.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!("25%");
    }
    match schema["type"].as_str() {
        Some("object") => match (schema["properties"].as_object(), &schema["additionalProperties"]) {
            (Some(properties), _) => {
                properties.iter().map(|(name, property)| (name.clone(), fullest(property))).collect()
            }
            (None, Value::Null) => json!({ "any": { "thing": [1, "two", null] } }),
            (None, values) => json!({ "key": fullest(values) }),
        },
        Some("array") => json!([fullest(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("integer") => json!(schema["minimum"].as_i64().unwrap_or(0) + 7),
        Some("string") if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
        Some("string") if schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("ns|us")) => {
            json!("1m30s")
        }
        Some("string") => json!("text"),
        _ if schema["maximum"] == 599 => json!([200, 204]),
        _ => json!({ "free": ["form", 1] }),
    }
}

/// A whole object of a kind with every field set.
pub(crate) fn fullest_object(kind: &str) -> Value {
    let mut object = fullest(document(kind));
    object["apiVersion"] = json!("argoproj.io/v1alpha1");
    object["kind"] = json!(kind);
    object["metadata"] = json!({ "name": "fullest", "namespace": "argocd", "labels": { "a": "b" } });
    object
}

/// Paths of values in `before` that are neither in `after` nor the zero value of their type.
pub(crate) fn lost(before: &Value, after: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    collect_lost(before, Some(after), String::new(), &mut paths);
    paths
}

fn collect_lost(before: &Value, after: Option<&Value>, path: String, paths: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(fields), Some(Value::Object(kept))) => {
            for (name, value) in fields {
                collect_lost(value, kept.get(name), format!("{path}.{name}"), paths);
            }
        }
        (Value::Array(elements), Some(Value::Array(kept))) if elements.len() == kept.len() => {
            for (at, element) in elements.iter().enumerate() {
                collect_lost(element, kept.get(at), format!("{path}[{at}]"), paths);
            }
        }
        (before, Some(after)) if before == after => {}
        // Kubernetes' types hold bounds as floating-point numbers.
        (Value::Number(before), Some(Value::Number(after))) if before.as_f64() == after.as_f64() => {}
        (before, None) if is_zero(before) => {}
        _ => paths.push(path),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}
