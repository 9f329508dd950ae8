use serde_json::{Value, json};

use super::phased::{Phased, failure, told};
use super::story::{App, R1, R2, done};

/// The first phase has changed `a`, and failed.
fn failing() -> Phased {
    let mut phased = Phased::new(json!({"onFailure": {"action": "rollback"}}));
    phased.records(R1, "good");
    phased.deploys();
    phased.tell(0, told("RollingBack", &[("a", "RollingBack")], failure("rollback")), pending());
    phased
}

fn pending() -> Value {
    told("Pending", &[], Value::Null)
}

/// Tells that `a` was put back.
fn tells(phased: &mut Phased) {
    let mut why = failure("rollback");
    why["rolledBack"] = json!(["a"]);
    phased.tell(0, told("RolledBack", &[("a", "RolledBack")], why), pending());
}

/// `a` goes back to the first revision, and is so well there.
fn goes_back(phased: &mut Phased, health: &'static str) {
    let back = App { follows: R1, ..done("a", "t0", R1) };
    phased.story.app(App { sync: "OutOfSync", ..back.clone() }.started(R1, 2));
    phased.story.shows("a", "one");
    phased.story.app(App { health, ..back });
}

#[test]
fn what_ends_at_its_last_good_state_is_right() {
    let mut phased = failing();
    goes_back(&mut phased, "Healthy");
    tells(&mut phased);
    phased.story = phased.story.left();
    assert_eq!(phased.judged(), [""; 0]);
}

#[test]
fn what_is_told_to_have_been_put_back_must_be() {
    let mut unchanged = failing();
    tells(&mut unchanged);
    let told = "I5: a is told to have been put back, and was not: its specification is another";
    assert_eq!(unchanged.judged(), [told]);
    let mut unwell = failing();
    goes_back(&mut unwell, "Degraded");
    tells(&mut unwell);
    assert_eq!(unwell.judged(), ["I5: a is told to have been put back, and was not: it is Degraded"]);
}

#[test]
fn what_was_changed_is_at_its_last_good_state_in_the_end() {
    let mut unchanged = failing();
    unchanged.tell(0, told("Failed", &[("a", "RollbackFailed")], failure("rollback")), pending());
    unchanged.story = unchanged.story.left();
    let expected = "I5: a is not at its last good state in the end: its specification is another";
    assert_eq!(unchanged.judged(), [expected]);
    let mut unending = failing();
    goes_back(&mut unending, "Healthy");
    unending.story = unending.story.left();
    let judged = unending.judged();
    assert!(
        judged.contains(&"I5: phase 1 is being put back, and that does not end".to_owned()),
        "{judged:?}"
    );
}

#[test]
fn who_has_nothing_to_go_back_to_is_told_of() {
    for told_of in [true, false] {
        let mut phased = Phased::new(json!({"onFailure": {"action": "rollback"}}));
        phased.deploys();
        let mut why = failure("rollback");
        why["notRolledBack"] = if told_of { json!(["a"]) } else { json!([]) };
        phased.tell(0, told("Failed", &[("a", "Healthy")], why), pending());
        phased.story = phased.story.left();
        let expected = "I5: a has nothing to be put back to, and nobody is told".to_owned();
        assert_eq!(phased.judged().contains(&expected), !told_of, "{:?}", phased.judged());
    }
}

#[test]
fn what_is_on_record_as_good_was_well() {
    let mut phased = Phased::new(json!({}));
    phased.records(R2, "new");
    assert_eq!(phased.judged(), ["I5: a state of a was recorded as good, and it was not: it is at 1111111"]);
}
