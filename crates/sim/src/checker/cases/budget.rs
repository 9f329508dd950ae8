use super::story::{App, R1, R2, Story, done, rolling};

const TIERS: [&str; 3] = ["t0", "t0", "t0"];

fn story(limit: Option<i64>) -> Story {
    Story::new(TIERS, rolling(&["t0"], limit)).begun(TIERS)
}

fn start(story: &mut Story, name: &'static str) {
    story.app(done(name, "t0", R1).outdated(R2).started(R2, 1));
}

#[test]
fn one_after_the_other_is_one_at_a_time() {
    let mut story = story(Some(1));
    start(&mut story, "a");
    story.app(App { stamp: Some((1, 1)), ..done("a", "t0", R2) });
    start(&mut story, "b");
    assert_eq!(story.judged(), [""; 0]);
}

#[test]
fn two_at_once_are_one_too_many() {
    let mut story = story(Some(1));
    start(&mut story, "a");
    start(&mut story, "b");
    assert_eq!(story.judged(), ["I2: b was started beside [\"a\"], and step 1 lets 1 be under way"]);
}

#[test]
fn whom_people_said_to_be_done_gives_its_slot_back_also_to_later_runs() {
    for (said, expected) in [("a=pin", 0), ("a=another", 1), ("c=pin", 1)] {
        let mut story = story(Some(1));
        start(&mut story, "a");
        let skip = serde_json::json!({"metadata": {"annotations": {"baton.dev/skip": said}}});
        for rest in [skip, serde_json::json!({})] {
            story.set(&["a", "b", "c"], TIERS, rolling(&["t0"], Some(1)), rest);
            story.wait(300);
        }
        start(&mut story, "b");
        assert_eq!(story.judged().len(), expected, "{said}: {:?}", story.judged());
    }
}

#[test]
fn failure_does_not_free_a_slot_and_neither_does_ill_health() {
    for ill in [
        App { phase: "Failed", ..done("a", "t0", R1).outdated(R2) },
        App { health: "Degraded", ..done("a", "t0", R2) },
    ] {
        let mut story = story(Some(1));
        start(&mut story, "a");
        story.app(App { stamp: Some((1, 1)), ..ill });
        start(&mut story, "b");
        assert_eq!(story.judged().len(), 1, "{:?}", story.judged());
    }
}

#[test]
fn a_slot_is_free_once_a_comparison_after_a_failure_finds_nothing_left_to_do() {
    for (compared, expected) in [("2026-01-01T00:06:00Z", 0), ("2026-01-01T00:04:00Z", 1)] {
        let mut story = story(Some(1));
        start(&mut story, "a");
        let ended = ["2026-01-01T00:05:00Z", compared];
        story.app(App { stamp: Some((1, 1)), phase: "Failed", ended, ..done("a", "t0", R2) });
        start(&mut story, "b");
        assert_eq!(story.judged().len(), expected, "{:?}", story.judged());
    }
}

#[test]
fn whoever_holds_a_slot_begins_anew_in_it_though_there_are_too_many_but_not_beside_an_operation() {
    for (ended, expected) in [(true, 0), (false, 1)] {
        let mut story = story(Some(2));
        start(&mut story, "a");
        start(&mut story, "b");
        story.set(&["a", "b", "c"], TIERS, rolling(&["t0"], Some(1)), serde_json::json!({}));
        story.wait(300);
        story.app(App { stamp: Some((1, 1)), phase: "Failed", ..done("a", "t0", R1).outdated(R2) });
        if ended {
            story.app(App { stamp: Some((1, 1)), phase: "Failed", ..done("b", "t0", R1).outdated(R2) });
        }
        story.app(done("a", "t0", R1).outdated(R2).started(R2, 2));
        assert_eq!(story.judged().len(), expected, "{:?}", story.judged());
    }
}

#[test]
fn a_step_without_a_limit_takes_all_and_one_that_is_held_none() {
    let mut all = story(None);
    ["a", "b", "c"].into_iter().for_each(|name| start(&mut all, name));
    assert_eq!(all.judged(), [""; 0]);
    let mut held = story(Some(0));
    start(&mut held, "a");
    assert_eq!(held.judged(), ["I2: a was started beside [], and step 1 lets 0 be under way"]);
}
