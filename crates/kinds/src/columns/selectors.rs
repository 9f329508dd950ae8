//! Selectors and labels in one line.

use serde_json::Value;

use crate::lookup::{at, fields, list, text};

/// A label selector (`matchLabels`, `matchExpressions`) as `a=b,c in (d,e),!f`; empty where it selects everything or is none.
pub fn selector_text(selector: &Value) -> String {
    let mut terms: Vec<(String, String)> = fields(selector, "matchLabels")
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        let mut values: Vec<&str> = list(expression, "values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => continue,
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort();
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}

/// The selector at a path as a cell.
pub(super) fn selector(object: &Value, path: &str) -> Value {
    or_none(at(object, path).map(selector_text).unwrap_or_default())
}

/// The labels at a path as a cell.
pub(super) fn labels(object: &Value, path: &str) -> Value {
    or_none(map_text(object, path))
}

pub(crate) fn map_text(object: &Value, path: &str) -> String {
    let mut terms: Vec<String> = fields(object, path)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    terms.sort();
    terms.join(",")
}

pub(super) fn or_none(text: String) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}
