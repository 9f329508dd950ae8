//! Hooks: when they run, when they go, and how a sync is stopped.

use baton_api::application_status::{HealthCode, OperationPhase};
use baton_api::names::{baton, resource};
use baton_api::object::Object;
use baton_sync::hooks::is_held;
use serde_json::{Value, json};

use crate::world::{Pass, World, annotated, hook, object};
use crate::{failed, succeeded, waits};

fn policy(hook: Value, policy: &str) -> Value {
    annotated(hook, resource::HOOK_DELETE_POLICY, policy)
}

#[test]
fn hooks_run_before_and_after_and_are_waited_for() {
    let mut world =
        World::new(vec![hook("before", "PreSync"), object("Deployment", "web"), hook("after", "PostSync")]);
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/before"));
    assert!(is_held(world.named("before").expect("the hook")));
    world.tick();
    assert_eq!(world.pass(), waits("waiting for healthy state of apps/Deployment/web"));
    assert!(!is_held(world.named("before").expect("the hook")), "its outcome is known");
    world.tick();
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/after"));
    world.tick();
    assert_eq!(world.pass(), succeeded("no more tasks"));
    assert_eq!(
        world.results(),
        [
            "before Synced Succeeded is Healthy",
            "web Synced Succeeded is Healthy",
            "after Synced Succeeded is Healthy"
        ]
    );
    assert!(world.has("before") && world.has("after"), "hooks stay until they are created anew");
}

#[test]
fn a_hook_without_health_has_done_its_work_by_being_there() {
    let manifest = annotated(object("ConfigMap", "c"), resource::HOOK, "PreSync");
    let mut world = World::new(vec![manifest, object("ConfigMap", "d")]);
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.results()[0], "c Synced Succeeded c created");
}

#[test]
fn hooks_are_deleted_as_their_policy_says_once_the_whole_sync_succeeded() {
    let mut world = World::new(vec![
        policy(hook("gone", "PreSync"), "HookSucceeded"),
        policy(hook("kept", "PreSync"), "HookFailed"),
        object("ConfigMap", "c"),
    ]);
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/gone and 1 more hooks"));
    world.tick();
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert!(!world.has("gone") && world.has("kept"));
}

#[test]
fn a_hook_left_over_is_deleted_before_it_runs_again() {
    let mut world =
        World::new(vec![hook("job", "PreSync"), object("ConfigMap", "c")]).with_live(hook("job", "PreSync"));
    let old = world.named("job").expect("the old hook").uid().to_owned();
    assert_eq!(world.pass(), waits("waiting for deletion of hook batch/Job/job"));
    world.tick();
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/job"));
    assert_ne!(world.named("job").expect("the new hook").uid(), old);
}

#[test]
fn a_held_hook_left_over_is_let_go_of_first() {
    let mut left = hook("job", "PreSync");
    left["metadata"]["finalizers"] = json!([resource::HOOK_FINALIZER]);
    let mut world = World::new(vec![hook("job", "PreSync")]).with_live(left);
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert_eq!(world.told(), ["-job", "job"]);
}

#[test]
fn a_hook_that_is_not_deleted_before_is_applied_over() {
    let manifest = || policy(hook("job", "PreSync"), "HookFailed");
    let mut world = World::new(vec![manifest()]).with_live(manifest());
    assert_eq!(world.pass(), succeeded("no more tasks"));
    assert_eq!(world.told(), ["job"], "its stamp is new");
}

#[test]
fn a_hook_of_two_phases_runs_twice() {
    let mut world = World::new(vec![hook("job", "PreSync,PostSync"), object("ConfigMap", "c")]);
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert_eq!(world.told(), ["job", "c", "-job", "job"]);
}

#[test]
fn a_made_up_name_is_the_same_through_the_operation() {
    let mut manifest = hook("", "PreSync");
    manifest["metadata"] = json!({"generateName": "job-", "annotations": {resource::HOOK: "PreSync"}});
    let mut world = World::new(vec![manifest]);
    assert_eq!(
        world.pass(),
        waits("waiting for completion of hook batch/Job/job-0123456-presync-1767261600")
    );
    world.tick();
    assert_eq!(world.pass(), succeeded("no more tasks"));
    let live = world.named("job-0123456-presync-1767261600").expect("the hook");
    assert_eq!(
        live.annotation(resource::TRACKING_ID),
        Some("a:batch/Job:shop/job-0123456-presync-1767261600")
    );
    assert_eq!(live.annotation(baton::OPERATION), Some("2026-01-01T10:00:00Z/0/PreSync"));
}

#[test]
fn a_failed_hook_ends_the_sync_after_sync_fail_hooks_ran() {
    let mut world = World::new(vec![
        policy(hook("before", "PreSync"), "HookFailed"),
        object("ConfigMap", "c"),
        hook("sorry", "SyncFail"),
    ]);
    world.outcomes.insert("before".to_owned(), HealthCode::Degraded);
    world.pass();
    world.tick();
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/sorry"));
    assert!(!world.has("before"), "deleted by its policy");
    world.tick();
    assert_eq!(world.pass(), failed("one or more synchronization tasks completed unsuccessfully"));
    assert!(!world.has("c"));
    assert_eq!(world.results(), ["before Synced Failed is Degraded", "sorry Synced Succeeded is Healthy"]);
}

#[test]
fn sync_fail_hooks_do_not_run_when_all_is_well() {
    let mut world = World::new(vec![object("ConfigMap", "c"), hook("sorry", "SyncFail")]);
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["c"]);
}

#[test]
fn hooks_are_left_out_of_selective_and_plain_applies() {
    let manifests = || vec![hook("before", "PreSync"), object("ConfigMap", "c"), object("ConfigMap", "d")];
    let mut plain = World::new(manifests());
    plain.sync().sync_strategy = serde_json::from_value(json!({"apply": {}})).expect("a strategy");
    assert_eq!(plain.pass(), succeeded("all tasks run"));
    assert_eq!(plain.told(), ["c", "d"]);
    let mut selective = World::new(manifests());
    selective.sync().resources =
        serde_json::from_value(json!([{"kind": "ConfigMap", "name": "d"}])).expect("resources");
    assert_eq!(selective.pass(), succeeded("all tasks run"));
    assert_eq!(selective.told(), ["d"]);
}

#[test]
fn a_retry_runs_hooks_anew_and_a_restart_does_not() {
    let mut world = World::new(vec![hook("before", "PreSync"), object("ConfigMap", "c")]);
    world.pass();
    world.tick();
    world.pass();
    assert_eq!(world.told(), ["before", "c"]);
    // As the controller does before it tries again.
    world.state.sync_result = None;
    world.state.retry_count = 1;
    world.state.phase = OperationPhase::Running;
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["before", "c", "-before", "before"]);
}

#[test]
fn a_hook_deleted_while_it_runs_is_held_until_its_outcome_is_known() {
    let mut world = World::new(vec![hook("before", "PreSync"), object("ConfigMap", "c")]);
    world.pass();
    world.edit("before", |live| live["metadata"]["deletionTimestamp"] = json!("2026-01-01T10:00:05Z"));
    world.tick();
    assert_eq!(world.pass(), succeeded("all tasks run"));
}

#[test]
fn a_hook_whose_health_cannot_be_told_fails() {
    let mut world = World::new(vec![hook("before", "PreSync")]);
    world.pass();
    world.edit("before", |live| live["status"]["health"] = json!("Broken"));
    assert_eq!(world.pass(), failed("one or more synchronization tasks completed unsuccessfully"));
    let told = "before Synced Error failed to get resource health: the health check is broken";
    assert_eq!(world.results(), [told]);
}

#[test]
fn termination_stops_hooks_and_leaves_resources_alone() {
    let mut world = World::new(vec![hook("before", "PreSync"), object("ConfigMap", "c")]);
    world.pass();
    world.state.phase = OperationPhase::Terminating;
    assert_eq!(world.pass(), failed("Operation terminated"));
    assert!(!world.has("before") && !world.has("c"));
    assert_eq!(world.results(), ["before Synced Failed Terminated"]);
    world.tick();
    assert!(world.named("before").is_none(), "nothing holds it");
}

#[test]
fn termination_keeps_a_hook_that_has_just_ended() {
    let mut world = World::new(vec![hook("before", "PreSync"), object("ConfigMap", "c")]);
    world.pass();
    world.tick();
    world.state.phase = OperationPhase::Terminating;
    assert_eq!(world.pass(), failed("Operation terminated"));
    assert!(world.has("before"));
    assert!(!is_held(world.named("before").expect("the hook")));
    assert_eq!(world.results(), ["before Synced Succeeded is Healthy"]);
}

#[test]
fn termination_takes_over_a_hook_that_was_never_noted() {
    let mut world = World::new(vec![hook("before", "PreSync")]);
    world.crash_after = Some(1);
    assert_eq!(world.pass(), Pass::Crashed);
    assert!(world.has("before") && world.results().is_empty());
    world.state.phase = OperationPhase::Terminating;
    assert_eq!(world.pass(), failed("Operation terminated"));
    assert!(!world.has("before"));
}

#[test]
fn a_lagging_cache_does_not_pass_an_old_hook_off_as_the_new_one() {
    let mut world =
        World::new(vec![hook("job", "PreSync"), object("ConfigMap", "c")]).with_live(hook("job", "PreSync"));
    world.pass();
    world.tick();
    world.pass();
    assert_eq!(world.told(), ["-job", "job"]);
    let mut old = Value::clone(world.named("job").expect("the hook"));
    old["metadata"]["annotations"][baton::OPERATION] = json!("2025-12-01T00:00:00Z/0/PreSync");
    old["status"]["health"] = json!("Healthy");
    world.cached = Some(old);
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/job"));
}

#[test]
fn an_operation_that_begins_in_the_same_second_runs_hooks_again() {
    let mut world = World::new(vec![annotated(object("ConfigMap", "c"), resource::HOOK, "PreSync")]);
    assert_eq!(world.pass(), succeeded("no more tasks"));
    world.ask(world.state.operation.sync.clone().expect("a sync"));
    assert_eq!(world.pass(), succeeded("no more tasks"));
    assert_eq!(world.told(), ["c", "-c", "c"]);
}

#[test]
fn an_old_hook_that_the_cache_does_not_show_is_not_taken_for_the_new_one() {
    let mut world = World::new(vec![hook("job", "PreSync")]).with_live(hook("job", "PreSync"));
    world.hidden.insert("job".to_owned());
    assert_eq!(world.pass(), waits("waiting for deletion of hook batch/Job/job"));
    world.tick();
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/job"));
    assert_eq!(world.told(), ["-job", "job"]);
}

#[test]
fn termination_does_not_delete_what_is_being_deleted() {
    let mut world = World::new(vec![hook("before", "PreSync")]);
    world.pass();
    world.edit("before", |live| {
        live["metadata"]["deletionTimestamp"] = json!("2026-01-01T10:00:05Z");
        live["metadata"]["finalizers"] = json!([resource::HOOK_FINALIZER, "somebody.else"]);
    });
    world.state.phase = OperationPhase::Terminating;
    assert_eq!(world.pass(), failed("Operation terminated"));
    assert_eq!(world.told(), ["before"]);
    assert!(!is_held(world.named("before").expect("the hook")));
}

#[test]
fn termination_stops_hooks_of_a_sync_that_is_no_longer_valid() {
    let mut world = World::new(vec![hook("before", "PreSync")]);
    world.pass();
    world.forbidden.insert("Job".to_owned());
    world.state.phase = OperationPhase::Terminating;
    assert_eq!(world.pass(), failed("Operation terminated"));
    assert!(!world.has("before"));
}

#[test]
fn termination_says_when_it_could_not_stop_a_hook() {
    let mut world = World::new(vec![hook("before", "PreSync")]);
    world.pass();
    world.undeletable.insert("before".to_owned());
    world.state.phase = OperationPhase::Terminating;
    let message = "Operation termination had errors".to_owned();
    assert_eq!(world.pass(), Pass::Ended { phase: OperationPhase::Error, message });
    assert_eq!(world.results(), ["before Synced Failed Failed to delete: not allowed"]);
}

#[test]
fn after_the_last_wave_there_is_no_pause() {
    let mut world = World::new(vec![object("ConfigMap", "c"), hook("after", "PostSync")]);
    world.drive();
    assert_eq!(world.pauses, 1, "after the sync and not after its hook");
}

#[test]
fn a_hook_without_a_namespace_is_found_again() {
    let manifest = || annotated(object("ClusterRole", "role"), resource::HOOK, "PreSync");
    let mut world = World::new(vec![manifest()]).with_live(manifest());
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert_eq!(world.told(), ["-role", "role"]);
}

#[test]
fn a_sync_that_becomes_invalid_leaves_no_hook_behind() {
    let mut world = World::new(vec![hook("before", "PreSync"), object("Service", "s")]);
    world.pass();
    world.forbidden.extend(["Job".to_owned(), "Service".to_owned()]);
    let reasons =
        ["batch:Job", ":Service"].map(|kind| format!("resource {kind} is not permitted in project default"));
    let (job, service) = (&reasons[0], &reasons[1]);
    assert_eq!(
        world.pass(),
        failed(&format!("one or more synchronization tasks are not valid: {service}; {job}"))
    );
    assert!(!world.has("before"));
    assert_eq!(
        world.results(),
        ["before Synced Failed Terminated".to_owned(), format!("s SyncFailed  {service}")]
    );
}
