//! Turns what `schemars` says about a type into the structural schema a CRD needs.

use serde_json::{Map, Value, json};

const PRESERVE_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Rewrites one schema and all below it.
///
/// # Guarantees
/// No references, titles, defaults or `null` types; every node has a type, or says that it is a number or a string,
/// or preserves what it holds; no `additionalProperties` beside `properties`.
pub(crate) fn structural(schema: Value) -> Value {
    let mut fields = match schema {
        Value::Object(fields) => fields,
        _ => return json!({ PRESERVE_UNKNOWN: true }),
    };
    for keyword in ["$schema", "$defs", "title", "default"] {
        fields.remove(keyword);
    }
    if let Some(present) = take_nullable(&mut fields) {
        let mut inner = structural(present);
        if let (Value::Object(inner), Some(description)) = (&mut inner, fields.remove("description")) {
            inner.insert("description".into(), description);
        }
        return inner;
    }
    drop_null_type(&mut fields);
    keep_known_format(&mut fields);
    if fields.contains_key(INT_OR_STRING) {
        fields.insert("anyOf".into(), json!([{ "type": "integer" }, { "type": "string" }]));
    }
    if let Some(Value::Object(properties)) = fields.remove("properties") {
        let properties: Map<String, Value> =
            properties.into_iter().map(|(name, property)| (name, structural(property))).collect();
        fields.insert("properties".into(), properties.into());
    }
    if let Some(items) = fields.remove("items") {
        fields.insert("items".into(), structural(items));
    }
    match fields.remove("additionalProperties") {
        Some(values @ Value::Object(_)) => {
            fields.insert("additionalProperties".into(), structural(values));
        }
        Some(Value::Bool(true)) => {
            fields.insert(PRESERVE_UNKNOWN.into(), true.into());
        }
        _ => {}
    }
    Value::Object(fields)
}

/// Removes descriptions from a schema and all below it, but not from a field that has that name.
pub(crate) fn without_descriptions(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.remove("description");
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(keyword) {
            without_descriptions(inner);
        }
    }
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(without_descriptions);
    }
}

/// `anyOf: [X, null]`, as an optional struct is described, gives X.
fn take_nullable(fields: &mut Map<String, Value>) -> Option<Value> {
    let branches = fields.get("anyOf")?.as_array()?;
    let is_null = |branch: &Value| branch.get("type").is_some_and(|kind| kind == "null");
    if branches.len() != 2 || !branches.iter().any(is_null) {
        return None;
    }
    branches.iter().find(|branch| !is_null(branch)).cloned()
}

/// `type: [x, null]`, as an optional scalar is described, becomes x. Kubernetes reads null as absent.
fn drop_null_type(fields: &mut Map<String, Value>) {
    let Some(Value::Array(kinds)) = fields.get("type") else { return };
    if let Some(kind) = kinds.iter().find(|kind| *kind != "null").cloned() {
        fields.insert("type".into(), kind);
    }
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
}

/// Formats of Rust's own, such as `uint`, mean nothing to Kubernetes.
fn keep_known_format(fields: &mut Map<String, Value>) {
    let known = ["int32", "int64", "date-time"];
    if fields.get("format").and_then(Value::as_str).is_some_and(|format| !known.contains(&format)) {
        fields.remove("format");
    }
}
