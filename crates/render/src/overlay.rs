//! A generator's own template over that of its set.

use baton_api::application_set::ApplicationTemplate;
use serde_json::{Map, Value};

use crate::limits::MAX_DEPTH;

/// Fills what `over` leaves empty from `base`.
///
/// What is empty is decided as Go does: `false`, `0` and `""` are, also where they were written. Objects are filled
/// field by field; a list that has elements stays whole, and so do `valuesObject`s.
pub fn overlay(over: &ApplicationTemplate, base: &ApplicationTemplate) -> ApplicationTemplate {
    if *over == ApplicationTemplate::default() {
        return base.clone();
    }
    let (Ok(Value::Object(mut fields)), Ok(Value::Object(below))) =
        (serde_json::to_value(over), serde_json::to_value(base))
    else {
        return over.clone();
    };
    fill(&mut fields, below, 0);
    serde_json::from_value(Value::Object(fields)).unwrap_or_else(|_| over.clone())
}

fn fill(fields: &mut Map<String, Value>, base: Map<String, Value>, depth: usize) {
    for (name, below) in base {
        match (fields.get_mut(&name), below) {
            (Some(Value::Object(_)), _) if name == "valuesObject" => {}
            (Some(Value::Object(fields)), Value::Object(below)) if depth < MAX_DEPTH => {
                fill(fields, below, depth + 1);
            }
            (Some(value), below) if is_empty(value) => *value = below,
            (Some(_), _) => {}
            (None, below) => {
                fields.insert(name, below);
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
