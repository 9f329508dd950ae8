//! Whether an applied configuration fits its schema well enough to be merged.

use serde_json::Value;

use super::element::Element;
use super::typed::{Shape, Type};
use crate::gotext;
use crate::model::Kind;

/// Most problems reported; a hostile configuration could have one per byte.
const MOST: usize = 100;

/// Everything that keeps the configuration from being merged, each as `path: message`.
pub(crate) fn problems(ty: Type<'_>, config: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(ty, config, &mut String::new(), &mut found);
    found
}

/// One message for all problems.
pub(crate) fn message(problems: &[String]) -> String {
    match problems {
        [only] => only.clone(),
        all => format!("errors:\n  {}", all.join("\n  ")),
    }
}

fn check(ty: Type<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    if found.len() >= MOST {
        return;
    }
    if let Some(problem) = misfit(ty, value) {
        found.push(at(path, &problem));
        return;
    }
    match (ty.shape(value), value) {
        (_, Value::Object(fields)) => {
            for (name, value) in fields {
                let field = ty.field(name);
                within(path, &Element::field(name), |path| {
                    if field.undeclared {
                        found.push(at(path, "field not declared in schema"));
                    } else {
                        check(field.ty, value, path, found);
                    }
                });
            }
        }
        (shape @ (Shape::Set | Shape::List(_)), Value::Array(items)) => {
            let mut seen = std::collections::BTreeSet::new();
            for (place, item) in items.iter().enumerate() {
                match ty.element(shape, item) {
                    Err(problem) => {
                        found.push(at(path, &format!("element {place}: {problem}")));
                        return;
                    }
                    Ok(element) => {
                        if seen.contains(&element) {
                            found.push(at(path, &format!("duplicate entries for key {element}")));
                        }
                        within(path, &element, |path| check(ty.item(), item, path, found));
                        seen.insert(element);
                    }
                }
            }
        }
        (_, Value::Array(items)) => {
            for (place, item) in items.iter().enumerate() {
                // Places beyond i64 cannot exist in memory.
                let element = Element::Index(i64::try_from(place).unwrap_or(i64::MAX));
                within(path, &element, |path| check(ty.item(), item, path, found));
            }
        }
        _ => {}
    }
}

fn misfit(ty: Type<'_>, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let shown = || format!("&{{{}}}", gotext::plain(value));
    let scalar = !value.is_object() && !value.is_array();
    match ty.kind()? {
        Kind::Object if !value.is_object() => Some(format!("expected map, got {}", shown())),
        Kind::Array if !value.is_array() => Some(format!("expected list, got {}", shown())),
        Kind::Integer | Kind::Number if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", gotext::type_name(value)))
        }
        Kind::String if !(value.is_string() || scalar && ty.loose()) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", gotext::literal(value)))
        }
        Kind::Boolean if !value.is_boolean() => Some(format!("expected boolean, got {}", shown())),
        _ => None,
    }
}

fn at(path: &str, problem: &str) -> String {
    if path.is_empty() { problem.to_owned() } else { format!("{path}: {problem}") }
}

fn within(path: &mut String, element: &Element, work: impl FnOnce(&mut String)) {
    let before = path.len();
    path.push_str(&element.to_string());
    work(path);
    path.truncate(before);
}
