//! Label selectors of generators: Kubernetes' rules for labels, looser ones for parameters.

use std::collections::{BTreeMap, BTreeSet};

use baton_grammar::labels::{Requirement, Selector, Test};
use baton_schema::names::{label_value, qualified_name};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A selector of parameters: keys are qualified names, values are anything, URLs for one.
pub(crate) fn of_parameters(selector: &LabelSelector) -> Result<Selector, String> {
    read(selector, false).map_err(|message| format!("error parsing label selector: {message}"))
}

/// A selector of labels, values checked too.
pub(crate) fn of_labels(selector: &LabelSelector) -> Result<Selector, String> {
    read(selector, true).map_err(|message| format!("error converting label selector: {message}"))
}

/// Whether a selector asks for anything.
pub(crate) fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

fn read(selector: &LabelSelector, check_values: bool) -> Result<Selector, String> {
    let mut requirements = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        requirements.push(requirement(key, None, [value.clone()].into(), check_values)?);
    }
    for expression in selector.match_expressions.iter().flatten() {
        let values = expression.values.iter().flatten().cloned().collect();
        requirements.push(requirement(&expression.key, Some(&expression.operator), values, check_values)?);
    }
    Ok(Selector { requirements })
}

/// Without an operator the value is to be equal.
fn requirement(
    key: &str,
    operator: Option<&str>,
    values: BTreeSet<String>,
    check_values: bool,
) -> Result<Requirement, String> {
    if let Some(complaint) = qualified_name(key).first() {
        return Err(format!("key: Invalid value: {key:?}: {complaint}"));
    }
    if check_values {
        for value in &values {
            if let Some(complaint) = label_value(value).first() {
                return Err(format!("values: Invalid value: {value:?}: {complaint}"));
            }
        }
    }
    let test = match operator {
        None => Test::Equals(values.into_iter().next().unwrap_or_default()),
        Some(operator) => Test::new(operator, values).map_err(|error| error.to_string())?,
    };
    Ok(Requirement { key: key.to_owned(), test })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selector(json: serde_json::Value) -> LabelSelector {
        serde_json::from_value(json).expect("a selector")
    }

    #[test]
    fn values_of_parameters_are_unrestricted_and_values_of_labels_are_not() {
        let url = selector(json!({"matchLabels": {"server": "https://a.b/c?d"}}));
        assert!(of_parameters(&url).expect("allowed").matches(|_| Some("https://a.b/c?d")));
        assert!(of_labels(&url).is_err_and(|message| message.contains("https://a.b/c?d")));
    }

    #[test]
    fn keys_are_qualified_names() {
        for (key, allowed) in [
            ("env", true),
            ("metadata.labels.kubernetes.io/env", true),
            ("values.x", true),
            ("path[0]", false),
            ("a/b/c", false),
            ("", false),
        ] {
            let read = of_parameters(&selector(json!({"matchLabels": {key: "x"}})));
            assert_eq!(read.is_ok(), allowed, "{key}: {read:?}");
            if let Err(message) = read {
                assert!(message.starts_with("error parsing label selector: "), "{message}");
            }
        }
    }

    #[test]
    fn operators_and_their_values_are_checked() {
        for (expression, allowed) in [
            (json!({"key": "a", "operator": "In", "values": ["x"]}), true),
            (json!({"key": "a", "operator": "In"}), false),
            (json!({"key": "a", "operator": "NotIn", "values": []}), false),
            (json!({"key": "a", "operator": "Exists"}), true),
            (json!({"key": "a", "operator": "Exists", "values": ["x"]}), false),
            (json!({"key": "a", "operator": "DoesNotExist", "values": ["x"]}), false),
            (json!({"key": "a", "operator": "="}), false),
            (json!({"key": "a", "operator": "Gt", "values": ["1"]}), false),
        ] {
            let read = of_parameters(&selector(json!({"matchExpressions": [expression]})));
            assert_eq!(read.is_ok(), allowed, "{expression}");
        }
    }
}
