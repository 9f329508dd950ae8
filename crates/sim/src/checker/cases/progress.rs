use serde_json::{Value, json};

use super::story::{App, R1, R2, Story, done, rolling};
use crate::checker::is_quiet;

const TIERS: [&str; 3] = ["t0", "t0", "t1"];

fn story(rest: Value) -> Story {
    let mut story = Story::new(TIERS, rolling(&["t0", "t1"], None)).begun(TIERS);
    story.set(&["a", "b", "c"], TIERS, rolling(&["t0", "t1"], None), rest);
    story
}

fn finish(story: &mut Story) {
    for (name, tier) in [("a", "t0"), ("b", "t0"), ("c", "t1")] {
        story.shows(name, "two");
        story.app(done(name, tier, R2));
    }
}

fn blocked(reason: &str) -> Value {
    json!({"status": {"rollout": {"blockers": [{"reason": reason, "object": "a"}]}}})
}

#[test]
fn a_run_that_finished_is_well() {
    let mut story = story(json!({}));
    finish(&mut story);
    assert_eq!(story.end().judged(), [""; 0]);
}

#[test]
fn an_end_without_a_name_is_none() {
    let story = story(json!({})).end();
    assert_eq!(story.judged(), ["I6: a is not done: it is at 1111111, and nothing names what it waits for"]);
}

#[test]
fn a_name_alone_is_no_excuse() {
    let story = story(blocked("Progressing")).end();
    assert_eq!(
        story.judged(),
        ["I6: a is not done: it is at 1111111, though nothing stands in its way; named: [\"Progressing a\"]"]
    );
}

#[test]
fn people_and_broken_commits_may_hold_a_run_that_says_so() {
    let mut paused = blocked("Paused");
    paused["metadata"] = json!({"annotations": {"baton.dev/paused": "true"}});
    assert_eq!(story(paused).end().judged(), [""; 0]);
    let mut broken = story(blocked("Degraded"));
    broken.git().broken.insert((R2.to_owned(), "blue/a".to_owned()));
    assert_eq!(broken.end().judged(), [""; 0]);
}

#[test]
fn what_left_must_go() {
    let mut story = story(json!({}));
    finish(&mut story);
    story.set(&["a", "b"], TIERS, rolling(&["t0", "t1"], None), json!({}));
    assert_eq!(
        story.end().judged(),
        ["I6: c left the set and is still there, and nothing names what it waits for"]
    );
}

#[test]
fn a_deletion_ends_or_names_what_it_waits_for() {
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:05:00Z"}});
    assert_eq!(story(going).end().judged(), ["I6: the set is not gone, and nothing names why"]);
}

#[test]
fn a_write_after_rest_is_noise() {
    let mut story = story(json!({}));
    let rested = story.now();
    assert_eq!(is_quiet(Some((rested, "x".to_owned())), rested), None);
    story.app(App { health: "Degraded", ..done("a", "t0", R1) });
    let noise = is_quiet(Some((story.now(), "a".to_owned())), rested).map(|violation| violation.invariant);
    assert_eq!(noise, Some("I7"));
}
