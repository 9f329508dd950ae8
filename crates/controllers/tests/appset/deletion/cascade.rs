//! `kubectl delete --cascade=…`: what the garbage collector does counts as well.

use serde_json::json;

use super::{by_component, custom, pricelist, reverse};
use crate::faults::Fault;
use crate::scene::Scene;

const ALL: [&str; 3] = ["pricelist-config", "pricelist-db", "pricelist-frontend"];
const REVERSE: &[&str] = &["frontend", "db", "config"];
const CUSTOM: &[&str] = &["config", "frontend", "db"];

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_order_is_kept() {
    for (deletion, order) in [(reverse(), REVERSE), (custom(), CUSTOM)] {
        let scene = Scene::new().await;
        scene.put(pricelist(deletion)).await;
        scene.delete_set("pricelist", "Foreground").await;
        for component in order {
            let name = format!("pricelist-{component}");
            assert_eq!(scene.terminating(), [name.as_str()]);
            scene.let_application_go(&name).await;
        }
        assert!(!scene.has_set("pricelist") && scene.names().is_empty() && scene.maps().is_empty());
        assert_eq!(scene.went_in_order(by_component(order)).len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_order_is_kept_while_the_controller_is_away() {
    let mut scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.stop().await;
    scene.delete_set_unseen("Foreground").await;
    assert_eq!(scene.terminating(), [""; 0], "the guard holds them");
    for object in scene.applications().values() {
        let owners = object["metadata"]["ownerReferences"].as_array().expect("owners");
        assert_eq!(owners.len(), 1, "the garbage collector took the set's reference: {owners:?}");
    }
    let scene = Scene::over(scene.cluster.clone(), scene.settings.clone()).await;
    for component in REVERSE {
        let name = format!("pricelist-{component}");
        assert_eq!(scene.terminating(), [name.as_str()]);
        scene.let_application_go(&name).await;
    }
    assert!(!scene.has_set("pricelist") && scene.maps().is_empty());
    scene.went_in_order(by_component(REVERSE));
}

#[tokio::test(start_paused = true)]
async fn orphans_stay() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.delete_set("pricelist", "Orphan").await;
    assert_orphans(&scene);
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_though_the_controller_was_away() {
    let mut scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.stop().await;
    scene.delete_set_unseen("Orphan").await;
    assert!(scene.has_set("pricelist"), "the finalizer holds it");
    let scene = Scene::over(scene.cluster.clone(), scene.settings.clone()).await;
    assert_orphans(&scene);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_under_way_may_still_become_an_orphaning() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.delete_set("pricelist", "Background").await;
    assert_eq!(scene.terminating(), ["pricelist-frontend"]);
    scene.delete_set("pricelist", "Orphan").await;
    assert!(!scene.has_set("pricelist") && scene.maps().is_empty());
    assert_eq!(scene.terminating(), ["pricelist-frontend"], "what was begun goes on");
    scene.let_application_go("pricelist-frontend").await;
    assert_eq!(scene.names(), ["pricelist-config", "pricelist-db"]);
}

#[tokio::test(start_paused = true)]
async fn a_set_whose_finalizer_somebody_took_takes_its_applications_with_it() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.delete_set("pricelist", "Background").await;
    scene.merge("applicationsets.argoproj.io", "pricelist", json!({"metadata": {"finalizers": null}})).await;
    scene.settle().await;
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.terminating(), ALL, "as without an order");
    assert_eq!(scene.maps(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_same_though_the_controller_was_away() {
    let mut scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.stop().await;
    scene.delete_set_unseen("Background").await;
    scene.merge("applicationsets.argoproj.io", "pricelist", json!({"metadata": {"finalizers": null}})).await;
    let scene = Scene::over(scene.cluster.clone(), scene.settings.clone()).await;
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.terminating(), ALL);
    assert_eq!(scene.maps(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_rights_for_a_guard_the_order_is_kept_in_the_background_and_a_person_is_told() {
    let scene = Scene::new().await;
    scene.wire.fail(|_, call| {
        let ours = call.target().0 == "configmaps" && !call.watch;
        ours.then(|| Fault::Refused(403, "configmaps is forbidden".into()))
    });
    scene.put(pricelist(reverse())).await;
    assert_eq!(scene.names(), ALL);
    let warnings = scene.events().into_iter().filter(|event| event.starts_with("DeletionOrderUnguarded"));
    let warnings: Vec<String> = warnings.collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("--cascade=foreground"), "{warnings:?}");
    scene.delete_set("pricelist", "Background").await;
    for component in REVERSE {
        let name = format!("pricelist-{component}");
        assert_eq!(scene.terminating(), [name.as_str()]);
        scene.let_application_go(&name).await;
    }
    assert!(!scene.has_set("pricelist"));
    scene.went_in_order(by_component(REVERSE));
}

fn assert_orphans(scene: &Scene) {
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.names(), ALL);
    assert_eq!(scene.terminating(), [""; 0]);
    assert_eq!(scene.maps(), [""; 0]);
    for (name, object) in scene.applications() {
        assert_eq!(object["metadata"].get("ownerReferences"), None, "{name}");
        assert_eq!(object["metadata"]["labels"].get("baton.dev/application-set"), None, "{name}");
    }
}
