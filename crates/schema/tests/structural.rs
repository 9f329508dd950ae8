//! Schemas of CustomResourceDefinitions and what a kube-apiserver 1.36 says about them, word for word.

use baton_schema::{FieldError, Problem, structural};
use serde_json::Value;

/// Where the server's answers place the schema; the recording writes `@`.
const PREFIX: &str = "spec.validation.openAPIV3Schema";

#[test]
fn schemas_are_refused_with_the_words_of_a_real_server() {
    let recorded: Value =
        serde_json::from_str(include_str!("structural.json")).expect("the recording is JSON");
    let mut different = String::new();
    for case in recorded.as_array().expect("a list") {
        let mut found: Vec<String> = structural::check(&case["schema"], PREFIX).iter().map(shown).collect();
        found.sort();
        let mut expected: Vec<String> = case["errors"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|error| first_sentence(error.as_str().expect("text")))
            .collect();
        expected.sort();
        if found != expected {
            different.push_str(&format!("{}:\n  expected {expected:#?}\n  found {found:#?}\n", case["name"]));
        }
    }
    assert!(different.is_empty(), "{different}");
}

/// The server shows a rule as a Go struct, this one as its text.
fn shown(error: &FieldError) -> String {
    let of_rule = error.path.ends_with(".rule") || error.path.ends_with(".messageExpression");
    let about_text = error.detail.starts_with("oldSelf cannot");
    let text = match &error.problem {
        Problem::Invalid(_) if of_rule && !about_text => {
            format!("{}: Invalid value: RULE: {}", error.path, error.detail)
        }
        _ => error.to_string(),
    };
    first_sentence(&text.replace(PREFIX, "@"))
}

/// Parsers word syntax errors and regular expression errors in their own ways.
fn first_sentence(text: &str) -> String {
    for own_words in ["Syntax error:", "regular expression, but isn't:"] {
        if let Some((before, _)) = text.split_once(own_words) {
            return before.to_owned();
        }
    }
    text.to_owned()
}
