//! Label selectors as objects carry them (`matchLabels`, `matchExpressions`).

use baton_grammar::labels::Selector;
use serde_json::Value;

/// Whether `object`'s labels satisfy `selector`. A selector with no requirement, or one that cannot be read, matches
/// nothing here: for every caller an empty selector would mean adopting strangers.
pub(crate) fn matches(selector: &Value, object: &Value) -> bool {
    Selector::from_object(selector)
        .is_ok_and(|selector| !selector.is_empty() && selector.matches_object(object))
}
