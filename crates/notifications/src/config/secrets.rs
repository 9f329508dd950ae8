//! `$key` in the configuration of a service stands for a value of the Secret.

use std::collections::BTreeMap;

use baton_hooks::Secret;
use serde_json::Value as Json;

/// Replaces every `$key` in the texts of a value. What the Secret does not hold stays as it is written, and is told.
pub(super) fn replace(value: &mut Json, secrets: &BTreeMap<String, Secret>, missing: &mut Vec<String>) {
    match value {
        Json::String(text) if text.contains('$') => *text = replaced(text, secrets, missing),
        Json::Array(items) => items.iter_mut().for_each(|item| replace(item, secrets, missing)),
        Json::Object(entries) => entries.values_mut().for_each(|value| replace(value, secrets, missing)),
        _ => {}
    }
}

fn replaced(text: &str, secrets: &BTreeMap<String, Secret>, missing: &mut Vec<String>) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let end = after.find(|char| !is_part(char)).unwrap_or(after.len());
        let key = &after[..end];
        match secrets.get(key) {
            Some(secret) => out.push_str(secret.expose()),
            None => {
                out.push('$');
                out.push_str(key);
                if !key.is_empty() {
                    missing.push(key.to_owned());
                }
            }
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}
