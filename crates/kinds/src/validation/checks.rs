//! The checks that many fields share.

use std::net::IpAddr;

use baton_grammar::quantity::{MALFORMED, Quantity};
use baton_schema::{FieldError, Problem, names};
use serde_json::Value;

use crate::lookup::{at, int, text};
use crate::names::port_name;

pub(super) type Errors = Vec<FieldError>;

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

pub(super) fn invalid(errors: &mut Errors, path: &str, value: impl Into<Value>, detail: impl Into<String>) {
    errors.push(FieldError::invalid(path, value, detail));
}

pub(super) fn required(errors: &mut Errors, path: &str, detail: &str) {
    errors.push(FieldError::required(path, detail));
}

pub(super) fn forbidden(errors: &mut Errors, path: &str, detail: &str) {
    errors.push(FieldError::forbidden(path, detail));
}

pub(super) fn duplicate(errors: &mut Errors, path: &str, value: impl Into<Value>) {
    errors.push(FieldError {
        path: path.to_owned(),
        problem: Problem::Duplicate(value.into()),
        detail: String::new(),
    });
}

pub(super) fn not_found(errors: &mut Errors, path: &str, value: &str) {
    errors.push(FieldError {
        path: path.to_owned(),
        problem: Problem::NotFound(value.into()),
        detail: String::new(),
    });
}

/// A text that must be one of some, where there is one.
pub(super) fn one_of(errors: &mut Errors, path: &str, value: &str, supported: &[&str]) {
    if !value.is_empty() && !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, value, supported));
    }
}

/// A name that must be there and obey a rule.
pub(super) fn named(errors: &mut Errors, path: &str, name: &str, rule: fn(&str) -> Vec<String>) {
    if name.is_empty() {
        return required(errors, path, "");
    }
    obeys(errors, path, name, rule);
}

pub(super) fn obeys(errors: &mut Errors, path: &str, name: &str, rule: fn(&str) -> Vec<String>) {
    for wrong in rule(name) {
        invalid(errors, path, name, wrong);
    }
}

/// Fields that must not be below zero.
pub(super) fn not_negative(errors: &mut Errors, object: &Value, path: &str, fields: &[&str]) {
    for field in fields {
        if let Some(number) = int(object, field)
            && number < 0
        {
            invalid(errors, &format!("{path}.{field}"), number, NOT_NEGATIVE);
        }
    }
}

pub(super) fn port_number(errors: &mut Errors, path: &str, number: i64) {
    if !(1..=65535).contains(&number) {
        invalid(errors, path, number, PORT_RANGE);
    }
}

/// A port by number or by name.
pub(super) fn port(errors: &mut Errors, path: &str, value: Option<&Value>) {
    match value {
        Some(Value::String(name)) => obeys(errors, path, name, port_name),
        Some(Value::Number(number)) => port_number(errors, path, number.as_i64().unwrap_or(0)),
        _ => port_number(errors, path, 0),
    }
}

/// A count or a percentage.
pub(super) fn count_or_percent(errors: &mut Errors, path: &str, value: Option<&Value>) {
    match value {
        Some(Value::Number(number)) if number.as_i64().is_none_or(|number| number < 0) => {
            invalid(errors, path, number.clone(), NOT_NEGATIVE);
        }
        Some(Value::String(text)) => match percent(text) {
            None => invalid(
                errors,
                path,
                text.as_str(),
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
                 for validation is '[0-9]+%')",
            ),
            Some(101..) => invalid(errors, path, text.as_str(), "must not be greater than 100%"),
            Some(_) => {}
        },
        _ => {}
    }
}

/// The number before the percent sign.
pub(super) fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// Whether a count or percentage is nothing at all.
pub(super) fn is_nothing(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::String(text)) => percent(text) == Some(0),
        _ => false,
    }
}

pub(super) fn immutable(errors: &mut Errors, object: &Value, old: &Value, field: &str) {
    if at(object, field) != at(old, field) {
        invalid(errors, field, at(object, field).cloned().unwrap_or_default(), "field is immutable");
    }
}

pub(super) fn address(errors: &mut Errors, path: &str, value: &str) {
    if value.parse::<IpAddr>().is_err() {
        invalid(errors, path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

/// The amounts of a map of resources, by name.
pub(super) fn amounts(errors: &mut Errors, path: &str, map: Option<&Value>) -> Vec<(String, Quantity)> {
    let mut read = Vec::new();
    for (name, value) in map.and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}[{name}]");
        match value.as_str().and_then(Quantity::parse) {
            None => invalid(errors, &path, value.clone(), MALFORMED),
            Some(amount) => {
                if amount.is_negative() {
                    invalid(errors, &path, amount.canonical(), NOT_NEGATIVE);
                }
                read.push((name.clone(), amount));
            }
        }
    }
    read
}

/// Labels that select something.
pub(super) fn labels(errors: &mut Errors, path: &str, map: Option<&Value>) {
    if let Some(map) = map.and_then(Value::as_object) {
        errors.extend(names::validate_labels(map, path));
    }
}

/// Reports names that stand in a list twice.
pub(super) fn unique<'a>(errors: &mut Errors, names: impl Iterator<Item = (String, &'a str)>) {
    let mut seen = std::collections::HashSet::new();
    for (path, name) in names {
        if !name.is_empty() && !seen.insert(name) {
            duplicate(errors, &path, name);
        }
    }
}

/// A required text.
pub(super) fn present(errors: &mut Errors, object: &Value, path: &str, field: &str) {
    if text(object, field).is_empty() {
        required(errors, &join(path, field), "");
    }
}

pub(super) fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}
