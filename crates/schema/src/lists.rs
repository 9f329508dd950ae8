//! Uniqueness in lists of type `set` and `map`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::error::{FieldError, Problem};
use crate::model::{Additional, ListKind, MAX_DEPTH, Schema};
use crate::path::Path;

/// `Duplicate value` for each element that occurs again.
pub(crate) fn validate_lists(schema: &Schema, object: &Value) -> Vec<FieldError> {
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
            match &schema.list {
                ListKind::Atomic => {}
                ListKind::Set => {
                    for at in repeated(items) {
                        errors.push(duplicate(&path.index(at), items[at].clone()));
                    }
                }
                ListKind::Map(keys) => keyed(keys, items, path, errors),
            }
            if let Some(below) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    walk(below, item, &path.index(at), depth + 1, errors);
                }
            }
        }
        _ => {}
    }
}

fn keyed(keys: &[String], items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some((at, item)) = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null())
    {
        let path = path.index(at).bracketed();
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(path, item.clone(), detail));
        return;
    }
    let identities: Vec<Value> = items
        .iter()
        .map(|item| {
            let present = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(present.collect::<Map<_, _>>())
        })
        .collect();
    for at in repeated(&identities) {
        errors.push(duplicate(&path.index(at), identities[at].clone()));
    }
}

/// Where a value occurs for the second time; a third is not reported again.
fn repeated(values: &[Value]) -> Vec<usize> {
    let mut times: HashMap<&Value, usize> = HashMap::new();
    let mut found = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let count = times.entry(value).or_insert(0);
        *count += 1;
        if *count == 2 {
            found.push(at);
        }
    }
    found
}

fn duplicate(path: &Path<'_>, value: Value) -> FieldError {
    FieldError { path: path.bracketed(), problem: Problem::Duplicate(value), detail: String::new() }
}
