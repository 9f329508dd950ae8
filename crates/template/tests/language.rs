//! Templates against Go's own answers.
//!
//! `golden/language.jsonl` holds a template a line with what Go 1.26's text/template made of it over
//! `golden/data.json`, sprig's functions present; the other files the same for the functions of sprig 3.3.0 (with
//! semver 3.4.0, as Argo CD builds it), in UTC. The data also had `labels`, a `map[string]string`, and `segments`, a
//! `[]string`.

use std::sync::Arc;

use baton_template::{Execution, List, Map, MissingKey, SeededEntropy, Template, Value};

#[derive(Debug)]
struct Case {
    template: String,
    missing_key: MissingKey,
    expected: Result<String, String>,
}

#[test]
fn every_template_does_what_go_does() {
    compare(&cases(include_str!("golden/language.jsonl")));
}

#[test]
fn every_function_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/sprig.jsonl")));
}

#[test]
fn every_collection_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/collections.jsonl")));
}

#[test]
fn chance_templates_do_what_they_do_in_go() {
    compare(&cases(include_str!("golden/mixed.jsonl")));
}

#[test]
fn names_are_made_as_argo_cd_makes_them() {
    compare(&cases(include_str!("golden/names.jsonl")));
}

#[test]
fn yaml_is_written_and_read_as_argo_cd_does() {
    compare(&cases(include_str!("golden/yaml.jsonl")));
}

#[test]
fn every_function_on_words_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/words.jsonl")));
}

#[test]
fn every_function_on_regular_expressions_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/regexes.jsonl")));
}

#[test]
fn every_function_on_versions_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/versions.jsonl")));
}

#[test]
fn every_function_on_dates_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/dates.jsonl")));
}

#[test]
fn every_digest_and_cipher_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/digests.jsonl")));
}

#[test]
fn every_function_on_urls_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/urls.jsonl")));
}

#[test]
fn every_function_on_certificates_does_what_sprigs_does_where_that_can_be_told() {
    compare(&cases(include_str!("golden/certificates.jsonl")));
}

#[test]
fn every_function_is_called_well_or_badly_as_in_go() {
    compare(&cases(include_str!("golden/calls.jsonl")));
}

#[test]
fn what_chance_drew_does_what_sprigs_does() {
    compare(&cases(include_str!("golden/drawn.jsonl")));
}

#[test]
fn every_random_function_does_what_sprigs_does_where_that_can_be_told() {
    compare(&cases(include_str!("golden/random.jsonl")));
}

fn compare(cases: &[Case]) {
    let wrong: Vec<String> = cases.iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn difference(case: &Case) -> Option<String> {
    // Of its own for every case: templates change maps.
    let data = data();
    let actual =
        Template::parse("t", &case.template).map_err(|error| error.to_string()).and_then(|template| {
            let now = "2026-11-15T08:00:00Z[UTC]".parse().expect("a time");
            let execution = Execution {
                missing_key: case.missing_key,
                now: Some(&now),
                entropy: Some(&SeededEntropy::new(7)),
                ..Execution::default()
            };
            template.execute_in(&data, &execution).map_err(|error| error.to_string())
        });
    (!same(&actual, &case.expected))
        .then(|| format!("{}\n    Go:   {:?}\n    here: {actual:?}", case.template, case.expected))
}

/// Where Go shows how its runtime came to grief, or what its YAML parser thinks, only the place must be the same: what
/// is told here is meant for the template's author.
fn same(actual: &Result<String, String>, expected: &Result<String, String>) -> bool {
    const ACCIDENTS: [&str; 4] =
        ["runtime error: ", "reflect: ", "reflect.Value.", "error converting YAML to JSON: "];
    if let (Err(actual), Err(expected)) = (actual, expected)
        && let Some(at) = ACCIDENTS.iter().find_map(|accident| expected.find(accident))
    {
        return actual.starts_with(&expected[..at]);
    }
    actual == expected
}

fn cases(goldens: &str) -> Vec<Case> {
    goldens
        .lines()
        .map(|line| {
            let case: serde_json::Value = serde_json::from_str(line).expect("the goldens are JSON lines");
            let text = |key: &str| case[key].as_str().map(str::to_owned);
            let option = text("o").unwrap_or("default".to_owned());
            Case {
                template: text("t").expect("a case has a template"),
                missing_key: format!("missingkey={option}").parse().expect("a case has a known option"),
                expected: text("out").ok_or_else(|| text("err").expect("a case has an answer")),
            }
        })
        .collect()
}

fn data() -> Value {
    let json: serde_json::Value =
        serde_json::from_str(include_str!("golden/data.json")).expect("the data is JSON");
    let Value::Map(map) = Value::from(&json) else {
        panic!("the data is an object");
    };
    map.insert("labels", Value::Map(Map::strings([("env", "prod"), ("tier", "web")])));
    map.insert(Arc::from("segments"), Value::List(List::strings(["apps", "web", "x"])));
    Value::Map(map)
}
