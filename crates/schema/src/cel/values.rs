//! JSON as CEL values, typed by the schema.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map, OptionalValue};
use serde_json::Value;

use super::names::escape;
use crate::model::{Additional, Kind, MAX_DEPTH, Schema};

/// The value a rule sees as `self`.
///
/// Only what the schema describes is visible: preserved unknown fields are not, and of the metadata of a whole
/// resource only the name.
pub(super) fn to_cel(schema: &Schema, value: &Value, whole_resource: bool) -> cel::Value {
    convert(schema, value, whole_resource, 0)
}

/// `oldSelf` of a rule with `optionalOldSelf`.
pub(super) fn optional(value: Option<cel::Value>) -> cel::Value {
    let optional = value.map_or_else(OptionalValue::none, OptionalValue::of);
    cel::Value::Opaque(Arc::new(optional))
}

fn convert(schema: &Schema, value: &Value, whole: bool, depth: usize) -> cel::Value {
    if depth > MAX_DEPTH {
        return cel::Value::Null;
    }
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(flag) => cel::Value::Bool(*flag),
        Value::Number(number) => {
            let float = || cel::Value::Float(number.as_f64().unwrap_or(f64::NAN));
            match (schema.kind, number.as_i64(), number.as_f64()) {
                (Some(Kind::Number), ..) => float(),
                (_, Some(whole), _) => cel::Value::Int(whole),
                (Some(Kind::Integer), None, Some(number)) => cel::Value::Int(number as i64),
                _ => float(),
            }
        }
        Value::String(text) => string(schema, text),
        Value::Array(items) => {
            let opaque = Schema::default();
            let below = schema.items.as_deref().unwrap_or(&opaque);
            let items: Vec<cel::Value> =
                items.iter().map(|item| convert(below, item, below.embedded_resource, depth + 1)).collect();
            cel::Value::List(Arc::new(items))
        }
        Value::Object(fields) => {
            let mut out: HashMap<Key, cel::Value> = HashMap::with_capacity(fields.len());
            for (name, value) in fields {
                if let Some(property) = schema.properties.get(name) {
                    // A null field is an absent one.
                    if !value.is_null()
                        && let Some(identifier) = escape(name)
                    {
                        let hidden = whole && name == "metadata";
                        let value = if hidden {
                            name_only(property, value)
                        } else {
                            convert(property, value, property.embedded_resource, depth + 1)
                        };
                        out.insert(identifier.into(), value);
                    }
                } else if let Additional::Typed(values) = &schema.additional {
                    let value = convert(values, value, values.embedded_resource, depth + 1);
                    out.insert(name.as_str().into(), value);
                } else if whole {
                    match name.as_str() {
                        "apiVersion" | "kind" => {
                            out.insert(
                                name.as_str().into(),
                                convert(&Schema::default(), value, false, depth + 1),
                            );
                        }
                        "metadata" => {
                            out.insert(name.as_str().into(), name_only(&Schema::default(), value));
                        }
                        _ => {}
                    }
                }
            }
            cel::Value::Map(Map { map: Arc::new(out) })
        }
    }
}

/// Rules may depend on an object's name and on nothing else of its metadata.
fn name_only(schema: &Schema, metadata: &Value) -> cel::Value {
    let mut out: HashMap<Key, cel::Value> = HashMap::new();
    for name in ["name", "generateName"] {
        if let Some(text) = metadata.get(name).and_then(Value::as_str) {
            let opaque = Schema::default();
            let below = schema.properties.get(name).map_or(&opaque, |below| below);
            out.insert(name.into(), string(below, text));
        }
    }
    cel::Value::Map(Map { map: Arc::new(out) })
}

fn string(schema: &Schema, text: &str) -> cel::Value {
    let plain = || cel::Value::String(Arc::new(text.to_owned()));
    if schema.kind != Some(Kind::String) {
        return plain();
    }
    // A value that does not have its format has already been reported; the rule sees it as written.
    match schema.limits.format.as_deref() {
        Some("date-time" | "datetime") => super::program::timestamp(text).unwrap_or_else(plain),
        Some("date") => super::program::timestamp(&format!("{text}T00:00:00Z")).unwrap_or_else(plain),
        Some("duration") => super::program::duration(text).unwrap_or_else(plain),
        Some("byte") => super::program::bytes(text).unwrap_or_else(plain),
        _ => plain(),
    }
}
