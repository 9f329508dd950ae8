//! An Application that does not go is named, with what holds it.

use std::time::Duration;

use serde_json::json;

use super::{APPLICATIONS, pricelist, pricelist_of, reverse};
use crate::scene::Scene;

#[tokio::test(start_paused = true)]
async fn one_that_holds_the_deletion_of_a_set_is_named() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.delete_set("pricelist", "Background").await;
    let condition = json!({
        "type": "DeletionError", "message": "cluster east does not answer", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    scene.merge(APPLICATIONS, "pricelist-frontend", json!({"status": {"conditions": [condition]}})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    scene.settle().await;
    let conditions = scene.conditions("pricelist");
    let stuck = conditions.iter().find(|text| text.starts_with("DeletionProgressing=True ApplicationStuck"));
    let stuck = stuck.unwrap_or_else(|| panic!("{conditions:?}"));
    for part in [
        "step 1 of 4",
        "pricelist-frontend",
        "since 2026-01-01T00:00:",
        "resources-finalizer.argocd.argoproj.io",
        "DeletionError: cluster east does not answer",
    ] {
        assert!(stuck.contains(part), "{part} in {stuck}");
    }
    let deletion = scene.set("pricelist")["status"]["rollout"]["deletion"].clone();
    assert_eq!(deletion["blockers"][0]["object"], "pricelist-frontend");
    assert_eq!(deletion["remaining"], 3);
    let events: Vec<String> =
        scene.events().into_iter().filter(|event| event.starts_with("ApplicationStuck")).collect();
    assert_eq!(events.len(), 1, "told once: {events:?}");
    assert_eq!(scene.terminating(), ["pricelist-frontend"]);
    let revision = scene.revision();
    tokio::time::sleep(Duration::from_secs(600)).await;
    scene.settle().await;
    assert_eq!(scene.writes_since(revision), [], "a wait writes nothing");
    scene.let_application_go("pricelist-frontend").await;
    assert_eq!(scene.terminating(), ["pricelist-db"]);
}

#[tokio::test(start_paused = true)]
async fn one_that_a_generator_dropped_and_that_does_not_go_is_named() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.put(pricelist_of(&["frontend"], reverse())).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    scene.settle().await;
    let conditions = scene.conditions("pricelist").join("\n");
    assert!(conditions.contains("DeletionProgressing=True ApplicationStuck"), "{conditions}");
    assert!(conditions.contains("Application pricelist-db (being deleted since"), "{conditions}");
    assert_eq!(scene.terminating(), ["pricelist-db"]);
}
