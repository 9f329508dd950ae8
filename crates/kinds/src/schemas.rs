//! The schema of each kind, generated from the types of `k8s-openapi`.
//!
//! The types know names, types and texts of fields but not how lists merge; `schemas/facts.txt` adds that, together with which
//! fields are required and the defaults that list keys need.

mod facts;
mod roots;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use baton_schema::{Reader, Schema};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::Kind;

/// Where references between definitions point.
const DEFINITIONS_PATH: &str = "/components/schemas";

impl Kind {
    /// The kind's schema. All kinds are read together on first use, so that they share what they have in common.
    pub fn schema(&self) -> Arc<Schema> {
        definition(&self.definition()).expect("a test reads the schema of every kind in the table")
    }
}

/// The schema of any definition that built-in kinds, subresources or the API itself use (`ObjectMeta`, `Scale`,
/// `DeleteOptions`, …), by OpenAPI name.
pub fn definition(name: &str) -> Option<Arc<Schema>> {
    static READ: OnceLock<HashMap<String, Arc<Schema>>> = OnceLock::new();
    READ.get_or_init(read_all).get(name).cloned()
}

fn read_all() -> HashMap<String, Arc<Schema>> {
    let mut definitions = definitions();
    for (name, document) in definitions.iter_mut() {
        slim(name, document);
    }
    let mut reader = Reader::with_definitions(&definitions);
    // Roots first: where a type contains itself, what is read first is what stays whole.
    let names = roots::names().into_iter().chain(definitions.keys().cloned());
    names.filter_map(|name| reader.definition(&name).ok().map(|schema| (name, schema))).collect()
}

/// Every definition reachable from the served kinds, as published: with texts, extensions and `$ref`s.
pub(crate) fn definitions() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = DEFINITIONS_PATH.into();
        settings.transforms.clear();
    });
    let mut generator = settings.into_generator();
    roots::register(&mut generator);
    let mut definitions: Map<String, Value> = generator.take_definitions(false).into_iter().collect();
    for (name, document) in definitions.iter_mut() {
        if let Some(fields) = document.as_object_mut() {
            // The Rust types require more than Kubernetes does (metadata, for one); the facts know better.
            fields.remove("required");
        }
        if let Some(special) = special(name) {
            let description = document.get("description").cloned();
            *document = special;
            if let (Some(fields), Some(description)) = (document.as_object_mut(), description) {
                fields.insert("description".into(), description);
            }
        }
    }
    facts::lay_over(&mut definitions);
    definitions
}

/// Types whose JSON form the generator cannot express.
fn special(name: &str) -> Option<Value> {
    Some(match name.rsplit('.').next()? {
        "IntOrString" => json!({
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
        }),
        "Quantity" => json!({
            "oneOf": [{"type": "string"}, {"type": "number"}],
            "x-kubernetes-int-or-string": true,
        }),
        "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            json!({})
        }
        _ => return None,
    })
}

/// Turns a published definition into the one objects are read by: without texts, and with lists alone in `required`, where it
/// tells that they are always written. That a field is missing Kubernetes reports from the validation of the kind, in other
/// words than a schema would.
fn slim(name: &str, document: &mut Value) {
    match name.rsplit('.').next() {
        Some("IntOrString" | "Quantity") => *document = json!({"x-kubernetes-int-or-string": true}),
        // Written and owned as a whole.
        Some("RawExtension") => {
            *document =
                json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-map-type": "atomic"});
        }
        Some(
            "FieldsV1"
            | "JSON"
            | "JSONSchemaPropsOrArray"
            | "JSONSchemaPropsOrBool"
            | "JSONSchemaPropsOrStringArray",
        ) => *document = json!({"x-kubernetes-preserve-unknown-fields": true}),
        _ => strip(document),
    }
}

fn strip(node: &mut Value) {
    let Some(fields) = node.as_object_mut() else { return };
    fields.remove("description");
    let is_list = |fields: &Map<String, Value>, name: &Value| {
        name.as_str()
            .is_some_and(|name| fields.get("properties").is_some_and(|all| all[name]["type"] == "array"))
    };
    if let Some(Value::Array(mut required)) = fields.remove("required") {
        required.retain(|name| is_list(fields, name));
        if !required.is_empty() {
            fields.insert("required".into(), required.into());
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(strip);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child) = fields.get_mut(keyword) {
            strip(child);
        }
    }
}

#[cfg(test)]
mod tests;
