//! Objects and what a kube-apiserver 1.36 says about them, word for word.

use std::sync::Arc;

use baton_schema::{Reader, Validator, apply_defaults};
use serde_json::{Value, json};

/// Stands for the long sentence at the end of most answers.
const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

#[test]
fn objects_are_refused_with_the_words_of_a_real_server() {
    let recorded: Value = serde_json::from_str(include_str!("messages.json")).expect("the recording is JSON");
    let schema = Reader::standalone().read(&recorded["schema"]).expect("the schema is readable");
    let validator = Validator::new(Arc::clone(&schema)).expect("the rules compile");
    let mut different = String::new();
    for case in recorded["cases"].as_array().expect("a list") {
        let mut object = json!({
            "apiVersion": "schema.test/v1", "kind": "Probe", "metadata": {"name": "p"}, "spec": case["spec"],
        });
        apply_defaults(&schema, &mut object);
        let mut found: Vec<String> =
            validator.validate(&object, None).iter().map(ToString::to_string).collect();
        found.sort();
        let mut expected: Vec<String> = case["errors"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|error| match error.as_str().expect("text") {
                "…" => UNCHECKED.to_owned(),
                error => error.to_owned(),
            })
            .collect();
        expected.sort();
        if found != expected {
            different.push_str(&format!("{}:\n  expected {expected:#?}\n  found {found:#?}\n", case["name"]));
        }
    }
    assert!(different.is_empty(), "{different}");
}
