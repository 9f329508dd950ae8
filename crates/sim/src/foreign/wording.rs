//! How the stand-in writes: what differs from what it read, as a merge patch.

use serde_json::{Map, Value};

/// What makes one value of another when it is merged into it; none where they are the same.
pub(super) fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        _ if before == after => None,
        (Value::Object(before), Value::Object(after)) => {
            let gone = before.keys().filter(|key| !after.contains_key(*key));
            let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
            for (key, value) in after {
                let old = before.get(key).unwrap_or(&Value::Null);
                patch.extend(difference(old, value).map(|value| (key.clone(), value)));
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ => Some(after.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_written() {
        let before = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        assert_eq!(difference(&before, &before), None);
        let after = json!({"a": 1, "b": {"c": 4}, "e": [1, 2], "f": {}});
        let patch = json!({"b": {"c": 4, "d": null}, "e": [1, 2], "f": {}});
        assert_eq!(difference(&before, &after), Some(patch));
    }
}
