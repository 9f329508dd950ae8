//! Merge behaviour, required fields and list-key defaults per definition.
//!
//! `facts.txt` has one block per definition: its name, then one indented line per field (`.` is the definition itself) with
//! `list=KEYS` (a list told apart by these fields), `set`, `atomic` (lists), `whole` (an object replaced as a whole), `granular` (one that is not, although others of its type are),
//! `patch=STRATEGY`, `by=MERGE-KEY`, `required=FIELDS` and `default=JSON`.

use serde_json::{Map, Value};

const FACTS: &str = include_str!("facts.txt");

/// Adds the facts to the definitions they name.
pub(super) fn lay_over(definitions: &mut Map<String, Value>) {
    let mut definition = "";
    for line in FACTS.lines() {
        match line.strip_prefix("  ") {
            None => definition = line,
            Some(facts) => {
                if let Some(document) = definitions.get_mut(definition) {
                    add(document, facts);
                }
            }
        }
    }
}

fn add(document: &mut Value, facts: &str) {
    let mut words = facts.split(' ');
    let node = match words.next() {
        Some(".") | None => Some(document),
        Some(field) => document.get_mut("properties").and_then(|fields| fields.get_mut(field)),
    };
    let Some(Value::Object(node)) = node else { return };
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "list" => {
                node.insert("x-kubernetes-list-type".into(), "map".into());
                node.insert("x-kubernetes-list-map-keys".into(), names(value));
            }
            "set" | "atomic" => drop(node.insert("x-kubernetes-list-type".into(), name.into())),
            "whole" => drop(node.insert("x-kubernetes-map-type".into(), "atomic".into())),
            "granular" => drop(node.insert("x-kubernetes-map-type".into(), name.into())),
            "patch" => drop(node.insert("x-kubernetes-patch-strategy".into(), value.into())),
            "by" => drop(node.insert("x-kubernetes-patch-merge-key".into(), value.into())),
            "required" => drop(node.insert("required".into(), names(value))),
            "default" => {
                if let Ok(value) = serde_json::from_str(value) {
                    node.insert("default".into(), value);
                }
            }
            _ => {}
        }
    }
}

fn names(list: &str) -> Value {
    list.split(',').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word of the table is understood and each definition and field it names exists.
    #[test]
    fn every_fact_finds_its_place() {
        let definitions = crate::schemas::definitions();
        let named = FACTS.lines().filter(|line| !line.starts_with(' '));
        let unknown: Vec<&str> = named.filter(|name| !definitions.contains_key(*name)).collect();
        assert_eq!(unknown, Vec::<&str>::new(), "not generated");
        let mut definition = "";
        for line in FACTS.lines() {
            let Some(facts) = line.strip_prefix("  ") else {
                definition = line;
                continue;
            };
            let document = &definitions[definition];
            let mut words = facts.split(' ');
            let field = words.next().expect("a field");
            assert!(
                field == "." || document["properties"].get(field).is_some(),
                "{definition} has no field {field}"
            );
            for word in words {
                let name = word.split('=').next().expect("split yields at least one part");
                assert!(
                    ["list", "set", "atomic", "whole", "granular", "patch", "by", "required", "default"]
                        .contains(&name),
                    "{definition} {field}: {word}"
                );
            }
        }
    }
}
