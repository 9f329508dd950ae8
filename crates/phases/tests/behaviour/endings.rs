//! How the phases of a whole set stand: when its rollout is over, and how it has ended.

use std::time::Duration;

use baton_api::phase_status::{GeneratorPhases, PhaseState};
use baton_phases::{Outlook, Progress, outlook};

use crate::world::{World, broken, hook, phase};

fn stands(world: &World) -> Outlook {
    outlook(std::slice::from_ref(world.status()))
}

fn is_failed(outlook: &Outlook, words: &str) -> bool {
    matches!(outlook, Outlook::Failed(why) if why.contains(words))
}

#[test]
fn a_rollout_is_not_over_while_its_last_phase_checks_calls_or_waits() {
    let fields =
        format!("checks: [{}]\npostHooks: [{}]\nwaitDuration: 5m", hook("check", ""), hook("after", ""));
    let mut world = World::new(&phase("dev", "dev", &fields), &["dev-a"]);
    world.deploy();
    for (stage, call) in [(PhaseState::Checking, "check"), (PhaseState::PostHooks, "after")] {
        assert_eq!((world.state(0), stands(&world)), (stage.clone(), busy(&stage)));
        world.pass(call);
    }
    assert_eq!((world.state(0), stands(&world)), (PhaseState::Waiting, busy(&PhaseState::Waiting)));
    world.wait(Duration::from_secs(300));
    world.settle();
    assert_eq!(stands(&world), Outlook::Done);
}

fn busy(stage: &PhaseState) -> Outlook {
    Outlook::UnderWay(format!("phase \"dev\" is {stage}"))
}

#[test]
fn a_phase_that_failed_was_aborted_or_was_put_back_is_a_rollout_that_failed() {
    let after = format!("postHooks: [{}]", hook("after", ""));
    let mut stopped = World::new(&phase("dev", "dev", &after), &["dev-a"]);
    stopped.deploy();
    stopped.answer("after", broken());
    stopped.settle();
    assert!(
        is_failed(&stands(&stopped), "phase \"dev\" has failed: hook \"after\""),
        "{:?}",
        stands(&stopped)
    );
    stopped.requests.retry = Some("1".into());
    stopped.settle();
    assert_eq!(stands(&stopped), busy(&PhaseState::PostHooks), "it is tried again");
    stopped.requests.abort = Some("1".into());
    stopped.settle();
    assert!(is_failed(&stands(&stopped), "was aborted"), "{:?}", stands(&stopped));
    let mut back = World::new(&phase("dev", "dev", ""), &["dev-a"]);
    back.deploy();
    assert_eq!(stands(&back), Outlook::Done);
    back.requests.rollback_all = Some("1".into());
    back.settle();
    assert_eq!(stands(&back), busy(&PhaseState::RollingBack));
    back.seen.values_mut().for_each(|one| one.pin = "old".into());
    back.see("dev-a", Progress::Done);
    back.settle();
    assert!(is_failed(&stands(&back), "was put back"), "{:?}", stands(&back));
}

#[test]
fn a_failure_that_was_passed_over_is_one_at_the_end() {
    let phases = phase("dev", "dev", "onFailure: {action: continue}") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.settle();
    world.fail("dev-a");
    world.settle();
    assert!(matches!(stands(&world), Outlook::UnderWay(_)), "{:?}", stands(&world));
    world.see("prod-a", Progress::Done);
    world.settle();
    assert!(is_failed(&stands(&world), "these have failed: dev"), "{:?}", stands(&world));
}

#[test]
fn where_one_generator_has_failed_another_may_be_under_way() {
    let mut failed = World::new(&phase("dev", "dev", ""), &["dev-a"]);
    failed.settle();
    failed.fail("dev-a");
    failed.settle();
    let mut busy = World::new(&phase("dev", "dev", ""), &["dev-a"]);
    busy.settle();
    let both: [GeneratorPhases; 2] = [failed.status().clone(), busy.status().clone()];
    assert!(matches!(outlook(&both), Outlook::UnderWay(_)));
    busy.deploy();
    let both: [GeneratorPhases; 2] = [failed.status().clone(), busy.status().clone()];
    assert!(is_failed(&outlook(&both), "has failed"));
    assert_eq!(outlook(&[]), Outlook::Done);
}

#[test]
fn where_no_phase_matches_anybody_the_rollout_has_failed() {
    let mut world = World::new(&phase("dev", "nobody", ""), &["dev-a"]);
    world.settle();
    assert!(is_failed(&stands(&world), "no phase matches"), "{:?}", stands(&world));
}
