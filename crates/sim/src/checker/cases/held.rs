use serde_json::{Value, json};

use super::story::{R1, R2, Story, done, rolling};

const TIERS: [&str; 3] = ["t0", "t0", "t0"];

/// A set whose first run is said to be in this state, with these annotations.
fn said(story: &mut Story, state: &str, annotations: Value) {
    let status = json!({"rollout": {"run": 1, "state": state}});
    let rest = json!({"metadata": {"annotations": annotations}, "status": status});
    story.set(&["a", "b", "c"], TIERS, rolling(&["t0"], None), rest);
}

fn start(story: &mut Story, run: u64) {
    story.app(done("a", "t0", R1).outdated(R2).started(R2, run));
}

fn story() -> Story {
    Story::new(TIERS, rolling(&["t0"], None)).begun(TIERS)
}

#[test]
fn nothing_starts_in_a_run_that_is_said_to_be_paused() {
    let mut story = story();
    said(&mut story, "Paused", json!({"baton.dev/paused": "true"}));
    start(&mut story, 1);
    assert_eq!(story.judged(), ["I1: a was started in a run that was said to be Paused"]);
}

#[test]
fn once_people_let_it_go_on_it_may_though_it_is_still_said_to_be_paused() {
    let mut story = story();
    said(&mut story, "Paused", json!({"baton.dev/paused": "true"}));
    said(&mut story, "Paused", json!({}));
    start(&mut story, 1);
    assert_eq!(story.judged(), [""; 0]);
}

#[test]
fn an_aborted_run_starts_nothing_before_people_ask_for_it_and_the_next_one_may() {
    let mut ended = story();
    said(&mut ended, "Aborted", json!({"baton.dev/abort": "1", "baton.dev/retry": "0"}));
    start(&mut ended, 1);
    assert_eq!(ended.judged(), ["I1: a was started in a run that was said to be Aborted"]);
    let mut again = story();
    said(&mut again, "Aborted", json!({"baton.dev/abort": "1", "baton.dev/retry": "0"}));
    said(&mut again, "Aborted", json!({"baton.dev/abort": "1", "baton.dev/retry": "2"}));
    start(&mut again, 1);
    assert_eq!(again.judged(), [""; 0]);
    let mut next = story();
    said(&mut next, "Aborted", json!({"baton.dev/abort": "1"}));
    start(&mut next, 2);
    assert_eq!(next.judged(), [""; 0]);
}
