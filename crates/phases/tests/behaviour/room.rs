//! How large the status becomes, and what happens without what does not fit.

use baton_api::phase_status::{HookState, PhaseState};
use baton_phases::Progress;
use baton_phases::details::{BUDGET, join, size, split};

use crate::world::{World, broken, hook_per_target, phase};

fn world(names: &[String], more: &str) -> World {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    World::new(&phase("dev", "dev", more), &names)
}

fn names(count: usize, length: usize) -> Vec<String> {
    (0..count).map(|at| format!("dev-{at:04}-{}", "x".repeat(length))).collect()
}

/// Has every call pass that is made.
fn pass_all(world: &mut World, name: &str) {
    while world.answer(name, baton_hooks::Verdict::Success) > 0 {
        world.tick();
        world.tick();
    }
}

#[test]
fn a_thousand_targets_with_three_calls_each_stay_within_the_budget_at_every_moment() {
    let fields = format!(
        "preHooks: [{}]\nchecks: [{}]\npostHooks: [{}]\nwaitDuration: 1h",
        hook_per_target("before", ""),
        hook_per_target("check", ""),
        hook_per_target("after", "")
    );
    let mut world = world(&names(1000, 20), &fields);
    world.settle();
    let mut largest = 0;
    for (stage, name) in ["before", "check", "after"].into_iter().enumerate() {
        if stage == 1 {
            for target in world.targets.clone() {
                world.see(&target.name, Progress::UnderWay);
            }
            world.settle();
            largest = largest.max(size(&split(world.status(), "set").status));
            world.deploy();
        }
        let mut rounds = 0;
        while world.answer(name, baton_hooks::Verdict::Success) > 0 {
            world.tick();
            world.tick();
            rounds += 1;
            if rounds % 50 == 0 {
                largest = largest.max(size(&split(world.status(), "set").status));
            }
        }
    }
    assert_eq!(world.state(0), PhaseState::Waiting);
    let whole = world.status().clone();
    let parts = split(&whole, "set");
    largest = largest.max(size(&parts.status));
    assert!(size(&whole) > BUDGET && largest < BUDGET, "{} and {largest}", size(&whole));
    assert!(parts.objects.iter().all(|object| object.text.len() < 1_000_000));
    assert!(parts.objects.len() >= 10 && parts.objects[0].name == "set-0-0-0");
    assert_eq!(join(&parts.status, parts.objects.iter().map(|object| object.text.as_str())), whole);
    assert_eq!(world.made.len(), 3000);
}

#[test]
fn the_longest_names_fit_as_well() {
    let mut world = world(&names(1000, 240), "");
    world.settle();
    for target in world.targets.clone() {
        world.see(&target.name, Progress::UnderWay);
    }
    world.settle();
    let parts = split(world.status(), "set");
    assert!(size(world.status()) > BUDGET && size(&parts.status) < BUDGET);
    assert_eq!(join(&parts.status, parts.objects.iter().map(|object| object.text.as_str())), *world.status());
}

#[test]
fn without_the_objects_nothing_that_passed_is_called_again() {
    let mut world = world(
        &names(50, 0),
        &format!("preHooks: [{}, {}]", hook_per_target("a", ""), hook_per_target("b", "")),
    );
    world.settle();
    pass_all(&mut world, "a");
    assert_eq!((world.times("a"), world.times("b")), (50, 5));
    let parts = split(world.status(), "set");
    assert!(!parts.objects.is_empty() && !parts.status.phases[0].details_ref.is_empty());
    world.stored = Some(join(&parts.status, []));
    world.crash();
    world.settle();
    pass_all(&mut world, "b");
    assert_eq!((world.times("a"), world.times("b")), (50, 55), "five were under way when it crashed");
    assert_eq!(world.state(0), PhaseState::Deploying);
}

#[test]
fn objects_of_another_rollout_and_ones_that_are_behind_do_no_harm() {
    let mut world = world(&names(50, 0), &format!("preHooks: [{}]", hook_per_target("a", "")));
    world.settle();
    world.pass("a");
    let early = split(world.status(), "set").objects;
    pass_all(&mut world, "a");
    let parts = split(world.status(), "set");
    let mixed = join(&parts.status, early.iter().map(|object| object.text.as_str()));
    world.stored = Some(mixed);
    world.crash();
    world.settle();
    assert_eq!((world.times("a"), world.state(0)), (50, PhaseState::Deploying));
    let mut other = parts.status.clone();
    other.rollout_id = "9-x-y".into();
    let texts: Vec<&str> =
        parts.objects.iter().map(|object| object.text.as_str()).chain(["nonsense"]).collect();
    assert_eq!(join(&other, texts).phases[0].pre_hooks, parts.status.phases[0].pre_hooks);
}

#[test]
fn what_has_failed_stays_in_the_status() {
    let mut world = world(&names(50, 0), &format!("preHooks: [{}]", hook_per_target("a", "")));
    world.settle();
    world.pass("a");
    world.answer("a", broken());
    world.settle();
    let parts = split(world.status(), "set");
    let failed = parts.status.phases[0].pre_hooks.iter().filter(|result| result.state == HookState::Failed);
    assert!(failed.count() >= 5);
}

#[test]
fn a_small_rollout_needs_no_objects() {
    let mut world = world(&names(5, 0), &format!("preHooks: [{}]", hook_per_target("a", "")));
    world.settle();
    world.pass("a");
    let parts = split(world.status(), "set");
    assert!(parts.objects.is_empty());
    assert_eq!(parts.status, *world.status());
}
