use serde_json::{Value, json};

use super::story::{App, R1, Story, done, rolling, steps};

const TIERS: [&str; 3] = ["t0", "t1", "t1"];

fn strategy(order: &str) -> Value {
    let mut strategy = rolling(&["t0", "t1"], None);
    strategy["deletionOrder"] = order.into();
    strategy
}

/// A set that is being deleted.
fn story(strategy: Value) -> Story {
    let mut story = Story::new(TIERS, strategy.clone()).begun(TIERS);
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:05:00Z"}});
    story.set(&["a", "b", "c"], TIERS, strategy, going);
    story.wait(300);
    story
}

fn remove(story: &mut Story, name: &'static str, tier: &'static str) {
    story.gone(done(name, tier, R1));
}

#[test]
fn the_last_step_goes_first_one_by_one() {
    let mut story = story(strategy("Reverse"));
    for (name, tier) in [("b", "t1"), ("c", "t1"), ("a", "t0")] {
        remove(&mut story, name, tier);
    }
    assert_eq!(story.judged(), [""; 0]);
}

#[test]
fn the_first_step_must_not_go_first() {
    let mut story = story(strategy("reverse"));
    remove(&mut story, "a", "t0");
    assert_eq!(story.judged(), ["I3: a was deleted before b was gone, which goes first"]);
}

#[test]
fn one_that_is_going_is_not_gone() {
    let mut story = story(strategy("Reverse"));
    story.app(App { going: true, ..done("b", "t1", R1) });
    remove(&mut story, "c", "t1");
    assert_eq!(story.judged(), ["I3: c was deleted beside [\"b\"], and 1 may go at once"]);
}

#[test]
fn custom_steps_are_followed_and_what_no_step_holds_goes_last() {
    let mut custom = strategy("Custom");
    custom["deletionSync"] = json!({"steps": steps(&["t0"], None)});
    let mut good = story(custom.clone());
    for (name, tier) in [("a", "t0"), ("b", "t1"), ("c", "t1")] {
        remove(&mut good, name, tier);
    }
    assert_eq!(good.judged(), [""; 0]);
    let mut bad = story(custom);
    remove(&mut bad, "b", "t1");
    assert_eq!(bad.judged(), ["I3: b was deleted before a was gone, which goes first"]);
}

#[test]
fn what_generators_drop_goes_in_order_too_and_nothing_else_goes() {
    let mut story = Story::new(TIERS, strategy("Reverse")).begun(TIERS);
    story.set(&["c"], ["t1", "", ""], strategy("Reverse"), json!({}));
    story.wait(300);
    remove(&mut story, "a", "t0");
    remove(&mut story, "c", "t1");
    assert_eq!(
        story.judged(),
        ["I3: a was deleted before b was gone, which goes first", "I3: c was deleted, and the set wants it"]
    );
}

#[test]
fn an_order_that_cannot_be_known_deletes_nothing() {
    for order in ["Custom", "Sideways"] {
        let mut story = story(strategy(order));
        remove(&mut story, "b", "t1");
        assert_eq!(story.judged(), ["I3: b was deleted in an order that nobody can know"], "{order}");
    }
    let mut story = story(strategy("AllAtOnce"));
    remove(&mut story, "a", "t0");
    assert_eq!(story.judged(), [""; 0]);
}
