//! Whole stories: trouble of all kinds, then calm.

use std::sync::Arc;

use baton_rollout::pin::Fingerprint;
use serde_json::json;

use crate::controller::Controller;
use crate::world::{World, rev, time};

const STORIES: u64 = 200;

/// Runs one seed: trouble first, then calm; the rollout must come to its end and then be quiet.
fn story(seed: u64) -> (usize, usize) {
    let mut world = World::new(seed);
    world.resolvable = !seed.is_multiple_of(4);
    let mut controllers = vec![Controller::start(&mut world)];
    let trouble = 60_000 + world.dice.below(120_000);
    let (mut commits, mut created) = (1, 100);
    while world.now < trouble {
        world.now += 50 + world.dice.below(150);
        world.live_on();
        match world.dice.below(1000) {
            0..=3 => {
                world.branch += 1;
                commits += 1;
            }
            4..=5 => world.template += 1,
            6..=9 => {
                let at = world.dice.below(controllers.len() as u64) as usize;
                controllers[at] = Controller::start(&mut world);
            }
            10..=12 => {
                let at = world.dice.below(controllers.len() as u64) as usize;
                controllers[at].asleep_until = world.now + world.dice.below(20_000);
            }
            13 if controllers.len() < 2 => {
                let another = Controller::start(&mut world);
                controllers.push(another);
            }
            18 => {
                world.create(created, false);
                created += 1;
            }
            19..=20 => {
                let names: Vec<Arc<str>> = world.things.keys().cloned().collect();
                let name = &names[world.dice.below(names.len() as u64) as usize];
                let at = world.now + world.dice.below(20_000);
                let thing = world.things.get_mut(name).expect("an Application");
                if names.len() > 2 && thing.gone_at.is_none() {
                    world.trace.push(format!("{} {name} leaves until {at}", world.now));
                    thing.gone_at = Some(at);
                }
            }
            21..=22 => {
                let names: Vec<Arc<str>> = world.things.keys().cloned().collect();
                let name = &names[world.dice.below(names.len() as u64) as usize];
                let thing = world.things.get_mut(name).expect("an Application");
                if let Some((spec, _)) = thing.deployed {
                    world.trace.push(format!("{} {name} drifts", world.now));
                    thing.deployed = Some((spec, "drifted".into()));
                    thing.compares_at = world.now;
                }
            }
            25 => {
                let at = world.dice.below(world.steps.len() as u64) as usize;
                let limit = json!(1 + world.dice.below(3));
                world.steps[at].max_update = serde_json::from_value(limit).expect("a number");
                world.template += 1;
                // Who joins while other steps wait for the end of a run is in none of that run's.
                world.control.finish = false;
            }
            26 => world.control.abort = Some(world.now.to_string().into()),
            23..=24 => world.control.retry = Some(world.now.to_string().into()),
            27 => {
                world.frozen = match world.frozen {
                    None => Some("a generator fails".into()),
                    Some(_) => None,
                };
            }
            28 => world.control.finish = !world.control.finish,
            14..=15 => world.control.paused = !world.control.paused,
            16..=17 => {
                let names: Vec<Arc<str>> = world.things.keys().cloned().collect();
                let name = &names[world.dice.below(names.len() as u64) as usize];
                let step = world.dice.below(world.steps.len() as u64) as usize;
                world.trace.push(format!("{} {name} moves to step {step}", world.now));
                world.things.get_mut(name).expect("an Application").step = Some(step);
            }
            _ => {}
        }
        for controller in &mut controllers {
            if controller.asleep_until <= world.now {
                controller.listen(&world);
                controller.act(&mut world);
            }
        }
    }
    world.control.paused = false;
    world.frozen = None;
    world.faulty = false;
    let end = world.now + 1_200_000;
    let mut calm_since = None;
    while world.now < end {
        world.now += 100;
        world.live_on();
        if world.now % 30_000 < 100 && calm_since.is_none() {
            // Somebody looks after what failed.
            world.control.retry = Some(world.now.to_string().into());
        }
        for controller in &mut controllers {
            controller.listen(&world);
            controller.act(&mut world);
        }
        let finished = controllers[0].machine.head().run.finished.is_some();
        let target = (world.template, rev(world.branch));
        let all = world.staying().all(|(_, thing)| thing.deployed.as_ref() == Some(&target));
        match calm_since {
            None if finished && all => calm_since = Some((world.now, world.writes)),
            Some((since, writes)) if world.now > since + 5000 && world.now < since + 5200 => {
                calm_since = Some((since, world.writes.max(writes)));
            }
            Some((since, writes)) if world.now > since + 300_000 => {
                assert_eq!(
                    world.writes, writes,
                    "seed {seed}: writes though nothing changed: {:#?}",
                    world.trace
                );
                return (world.starts, commits);
            }
            _ => {}
        }
    }
    let blockers: Vec<String> = controllers[0]
        .machine
        .blockers(time(world.now))
        .into_iter()
        .map(|blocker| {
            let thing = world.things.get(&blocker.object);
            let row = thing
                .and_then(|thing| controllers[0].machine.head().row(Fingerprint::of([&*thing.live.uid])));
            format!(
                "{:?} {} {}: {row:?} {:?}",
                blocker.reason,
                blocker.object,
                blocker.message,
                thing.map(|thing| &thing.live)
            )
        })
        .collect();
    panic!("seed {seed}: the rollout does not end: {blockers:#?}\n{:#?}", world.tail());
}

#[test]
fn no_order_is_broken_and_every_rollout_ends() {
    let (mut starts, mut commits) = (0, 0);
    for seed in 0..STORIES {
        let result = std::panic::catch_unwind(|| story(seed));
        let Ok((more_starts, more_commits)) = result else { panic!("seed {seed}") };
        starts += more_starts;
        commits += more_commits;
    }
    println!("{STORIES} stories, {commits} commits, {starts} starts, no order broken");
    assert!(starts as u64 > STORIES && commits as u64 > STORIES);
}
