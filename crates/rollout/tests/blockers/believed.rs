//! What an Application says is believed when a comparison found it that the run asked for after the last operation.

use baton_rollout::blocker::Reason;
use baton_rollout::live::Live;

use crate::stage::{FLEET, Mood, Stage, plain};

/// A rollout of a second commit, with one of its first step in a mood.
fn rolled_out_with(mood: Mood) -> Stage {
    let mut stage = Stage::settled(plain(), &FLEET);
    stage.mood("a", mood);
    stage.commit();
    stage
}

#[test]
fn what_is_told_while_a_comparison_is_awaited_opens_nothing() {
    // It tells that all is well after its sync, and the request stays.
    let mut stage =
        rolled_out_with(Mood::Reports(|live| (live.refresh, live.nonce) = (true, Some("n".into()))));
    stage.pass(60);
    assert!(stage.blocker(Reason::WaitingForRefresh, "a").is_some(), "{:#?}", stage.blockers());
    assert_eq!(stage.machine.head().run.open, 1);
    stage.pass(120);
    assert!(stage.blocker(Reason::NoReport, "a").is_some(), "{:#?}", stage.blockers());
    stage.mend();
    stage.until("the second run to end", Stage::is_over);
    assert_eq!(stage.disorder, Vec::<String>::new());
}

/// A request is taken away, and by the clock of who did nothing was compared since; then something was.
fn is_believed_later(never: fn(&mut Live), later: fn(&mut Live)) {
    let mut stage = rolled_out_with(Mood::Reports(never));
    stage.pass(600);
    assert!(stage.blocker(Reason::WaitingForRefresh, "a").is_some(), "{:#?}", stage.blockers());
    assert_eq!(stage.machine.head().run.open, 1);
    stage.mood("a", Mood::Reports(later));
    stage.until("the second run to end", Stage::is_over);
    assert_eq!(stage.disorder, Vec::<String>::new());
}

fn later(live: &mut Live) {
    live.reconciled = live.reconciled.map(|began| began + 5);
}

#[test]
fn of_who_leaves_the_nonce_only_a_later_comparison_is_believed() {
    let never = |live: &mut Live| (live.nonce, live.reconciled) = (Some("n".into()), Some(1));
    is_believed_later(never, |live| {
        live.nonce = Some("n".into());
        later(live);
    });
}

#[test]
fn of_who_does_not_say_that_the_answer_was_written_only_a_later_comparison_is_believed() {
    let never = |live: &mut Live| (live.answered, live.reconciled) = (false, Some(1));
    is_believed_later(never, |live| {
        live.answered = false;
        later(live);
    });
}

#[test]
fn comparisons_are_not_asked_for_without_end() {
    let moods = [
        Mood::Reports(|live| live.reported = vec!["commit-0".into()]),
        Mood::Reports(|live| (live.nonce, live.reconciled) = (Some("n".into()), Some(1))),
        Mood::Reports(|live| (live.answered, live.reconciled) = (false, Some(1))),
    ];
    for mood in moods {
        let mut stage = rolled_out_with(mood);
        stage.pass(900);
        let before = stage.writes();
        stage.pass(3600);
        assert_eq!(stage.writes(), before, "{:#?}", stage.blockers());
        stage.mend();
        stage.until("the second run to end", Stage::is_over);
    }
}
