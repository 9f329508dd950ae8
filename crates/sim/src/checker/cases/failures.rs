use serde_json::{Value, json};

use super::phased::{Phased, failure, told};
use super::story::R1;

fn on_failure(action: &str) -> Value {
    json!({"onFailure": {"action": action}})
}

/// The first phase has begun and failed, which was answered with an action.
fn failed(says: &str, state: &str, does: &str) -> Phased {
    let mut phased = Phased::new(on_failure(says));
    phased.starts("a", "t0");
    phased.tell(0, told(state, &[("a", "Failed")], failure(does)), told("Pending", &[], Value::Null));
    phased
}

#[test]
fn a_failure_that_is_answered_as_the_phase_says_is_right() {
    for (says, state) in [("stop", "Failed"), ("abort", "Aborted"), ("continue", "Failed")] {
        assert_eq!(failed(says, state, says).judged(), [""; 0], "{says}");
    }
    let mut untouched = Phased::new(on_failure("rollback"));
    untouched.tell(0, told("Failed", &[("a", "Held")], failure("stop")), told("Pending", &[], Value::Null));
    assert_eq!(untouched.judged(), [""; 0], "nothing was changed, so that there is nothing to put back");
    assert_eq!(failed("rollback", "Failed", "stop").judged(), [""; 0], "nothing good is on record");
}

#[test]
fn a_failure_that_is_answered_otherwise_is_not() {
    for (says, does) in
        [("stop", "continue"), ("rollback", "continue"), ("abort", "stop"), ("continue", "stop")]
    {
        let expected = format!("I5: phase 1 has failed and is answered with {does}: it says {says}");
        assert_eq!(failed(says, "Failed", does).judged(), [expected]);
    }
    let mut could = Phased::new(on_failure("rollback"));
    could.records(R1, "good");
    could.story.wait(60);
    could.deploys();
    could.tell(0, told("Failed", &[("a", "Failed")], failure("stop")), told("Pending", &[], Value::Null));
    assert_eq!(
        could.judged(),
        ["I5: phase 1 has failed and is answered with stop: it says rollback, and a was started in it"]
    );
}

#[test]
fn a_hook_that_aborts_does_so_whatever_its_phase_says() {
    let hook = json!({"name": "ask", "failurePolicy": "abort"});
    for (does, right) in [("abort", true), ("stop", false)] {
        let mut phased = Phased::new(json!({"onFailure": {"action": "stop"}, "preHooks": [hook]}));
        let why = json!({"reason": "HookFailed", "message": "hook \"ask\" failed: no", "action": does});
        phased.tell(0, told("Failed", &[("a", "Held")], why), told("Pending", &[], Value::Null));
        assert_eq!(phased.judged().is_empty(), right, "{does}: {:?}", phased.judged());
    }
}

#[test]
fn nobody_goes_on_without_a_failed_phase_unless_a_person_says_so() {
    let next = || told("Deploying", &[("b", "Held"), ("c", "Held")], Value::Null);
    let mut unasked = failed("stop", "Failed", "stop");
    unasked.tell(1, told("Failed", &[("a", "Failed")], failure("advance")), next());
    assert_eq!(
        unasked.judged(),
        ["I5: phase 1 has failed and is answered with advance: nobody asked for that"]
    );
    let mut asked = failed("stop", "Failed", "stop");
    asked.asks("baton.dev/advance");
    asked.tell(1, told("Failed", &[("a", "Failed")], failure("advance")), next());
    asked.starts("b", "t1");
    assert_eq!(asked.judged(), [""; 0]);
}

#[test]
fn nothing_of_later_phases_starts_after_a_failure_that_stops() {
    for (says, state) in [("stop", "Failed"), ("abort", "Aborted")] {
        let mut phased = failed(says, state, says);
        phased.starts("b", "t1");
        let expected = format!("I5: b was started though phase 1 has failed, which is answered with {says}");
        assert!(phased.judged().contains(&expected), "{:?}", phased.judged());
    }
}

#[test]
fn nothing_is_called_for_a_phase_that_has_failed() {
    let hook = json!({"name": "ask", "idempotencyKey": "k1", "state": "Cancelled"});
    let mut first = told("Aborted", &[("a", "Failed")], failure("abort"));
    first["preHooks"] = json!([hook]);
    let mut phased = Phased::new(on_failure("abort"));
    phased.starts("a", "t0");
    phased.tell(0, first, told("Pending", &[], Value::Null));
    phased.story.calls(0, "ask", "k1", false);
    assert_eq!(phased.judged(), [""; 0], "what was on its way may arrive a little later");
    phased.story.wait(60);
    phased.story.calls(0, "ask", "k1", false);
    assert_eq!(phased.judged(), ["I5: ask was called though phase 1 has failed"]);
}

#[test]
fn a_failure_that_is_passed_over_is_followed_by_the_next_phase() {
    let mut stuck = failed("continue", "Failed", "continue");
    stuck.story = stuck.story.left();
    let expected = "I5: phase 1 has failed, which is answered with continue, and the next does not begin";
    assert!(stuck.judged().contains(&expected.to_owned()), "{:?}", stuck.judged());
    let mut phased = failed("continue", "Failed", "continue");
    phased.tell(
        1,
        told("Failed", &[("a", "Failed")], failure("continue")),
        told("Deploying", &[("b", "Held"), ("c", "Held")], Value::Null),
    );
    phased.starts("b", "t1");
    assert_eq!(phased.judged(), [""; 0]);
}
