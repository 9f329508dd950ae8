//! What cannot be applied, and what follows.

use serde_json::json;

use crate::world::{World, hook, in_wave, object};
use crate::{failed, succeeded, waits};

#[test]
fn nothing_is_done_where_the_api_would_not_take_all() {
    let mut world = World::new(vec![object("ConfigMap", "bad"), object("ConfigMap", "good")]);
    world.refused.insert("bad".to_owned(), "invalid: no".to_owned());
    assert_eq!(world.pass(), failed("one or more objects failed to apply (dry run)"));
    assert!(world.told().is_empty());
    assert_eq!(world.results(), ["bad SyncFailed Failed invalid: no"]);
}

#[test]
fn the_only_object_that_fails_is_the_reason() {
    let mut world = World::new(vec![object("ConfigMap", "bad")]);
    world.refused.insert("bad".to_owned(), "denied".to_owned());
    assert_eq!(world.pass(), failed("one or more objects failed to apply, reason: denied"));
}

#[test]
fn a_failure_does_not_stop_later_kinds_of_the_wave_but_later_waves() {
    let mut world = World::new(vec![
        object("ConfigMap", "bad"),
        object("Service", "s"),
        in_wave(object("ConfigMap", "later"), 1),
    ]);
    world.refused.insert("bad".to_owned(), "denied".to_owned());
    let message = "one or more synchronization tasks completed unsuccessfully, reason: denied";
    assert_eq!(world.drive(), failed(message));
    assert_eq!(world.told(), ["s"]);
}

#[test]
fn the_same_reason_is_told_once() {
    let mut world =
        World::new(vec![object("ConfigMap", "a"), object("ConfigMap", "b"), object("ConfigMap", "c")]);
    for (name, reason) in [("a", "denied"), ("b", "denied"), ("c", "full")] {
        world.refused.insert(name.to_owned(), reason.to_owned());
    }
    assert_eq!(world.pass(), failed("one or more objects failed to apply, reason: denied,full"));
}

#[test]
fn a_running_hook_of_a_failed_wave_is_waited_for() {
    let mut world = World::new(vec![hook("job", "Sync"), object("ConfigMap", "bad")]);
    world.refused.insert("bad".to_owned(), "denied".to_owned());
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/job"));
    world.tick();
    let message = "one or more synchronization tasks completed unsuccessfully, reason: denied";
    assert_eq!(world.pass(), failed(message));
}

#[test]
fn sync_fail_hooks_run_when_objects_cannot_be_applied() {
    let mut world = World::new(vec![object("ConfigMap", "bad"), hook("sorry", "SyncFail")]);
    world.refused.insert("bad".to_owned(), "denied".to_owned());
    assert_eq!(world.pass(), waits("waiting for completion of hook batch/Job/sorry"));
    world.tick();
    let message = "one or more synchronization tasks completed unsuccessfully, reason: denied";
    assert_eq!(world.pass(), failed(message));
}

#[test]
fn a_sync_fail_hook_that_cannot_be_created_is_told_as_well() {
    let mut world = World::new(vec![object("ConfigMap", "bad"), hook("sorry", "SyncFail")]);
    world.refused.insert("bad".to_owned(), "denied".to_owned());
    world.refused.insert("sorry".to_owned(), "full".to_owned());
    let message = "one or more synchronization tasks completed unsuccessfully, reason: denied\none or more SyncFail hooks \
                   failed, reason: full";
    assert_eq!(world.drive(), failed(message));
}

#[test]
fn a_namespace_that_cannot_be_made_ends_the_sync() {
    let mut world = World::new(vec![object("ConfigMap", "c")]).with_options(&["CreateNamespace=true"]);
    world.refused.insert("shop".to_owned(), "denied".to_owned());
    assert_eq!(world.pass(), failed("the namespace failed to apply, reason: denied"));
    assert_eq!(world.dry_runs, 0);
}

#[test]
fn a_check_that_fails_only_for_the_namespace_to_come_is_none() {
    let mut inside = object("ConfigMap", "inside");
    inside["metadata"]["namespace"] = json!("other");
    let mut world = World::new(vec![inside, object("Namespace", "other")]);
    world.check_namespaces = true;
    assert_eq!(world.pass(), succeeded("all tasks run"));
    let mut stray = object("ConfigMap", "stray");
    stray["metadata"]["namespace"] = json!("nowhere");
    let mut world = World::new(vec![stray]);
    world.check_namespaces = true;
    assert_eq!(world.pass(), failed("one or more objects failed to apply (dry run)"));
}

#[test]
fn shared_objects_fail_a_sync_that_asks_for_it() {
    let shared = || {
        let mut world = World::new(vec![object("ConfigMap", "c")]);
        world.shared = Some("ConfigMap/c is part of applications a and b".to_owned());
        world
    };
    assert_eq!(shared().pass(), succeeded("all tasks run"));
    assert_eq!(
        shared().with_options(&["FailOnSharedResource=true"]).pass(),
        failed("Shared resource found: ConfigMap/c is part of applications a and b")
    );
}
