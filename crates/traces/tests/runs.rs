//! What is told of a run, read off versions of its set.

use baton_api::ApplicationSet;
use baton_traces::run::ended;
use baton_traces::{Outcome, Span, otlp};
use jiff::Timestamp;
use serde_json::{Value, json};

const BEGAN: &str = "2026-01-01T00:00:00Z";
const ENDED: &str = "2026-01-01T00:10:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn set(rollout: Value, phases: Value) -> ApplicationSet {
    serde_json::from_value(json!({
        "metadata": {"namespace": "argocd", "name": "web", "uid": "u-1"},
        "spec": {"generators": [], "template": {}},
        "status": {"rollout": rollout, "phases": phases},
    }))
    .expect("a set")
}

fn running(run: i64) -> Value {
    json!({
        "run": run, "state": "Progressing", "startedAt": BEGAN,
        "steps": [
            {"step": 1, "state": "Complete", "total": 2, "openedAt": BEGAN, "completedAt": "2026-01-01T00:04:00Z"},
            {"step": 2, "state": "Open", "total": 3, "openedAt": "2026-01-01T00:04:00Z"},
            {"step": 3, "state": "Waiting", "total": 1},
        ],
        "revisions": [{"repoURL": "https://bob:hunter2@git.example.com/a.git", "targetRevision": "main", "revision": "abc"}],
    })
}

fn finished(state: &str, message: &str) -> Value {
    let mut rollout = running(1);
    rollout["state"] = state.into();
    rollout["message"] = message.into();
    rollout["finishedAt"] = ENDED.into();
    rollout
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

#[test]
fn a_run_that_has_ended_is_told_once_with_its_steps() {
    let (before, after) = (set(running(1), json!([])), set(finished("Complete", ""), json!([])));
    let spans = ended(&before, &after, at(ENDED));
    assert_eq!(names(&spans), ["rollout argocd/web", "step 1", "step 2"], "who waits has no span");
    assert_eq!((spans[0].start, spans[0].end, &spans[0].outcome), (at(BEGAN), at(ENDED), &Outcome::Well));
    assert!(spans[1..].iter().all(|span| span.parent == Some(spans[0].id) && span.trace == spans[0].trace));
    assert_eq!(spans[1].end, at("2026-01-01T00:04:00Z"));
    assert_eq!(spans[2].end, at(ENDED), "what is still open ends with the run");
    assert_eq!(ended(&after, &after, at(ENDED)), [], "it has been told");
    assert_eq!(ended(&before, &before, at(ENDED)), [], "it has not ended");
    assert_eq!(ended(&before, &after, at(ENDED)), spans, "told again it is the same");
    let others = ended(&set(running(2), json!([])), &after, at(ENDED));
    assert_eq!(others[0].trace, spans[0].trace, "a trace belongs to a run, whatever was seen before it");
}

#[test]
fn a_run_that_another_takes_the_place_of_ends_then() {
    let now = at("2026-01-01T00:05:00Z");
    let spans = ended(&set(running(1), json!([])), &set(running(2), json!([])), now);
    assert_eq!((spans[0].end, &spans[0].outcome), (now, &Outcome::Unset));
    let told = otlp::request("baton", &spans).to_string();
    assert!(told.contains(r#"{"key":"baton.superseded","value":{"boolValue":true}}"#), "{told}");
    let over = set(finished("Complete", ""), json!([]));
    assert_eq!(ended(&over, &set(running(2), json!([])), now), [], "it had ended before");
}

#[test]
fn failure_is_told_in_words() {
    let after = set(finished("Failed", "SyncFailed: web-a: it broke"), json!([]));
    let spans = ended(&set(running(1), json!([])), &after, at(ENDED));
    assert_eq!(spans[0].outcome, Outcome::Badly("SyncFailed: web-a: it broke".to_owned()));
}

#[test]
fn phases_have_their_calls_below_them_and_earlier_ones_are_left_out() {
    let call = |name: &str, state: &str, target: &str| {
        json!({
            "name": name, "state": state, "target": target, "startedAt": "2026-01-01T00:01:00Z",
            "finishedAt": "2026-01-01T00:02:00Z", "attempt": 2, "code": 200, "message": "said no",
        })
    };
    let phases = json!([{
        "generator": 1, "currentPhase": 1, "phases": [
            {"name": "before", "state": "Complete", "startedAt": "2025-12-31T00:00:00Z"},
            {
                "name": "canary", "state": "Failed", "startedAt": BEGAN, "selected": 2,
                "failure": {"reason": "CheckFailed", "message": "check load failed"},
                "preHooks": [call("open", "Succeeded", "")],
                "checks": [call("load", "Failed", "web-a"), call("load", "Succeeded", "web-b")],
                "postHooks": [{"name": "close", "state": "Pending"}],
            },
            {"name": "all", "state": "Pending"},
        ],
    }]);
    let after = set(finished("Failed", "phase \"canary\" has failed"), phases);
    let spans = ended(&set(running(1), json!([])), &after, at(ENDED));
    assert_eq!(names(&spans[3..]), ["phase canary", "hook open", "check load", "check load"]);
    let phase = &spans[3];
    assert_eq!(phase.outcome, Outcome::Badly("check load failed".to_owned()));
    assert!(spans[4..].iter().all(|call| call.parent == Some(phase.id)));
    assert_eq!(spans[5].outcome, Outcome::Badly("said no".to_owned()));
    let ids: std::collections::BTreeSet<[u8; 8]> = spans.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), spans.len(), "no two have one identity");
}

#[test]
fn a_request_is_as_the_protocol_writes_it() {
    let after = set(finished("Complete", ""), json!([]));
    let spans = ended(&set(running(1), json!([])), &after, at(ENDED));
    let request = otlp::request("fleet", &spans);
    assert!(!request.to_string().contains("hunter2") && !request.to_string().contains("bob"));
    let root = &request["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(root["traceId"].as_str().map(str::len), Some(32));
    assert_eq!(root["spanId"].as_str().map(str::len), Some(16));
    assert_eq!((&root["kind"], &root["status"]), (&json!(1), &json!({"code": 1})));
    assert_eq!(root["startTimeUnixNano"], "1767225600000000000", "64 bits are a text");
    assert_eq!(root["parentSpanId"], Value::Null);
    let run = json!({"key": "baton.run", "value": {"intValue": "1"}});
    assert!(root["attributes"].as_array().expect("attributes").contains(&run));
    let revisions = json!({
        "key": "baton.revisions",
        "value": {"arrayValue": {"values": [{"stringValue": "https://git.example.com/a.git@main = abc"}]}},
    });
    assert!(root["attributes"].as_array().expect("attributes").contains(&revisions), "{root:#}");
    let service = &request["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(*service, json!({"key": "service.name", "value": {"stringValue": "fleet"}}));
}

#[test]
fn hooks_for_thousands_do_not_make_a_trace_of_thousands() {
    let call = |number: usize| json!({"name": "open", "target": format!("a-{number}"), "startedAt": BEGAN});
    let calls: Vec<Value> = (0..5000).map(call).collect();
    let phases = json!([{
        "generator": 0, "currentPhase": 0, "phases": [{"name": "all", "startedAt": BEGAN, "preHooks": calls}],
    }]);
    let spans = ended(&set(running(1), json!([])), &set(finished("Complete", ""), phases), at(ENDED));
    assert_eq!(spans.len(), 2000);
}
