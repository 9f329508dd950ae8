use serde_json::{Value, json};

use super::story::{App, R1, Story, done, rolling};
use crate::checker::Change;

const TIERS: [&str; 3] = ["t0", "t0", "t0"];

fn resource(options: &str) -> Value {
    json!({"metadata": {"annotations": {
        "argocd.argoproj.io/tracking-id": "a:/ConfigMap:demo/x", "argocd.argoproj.io/sync-options": options,
    }}})
}

/// An operation that prunes a plain and a guarded object, approved at this time.
fn story(approved: Option<&str>) -> Story {
    let mut story = Story::new(TIERS, rolling(&["t0"], None)).begun(TIERS);
    for (name, options) in [("plain", ""), ("kept", "Prune=confirm")] {
        story.write("east", "configmaps", name, Change::Added, resource(options));
    }
    let annotations = approved.map(|time| json!({"argocd.argoproj.io/deletion-approved": time}));
    let annotations = annotations.unwrap_or_else(|| json!({}));
    story.app(App { phase: "Running", annotations, ..done("a", "t0", R1) });
    for (name, options) in [("plain", ""), ("kept", "Prune=confirm")] {
        story.write("east", "configmaps", name, Change::Deleted, resource(options));
    }
    story
}

#[test]
fn what_people_delete_themselves_needs_no_approval() {
    let mut story = Story::new(TIERS, rolling(&["t0"], None)).begun(TIERS);
    for name in ["plain", "kept"] {
        story.write("east", "configmaps", name, Change::Added, resource("Prune=confirm"));
    }
    story.app(App { phase: "Running", ..done("a", "t0", R1) });
    story.write("east", "configmaps", "plain", Change::Deleted, resource("Prune=confirm"));
    story.by_people();
    assert_eq!(story.judged(), [""; 0]);
    story.write("east", "configmaps", "kept", Change::Deleted, resource("Prune=confirm"));
    assert_eq!(story.judged(), ["I4: east/configmaps/kept went before east/configmaps/kept was approved"]);
}

#[test]
fn what_was_approved_goes() {
    assert_eq!(story(Some("2026-01-01T00:01:00Z")).judged(), [""; 0]);
}

#[test]
fn nothing_goes_before_the_guarded_is_approved() {
    let expected = [
        "I4: east/configmaps/plain went before east/configmaps/kept was approved",
        "I4: east/configmaps/kept went before east/configmaps/kept was approved",
    ];
    assert_eq!(story(None).judged(), expected);
    assert_eq!(story(Some("2025-12-31T00:00:00Z")).judged(), expected, "of another operation");
    assert_eq!(story(Some("2026-01-01T01:00:00Z")).judged(), expected, "not said yet");
}
