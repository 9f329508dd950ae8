//! What is no longer in the source.

use baton_sync::action::{Propagation, Verb};
use serde_json::json;

use crate::world::{Pass, World, annotated, hook, in_wave, object, with_options};
use crate::{failed, succeeded, waits};

#[test]
fn what_was_created_last_is_pruned_first() {
    let mut world = World::new(vec![]);
    for wave in 1..4 {
        world = world.with_live(in_wave(object("Deployment", &format!("d{wave}")), wave));
    }
    assert_eq!(world.pass(), waits("waiting for deletion of apps/Deployment/d3"));
    assert_eq!(world.told(), ["-d3"]);
    world.tick();
    assert_eq!(world.pass(), waits("waiting for deletion of apps/Deployment/d2"));
    world.tick();
    assert_eq!(world.pass(), succeeded("all tasks run"), "the last is not waited for");
    assert_eq!(world.told(), ["-d3", "-d2", "-d1"]);
    assert_eq!(
        world.results(),
        ["d3 Pruned Succeeded pruned", "d2 Pruned Succeeded pruned", "d1 Pruned Succeeded pruned"]
    );
}

#[test]
fn prunes_of_a_wave_come_before_its_creations_and_are_not_waited_for() {
    let mut world = World::new(vec![object("ConfigMap", "new")]).with_live(object("Deployment", "old"));
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["-old", "new"]);
}

#[test]
fn prunes_that_come_last_come_after_every_wave() {
    let manifests = || vec![in_wave(object("ConfigMap", "new"), 7)];
    let mut by_app =
        World::new(manifests()).with_live(object("ConfigMap", "old")).with_options(&["PruneLast=true"]);
    by_app.drive();
    assert_eq!(by_app.told(), ["new", "-old"]);
    let old = with_options(object("ConfigMap", "old"), "PruneLast=true");
    let mut by_object = World::new(manifests()).with_live(old);
    by_object.drive();
    assert_eq!(by_object.told(), ["new", "-old"]);
}

#[test]
fn nothing_is_pruned_unless_asked_for() {
    let mut world = World::new(vec![object("ConfigMap", "c")]).with_live(object("ConfigMap", "old"));
    world.sync().prune = false;
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert_eq!(world.results()[0], "old PruneSkipped Succeeded ignored (requires pruning)");
    assert!(world.has("old"));
}

#[test]
fn what_says_so_is_not_pruned() {
    let kept = with_options(object("ConfigMap", "kept"), "Prune=false");
    let own = with_options(object("ConfigMap", "own"), "Prune=true");
    let mut world = World::new(vec![])
        .with_live(kept.clone())
        .with_live(object("ConfigMap", "other"))
        .with_live(own)
        .with_options(&["Prune=false"]);
    world.drive();
    let ignored = "PruneSkipped Succeeded ignored (no prune)";
    let told =
        [format!("kept {ignored}"), format!("other {ignored}"), "own Pruned Succeeded pruned".to_owned()];
    assert_eq!(world.results(), told);
}

#[test]
fn dependants_follow_the_policy() {
    let cases = [
        (vec![], Propagation::Foreground),
        (vec!["PrunePropagationPolicy=background"], Propagation::Background),
        (vec!["PrunePropagationPolicy=orphan"], Propagation::Orphan),
        (vec!["PrunePropagationPolicy=foreground", "PrunePropagationPolicy=orphan"], Propagation::Foreground),
        (vec!["PrunePropagationPolicy=nonsense"], Propagation::Foreground),
    ];
    for (options, expected) in cases {
        let mut world = World::new(vec![]).with_live(object("ConfigMap", "old")).with_options(&options);
        world.pass();
        let Some(Verb::Delete(delete)) = world.performed.first() else {
            panic!("no deletion for {options:?}")
        };
        assert_eq!(delete.propagation, expected, "{options:?}");
        assert!(!delete.uid.is_empty() && delete.resource_version.is_some());
    }
}

#[test]
fn an_object_that_changed_since_it_was_seen_is_judged_anew() {
    let mut world = World::new(vec![]).with_live(object("ConfigMap", "old"));
    world.cached = world.named("old").map(|old| (**old).clone());
    world.edit("old", |live| live["data"] = json!({"a": "b"}));
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert!(!world.has("old"));
    let mut world = World::new(vec![]).with_live(object("ConfigMap", "old"));
    world.cached = world.named("old").map(|old| (**old).clone());
    world.edit("old", |live| {
        live["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] = json!("Prune=false");
    });
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert!(world.has("old"), "it says now that it stays");
}

#[test]
fn another_object_of_the_same_name_is_left_alone() {
    let mut world = World::new(vec![]).with_live(object("ConfigMap", "old"));
    world.cached = world.named("old").map(|old| (**old).clone());
    world.edit("old", |live| live["metadata"]["uid"] = json!("another"));
    world.pass();
    assert!(world.has("old"));
}

#[test]
fn what_is_being_deleted_is_not_deleted_again() {
    let mut world = World::new(vec![]).with_live(object("Deployment", "old"));
    world.edit("old", |live| live["metadata"]["deletionTimestamp"] = json!("2026-01-01T09:00:00Z"));
    assert_eq!(world.pass(), succeeded("all tasks run"));
    assert!(world.told().is_empty());
    assert_eq!(world.results(), ["old Pruned Succeeded pruned"]);
}

#[test]
fn hooks_and_copies_and_children_are_never_leftovers() {
    let mut copy = object("ConfigMap", "copy");
    copy["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("a:/ConfigMap:shop/original");
    let mut child = object("ConfigMap", "child");
    child["metadata"]["ownerReferences"] = json!([{"uid": "parent"}]);
    let mut world = World::new(vec![]).with_live(hook("job", "PreSync")).with_live(child).with_live(copy);
    world.edit("copy", |live| {
        live["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] =
            json!("a:/ConfigMap:shop/original");
    });
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert!(world.told().is_empty());
}

#[test]
fn a_selective_sync_prunes_only_what_it_names() {
    let mut world =
        World::new(vec![]).with_live(object("ConfigMap", "one")).with_live(object("ConfigMap", "two"));
    world.sync().resources =
        serde_json::from_value(json!([{"kind": "ConfigMap", "name": "two", "namespace": "shop"},
            {"kind": "ConfigMap", "name": "one", "namespace": "elsewhere"}]))
        .expect("resources");
    world.drive();
    assert_eq!(world.told(), ["-two"]);
}

#[test]
fn a_prune_that_fails_stops_its_wave() {
    let mut world = World::new(vec![object("ConfigMap", "new")]).with_live(object("ConfigMap", "old"));
    world.undeletable.insert("old".to_owned());
    assert_eq!(world.pass(), failed("one or more objects failed to apply, reason: not allowed"));
    assert!(!world.has("new"));
}

#[test]
fn a_definition_is_never_pruned() {
    let crd = annotated(object("CustomResourceDefinition", "widgets.example.com"), "x", "y");
    let mut world = World::new(vec![]).with_live(crd);
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert!(world.has("widgets.example.com"));
}

#[test]
fn the_last_prunes_are_not_waited_for_even_after_a_stop() {
    let mut world = World::new(vec![]).with_live(object("Deployment", "old"));
    world.stuck.insert("old".to_owned());
    // It is deleted and noted; that the sync has ended is not.
    world.crash_after = Some(2);
    assert_eq!(world.pass(), Pass::Crashed);
    assert_eq!(world.results(), ["old Pruned Succeeded pruned"]);
    assert_eq!(world.pass(), succeeded("no more tasks"));
}
