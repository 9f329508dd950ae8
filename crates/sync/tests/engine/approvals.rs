//! The gate before deletions.

use baton_api::application_status::OperationPhase;
use baton_api::names::{application, resource};
use baton_api::object::Object;
use baton_api::operation::SyncOperation;
use baton_sync::GateScope;
use serde_json::{Value, json};

use crate::world::{Pass, World, annotated, hook, in_wave, object, our_manager, with_options};
use crate::{failed, succeeded, waits};

fn guarded(kind: &str, name: &str) -> Value {
    with_options(object(kind, name), "Prune=confirm")
}

fn approvals(pass: &Pass) -> Vec<&str> {
    match pass {
        Pass::Waits { approvals, .. } => approvals.iter().map(|key| key.name.as_str()).collect(),
        other => panic!("expected to wait: {other:?}"),
    }
}

fn message(pass: &Pass) -> &str {
    match pass {
        Pass::Waits { message, .. } | Pass::Ended { message, .. } => message,
        Pass::Crashed => "",
    }
}

/// One guarded object and one that is not, neither in the source any more.
fn two() -> World {
    World::new(vec![object("ConfigMap", "new")])
        .with_live(guarded("ConfigMap", "guarded"))
        .with_live(object("ConfigMap", "plain"))
}

#[test]
fn nothing_is_deleted_before_all_that_need_approval_have_it() {
    let mut world = two();
    let pass = world.drive();
    assert_eq!(message(&pass), "waiting for pruning confirmation of /ConfigMap/guarded");
    assert_eq!(approvals(&pass), ["guarded"]);
    assert!(world.told().is_empty(), "the wave waits as a whole");
    assert!(world.results().is_empty());
    world.approve();
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["-guarded", "-plain", "new"]);
}

#[test]
fn waves_without_deletions_go_on_before_the_gate() {
    let mut world =
        World::new(vec![in_wave(object("ConfigMap", "early"), -1), in_wave(object("ConfigMap", "late"), 1)])
            .with_live(guarded("ConfigMap", "old"));
    world.drive();
    assert_eq!(world.told(), ["early"]);
    world.approve();
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["early", "-old", "late"]);
}

#[test]
fn with_the_gate_of_a_wave_other_waves_are_pruned() {
    let mut world = World::new(vec![])
        .with_live(in_wave(object("ConfigMap", "first"), 2))
        .with_live(in_wave(guarded("ConfigMap", "second"), 1));
    let mut whole = world.clone();
    whole.drive();
    assert!(whole.told().is_empty(), "by default nothing goes");
    world.settings.gate = GateScope::Wave;
    assert_eq!(approvals(&world.drive()), ["second"]);
    assert_eq!(world.told(), ["-first"]);
}

#[test]
fn with_prunes_last_applies_are_not_held_up() {
    let mut world = two().with_options(&["PruneLast=true"]);
    world.drive();
    assert_eq!(world.told(), ["new"]);
    world.approve();
    assert_eq!(world.drive(), succeeded("all tasks run"));
}

#[test]
fn a_sync_that_does_not_prune_or_only_tells_never_waits() {
    let mut world = two();
    world.sync().prune = false;
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.results()[0], "guarded PruneSkipped Succeeded ignored (requires pruning)");
    let mut world = two();
    world.sync().dry_run = true;
    assert_eq!(world.pass(), succeeded("no more tasks"));
}

#[test]
fn one_object_approved_is_not_enough_for_two() {
    let mut world = two().with_live(guarded("ConfigMap", "other"));
    let pass = world.drive();
    assert_eq!(message(&pass), "waiting for pruning confirmation of /ConfigMap/guarded and 1 more resources");
    world.approve_object("guarded");
    assert_eq!(approvals(&world.pass()), ["other"]);
    assert!(world.told().is_empty());
    world.approve_object("other");
    assert_eq!(world.pass(), succeeded("all tasks run"));
}

#[test]
fn an_approval_taken_back_in_time_is_none() {
    let mut world = two().with_live(guarded("ConfigMap", "other"));
    world.approve_object("guarded");
    world.drive();
    world.edit("guarded", |live| {
        live["metadata"]["annotations"][resource::DELETION_APPROVED] = json!(null);
    });
    world.approve_object("other");
    assert_eq!(approvals(&world.pass()), ["guarded"]);
}

#[test]
fn an_approval_taken_back_after_it_was_seen_holds_the_deletion_up() {
    let mut world = two();
    world.approve_object("guarded");
    world.cached = world.named("guarded").map(|live| (**live).clone());
    world.edit("guarded", |live| {
        live["metadata"]["annotations"][resource::DELETION_APPROVED] = json!(null);
    });
    assert_eq!(approvals(&world.pass()), ["guarded"]);
    assert!(world.has("guarded"));
}

#[test]
fn an_approval_does_not_outlive_its_operation() {
    let mut world = two();
    world.approve();
    world.approve_object("guarded");
    world.tick();
    world.ask(SyncOperation { prune: true, ..SyncOperation::default() });
    assert_eq!(approvals(&world.drive()), ["guarded"]);
}

#[test]
fn a_retry_keeps_the_approval() {
    let mut world = two();
    world.refused.insert("new".to_owned(), "denied".to_owned());
    world.tick();
    world.approve();
    world.sync().prune = true;
    assert_eq!(message(&world.drive()), "one or more objects failed to apply, reason: denied");
    world = world.with_live(guarded("ConfigMap", "again"));
    world.state.sync_result = None;
    world.state.retry_count = 1;
    world.state.phase = OperationPhase::Running;
    world.refused.clear();
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert!(!world.has("again"));
}

#[test]
fn what_came_from_the_source_is_no_approval() {
    let mut world = two();
    world.annotate("guarded", our_manager(), "true");
    assert_eq!(approvals(&world.drive()), ["guarded"]);
    let mut world = two();
    let annotations = world.application.metadata.annotations.get_or_insert_default();
    annotations.insert(application::DELETION_APPROVED.to_owned(), "true".to_owned());
    assert_eq!(approvals(&world.drive()), ["guarded"]);
}

#[test]
fn the_operations_default_asks_and_the_specs_stands_behind_it() {
    let plain = || World::new(vec![]).with_live(object("ConfigMap", "plain"));
    assert_eq!(approvals(&plain().with_options(&["Prune=confirm"]).drive()), ["plain"]);
    let mut by_spec = plain();
    by_spec.application.spec.sync_policy =
        serde_json::from_value(json!({"syncOptions": ["Prune=confirm"]})).expect("a policy");
    assert_eq!(approvals(&by_spec.clone().drive()), ["plain"]);
    assert_eq!(by_spec.with_options(&["Prune=true"]).drive(), succeeded("all tasks run"));
}

#[test]
fn hooks_are_never_waited_for() {
    let manifest = || with_options(hook("job", "PreSync"), "Prune=confirm,Delete=confirm");
    let mut world = World::new(vec![manifest()]).with_live(manifest());
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert_eq!(world.told(), ["-job", "job"]);
}

#[test]
fn a_guarded_object_does_not_become_a_hook_without_approval() {
    for policy in ["BeforeHookCreation", "HookSucceeded"] {
        let wanted = annotated(hook("job", "PreSync"), resource::HOOK_DELETE_POLICY, policy);
        let live = with_options(object(wanted["kind"].as_str().expect("a kind"), "job"), "Prune=confirm");
        let mut world = World::new(vec![wanted.clone()]).with_live(live);
        let pass = world.drive();
        assert_eq!(approvals(&pass), ["job"], "{policy}");
        assert!(world.told().is_empty(), "{policy}: {:?}", world.told());
        world.approve();
        assert_eq!(world.drive(), succeeded("no more tasks"), "{policy}");
    }
}

#[test]
fn a_hook_is_created_anew_without_approval() {
    let manifest = |options: &str| {
        let hook = annotated(hook("job", "PreSync"), resource::HOOK_DELETE_POLICY, "HookFailed");
        with_options(hook, options)
    };
    let options = "Force=true,Prune=confirm";
    let mut world = World::new(vec![manifest(options)]).with_live(manifest(options));
    world.immutable.insert("job".to_owned());
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert_eq!(world.told(), ["-job", "job"]);
}

#[test]
fn what_is_being_deleted_counts_as_approved() {
    let mut world = two();
    world.edit("guarded", |live| live["metadata"]["deletionTimestamp"] = json!("2026-01-01T09:00:00Z"));
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["-plain", "new"]);
}

#[test]
fn what_no_longer_asks_is_not_waited_for() {
    let mut world = two();
    world.drive();
    world.edit("guarded", |live| live["metadata"]["annotations"][resource::SYNC_OPTIONS] = json!(""));
    assert_eq!(world.pass(), succeeded("all tasks run"));
}

#[test]
fn a_selective_sync_without_the_object_does_not_wait() {
    let mut world = two();
    world.sync().resources =
        serde_json::from_value(json!([{"kind": "ConfigMap", "name": "plain"}])).expect("resources");
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["-plain"]);
}

#[test]
fn termination_ends_the_waiting() {
    let mut world = two();
    world.drive();
    world.state.phase = OperationPhase::Terminating;
    assert_eq!(world.pass(), failed("Operation terminated"));
    assert!(world.told().is_empty());
}

#[test]
fn a_child_application_is_guarded_like_any_object() {
    let child = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "child", "annotations": {resource::SYNC_OPTIONS: "Prune=confirm"}}});
    let mut world = World::new(vec![]).with_live(child);
    let pass = world.drive();
    assert_eq!(message(&pass), "waiting for pruning confirmation of argoproj.io/Application/child");
}

#[test]
fn a_namespace_waits_for_the_guarded_objects_of_anybody_inside() {
    let other = annotated(guarded("ConfigMap", "theirs"), resource::TRACKING_ID, "b:/ConfigMap:other/theirs");
    let with = |world: World| {
        let mut theirs = other.clone();
        theirs["metadata"]["namespace"] = json!("other");
        let mut world = world.with_live(object("Namespace", "other")).with_live(theirs);
        world.edit("theirs", |live| {
            live["metadata"]["annotations"][resource::TRACKING_ID] = json!("b:/ConfigMap:other/theirs");
        });
        world
    };
    let mut world = with(World::new(vec![]));
    assert_eq!(approvals(&world.drive()), ["theirs"]);
    world.approve();
    assert_eq!(approvals(&world.drive()), ["theirs"], "this Application's word is not theirs");
    world.approve_object("theirs");
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["-other"]);
}

#[test]
fn a_namespace_may_go_with_our_own_objects_once_we_agreed() {
    let mut inside = guarded("ConfigMap", "ours");
    inside["metadata"]["namespace"] = json!("other");
    let mut world = World::new(vec![]).with_live(object("Namespace", "other")).with_live(inside);
    assert_eq!(approvals(&world.drive()), ["other", "ours"].split_at(1).1);
    world.approve();
    assert_eq!(world.drive(), succeeded("all tasks run"));
}

/// An object that can only be changed by creating it anew.
fn changed(options: &str) -> World {
    let mut wanted = with_options(object("ConfigMap", "c"), options);
    wanted["data"] = json!({"new": "value"});
    let mut world = World::new(vec![wanted]).with_live(with_options(object("ConfigMap", "c"), options));
    world.immutable.insert("c".to_owned());
    world
}

#[test]
fn force_does_not_create_a_guarded_object_anew_without_approval() {
    for options in
        ["Force=true,Prune=confirm", "Force=true,Delete=confirm", "Replace=true,Force=true,Prune=confirm"]
    {
        let mut world = changed(options);
        let pass = world.drive();
        assert_eq!(approvals(&pass), ["c"], "{options}");
        assert_eq!(message(&pass), "waiting for pruning confirmation of /ConfigMap/c");
        assert!(world.told().is_empty());
        world.approve_object("c");
        assert_eq!(world.pass(), succeeded("all tasks run"), "{options}");
        assert_eq!(world.told(), ["-c", "c"]);
    }
    assert_eq!(changed("Force=true").drive(), succeeded("all tasks run"));
}

#[test]
fn force_waits_also_when_nothing_is_pruned() {
    let mut world = changed("Force=true,Prune=confirm");
    world.sync().prune = false;
    assert_eq!(approvals(&world.drive()), ["c"]);
}

#[test]
fn an_approval_in_the_target_does_not_open_the_way() {
    let mut world = changed("Force=true,Prune=confirm");
    let mut wanted = Value::clone(&world.manifests[0]);
    wanted["metadata"]["annotations"][resource::DELETION_APPROVED] = json!("true");
    world.manifests = vec![std::sync::Arc::new(wanted)];
    assert_eq!(approvals(&world.drive()), ["c"]);
}

#[test]
fn while_anything_waits_nothing_is_created_anew() {
    let mut world = changed("Force=true").with_live(in_wave(guarded("ConfigMap", "old"), 1));
    assert_eq!(approvals(&world.drive()), ["old"]);
    assert!(world.told().is_empty(), "the wave of c comes first, and c would be deleted on the way");
    world.approve();
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["-c", "c", "-old"]);
}

#[test]
fn a_sure_recreation_holds_deletions_up() {
    let mut world =
        changed("Replace=true,Force=true,Prune=confirm").with_live(in_wave(object("ConfigMap", "old"), -1));
    assert_eq!(approvals(&world.drive()), ["c"]);
    assert!(world.has("old"));
    world.approve();
    assert_eq!(world.drive(), succeeded("all tasks run"));
}

#[test]
fn an_approval_is_as_good_as_its_operation_to_the_second() {
    let mut world = two();
    let started = world.now;
    let annotations = world.application.metadata.annotations.get_or_insert_default();
    annotations.insert(application::DELETION_APPROVED.to_owned(), started.to_string());
    assert_eq!(world.pass(), succeeded("all tasks run"));
}

#[test]
fn a_wait_for_approval_is_no_wait_for_health() {
    let mut world =
        World::new(vec![in_wave(object("Deployment", "web"), -1)]).with_live(guarded("ConfigMap", "old"));
    assert_eq!(world.pass(), waits("waiting for healthy state of apps/Deployment/web"));
    world.tick();
    assert_eq!(approvals(&world.pass()), ["old"]);
    assert_eq!(world.named("old").map(|live| live.name().to_owned()).as_deref(), Some("old"));
}

#[test]
fn a_binding_of_another_role_is_made_anew_only_with_approval() {
    let binding = |role: &str| {
        let mut binding = object("RoleBinding", "binding");
        binding["roleRef"] = json!({"kind": "Role", "name": role});
        binding
    };
    let confirmed = |role: &str| with_options(binding(role), "Prune=confirm");
    let mut plain = World::new(vec![binding("writer")]).with_live(binding("reader"));
    assert_eq!(plain.drive(), succeeded("all tasks run"), "nobody asked to be asked");

    let mut world = World::new(vec![confirmed("writer")])
        .with_live(confirmed("reader"))
        .with_live(object("ConfigMap", "plain"));
    let before = world.named("binding").expect("it is there").uid().to_owned();
    let pass = world.drive();
    assert_eq!(approvals(&pass), ["binding"]);
    assert_eq!(world.named("binding").expect("it stays").uid(), before);
    world.approve();
    assert_eq!(world.drive(), succeeded("all tasks run"));
    let after = world.named("binding").expect("made anew");
    assert_eq!((after["roleRef"]["name"].as_str(), after.uid() == before), (Some("writer"), false));
}
