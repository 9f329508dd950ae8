//! What every object has, at the root and where `x-kubernetes-embedded-resource` says so.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::decode::type_errors_as;
use crate::error::FieldError;
use crate::model::{Additional, MAX_DEPTH, Reader, Schema};
use crate::names;
use crate::path::Path;

/// The schema of `metadata`.
pub(crate) fn object_meta() -> &'static Schema {
    &OBJECT_META
}

/// The text a server answers with when `metadata` has a value of the wrong JSON type; `None` when all fit.
///
/// For custom resources, whose other types are a matter of validation. Built-in kinds use [`crate::type_errors`] alone.
pub fn metadata_type_errors(object: &Value) -> Option<String> {
    type_errors_as("ObjectMeta", &OBJECT_META, object.get("metadata")?)
}

static OBJECT_META: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let number = json!({"type": "integer", "format": "int64"});
    let metadata = json!({
        "annotations": texts,
        "creationTimestamp": time,
        "deletionGracePeriodSeconds": number,
        "deletionTimestamp": time,
        "finalizers": {"type": "array", "items": text},
        "generateName": text,
        "generation": number,
        "labels": texts,
        "managedFields": {"type": "array", "items": {"type": "object", "properties": {
            "apiVersion": text,
            "fieldsType": text,
            "fieldsV1": {"x-kubernetes-preserve-unknown-fields": true},
            "manager": text,
            "operation": text,
            "subresource": text,
            "time": time,
        }}},
        "name": text,
        "namespace": text,
        "ownerReferences": {"type": "array", "items": {"type": "object", "properties": {
            "apiVersion": text,
            "blockOwnerDeletion": {"type": "boolean"},
            "controller": {"type": "boolean"},
            "kind": text,
            "name": text,
            "uid": text,
        }}},
        "resourceVersion": text,
        "selfLink": text,
        "uid": text,
    });
    let document = json!({"type": "object", "properties": metadata});
    Reader::standalone().read(&document).expect("the document above is a schema; a test reads it")
});

/// What is wrong with the type and metadata of resources embedded below the root.
pub(crate) fn validate_embedded(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, object, &Path::Root, 0, &mut errors);
    errors
}

fn walk(schema: &Schema, value: &Value, path: &Path<'_>, depth: usize, errors: &mut Vec<FieldError>) {
    if depth > MAX_DEPTH || errors.len() >= crate::validate::MOST_ERRORS {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource && depth > 0 {
                errors.extend(type_and_meta(fields, path));
            }
            for (name, value) in fields {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(property), _) => walk(property, value, &path.field(name), depth + 1, errors),
                    (None, Additional::Typed(values)) => {
                        walk(values, value, &path.key(name), depth + 1, errors);
                    }
                    (None, Additional::Any | Additional::Closed) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(below) = &schema.items else { return };
            for (at, item) in items.iter().enumerate() {
                walk(below, item, &path.index(at), depth + 1, errors);
            }
        }
        _ => {}
    }
}

fn type_and_meta(fields: &Map<String, Value>, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["apiVersion", "kind"] {
        let at = || path.field(name).bracketed();
        match fields.get(name) {
            None => errors.push(FieldError::required(at(), "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(at(), "", "must not be empty"));
            }
            Some(Value::String(text)) => errors
                .extend(wrong_name(name, text).map(|detail| FieldError::invalid(at(), text.clone(), detail))),
            Some(other) => errors.push(FieldError::invalid(at(), other.clone(), "must be a string")),
        }
    }
    match fields.get("metadata") {
        None => {}
        Some(Value::Object(meta)) => {
            let mut meta = meta.clone();
            // An embedded object need not have a name, but the check wants one.
            if meta.get("name").and_then(Value::as_str).is_none_or(str::is_empty) {
                meta.insert("name".to_owned(), Value::from("fakename"));
            }
            let namespaced =
                meta.get("namespace").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
            let at = path.field("metadata").bracketed();
            errors.extend(names::validate_object_meta(
                &Value::Object(meta),
                namespaced,
                names::path_segment_name,
                &at,
            ));
        }
        Some(other) => {
            errors.push(FieldError::invalid(
                path.field("metadata").bracketed(),
                other.clone(),
                "must be an object",
            ));
        }
    }
    errors
}

fn wrong_name(field: &str, text: &str) -> Option<String> {
    if field == "apiVersion" {
        return (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let complaints = names::dns1035_label(&text.to_lowercase());
    (!complaints.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {}", complaints.join(",")))
}
