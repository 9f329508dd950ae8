//! Label selectors as objects carry them (`matchLabels`, `matchExpressions`).

use crate::object::{items, label, text};
use serde_json::Value;

/// Whether `object`'s labels satisfy `selector`. A selector with no requirement matches nothing here: for
/// every caller an empty selector would mean adopting strangers.
pub(crate) fn matches(selector: &Value, object: &Value) -> bool {
    let labels = selector["matchLabels"].as_object();
    let expressions = items(selector, &["matchExpressions"]);
    if labels.is_none_or(serde_json::Map::is_empty) && expressions.is_empty() {
        return false;
    }
    let has = |key: &str| object["metadata"]["labels"][key].is_string();
    labels.into_iter().flatten().all(|(key, value)| has(key) && *value == label(object, key))
        && expressions.iter().all(|requirement| {
            let key = text(requirement, &["key"]);
            let listed = items(requirement, &["values"]).iter().any(|value| *value == label(object, key));
            match text(requirement, &["operator"]) {
                "In" => has(key) && listed,
                "NotIn" => !has(key) || !listed,
                "Exists" => has(key),
                "DoesNotExist" => !has(key),
                _ => false,
            }
        })
}
