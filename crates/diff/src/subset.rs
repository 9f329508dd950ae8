//! A target laid over a live object without knowing the schema.

use std::collections::BTreeMap;

use baton_grammar::quantity::Quantity;
use serde_json::{Map, Value};

use crate::prepare::is_void;

/// The live value with everything the target states; equal to `live` where that is there already.
pub(crate) fn lay(target: &Value, live: Option<&Value>) -> Value {
    match (target, live) {
        (Value::Null, live) => live.cloned().unwrap_or_default(),
        (Value::Object(target), Some(Value::Object(live))) => Value::Object(lay_fields(target, live)),
        (Value::Array(target), Some(Value::Array(live))) => Value::Array(lay_items(target, live)),
        (target, _) => target.clone(),
    }
}

fn lay_fields(target: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let mut result = live.clone();
    for (name, wanted) in target {
        let found = live.get(name);
        if found.is_none() && is_void(wanted) {
            continue;
        }
        let laid = match (name.as_str(), wanted, found) {
            (
                "limits" | "requests" | "hard" | "capacity",
                Value::Object(wanted),
                Some(Value::Object(found)),
            ) => Value::Object(lay_amounts(wanted, found)),
            _ => lay(wanted, found),
        };
        result.insert(name.clone(), laid);
    }
    result
}

/// Amounts are equal however they are written.
fn lay_amounts(target: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let mut result = live.clone();
    for (name, wanted) in target {
        if live.get(name).is_none_or(|found| !is_same_amount(wanted, found)) {
            result.insert(name.clone(), wanted.clone());
        }
    }
    result
}

fn is_same_amount(one: &Value, other: &Value) -> bool {
    let amount = |value: &Value| match value {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        _ => None,
    };
    one == other || matches!((amount(one), amount(other)), (Some(one), Some(other)) if one == other)
}

/// Items with names are compared by name, all others by place.
fn lay_items(target: &[Value], live: &[Value]) -> Vec<Value> {
    let (Some(wanted), Some(found)) = (by_name(target), by_name(live)) else {
        return if target.len() == live.len() {
            target.iter().zip(live).map(|(target, live)| lay(target, Some(live))).collect()
        } else {
            target.to_vec()
        };
    };
    let kept = live.iter().map(|item| {
        let name = item["name"].as_str().unwrap_or_default();
        wanted.get(name).map_or_else(|| item.clone(), |target| lay(target, Some(item)))
    });
    let new = target.iter().filter(|item| !found.contains_key(item["name"].as_str().unwrap_or_default()));
    kept.chain(new.cloned()).collect()
}

/// Items by their names; `None` where one has none or two have the same.
fn by_name(items: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let named: Option<BTreeMap<&str, &Value>> =
        items.iter().map(|item| Some((item.get("name")?.as_str()?, item))).collect();
    named.filter(|named| named.len() == items.len() && !items.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_target_states_is_there_or_is_laid_over() {
        for (target, live, laid) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2}), None),
            (json!({"a": 2}), json!({"a": 1, "b": 2}), Some(json!({"a": 2, "b": 2}))),
            (json!({"a": null, "b": {}, "c": []}), json!({}), None),
            (
                json!({"limits": {"cpu": "1000m", "memory": 1024}}),
                json!({"limits": {"cpu": "1", "memory": "1Ki"}}),
                None,
            ),
            (
                json!({"limits": {"cpu": "2"}}),
                json!({"limits": {"cpu": "1"}}),
                Some(json!({"limits": {"cpu": "2"}})),
            ),
            (json!({"note": "1000m"}), json!({"note": "1"}), Some(json!({"note": "1000m"}))),
            (
                json!([{"name": "b", "x": 1}, {"name": "c"}]),
                json!([{"name": "a"}, {"name": "b", "y": 2}]),
                Some(json!([{"name": "a"}, {"name": "b", "x": 1, "y": 2}, {"name": "c"}])),
            ),
            (json!([{"x": 1}]), json!([{"x": 1, "y": 2}]), None),
            (json!([1]), json!([1, 2]), Some(json!([1]))),
            (
                json!([{"name": "a"}, {"name": "a"}]),
                json!([{"name": "a"}]),
                Some(json!([{"name": "a"}, {"name": "a"}])),
            ),
            (json!({"a": [1]}), json!({"a": {"b": 1}}), Some(json!({"a": [1]}))),
        ] {
            assert_eq!(
                lay(&target, Some(&live)),
                laid.unwrap_or_else(|| live.clone()),
                "{target} over {live}"
            );
        }
    }
}
