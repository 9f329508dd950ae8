//! Templates against Go's own answers.
//!
//! `golden/language.jsonl` holds a template a line with what Go 1.26's text/template made of it over
//! `golden/data.json`; `golden/sprig.jsonl` the same with the functions of sprig 3.3.0. The data also had `labels`,
//! a `map[string]string`, and `segments`, a `[]string`.

use std::sync::Arc;

use baton_template::{Limits, List, Map, MissingKey, Template, Value};

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

fn compare(cases: &[Case]) {
    let data = data();
    let wrong: Vec<String> = cases.iter().filter_map(|case| difference(case, &data)).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn difference(case: &Case, data: &Value) -> Option<String> {
    let actual =
        Template::parse("t", &case.template).map_err(|error| error.to_string()).and_then(|template| {
            template.execute(data, case.missing_key, Limits::default()).map_err(|error| error.to_string())
        });
    (actual != case.expected)
        .then(|| format!("{}\n    Go:   {:?}\n    here: {actual:?}", case.template, case.expected))
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
