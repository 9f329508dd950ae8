//! What has not changed costs nothing and writes nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::scene::{NAMESPACE, Scene, cluster_secret, list, set};

#[tokio::test(start_paused = true)]
async fn a_pass_that_finds_nothing_to_do_makes_no_request() {
    let scene = populated().await;
    scene.wire.take_calls();
    for name in ["listed", "clusters", "broken", "lost"] {
        scene.wake(name).await;
        assert_eq!(scene.wire.take_calls(), [], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn frozen_inputs_for_ten_minutes_mean_not_one_write() {
    let scene = populated().await;
    let revision = scene.revision();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.writes_since(revision), []);
    assert_eq!(scene.revision(), revision, "not even an event");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_writes_nothing() {
    let scene = populated().await;
    let revision = scene.revision();
    let scene = scene.restart().await;
    assert_eq!(scene.revision(), revision);
    assert_eq!(scene.names(), ["a", "b", "east", "west"]);
}

#[tokio::test(start_paused = true)]
async fn verdicts_and_refreshes_of_applications_wake_nobody() {
    let scene = populated().await;
    scene.wire.take_calls();
    let patches = [
        json!({"status": {"sync": {"status": "OutOfSync"}, "health": {"status": "Progressing"}}}),
        json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}),
        json!({"metadata": {"annotations": {"notified.notifications.argoproj.io": "{}"}}}),
    ];
    for patch in patches {
        let mut application = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "a", "namespace": NAMESPACE},
        });
        merge(&mut application, &patch);
        scene.cluster.apply("application-controller", &application).await.expect("applied");
        scene.settle().await;
        assert_eq!(scene.wire.take_calls(), [], "{patch}");
    }
}

#[tokio::test(start_paused = true)]
async fn status_shows_verdicts_as_of_the_last_pass() {
    let scene = populated().await;
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "a", "namespace": NAMESPACE},
        "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}},
    });
    scene.cluster.apply("application-controller", &application).await.expect("applied");
    scene.settle().await;
    scene.wake("listed").await;
    let resource = &scene.set("listed")["status"]["resources"][0];
    assert_eq!((&resource["status"], &resource["health"]["status"]), (&json!("Synced"), &json!("Healthy")));
}

/// Sets of several kinds: two that work, one whose generator fails, one whose project does not exist.
async fn populated() -> Scene {
    let scene = Scene::new().await;
    scene.put(cluster_secret("east", json!({"env": "prod"}))).await;
    scene.put(cluster_secret("west", json!({"env": "prod"}))).await;
    scene.put(set("listed", list(&["a", "b"]))).await;
    scene.put(set("clusters", json!([{"clusters": {"selector": {"matchLabels": {"env": "prod"}}}}]))).await;
    scene.put(set("broken", json!([{"matrix": {"generators": [{"list": {"elements": []}}]}}]))).await;
    let mut lost = set("lost", list(&["lost"]));
    lost["spec"]["template"]["spec"]["project"] = "nowhere".into();
    scene.put(lost).await;
    assert_eq!(scene.names(), ["a", "b", "east", "west"]);
    scene
}

fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}
