//! Nothing guarded is deleted without a person's word, and no word counts longer or further than it was meant.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::scene::{Scene, application, config_map, operating, results, text};

const OPTIONS: &str = "argocd.argoproj.io/sync-options";
const APPROVED: &str = "argocd.argoproj.io/deletion-approved";

/// A synced Application whose guarded ConfigMap `precious` left git, and a sync that would prune it.
async fn waiting(annotations: &str, sync: Value) -> Scene {
    let scene = Scene::new().await;
    scene.commit(&[
        ("app/keep.yaml", &config_map("keep", "a", "b", "")),
        ("app/precious.yaml", &config_map("precious", "a", "b", annotations)),
    ]);
    let mut wanted = application("app", "app", "east");
    wanted["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
    wanted["operation"] = json!({"sync": {"syncOptions": ["CreateNamespace=true"]}});
    scene.apply(wanted).await;
    assert_eq!(scene.ended("app").await.0, "Succeeded");
    scene.remove("app/precious.yaml");
    // Operations are told apart by the second they began in.
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.patch("app", json!({"operation": {"sync": sync}})).await;
    scene
}

fn guarded() -> String {
    format!("{OPTIONS}: Prune=confirm")
}

fn exists(scene: &Scene) -> bool {
    scene.object("east", "configmaps", "precious").is_some()
}

/// Waits until the operation says that it waits.
async fn until_it_waits(scene: &Scene) {
    let message = "waiting for pruning confirmation of /ConfigMap/precious";
    scene.until("app", |application| text(application, "/status/operationState/message") == message).await;
}

/// Whether nothing is deleted for a long while.
async fn holds(scene: &Scene) -> bool {
    tokio::time::sleep(Duration::from_secs(300)).await;
    exists(scene) && operating(&scene.application("app"))
}

async fn say_on_application(scene: &Scene, value: &str) {
    scene.patch("app", json!({"metadata": {"annotations": {APPROVED: value}}})).await;
}

async fn say_on_object(scene: &Scene, annotations: Value) {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "precious", "namespace": "demo", "annotations": annotations},
    });
    scene.member("east").apply("person", &object).await.expect("an annotation");
}

async fn is_pruned(scene: &Scene) {
    assert_eq!(scene.ended("app").await.0, "Succeeded");
    scene.until_all("pruned", |scene| !exists(scene)).await;
}

#[tokio::test(start_paused = true)]
async fn words_on_the_application_count_only_for_this_operation() {
    let scene = waiting(&guarded(), json!({"prune": true})).await;
    until_it_waits(&scene).await;
    let hour = SignedDuration::from_hours(1);
    let early = (scene.control.now() - hour).to_string();
    let late = (scene.control.now() + hour).to_string();
    for nothing in ["true", "yes", "", early.as_str(), late.as_str()] {
        say_on_application(&scene, nothing).await;
        assert!(holds(&scene).await, "{nothing:?} approves nothing");
    }
    let zoned = scene.control.now().strftime("%Y-%m-%dT%H:%M:%S.500+00:00").to_string();
    say_on_application(&scene, &zoned).await;
    is_pruned(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_persons_true_on_the_object_counts() {
    let scene = waiting(&guarded(), json!({"prune": true})).await;
    until_it_waits(&scene).await;
    say_on_object(&scene, json!({APPROVED: "true"})).await;
    is_pruned(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_true_that_came_from_git_never_counts() {
    let annotations = format!("{}, {APPROVED}: \"true\"", guarded());
    let scene = waiting(&annotations, json!({"prune": true})).await;
    until_it_waits(&scene).await;
    assert!(holds(&scene).await);
}

#[tokio::test(start_paused = true)]
async fn what_would_not_be_deleted_needs_no_word() {
    for (sync, result) in [
        (json!({"prune": false}), "ConfigMap/precious PruneSkipped Succeeded"),
        (json!({"prune": true, "dryRun": true}), "ConfigMap/precious Pruned Succeeded"),
        (json!({"prune": true, "resources": [{"kind": "ConfigMap", "name": "keep"}]}), ""),
    ] {
        let scene = waiting(&guarded(), sync.clone()).await;
        assert_eq!(scene.ended("app").await.0, "Succeeded", "{sync}");
        assert!(exists(&scene), "{sync}");
        let results = results(&scene.application("app"));
        assert!(result.is_empty() || results.iter().any(|line| line == result), "{sync}: {results:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminated_wait_deletes_nothing() {
    let scene = waiting(&guarded(), json!({"prune": true})).await;
    until_it_waits(&scene).await;
    scene.patch("app", json!({"status": {"operationState": {"phase": "Terminating"}}})).await;
    let (phase, message) = scene.ended("app").await;
    assert_eq!((phase.as_str(), message.as_str()), ("Failed", "Operation terminated"));
    assert!(exists(&scene));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_no_longer_guarded_goes() {
    let scene = waiting(&guarded(), json!({"prune": true})).await;
    until_it_waits(&scene).await;
    say_on_object(&scene, json!({OPTIONS: "Validate=true"})).await;
    is_pruned(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn the_default_of_the_application_guards_everything() {
    let scene = waiting("", json!({"prune": true, "syncOptions": ["Prune=confirm"]})).await;
    until_it_waits(&scene).await;
    assert!(holds(&scene).await);
    say_on_application(&scene, &scene.control.now().to_string()).await;
    is_pruned(&scene).await;
}

#[tokio::test(start_paused = true)]
async fn while_a_sync_waits_both_fields_and_a_condition_say_so() {
    let scene = waiting(&guarded(), json!({"prune": true})).await;
    until_it_waits(&scene).await;
    scene.refresh("app").await;
    let application = scene.application("app");
    let rows = application["status"]["resources"].as_array().cloned().unwrap_or_default();
    let row = rows.iter().find(|row| text(row, "/name") == "precious").expect("a row");
    assert_eq!(
        (&row["requiresDeletionConfirmation"], &row["requiresDeletionApproval"]),
        (&json!(true), &json!(true))
    );
    let conditions = crate::scene::conditions(&application);
    let told =
        "DeletionApprovalRequiredInfo: pruning waits for approval of /ConfigMap/demo/precious".to_owned();
    assert!(conditions.contains(&told), "{conditions:?}");
    say_on_application(&scene, &scene.control.now().to_string()).await;
    is_pruned(&scene).await;
    let conditions = crate::scene::conditions(&scene.application("app"));
    assert!(!conditions.contains(&told), "{conditions:?}");
}

/// The side door: a namespace that is pruned takes everything in it along.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_holds_a_guarded_object_of_another_stays() {
    let scene = Scene::new().await;
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shared}\n";
    scene.commit(&[
        ("app/namespace.yaml", namespace),
        ("app/keep.yaml", &config_map("keep", "a", "b", "")),
        ("other/precious.yaml", &config_map("precious", "a", "b", &format!("{OPTIONS}: Delete=confirm"))),
    ]);
    let mut wanted = application("app", "app", "east");
    wanted["operation"] = json!({"sync": {"syncOptions": ["CreateNamespace=true"]}});
    scene.apply(wanted).await;
    assert_eq!(scene.ended("app").await.0, "Succeeded");
    let mut other = application("other", "other", "east");
    other["spec"]["destination"]["namespace"] = json!("shared");
    other["operation"] = json!({"sync": {}});
    scene.apply(other).await;
    assert_eq!(scene.ended("other").await.0, "Succeeded");
    scene.remove("app/namespace.yaml");
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.patch("app", json!({"operation": {"sync": {"prune": true}}})).await;
    until_it_waits(&scene).await;
    say_on_application(&scene, &scene.control.now().to_string()).await;
    assert!(holds(&scene).await, "one Application's word does not reach another's objects");
    say_on_object_in(&scene, "shared").await;
    assert_eq!(scene.ended("app").await.0, "Succeeded");
    scene.until_all("pruned", |scene| scene.object("east", "namespaces", "shared").is_none()).await;
}

async fn say_on_object_in(scene: &Scene, namespace: &str) {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "precious", "namespace": namespace, "annotations": {APPROVED: "true"}},
    });
    scene.member("east").apply("person", &object).await.expect("an annotation");
}
