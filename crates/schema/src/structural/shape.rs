//! Structurality: types everywhere, and nothing said about a value that the skeleton does not know.

use serde_json::Value;

use super::{Fields, flag, listed, named, object, text};
use crate::error::FieldError;
use crate::validate;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The errors, sorted by their text as upstream sorts them.
pub(super) fn check(schema: &Fields, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(schema, Level::Root, path, &mut errors);
    complete(schema, schema, path, path, &mut errors);
    errors.sort_by_key(ToString::to_string);
    errors
}

fn node(schema: &Fields, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    match object(schema, "items") {
        Some(items) => node(items, Level::Item, &format!("{path}.items"), errors),
        None if kind == "array" && !schema.contains_key("items") => {
            errors.push(FieldError::required(format!("{path}.items"), "must be specified"))
        }
        None => {}
    }
    for (_, property, path) in named(schema, "properties", path) {
        node(property, Level::Field, &path, errors);
    }
    let additional = schema.get("additionalProperties");
    if additional.is_some() && level == Level::Root {
        let path = format!("{path}.additionalProperties");
        errors.push(FieldError::forbidden(path, "must not be used at the root"));
    }
    if let Some(Value::Object(values)) = additional {
        node(values, Level::Field, &format!("{path}.additionalProperties"), errors);
    }
    extensions(schema, path, errors);
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    value_rules(schema, path, errors);

    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let at_type = || format!("{path}.type");
    if embedded && kind != "object" {
        const DETAIL: &str = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(at_type(), DETAIL)
        } else {
            FieldError::invalid(at_type(), kind, DETAIL)
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at_type(), detail));
    }
    if embedded && additional.is_some() {
        let path = format!("{path}.additionalProperties");
        errors.push(FieldError::forbidden(path, "must not be used if x-kubernetes-embedded-resource is set"));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at_type(), kind, "must be object at the root"));
    }
    if embedded && !preserve && object(schema, "properties").is_none_or(Fields::is_empty) {
        errors.push(FieldError::required(
            format!("{path}.properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
    type_and_meta(schema, level, level == Level::Root || embedded, path, errors);
}

fn type_and_meta(schema: &Fields, level: Level, resource: bool, path: &str, errors: &mut Vec<FieldError>) {
    for (name, property, path) in named(schema, "properties", path) {
        let kind = text(property, "type");
        match name {
            "kind" | "apiVersion" if resource && kind != "string" => {
                errors.push(FieldError::invalid(format!("{path}.type"), kind, "must be string"));
            }
            "metadata" => {
                if resource && kind != "object" {
                    errors.push(FieldError::invalid(format!("{path}.type"), kind, "must be object"));
                }
                if level == Level::Root && !restricts_names_only(property) {
                    errors.push(FieldError::forbidden(
                        path,
                        "must not specify anything other than name and generateName, but metadata is implicitly specified",
                    ));
                }
            }
            _ => {}
        }
    }
}

fn restricts_names_only(metadata: &Fields) -> bool {
    metadata.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "default" => true,
        "properties" => value
            .as_object()
            .is_some_and(|names| names.keys().all(|name| matches!(name.as_str(), "name" | "generateName"))),
        _ => false,
    })
}

fn extensions(schema: &Fields, path: &str, errors: &mut Vec<FieldError>) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, keyword) {
            errors.push(FieldError::invalid(
                format!("{path}.{keyword}"),
                true,
                "must be false if x-kubernetes-int-or-string is true",
            ));
        }
    }
}

/// Value constraints of a node. The customary spelling of int-or-string, which names types inside `anyOf`, is excepted.
fn value_rules(schema: &Fields, path: &str, errors: &mut Vec<FieldError>) {
    for keyword in ["anyOf", "allOf", "oneOf"] {
        for (at, (part, path)) in listed(schema, keyword, path).into_iter().enumerate() {
            if keyword == "anyOf" && is_int_or_string(schema.get("anyOf")) {
                continue;
            }
            let first_of_all = keyword == "allOf" && at == 0 && is_int_or_string(part.get("anyOf"));
            nested(part, first_of_all, &path, errors);
        }
    }
    if let Some(not) = object(schema, "not") {
        nested(not, false, &format!("{path}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = validate::compile(pattern)
    {
        errors.push(FieldError::invalid(
            format!("{path}.pattern"),
            pattern,
            format!("must be a valid regular expression, but isn't: {error}"),
        ));
    }
}

fn is_int_or_string(any_of: Option<&Value>) -> bool {
    any_of.is_some_and(|any_of| *any_of == serde_json::json!([{"type": "integer"}, {"type": "string"}]))
}

/// Keywords that describe a value rather than restrict it have no place below a junctor.
const SKELETON_ONLY: [(&str, &str); 12] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];

fn nested(part: &Fields, int_or_string: bool, path: &str, errors: &mut Vec<FieldError>) {
    if int_or_string {
        let mut rest = part.clone();
        rest.remove("anyOf");
        value_rules(&rest, path, errors);
    } else {
        value_rules(part, path, errors);
    }
    if let Some(items) = object(part, "items") {
        nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, property, path) in named(part, "properties", path) {
        nested(property, false, &path, errors);
        if name == "metadata" {
            errors.push(FieldError::forbidden(path, "must not be specified in a nested context"));
        }
    }
    for (keyword, detail) in SKELETON_ONLY {
        if part.get(keyword).is_some_and(is_set) {
            errors.push(FieldError::forbidden(format!("{path}.{keyword}"), detail));
        }
    }
    if part.get("x-kubernetes-validations").is_some_and(is_set) {
        let path = format!("{path}.x-kubernetes-validations");
        errors.push(FieldError::forbidden(path, "must be empty to be structural"));
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// Whatever a junctor constrains, the skeleton must describe.
fn complete(part: &Fields, skeleton: &Fields, at: &str, from: &str, errors: &mut Vec<FieldError>) {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (part, from) in listed(part, keyword, from) {
            complete_nested(part, Some(skeleton), at, &from, errors);
        }
    }
    if let Some(not) = object(part, "not") {
        complete_nested(not, Some(skeleton), at, &format!("{from}.not"), errors);
    }
}

fn complete_nested(
    part: &Fields,
    skeleton: Option<&Fields>,
    at: &str,
    from: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(skeleton) = skeleton else {
        errors.push(FieldError::required(at, format!("because it is defined in {from}")));
        return;
    };
    complete(part, skeleton, at, from, errors);
    if let Some(items) = object(part, "items") {
        let below = object(skeleton, "items");
        complete_nested(items, below, &format!("{at}.items"), &format!("{from}.items"), errors);
    }
    for (name, property, from) in named(part, "properties", from) {
        let below = object(skeleton, "properties").and_then(|properties| object(properties, name));
        complete_nested(property, below, &format!("{at}.properties[{name}]"), &from, errors);
    }
}
