//! Stories of a set with two phases: `a` goes first, `b` and `c` after it.

use serde_json::{Value, json};

use super::story::{App, R1, R2, Story, done};
use crate::checker::Change;

pub(super) const TIERS: [&str; 3] = ["t0", "t1", "t1"];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A story whose first phase has these fields.
pub(super) struct Phased {
    pub(super) story: Story,
    first: Value,
    annotations: Value,
    /// The directory that all follow.
    path: &'static str,
}

/// What is told of a phase: its state, its Applications in theirs, and what was done about its failure.
pub(super) fn told(state: &str, apps: &[(&str, &str)], failure: Value) -> Value {
    let entry = |(name, state): &(&str, &str)| json!({"name": name, "state": state, "pin": "good"});
    let apps: Vec<Value> = apps.iter().map(entry).collect();
    json!({"state": state, "applications": apps, "failure": failure})
}

/// A failure that was answered with an action.
pub(super) fn failure(action: &str) -> Value {
    json!({"reason": "SyncFailed", "message": "it broke", "action": action})
}

impl Phased {
    /// All three are done at the first revision; the second was pushed, and the first phase of its rollout is open.
    pub(super) fn new(first: Value) -> Phased {
        let story = Story::new(TIERS, Value::Null).begun(TIERS);
        let mut phased = Phased { story, first, annotations: json!({}), path: "blue" };
        phased.tells(0, [told("Complete", &[], Value::Null), told("Complete", &[], Value::Null)], "1-x");
        phased.story.wait(60);
        phased.tells(
            0,
            [told("Deploying", &[("a", "Held")], Value::Null), told("Pending", &[], Value::Null)],
            "2-x",
        );
        phased
    }

    /// People ask for something.
    pub(super) fn asks(&mut self, request: &str) {
        self.annotations[request] = "1".into();
    }

    /// The set with what is told of its phases.
    pub(super) fn tells(&mut self, current: usize, phases: [Value; 2], rollout: &str) {
        let target =
            |tier: &str| json!([{"matchExpressions": [{"key": "tier", "operator": "In", "values": [tier]}]}]);
        let mut first = self.first.clone();
        (first["name"], first["targets"]) = ("p0".into(), target("t0"));
        let second = json!({"name": "p1", "targets": target("t1")});
        let elements: Vec<Value> =
            NAMES.iter().zip(TIERS).map(|(name, tier)| json!({"name": name, "tier": tier})).collect();
        let spec = json!({
            "generators": [{"list": {"elements": elements}, "deploymentStrategy": {"phases": [first, second]}}],
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"tier": "{{tier}}"}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": "r", "path": format!("{}/{{{{name}}}}", self.path), "targetRevision": "main"},
                    "destination": {"server": "https://east.example.com", "namespace": "demo"},
                },
            },
        });
        let generator = json!({"rolloutID": rollout, "currentPhase": current, "phases": phases});
        let blocker = json!({"reason": "PhaseGate", "object": ""});
        let status = json!({"phases": [generator], "rollout": {"blockers": [blocker]}});
        let metadata = json!({"annotations": self.annotations});
        self.story.set(
            &NAMES,
            TIERS,
            Value::Null,
            json!({"spec": spec, "status": status, "metadata": metadata}),
        );
    }

    /// All are to follow another directory, by a rollout whose first phase is open.
    pub(super) fn wants(&mut self, path: &'static str) {
        self.path = path;
        self.tells(
            0,
            [told("Deploying", &[("a", "Held")], Value::Null), told("Pending", &[], Value::Null)],
            "3-x",
        );
    }

    /// What is told of the rollout that is judged.
    pub(super) fn tell(&mut self, current: usize, first: Value, second: Value) {
        self.tells(current, [first, second], "2-x");
    }

    /// The first phase's Application is brought to the second revision, and is well there.
    pub(super) fn deploys(&mut self) {
        self.starts("a", "t0");
        self.story.shows("a", "two");
        self.story.app(App { stamp: Some((2, 2)), ..done("a", "t0", R2) });
    }

    pub(super) fn starts(&mut self, name: &'static str, tier: &'static str) {
        self.story.app(done(name, tier, R1).outdated(R2).started(R2, 2));
    }

    /// A state of `a` is on record as good.
    pub(super) fn records(&mut self, revision: &str, pin: &str) {
        let source = json!({"repoURL": "r", "path": "blue/a", "targetRevision": revision});
        let destination = json!({"server": "https://east.example.com", "namespace": "demo"});
        let spec = json!({"project": "default", "source": source, "destination": destination});
        let object = json!({"revision": 1, "data": {"application": "a", "pin": pin, "spec": spec}});
        self.story.keeps("fleet-a-1", Change::Added, object);
    }

    pub(super) fn judged(&self) -> Vec<String> {
        self.story.judged()
    }
}
