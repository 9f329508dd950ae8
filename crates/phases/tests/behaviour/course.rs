//! The course of a phased deployment, from its beginning to its end.

use std::time::Duration;

use baton_api::phase_status::{PhaseApplicationState, PhaseState};
use baton_phases::{Gate, Hold, Progress, phase_held_by};

use crate::world::{World, fleet, hook, phase, seen};

fn two() -> String {
    phase("dev", "dev", "") + &phase("prod", "prod", "")
}

fn held_because(world: &World, name: &str) -> String {
    match world.look().gates.get(name) {
        Some(Gate::Held(why)) => why.clone(),
        gate => panic!("{name} is not held: {gate:?}"),
    }
}

#[test]
fn row_05_who_is_held_stays_wanted_and_says_why() {
    let mut world = World::new(&two(), &["dev-a", "prod-a"]);
    let decision = world.settle();
    assert_eq!(decision.gates.len(), 2, "a gate for each, whatever it says");
    assert_eq!(world.open(), ["dev-a"]);
    assert!(held_because(&world, "prod-a").contains("opens after phase \"dev\""));
}

#[test]
fn nobody_is_let_through_before_the_status_that_says_so_is_stored() {
    let mut world = World::new(&two(), &["dev-a", "prod-a"]);
    assert!(world.open().is_empty(), "nothing is stored");
    let first = world.act();
    assert_eq!(
        first.status.as_ref().map(|status| status.phases[0].state.clone()),
        Some(PhaseState::Deploying)
    );
    assert!(world.open().is_empty(), "decided and not stored");
    world.tick();
    assert_eq!(world.open(), ["dev-a"]);
    world.see("dev-a", Progress::Done);
    assert_eq!(world.open(), ["dev-a"], "that the next phase opens is not stored either");
    world.tick();
    assert_eq!(world.open(), ["dev-a", "prod-a"]);
}

#[test]
fn row_35_a_phase_ends_when_all_its_targets_are_done_and_the_next_opens() {
    let mut world = World::new(&two(), &["dev-a", "dev-b", "prod-a"]);
    world.settle();
    world.see("dev-a", Progress::Done);
    world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    assert_eq!(world.open(), ["dev-a", "dev-b"]);
    world.see("dev-b", Progress::Done);
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::Deploying));
    assert_eq!(world.open(), ["dev-a", "dev-b", "prod-a"]);
    world.deploy();
    let status = world.status();
    assert_eq!(
        (status.state.clone(), status.current_phase, status.total_phases),
        (PhaseState::Complete, 2, 2)
    );
    assert!(status.finished_at.is_some() && status.message.contains("complete"));
    let good: Vec<&str> = world.good.iter().map(|(name, _)| &**name).collect();
    assert_eq!(good, ["dev-a", "dev-b", "prod-a"]);
}

#[test]
fn row_35_a_phase_that_matches_nobody_is_passed_over_without_its_hooks_and_said() {
    let hooks = format!("preHooks: [{}]", hook("h", ""));
    let phases = phase("dev", "dev", &hooks) + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["prod-a"]);
    let decision = world.settle();
    assert_eq!(world.state(0), PhaseState::Skipped);
    assert_eq!(world.open(), ["prod-a"]);
    assert!(world.made.is_empty());
    assert!(decision.notices.iter().any(|notice| notice.reason == "EmptyPhase"));
}

#[test]
fn row_09_a_share_of_nothing_runs_hooks_and_updates_nobody() {
    let hooks = format!("percentage: 0\npreHooks: [{}]", hook("h", ""));
    let phases = phase("ask", "prod", &hooks) + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["prod-a"]);
    world.settle();
    assert_eq!(world.calling(), ["h"]);
    assert!(world.open().is_empty());
    world.pass("h");
    assert_eq!(world.open(), ["prod-a"]);
    assert_eq!(world.state(0), PhaseState::Complete);
}

#[test]
fn a_rollout_in_which_no_phase_matches_anything_is_an_error_and_opens_nothing() {
    let mut world = World::new(&two(), &["test-a"]);
    let decision = world.settle();
    assert!(decision.notices.iter().any(|notice| notice.reason == "NothingMatches"));
    assert_eq!(world.status().state, PhaseState::Failed);
    assert!(world.open().is_empty());
    assert!(held_because(&world, "test-a").contains("mend its targets"), "an error is waited for");
    world.targets = fleet(&["dev-a"]);
    world.settle();
    assert_eq!(world.open(), ["dev-a"], "it goes on once something matches");
}

#[test]
fn row_15_who_is_in_no_phase_is_never_touched_and_listed() {
    let mut world = World::new(&two(), &["dev-a", "prod-a", "test-a"]);
    let decision = world.deploy();
    assert_eq!(world.status().state, PhaseState::Complete);
    let Some(Gate::Aside(why)) = decision.gates.get("test-a") else { panic!("{:?}", decision.gates) };
    assert!(why.contains("no phase takes it") && !world.open().contains(&"test-a".to_owned()));
    assert_eq!(
        (world.status().unassigned_count, world.status().unassigned.clone()),
        (1, vec!["test-a".to_owned()])
    );
    assert!(decision.notices.iter().any(|notice| notice.reason == "Unassigned"));
}

#[test]
fn row_15_nobody_waits_for_those_in_no_phase_however_many_they_are() {
    let others: Vec<String> = (0..25).map(|at| format!("test-{at:02}")).collect();
    let names: Vec<&str> = ["dev-a", "prod-a"].into_iter().chain(others.iter().map(String::as_str)).collect();
    let mut world = World::new(&two(), &names);
    let decision = world.settle();
    for name in &others {
        assert!(matches!(decision.gates[name.as_str()], Gate::Aside(_)), "{name}: {:?}", decision.gates);
    }
    assert!(matches!(decision.gates["prod-a"], Gate::Held(_)), "who has a phase is waited for");
    assert_eq!((world.status().unassigned_count, world.status().unassigned.len()), (25, 20));
}

#[test]
fn row_30_a_wait_is_a_time_that_survives_and_counts_from_the_end_of_the_hooks() {
    let fields = format!("waitDuration: 5m\npostHooks: [{}]", hook("h", ""));
    let mut world =
        World::new(&(phase("dev", "dev", &fields) + &phase("prod", "prod", "")), &["dev-a", "prod-a"]);
    world.deploy();
    world.wait(Duration::from_secs(100));
    world.pass("h");
    let decision = world.settle();
    let end = world.now + jiff::SignedDuration::from_mins(5);
    assert_eq!(world.state(0), PhaseState::Waiting);
    assert_eq!(world.phase(0).wait_until.as_ref().map(|until| until.0), Some(end));
    assert_eq!(decision.wake, Some(end));
    assert!(decision.waits[0].message.contains("waits until"));
    world.wait(Duration::from_secs(299));
    world.crash();
    world.settle();
    assert_eq!(world.open(), ["dev-a"]);
    world.wait(Duration::from_secs(1));
    world.settle();
    assert_eq!(world.open(), ["dev-a", "prod-a"]);
}

#[test]
fn a_wait_is_never_shorter_than_said_though_seconds_are_stored() {
    let mut world = World::new(&phase("dev", "dev", "waitDuration: 1s"), &["dev-a"]);
    world.wait(Duration::from_millis(900));
    world.deploy();
    world.wait(Duration::from_millis(1000));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Waiting);
    world.wait(Duration::from_millis(1000));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Complete);
}

#[test]
fn row_29_health_is_a_gate_of_its_own_with_a_deadline() {
    let mut world = World::new(&phase("dev", "dev", "progressDeadline: 10m"), &["dev-a"]);
    world.settle();
    world.see("dev-a", Progress::UnderWay);
    let decision = world.settle();
    assert_eq!(decision.wake, Some(world.now + jiff::SignedDuration::from_mins(10)));
    world.wait(Duration::from_secs(599));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    world.wait(Duration::from_secs(1));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!(failure.reason, "ProgressDeadlineExceeded");
}

#[test]
fn who_waits_for_another_gate_is_not_late() {
    let mut world = World::new(&phase("dev", "dev", "progressDeadline: 1m"), &["dev-a"]);
    world.settle();
    world.wait(Duration::from_secs(3600));
    let decision = world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    assert!(decision.waits[0].message.contains("has not started"));
}

#[test]
fn people_who_have_to_approve_may_take_their_time() {
    let mut world = World::new(&phase("dev", "dev", "progressDeadline: 1m"), &["dev-a"]);
    world.settle();
    world.see("dev-a", Progress::UnderWay);
    world.settle();
    world.see("dev-a", Progress::AwaitingApproval("pruning of ConfigMap a".to_owned()));
    world.settle();
    world.wait(Duration::from_secs(3600));
    let decision = world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    assert_eq!(decision.waits[0].message, "dev-a needs approval: pruning of ConfigMap a");
    assert_eq!(world.phase(0).applications[0].state, PhaseApplicationState::AwaitingApproval);
    // From then on the time runs that it has for itself.
    world.see("dev-a", Progress::UnderWay);
    world.settle();
    world.wait(Duration::from_secs(59));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    world.wait(Duration::from_secs(1));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
}

#[test]
fn row_06_another_rollout_begins_at_the_first_phase_and_ends_the_calls_of_the_one_before() {
    let hooks = format!("preHooks: [{}]", hook("h", ""));
    let mut world =
        World::new(&(phase("dev", "dev", "") + &phase("prod", "prod", &hooks)), &["dev-a", "prod-a"]);
    world.deploy();
    assert_eq!(world.calling(), ["h"]);
    let (old, first) = (world.in_flight.keys().next().cloned().expect("a call"), world.made[0].clone());
    world.rollout = "2-a-c".to_owned();
    world.seen.values_mut().for_each(|one| *one = seen(Progress::NotStarted));
    let decision = world.look();
    assert_eq!(decision.cancel, [old]);
    assert!(decision.gates.values().all(|gate| !gate.is_open()));
    world.settle();
    assert_eq!((world.status().current_phase, world.open()), (0, vec!["dev-a".to_owned()]));
    world.deploy();
    assert_ne!(world.made[1].idempotency_key, first.idempotency_key, "it is no repetition");
}

#[test]
fn who_was_as_it_should_be_is_told_from_who_was_changed() {
    let mut world = World::new(&phase("dev", "dev", ""), &["dev-a", "dev-b"]);
    world.seen.get_mut("dev-a").expect("it is there").progress = Progress::Done;
    world.settle();
    world.see("dev-b", Progress::Done);
    world.settle();
    let states: Vec<_> = world.phase(0).applications.iter().map(|entry| entry.state.clone()).collect();
    assert_eq!(states, [PhaseApplicationState::Unchanged, PhaseApplicationState::Healthy]);
}

#[test]
fn who_joins_an_earlier_phase_is_waited_for_and_nothing_that_passed_runs_again() {
    let hooks = format!("preHooks: [{}]", hook("h", ""));
    let mut world =
        World::new(&(phase("dev", "dev", &hooks) + &phase("prod", "prod", "")), &["dev-a", "prod-a"]);
    world.settle();
    world.pass("h");
    world.see("dev-a", Progress::Done);
    world.settle();
    assert_eq!(world.open(), ["dev-a", "prod-a"]);
    world.targets = fleet(&["dev-a", "dev-b", "prod-a"]);
    world.seen.insert("dev-b".into(), seen(Progress::NotStarted));
    assert!(!world.open().contains(&"dev-b".to_owned()), "not before that is stored");
    world.settle();
    assert_eq!(world.open(), ["dev-a", "dev-b"]);
    world.deploy();
    assert_eq!(world.status().state, PhaseState::Complete);
    assert_eq!(world.times("h"), 1);
}

#[test]
fn a_phase_that_matched_nobody_runs_when_somebody_joins_it() {
    let mut world = World::new(&two(), &["prod-a"]);
    world.deploy();
    assert_eq!(world.status().state, PhaseState::Complete);
    world.targets = fleet(&["dev-a", "prod-a"]);
    world.seen.insert("dev-a".into(), seen(Progress::NotStarted));
    world.settle();
    assert_eq!((world.state(0), world.status().current_phase), (PhaseState::Deploying, 0));
    world.deploy();
    assert_eq!(world.status().state, PhaseState::Complete);
}

#[test]
fn no_phase_opens_while_an_application_of_an_earlier_one_is_no_longer_well() {
    let three = two() + &phase("late", "late", "");
    let mut world = World::new(&three, &["dev-a", "prod-a", "late-a"]);
    world.settle();
    world.see("dev-a", Progress::Done);
    world.settle();
    world.see("dev-a", Progress::Regressed("its Pod is gone".into()));
    world.see("prod-a", Progress::Done);
    let decision = world.settle();
    assert_eq!(world.open(), ["dev-a", "prod-a"]);
    assert!(
        decision.waits.iter().any(|wait| wait.message.contains("its Pod is gone")),
        "{:?}",
        decision.waits
    );
    world.see("dev-a", Progress::Done);
    world.settle();
    assert_eq!(world.open(), ["dev-a", "late-a", "prod-a"]);
}

#[test]
fn a_phase_opens_only_on_a_consistent_list() {
    let mut world = World::new(&two(), &["dev-a", "prod-a"]);
    world.consistent = false;
    world.settle();
    world.see("dev-a", Progress::Done);
    let decision = world.settle();
    assert!(decision.list);
    assert_eq!(world.open(), ["dev-a"]);
    world.consistent = true;
    world.settle();
    assert_eq!(world.open(), ["dev-a", "prod-a"]);
}

#[test]
fn a_pause_begins_nothing_and_loses_nothing() {
    let hooks = format!("preHooks: [{}]", hook("h", ""));
    let mut world =
        World::new(&(phase("dev", "dev", &hooks) + &phase("prod", "prod", "")), &["dev-a", "prod-a"]);
    world.settle();
    world.hold = Hold::Paused;
    world.pass("h");
    let decision = world.settle();
    assert!(world.open().is_empty());
    assert_eq!(world.status().state, PhaseState::Paused);
    assert!(decision.waits[0].message.contains("paused") && decision.calls.is_empty());
    world.hold = Hold::None;
    world.settle();
    assert_eq!((world.open(), world.times("h")), (vec!["dev-a".to_owned()], 1));
}

#[test]
fn row_46_phases_that_cannot_be_followed_hold_everybody_and_mending_goes_on_from_there() {
    let mut world = World::new(&two(), &["dev-a", "prod-a"]);
    world.settle();
    let before = world.stored.clone();
    let broken = crate::world::compiled("- {name: p}");
    world.invalid = Some(broken.findings);
    let decision = world.settle();
    assert!(world.open().is_empty());
    assert_eq!(decision.notices[0].reason, "InvalidPhaseConfig");
    assert!(held_because(&world, "dev-a").contains("needs targets"));
    assert_eq!(world.stored, before);
    world.invalid = None;
    world.settle();
    assert_eq!(world.open(), ["dev-a"]);
}

#[test]
fn a_name_that_nobody_gives_holds_everybody_before_anything_is_called_or_deployed() {
    let url = "http: {url: \"https://example.com/{{nosuch}}\"}";
    let late = format!("postHooks: [{{name: h, type: http, {url}}}]");
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", &late);
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    let decision = world.settle();
    assert_eq!(decision.notices[0].reason, "InvalidPhaseConfig");
    assert!(held_because(&world, "dev-a").contains(".phases[1].postHooks[0].http.url: no Application"));
    assert!(decision.calls.is_empty() && world.stored.is_none() && world.open().is_empty(), "nothing begins");
}

#[test]
fn row_38_more_than_a_thousand_in_one_phase_hold_everybody_and_say_so() {
    let names: Vec<String> = (0..=1000).map(|at| format!("dev-{at:04}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("prod-a");
    let mut world = World::new(&two(), &names);
    let decision = world.settle();
    assert_eq!(decision.gates.len(), names.len());
    assert!(decision.gates.values().all(|gate| matches!(gate, Gate::Held(_))));
    assert!(held_because(&world, "prod-a").contains("1001 Applications"));
    assert_eq!(decision.notices[0].reason, "InvalidPhaseConfig");
    assert!(decision.calls.is_empty() && world.stored.is_none(), "nothing begins");
    world.targets.truncate(1000);
    world.settle();
    assert_eq!(world.open().len(), 1000, "and with a thousand it does");
}

#[test]
fn row_48_deletion_of_the_set_ends_calls_first_and_changes_nobody() {
    let hooks = format!("preHooks: [{}]", hook("h", ""));
    let mut world = World::new(&phase("dev", "dev", &hooks), &["dev-a"]);
    world.settle();
    world.hold = Hold::Deleting;
    let decision = world.look();
    assert_eq!((decision.cancel.len(), decision.calls.len()), (1, 0));
    assert!(decision.gates.values().all(|gate| !gate.is_open()));
}

#[test]
fn max_concurrent_is_told_with_the_gates() {
    let phases = phase("dev", "dev", "maxConcurrent: 2") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "dev-b", "dev-c", "prod-a"]);
    let decision = world.settle();
    assert_eq!(decision.limits, [Some(2), None]);
    assert_eq!(decision.gates["dev-c"], Gate::Open { phase: 0 }, "whoever counts decides whose turn it is");
}

#[test]
fn who_is_held_is_told_its_own_phase_first() {
    let phases = phase("dev", "dev", &format!("preHooks: [{}]", hook("h", ""))) + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    let named = |world: &World| {
        let held = |gate: &Gate| match gate {
            Gate::Held(why) => phase_held_by(why).map(str::to_owned),
            _ => None,
        };
        world.look().gates.values().map(held).collect::<Vec<_>>()
    };
    let (dev, prod) = (Some("dev".to_owned()), Some("prod".to_owned()));
    world.settle();
    assert_eq!(named(&world), [dev.clone(), prod.clone()]);
    world.pass("h");
    assert_eq!(named(&world), [None, prod.clone()]);
    world.requests.abort = Some("1".into());
    world.settle();
    assert_eq!(named(&world), [dev, prod]);
    assert_eq!(phase_held_by("a person holds the rollout"), None);
}
