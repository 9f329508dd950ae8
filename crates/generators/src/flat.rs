//! Parameters as flat texts: what `{{a.b.0}}` names without goTemplate, and what post-selectors look at.

use std::collections::BTreeMap;

use baton_template::{Map, Value};

/// Deepest nesting that is followed; what lies below prints as Go prints it.
const MAX_DEPTH: usize = 600;

/// Every leaf under its dotted path, printed as Go's `%v` prints it. Empty maps and lists have no leaf; a list known
/// to hold texts is one.
pub fn flatten(params: &Map) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    for (key, value) in params.snapshot() {
        descend(&mut leaves, key.to_string(), &value, 0);
    }
    leaves
}

fn descend(leaves: &mut BTreeMap<String, String>, path: String, value: &Value, depth: usize) {
    match value {
        Value::Map(map) if depth < MAX_DEPTH => {
            for (key, value) in map.snapshot() {
                descend(leaves, format!("{path}.{key}"), &value, depth + 1);
            }
        }
        Value::List(list) if depth < MAX_DEPTH && value.type_name() != "[]string" => {
            for (index, value) in list.items().iter().enumerate() {
                descend(leaves, format!("{path}.{index}"), value, depth + 1);
            }
        }
        leaf => {
            leaves.insert(path, leaf.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_template::List;
    use serde_json::json;

    use super::*;

    #[test]
    fn leaves_stand_under_their_dotted_paths() {
        let Value::Map(params) = Value::from(&json!({
            "a": {"b": [1, {"c": null}], "empty": {}, "none": []},
            "big": 1_000_000,
            "yes": true,
            "text": "x",
        })) else {
            unreachable!("an object is a map")
        };
        params.insert("segments", Value::List(List::strings(["x", "y"])));
        params.insert("labels", Value::Map(Map::strings([("k8s.io/env", "prod")])));
        let expected = [
            ("a.b.0", "1"),
            ("a.b.1.c", "<nil>"),
            ("big", "1e+06"),
            ("labels.k8s.io/env", "prod"),
            ("segments", "[x y]"),
            ("text", "x"),
            ("yes", "true"),
        ];
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(flatten(&params), expected);
    }
}
