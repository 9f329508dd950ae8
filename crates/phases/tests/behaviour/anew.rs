//! What carries over from one run to the next: of another rollout nothing, of the same one who has begun.

use baton_api::phase_status::PhaseState;
use baton_phases::{Gate, Progress};

use crate::world::{World, fleet, hook, hook_per_target, phase, target};

fn gate(world: &World, name: &str) -> Gate {
    world.look().gates[name].clone()
}

#[test]
fn who_waits_or_has_failed_since_an_earlier_rollout_goes_through_no_hook_of_this_one() {
    let hooks = format!("preHooks: [{}]", hook("ask", ""));
    for left in [
        Progress::AwaitingApproval("a Namespace is to be deleted".into()),
        Progress::Failed { reason: "SyncFailed".into(), message: "it broke".into() },
    ] {
        let mut world = World::new(&phase("first", "dev", &hooks), &["dev-1", "dev-2"]);
        world.seen.get_mut("dev-1").expect("it is there").progress = left.clone();
        world.settle();
        assert_eq!(world.calling(), ["ask"]);
        assert!(matches!(gate(&world, "dev-1"), Gate::Held(_)), "{left:?}: {:?}", gate(&world, "dev-1"));
    }
}

#[test]
fn who_has_failed_since_an_earlier_rollout_does_not_start_in_a_phase_whose_hooks_failed() {
    let hooks = format!("preHooks: [{}]", hook("ask", ""));
    let mut world = World::new(&phase("first", "dev", &hooks), &["dev-1"]);
    world.seen.get_mut("dev-1").expect("it is there").progress =
        Progress::Failed { reason: "SyncFailed".into(), message: "it broke".into() };
    world.settle();
    world.answer("ask", crate::world::broken());
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
    assert!(matches!(gate(&world, "dev-1"), Gate::Held(_)));
}

/// A run of the same rollout begins anew: nobody is done in it yet, and who was brought to its pin still is.
fn begin_run(world: &mut World) {
    for seen in world.seen.values_mut() {
        seen.progress = Progress::NotStarted;
    }
}

#[test]
fn a_run_begun_anew_deals_no_other_shares_and_calls_nothing_again() {
    let more = format!("percentage: 72\nchecks: [{}]", hook_per_target("look", ""));
    let phases = format!("{}{}", phase("most", "dev", &more), phase("rest", "dev", "preHooks: []"));
    let mut world = World::new(&phases, &["dev-1", "dev-2", "dev-3", "dev-4"]);
    // The last by name has begun in the first phase, before others joined.
    world.targets = fleet(&["dev-2", "dev-3", "dev-4"]);
    world.deploy();
    world.pass("look");
    assert_eq!(world.state(0), PhaseState::Complete);
    world.deploy();
    let (made, own) = (world.made.len(), world.phase(0).selected);
    begin_run(&mut world);
    world.targets = fleet(&["dev-1", "dev-2", "dev-3", "dev-4"]);
    world.settle();
    assert_eq!(world.phase(0).selected, own, "three are 72 % of four");
    assert_eq!((world.made.len(), world.state(0)), (made, PhaseState::Complete));
}

#[test]
fn no_phase_ends_before_those_of_earlier_ones_are_proved_in_a_run_begun_anew() {
    let phases = format!(
        "{}{}{}",
        phase("first", "dev", ""),
        phase("second", "test", "waitDuration: 1m"),
        phase("third", "prod", "")
    );
    let mut world = World::new(&phases, &["dev-1", "test-1", "prod-1"]);
    world.deploy();
    assert_eq!(world.state(1), PhaseState::Waiting);
    begin_run(&mut world);
    world.see("test-1", Progress::Done);
    world.wait(std::time::Duration::from_secs(120));
    let decision = world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::Waiting));
    let waits: Vec<&str> = decision.waits.iter().map(|wait| wait.message.as_str()).collect();
    assert_eq!(waits, ["dev-1 of an earlier phase has not been proved healthy in this run yet"]);
    assert!(matches!(gate(&world, "dev-1"), Gate::Open { .. }), "it may be proved");
    world.see("dev-1", Progress::Done);
    world.settle();
    assert_eq!((world.state(1), world.state(2)), (PhaseState::Complete, PhaseState::Deploying));
}

#[test]
fn who_has_begun_is_at_home_there_though_its_labels_lead_to_a_complete_phase() {
    let each = |name: &str| hook_per_target(name, "");
    let first = format!("preHooks: [{}]\nchecks: [{}]", each("before"), each("look"));
    let phases = format!("{}{}", phase("first", "dev", &first), phase("second", "prod", "waitDuration: 1h"));
    let mut world = World::new(&phases, &["dev-1", "prod-1"]);
    world.settle();
    world.pass("before");
    world.deploy();
    world.pass("look");
    world.deploy();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::Waiting));
    let moved = target("prod-1", &[("name", "prod-1"), ("metadata.labels.env", "dev")]);
    world.targets = vec![fleet(&["dev-1"]).remove(0), moved];
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::Waiting));
    assert_eq!((world.times("before"), world.times("look")), (1, 1), "nothing is called for it once more");
    assert_eq!(world.phase(1).applications[0].name, "prod-1");
    assert_eq!(world.open(), ["dev-1", "prod-1"]);
}

/// The second of two phases that are over waits for the first, and the first does not wait for who has joined the second.
#[test]
fn who_joins_two_phases_that_are_over_goes_through_one_after_the_other() {
    let ask = |name: &str| format!("preHooks: [{}]", hook_per_target(name, ""));
    let phases = format!("{}{}", phase("first", "dev", &ask("early")), phase("second", "test", &ask("late")));
    let mut world = World::new(&phases, &["dev-1", "dev-2", "test-1", "test-2"]);
    let all = std::mem::replace(&mut world.targets, fleet(&["dev-1", "test-1"]));
    let ends = |world: &mut World| {
        for name in ["early", "late"] {
            world.settle();
            assert!(world.calling().iter().all(|call| call.starts_with(name)), "{:?}", world.calling());
            world.pass(name);
            world.deploy();
        }
        assert_eq!([world.state(0), world.state(1)], [PhaseState::Complete, PhaseState::Complete]);
        assert_eq!(world.status().state, PhaseState::Complete);
    };
    ends(&mut world);
    world.targets = all;
    ends(&mut world);
    assert_eq!([world.times("early"), world.times("late")], [2, 2], "once for each of them");
}
