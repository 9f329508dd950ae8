//! No wait without a name: every blocker with the state that brings it, what it says, since when, and every way out that
//! it names, each of which is tried.

mod believed;
#[path = "../order/dice.rs"]
#[allow(dead_code, reason = "not every test that shares this file asks for all of it")]
mod dice;
mod forms;
#[path = "../order/fresh.rs"]
mod fresh;
mod gates;
mod stage;
mod table;
mod waiting;

use std::path::Path;

use baton_rollout::blocker::Reason;

use stage::Stage;
use table::{Case, cases};

/// Where a reason is tried.
enum Place {
    /// In the table here.
    Here,
    /// By a test of the controllers, since no machine alone comes to it: file and test.
    Controllers(&'static str, &'static str),
}

/// A reason that is new has no place, and this does not compile.
fn place(reason: Reason) -> Place {
    match reason {
        Reason::ApiError => Place::Controllers(
            "telling.rs",
            "a_head_that_cannot_be_written_is_told_with_the_answer_of_the_api",
        ),
        Reason::PhaseGate => Place::Controllers("phases.rs", "whoever_is_held_is_not_created"),
        Reason::WaitingForStep
        | Reason::WaitingForSlot
        | Reason::WaitingForRefresh
        | Reason::Progressing
        | Reason::SyncFailed
        | Reason::Degraded
        | Reason::Suspended
        | Reason::Missing
        | Reason::OutOfSyncAfterSync
        | Reason::PruneOnly
        | Reason::Unknown
        | Reason::InvalidApplication
        | Reason::ApprovalRequired
        | Reason::SyncWindow
        | Reason::Paused
        | Reason::Aborted
        | Reason::HoldStep
        | Reason::SpecRewritten
        | Reason::RevisionMismatch
        | Reason::RevisionUnresolved
        | Reason::OrphanedOperation
        | Reason::Regressed
        | Reason::Superseded
        | Reason::DeletionFuse
        | Reason::NoReport
        | Reason::Starved
        | Reason::Soaking
        | Reason::TooManyFailures
        | Reason::Leaving
        | Reason::GeneratorError
        | Reason::Arming
        | Reason::InvalidRolloutConfig => Place::Here,
    }
}

#[test]
fn every_blocker_has_its_row() {
    let cases = cases();
    for reason in Reason::ALL {
        let rows = cases.iter().filter(|case| case.reason == reason).count();
        match place(reason) {
            Place::Here => assert!(rows > 0, "{} has no row", reason.as_str()),
            Place::Controllers(file, test) => {
                let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../controllers/tests/rollout");
                let text = std::fs::read_to_string(tests.join(file)).expect("a file of tests");
                assert!(
                    text.contains(&format!("async fn {test}()")),
                    "{}: {file} has no {test}",
                    reason.as_str()
                );
            }
        }
    }
}

#[test]
fn every_blocker_says_what_it_is_since_when_and_how_it_ends() {
    let (cases, mut ways, mut wrong) = (cases(), 0, Vec::new());
    for case in &cases {
        for (way, take) in case.ways {
            ways += 1;
            let tried = std::panic::catch_unwind(|| {
                let mut stage = named(case);
                take(&mut stage);
                stage.until("the end", Stage::is_over);
            });
            if tried.is_err() {
                wrong.push(format!("{} ({}): {way}", case.reason.as_str(), case.message));
            }
        }
    }
    println!("{} rows, {ways} ways out, each to its end", cases.len());
    assert!(wrong.is_empty(), "what panicked above: {wrong:#?}");
}

#[test]
fn every_way_out_that_is_named_is_tried() {
    let cases = cases();
    for case in &cases {
        let (reason, words) = (case.reason.as_str(), case.reason.remedy());
        for (way, _) in case.ways {
            assert!(words.contains(way), "{reason}: {words:?} does not name {way:?}");
        }
        let ways = || cases.iter().filter(|other| other.reason == case.reason).flat_map(|other| other.ways);
        for command in words.split('`').skip(1).step_by(2).filter(|command| !LOOKS.contains(command)) {
            assert!(ways().any(|(way, _)| way.contains(command)), "{reason}: nobody tries {command:?}");
        }
    }
}

/// Commands that only show something.
const LOOKS: [&str; 1] = ["baton app diff"];

/// Brings the state about, and judges what is said of it: when it begins, and while it lasts.
fn named(case: &Case) -> Stage {
    let mut stage = (case.state)();
    let what = format!("{} of {:?}", case.reason.as_str(), case.object);
    stage.until(&what, |stage| stage.blocker(case.reason, case.object).is_some());
    let begun = stage.now;
    let judge = |stage: &Stage| {
        let found = stage.blocker(case.reason, case.object)?;
        assert_eq!((found.message.as_str(), found.since), (case.message, Some(begun)), "{what}");
        assert_eq!(found.remedy, case.reason.remedy(), "{what}");
        Some(())
    };
    // A sync begins and runs under one name.
    let told = |stage: &Stage| {
        stage.blocker(case.reason, case.object).is_some_and(|one| one.message == case.message)
    };
    stage.until(&format!("{what} in these words: {}", case.message), told);
    judge(&stage).expect("it is named");
    // It lasts, though now and then it is tried to get on.
    stage.pass(case.lasts);
    stage.until(&format!("{what} to be told again"), |stage| judge(stage).is_some());
    assert!(!stage.is_over(), "{what}");
    stage
}
