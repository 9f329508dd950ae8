//! Sets that are also rolled out in an order: the head of the rollout is the guard.

use std::time::Duration;

use baton_controllers::Settings;
use serde_json::json;

use super::{by_component, pricelist, pricelist_of, reverse};
use crate::scene::{NAMESPACE, Scene};

const REVERSE: &[&str] = &["frontend", "db", "config"];
const ALL: [&str; 3] = ["pricelist-config", "pricelist-db", "pricelist-frontend"];

async fn rolling() -> Scene {
    Scene::with(Settings { progressive_syncs: true, ..Settings::new(NAMESPACE) }).await
}

#[tokio::test(start_paused = true)]
async fn a_set_in_the_middle_of_its_rollout_goes_in_order_and_leaves_nothing() {
    for policy in ["Background", "Foreground"] {
        let scene = rolling().await;
        scene.put(pricelist(reverse())).await;
        assert_eq!(scene.names(), ALL);
        scene.delete_set("pricelist", policy).await;
        for component in REVERSE {
            let name = format!("pricelist-{component}");
            assert_eq!(scene.terminating(), [name.as_str()]);
            scene.let_application_go(&name).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        scene.settle().await;
        assert!(!scene.has_set("pricelist") && scene.names().is_empty());
        assert_eq!(scene.maps(), [""; 0], "{policy}");
        scene.went_in_order(by_component(REVERSE));
    }
}

#[tokio::test(start_paused = true)]
async fn orphans_of_a_rollout_stay() {
    let scene = rolling().await;
    scene.put(pricelist(reverse())).await;
    scene.delete_set("pricelist", "Orphan").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    scene.settle().await;
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.names(), ALL);
    assert_eq!(scene.terminating(), [""; 0]);
    assert_eq!(scene.maps(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn generators_drop_in_order_during_a_rollout() {
    let scene = rolling().await;
    scene.put(pricelist(reverse())).await;
    scene.put(pricelist_of(&["frontend"], reverse())).await;
    assert_eq!(scene.terminating(), ["pricelist-db"]);
    scene.let_application_go("pricelist-db").await;
    assert_eq!(scene.terminating(), ["pricelist-config"]);
    scene.let_application_go("pricelist-config").await;
    assert_eq!(scene.names(), ["pricelist-frontend"]);
}

#[tokio::test(start_paused = true)]
async fn the_head_of_a_rollout_goes_with_a_set_that_deletes_in_no_order() {
    let scene = rolling().await;
    scene.put(pricelist(json!({}))).await;
    for object in scene.applications().values() {
        assert_eq!(object["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
        assert_eq!(object["metadata"]["labels"]["baton.dev/application-set"], "pricelist");
    }
    scene.delete_set("pricelist", "Background").await;
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.terminating(), ALL);
    for name in ALL {
        scene.let_application_go(name).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    scene.settle().await;
    assert_eq!(scene.maps(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_gives_up_its_order_of_deletion_keeps_the_head_of_its_rollout() {
    let scene = rolling().await;
    scene.put(pricelist(reverse())).await;
    scene.put(pricelist(json!({"deletionOrder": null}))).await;
    assert_eq!(scene.maps(), ["pricelist.baton-rollout"]);
    for object in scene.applications().values() {
        assert_eq!(object["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    }
}
