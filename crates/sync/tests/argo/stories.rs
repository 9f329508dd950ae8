//! Whole syncs, step by step.

use std::collections::BTreeMap;

use baton_api::application_status::OperationPhase;
use serde_json::{Value, json};

use crate::decisions::application;
use crate::play::Play;
use crate::table::{directory, document, field, optional};

const APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// Passes within which every step of a story settles.
const PASSES: usize = 20;

#[test]
fn syncs_go_as_in_argo_cd() {
    let mut files: Vec<_> = std::fs::read_dir(directory().join("stories"))
        .expect("the goldens are in the repository")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        wrong.extend(differences(&document(file)).into_iter().map(|text| format!("{name}: {text}")));
    }
    assert!(files.len() > 200, "the stories are there");
    assert!(wrong.is_empty(), "{} of {} stories:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

/// The first step of a story that goes otherwise than expected.
fn differences(text: &Value) -> Option<String> {
    let mut story = play(text);
    let steps: Vec<Value> = field(text, "steps");
    let differs = text.get("difference").is_some();
    let mut seen_difference = false;
    for (number, step) in steps.iter().enumerate() {
        let ours = step.get("ours").filter(|_| differs);
        let expected = ours.unwrap_or(&step["expect"]);
        let outcome = story.go(step);
        let told = compare(expected, &outcome);
        if !told.is_empty() {
            return Some(format!("step {}\n{}", number + 1, told.join("\n")));
        }
        seen_difference |= ours.is_some_and(|ours| !compare(&step["expect"], ours).is_empty());
    }
    (differs && !seen_difference).then(|| "does not differ any more".to_owned())
}

fn compare(expected: &Value, outcome: &Value) -> Vec<String> {
    let mut told = Vec::new();
    for field in ["phase", "message", "calls", "results", "left"] {
        if expected[field] != outcome[field] {
            told.push(format!(
                "  {field} expected {}\n  {field} got      {}",
                expected[field], outcome[field]
            ));
        }
    }
    // What is as wanted was found to be so by asking, and is not checked again.
    let allowed = expected["checked"].as_array().expect("a list");
    let unexpected: Vec<&Value> = outcome["checked"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|checked| !allowed.contains(checked))
        .collect();
    if !unexpected.is_empty() {
        told.push(format!("  checked besides {allowed:?}: {unexpected:?}"));
    }
    told
}

fn play(text: &Value) -> Play {
    let mut play = Play::new(text, application(&text["application"]), "2026-01-02T03:10:00Z");
    let mut operation = text["operation"].clone();
    if operation.is_null() {
        operation = json!({});
    }
    operation["revision"] = json!(play.revision);
    let state = json!({"operation": {"sync": operation}, "phase": "Running", "startedAt": text["startedAt"]});
    play.state = serde_json::from_value(state).expect("an operation's state");
    play
}

impl Play {
    /// Lets happen what happens before a step, then runs passes until nothing more comes of them.
    fn go(&mut self, step: &Value) -> Value {
        self.cluster.health.extend(optional::<BTreeMap<String, String>>(step, "health"));
        for name in optional::<Vec<String>>(step, "gone") {
            self.cluster.forget(&name);
        }
        for object in optional::<Vec<Value>>(step, "put") {
            self.put(object);
        }
        if !step["targets"].is_null() {
            self.manifests = field(step, "targets");
        }
        if let Some(time) = step["approve"].as_str() {
            let annotations = self.application.metadata.annotations.get_or_insert_default();
            annotations.insert(APPROVED.to_owned(), time.to_owned());
        }
        if optional(step, "terminate") {
            self.state.phase = OperationPhase::Terminating;
        }
        if optional(step, "retry") && self.state.phase.is_completed() {
            self.state.phase = OperationPhase::Running;
            self.state.sync_result = None;
        }
        self.cluster.failures = optional(step, "fail");
        self.cluster.calls.clear();
        self.cluster.checked.clear();
        let mut before = Value::Null;
        for _ in 0..PASSES {
            (self.state.phase, self.state.message) = self.pass();
            let mut outcome = self.outcome();
            let calls = outcome.as_object_mut().expect("a map").remove("calls");
            if outcome == before || self.state.phase.is_completed() {
                outcome["calls"] = calls.unwrap_or_default();
                outcome["checked"] = json!(self.cluster.checked);
                return outcome;
            }
            before = outcome;
        }
        panic!("does not settle: {before}");
    }

    fn outcome(&self) -> Value {
        let results = self.state.sync_result.as_ref().map_or(&[][..], |result| &result.resources);
        let rows: Vec<Value> = results
            .iter()
            .map(|result| {
                let mut row = json!(result);
                let empty = |value: &Value| value == "" || value.is_null() || value == &json!([]);
                row.as_object_mut().expect("a map").retain(|_, value| !empty(value));
                row
            })
            .collect();
        json!({
            "phase": self.state.phase,
            "message": self.state.message,
            "results": rows,
            "calls": self.cluster.calls,
            "left": self.cluster.left(),
        })
    }
}
