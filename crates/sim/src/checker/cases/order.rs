use serde_json::json;

use super::story::{App, R1, R2, Story, done, rolling};
use crate::checker::Change;

const TIERS: [&str; 3] = ["t0", "t1", "t1"];

fn story() -> Story {
    Story::new(TIERS, rolling(&["t0", "t1"], None)).begun(TIERS)
}

/// The first step of a run at the second revision, done and true.
fn first_step(story: &mut Story, run: u64) {
    story.app(done("a", "t0", R1).outdated(R2).started(R2, run));
    story.shows("a", "two");
    story.app(App { stamp: Some((run, run)), ..done("a", "t0", R2) });
}

#[test]
fn the_next_step_after_the_one_before_is_right() {
    let mut story = story();
    first_step(&mut story, 1);
    story.app(done("b", "t1", R1).outdated(R2).started(R2, 1));
    assert_eq!(story.judged(), [""; 0]);
}

#[test]
fn an_earlier_step_that_has_not_noticed_the_commit_is_not_done() {
    let mut story = story();
    story.app(done("b", "t1", R1).outdated(R2).started(R2, 1));
    assert_eq!(
        story.judged(),
        ["I1: b (step 2) was started in run 1 before a (step 1) was done: it is at 1111111"]
    );
}

#[test]
fn words_without_truth_are_not_enough() {
    let mut story = story();
    story.app(done("a", "t0", R1).outdated(R2).started(R2, 1));
    story.app(App { stamp: Some((1, 1)), ..done("a", "t0", R2) });
    story.app(done("b", "t1", R1).outdated(R2).started(R2, 1));
    assert_eq!(
        story.judged(),
        [
            "I1: b (step 2) was started in run 1 before a (step 1) was done: it says it is, but east does not show two"
        ]
    );
}

#[test]
fn a_start_says_whose_it_is_and_names_a_commit() {
    let mut story = story();
    story.app(App { stamp: None, ..done("a", "t0", R1).outdated(R2).started(R2, 1) });
    story.app(done("a", "t0", R1));
    story.app(done("a", "t0", R1).started("main", 1));
    assert_eq!(
        story.judged(),
        ["I1: a was started without a stamp", "I1: a was started at \"main\", which is no commit"]
    );
}

#[test]
fn one_run_has_one_revision() {
    let mut story = story();
    first_step(&mut story, 1);
    story.app(App { synced: R2, ..done("b", "t1", R1).outdated(R1).started(R1, 1) });
    let judged = story.judged();
    assert!(
        judged.contains(&"I1: b was started at 1111111 in run 1, which is at 2222222".to_owned()),
        "{judged:?}"
    );
}

#[test]
fn what_was_done_in_another_run_is_to_be_done_again() {
    let mut story = story();
    first_step(&mut story, 2);
    story.wait(300);
    // Back to the first revision: `a` was done at it once, and is not now.
    let third = App { stamp: Some((3, 3)), ..done("a", "t0", R2) };
    story.app(third);
    story.wait(300);
    story.app(App { synced: R2, ..done("b", "t1", R2).outdated(R1).started(R1, 3) });
    assert_eq!(
        story.judged(),
        ["I1: b (step 2) was started in run 3 before a (step 1) was done: it is at 2222222"]
    );
}

#[test]
fn no_step_opens_while_an_earlier_one_has_regressed() {
    let mut story = story();
    first_step(&mut story, 1);
    story.app(App { health: "Degraded", stamp: Some((1, 1)), ..done("a", "t0", R2) });
    story.wait(120);
    story.app(done("b", "t1", R1).outdated(R2).started(R2, 1));
    assert_eq!(
        story.judged(),
        ["I1: b (step 2) was started in run 1 before a (step 1) was done: it is Degraded"]
    );
}

#[test]
fn an_open_step_goes_on_though_an_earlier_one_has_regressed() {
    let mut story = story();
    first_step(&mut story, 1);
    story.app(done("b", "t1", R1).outdated(R2).started(R2, 1));
    story.app(App { health: "Degraded", stamp: Some((1, 1)), ..done("a", "t0", R2) });
    story.wait(120);
    story.app(done("c", "t1", R1).outdated(R2).started(R2, 1));
    assert_eq!(story.judged(), [""; 0]);
}

#[test]
fn healing_what_drifted_is_no_start() {
    let mut story = story();
    story.app(done("b", "t1", R1).outdated(R1));
    story.app(done("b", "t1", R1).outdated(R1).started(R1, 1));
    assert_eq!(story.judged(), [""; 0]);
}

#[test]
fn nothing_is_started_that_no_step_holds_or_the_set_does_not_want() {
    let tiers = ["t0", "none", "t1"];
    let mut story = Story::new(tiers, rolling(&["t0", "t1"], None)).begun(tiers);
    story.app(done("b", "none", R1).outdated(R2).started(R2, 1));
    story.set(&["a", "b"], tiers, rolling(&["t0", "t1"], None), json!({}));
    story.wait(300);
    story.app(done("c", "t1", R1).outdated(R2).started(R2, 1));
    assert_eq!(
        story.judged(),
        ["I1: b was started though no step holds it", "I1: c was started as the set did not want it"]
    );
}

#[test]
fn what_people_skip_counts_as_done_in_the_run_they_meant() {
    let strategy = rolling(&["t0", "t1"], None);
    let skip = |pin: &str| json!({"metadata": {"annotations": {"baton.dev/skip": format!("a={pin}")}}});
    let told = |pin: &str| {
        let mut story = story();
        let rows =
            json!({"data": {"run": "{}", "apps.00000": "uid-a 0123 0 ---- 0 0\nuid-b 4567 0 ---- 0 0\n"}});
        story.write("control", "configmaps", "fleet.baton-rollout", Change::Modified, rows);
        story.set(&["a", "b", "c"], TIERS, strategy.clone(), skip(pin));
        story.wait(300);
        story.app(done("b", "t1", R1).outdated(R2).started(R2, 1));
        story.judged()
    };
    assert_eq!(told("0123"), [""; 0]);
    let expected = "I1: b (step 2) was started in run 1 before a (step 1) was done: it is at 1111111";
    assert_eq!(told("89ab"), [expected], "what another run asked of it");
}
