//! What people ask for.

use std::time::Duration;

use baton_api::phase_status::PhaseState;
use baton_phases::{Ask, Progress, Requests, refusal};

use crate::orders::prod_first;
use crate::world::{World, broken, compiled, hook, phase, plan};

fn refusals(decision: &baton_phases::Decision) -> Vec<String> {
    let refused = decision.notices.iter().filter(|notice| notice.reason == "RequestRefused");
    refused.map(|notice| notice.message.clone()).collect()
}

#[test]
fn advance_ends_a_wait() {
    let phases = phase("dev", "dev", "waitDuration: 24h") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.deploy();
    assert_eq!(world.state(0), PhaseState::Waiting);
    world.requests.advance = Some("1".into());
    world.settle();
    assert_eq!(world.open(), ["dev-a", "prod-a"]);
}

#[test]
fn advance_never_passes_over_a_hook_a_check_or_an_application() {
    let fields =
        format!("preHooks: [{}]\nchecks: [{}]\npostHooks: [{}]", hook("h", ""), hook("c", ""), hook("p", ""));
    let phases = phase("dev", "dev", &fields) + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.settle();
    for (number, stage) in
        [PhaseState::PreHooks, PhaseState::Deploying, PhaseState::Checking, PhaseState::PostHooks]
            .iter()
            .enumerate()
    {
        assert_eq!(world.state(0), *stage);
        world.requests.advance = Some(number.to_string());
        let decision = world.tick();
        assert_eq!(refusals(&decision).len(), 1, "{stage}");
        assert_eq!(world.state(0), *stage);
        match stage {
            PhaseState::PreHooks => world.pass("h"),
            PhaseState::Deploying => drop(world.deploy()),
            PhaseState::Checking => world.pass("c"),
            _ => world.pass("p"),
        }
    }
    assert_eq!(world.state(1), PhaseState::Deploying);
}

#[test]
fn advance_lets_a_stopped_rollout_go_on_without_what_failed() {
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "dev-b", "prod-a"]);
    world.settle();
    world.fail("dev-a");
    world.settle();
    assert_eq!(world.open(), ["dev-a"]);
    world.requests.advance = Some("1".into());
    world.settle();
    assert_eq!(world.open(), ["dev-a", "prod-a"], "who had not begun in the failed phase stays as it is");
}

#[test]
fn a_rollout_that_went_on_without_what_was_aborted_has_not_gone_well() {
    let phases = phase("dev", "dev", "onFailure: {action: abort}") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.settle();
    world.fail("dev-a");
    world.settle();
    assert_eq!(world.state(0), PhaseState::Aborted);
    world.requests.advance = Some("1".into());
    world.deploy();
    let status = world.status();
    assert_eq!((status.current_phase, status.state.clone()), (2, PhaseState::Failed));
    assert!(status.message.contains("dev") && status.finished_at.is_some(), "{}", status.message);
}

#[test]
fn retry_tries_again_what_failed_and_nothing_that_passed() {
    let fields = format!("preHooks: [{}, {}]", hook("good", ""), hook("bad", ""));
    let mut world = World::new(&phase("dev", "dev", &fields), &["dev-a"]);
    world.settle();
    world.pass("good");
    world.answer("bad", broken());
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
    world.requests.retry = Some("1".into());
    world.settle();
    assert_eq!(world.calling(), ["bad"]);
    let attempts: Vec<u32> =
        world.made.iter().filter(|call| &*call.name == "bad").map(|call| call.key.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    assert_eq!(world.made[1].idempotency_key, world.made[2].idempotency_key);
    world.pass("bad");
    assert_eq!((world.times("good"), world.open()), (1, vec!["dev-a".to_owned()]));
    assert!(world.phase(0).failure.is_none());
}

#[test]
fn retry_gives_an_application_all_its_time_again() {
    let mut world = World::new(&phase("dev", "dev", "progressDeadline: 1m"), &["dev-a"]);
    world.settle();
    world.see("dev-a", Progress::UnderWay);
    world.settle();
    world.wait(Duration::from_secs(60));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
    world.requests.retry = Some("1".into());
    world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    world.wait(Duration::from_secs(59));
    world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
}

#[test]
fn abort_ends_a_rollout_and_its_calls() {
    let mut world = World::new(&phase("dev", "dev", &format!("preHooks: [{}]", hook("h", ""))), &["dev-a"]);
    world.settle();
    world.requests.abort = Some("1".into());
    let decision = world.tick();
    assert_eq!(decision.cancel.len(), 1);
    assert_eq!(world.state(0), PhaseState::Aborted);
    assert_eq!(world.phase(0).failure.clone().expect("a failure").reason, "AbortedByRequest");
}

/// Everybody has been deployed, and then the run that puts back begins: nobody has started in it.
fn deployed_and_put_back(world: &mut World, ask: impl Fn(&mut World)) {
    world.deploy();
    assert_eq!(world.status().state, PhaseState::Complete);
    ask(world);
    world.settle();
    for one in world.seen.values_mut() {
        (one.progress, one.touched) = (Progress::NotStarted, false);
    }
    world.settle();
}

#[test]
fn phases_before_the_one_that_is_put_back_stay_complete() {
    let phases = phase("dev", "dev", "waitDuration: 5m") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.deploy();
    world.requests.advance = Some("1".into());
    deployed_and_put_back(&mut world, |world| world.requests.rollback = Some("1".into()));
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::RollingBack));
    world.see("prod-a", Progress::Done);
    world.seen.values_mut().for_each(|one| one.pin = "old".into());
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::RolledBack));
}

#[test]
fn the_whole_is_put_back_also_where_a_phase_was_by_itself() {
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", "onFailure: {action: rollback}");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.settle();
    world.see("dev-a", Progress::Done);
    world.settle();
    world.fail("prod-a");
    world.settle();
    assert_eq!(world.state(1), PhaseState::RollingBack);
    world.see("prod-a", Progress::Done);
    world.seen.get_mut("prod-a").expect("it").pin = "old".into();
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::RolledBack));
    world.requests.rollback_all = Some("1".into());
    let decision = world.tick();
    assert_eq!(refusals(&decision), [""; 0]);
    assert_eq!((world.state(0), world.state(1)), (PhaseState::RollingBack, PhaseState::RolledBack));
    world.requests.rollback_all = Some("2".into());
    let again = world.tick();
    assert!(refusals(&again)[0].contains("put back already"), "{:?}", refusals(&again));
}

#[test]
fn what_has_ended_well_and_cannot_be_put_back_is_left_alone() {
    let mut world = World::new(&phase("dev", "dev", ""), &["dev-a"]);
    world.seen.values_mut().for_each(|one| one.good = None);
    world.deploy();
    for (number, all) in [false, true].into_iter().enumerate() {
        let text = Some(number.to_string());
        match all {
            true => world.requests.rollback_all = text,
            false => world.requests.rollback = text,
        }
        let decision = world.tick();
        assert!(
            refusals(&decision)[0].contains("no Application has a good state"),
            "{:?}",
            refusals(&decision)
        );
        assert_eq!(world.status().state, PhaseState::Complete);
    }
}

#[test]
fn a_phase_that_has_failed_with_nothing_to_go_back_to_is_not_told_to_be_put_back() {
    let hooks = format!("preHooks: [{}]", hook("gate", ""));
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", &hooks);
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.seen.values_mut().for_each(|one| one.good = None);
    world.deploy();
    world.answer("gate", broken());
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::Failed));
    let before = world.status().phases.clone();
    world.requests.rollback_all = Some("1".into());
    world.requests.rollback = Some("1".into());
    let decision = world.tick();
    assert_eq!(refusals(&decision).len(), 2, "{:?}", refusals(&decision));
    for refused in refusals(&decision) {
        assert!(refused.contains("no Application has a good state to go back to"), "{refused}");
    }
    assert_eq!(world.status().phases, before);
    // What can go back does.
    world.seen.get_mut("dev-a").expect("it is there").good = Some("old".into());
    world.requests.rollback_all = Some("2".into());
    assert_eq!(refusals(&world.tick()).len(), 0);
    assert_eq!(world.state(0), PhaseState::RollingBack);
}

#[test]
fn a_request_is_answered_once() {
    let phases = phase("dev", "dev", "waitDuration: 1h") + &phase("prod", "prod", "waitDuration: 1h");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.deploy();
    world.requests.advance = Some("1".into());
    world.deploy();
    assert_eq!(world.state(1), PhaseState::Waiting, "the same text does not end the next wait");
    world.requests.advance = Some("2".into());
    world.settle();
    assert_eq!(world.status().state, PhaseState::Complete);
}

#[test]
fn what_was_asked_for_before_the_first_rollout_is_not_of_it() {
    let mut world = World::new(&phase("dev", "dev", ""), &["dev-a"]);
    world.requests.abort = Some("old".into());
    world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying);
    world.rollout = "2-a-b".into();
    world.settle();
    assert_eq!(world.state(0), PhaseState::Deploying, "nor of the next");
}

/// Everything a person can ask for, in this text.
fn everything(text: &str) -> Requests {
    let text = Some(text.to_owned());
    Requests {
        advance: text.clone(),
        rollback: text.clone(),
        rollback_all: text.clone(),
        abort: text.clone(),
        retry: text,
    }
}

#[test]
fn what_is_asked_for_while_phases_cannot_be_followed_is_refused_and_not_done_when_they_are_mended() {
    type Turn = fn(&mut World);
    let invalid: (Turn, Turn) =
        (|world| world.invalid = Some(compiled("- {name: p}").findings), |world| world.invalid = None);
    let contradicted: (Turn, Turn) = (|world| world.steps = prod_first(), |world| world.steps.clear());
    let unmatched: (Turn, Turn) = (
        |world| {
            world.plan = plan(&(phase("dev", "nobody", "") + &phase("prod", "nobody", "")));
            world.rollout = "2-b-b".into();
        },
        |world| world.plan = plan(&(phase("dev", "dev", "") + &phase("prod", "prod", ""))),
    );
    for (what, (breaks, mends)) in
        [("needs targets", invalid), ("contradict", contradicted), ("no phase matches any", unmatched)]
    {
        // What goes on where it was, and what begins anew.
        for next in ["1-a-b", "3-c-b"] {
            let mut world =
                World::new(&(phase("dev", "dev", "") + &phase("prod", "prod", "")), &["dev-a", "prod-a"]);
            world.settle();
            breaks(&mut world);
            world.settle();
            let before = world.status().clone();
            world.requests = everything("now");
            let decision = world.tick();
            let asked: Vec<Ask> = decision.answers.iter().map(|answer| answer.ask).collect();
            assert_eq!(asked, Ask::ALL, "{what}");
            for answer in &decision.answers {
                let why = answer.refused.as_deref().unwrap_or_default();
                assert!(why.starts_with("the phases cannot be followed: ") && why.contains(what), "{why}");
            }
            assert_eq!(refusals(&decision).len(), Ask::ALL.len(), "{what}");
            let after = world.status().clone();
            assert_eq!(after.granted.len(), Ask::ALL.len());
            assert_eq!(after.phases, before.phases, "nothing else has changed");
            let again = world.tick();
            assert_eq!(
                (again.answers.len(), refusals(&again).len()),
                (0, Ask::ALL.len()),
                "told once, and kept"
            );
            mends(&mut world);
            world.rollout = next.into();
            let mended = world.settle();
            assert_eq!(
                (world.state(0), world.phase(0).failure.clone()),
                (PhaseState::Deploying, None),
                "{what}"
            );
            assert_eq!((world.open(), mended.answers), (vec!["dev-a".to_owned()], Vec::new()), "{what}");
            // A new text asks anew.
            world.requests.abort = Some("again".into());
            world.tick();
            assert_eq!(world.state(0), PhaseState::Aborted);
        }
    }
}

#[test]
fn what_is_asked_for_before_phases_can_be_followed_at_all_is_not_done_to_the_first_rollout() {
    type Turn = fn(&mut World);
    let breaks: [Turn; 2] =
        [|world| world.invalid = Some(compiled("- {name: p}").findings), |world| world.steps = prod_first()];
    for breaks in breaks {
        let mut world =
            World::new(&(phase("dev", "dev", "") + &phase("prod", "prod", "")), &["dev-a", "prod-a"]);
        breaks(&mut world);
        world.settle();
        world.requests = everything("now");
        assert_eq!((world.settle().answers.len(), world.stored.as_ref()), (0, None), "there is nothing yet");
        world.invalid = None;
        world.steps.clear();
        for rollout in ["1-a-b", "2-a-b"] {
            world.rollout = rollout.into();
            world.settle();
            assert_eq!((world.state(0), world.phase(0).failure.clone()), (PhaseState::Deploying, None));
        }
    }
}

#[test]
fn what_a_person_counts_as_done_is_not_on_record_as_good() {
    let mut world = World::new(&phase("dev", "dev", ""), &["dev-a", "dev-b"]);
    world.settle();
    world.see("dev-a", Progress::Done);
    world.see("dev-b", Progress::Done);
    world.seen.get_mut("dev-b").expect("it is there").skipped = true;
    world.settle();
    assert_eq!(world.state(0), PhaseState::Complete);
    let good: Vec<&str> = world.good.iter().map(|(name, _)| &**name).collect();
    assert_eq!(good, ["dev-a"], "dev-b has proved nothing");
}

#[test]
fn what_was_answered_is_told_once_and_a_refusal_stays_until_something_is_granted() {
    let phases = phase("dev", "dev", "waitDuration: 1h") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.deploy();
    world.requests.retry = Some("1".into());
    let refused = world.tick();
    assert_eq!(refused.answers.len(), 1);
    assert_eq!((refused.answers[0].ask, refused.answers[0].text.as_str()), (Ask::Retry, "1"));
    assert!(refused.answers[0].refused.as_ref().is_some_and(|why| why.contains("nothing has failed")));
    assert_eq!(world.tick().answers, [], "it was answered");
    world.requests.abort = Some("1".into());
    let granted = world.tick();
    assert_eq!(granted.answers.iter().map(|answer| answer.refused.clone()).collect::<Vec<_>>(), [None]);
    assert_eq!(world.status().refused, [""; 0], "something was granted since");
    for (number, kinds) in [(1, 1), (2, 2)] {
        match number {
            1 => world.requests.abort = Some("2".into()),
            _ => world.requests.rollback = Some("1".into()),
        }
        if number == 2 {
            world.stored.as_mut().expect("a status").phases[0].state = PhaseState::RolledBack;
        }
        let decision = world.tick();
        assert_eq!(refusals(&decision).len(), kinds, "one refusal does not hide another: {decision:?}");
    }
}

#[test]
fn what_cannot_be_granted_is_known_from_the_status() {
    let wait = phase("dev", "dev", "waitDuration: 1h") + &phase("prod", "prod", "");
    let mut world = World::new(&wait, &["dev-a", "prod-a"]);
    world.deploy();
    let why = |world: &World, ask: Ask| refusal(ask, world.status()).unwrap_or_default();
    assert!(why(&world, Ask::Retry).contains("nothing has failed"));
    assert_eq!([Ask::Advance, Ask::Abort, Ask::Rollback].map(|ask| why(&world, ask)), [""; 3]);
    world.requests.abort = Some("1".into());
    world.settle();
    assert!(why(&world, Ask::Abort).contains("it has ended already"));
    assert_eq!([Ask::Advance, Ask::Retry].map(|ask| why(&world, ask)), [""; 2]);
    world.requests.advance = Some("1".into());
    world.deploy();
    for ask in [Ask::Advance, Ask::Retry, Ask::Abort] {
        assert_eq!(why(&world, ask), "every phase has ended", "{ask:?}");
    }
    let mut back = World::new(&phase("dev", "dev", ""), &["dev-a"]);
    back.deploy();
    back.requests.rollback = Some("1".into());
    back.settle();
    assert!(why(&back, Ask::Rollback).contains("it is being put back already"));
    back.seen.values_mut().for_each(|one| one.pin = "old".into());
    back.see("dev-a", Progress::Done);
    back.settle();
    for ask in [Ask::Rollback, Ask::RollbackAll] {
        assert!(why(&back, ask).contains("it was put back already"), "{ask:?}");
    }
    for ask in [Ask::Advance, Ask::Retry] {
        assert!(why(&back, ask).contains("stays so until a new commit"), "{ask:?}");
    }
}

#[test]
fn a_wait_says_how_it_is_ended_and_names_its_phase_once() {
    let phases = phase("dev", "dev", "waitDuration: 24h") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.deploy();
    let message = world.status().message.clone();
    assert!(message.starts_with("phase \"dev\" (1 of 2) waits until "), "{message}");
    assert!(message.contains("`baton appset advance`") && message.matches("phase").count() == 1, "{message}");
}

#[test]
fn rollback_of_all_reaches_who_was_relabelled_after_it_was_changed() {
    let phases = phase("dev", "dev", "waitDuration: 24h") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "dev-b", "prod-a"]);
    world.deploy();
    assert_eq!(world.state(0), PhaseState::Waiting);
    world.targets[0].params.insert("metadata.labels.env".into(), "prod".into());
    world.settle();
    world.requests.rollback_all = Some("1".into());
    let decision = world.settle();
    assert_eq!(refusals(&decision), Vec::<String>::new());
    let back: Vec<&str> = world.phase(0).applications.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!((world.state(0), back), (PhaseState::RollingBack, vec!["dev-a", "dev-b"]));
}

#[test]
fn rollback_of_all_reaches_phases_after_the_one_a_rollout_went_back_to() {
    let hooks = format!("preHooks: [{}]", crate::world::hook_per_target("h", ""));
    let phases = phase("dev", "dev", &hooks) + &phase("prod", "prod", "waitDuration: 24h");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.settle();
    world.pass("h");
    world.deploy();
    assert_eq!(world.state(1), PhaseState::Waiting);
    world.targets = crate::world::fleet(&["dev-a", "dev-b", "prod-a"]);
    world.see("dev-b", Progress::NotStarted);
    world.settle();
    assert_eq!(world.status().current_phase, 0, "somebody joined the first phase");
    world.requests.rollback_all = Some("1".into());
    world.settle();
    assert_eq!([world.state(0), world.state(1)], [PhaseState::RollingBack, PhaseState::RollingBack]);
}
