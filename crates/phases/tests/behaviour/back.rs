//! Putting Applications back.

use std::time::Duration;

use baton_api::phase_status::{PhaseApplicationState, PhaseState};
use baton_phases::{Ask, Gate, Hold, Progress, refusal};

use crate::world::{World, broken, hook, phase, seen};

/// Every Application of the phase is done, then one fails; the phase is put back.
fn world(more: &str, names: &[&str]) -> World {
    let fields = format!("onFailure: {{action: rollback}}\n{more}");
    let mut world = World::new(&phase("dev", "dev", &fields), names);
    world.settle();
    for name in names {
        world.see(name, Progress::UnderWay);
    }
    world.settle();
    world
}

fn going_back(world: &World) -> Vec<String> {
    let gates = world.look().gates;
    let back = gates.iter().filter(|(_, gate)| matches!(gate, Gate::Back { .. }));
    back.map(|(name, _)| name.to_string()).collect()
}

/// An Application has reached the pin it is put back to.
fn arrives(world: &mut World, name: &str, progress: Progress) {
    let seen = world.seen.get_mut(name).expect("it is there");
    (seen.pin, seen.progress) = ("old".into(), progress);
    world.settle();
}

#[test]
fn row_02_rollback_goes_in_reverse_order_and_within_the_budget() {
    let mut world = world("maxConcurrent: 1", &["dev-a", "dev-b", "dev-c"]);
    world.fail("dev-b");
    world.settle();
    assert_eq!(going_back(&world), ["dev-c"]);
    arrives(&mut world, "dev-c", Progress::UnderWay);
    assert_eq!(going_back(&world), ["dev-c"]);
    arrives(&mut world, "dev-c", Progress::Done);
    assert_eq!(going_back(&world), ["dev-b", "dev-c"], "who is back is kept there");
    arrives(&mut world, "dev-b", Progress::Done);
    arrives(&mut world, "dev-a", Progress::Done);
    assert_eq!((world.state(0), world.status().state.clone()), (PhaseState::RolledBack, PhaseState::Failed));
    assert_eq!(going_back(&world), ["dev-a", "dev-b", "dev-c"]);
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!(failure.rolled_back, ["dev-c", "dev-b", "dev-a"]);
}

#[test]
fn nothing_is_put_back_before_that_is_stored() {
    let mut world = world("", &["dev-a", "dev-b"]);
    world.fail("dev-b");
    let decision = world.act();
    assert!(decision.gates.values().all(|gate| !gate.is_open()));
    world.tick();
    assert_eq!(going_back(&world).len(), 2);
}

#[test]
fn row_02_who_has_no_good_pin_is_left_as_it_is_and_named() {
    let mut world = world("", &["dev-a", "dev-b"]);
    world.seen.get_mut("dev-a").expect("it is there").good = None;
    world.fail("dev-b");
    world.settle();
    assert_eq!(going_back(&world), ["dev-b"]);
    assert!(!world.look().gates["dev-a"].is_open());
    arrives(&mut world, "dev-b", Progress::Done);
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!(
        (failure.not_rolled_back, failure.rolled_back),
        (vec!["dev-a".to_owned()], vec!["dev-b".to_owned()])
    );
    assert_eq!(world.state(0), PhaseState::Failed);
}

#[test]
fn who_was_not_changed_is_not_put_back() {
    let fields = "onFailure: {action: rollback}";
    let mut world = World::new(&phase("dev", "dev", fields), &["dev-a", "dev-b"]);
    world.seen.get_mut("dev-a").expect("it is there").progress = Progress::Done;
    world.settle();
    world.fail("dev-b");
    world.settle();
    assert_eq!(going_back(&world), ["dev-b"]);
}

#[test]
fn who_cannot_be_put_back_is_named_and_holds_up_nobody() {
    let mut world = world("maxConcurrent: 1", &["dev-a", "dev-b"]);
    world.fail("dev-b");
    world.settle();
    arrives(&mut world, "dev-b", Progress::Failed { reason: "SyncFailed".into(), message: "no".into() });
    assert_eq!(going_back(&world), ["dev-a", "dev-b"]);
    arrives(&mut world, "dev-a", Progress::Done);
    assert_eq!(world.state(0), PhaseState::Failed);
    assert_eq!(world.phase(0).failure.clone().expect("a failure").not_rolled_back, ["dev-b"]);
    arrives(&mut world, "dev-b", Progress::Done);
    assert_eq!(world.state(0), PhaseState::RolledBack);
}

#[test]
fn row_02_what_was_put_back_is_not_tried_again_until_there_is_something_new() {
    let mut world = world("", &["dev-a"]);
    world.fail("dev-a");
    world.settle();
    arrives(&mut world, "dev-a", Progress::Done);
    world.requests.retry = Some("1".into());
    world.requests.advance = Some("1".into());
    let decision = world.tick();
    assert_eq!(decision.notices.iter().filter(|notice| notice.reason == "RequestRefused").count(), 2);
    world.settle();
    assert_eq!(world.state(0), PhaseState::RolledBack);
    world.rollout = "2-a-c".into();
    world.seen.insert("dev-a".into(), seen(Progress::NotStarted));
    world.settle();
    assert_eq!((world.state(0), world.open()), (PhaseState::Deploying, vec!["dev-a".to_owned()]));
}

#[test]
fn row_02_rollback_of_all_goes_through_the_phases_from_the_last_to_the_first() {
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.deploy();
    assert_eq!(world.status().state, PhaseState::Complete);
    world.requests.rollback_all = Some("1".into());
    world.settle();
    assert_eq!(going_back(&world), ["prod-a"]);
    arrives(&mut world, "prod-a", Progress::Done);
    assert_eq!(going_back(&world), ["dev-a", "prod-a"]);
    arrives(&mut world, "dev-a", Progress::Done);
    assert_eq!((world.state(0), world.state(1)), (PhaseState::RolledBack, PhaseState::RolledBack));
    assert_eq!(world.status().state, PhaseState::Failed);
    let entry = &world.phase(0).applications[0];
    assert_eq!((entry.state.clone(), entry.pin.as_str()), (PhaseApplicationState::RolledBack, "old"));
}

#[test]
fn rollback_by_request_is_of_the_present_phase_only() {
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.settle();
    world.see("dev-a", Progress::Done);
    world.settle();
    world.see("prod-a", Progress::UnderWay);
    world.settle();
    world.requests.rollback = Some("1".into());
    world.settle();
    assert_eq!(going_back(&world), ["prod-a"]);
    assert_eq!(world.state(0), PhaseState::Complete);
}

#[test]
fn where_nothing_has_a_good_state_a_rollback_is_a_stop_and_can_be_tried_again() {
    let fields = format!("postHooks: [{}]\nonFailure: {{action: rollback}}", hook("after", ""));
    let first_rollout = || {
        let mut world = World::new(&phase("dev", "dev", &fields), &["dev-a", "dev-b"]);
        world.seen.values_mut().for_each(|one| one.good = None);
        world.deploy();
        world.answer("after", broken());
        world.settle();
        world
    };
    let mut world = first_rollout();
    let failure = world.phase(0).failure.clone().expect("a failure");
    assert_eq!((world.state(0), failure.action.as_str()), (PhaseState::Failed, "stop"));
    assert_eq!(failure.not_rolled_back, ["dev-a", "dev-b"], "people are told");
    assert!(failure.remedy.contains("`baton appset retry`"), "{}", failure.remedy);
    assert_eq!(world.open(), ["dev-a", "dev-b"], "they are left as they are");
    world.requests.retry = Some("1".into());
    world.settle();
    world.pass("after");
    assert_eq!((world.state(0), world.phase(0).failure.clone()), (PhaseState::Complete, None));
    let mut passed_over = first_rollout();
    passed_over.requests.advance = Some("1".into());
    passed_over.settle();
    assert_eq!(passed_over.status().current_phase, 1);
}

#[test]
fn rollback_of_all_where_nothing_has_a_good_state_only_stops_the_open_phase() {
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.seen.values_mut().for_each(|one| one.good = None);
    world.settle();
    world.see("dev-a", Progress::Done);
    world.settle();
    world.see("prod-a", Progress::UnderWay);
    world.settle();
    world.requests.rollback_all = Some("1".into());
    world.settle();
    assert_eq!((world.state(0), world.state(1)), (PhaseState::Complete, PhaseState::Failed));
    let failure = world.phase(1).failure.clone().expect("a failure");
    let nobody = vec!["prod-a".to_owned(), "dev-a".to_owned()];
    assert_eq!((failure.action.as_str(), failure.not_rolled_back), ("stop", nobody), "all are told of");
}

#[test]
fn who_does_not_get_back_in_time_gives_way_to_the_others_and_is_named() {
    let more = "maxConcurrent: 1\nprogressDeadline: 1m";
    let mut world = world(more, &["dev-a", "dev-b", "dev-c"]);
    world.wait(Duration::from_secs(30));
    world.fail("dev-a");
    world.settle();
    assert_eq!(going_back(&world), ["dev-c"]);
    arrives(&mut world, "dev-c", Progress::UnderWay);
    let told = |world: &World| {
        world.look().waits.into_iter().map(|wait| (wait.object, wait.message)).collect::<Vec<_>>()
    };
    let first = ("dev-c".to_owned(), "dev-c is being put back".to_owned());
    assert_eq!(told(&world)[0], first, "whose turn it is comes first");
    assert_eq!(told(&world)[1].1, "dev-a is put back when its turn comes");
    world.wait(Duration::from_secs(59));
    let wake = world.settle().wake.expect("it is looked at again");
    assert_eq!((going_back(&world), wake), (vec!["dev-c".to_owned()], world.now + Duration::from_secs(1)));
    world.wait(Duration::from_secs(1));
    world.settle();
    assert_eq!(going_back(&world), ["dev-b", "dev-c"], "it is kept where it goes, and gives way");
    assert_eq!(world.phase(0).failure.clone().expect("a failure").not_rolled_back, ["dev-c"]);
    assert!(told(&world).iter().any(|(_, message)| message == "dev-c was not put back in time"));
    // The time of the next begins with its turn.
    world.wait(Duration::from_secs(59));
    world.settle();
    assert_eq!(going_back(&world), ["dev-b", "dev-c"]);
    arrives(&mut world, "dev-b", Progress::Done);
    arrives(&mut world, "dev-a", Progress::Done);
    assert_eq!(world.state(0), PhaseState::Failed);
    arrives(&mut world, "dev-c", Progress::Done);
    assert_eq!(world.state(0), PhaseState::RolledBack);
}

#[test]
fn no_time_runs_for_a_way_back_that_people_hold() {
    let mut world = world("progressDeadline: 1m", &["dev-a", "dev-b"]);
    world.fail("dev-a");
    world.settle();
    arrives(&mut world, "dev-a", Progress::AwaitingApproval("a Namespace is to be deleted".into()));
    arrives(&mut world, "dev-b", Progress::Done);
    world.wait(Duration::from_secs(3600));
    world.settle();
    assert_eq!(world.state(0), PhaseState::RollingBack);
    let mut unpaused = world.clone();
    arrives(&mut unpaused, "dev-a", Progress::UnderWay);
    assert_eq!(unpaused.state(0), PhaseState::Failed, "nobody holds it any more");
    let mut paused = self::world("progressDeadline: 1m", &["dev-a"]);
    paused.fail("dev-a");
    paused.settle();
    paused.hold = Hold::Paused;
    paused.wait(Duration::from_secs(3600));
    paused.settle();
    assert_eq!(paused.state(0), PhaseState::RollingBack);
}

#[test]
fn a_way_back_is_not_aborted_half_done() {
    let phases = phase("dev", "dev", "") + &phase("prod", "prod", "maxConcurrent: 1");
    let mut world = World::new(&phases, &["dev-a", "prod-a", "prod-b"]);
    world.deploy();
    world.requests.rollback_all = Some("1".into());
    world.settle();
    let why = refusal(Ask::Abort, world.status()).expect("it is refused before it is asked");
    assert!(why.contains("`baton appset skip`"), "{why}");
    let before = world.status().phases.clone();
    world.requests.abort = Some("1".into());
    let decision = world.settle();
    assert_eq!(decision.notices.iter().filter(|notice| notice.reason == "RequestRefused").count(), 1);
    assert_eq!(world.status().phases, before);
    for name in ["prod-b", "prod-a", "dev-a"] {
        arrives(&mut world, name, Progress::Done);
    }
    assert_eq!([world.state(0), world.state(1)], [PhaseState::RolledBack, PhaseState::RolledBack]);
}

#[test]
fn who_was_put_back_from_what_is_known_as_soon_as_that_is_stored() {
    let mut world = world("", &["dev-a"]);
    world.fail("dev-a");
    assert_eq!(world.tick().back, [], "nothing follows from what is not stored");
    let back = [("dev-a".into(), "old".into())];
    assert_eq!(world.look().back, back);
    arrives(&mut world, "dev-a", Progress::Done);
    assert_eq!(world.look().back, back);
    world.rollout = "2-a-c".into();
    assert_eq!(world.tick().back, back, "also when the next rollout begins");
    assert_eq!(world.tick().back, []);
}
