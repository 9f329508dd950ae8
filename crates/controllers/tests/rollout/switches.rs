//! What people switch: pause and resume, and the strategy itself.

use std::time::Duration;

use serde_json::{Value, json};

use crate::scene::{Scene, fleet, objects};

const MEMBERS: [(&str, &str); 3] = [("a", "dev"), ("b", "test"), ("c", "prod")];
const PAUSED: &str = "baton.dev/paused";

#[tokio::test(start_paused = true)]
async fn a_paused_rollout_writes_nothing_until_it_is_resumed() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    scene.annotate_set("fleet", PAUSED, Some("true")).await;
    scene.until("a pause", |scene| scene.rollout_state() == "Paused").await;
    let commit = scene.commit(&["a", "b", "c"], "1");
    tokio::time::sleep(Duration::from_secs(600)).await;
    let revision = scene.revision();
    let began = |scene: &Scene| {
        let versions = scene.versions_since(revision);
        versions
            .into_iter()
            .filter(|one| one.object.as_ref().is_some_and(|one| !one["operation"].is_null()))
            .count()
    };
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(began(&scene), 0);
    scene.annotate_set("fleet", PAUSED, None).await;
    scene.rolled_out(&commit).await;
    assert!(began(&scene) >= 3);
}

#[tokio::test(start_paused = true)]
async fn a_pause_in_the_head_ends_with_the_annotation_of_the_set() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    scene.annotate_set("fleet", PAUSED, Some("true")).await;
    scene.pause_in_head("fleet").await;
    scene.until("a pause", |scene| scene.rollout_state() == "Paused").await;
    // Whoever takes over reads the pause in the head.
    let scene = scene.crash().await;
    let commit = scene.commit(&["a", "b", "c"], "1");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scene.rollout_state(), "Paused");
    scene.annotate_set("fleet", PAUSED, None).await;
    scene.rolled_out(&commit).await;
}

#[tokio::test(start_paused = true)]
async fn to_rolling_sync_and_back_restores_automatic_sync() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    let mut together = fleet(&MEMBERS);
    together["spec"]["strategy"] = json!({"type": "AllAtOnce"});
    scene.apply(together.clone()).await;
    let synced = |scene: &Scene| {
        let applications = scene.applications();
        let synced = |one: &Value| one["status"]["sync"]["status"] == "Synced";
        applications.len() == 3 && applications.values().all(synced)
    };
    scene.until("automatic syncs", synced).await;
    let policies = |scene: &Scene| -> Vec<Value> {
        scene.applications().values().map(|one| one["spec"]["syncPolicy"].clone()).collect()
    };
    let before = policies(&scene);
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    assert!(policies(&scene).iter().all(|policy| policy["automated"]["enabled"] == false));
    assert!(objects(&scene.control, "configmaps").contains_key("fleet.baton-rollout"));
    scene.apply(together).await;
    scene.until("the policies of before", |scene| policies(scene) == before).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!objects(&scene.control, "configmaps").contains_key("fleet.baton-rollout"));
    let status = scene.set("fleet")["status"].clone();
    assert!(status["applicationStatus"].is_null() && status["rollout"].is_null(), "{status:#}");
    let commit = scene.commit(&["a", "b", "c"], "1");
    scene
        .until("automatic syncs of a commit", |scene| {
            scene.applications().values().all(|one| {
                one["status"]["sync"]["status"] == "Synced" && one["status"]["sync"]["revision"] == *commit
            })
        })
        .await;
}
