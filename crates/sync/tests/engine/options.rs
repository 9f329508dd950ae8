//! How objects are applied.

use baton_sync::action::{Apply, ServerSide, Verb};
use serde_json::{Value, json};

use crate::world::{Pass, World, hook, in_wave, object, with_options};
use crate::{succeeded, waits};

fn applied(world: &World, name: &str) -> Apply {
    let found = world.performed.iter().find_map(|verb| match verb {
        Verb::Apply(apply) if apply.object["metadata"]["name"] == json!(name) => Some(apply.clone()),
        _ => None,
    });
    found.expect("the object was applied")
}

fn apply_of(own: &str, live: &str, app: &[&str]) -> Apply {
    let mut world = World::new(vec![with_options(object("ConfigMap", "c"), own)])
        .with_live(with_options(object("ConfigMap", "c"), live))
        .with_options(app);
    world.drive();
    applied(&world, "c")
}

#[test]
fn replace_and_force_come_from_the_operation_the_target_or_the_live_object() {
    let cases = [
        ("", "", &[][..], false, false),
        ("Replace=true", "", &[], true, false),
        ("", "Replace=true", &[], true, false),
        ("", "", &["Replace=true"], true, false),
        ("Replace=false", "", &["Replace=true"], true, false),
        ("Force=true", "", &[], false, true),
        ("", "Force=true", &[], false, true),
        ("", "", &["Force=true"], false, false),
    ];
    for (own, live, app, replace, force) in cases {
        let apply = apply_of(own, live, app);
        assert_eq!((apply.replace, apply.force), (replace, force), "{own} {live} {app:?}");
    }
    let mut world = World::new(vec![object("ConfigMap", "c")]).with_live(object("ConfigMap", "c"));
    world.sync().sync_strategy =
        serde_json::from_value(json!({"hook": {"force": true}})).expect("a strategy");
    world.drive();
    assert!(applied(&world, "c").force);
}

#[test]
fn who_merges_fields_is_told() {
    let cases = [
        ("", &[][..], ServerSide::Default),
        ("ServerSideApply=true", &[], ServerSide::Asked),
        ("", &["ServerSideApply=true"], ServerSide::Asked),
        ("ServerSideApply=false", &["ServerSideApply=true"], ServerSide::Refused),
        ("", &["ServerSideApply=false"], ServerSide::Refused),
        ("ServerSideApply=true", &["ServerSideApply=false"], ServerSide::Asked),
    ];
    for (own, app, expected) in cases {
        assert_eq!(apply_of(own, "", app).server_side, expected, "{own} {app:?}");
    }
}

#[test]
fn validation_and_migration_are_on_unless_said() {
    assert!(apply_of("", "", &[]).validate);
    assert!(!apply_of("Validate=false", "", &[]).validate);
    assert!(!apply_of("", "", &["Validate=false"]).validate);
    assert_eq!(apply_of("", "", &[]).migrate_from.as_deref(), Some("kubectl-client-side-apply"));
    assert_eq!(apply_of("", "", &["ClientSideApplyMigration=false"]).migrate_from, None);
}

#[test]
fn a_namespace_or_a_definition_is_never_created_anew() {
    for kind in ["Namespace", "CustomResourceDefinition"] {
        let manifest = || with_options(object(kind, "x"), "Replace=true,Force=true");
        let mut changed = manifest();
        changed["spec"] = json!({"new": true});
        let mut world = World::new(vec![changed]).with_live(manifest());
        assert_eq!(world.drive(), succeeded("all tasks run"));
        let apply = applied(&world, "x");
        assert!(apply.replace && !apply.force, "{kind}");
    }
}

#[test]
fn only_what_differs_is_applied_on_request() {
    let manifests = || vec![object("ConfigMap", "same"), object("ConfigMap", "new"), hook("job", "PreSync")];
    let mut all = World::new(manifests()).with_live(object("ConfigMap", "same"));
    all.drive();
    assert_eq!(all.results().len(), 3);
    let mut some = World::new(manifests())
        .with_live(object("ConfigMap", "same"))
        .with_options(&["ApplyOutOfSyncOnly=true"]);
    assert_eq!(some.drive(), succeeded("all tasks run"));
    assert_eq!(some.told(), ["job", "new"]);
    assert_eq!(some.results().len(), 2);
}

#[test]
fn with_nothing_that_differs_hooks_still_run() {
    let manifests = vec![object("ConfigMap", "same"), hook("job", "PostSync")];
    let mut world = World::new(manifests)
        .with_live(object("ConfigMap", "same"))
        .with_options(&["ApplyOutOfSyncOnly=true"]);
    assert_eq!(world.drive(), succeeded("no more tasks"));
    assert_eq!(world.told(), ["job"]);
}

#[test]
fn objects_known_to_be_as_wanted_are_not_checked_first() {
    let mut world = World::new(vec![object("ConfigMap", "same"), object("ConfigMap", "new")])
        .with_live(object("ConfigMap", "same"));
    world.drive();
    assert_eq!(world.dry_runs, 1);
}

#[test]
fn the_destinations_namespace_is_made_first_without_a_mark() {
    let manifests = || vec![hook("job", "PreSync"), in_wave(object("ConfigMap", "c"), -9)];
    let mut world = World::new(manifests()).with_options(&["CreateNamespace=true"]);
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["shop", "job", "c"]);
    assert_eq!(applied(&world, "shop").object["metadata"], json!({"name": "shop"}));
    assert_eq!(world.results()[0], "shop Synced Running namespace/shop created");
    let mut there = World::new(manifests())
        .with_options(&["CreateNamespace=true"])
        .with_live(object("Namespace", "shop"));
    there.edit("shop", |live| live["metadata"]["annotations"] = json!({}));
    there.drive();
    assert_eq!(there.told(), ["job", "c"]);
    let mut without = World::new(manifests());
    without.drive();
    assert_eq!(without.told(), ["job", "c"]);
}

#[test]
fn the_metadata_of_a_managed_namespace_is_kept() {
    let mut world = World::new(vec![object("ConfigMap", "c")]).with_options(&["CreateNamespace=true"]);
    world.application.spec.sync_policy = serde_json::from_value(
        json!({"managedNamespaceMetadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}}}),
    )
    .expect("a policy");
    let live: Value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    world = world.with_live(live);
    world.edit("shop", |live| live["metadata"]["annotations"] = json!({}));
    world.drive();
    let apply = applied(&world, "shop");
    assert_eq!(apply.object["metadata"]["labels"], json!({"team": "x"}));
    let annotations = json!({"note": "y", "argocd.argoproj.io/sync-options": "ServerSideApply=true"});
    assert_eq!(apply.object["metadata"]["annotations"], annotations);
    assert_eq!(apply.server_side, ServerSide::Asked);
}

#[test]
fn a_namespace_in_the_source_is_created_first_when_it_is_the_destinations() {
    let mut world = World::new(vec![in_wave(object("Namespace", "shop"), 3), object("ConfigMap", "c")])
        .with_options(&["CreateNamespace=true"]);
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["shop", "c"]);
    assert!(
        applied(&world, "shop").object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"]
            .is_string()
    );
}

#[test]
fn a_dry_run_tells_what_would_happen_and_does_nothing() {
    let mut world = World::new(vec![object("ConfigMap", "new"), hook("job", "PreSync")])
        .with_live(object("ConfigMap", "old"))
        .with_live(with_options(object("ConfigMap", "kept"), "Prune=false"))
        .with_live(with_options(object("ConfigMap", "asks"), "Prune=confirm"));
    world.sync().dry_run = true;
    assert_eq!(world.pass(), succeeded("no more tasks"));
    assert!(world.told().is_empty() && world.performed.is_empty());
    let mut results = world.results();
    results.sort();
    assert_eq!(
        results,
        [
            "asks Pruned Succeeded pruned (dry run)",
            "job Synced Succeeded job checked",
            "kept PruneSkipped Succeeded ignored (no prune)",
            "new Synced Succeeded new checked",
            "old Pruned Succeeded pruned (dry run)",
        ]
    );
}

#[test]
fn a_dry_run_makes_no_namespace() {
    let mut world = World::new(vec![object("ConfigMap", "c")]).with_options(&["CreateNamespace=true"]);
    world.sync().dry_run = true;
    assert_eq!(world.pass(), succeeded("no more tasks"));
    assert!(!world.has("shop"));
}

#[test]
fn an_object_this_operation_created_is_not_created_anew_by_force() {
    let manifest = || with_options(object("ConfigMap", "c"), "Replace=true,Force=true");
    let mut world = World::new(vec![manifest()]);
    world.crash_after = Some(1);
    world.pass();
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["c"]);
}

#[test]
fn what_was_applied_right_before_a_stop_is_still_waited_for() {
    let mut world =
        World::new(vec![in_wave(object("Deployment", "one"), 1), in_wave(object("ConfigMap", "two"), 2)])
            .with_options(&["ApplyOutOfSyncOnly=true"]);
    // It is applied, and that is not noted.
    world.crash_after = Some(1);
    assert_eq!(world.pass(), Pass::Crashed);
    assert!(world.has("one") && world.results().is_empty());
    assert_eq!(world.pass(), waits("waiting for healthy state of apps/Deployment/one"));
    assert!(!world.has("two"));
}

#[test]
fn a_namespace_that_is_a_hook_is_not_made_twice() {
    let manifest = crate::world::annotated(object("Namespace", "shop"), "argocd.argoproj.io/hook", "PreSync");
    let mut world =
        World::new(vec![manifest, object("ConfigMap", "c")]).with_options(&["CreateNamespace=true"]);
    assert_eq!(world.drive(), succeeded("all tasks run"));
    assert_eq!(world.told(), ["shop", "c"]);
}
