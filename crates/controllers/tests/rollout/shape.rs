//! Every other test once more, in a process of its own, on an API that is shaped as Argo CD's: where what Baton adds to
//! the status is not kept, and where the head of a rollout cannot be a ConfigMap.

use std::process::{Command, Output};

use crate::api::{Api, VARIABLE};

/// What the tests of this file are called by; in the other process they do not run.
const OWN: &str = "shape::";

#[test]
fn every_test_holds_on_argo_cds_definitions() {
    run_all_on(Api::Argo);
}

#[test]
fn every_test_holds_on_argo_cds_definitions_with_the_rights_of_its_role() {
    run_all_on(Api::ArgoRights);
}

fn run_all_on(api: Api) {
    let all = text(run(api, &["--list"]));
    let (own, others): (Vec<&str>, Vec<&str>) =
        all.lines().filter_map(|line| line.strip_suffix(": test")).partition(|name| name.starts_with(OWN));
    assert_eq!(own.len(), 2, "all but these run again: {own:?}");
    let output = run(api, &["--skip", OWN]);
    let succeeded = output.status.success();
    let told = text(output);
    assert!(succeeded, "on {}:\n{told}", api.name());
    let passed = number_before(&told, " passed;");
    println!("on {}: {passed} of {} tests passed", api.name(), others.len());
    assert_eq!(passed, others.len(), "none is left out:\n{told}");
}

fn run(api: Api, arguments: &[&str]) -> Output {
    let program = std::env::current_exe().expect("the path of this program");
    Command::new(program).args(arguments).env(VARIABLE, api.name()).output().expect("this program runs")
}

fn text(output: Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The number that stands before some words; 0 where there is none.
fn number_before(text: &str, words: &str) -> usize {
    let before = text.split(words).next().filter(|before| before.len() < text.len());
    before.and_then(|before| before.split(' ').next_back()).and_then(|word| word.parse().ok()).unwrap_or(0)
}
