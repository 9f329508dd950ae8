//! What the schema of a CustomResourceDefinition must be like.

mod defaults;
mod keywords;
mod shape;

use serde_json::{Map, Value};

use crate::cel::Rules;
use crate::error::FieldError;
use crate::model::{MAX_DEPTH, Reader, SchemaError};
use crate::validate::MOST_ERRORS;

/// Everything wrong with an `openAPIV3Schema`, whose own path is `path_prefix`.
///
/// Checks that the schema is structural, that it uses no keyword Kubernetes refuses, that its defaults are valid
/// and pruned, and that its rules compile.
pub fn check(open_api_v3_schema: &Value, path_prefix: &str) -> Vec<FieldError> {
    let Some(fields) = open_api_v3_schema.as_object() else {
        return vec![FieldError::invalid(path_prefix, open_api_v3_schema.clone(), "must be an object")];
    };
    if too_deep(open_api_v3_schema, MAX_DEPTH * 2) {
        return vec![FieldError::invalid(path_prefix, "", "schema is nested too deeply")];
    }
    let mut errors = Vec::new();
    if flag(fields, "nullable") {
        let path = format!("{path_prefix}.nullable");
        errors.push(FieldError::forbidden(path, "nullable cannot be true at the root"));
    }
    errors.extend(shape::check(fields, path_prefix));
    errors.extend(keywords::check(fields, path_prefix));
    // Defaults and rules are judged by the schema, so it has to be right first.
    if errors.is_empty() {
        errors.extend(defaults_and_rules(open_api_v3_schema, path_prefix));
    }
    errors.truncate(MOST_ERRORS);
    errors
}

fn defaults_and_rules(document: &Value, path: &str) -> Vec<FieldError> {
    let schema = match Reader::standalone().read(document) {
        Ok(schema) => schema,
        Err(error) => return vec![unreadable(&error, path)],
    };
    let mut errors = defaults::check(&schema, path);
    if let Err(found) = Rules::compile(&schema) {
        errors.extend(found.into_iter().map(|mut error| {
            error.path = format!("{path}.{}", error.path);
            error
        }));
    }
    errors.extend(keywords::transition_rules(&schema, path));
    errors
}

fn unreadable(error: &SchemaError, path: &str) -> FieldError {
    FieldError::invalid(path, "", error.to_string())
}

/// Measured with a stack of its own: the document has not been found harmless yet.
fn too_deep(document: &Value, most: usize) -> bool {
    let mut open = vec![(document, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > most {
            return true;
        }
        match value {
            Value::Object(fields) => open.extend(fields.values().map(|value| (value, depth + 1))),
            Value::Array(items) => open.extend(items.iter().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    false
}

type Fields = Map<String, Value>;

fn text<'a>(fields: &'a Fields, keyword: &str) -> &'a str {
    fields.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

fn flag(fields: &Fields, keyword: &str) -> bool {
    fields.get(keyword).and_then(Value::as_bool).unwrap_or(false)
}

fn object<'a>(fields: &'a Fields, keyword: &str) -> Option<&'a Fields> {
    fields.get(keyword).and_then(Value::as_object)
}

/// The schemas of a keyword that holds a map of them, with their paths.
fn named<'a>(fields: &'a Fields, keyword: &'a str, path: &str) -> Vec<(&'a str, &'a Fields, String)> {
    let schemas = object(fields, keyword).into_iter().flatten();
    schemas
        .filter_map(|(name, value)| {
            Some((name.as_str(), value.as_object()?, format!("{path}.{keyword}[{name}]")))
        })
        .collect()
}

/// The schemas of a keyword that holds a list of them, with their paths.
fn listed<'a>(fields: &'a Fields, keyword: &str, path: &str) -> Vec<(&'a Fields, String)> {
    let schemas = fields.get(keyword).and_then(Value::as_array).into_iter().flatten();
    schemas
        .enumerate()
        .filter_map(|(at, value)| Some((value.as_object()?, format!("{path}.{keyword}[{at}]"))))
        .collect()
}
