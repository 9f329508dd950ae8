//! The field is removed in the middle of a rollout.

use baton_api::phase_status::PhaseState;
use baton_hooks::Verdict;
use baton_phases::{Gate, Progress};
use serde_json::json;

use super::world::{World, hook, phase};

#[tokio::test(start_paused = true)]
async fn the_open_phase_is_finished_as_it_was_planned_and_then_everybody_goes() {
    let first = json!({"preHooks": [hook("before")], "postHooks": [hook("after")]});
    let phases = json!([phase("dev", first), phase("prod", json!({}))]);
    let mut world = World::new(phases, &["dev-1", "prod-1"]).await;
    world.settle().await;
    assert_eq!(
        world.objects("configmaps").iter().filter(|map| map["data"]["strategy.json"].is_string()).count(),
        1
    );
    world.remove_phases().await;
    let ruling = world.settle().await;
    assert!(ruling.notices.iter().any(|notice| notice.reason == "PhasesRemoved"), "{:?}", ruling.notices);
    assert!(ruling.gates.values().all(|ruled| !ruled.gate.is_open()));
    // Also by somebody who has only what is stored.
    world.crash();
    world.settle().await;
    world.script.answer("before", Verdict::Success);
    world.breathe().await;
    let ruling = world.settle().await;
    assert!(ruling.gates["dev-1"].gate.is_open() && !ruling.gates["prod-1"].gate.is_open());
    world.see("dev-1", Progress::Done);
    world.settle().await;
    assert_eq!(world.state(0), PhaseState::PostHooks);
    assert_eq!(world.script.names(), ["before", "before", "after"], "the second is of another life");
    world.script.answer("after", Verdict::Success);
    world.breathe().await;
    let ruling = world.settle().await;
    assert!(ruling.gates.is_empty() || ruling.gates.values().all(|it| it.gate == Gate::Open { phase: 0 }));
    let set = world.set();
    assert!(set.status.phases.is_empty() && set.metadata.annotations.unwrap_or_default().is_empty());
    let left: Vec<_> = world
        .objects("configmaps")
        .into_iter()
        .filter(|map| map["metadata"]["namespace"] == "argocd")
        .collect();
    assert!(left.iter().all(|map| map["metadata"]["labels"]["baton.dev/phases"].is_null()), "{left:?}");
    let good = world.objects("controllerrevisions.apps");
    assert_eq!(good.len(), 1, "what has proved good is kept");
    world.requests();
    world.round().await.expect("a round");
    assert_eq!(world.requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_a_crash_left_behind_is_cleared_by_the_next() {
    let mut world = World::new(json!([phase("dev", json!({}))]), &["dev-1"]).await;
    world.deploy().await;
    world.remove_phases().await;
    // The status is cleared, and then every further request fails.
    world.wire.fail({
        let mut cleared = false;
        move |_, call| {
            let after = cleared;
            cleared |= call.target().2 == "status";
            after.then(|| super::faults::Fault::Refused(500, "no".to_owned()))
        }
    });
    for _ in 0..5 {
        let _ = world.round().await;
    }
    assert!(world.set().status.phases.is_empty());
    world.wire.heal();
    world.crash();
    world.settle().await;
    assert!(world.set().metadata.annotations.unwrap_or_default().is_empty());
    let left = world.objects("configmaps").into_iter();
    assert_eq!(left.filter(|map| map["metadata"]["labels"]["baton.dev/phases"] == "web").count(), 0);
}
