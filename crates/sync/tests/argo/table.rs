//! Reads goldens and compares answers with them.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Where the goldens are.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/argo")
}

/// One YAML document of the goldens.
pub(crate) fn document(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut documents =
        baton_grammar::yaml::documents(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    assert_eq!(documents.len(), 1, "{path:?} holds one document");
    documents.remove(0)
}

/// Asks for an answer to each case of a table, and compares it with Argo CD's, or with ours where a case says why it
/// differs.
pub(crate) fn compare(name: &str, answer: impl Fn(&Value) -> Value) {
    let cases = document(&directory().join("tables").join(name).with_extension("yaml"));
    let cases = cases.as_array().expect("a table is a list");
    assert!(!cases.is_empty(), "{name} has cases");
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let differs = case.get("difference").is_some();
        let expected = if differs { &case["ours"] } else { &case["expect"] };
        let answer = answer(case);
        if differs && answer == case["expect"] {
            wrong.push(format!("#{index} does not differ any more: {case}"));
        }
        if answer != *expected {
            wrong.push(format!("#{index} {}\n  expected {expected}\n  got      {answer}", input(case)));
        }
    }
    assert!(wrong.is_empty(), "{name}: {} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn input(case: &Value) -> Value {
    let mut input = case.clone();
    for field in ["expect", "difference", "ours"] {
        input.as_object_mut().expect("a case is a map").remove(field);
    }
    input
}

/// A field of a case as a type of its own.
pub(crate) fn field<T: DeserializeOwned>(case: &Value, name: &str) -> T {
    serde_json::from_value(case[name].clone()).unwrap_or_else(|error| panic!("{name} of {case}: {error}"))
}

/// A field of a case, or the default where there is none.
pub(crate) fn optional<T: DeserializeOwned + Default>(case: &Value, name: &str) -> T {
    if case[name].is_null() { T::default() } else { field(case, name) }
}
