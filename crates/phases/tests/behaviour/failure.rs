//! What follows a failure: exactly what is said.

use std::time::Duration;

use baton_api::phase_status::{HookState, PhaseState};
use baton_phases::{Gate, Progress};

use crate::world::{World, broken, fleet, hook, hook_per_target, phase, state_of};

/// Two phases; the first, with two Applications, does this on failure.
fn world(action: &str, more: &str) -> World {
    let fields = format!("onFailure: {{action: {action}}}\n{more}");
    let phases = phase("dev", "dev", &fields) + &phase("prod", "prod", "");
    World::new(&phases, &["dev-a", "dev-b", "dev-c", "prod-a"])
}

/// One is done, one is under way, one has not begun; then the one under way fails.
fn failing(action: &str) -> World {
    let mut world = world(action, "");
    world.settle();
    world.see("dev-a", Progress::Done);
    world.see("dev-b", Progress::UnderWay);
    world.settle();
    world.fail("dev-b");
    world.settle();
    world
}

#[test]
fn row_01_stop_freezes_the_rollout_and_leaves_what_is_deployed() {
    let mut world = failing("stop");
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Failed, PhaseState::Pending));
    assert_eq!(world.status().state, PhaseState::Failed);
    assert_eq!(world.open(), ["dev-a", "dev-b"], "who has begun stays as it is; nobody else begins");
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!((failure.action.as_str(), failure.reason.as_str()), ("stop", "SyncFailed"));
    assert!(failure.message.contains("dev-b") && failure.remedy.contains("retry") && failure.at.is_some());
    let decision = world.settle();
    assert!(decision.terminate.is_empty() && decision.wake.is_none());
    assert!(decision.waits[0].message.contains("it needs"));
}

#[test]
fn row_01_abort_also_ends_operations_and_calls() {
    let mut world = failing("abort");
    world.see("dev-c", Progress::UnderWay);
    let decision = world.settle();
    assert_eq!(world.state(0), PhaseState::Aborted);
    assert!(world.open().is_empty());
    assert_eq!(decision.terminate, ["dev-c".into()], "until it has ended");
    world.see("dev-c", Progress::Failed { reason: "Terminated".into(), message: String::new() });
    assert!(world.settle().terminate.is_empty());
}

#[test]
fn row_01_continue_records_the_failure_and_goes_on_when_the_others_are_through() {
    let mut world = failing("continue");
    assert_eq!(world.state(0), PhaseState::Deploying, "the others of the phase are not held for it");
    assert!(world.open().contains(&"dev-c".to_owned()));
    world.see("dev-c", Progress::Done);
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Failed, PhaseState::Deploying));
    assert_eq!(world.phase(0).failure.as_ref().map(|failure| failure.action.as_str()), Some("continue"));
    world.deploy();
    assert_eq!((world.status().current_phase, world.status().state.clone()), (2, PhaseState::Failed));
    assert!(world.status().message.contains("dev"));
    assert!(!world.good.iter().any(|(name, _)| name.starts_with("dev")), "nothing of a failed phase is good");
}

#[test]
fn row_02_rollback_restores_what_the_phase_touched_and_only_that() {
    let world = failing("rollback");
    assert_eq!(world.state(0), PhaseState::RollingBack);
    let gates = world.look().gates;
    assert_eq!(gates["dev-a"], Gate::Back { pin: "old".into() });
    assert_eq!(gates["dev-b"], Gate::Back { pin: "old".into() });
    assert!(!gates["dev-c"].is_open() && !gates["prod-a"].is_open());
}

#[test]
fn one_that_cannot_be_synced_as_it_is_fails_its_phase_when_its_time_is_over() {
    let mut world = world("stop", "progressDeadline: 2m");
    world.settle();
    world.see("dev-a", Progress::Done);
    world.see("dev-b", Progress::Done);
    world.see("dev-c", Progress::Stuck("ComparisonError: no such path".into()));
    let decision = world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    let said = "dev-c cannot be synced as it is: ComparisonError: no such path";
    assert_eq!(decision.waits[0].message, said);
    assert!(decision.gates["dev-c"].is_open(), "it may still come right");
    assert_eq!(decision.wake, world.now.checked_add(jiff::SignedDuration::from_mins(2)).ok());
    world.wait(Duration::from_secs(120));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!(failure.reason, "ProgressDeadlineExceeded");
    let why = "Application dev-c could not be synced within 2m: ComparisonError: no such path";
    assert_eq!(failure.message, why);
    assert!(!world.look().gates["dev-c"].is_open(), "nobody begins in a phase that has failed");
    // Behind its gate nothing is known of it any more, and it has failed all the same.
    world.see("dev-c", Progress::NotStarted);
    world.settle();
    assert_eq!(world.phase(0).failed, 1);
    world.requests.retry = Some("1".into());
    world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    world.see("dev-c", Progress::Done);
    world.settle();
    assert_eq!(world.state(0), PhaseState::Complete);
}

#[test]
fn what_people_do_after_a_failure_does_not_hide_it() {
    let mut world = failing("stop");
    let first = world.phase(0).failure.clone().expect("a failure");
    world.requests.rollback = Some("1".into());
    world.settle();
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!(failure.reason, "RollbackByRequest");
    let cause = format!(", after it had failed: {} ({})", first.message, first.reason);
    assert!(failure.message.ends_with(&cause), "{}", failure.message);
}

#[test]
fn what_stopped_names_the_way_back_where_there_is_one() {
    let world = failing("stop");
    let remedy = world.phase(0).failure.clone().expect("a failure").remedy;
    assert!(remedy.contains("`baton appset rollback`"), "{remedy}");
    let mut first = self::world("stop", "");
    first.seen.values_mut().for_each(|seen| seen.good = None);
    first.settle();
    first.fail("dev-b");
    first.settle();
    let remedy = first.phase(0).failure.clone().expect("a failure").remedy;
    assert!(!remedy.contains("rollback"), "nothing has a good state: {remedy}");
}

#[test]
fn row_03_the_policy_of_a_hook_decides_what_its_failure_means() {
    for (policy, state, result) in [
        ("fail", PhaseState::Failed, HookState::Failed),
        ("ignore", PhaseState::Deploying, HookState::Ignored),
        ("abort", PhaseState::Aborted, HookState::Failed),
    ] {
        let mut world =
            world("stop", &format!("preHooks: [{}]", hook("h", &format!(", failurePolicy: {policy}"))));
        world.settle();
        world.answer("h", broken());
        world.settle();
        assert_eq!(world.state(0), state, "{policy}");
        assert_eq!(state_of(&world.phase(0).pre_hooks, "h", ""), Some(result), "{policy}");
    }
}

#[test]
fn row_03_abort_of_a_hook_wins_over_what_the_phase_says() {
    let mut world = world("continue", &format!("preHooks: [{}]", hook("h", ", failurePolicy: abort")));
    world.settle();
    world.answer("h", broken());
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Aborted, PhaseState::Pending));
    assert_eq!(world.phase(0).failure.as_ref().map(|failure| failure.action.as_str()), Some("abort"));
}

#[test]
fn row_01_abort_ends_the_calls_that_run_and_stop_does_not() {
    for (action, running) in [("stop", 1), ("abort", 0)] {
        let hooks = format!("{}, {}", hook("a", ", parallel: true"), hook("b", ", parallel: true"));
        let mut world = world(action, &format!("preHooks: [{hooks}]"));
        world.settle();
        world.answer("a", broken());
        world.settle();
        assert_eq!(world.calling().len(), running, "{action}");
        world.crash();
        world.settle();
        assert!(world.calling().is_empty(), "{action}: nothing is called again for a phase that has ended");
    }
}

#[test]
fn row_47_rollback_where_nothing_was_changed_is_stop() {
    let mut world = world("rollback", &format!("preHooks: [{}]", hook("h", "")));
    world.settle();
    world.answer("h", broken());
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
    assert_eq!(world.phase(0).failure.as_ref().map(|failure| failure.action.as_str()), Some("stop"));
    assert!(world.open().is_empty());
}

#[test]
fn the_first_failure_of_a_call_per_target_is_enough() {
    let mut world = world("stop", &format!("preHooks: [{}]", hook_per_target("h", "")));
    world.settle();
    assert_eq!(world.calling().len(), 3);
    world.answer("h", broken());
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
    let message = world.phase(0).failure.clone().expect("a failure").message;
    assert!(message.contains("for dev-a"), "{message}");
}

#[test]
fn a_check_that_fails_acts_on_applications_that_are_healthy() {
    let mut world = world("rollback", &format!("checks: [{}]", hook("c", ", timeout: 5s")));
    world.deploy();
    world.break_down("c");
    assert_eq!(world.state(0), PhaseState::RollingBack);
    let back = world.look().gates.values().filter(|gate| matches!(gate, Gate::Back { .. })).count();
    assert_eq!(back, 3);
}

#[test]
fn who_goes_on_without_a_failed_phase_takes_nobodys_place_in_it() {
    let fields = format!("maxUpdate: 1\nonFailure: {{action: continue}}\npreHooks: [{}]", hook("h", ""));
    let phases = phase("canary", "dev", &fields) + &phase("rest", "dev", "");
    let mut world = World::new(&phases, &["dev-a", "dev-b"]);
    world.settle();
    world.answer("h", broken());
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Failed, PhaseState::Deploying));
    assert_eq!(world.open(), ["dev-b"]);
    world.see("dev-b", Progress::UnderWay);
    world.settle();
    assert_eq!(world.open(), ["dev-b"], "dev-a belongs to the phase whose hook has failed");
    let names = |phase: usize| -> Vec<String> {
        world.phase(phase).applications.iter().map(|entry| entry.name.clone()).collect()
    };
    assert_eq!((names(0), names(1)), (vec!["dev-a".to_owned()], vec!["dev-b".to_owned()]));
}

#[test]
fn who_begins_in_a_later_phase_takes_nobodys_place_in_an_earlier_one() {
    let phases = phase("canary", "dev", "maxUpdate: 1") + &phase("rest", "dev", "");
    let mut world = World::new(&phases, &["dev-b"]);
    world.deploy();
    // It joins, and comes first by name.
    world.targets = fleet(&["dev-a", "dev-b"]);
    world.see("dev-a", Progress::NotStarted);
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::Deploying));
    world.see("dev-a", Progress::UnderWay);
    world.settle();
    assert_eq!(world.state(1), PhaseState::Deploying, "dev-a is not through");
    let names: Vec<&str> = world.phase(1).applications.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["dev-a"]);
}
