//! What people ask for.

use std::time::Duration;

use baton_api::phase_status::PhaseState;
use baton_phases::Progress;

use crate::world::{World, broken, hook, phase};

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
