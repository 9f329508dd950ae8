//! Waves, kinds and what objects need of each other.

use baton_api::application_status::HealthCode;
use serde_json::json;

use crate::world::{Pass, World, annotated, hook, in_wave, object, with_options};
use crate::{failed, succeeded, waits};

#[test]
fn one_wave_is_applied_by_kind_and_ends_at_once() {
    let mut world =
        World::new(vec![object("Deployment", "web"), object("ConfigMap", "b"), object("ConfigMap", "a")]);
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["a", "b", "web"]);
    assert_eq!(world.pauses, 0);
    assert_eq!(
        world.results(),
        [
            "a Synced Running configmap/a created",
            "b Synced Running configmap/b created",
            "web Synced Running deployment/web created"
        ]
    );
}

#[test]
fn a_wave_waits_for_the_health_of_the_one_before() {
    let manifests = vec![in_wave(object("Deployment", "one"), 1), in_wave(object("ConfigMap", "two"), 2)];
    let mut world = World::new(manifests);
    assert_eq!(world.pass(), waits("waiting for healthy state of apps/Deployment/one"));
    assert_eq!(world.told(), ["one"]);
    assert_eq!(world.pass(), waits("waiting for healthy state of apps/Deployment/one"));
    world.tick();
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["one", "two"]);
    assert_eq!(world.results()[0], "one Synced Succeeded is Healthy");
}

#[test]
fn objects_without_health_do_not_hold_waves_up() {
    let manifests = (1..4).map(|wave| in_wave(object("ConfigMap", &format!("c{wave}")), wave)).collect();
    let mut world = World::new(manifests);
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["c1", "c2", "c3"]);
    assert_eq!(world.pauses, 2, "after each wave but the last");
}

#[test]
fn a_wave_that_degrades_ends_the_sync() {
    let manifests = vec![in_wave(object("Deployment", "one"), 1), in_wave(object("ConfigMap", "two"), 2)];
    let mut world = World::new(manifests);
    world.outcomes.insert("one".to_owned(), HealthCode::Degraded);
    let message = "one or more synchronization tasks completed unsuccessfully";
    assert_eq!(world.drive(), failed(message));
    assert_eq!(world.results(), ["one Synced Failed is Degraded"]);
    assert!(!world.has("two"));
}

#[test]
fn several_that_are_waited_for_are_counted() {
    let mut manifests: Vec<_> = (0..3).map(|i| object("Deployment", &format!("d{i}"))).collect();
    manifests.push(in_wave(object("ConfigMap", "later"), 1));
    let message = "waiting for healthy state of apps/Deployment/d0 and 2 more resources";
    assert_eq!(World::new(manifests).pass(), waits(message));
}

#[test]
fn an_object_that_vanishes_while_it_is_waited_for_fails_the_sync() {
    let manifests = vec![in_wave(object("Deployment", "one"), 1), in_wave(object("ConfigMap", "two"), 2)];
    let mut world = World::new(manifests);
    world.pass();
    world.remove("one");
    let missing = "Resource apps/Deployment/one is missing, it might have been deleted";
    let message = format!("one or more synchronization tasks completed unsuccessfully, reason: {missing}");
    assert_eq!(world.drive(), failed(&message));
    assert_eq!(world.results(), [format!("one SyncFailed Error {missing}")]);
}

#[test]
fn a_namespace_comes_before_what_lives_in_it() {
    let mut inside = object("ConfigMap", "inside");
    inside["metadata"]["namespace"] = json!("other");
    let mut world = World::new(vec![in_wave(object("Namespace", "other"), 5), inside]);
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["other", "inside"]);
}

#[test]
fn a_namespace_moves_to_the_phase_of_the_first_hook_in_it() {
    let mut before = hook("before", "PreSync");
    before["metadata"]["namespace"] = json!("other");
    let mut world = World::new(vec![in_wave(object("Namespace", "other"), 5), before]);
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert_eq!(world.told()[..2], ["other", "before"]);
}

#[test]
fn a_definition_comes_before_what_it_defines_and_is_enough_to_skip_the_check() {
    let mut crd = in_wave(object("CustomResourceDefinition", "widgets.example.com"), 7);
    crd["spec"] = json!({"group": "example.com", "names": {"kind": "Widget"}});
    let mut world = World::new(vec![crd, object("Widget", "w")]);
    world.unserved.insert("Widget".to_owned());
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["widgets.example.com", "w"]);
    assert_eq!(world.dry_runs, 1, "only the definition can be checked");
}

#[test]
fn a_kind_nobody_serves_makes_the_sync_invalid() {
    let message = "The Kubernetes API could not find example.com/Widget for requested resource shop/w. Make sure the \
                   \"Widget\" CRD is installed on the destination cluster.";
    let unserved = |manifest| {
        let mut world = World::new(vec![manifest]);
        world.unserved.insert("Widget".to_owned());
        world
    };
    let mut world = unserved(object("Widget", "w"));
    let expected = format!("one or more synchronization tasks are not valid: {message}");
    assert_eq!(world.pass(), failed(&expected));
    assert_eq!(world.results(), [format!("w SyncFailed  {message}")]);
    let option = "SkipDryRunOnMissingResource=true";
    assert_eq!(unserved(with_options(object("Widget", "w"), option)).pass(), succeeded("all tasks run"));
    assert_eq!(unserved(object("Widget", "w")).with_options(&[option]).pass(), succeeded("all tasks run"));
}

#[test]
fn what_the_project_does_not_permit_makes_the_sync_invalid() {
    let mut world =
        World::new(vec![object("ClusterRole", "r"), object("ClusterRole", "s"), object("ConfigMap", "c")]);
    world.forbidden.insert("ClusterRole".to_owned());
    let reason = "resource rbac.authorization.k8s.io:ClusterRole is not permitted in project default";
    assert_eq!(world.pass(), failed(&format!("one or more synchronization tasks are not valid: {reason}")));
    assert!(world.told().is_empty());
    assert_eq!(world.results(), [format!("r SyncFailed  {reason}"), format!("s SyncFailed  {reason}")]);
}

#[test]
fn a_skipped_object_is_left_out() {
    let skipped = annotated(object("ConfigMap", "skipped"), "argocd.argoproj.io/hook", "Skip");
    let mut world = World::new(vec![skipped, object("ConfigMap", "c")]);
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["c"]);
}

#[test]
fn nothing_to_do_is_success() {
    assert_eq!(World::new(vec![]).pass(), succeeded("no more tasks"));
}

#[test]
fn health_counts_as_it_is_after_the_pause() {
    let mut changed = in_wave(object("Deployment", "one"), 1);
    changed["spec"] = json!({"replicas": 2});
    let mut world = World::new(vec![changed, in_wave(object("ConfigMap", "two"), 2)])
        .with_live(in_wave(object("Deployment", "one"), 1));
    // Its controller takes notice of the change only after it was applied.
    world.reactions.insert("one".to_owned(), HealthCode::Progressing);
    assert_eq!(world.pass(), waits("waiting for healthy state of apps/Deployment/one"));
    assert!(!world.has("two"));
}

#[test]
fn errors_of_the_api_that_do_not_help_are_explained() {
    for (error, told) in [
        ("the server could not find the requested resource", "Make sure the \"ConfigMap\" CRD is installed"),
        ("metadata.annotations: Too long: must have at most 262144 bytes", "ServerSideApply=true needs none"),
    ] {
        let mut world = World::new(vec![object("ConfigMap", "c")]);
        world.refused.insert("c".to_owned(), error.to_owned());
        world.pass();
        assert!(world.results()[0].contains(told), "{:?}", world.results());
    }
}

#[test]
fn an_object_that_cannot_be_read_is_waited_for() {
    let manifests = || vec![in_wave(object("Deployment", "one"), 1), in_wave(object("ConfigMap", "two"), 2)];
    let mut world = World::new(manifests());
    world.unreadable.insert("one".to_owned());
    assert_eq!(world.pass(), waits("waiting for healthy state of apps/Deployment/one"));
    // The cache does not show it either: nobody knows what has become of it.
    let mut world = World::new(manifests());
    world.pass();
    world.hidden.insert("one".to_owned());
    world.unreadable.insert("one".to_owned());
    assert_eq!(world.pass(), failed("one or more synchronization tasks completed unsuccessfully"));
    assert_eq!(world.results(), ["one Synced Error Failed to get live resource no answer"]);
}

#[test]
fn the_last_wave_is_not_waited_for_even_after_a_stop() {
    let mut world = World::new(vec![
        annotated(hook("before", "PreSync"), "argocd.argoproj.io/hook-delete-policy", "HookSucceeded"),
        object("Deployment", "web"),
    ]);
    world.outcomes.insert("web".to_owned(), HealthCode::Degraded);
    world.pass();
    world.tick();
    // The results are written; the hook is yet to be deleted.
    world.crash_after = Some(4);
    assert_eq!(world.pass(), Pass::Crashed);
    assert_eq!(world.results()[1], "web Synced Running deployment/web created");
    world.tick();
    assert_eq!(world.pass(), succeeded("no more tasks"));
    assert!(!world.has("before"));
}
