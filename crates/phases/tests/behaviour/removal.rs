//! The field is removed while a rollout is under way.

use baton_api::phase_status::PhaseState;
use baton_phases::Progress;
use baton_phases::forecast::removal;
use baton_phases::mirror::annotations;

use crate::world::{World, hook, phase};

fn world(kept: bool) -> World {
    let fields = format!("checks: [{}]", hook("c", ""));
    let phases = phase("dev", "dev", &fields) + &phase("prod", "prod", "") + &phase("late", "late", "");
    let mut world = World::new(&phases, &["dev-a", "dev-b", "late-a", "prod-a"]);
    world.settle();
    world.see("dev-a", Progress::Done);
    world.settle();
    world.removed = Some(kept.then(|| world.plan.clone()));
    world
}

#[test]
fn row_44_the_open_phase_is_finished_with_its_checks_and_then_everybody_goes() {
    let mut world = world(true);
    let told = removal(world.stored.as_ref(), &world.targets);
    assert_eq!((told.finishes.as_deref(), told.at_once), (Some("dev"), 2));
    let decision = world.settle();
    assert_eq!(world.open(), ["dev-a", "dev-b"]);
    assert!(decision.notices[0].message.contains("2 Applications go at once"), "{:?}", decision.notices);
    world.see("dev-b", Progress::Done);
    world.settle();
    assert_eq!(world.calling(), ["c"]);
    assert_eq!(world.open(), ["dev-a", "dev-b"]);
    world.answer("c", baton_hooks::Verdict::Success);
    let decision = world.tick();
    assert_eq!(decision.status, None);
    assert_eq!(decision.good.len(), 2);
    assert_eq!(world.open().len(), 4);
    let present = [("applicationset.argoproj.io/phase-clusters".to_owned(), "0".to_owned())].into();
    assert_eq!(annotations(&[], &present).into_values().collect::<Vec<_>>(), [None], "mirrors go");
}

#[test]
fn row_44_where_the_phases_are_not_known_any_more_its_applications_are_waited_for() {
    let mut world = world(false);
    world.settle();
    assert_eq!(world.open(), ["dev-a", "dev-b"]);
    world.see("dev-b", Progress::Done);
    world.settle();
    assert_eq!((world.open().len(), world.stored.clone()), (4, None));
}

#[test]
fn row_44_abort_ends_it_sooner() {
    let mut world = world(true);
    world.settle();
    world.requests.abort = Some("1".into());
    world.settle();
    assert_eq!((world.open().len(), world.stored.clone()), (4, None));
}

#[test]
fn row_44_a_rollout_that_has_ended_or_failed_has_no_open_phase() {
    let mut world = world(true);
    world.removed = None;
    world.fail("dev-b");
    world.settle();
    assert_eq!(world.state(0), PhaseState::Failed);
    world.removed = Some(None);
    world.settle();
    assert_eq!(world.open().len(), 4);
}

/// The check of the open phase fails after the field was removed.
fn failed_since(action: &str) -> World {
    let fields = format!("checks: [{}]\nonFailure: {{action: {action}}}", hook("c", ""));
    let phases = phase("dev", "dev", &fields) + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.deploy();
    world.removed = Some(Some(world.plan.clone()));
    world.settle();
    world.break_down("c");
    world
}

fn is_back(world: &World) -> bool {
    matches!(world.look().gates["dev-a"], baton_phases::Gate::Back { .. })
}

#[test]
fn row_44_what_fails_after_the_removal_is_put_back_and_stays_so() {
    let mut world = failed_since("rollback");
    assert_eq!((world.state(0), is_back(&world)), (PhaseState::RollingBack, true));
    // To put back begins a run, whose content is the same.
    world.seen.get_mut("dev-a").expect("it is there").pin = "old".into();
    world.see("dev-a", Progress::Done);
    let decision = world.settle();
    assert_eq!((world.state(0), is_back(&world)), (PhaseState::RolledBack, true));
    assert_eq!(world.open(), ["dev-a"], "prod is not changed to what has just failed");
    let told = &decision.notices[0].message;
    assert!(told.contains("`baton appset advance`") && told.contains("1 Applications are held"), "{told}");
}

#[test]
fn row_44_who_is_held_by_what_failed_after_the_removal_is_let_go_by_people_and_by_something_newer() {
    use baton_phases::{Ask, refusal};
    type Turn = fn(&mut World);
    let lets_go: [Turn; 3] = [
        |world| world.requests.advance = Some("1".into()),
        |world| world.requests.abort = Some("1".into()),
        |world| world.rollout = "2-a-c".into(),
    ];
    for action in ["stop", "rollback"] {
        for turn in lets_go {
            let mut world = failed_since(action);
            world.seen.get_mut("dev-a").expect("it is there").pin = "old".into();
            world.see("dev-a", Progress::Done);
            world.settle();
            assert!(!world.open().contains(&"prod-a".to_owned()), "{action}");
            assert_eq!([Ask::Advance, Ask::Abort].map(|ask| refusal(ask, world.status())), [None, None]);
            turn(&mut world);
            world.settle();
            assert_eq!((world.open().len(), world.stored.clone()), (2, None), "{action}");
        }
    }
}

#[test]
fn row_44_a_commit_in_the_middle_of_what_is_finished_does_not_let_go_who_it_fails_for() {
    let fields = format!("checks: [{}]", hook("c", ""));
    let phases = phase("dev", "dev", &fields) + &phase("prod", "prod", "");
    let mut world = World::new(&phases, &["dev-a", "prod-a"]);
    world.deploy();
    world.removed = Some(Some(world.plan.clone()));
    world.settle();
    world.rollout = "2-a-c".into();
    world.settle();
    assert_eq!(world.status().amended, "2", "it is of the phase that is finished");
    // As the identity follows from that.
    world.rollout = "1-a-b".into();
    world.break_down("c");
    assert_eq!((world.state(0), world.open()), (PhaseState::Failed, vec!["dev-a".to_owned()]));
}

#[test]
fn phases_that_are_written_again_forget_that_they_were_removed() {
    let mut world = failed_since("stop");
    world.removed = None;
    world.rollout = "2-a-c".into();
    world.settle();
    assert_eq!(world.status().granted.len(), 0);
    world.fail("dev-a");
    world.settle();
    world.removed = Some(None);
    world.settle();
    assert_eq!(world.open().len(), 2, "it had failed before");
}

#[test]
fn nothing_is_kept_of_a_set_that_never_had_phases() {
    let mut world = World::new(&phase("dev", "dev", ""), &["dev-a"]);
    world.removed = Some(None);
    let decision = world.tick();
    assert_eq!((decision.status, world.open().len()), (None, 1));
}
