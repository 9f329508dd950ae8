//! The controller stops at every write there is, and takes the operation up again.

use std::collections::BTreeMap;

use baton_api::application_status::{HealthCode, OperationPhase};
use baton_api::names::resource;
use baton_api::object::Object;
use serde_json::{Value, json};

use crate::world::{Event, Pass, World, annotated, hook, in_wave, object, with_options};

/// Most passes of a run: far more than any scenario needs.
const PASSES: usize = 60;

struct Scenario {
    name: &'static str,
    world: fn() -> World,
    /// Hooks that run, and how often.
    hooks: &'static [(&'static str, usize)],
    /// Objects that must not be deleted before somebody agreed.
    guarded: &'static [&'static str],
}

fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "hooks and waves",
            world: hooks_and_waves,
            hooks: &[("pre", 1), ("post", 1), ("old", 1)],
            guarded: &[],
        },
        Scenario { name: "prunes", world: prunes, hooks: &[("pre", 1)], guarded: &["g1", "g2", "plain"] },
        Scenario { name: "failure", world: failure, hooks: &[("pre", 1), ("sorry", 1)], guarded: &[] },
        Scenario { name: "one hook in two phases", world: twice, hooks: &[("job", 2)], guarded: &[] },
        Scenario { name: "creation anew", world: anew, hooks: &[], guarded: &["c", "plain"] },
        Scenario { name: "dry run", world: dry_run, hooks: &[("pre", 0)], guarded: &["g1", "plain"] },
        Scenario { name: "termination", world: terminated, hooks: &[("pre", 1)], guarded: &["g1"] },
    ]
}

fn policy(hook: Value, policy: &str) -> Value {
    annotated(hook, resource::HOOK_DELETE_POLICY, policy)
}

fn hooks_and_waves() -> World {
    World::new(vec![
        policy(hook("pre", "PreSync"), "HookSucceeded,BeforeHookCreation"),
        hook("old", "PreSync"),
        object("ConfigMap", "c"),
        in_wave(object("Deployment", "web"), 1),
        in_wave(object("Deployment", "late"), 2),
        hook("post", "PostSync"),
    ])
    .with_live(hook("old", "PreSync"))
    .with_options(&["CreateNamespace=true"])
}

fn prunes() -> World {
    let guarded = |name, wave| in_wave(with_options(object("Deployment", name), "Prune=confirm"), wave);
    World::new(vec![hook("pre", "PreSync"), in_wave(object("ConfigMap", "new"), -1)])
        .with_live(guarded("g1", 1))
        .with_live(guarded("g2", 2))
        .with_live(in_wave(object("Deployment", "plain"), 3))
}

fn failure() -> World {
    let mut world = World::new(vec![
        policy(hook("pre", "PreSync"), "HookFailed"),
        object("ConfigMap", "c"),
        policy(hook("sorry", "SyncFail"), "HookSucceeded"),
    ]);
    world.outcomes.insert("pre".to_owned(), HealthCode::Degraded);
    world
}

fn twice() -> World {
    World::new(vec![hook("job", "PreSync,PostSync"), object("ConfigMap", "c")])
}

fn anew() -> World {
    let options = "Replace=true,Force=true,Delete=confirm";
    let mut wanted = with_options(object("ConfigMap", "c"), options);
    wanted["data"] = json!({"new": "value"});
    World::new(vec![wanted])
        .with_live(with_options(object("ConfigMap", "c"), options))
        .with_live(in_wave(object("Deployment", "plain"), -1))
}

fn dry_run() -> World {
    let mut world = prunes();
    world.sync().dry_run = true;
    world
}

fn terminated() -> World {
    let mut world = World::new(vec![hook("pre", "PreSync")])
        .with_live(with_options(object("Deployment", "g1"), "Prune=confirm"));
    world.outcomes.insert("pre".to_owned(), HealthCode::Progressing);
    world
}

/// Runs a scenario to its end, stopping before one write.
fn run(scenario: &Scenario, crash_after: Option<usize>, lag: usize, by_object: bool) -> (World, Pass) {
    let mut world = (scenario.world)();
    world.crash_after = crash_after;
    world.lag = lag;
    finish(scenario, world, by_object)
}

/// Runs a world to its end. A person agrees once that is waited for.
fn finish(scenario: &Scenario, mut world: World, by_object: bool) -> (World, Pass) {
    for _ in 0..PASSES {
        let pass = world.pass();
        match &pass {
            Pass::Ended { .. } => {
                // What the last pass began comes to its end.
                world.tick();
                world.tick();
                return (world, pass);
            }
            Pass::Waits { approvals, .. } if !approvals.is_empty() && by_object => {
                approvals.iter().for_each(|key| world.approve_object(&key.name));
            }
            Pass::Waits { approvals, .. } if !approvals.is_empty() => world.approve(),
            Pass::Waits { .. } if scenario.name == "termination" => {
                world.state.phase = OperationPhase::Terminating;
            }
            _ => {}
        }
        world.tick();
    }
    panic!("{}: no end", scenario.name);
}

/// What is left in the end, without what differs by nature.
fn outcome(world: &World) -> BTreeMap<String, Value> {
    let told = |live: &Value| {
        let mut live = live.clone();
        for name in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            live["metadata"][name] = json!(null);
        }
        live
    };
    world.objects.values().map(|live| (live.name().to_owned(), told(live))).collect()
}

/// How an operation ended. Which of its two messages success has depends on whether a wave or a step saw it.
fn phase(pass: &Pass) -> Option<&OperationPhase> {
    match pass {
        Pass::Ended { phase, .. } => Some(phase),
        _ => None,
    }
}

fn check(scenario: &Scenario, world: &World, at: &str) {
    for (name, times) in scenario.hooks {
        let ran = world
            .history
            .iter()
            .filter(|event| matches!(event, Event::Created(key) if key.name == *name))
            .count();
        assert_eq!(ran, *times, "{}: {name} ran {ran} times, {at}", scenario.name);
    }
    let agreed = world.history.iter().position(|event| *event == Event::Approved).unwrap_or(usize::MAX);
    for (index, event) in world.history.iter().enumerate() {
        let Event::DeleteAsked(key) = event else { continue };
        let early = index < agreed && scenario.guarded.contains(&key.name.as_str());
        assert!(!early, "{}: {key} was deleted before anybody agreed, {at}", scenario.name);
    }
    let mut deleted = BTreeMap::new();
    for event in &world.history {
        if let Event::DeleteAsked(key) = event {
            *deleted.entry(key.name.clone()).or_insert(0) += 1;
        }
    }
    for name in scenario.guarded {
        let times = deleted.get(*name).copied().unwrap_or_default();
        assert!(times <= 1, "{}: {name} was deleted {times} times, {at}", scenario.name);
    }
}

#[test]
fn wherever_the_controller_stops_the_operation_ends_the_same() {
    let mut stops = 0;
    for scenario in scenarios() {
        for by_object in [false, true] {
            let (clean, ended) = run(&scenario, None, 0, by_object);
            check(&scenario, &clean, "without a stop");
            for stop in 0.. {
                let (world, pass) = run(&scenario, Some(stop), 0, by_object);
                check(&scenario, &world, &format!("with a stop at {stop}"));
                assert_eq!(phase(&pass), phase(&ended), "{} with a stop at {stop}", scenario.name);
                assert_eq!(outcome(&world), outcome(&clean), "{} with a stop at {stop}", scenario.name);
                if world.crash_after.is_some() {
                    break;
                }
                stops += 1;
            }
        }
    }
    assert!(stops > 80, "only {stops} stops were tried");
}

#[test]
fn a_cache_that_lags_behind_changes_neither() {
    for scenario in scenarios() {
        let (clean, ended) = run(&scenario, None, 0, true);
        for lag in 1..4 {
            for stop in (0..30).step_by(2) {
                let (world, pass) = run(&scenario, Some(stop), lag, true);
                let at = format!("with a stop at {stop} and {lag} writes behind");
                check(&scenario, &world, &at);
                assert_eq!(phase(&pass), phase(&ended), "{} {at}", scenario.name);
                assert_eq!(outcome(&world), outcome(&clean), "{} {at}", scenario.name);
            }
        }
    }
}

#[test]
fn two_stops_are_no_worse_than_one() {
    for scenario in scenarios() {
        let (clean, ended) = run(&scenario, None, 0, true);
        for first in 0..12 {
            for second in (0..12).step_by(4) {
                let mut world = (scenario.world)();
                world.crash_after = Some(first);
                world.pass();
                world.crash_after = Some(second);
                let (world, pass) = finish(&scenario, world, true);
                let at = format!("with stops at {first} and {second}");
                check(&scenario, &world, &at);
                assert_eq!(phase(&pass), phase(&ended), "{} {at}", scenario.name);
                assert_eq!(outcome(&world), outcome(&clean), "{} {at}", scenario.name);
            }
        }
    }
}
