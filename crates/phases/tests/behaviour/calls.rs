//! Hooks and checks: in which order, how often, how many at once, and never twice.

use std::time::Duration;

use baton_api::phase_status::{HookState, PhaseState};
use baton_hooks::Verdict;
use baton_phases::Progress;

use crate::world::{World, broken, fleet, hook, hook_per_target, outcome, phase, seen, state_of};

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("dev-{at:04}")).collect()
}

fn world(fields: &str, count: usize) -> World {
    let names = names(count);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    World::new(&phase("dev", "dev", fields), &names)
}

#[test]
fn a_call_is_given_out_only_when_its_intent_is_stored() {
    let mut world = world(&format!("preHooks: [{}]", hook("h", "")), 1);
    let first = world.act();
    assert!(first.calls.is_empty(), "the intent is decided and not stored");
    let intent = &first.status.as_ref().expect("a status").phases[0].pre_hooks[0];
    assert_eq!((intent.state.clone(), intent.attempt), (HookState::Running, 1));
    assert!(!intent.idempotency_key.is_empty());
    assert!(world.act().calls.is_empty(), "still not stored");
    world.tick();
    let calls = world.look().calls;
    assert_eq!((calls.len(), calls[0].key.attempt), (1, 1));
    let stored = &world.phase(0).pre_hooks[0];
    assert_eq!(calls[0].idempotency_key, stored.idempotency_key);
}

#[test]
fn row_17_hooks_run_one_after_the_other_in_their_order() {
    let mut world = world(&format!("preHooks: [{}, {}]", hook("z", ""), hook("a", "")), 1);
    world.settle();
    assert_eq!(world.calling(), ["z"]);
    world.answer("z", Verdict::Success);
    assert!(world.look().calls.is_empty(), "the second is intended, and that is not stored");
    world.settle();
    assert_eq!(world.calling(), ["a"]);
    assert!(world.open().is_empty());
    world.pass("a");
    assert_eq!(world.open(), ["dev-0000"]);
}

#[test]
fn row_17_neighbours_that_say_parallel_run_side_by_side_five_at_most() {
    let parallel: Vec<String> = (0..7).map(|at| hook(&format!("p{at}"), ", parallel: true")).collect();
    let fields = format!("preHooks: [{}, {}, {}]", hook("first", ""), parallel.join(", "), hook("last", ""));
    let mut world = world(&fields, 1);
    world.settle();
    assert_eq!(world.calling(), ["first"]);
    world.pass("first");
    assert_eq!(world.calling(), ["p0", "p1", "p2", "p3", "p4"]);
    world.pass("p2");
    assert_eq!(world.calling(), ["p0", "p1", "p3", "p4", "p5"]);
    for name in ["p0", "p1", "p3", "p4", "p5", "p6"] {
        assert!(!world.calling().contains(&"last".to_owned()));
        world.pass(name);
    }
    assert_eq!(world.calling(), ["last"]);
}

#[test]
fn row_17_and_18_checks_run_ten_at_once_and_targets_count_against_that() {
    let mut world = world(&format!("checks: [{}]", hook_per_target("c", "")), 25);
    world.deploy();
    assert_eq!(world.calling().len(), 10);
    assert_eq!(world.calling()[0], "c/dev-0000");
    world.pass("c");
    assert_eq!((world.calling().len(), world.calling()[0].clone()), (10, "c/dev-0010".to_owned()));
    world.pass("c");
    world.pass("c");
    assert_eq!(world.status().state, PhaseState::Complete);
    let summary = &world.phase(0).checks[0];
    assert_eq!((summary.succeeded, summary.failed, summary.through.as_str()), (25, 0, "dev-0024"));
}

#[test]
fn row_18_a_hook_per_target_is_through_before_the_next_begins() {
    let fields = format!("preHooks: [{}, {}]", hook_per_target("each", ""), hook("once", ""));
    let mut world = world(&fields, 7);
    world.settle();
    assert_eq!(world.calling().len(), 5);
    world.pass("each");
    assert_eq!(world.calling(), ["each/dev-0005", "each/dev-0006"]);
    world.pass("each");
    assert_eq!(world.calling(), ["once"]);
    assert_eq!(world.times("each"), 7);
}

#[test]
fn row_28_checks_begin_when_all_targets_are_healthy_and_are_asked_every_ten_seconds() {
    let mut world = world(&format!("checks: [{}]", hook("c", ", timeout: 25s")), 2);
    world.settle();
    world.see("dev-0000", Progress::Done);
    world.settle();
    assert!(world.calling().is_empty());
    world.see("dev-0001", Progress::Done);
    world.settle();
    assert_eq!(world.calling(), ["c"]);
    world.answer("c", broken());
    let decision = world.settle();
    assert_eq!(decision.wake, Some(world.now + jiff::SignedDuration::from_secs(10)));
    assert!(decision.waits[0].message.contains("tried again"));
    world.wait(Duration::from_secs(9));
    world.settle();
    assert!(world.calling().is_empty());
    world.wait(Duration::from_secs(1));
    world.settle();
    assert_eq!(world.calling(), ["c"]);
    world.pass("c");
    assert_eq!(world.status().state, PhaseState::Complete);
    assert_eq!(world.phase(0).checks[0].attempt, 2);
}

#[test]
fn row_28_a_check_that_does_not_pass_in_its_time_fails_the_phase() {
    let mut world = world(&format!("checks: [{}]", hook("c", ", timeout: 25s")), 1);
    world.deploy();
    // The last at the end of its time, though the pause would lead past it.
    for pause in [10, 10, 5, 0] {
        assert_eq!(world.state(0), PhaseState::Checking);
        world.answer("c", broken());
        let wake = world.settle().wake;
        let next = world.now + jiff::SignedDuration::from_secs(pause);
        assert!(pause == 0 || wake == Some(next), "{wake:?} is not {next}");
        world.wait(Duration::from_secs(pause.unsigned_abs()));
        world.settle();
    }
    assert_eq!(world.state(0), PhaseState::Failed);
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!((failure.reason.as_str(), world.times("c")), ("CheckFailed", 4));
}

#[test]
fn row_04_a_hook_is_tried_again_until_its_deadline_each_attempt_with_its_own_limit() {
    let retry = ", timeout: 30s, retry: {interval: 1h, deadline: 2h}";
    let mut world = world(&format!("preHooks: [{}]", hook("h", retry)), 1);
    world.settle();
    for attempt in 1..=3 {
        let call = world.made.last().expect("a call").clone();
        assert_eq!(
            (call.key.attempt, call.limit),
            (attempt, Duration::from_secs(if attempt == 3 { 10 } else { 30 }))
        );
        assert_eq!(call.idempotency_key, world.made[0].idempotency_key);
        world.answer("h", broken());
        world.settle();
        world.wait(Duration::from_secs(3600));
        world.settle();
    }
    assert_eq!(world.state(0), PhaseState::Failed, "after two hours no further attempt begins");
    assert_eq!(world.times("h"), 3);
}

#[test]
fn what_may_not_be_called_is_not_tried_again() {
    let retry = ", retry: {interval: 1m, deadline: 1h}";
    let mut world = world(&format!("preHooks: [{}]", hook("h", retry)), 1);
    world.settle();
    let fault =
        baton_hooks::Fault { reason: baton_hooks::Reason::AddressNotAllowed, message: "private".into() };
    world.answer("h", Verdict::Refused(fault));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
}

#[test]
fn row_31_what_was_begun_and_of_which_nothing_is_known_is_made_again_with_the_same_key() {
    let mut world = world(&format!("preHooks: [{}]", hook("h", "")), 1);
    world.settle();
    world.crash();
    world.settle();
    assert_eq!(world.times("h"), 2);
    assert_eq!(world.made[0], world.made[1]);
}

#[test]
fn row_31_a_result_of_another_rollout_or_attempt_is_left_aside() {
    let retry = ", retry: {interval: 1m, deadline: 1h}";
    let mut world = world(&format!("preHooks: [{}]", hook("h", retry)), 1);
    world.settle();
    let key = world.in_flight.keys().next().cloned().expect("a call");
    for other in [
        baton_phases::CallKey { rollout: "0-a-b".into(), ..key.clone() },
        baton_phases::CallKey { attempt: 2, ..key.clone() },
        baton_phases::CallKey { generator: 1, ..key.clone() },
        baton_phases::CallKey { target: "dev-0000".into(), ..key.clone() },
        baton_phases::CallKey { place: 7, phase: 9, ..key.clone() },
    ] {
        let outcome = outcome(world.now, &other, Verdict::Success);
        world.results = vec![baton_phases::CallResult { key: other, outcome }];
        world.settle();
        assert_eq!(state_of(&world.phase(0).pre_hooks, "h", ""), Some(HookState::Running));
    }
    world.pass("h");
    assert_eq!(state_of(&world.phase(0).pre_hooks, "h", ""), Some(HookState::Succeeded));
}

#[test]
fn a_call_that_was_stopped_by_a_shutdown_has_said_nothing() {
    let mut world = world(&format!("preHooks: [{}]", hook("h", "")), 1);
    world.settle();
    world.answer("h", Verdict::Cancelled);
    world.settle();
    assert_eq!((world.state(0), world.times("h")), (PhaseState::PreHooks, 2));
    assert_eq!(world.made[1].key.attempt, 1);
}

#[test]
fn a_hook_per_target_runs_for_who_joins_and_for_nobody_else_again() {
    let fields = format!("preHooks: [{}]\nwaitDuration: 1h", hook_per_target("h", ""));
    let mut world = World::new(&phase("dev", "dev", &fields), &["dev-b", "dev-d"]);
    world.settle();
    world.pass("h");
    world.deploy();
    assert_eq!(world.state(0), PhaseState::Waiting);
    world.targets = fleet(&["dev-a", "dev-b", "dev-c", "dev-d", "dev-e"]);
    for name in ["dev-a", "dev-c", "dev-e"] {
        world.seen.insert(name.into(), seen(Progress::NotStarted));
    }
    world.settle();
    assert_eq!(world.calling(), ["h/dev-a", "h/dev-c", "h/dev-e"]);
    assert_eq!(world.open(), ["dev-b", "dev-d"], "who has begun goes on");
    world.pass("h");
    assert_eq!(world.open().len(), 5);
    assert_eq!(world.times("h"), 5);
}

#[test]
fn who_leaves_is_not_called_for_any_more() {
    let mut world = World::new(
        &phase("dev", "dev", &format!("preHooks: [{}]", hook_per_target("h", ""))),
        &["dev-a", "dev-b"],
    );
    world.settle();
    world.targets = fleet(&["dev-b"]);
    let decision = world.look();
    assert_eq!(decision.cancel.len(), 1);
    world.settle();
    assert_eq!(world.calling(), ["h/dev-b"]);
    world.pass("h");
    assert_eq!(world.open(), ["dev-b"]);
}

#[test]
fn calls_that_wait_for_their_next_attempt_are_bounded_in_number() {
    let retry = ", retry: {interval: 1h, deadline: 24h}";
    let mut world = world(&format!("preHooks: [{}]", hook_per_target("h", retry)), 300);
    for _ in 0..100 {
        world.settle();
        world.answer("h", broken());
    }
    world.settle();
    let open = world.phase(0).pre_hooks.iter().filter(|result| result.state == HookState::Retrying).count();
    assert_eq!(open, 200);
}

/// A phase of one Application with these checks and hooks after it, a minute for it, and everything healthy.
fn healthy(checks: &str, post: &str) -> World {
    let mut world = world(&format!("progressDeadline: 1m\nchecks: [{checks}]\npostHooks: [{post}]"), 1);
    world.deploy();
    world
}

#[test]
fn row_28_and_35_hooks_after_a_phase_wait_for_who_lost_its_health_during_checks() {
    let mut world = healthy(&hook("c", ""), &hook("p", ""));
    assert_eq!(world.calling(), ["c"]);
    world.see("dev-0000", Progress::Regressed("its Pod is gone".into()));
    world.settle();
    world.pass("c");
    assert_eq!((world.state(0), world.calling()), (PhaseState::Checking, Vec::new()));
    let decision = world.settle();
    assert!(
        decision.waits.iter().any(|wait| wait.message.contains("its Pod is gone")),
        "{:?}",
        decision.waits
    );
    assert!(decision.wake.is_some(), "its deadline");
    world.see("dev-0000", Progress::Done);
    world.settle();
    assert_eq!((world.state(0), world.calling()), (PhaseState::PostHooks, vec!["p".to_owned()]));
    assert_eq!(world.times("c"), 1, "what has passed is not asked again");
    world.pass("p");
    assert_eq!(world.status().state, PhaseState::Complete);
}

#[test]
fn row_28_and_35_no_hook_after_a_phase_begins_while_somebody_is_not_healthy() {
    let mut world = healthy("", &format!("{}, {}", hook("p", ""), hook("q", "")));
    assert_eq!(world.calling(), ["p"]);
    world.see("dev-0000", Progress::Regressed("its Pod is gone".into()));
    world.settle();
    world.pass("p");
    assert_eq!((world.state(0), world.calling()), (PhaseState::PostHooks, Vec::new()));
    world.see("dev-0000", Progress::Done);
    world.settle();
    assert_eq!(world.calling(), ["q"]);
    world.see("dev-0000", Progress::Regressed("its Pod is gone".into()));
    world.settle();
    world.pass("q");
    assert_eq!(world.state(0), PhaseState::PostHooks, "nor does the wait");
}

#[test]
fn row_29_who_is_not_healthy_again_in_time_fails_the_phase_and_nothing_is_called() {
    let mut world = healthy(&hook("c", ""), &hook("p", ""));
    world.see("dev-0000", Progress::Regressed("its Pod is gone".into()));
    world.settle();
    world.pass("c");
    world.wait(Duration::from_secs(59));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Checking);
    world.wait(Duration::from_secs(1));
    world.settle();
    assert_eq!((world.state(0), world.times("p")), (PhaseState::Failed, 0));
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!(failure.reason, "ProgressDeadlineExceeded");
}

#[test]
fn a_call_that_has_failed_for_all_and_is_ignored_is_not_told_to_have_succeeded() {
    let hook = hook_per_target("h", ", failurePolicy: ignore");
    let mut world = world(&format!("preHooks: [{hook}]"), 2);
    world.settle();
    assert_eq!(world.answer("h", broken()), 2);
    world.settle();
    let summary = world.phase(0).pre_hooks.iter().find(|result| result.target.is_empty());
    let summary = summary.expect("one that sums them up");
    assert_eq!((summary.state.clone(), summary.failed), (HookState::Ignored, 2));
    assert_eq!(world.state(0), PhaseState::Deploying, "and it is passed over");
}
