//! Every way in which a small rollout can go, searched to the end.
//!
//! A world is a few Applications in two steps, the API that holds them and the head, an Application controller that
//! begins, ends and compares at its own pace, and one or two leaders. Whatever can happen next is tried from every
//! state that can be reached: a leader makes one request, hears of one version, crashes, stands still; an operation
//! begins, ends, fails, is wiped; something else is wanted; time passes. What is judged is what the API holds and what
//! clusters have.
//!
//! # Rules
//! - *Order*: nobody of a later step is started before all of the earlier ones have had what the run is for.
//! - *Slots*: no more of a step are under way than may be; who was started is, until it has what the run is for.
//! - *Unintended*, *Twice*: whatever lands is intended by the head as it is stored then, and no intent lands twice.
//! - *Busy*: no specification and no operation is written while an operation waits or runs.
//! - *Again*, *Needless*: nobody is synced twice in a run, nor healed without drift.
//! - *Stuck*, *Restless*: every path ends, and where it ends the rollout is complete, or waits for something with a name.
//!   All paths grow older, so that none runs in a circle: what does not end is found by its age.
//!
//! # Bounds
//! Trouble comes as often as a test says. Clocks are the same everywhere, and time moves only to the next moment somebody
//! waits for. Requests are read and answered at one moment; a late request is one that was made late, or is left behind
//! by a leader that crashed. Members neither join nor leave; people ask for nothing; revisions can be resolved.
//!
//! The search is stateright's. Its `eventually` forgets what it owes where paths meet, hence the rules on ends above.

mod judge;
mod leader;
mod search;
mod world;

use std::sync::Arc;
use std::time::Instant;

use baton_rollout::blocker::Reason;

use leader::{Driver, Pace};
use search::{Found, Met, Setup};
use world::{Content, Faults};

const A: Content = Content { template: 1, commit: 1 };
/// Another commit.
const B: Content = Content { template: 1, commit: 2 };
/// Another template.
const T: Content = Content { template: 2, commit: 1 };

const NONE: Faults =
    Faults { crashes: 0, stops: 0, wipes: 0, failures: 0, silences: 0, losses: 0, drifts: 0, delays: 0 };

/// One Application in each of two steps, one leader, one commit, and nothing goes wrong.
fn calm() -> Setup {
    Setup {
        apps: &[0, 1],
        limits: &[Some(1), None],
        plan: &[A, B],
        leaders: &[Pace::Eager],
        faults: NONE,
        lag: 2,
        skips: false,
        echoes: false,
        slow_reports: false,
        slow_health: false,
        stops_before_writes: false,
        fresh: false,
        ends: &[],
        strict: true,
        driver: Driver::Right,
        tally: Arc::default(),
    }
}

/// Searches everything; all of this must be met on the way, and no rule broken.
fn holds(setup: Setup, met: &[Met]) {
    let begun = Instant::now();
    let Found { states, depth, broken } = setup.search(None);
    println!("{states} states, {depth} deep, {:?}: {:?}", begun.elapsed(), setup.tally);
    if let Some((rule, how)) = broken.first() {
        panic!("{rule}\n{how}");
    }
    for met in met {
        assert!(setup.count(*met) > 0, "{met:?} never came");
    }
}

/// Searches until this rule is broken.
fn breaks(setup: Setup, rule: &'static str) {
    let Found { states, depth, broken } = setup.search(Some(rule));
    let rules: Vec<&str> = broken.iter().map(|(rule, _)| *rule).collect();
    println!("{rules:?} after {states} states, {depth} deep");
    assert!(rules.contains(&rule), "{rules:?}");
}

#[test]
fn a_commit_goes_through_the_steps() {
    let setup = Setup { apps: &[0, 0, 1], leaders: &[Pace::Free], ..calm() };
    holds(setup, &[Met::Start, Met::Refused]);
}

#[test]
fn all_of_a_step_go_at_once() {
    let setup = Setup { apps: &[0, 0, 1], limits: &[None, Some(1)], slow_health: true, ..calm() };
    holds(setup, &[Met::Start]);
}

#[test]
fn what_was_compared_is_told_late() {
    let faults = Faults { delays: 1, ..NONE };
    let setup = Setup { slow_reports: true, slow_health: true, faults, ..calm() };
    holds(setup, &[Met::Start, Met::Refresh]);
}

#[test]
fn a_b_a() {
    let setup = Setup { plan: &[A, B, A], ..calm() };
    holds(setup, &[Met::Superseded, Met::Refused]);
}

#[test]
fn a_b_a_and_what_was_compared_is_told_late() {
    let setup =
        Setup { plan: &[A, B, A], leaders: &[Pace::Prompt], slow_reports: true, slow_health: true, ..calm() };
    holds(setup, &[Met::Superseded, Met::Refresh]);
}

#[test]
fn a_b_a_with_a_step_of_two() {
    let setup = Setup { apps: &[0, 0, 1], plan: &[A, B, A], leaders: &[Pace::Prompt], ..calm() };
    holds(setup, &[Met::Superseded]);
}

#[test]
fn a_template_and_back() {
    let setup = Setup { plan: &[A, T, A], ..calm() };
    holds(setup, &[Met::Superseded, Met::Refused]);
}

#[test]
fn crash_anywhere() {
    let setup = Setup { faults: Faults { crashes: 2, ..NONE }, ..calm() };
    holds(setup, &[Met::Crash, Met::Stray, Met::Refused]);
}

#[test]
fn a_crash_while_something_else_is_wanted() {
    let faults = Faults { crashes: 1, ..NONE };
    let setup = Setup { leaders: &[Pace::Prompt], plan: &[A, B, A], faults, ..calm() };
    holds(setup, &[Met::Superseded, Met::Fence, Met::Stray, Met::Refused]);
}

#[test]
fn a_stop_between_record_and_write_while_something_else_is_wanted() {
    let faults = Faults { stops: 1, ..NONE };
    let leaders = &[Pace::Eager, Pace::Prompt];
    let setup = Setup { apps: &[0], leaders, plan: &[A, B, A], faults, stops_before_writes: true, ..calm() };
    holds(setup, &[Met::Stop, Met::LostSwap, Met::Fence, Met::Refused]);
}

#[test]
fn two_leaders_and_a_stop_anywhere() {
    let setup = Setup {
        leaders: &[Pace::Eager, Pace::Prompt],
        lag: 1,
        faults: Faults { stops: 1, ..NONE },
        ..calm()
    };
    holds(setup, &[Met::Stop, Met::LostSwap, Met::Refused]);
}

#[test]
fn a_retried_completion_patch_wipes_an_operation() {
    let setup =
        Setup { plan: &[A, B], faults: Faults { wipes: 2, ..NONE }, leaders: &[Pace::Free], ..calm() };
    holds(setup, &[Met::Wipe]);
}

#[test]
fn a_request_is_taken_away_and_what_was_found_is_lost() {
    let faults = Faults { losses: 2, ..NONE };
    let setup = Setup { plan: &[A, B, A], faults, leaders: &[Pace::Prompt], slow_reports: true, ..calm() };
    holds(setup, &[Met::Loss, Met::Superseded, Met::Refresh]);
}

#[test]
fn a_wipe_and_a_crash() {
    let setup = Setup { faults: Faults { wipes: 1, crashes: 1, ..NONE }, ..calm() };
    holds(setup, &[Met::Wipe, Met::Stray]);
}

#[test]
fn answers_are_lost() {
    let setup = Setup { faults: Faults { silences: 2, ..NONE }, ..calm() };
    holds(setup, &[Met::Silence]);
}

#[test]
fn a_sync_that_fails_has_a_name() {
    let setup = Setup { faults: Faults { failures: 1, ..NONE }, ends: &[Reason::SyncFailed], ..calm() };
    holds(setup, &[Met::Failure]);
}

#[test]
fn automatic_sync_is_switched_off_first() {
    let setup = Setup { fresh: true, plan: &[A], leaders: &[Pace::Free], ..calm() };
    holds(setup, &[Met::Arm]);
}

#[test]
fn drift_is_healed_or_has_a_name() {
    let setup = Setup { faults: Faults { drifts: 1, ..NONE }, ends: &[Reason::OutOfSyncAfterSync], ..calm() };
    holds(setup, &[Met::Heal]);
}

#[test]
fn stale_reads() {
    let setup = Setup { leaders: &[Pace::Free], lag: 4, skips: true, echoes: true, ..calm() };
    holds(setup, &[Met::OldNews]);
}

#[test]
fn the_model_notices_a_write_before_its_record() {
    let setup = Setup { driver: Driver::WritesBeforeRecord, ..calm() };
    breaks(setup.clone(), "Unintended");
    // What follows from it: a leader that takes over does not know, and starts it again.
    let faults = Faults { crashes: 1, ..NONE };
    let setup = Setup { faults, strict: false, tally: Arc::default(), ..setup };
    breaks(setup, "Again");
}

#[test]
fn the_model_notices_a_blind_swap() {
    let faults = Faults { stops: 1, ..NONE };
    let leaders = &[Pace::Eager, Pace::Prompt];
    breaks(Setup { driver: Driver::SwapsBlindly, leaders, faults, ..calm() }, "Unintended");
}

#[test]
fn the_model_notices_a_blind_write() {
    let faults = Faults { crashes: 1, ..NONE };
    breaks(Setup { driver: Driver::WritesBlindly, faults, ..calm() }, "Twice");
}

#[test]
fn the_model_notices_forgotten_intents() {
    let faults = Faults { crashes: 1, ..NONE };
    breaks(
        Setup { driver: Driver::ForgetsIntents, faults, apps: &[0, 0, 1], strict: false, ..calm() },
        "Slots",
    );
}

/// Who is done is done by a comparison of this run: what a list tells of before opens nothing.
#[test]
fn an_old_list_opens_nothing() {
    let faults = Faults { crashes: 1, ..NONE };
    let leaders = &[Pace::Prompt];
    let setup = Setup { driver: Driver::ListsOldVersions, leaders, plan: &[A, B, A], faults, ..calm() };
    holds(setup, &[Met::Superseded, Met::Crash]);
}
