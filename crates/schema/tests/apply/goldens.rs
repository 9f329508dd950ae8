//! Sequences of writes answered by a real API server (Kubernetes 1.36), replayed.
//!
//! Each step starts from the server's own previous answer, so one difference does not hide the next. `answer` is the
//! stored object (without what a test cannot foresee: uid, revision, generation); `refusal` is the message and
//! `causes` its field conflicts.

use baton_schema::apply::{ApplyError, Writer, apply, track_update};
use baton_schema::{Reader, Schema, apply_defaults};
use serde_json::{Value, json};

#[test]
fn lists_are_owned_and_merged_like_on_a_real_server() {
    replay(include_str!("../goldens/lists.json"));
}

#[test]
fn objects_are_owned_and_merged_like_on_a_real_server() {
    replay(include_str!("../goldens/objects.json"));
}

#[test]
fn managers_come_and_go_like_on_a_real_server() {
    replay(include_str!("../goldens/managers.json"));
}

#[test]
fn pod_templates_are_owned_like_on_a_real_server() {
    replay(include_str!("../goldens/pod_template.json"));
}

#[test]
fn config_maps_are_owned_and_merged_like_on_a_real_server() {
    replay(include_str!("../goldens/config_map.json"));
}

fn replay(golden: &str) {
    let golden: Value = serde_json::from_str(golden).expect("a golden file is JSON");
    let schema = Reader::standalone().read(&golden["schema"]).expect("the schema is readable");
    let mut before: Option<Value> = None;
    let steps = golden["steps"].as_array().expect("a golden file has steps");
    for (number, step) in steps.iter().enumerate() {
        let outcome = take(&schema, &golden, step, before.as_ref());
        let expected = expectation(&golden, step, &outcome);
        assert_eq!(shown(&outcome), shown(&expected), "step {number}: {}", step_title(step));
        if let Some(answer) = step.get("answer") {
            before = Some(answer.clone());
        }
    }
}

fn take(schema: &Schema, golden: &Value, step: &Value, before: Option<&Value>) -> Value {
    let ignored: Vec<&str> =
        step["ignored"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let writer = Writer {
        manager: text(&step["manager"]),
        api_version: text(&golden["apiVersion"]),
        subresource: text(&step["subresource"]),
        time: text(&step["time"]),
        ignored: &ignored,
    };
    if step["does"] == "apply" {
        let force = step["force"].as_bool().unwrap_or(false);
        return match apply(schema, before, &step["config"], &writer, force) {
            Ok(mut object) => {
                apply_defaults(schema, &mut object);
                object
            }
            Err(error) => refusal(&error),
        };
    }
    let mut after = step["answer"].clone();
    let metadata = after["metadata"].as_object_mut().expect("every object has metadata");
    metadata.remove("managedFields");
    metadata.extend(step.get("sent").map(|sent| ("managedFields".to_owned(), sent.clone())));
    track_update(schema, before, &mut after, &writer);
    after
}

fn refusal(error: &ApplyError) -> Value {
    let mut causes: Vec<Value> = Vec::new();
    if let ApplyError::Conflicts(conflicts) = error {
        causes = conflicts.iter().map(|conflict| json!([conflict.field, conflict.message()])).collect();
        causes.sort_by_key(Value::to_string);
    }
    json!({ "refusal": error.to_string(), "status": error.status(), "causes": causes })
}

fn expectation(golden: &Value, step: &Value, outcome: &Value) -> Value {
    let Some(answer) = step.get("answer") else {
        let mut causes = step["causes"].as_array().cloned().unwrap_or_default();
        causes.sort_by_key(Value::to_string);
        return json!({ "refusal": step["refusal"], "status": step["status"], "causes": causes });
    };
    let mut expected = answer.clone();
    if golden["compare"] == "managedFields" {
        // The kind's own defaults are another crate's business.
        expected = outcome.clone();
        expected["metadata"]["managedFields"] = answer["metadata"]["managedFields"].clone();
    }
    expected
}

/// What a test can compare: apart from what the server alone writes.
fn shown(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in ["uid", "creationTimestamp", "namespace"] {
            metadata.remove(name);
        }
    }
    serde_json::to_string_pretty(&object).expect("a value can be written")
}

fn step_title(step: &Value) -> String {
    format!("{} by {}: {}", text(&step["does"]), text(&step["manager"]), step["config"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
