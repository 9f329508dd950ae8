//! Keywords Kubernetes refuses or restricts in the schema of a custom resource.

use std::collections::HashSet;

use serde_json::Value;

use super::{Fields, flag, listed, named, object, text};
use crate::error::FieldError;
use crate::model::{Additional, ListKind, Schema};

/// What holds for a part of the schema because of where it stands.
#[derive(Clone, Copy, Default)]
struct Place {
    root: bool,
    /// Inside `metadata`, `apiVersion` or `kind` of a resource.
    in_meta: bool,
    /// Why defaults are not permitted here.
    no_defaults: Option<&'static str>,
}

pub(super) fn check(schema: &Fields, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(schema, path, Place { root: true, ..Place::default() }, &mut errors);
    errors
}

fn node(schema: &Fields, path: &str, place: Place, errors: &mut Vec<FieldError>) {
    refused(schema, path, place, errors);
    if flag(schema, "uniqueItems") {
        errors.push(FieldError::forbidden(
            format!("{path}.uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    let inside = Place { root: false, ..place };
    if let Some(additional) = schema.get("additionalProperties") {
        let path = format!("{path}.additionalProperties");
        let has_properties = object(schema, "properties").is_some_and(|properties| !properties.is_empty());
        if has_properties && *additional != Value::Bool(true) {
            errors.push(FieldError::forbidden(
                path.clone(),
                "additionalProperties and properties are mutual exclusive",
            ));
        }
        if let Value::Object(values) = additional {
            let why = place.in_meta.then_some("inside additionalProperties applying to object metadata");
            node(values, &path, Place { no_defaults: why.or(inside.no_defaults), ..inside }, errors);
        }
    }
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    for (name, property, path) in named(schema, "properties", path) {
        let mut below = inside;
        if (place.root || embedded) && matches!(name, "metadata" | "apiVersion" | "kind") {
            below.in_meta = true;
            if place.root {
                below.no_defaults = Some(match name {
                    "metadata" => "in top-level metadata",
                    "kind" => "in top-level kind",
                    _ => "in top-level apiVersion",
                });
            }
        }
        node(property, &path, below, errors);
    }
    for keyword in ["items", "not"] {
        if let Some(part) = object(schema, keyword) {
            node(part, &format!("{path}.{keyword}"), inside, errors);
        }
    }
    for keyword in ["allOf", "oneOf", "anyOf"] {
        for (part, path) in listed(schema, keyword, path) {
            node(part, &path, inside, errors);
        }
    }
    map_type(schema, path, errors);
    list_type(schema, path, errors);
    rules(schema, path, errors);
}

fn refused(schema: &Fields, path: &str, place: Place, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(format!("{path}.type"), kind, &TYPES));
    }
    if schema.get("default").is_some_and(|default| !default.is_null())
        && let Some(why) = place.no_defaults
    {
        errors.push(FieldError::forbidden(format!("{path}.default"), format!("must not be set {why}")));
    }
    for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let present = match schema.get(keyword) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Object(fields)) => !fields.is_empty() || keyword == "dependencies",
            Some(_) => true,
        };
        if present {
            errors.push(FieldError::forbidden(
                format!("{path}.{keyword}"),
                format!("{keyword} is not supported"),
            ));
        }
    }
    if kind == "null" {
        errors.push(FieldError::forbidden(
            format!("{path}.type"),
            "type cannot be set to null, use nullable as an alternative",
        ));
    }
    if matches!(schema.get("items"), Some(Value::Array(_))) {
        errors.push(FieldError::forbidden(
            format!("{path}.items"),
            "items must be a schema object and not an array",
        ));
    }
    if place.in_meta && flag(schema, "x-kubernetes-embedded-resource") {
        errors.push(FieldError::forbidden(
            format!("{path}.x-kubernetes-embedded-resource"),
            "must not be used inside of resource meta",
        ));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        errors.push(FieldError::invalid(
            format!("{path}.x-kubernetes-preserve-unknown-fields"),
            false,
            "must be true or undefined",
        ));
    }
}

fn map_type(schema: &Fields, path: &str, errors: &mut Vec<FieldError>) {
    let Some(map_type) = schema.get("x-kubernetes-map-type") else { return };
    wrong_type(schema, "object", "x-kubernetes-map-type", path, errors);
    if !matches!(map_type.as_str(), Some("atomic" | "granular")) {
        errors.push(FieldError::not_supported(
            format!("{path}.x-kubernetes-map-type"),
            map_type.clone(),
            &["atomic", "granular"],
        ));
    }
}

fn wrong_type(schema: &Fields, needed: &str, keyword: &str, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    if kind == needed {
        return;
    }
    let (path, detail) = (format!("{path}.type"), format!("must be {needed} if {keyword} is specified"));
    errors.push(if kind.is_empty() {
        FieldError::required(path, detail)
    } else {
        FieldError::invalid(path, kind, detail)
    });
}

fn list_type(schema: &Fields, path: &str, errors: &mut Vec<FieldError>) {
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let has_keys = keys.is_some_and(|keys| !keys.is_empty());
    let Some(list_type) = schema.get("x-kubernetes-list-type") else {
        if has_keys {
            errors.push(FieldError::required(
                format!("{path}.x-kubernetes-list-type"),
                "must be map if x-kubernetes-list-map-keys is non-empty",
            ));
        }
        return;
    };
    wrong_type(schema, "array", "x-kubernetes-list-type", path, errors);
    let name = list_type.as_str().unwrap_or_default();
    if !matches!(name, "atomic" | "set" | "map") {
        errors.push(FieldError::not_supported(
            format!("{path}.x-kubernetes-list-type"),
            list_type.clone(),
            &["atomic", "set", "map"],
        ));
    }
    if has_keys && name != "map" {
        errors.push(FieldError::invalid(
            format!("{path}.x-kubernetes-list-type"),
            list_type.clone(),
            "must be map if x-kubernetes-list-map-keys is non-empty",
        ));
    }
    let items = object(schema, "items");
    if let Some(items) = items
        && matches!(name, "set" | "map")
        && flag(items, "nullable")
    {
        errors.push(FieldError::forbidden(
            format!("{path}.items.nullable"),
            format!("cannot be nullable when x-kubernetes-list-type is {name}"),
        ));
    }
    match (name, items) {
        ("set", Some(items)) => set_items(items, path, errors),
        ("map", items) => map_items(keys.map_or(&[], Vec::as_slice), items, path, errors),
        _ => {}
    }
}

fn set_items(items: &Fields, path: &str, errors: &mut Vec<FieldError>) {
    const DETAIL: &str = "must be atomic as item of a list with x-kubernetes-list-type=set";
    match text(items, "type") {
        "array" => {
            let list_type = text(items, "x-kubernetes-list-type");
            if !matches!(list_type, "" | "atomic") {
                errors.push(FieldError::invalid(
                    format!("{path}.items.x-kubernetes-list-type"),
                    list_type,
                    DETAIL,
                ));
            }
        }
        "object" => {
            let map_type = text(items, "x-kubernetes-map-type");
            if map_type != "atomic" {
                let value = if map_type.is_empty() { Value::Null } else { map_type.into() };
                errors.push(FieldError::invalid(
                    format!("{path}.items.x-kubernetes-map-type"),
                    value,
                    DETAIL,
                ));
            }
        }
        _ => {}
    }
}

fn map_items(keys: &[Value], items: Option<&Fields>, path: &str, errors: &mut Vec<FieldError>) {
    let at_keys = || format!("{path}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::required(at_keys(), "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = items else {
        errors.push(FieldError::required(
            format!("{path}.items"),
            "must have a schema if x-kubernetes-list-type is map",
        ));
        return;
    };
    let kind = text(items, "type");
    if kind != "object" {
        errors.push(FieldError::invalid(
            format!("{path}.items.type"),
            kind,
            "must be object if parent array's x-kubernetes-list-type is map",
        ));
        return;
    }
    let required: Vec<&Value> =
        items.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let mut seen = HashSet::new();
    for key in keys {
        let name = key.as_str().unwrap_or_default();
        if !seen.insert(name) {
            errors.push(FieldError::invalid(at_keys(), keys.to_vec(), "must not contain duplicate entries"));
        }
        let Some(property) = object(items, "properties").and_then(|properties| object(properties, name))
        else {
            errors.push(FieldError::invalid(
                at_keys(),
                keys.to_vec(),
                "entries must all be names of item properties",
            ));
            continue;
        };
        let path = format!("{path}.items.properties[{name}]");
        if matches!(text(property, "type"), "array" | "object") {
            errors.push(FieldError::invalid(
                format!("{path}.type"),
                kind,
                "must be a scalar type if parent array's x-kubernetes-list-type is map",
            ));
        }
        if !required.contains(&key) && property.get("default").is_none_or(Value::is_null) {
            errors.push(FieldError::required(
                format!("{path}.default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ));
        }
        if flag(property, "nullable") {
            errors.push(FieldError::forbidden(
                format!("{path}.nullable"),
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ));
        }
    }
}

fn rules(schema: &Fields, path: &str, errors: &mut Vec<FieldError>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    for (rule, path) in listed(schema, "x-kubernetes-validations", path) {
        let message = text(rule, "message");
        let source = text(rule, "rule").trim();
        let at = |field: &str| format!("{path}.{field}");
        if source.is_empty() {
            errors.push(FieldError::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(at("message"), message, "must be non-empty if specified"));
        } else if message.trim().contains(['\n', '\r']) {
            errors.push(FieldError::invalid(at("message"), message, "must not contain line breaks"));
        } else if source.contains(['\n', '\r']) && message.trim().is_empty() {
            errors.push(FieldError::required(
                at("message"),
                "message must be specified if rule contains line breaks",
            ));
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            errors.push(FieldError::required(
                at("messageExpression"),
                "messageExpression must be non-empty if specified",
            ));
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            errors.push(FieldError::not_supported(at("reason"), reason, &REASONS));
        }
        let field_path = text(rule, "fieldPath");
        if field_path.is_empty() {
            continue;
        }
        if field_path.trim().is_empty() {
            errors.push(FieldError::invalid(at("fieldPath"), field_path, "must be non-empty if specified"));
        } else if field_path.contains(['\n', '\r']) {
            errors.push(FieldError::invalid(at("fieldPath"), field_path, "must not contain line breaks"));
        }
        if !names_a_field(schema, field_path) {
            errors.push(FieldError::invalid(at("fieldPath"), field_path, "must be a valid path"));
        }
    }
}

/// `.spec.size`, or `.labels['a.b']`: every step must be in the schema.
fn names_a_field(schema: &Fields, path: &str) -> bool {
    let mut schema = schema;
    let mut rest = path.trim();
    while !rest.is_empty() {
        let (name, after) = if let Some(after) = rest.strip_prefix("['") {
            let Some((name, after)) = after.split_once("']") else { return false };
            (name, after)
        } else if let Some(after) = rest.strip_prefix('.') {
            after.split_at(after.find(['.', '[']).unwrap_or(after.len()))
        } else {
            return false;
        };
        rest = after;
        let below = match (object(schema, "properties"), object(schema, "additionalProperties")) {
            (Some(properties), _) => object(properties, name),
            (None, values) => values,
        };
        let Some(below) = below else { return false };
        schema = below;
    }
    true
}

/// Rules over `oldSelf` where old and new values cannot be matched up, and `optionalOldSelf` where it means nothing.
pub(super) fn transition_rules(schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    transition(schema, path, None, &mut errors);
    errors
}

fn transition(schema: &Schema, path: &str, unmatched: Option<&str>, errors: &mut Vec<FieldError>) {
    for (at, rule) in schema.rules.iter().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{at}]");
        let uses_old = crate::cel::uses_old_self(&rule.rule);
        if uses_old && let Some(within) = unmatched {
            errors.push(FieldError::invalid(
                format!("{path}.rule"),
                rule.rule.clone(),
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"),
            ));
        }
        if !uses_old && rule.optional_old_self {
            errors.push(FieldError::invalid(
                format!("{path}.optionalOldSelf"),
                true,
                "may not be set if oldSelf is not used in rule",
            ));
        }
    }
    for (name, property) in &schema.properties {
        transition(property, &format!("{path}.properties[{name}]"), unmatched, errors);
    }
    if let Additional::Typed(values) = &schema.additional {
        transition(values, &format!("{path}.additionalProperties"), unmatched, errors);
    }
    if let Some(items) = &schema.items {
        let keyed = matches!(schema.list, ListKind::Map(_));
        let unmatched = unmatched.or((!keyed).then_some(path));
        transition(items, &format!("{path}.items"), unmatched, errors);
    }
}
