//! Filling in what a schema gives a default for.

use serde_json::Value;

use crate::model::{Additional, MAX_DEPTH, Schema};

/// Applies defaults in place.
///
/// An absent field, or a `null` where `null` is no value, takes its default; nothing is created on the way to a
/// nested default except through the defaults of its ancestors. A `null` that is neither permitted nor has a
/// default is dropped, as a server does before it fills in defaults.
pub fn apply_defaults(schema: &Schema, object: &mut Value) {
    fill(schema, object, 0);
}

fn fill(schema: &Schema, value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let below = field_schema(schema, name);
                !value.is_null() || below.is_none_or(|below| below.nullable || default_of(below).is_some())
            });
            for (name, property) in &schema.properties {
                let Some(default) = default_of(property) else { continue };
                let missing = match fields.get(name) {
                    None => true,
                    Some(Value::Null) => !property.nullable,
                    Some(_) => false,
                };
                if missing {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(property), _) => fill(property, value, depth + 1),
                    (None, Additional::Typed(values)) => fill_element(values, value, depth + 1),
                    (None, _) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                fill_element(schema, item, depth + 1);
            }
        }
        _ => {}
    }
}

/// List elements and map values have no name to be absent under: only `null` is replaced.
fn fill_element(schema: &Schema, value: &mut Value, depth: usize) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = default_of(schema)
    {
        *value = default.clone();
    }
    fill(schema, value, depth);
}

fn field_schema<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    match (schema.properties.get(name), &schema.additional) {
        (Some(property), _) => Some(property),
        (None, Additional::Typed(values)) => Some(values),
        (None, _) => None,
    }
}

/// `default: null` says nothing.
fn default_of(schema: &Schema) -> Option<&Value> {
    schema.default.as_ref().filter(|default| !default.is_null())
}
