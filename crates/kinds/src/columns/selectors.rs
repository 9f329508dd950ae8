//! Selectors and labels in one line.

use baton_grammar::labels::Selector;
use serde_json::Value;

use crate::lookup::{at, fields};

/// The selector at a path as a cell.
pub(super) fn selector(object: &Value, path: &str) -> Value {
    let Some(selector) = at(object, path) else { return or_none(String::new()) };
    match Selector::from_object(selector) {
        Ok(selector) => or_none(selector.to_string()),
        Err(_) => "<error>".into(),
    }
}

/// The labels at a path as a cell.
pub(super) fn labels(object: &Value, path: &str) -> Value {
    or_none(map_text(object, path))
}

fn map_text(object: &Value, path: &str) -> String {
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
