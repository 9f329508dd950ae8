use serde_json::{Value, json};

use super::phased::{Phased, told};

/// The first phase is told to be over, and somebody of the second starts.
fn goes_on(phased: &mut Phased) {
    phased.tell(
        1,
        told("Complete", &[("a", "Healthy")], Value::Null),
        told("Deploying", &[("b", "Held"), ("c", "Held")], Value::Null),
    );
    phased.starts("b", "t1");
}

#[test]
fn the_next_phase_after_every_check_hook_and_wait_is_right() {
    let fields = json!({"checks": [{"name": "probe"}], "waitDuration": "10s"});
    let mut phased = Phased::new(fields);
    phased.deploys();
    phased.story.calls_of("checks", 0, "probe", "k1", true);
    phased.story.wait(10);
    goes_on(&mut phased);
    assert_eq!(phased.judged(), [""; 0]);
}

#[test]
fn nobody_starts_before_the_checks_and_hooks_of_the_phase_before_have_passed() {
    for list in ["checks", "postHooks"] {
        let expected = ["I5: b (phase 2) was started before probe of phase 1 had passed"];
        let mut fields = json!({});
        fields[list] = json!([{"name": "probe"}]);
        let mut uncalled = Phased::new(fields.clone());
        uncalled.deploys();
        goes_on(&mut uncalled);
        assert_eq!(uncalled.judged(), expected, "nobody called it");
        let mut failed = Phased::new(fields.clone());
        failed.deploys();
        failed.story.calls_of(list, 0, "probe", "k1", false);
        goes_on(&mut failed);
        assert_eq!(failed.judged(), expected, "it failed");
        let mut late = Phased::new(fields);
        late.deploys();
        goes_on(&mut late);
        late.story.calls_of(list, 0, "probe", "k1", true);
        assert_eq!(late.judged(), expected, "it passed later");
    }
}

#[test]
fn nobody_starts_before_the_wait_of_the_phase_before_is_over_unless_a_person_ends_it() {
    let fields = || json!({"checks": [{"name": "probe"}], "waitDuration": "10s"});
    let mut early = Phased::new(fields());
    early.deploys();
    early.story.calls_of("checks", 0, "probe", "k1", true);
    goes_on(&mut early);
    assert_eq!(early.judged(), ["I5: b (phase 2) was started before the wait of phase 1 had passed"]);
    let mut ended = Phased::new(fields());
    ended.deploys();
    ended.story.calls_of("checks", 0, "probe", "k1", true);
    ended.asks("baton.dev/advance");
    goes_on(&mut ended);
    assert_eq!(ended.judged(), [""; 0]);
}
