//! Label selectors, and whether they select what they should.

use baton_grammar::labels::Selector;
use baton_schema::names;
use serde_json::Value;

use super::checks::{Errors, invalid, labels, obeys, required};
use crate::lookup::{at, fields, list, text};

/// Checks a selector; whether it is fine.
pub(super) fn selector(errors: &mut Errors, path: &str, selector: &Value) -> bool {
    let before = errors.len();
    labels(errors, &format!("{path}.matchLabels"), at(selector, "matchLabels"));
    for (place, term) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{place}]");
        let values = list(term, "values");
        match text(term, "operator") {
            "In" | "NotIn" if values.is_empty() => required(
                errors,
                &format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ),
            "Exists" | "DoesNotExist" if !values.is_empty() => super::checks::forbidden(
                errors,
                &format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => invalid(errors, &format!("{path}.operator"), other, "not a valid selector operator"),
        }
        obeys(errors, &format!("{path}.key"), text(term, "key"), names::qualified_name);
    }
    errors.len() == before
}

/// The selector of a controller must be there, say something, and match the labels of the Pods it makes.
pub(super) fn selects_template(errors: &mut Errors, object: &Value, empty_is: &str) {
    const MISMATCH: &str = "`selector` does not match template `labels`";
    let labels = fields(object, "spec.template.metadata.labels").cloned().unwrap_or_default();
    let shown = if labels.is_empty() { Value::Null } else { Value::Object(labels.clone()) };
    let Some(selector) = at(object, "spec.selector") else {
        if !empty_is.is_empty() {
            required(errors, "spec.selector", "");
        }
        return invalid(errors, "spec.template.metadata.labels", shown, MISMATCH);
    };
    if !self::selector(errors, "spec.selector", selector) {
        return invalid(errors, "spec.selector", selector.clone(), "invalid label selector");
    }
    match Selector::from_object(selector) {
        Ok(read) if read.is_empty() => {
            let detail = format!("empty selector is invalid for {empty_is}");
            invalid(errors, "spec.selector", selector.clone(), detail);
        }
        Ok(read) if read.matches(|key| labels.get(key).and_then(Value::as_str)) => {}
        _ => invalid(errors, "spec.template.metadata.labels", shown, MISMATCH),
    }
}
