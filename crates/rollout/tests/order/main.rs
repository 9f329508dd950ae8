//! The machine against a small world: an API with versions, an Application controller that compares late and works at
//! its own pace, news that arrive late, controllers that crash or sleep between two steps. What is judged is what
//! happened in that world, not what the machine believes.

mod controller;
mod dice;
mod fresh;
mod stories;
mod world;

use std::sync::Arc;

use baton_api::application_status::OperationPhase;
use baton_api::rollout_status::RolloutState;
use baton_rollout::blocker::Reason;
use baton_rollout::head::Intent;
use baton_rollout::live::{Live, Operation};
use baton_rollout::pin::Fingerprint;
use serde_json::json;

use controller::Controller;
use world::{World, rev, time};

/// A commit every minute for half an hour while somebody joins or leaves every ten seconds: the last step is done now
/// and then, or it is said that the rollout starves.
#[test]
fn a_rollout_that_is_never_left_alone_ends_or_says_that_it_starves() {
    for slow in [false, true] {
        let mut world = World::new(7);
        (world.faulty, world.slow) = (false, slow);
        let mut controller = Controller::start(&mut world);
        let (mut created, mut finished, mut starved, mut last) = (100, 0, 0, 0);
        while world.now < 1_800_000 {
            let before = world.now;
            world.now += 100;
            world.live_on();
            let passed = |every: u64| before / every != world.now / every;
            if passed(60_000) {
                world.branch += 1;
            }
            if passed(10_000) {
                let newest: Arc<str> = format!("app-{}", created - 1).into();
                match world.things.get_mut(&newest).filter(|thing| thing.gone_at.is_none()) {
                    Some(thing) => thing.gone_at = Some(world.now + 3000),
                    None => {
                        world.create(created, false);
                        created += 1;
                    }
                }
            }
            controller.listen(&world);
            controller.act(&mut world);
            let run = &controller.machine.head().run;
            if run.finished.is_some() && run.seq > last {
                last = run.seq;
                finished += 1;
            }
            let blockers = controller.machine.blockers(time(world.now));
            starved += usize::from(blockers.iter().any(|blocker| blocker.reason == Reason::Starved));
        }
        println!(
            "slow: {slow}; {finished} runs ended, starving was named {starved} times, {} starts",
            world.starts
        );
        assert!(finished > 0 || starved > 0, "{:#?}", world.tail());
        assert!(slow || finished > 0, "no run ended: {:#?}", world.tail());
    }
}

/// An operation of an earlier run is to be ended, and ends by itself before that is written: nobody says of it then that
/// it runs, since nobody would carry it out.
#[test]
fn an_operation_that_has_ended_meanwhile_is_not_ended() {
    let mut world = World::new(3);
    world.faulty = false;
    let mut controller = Controller::start(&mut world);
    let (mut retrying, mut ended): (Option<Arc<str>>, bool) = (None, false);
    while world.now < 600_000 && !(ended && controller.machine.head().run.finished.is_some()) {
        world.now += 100;
        if retrying.is_none() || ended {
            world.live_on();
        }
        let (version, second) = (world.version + 1, (world.now / 1000).cast_signed());
        let runs = |live: &Live| live.last.as_ref().is_some_and(Operation::is_running);
        if let Some(thing) = world.things.values_mut().find(|thing| runs(&thing.live)) {
            let last = thing.live.last.as_mut().expect("an operation");
            let intends =
                controller.machine.head().rows().iter().any(|row| row.intent == Some(Intent::Terminate));
            if retrying.is_none() {
                (last.retrying, retrying) = (true, Some(thing.live.name.clone()));
                (thing.live.version, world.version) = (version, version);
                world.branch += 1;
            } else if intends && !ended {
                (last.phase, last.finished, ended) = (OperationPhase::Succeeded, Some(second), true);
                (thing.operation, thing.live.operation) = (None, None);
                (thing.live.version, world.version) = (version, version);
            }
        }
        controller.listen(&world);
        controller.act(&mut world);
    }
    assert!(ended, "{:#?}", world.tail());
    assert!(!world.trace.iter().any(|line| line.contains("Terminate")), "{:#?}", world.tail());
    assert!(controller.machine.head().run.finished.is_some(), "{:#?}", world.tail());
}

/// Applications are deleted and made anew, and nobody hears of their end: each counts once, and the rollout ends.
#[test]
fn one_made_anew_before_its_end_was_seen_counts_once() {
    for seed in 1..=10 {
        let mut world = World::new(seed);
        world.faulty = false;
        let mut controller = Controller::start(&mut world);
        while world.now < 300_000 {
            let before = world.now;
            world.now += 100;
            world.live_on();
            if world.now < 60_000 && before / 5000 != world.now / 5000 {
                world.create(world.now / 5000 % 3, false);
            }
            controller.listen(&world);
            controller.act(&mut world);
        }
        let blockers = controller.machine.blockers(time(world.now));
        assert!(controller.machine.head().run.finished.is_some(), "seed {seed}: {blockers:?}");
    }
}

/// Changes the template, or the steps too, at many moments of a run that is to be finished: it ends with what it was begun
/// for, and the next run brings the rest.
#[test]
fn a_run_that_is_to_be_finished_ends_before_a_newer_template_enters() {
    for moment in 0..40 {
        let mut world = World::new(moment);
        (world.faulty, world.control.finish) = (false, true);
        let mut controller = Controller::start(&mut world);
        let mut step = |world: &mut World| {
            world.now += 100;
            world.live_on();
            controller.listen(world);
            controller.act(world);
            (controller.machine.head().run.clone(), controller.machine.holds_back())
        };
        while step(&mut world).0.seq == 0 {}
        (0..moment * 5).for_each(|_| drop(step(&mut world)));
        let (begun, _) = step(&mut world);
        let under_way = begun.finished.is_none();
        world.template += 1;
        if moment % 3 == 0 {
            // The branch moves on as well: the Applications report another revision than the run's.
            world.branch += 1;
            world.steps[0].max_update = serde_json::from_value(json!(1)).expect("a number");
        }
        if moment % 3 == 1 {
            world.create(200, false);
        }
        let (end, mut held) = (world.now + 1_200_000, false);
        loop {
            let (run, holds_back) = step(&mut world);
            let ended = run.seq > begun.seq || run.finished.is_some();
            let joined = |name: &Arc<str>| &**name == "app-200";
            let mut target = world.run.iter().filter(|(name, _)| !joined(name));
            assert!(ended || !under_way || target.all(|(_, (template, _))| *template == 1));
            held |= holds_back;
            if run.seq > begun.seq && run.finished.is_some() {
                assert_eq!(held, under_way, "moment {moment}");
                assert_eq!(
                    (run.seq, run.restarts),
                    (begun.seq + 1, 0),
                    "moment {moment}: {:#?}",
                    world.tail()
                );
                break;
            }
            assert!(world.now < end, "moment {moment}: it does not end: {:#?}", world.tail());
        }
        let target = (world.template, rev(world.branch));
        assert!(world.staying().all(|(_, thing)| thing.deployed.as_ref() == Some(&target)));
    }
}

#[test]
fn a_lost_head_does_not_give_the_number_of_a_run_twice() {
    let mut world = World::new(3);
    world.faulty = false;
    let mut controller = Controller::start(&mut world);
    let run = |controller: &mut Controller, world: &mut World, until: u64| {
        while world.now < until {
            world.now += 100;
            world.live_on();
            controller.listen(world);
            controller.act(world);
        }
        controller.machine.head().run.clone()
    };
    let first = run(&mut controller, &mut world, 600_000);
    assert!(first.finished.is_some());
    // Nothing is to be synced, so the next run leaves no mark on any Application.
    controller.machine.reload(None);
    (world.head, controller.head) = (None, 0);
    let second = run(&mut controller, &mut world, 700_000);
    assert!(second.seq > first.seq && second.finished.is_some());
    let mut last = second.seq;
    for by_itself in [true, false] {
        world.head = None;
        if by_itself {
            controller.machine.reload(None);
            controller.head = 0;
        } else {
            controller = Controller::start(&mut world);
            controller.machine.runs_after(last);
        }
        let until = world.now + 100_000;
        let next = run(&mut controller, &mut world, until);
        // One more than is known: a run that was begun in the head that is lost may have left no mark.
        assert_eq!(next.seq, last + 2);
        last = next.seq;
    }
}

/// A leader stands still between recording a start and making it, the head with the record is lost, and people hold or end
/// the rollout: what another leader makes of that leaves nothing that the first could start when it goes on.
#[test]
fn a_start_that_a_lost_head_intended_does_not_land_once_the_rollout_is_held() {
    for seed in 0..40 {
        let (mut world, mut first) = about_to_start(seed);
        let go_on = |world: &mut World, controller: &mut Controller| {
            world.now += 100;
            world.live_on();
            controller.listen(world);
            controller.act(world);
        };
        let run = first.machine.head().run.seq;
        world.head = None;
        match seed % 2 {
            0 => world.control.paused = true,
            _ => world.control.abort = Some("enough".into()),
        }
        let mut second = Controller::start(&mut world);
        let held = world.now + 30_000;
        while world.now < held {
            go_on(&mut world, &mut second);
        }
        let starts = world.starts;
        while first.is_about_to_start() {
            first.act(&mut world);
        }
        assert_eq!(world.starts, starts, "seed {seed}: {:#?}", world.tail());
        assert!(second.machine.head().run.seq > run, "seed {seed}: the number of a run is given twice");
        world.control.paused = false;
        world.branch += 1;
        let end = world.now + 1_200_000;
        while second.machine.head().run.finished.is_none() || second.machine.head().run.aborted {
            go_on(&mut world, &mut second);
            assert!(world.now < end, "seed {seed}: it does not end: {:#?}", world.tail());
        }
        let target = (world.template, rev(world.branch));
        assert!(world.staying().all(|(_, thing)| thing.deployed.as_ref() == Some(&target)), "seed {seed}");
    }
}

/// A world in which a leader is about to start something.
fn about_to_start(seed: u64) -> (World, Controller) {
    let mut world = World::new(seed);
    world.faulty = false;
    let mut controller = Controller::start(&mut world);
    let mut rolled_out = false;
    while !rolled_out || !controller.is_about_to_start() {
        world.now += 100;
        world.live_on();
        controller.listen(&world);
        controller.act(&mut world);
        if !rolled_out && controller.machine.head().run.finished.is_some() {
            rolled_out = true;
            world.branch += 1;
        }
    }
    (world, controller)
}

/// What is being written may land yet: nobody is told that nothing does before it is known.
#[test]
fn it_is_not_told_that_all_is_held_before_what_was_under_way_is_settled() {
    for (seed, pauses) in [(3, true), (3, false), (8, true), (8, false)] {
        let (mut world, mut controller) = about_to_start(seed);
        match pauses {
            true => world.control.paused = true,
            false => world.control.abort = Some("enough".into()),
        }
        let now = time(world.now);
        controller.machine.wants(world.wanted(), now);
        let granted = controller.machine.decide(now).change.expect("it is granted");
        controller.machine.stored(&granted);
        let held = [RolloutState::Paused, RolloutState::Aborted];
        let run = &controller.machine.head().run;
        assert!(run.paused == pauses && run.aborted != pauses);
        assert!(controller.machine.decide(now).writes.is_empty(), "one is being made");
        let status = controller.machine.status(now);
        assert!(!held.contains(&status.state), "seed {seed}: {:?}", status.state);
        assert!(status.message.contains("may land yet"), "{}", status.message);
        (0..50).for_each(|_| controller.act(&mut world));
        let status = controller.machine.status(now);
        assert!(held.contains(&status.state), "seed {seed}: {:?}", status.state);
    }
}

/// A comparison was to be asked for, and an operation is said to run since that nobody carries out: that is named, for
/// nothing is written over it.
#[test]
fn what_keeps_an_intended_request_from_being_made_is_named() {
    let mut world = World::new(3);
    world.faulty = false;
    let mut controller = Controller::start(&mut world);
    let intended = |world: &World, controller: &Controller| {
        let row = |live: &Live| controller.machine.head().row(Fingerprint::of([&*live.uid])).cloned();
        let asked = |live: &Live| {
            let landed = live.stamp.as_ref().map_or(0, |stamp| stamp.n);
            row(live)
                .is_some_and(|row| row.intent == Some(Intent::Refresh) && row.n > landed && !live.is_busy())
        };
        world.things.iter().find(|(_, thing)| asked(&thing.live)).map(|(name, _)| name.clone())
    };
    let name = loop {
        world.now += 100;
        world.live_on();
        controller.listen(&world);
        controller.act(&mut world);
        if let Some(name) = intended(&world, &controller) {
            break name;
        }
    };
    world.version += 1;
    let thing = world.things.get_mut(&name).expect("an Application");
    thing.live.version = world.version;
    thing.live.last = Some(Operation {
        phase: OperationPhase::Running,
        stamp: None,
        full: true,
        revisions: vec![rev(1)],
        finished: None,
        retrying: false,
        awaits_approval: false,
        message: "running".into(),
    });
    controller.machine.saw(thing.live.clone());
    let now = time(world.now);
    assert!(controller.machine.decide(now).writes.iter().all(|write| write.name != name));
    let blockers = controller.machine.blockers(now);
    let own: Vec<Reason> =
        blockers.iter().filter(|blocker| blocker.object == name).map(|blocker| blocker.reason).collect();
    assert_eq!(own, [Reason::OrphanedOperation]);
}

#[test]
fn the_moment_of_a_pause_is_told_until_it_ends() {
    let mut world = World::new(5);
    let mut controller = Controller::start(&mut world);
    let mut paused_at = |world: &mut World, paused: bool| {
        world.control.paused = paused;
        for _ in 0..50 {
            world.now += 100;
            controller.act(world);
        }
        controller.machine.status(time(world.now)).paused_at.map(|at| at.0)
    };
    assert_eq!(paused_at(&mut world, false), None);
    let since = Some(time(world.now + 100));
    assert_eq!(paused_at(&mut world, true), since);
    assert_eq!(paused_at(&mut world, true), since, "it lasts");
    assert_eq!(paused_at(&mut world, false), None);
    assert!(paused_at(&mut world, true) > since, "another pause");
}

/// Freezes the set at many moments of a rollout, with a new commit and without: from then on nothing is started.
#[test]
fn nothing_is_started_while_it_is_not_known_what_the_set_wants() {
    for moment in 0..20 {
        let mut world = World::new(moment);
        world.faulty = false;
        let mut controller = Controller::start(&mut world);
        let mut live = |world: &mut World, until: u64| {
            while world.now < until {
                world.now += 100;
                world.live_on();
                controller.listen(world);
                controller.act(world);
            }
            let blockers = controller.machine.blockers(time(world.now));
            (controller.machine.head().run.clone(), blockers)
        };
        live(&mut world, moment * 1000);
        world.frozen = Some("a generator fails".into());
        let frozen_at = world.now;
        // What the controller was about to write when it heard of it is written still.
        live(&mut world, frozen_at + 300);
        let (starts, branch) = (world.starts, world.branch);
        world.branch += moment % 2;
        let (_, blockers) = live(&mut world, frozen_at + 600_000);
        assert_eq!(world.starts, starts, "moment {moment}: {:#?}", world.tail());
        let named = blockers.first().map(|blocker| (blocker.reason, blocker.message.as_str()));
        assert_eq!(named, Some((Reason::GeneratorError, "a generator fails")));
        world.frozen = None;
        let end = world.now + 1_200_000;
        let (run, _) = live(&mut world, end);
        assert!(run.finished.is_some(), "moment {moment}: {:#?}", world.tail());
        let target = (world.template, rev(branch + moment % 2));
        assert!(world.staying().all(|(_, thing)| thing.deployed.as_ref() == Some(&target)));
    }
}
