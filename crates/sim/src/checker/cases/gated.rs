use serde_json::{Value, json};

use super::phased::{Phased, told};
use super::story::{App, R1, done};

/// Another specification than all had at the beginning.
fn renewed(app: App) -> App {
    App { path: "green", ..app }
}

/// The first phase's Application is done at what the rollout wants, and so is the phase.
fn first_is_over(phased: &mut Phased) {
    phased.deploys();
    phased.tell(1, told("Complete", &[("a", "Healthy")], Value::Null), told("Deploying", &[], Value::Null));
}

#[test]
fn who_is_made_after_the_phases_before_is_right() {
    let mut phased = Phased::new(json!({}));
    phased.story.gone(done("b", "t1", R1));
    phased.story.by_people();
    phased.story.wait(60);
    first_is_over(&mut phased);
    phased.story.made(done("b", "t1", R1));
    assert_eq!(phased.judged(), [""; 0]);
}

#[test]
fn nobody_is_made_before_the_phases_before_are_over() {
    let mut phased = Phased::new(json!({}));
    phased.story.gone(done("b", "t1", R1));
    phased.story.by_people();
    phased.story.wait(60);
    phased.starts("a", "t0");
    phased.story.made(done("b", "t1", R1));
    assert_eq!(phased.judged(), ["I5: b was made before a (phase 1) was done: it is OutOfSync"]);
}

#[test]
fn nobody_is_made_before_the_hook_before_its_phase_has_passed() {
    let mut phased = Phased::new(json!({"preHooks": [{"name": "ask"}]}));
    phased.story.gone(done("a", "t0", R1));
    phased.story.by_people();
    phased.story.wait(60);
    phased.story.made(done("a", "t0", R1));
    assert_eq!(phased.judged(), ["I5: a was made before ask of phase 1 had passed"]);
}

#[test]
fn nobody_is_given_another_specification_ahead_of_its_phase() {
    let mut phased = Phased::new(json!({}));
    phased.wants("green");
    phased.story.wait(60);
    phased.story.app(renewed(done("b", "t1", R1)));
    let expected =
        "I5: b was given another specification before a (phase 1) was done: its specification is another";
    assert_eq!(phased.judged(), [expected]);
}

#[test]
fn what_people_write_is_theirs_and_what_it_had_before_may_come_back() {
    let mut phased = Phased::new(json!({}));
    phased.wants("green");
    phased.story.wait(60);
    phased.story.app(App { writer: "person", ..renewed(done("b", "t1", R1)) });
    phased.story.app(done("b", "t1", R1));
    assert_eq!(phased.judged(), [""; 0]);
}
