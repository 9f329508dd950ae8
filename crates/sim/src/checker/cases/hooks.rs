use serde_json::{Value, json};

use super::story::{R1, R2, Story, done};

const TIERS: [&str; 3] = ["t0", "t0", "t0"];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A set of one phase with a hook before it, which is on record in this state.
fn set(story: &mut Story, policy: &str, state: &str) {
    let phase = json!({
        "name": "all", "preHooks": [{"name": "ask", "failurePolicy": policy}],
        "targets": [{"matchExpressions": [{"key": "tier", "operator": "In", "values": ["t0"]}]}],
    });
    let elements: Vec<Value> = NAMES.iter().map(|name| json!({"name": name, "tier": "t0"})).collect();
    let hook = json!({"name": "ask", "idempotencyKey": "k1", "state": state});
    let spec = json!({
        "generators": [{"list": {"elements": elements}, "deploymentStrategy": {"phases": [phase]}}],
        "template": {
            "metadata": {"name": "{{name}}", "labels": {"tier": "{{tier}}"}},
            "spec": {
                "project": "default",
                "source": {"repoURL": "r", "path": "blue/{{name}}", "targetRevision": "main"},
                "destination": {"server": "https://east.example.com", "namespace": "demo"},
            },
        },
    });
    let status = json!({"phases": [{"generator": 0, "phases": [{"name": "all", "preHooks": [hook]}]}]});
    story.set(&NAMES, TIERS, Value::Null, json!({"spec": spec, "status": status}));
}

fn story(policy: &str) -> Story {
    let mut story = Story::new(TIERS, Value::Null).begun(TIERS);
    set(&mut story, policy, "Pending");
    story.wait(60);
    story
}

#[test]
fn who_starts_after_the_hook_before_its_phase_is_right() {
    let mut story = story("");
    story.calls(0, "ask", "k1", false);
    story.calls(0, "ask", "k1", true);
    set(&mut story, "", "Succeeded");
    story.app(done("a", "t0", R1).outdated(R2).started(R2, 1));
    assert_eq!(story.judged(), [""; 0]);
}

#[test]
fn nobody_starts_before_the_hook_before_its_phase_has_passed() {
    let expected = ["I5: a (phase 1) was started before ask had passed"];
    let mut uncalled = story("");
    uncalled.app(done("a", "t0", R1).outdated(R2).started(R2, 1));
    assert_eq!(uncalled.judged(), expected, "nobody called it");
    let mut failed = story("");
    failed.calls(0, "ask", "k1", false);
    failed.app(done("a", "t0", R1).outdated(R2).started(R2, 1));
    assert_eq!(failed.judged(), expected, "it failed");
    let mut late = story("");
    late.app(done("a", "t0", R1).outdated(R2).started(R2, 1));
    late.calls(0, "ask", "k1", true);
    assert_eq!(late.judged(), expected, "it passed later");
    let mut ignored = story("ignore");
    ignored.calls(0, "ask", "k1", false);
    ignored.app(done("a", "t0", R1).outdated(R2).started(R2, 1));
    assert_eq!(ignored.judged(), [""; 0], "its failure does not matter");
}

#[test]
fn what_is_on_record_as_passed_is_not_called_again() {
    let mut story = story("");
    story.calls(0, "ask", "k1", true);
    set(&mut story, "", "Succeeded");
    story.calls(0, "ask", "k2", true);
    assert_eq!(story.judged(), [""; 0], "another rollout asks anew");
    story.calls(0, "ask", "k1", true);
    assert_eq!(story.judged(), ["I5: ask of phase 1 was called again after it had passed"]);
}
