//! When calls are made, made again, and ended.

use baton_api::phase_status::{HookState, PhaseState};
use baton_hooks::Verdict;
use serde_json::json;

use super::faults::Fault;
use super::script::broken;
use super::world::{World, hook, phase};

async fn with_hooks(names: &[&str]) -> World {
    let hooks: Vec<_> = names.iter().map(|name| hook(name)).collect();
    World::new(json!([phase("dev", json!({"preHooks": hooks}))]), &["dev-1"]).await
}

#[tokio::test(start_paused = true)]
async fn the_intent_is_stored_before_the_call() {
    let world = with_hooks(&["a", "b"]).await;
    let ruling = world.round().await.expect("a round");
    world.breathe().await;
    assert!(ruling.again && world.script.made().is_empty(), "it was only just written");
    assert_eq!(world.status().phases[0].pre_hooks[0].state, HookState::Running);
    world.settle().await;
    assert_eq!(world.script.names(), ["a"], "the script saw the intent");
    world.script.answer("a", Verdict::Success);
    world.breathe().await;
    assert_eq!(world.queue.depth(), 1, "the set is to be looked at");
    world.settle().await;
    assert_eq!(world.script.names(), ["a", "b"]);
    assert_eq!(world.status().phases[0].pre_hooks[0].state, HookState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_between_intent_and_call_it_is_called_with_the_same_number_and_key() {
    let mut world = with_hooks(&["a"]).await;
    world.round().await.expect("a round");
    world.crash();
    world.settle().await;
    let first = world.script.made();
    assert_eq!((first.len(), first[0].attempt), (1, 1));
    // And once more, now in the middle of the call.
    world.crash();
    world.breathe().await;
    assert_eq!(world.script.dropped(), 1, "whoever dies takes his calls along");
    world.settle().await;
    let second = world.script.made();
    assert_eq!((second.len(), second[1].attempt, &second[1].key), (2, 1, &first[0].key));
    assert_eq!(second[1].key, world.status().phases[0].pre_hooks[0].idempotency_key);
}

#[tokio::test(start_paused = true)]
async fn what_is_recorded_as_passed_is_never_called_again() {
    let mut world = with_hooks(&["a", "b"]).await;
    world.round().await.expect("a round");
    let old = world.set();
    world.settle().await;
    world.script.answer("a", Verdict::Success);
    world.breathe().await;
    world.settle().await;
    assert_eq!(world.script.names(), ["a", "b"]);
    // Neither where a cache still shows the intent,
    for _ in 0..3 {
        let ruling = world.round_of(&old, true).await.expect("a round");
        world.breathe().await;
        assert!(ruling.set.is_some(), "the caller is told what it does not know");
    }
    assert_eq!(world.script.names(), ["a", "b"]);
    // nor in another life, whatever the cache shows there.
    world.crash();
    world.round_of(&old, true).await.expect("a round");
    world.breathe().await;
    world.settle().await;
    assert_eq!(world.script.names(), ["a", "b", "b"], "only what was under way");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_only_a_cache_shows_calls_nobody() {
    let mut world = with_hooks(&["a"]).await;
    world.round().await.expect("a round");
    let intended = world.set();
    // Another leader makes the call and records it. This one knows nothing of that but that the set was once newer.
    let other = std::mem::replace(
        &mut world.phases,
        super::world::phases(
            &world.wire,
            &world.settings,
            std::sync::Arc::new(world.script.clone()),
            &world.queue,
        ),
    );
    world.settle().await;
    world.script.answer("a", Verdict::Success);
    world.breathe().await;
    world.settle().await;
    let made = world.script.made().len();
    world.phases = other;
    let mut seen = intended.clone();
    let version = |set: &baton_api::ApplicationSet| set.metadata.resource_version.clone().unwrap_or_default();
    let between = version(&intended).parse::<u64>().expect("a number") + 1;
    seen.metadata.resource_version = Some(between.to_string());
    world.round_of(&seen, true).await.expect("a round");
    world.breathe().await;
    world.settle().await;
    assert_eq!(world.script.made().len(), made);
    assert_eq!(world.state(0), PhaseState::Deploying);
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_nothing_is_called_and_the_result_is_not_lost() {
    let world = with_hooks(&["a", "b"]).await;
    world.settle().await;
    world.wire.fail(|_, call| {
        let status = call.target().2 == "status";
        status.then(|| Fault::Refused(409, "the object has been modified".to_owned()))
    });
    world.script.answer("a", Verdict::Success);
    world.breathe().await;
    for _ in 0..3 {
        let ruling = world.round().await.expect("a round");
        world.breathe().await;
        assert!(ruling.again && ruling.gates.values().all(|ruled| !ruled.gate.is_open()));
        assert_eq!(world.script.names(), ["a"]);
    }
    world.wire.heal();
    world.settle().await;
    assert_eq!(world.script.names(), ["a", "b"], "what came of the first is stored at last");
    assert_eq!(world.status().phases[0].pre_hooks[0].state, HookState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_was_lost_is_found_out() {
    let world = with_hooks(&["a"]).await;
    world.wire.fail(|_, call| (call.target().2 == "status").then(|| Fault::Done(504, "too late".to_owned())));
    let old = world.set();
    world.round_of(&old, true).await.expect_err("it is not known what became of it");
    world.wire.heal();
    let ruling = world.round_of(&old, true).await.expect("a round");
    assert!(ruling.set.is_some());
    world.breathe().await;
    assert_eq!(world.script.names(), ["a"], "it was stored, and is followed");
    world.settle().await;
    assert_eq!(world.script.made()[0].attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn forgotten_sets_have_their_calls_ended() {
    let world = with_hooks(&["a"]).await;
    world.settle().await;
    assert_eq!(world.phases.under_way(), 1);
    world.phases.forget(&world.key);
    world.breathe().await;
    assert_eq!((world.phases.under_way(), world.script.dropped()), (0, 1));
    assert_eq!(world.script.answer("a", Verdict::Success), 0, "nobody hears it");
    assert_eq!(world.queue.depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_rollout_ends_the_calls_of_the_old_one_and_takes_no_result_of_it() {
    let mut world = with_hooks(&["a"]).await;
    world.settle().await;
    let first = world.script.made()[0].key.clone();
    world.begin_run(2, "p2");
    world.settle().await;
    let made = world.script.made();
    assert_eq!((made.len(), world.script.dropped()), (2, 1));
    assert_ne!(made[1].key, first);
    assert_eq!(world.status().phases[0].pre_hooks[0].state, HookState::Running);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_when_the_hook_says_so() {
    let mut again = hook("a");
    again["retry"] = json!({"interval": "30s", "deadline": "5m"});
    let world = World::new(json!([phase("dev", json!({"preHooks": [again]}))]), &["dev-1"]).await;
    world.settle().await;
    world.script.answer("a", broken());
    world.breathe().await;
    let ruling = world.settle().await;
    let wake = ruling.wake.expect("a time");
    assert!(wake > world.settings.clock.now());
    world.pass(31).await;
    world.settle().await;
    let made = world.script.made();
    assert_eq!((made.len(), made[1].attempt, &made[1].key), (2, 2, &made[0].key));
    world.script.answer("a", Verdict::Success);
    world.breathe().await;
    world.settle().await;
    assert_eq!(world.state(0), PhaseState::Deploying);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_breaks_off_is_a_failure_and_not_a_wait_without_end() {
    let world = with_hooks(&["panics"]).await;
    world.settle().await;
    let result = world.status().phases[0].pre_hooks[0].clone();
    assert_eq!(result.state, HookState::Failed);
    assert!(result.message.contains("broke off"), "{}", result.message);
    assert_eq!(world.phases.under_way(), 0);
}
