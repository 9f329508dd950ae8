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

#[test]
fn nothing_is_kept_of_a_set_that_never_had_phases() {
    let mut world = World::new(&phase("dev", "dev", ""), &["dev-a"]);
    world.removed = Some(None);
    let decision = world.tick();
    assert_eq!((decision.status, world.open().len()), (None, 1));
}
