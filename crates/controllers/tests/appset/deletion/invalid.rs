//! An order that makes no sense: creates and updates go on, nothing is deleted, and the way out is named.

use serde_json::{Value, json};

use super::{pricelist_of, reverse};
use crate::scene::Scene;

fn invalid() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"deletionOrder": "Backwards"}), "none of AllAtOnce, Reverse and Custom"),
        (json!({"deletionOrder": "Custom"}), "Custom needs deletionSync.steps"),
        (json!({"deletionOrder": "Reverse", "type": "AllAtOnce"}), "Reverse needs strategy type RollingSync"),
        (
            json!({"deletionOrder": "Reverse", "rollingSync": {"steps": []}}),
            "Reverse needs strategy type RollingSync",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn creates_and_updates_go_on_and_nothing_is_deleted() {
    for (deletion, expected) in invalid() {
        let scene = Scene::new().await;
        scene.put(pricelist_of(&["config", "db"], deletion.clone())).await;
        assert_eq!(scene.names(), ["pricelist-config", "pricelist-db"]);
        assert_invalid(&scene, expected);
        let mut changed = pricelist_of(&["db", "frontend"], deletion.clone());
        changed["spec"]["template"]["spec"]["source"]["targetRevision"] = "next".into();
        scene.put(changed).await;
        assert_eq!(scene.names(), ["pricelist-config", "pricelist-db", "pricelist-frontend"]);
        assert_eq!(scene.application("pricelist-db")["spec"]["source"]["targetRevision"], "next");
        assert_eq!(scene.terminating(), [""; 0]);
        // Mended, what was held goes.
        scene.put(pricelist_of(&["db", "frontend"], reverse())).await;
        assert_eq!(scene.terminating(), ["pricelist-config"]);
        let conditions = scene.conditions("pricelist").join("\n");
        assert!(!conditions.contains("InvalidRolloutConfig=True"), "{conditions}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_set_waits_until_its_order_makes_sense() {
    for (way_out, first) in [
        (reverse(), vec!["pricelist-db"]),
        (json!({"deletionOrder": "AllAtOnce"}), vec!["pricelist-config", "pricelist-db"]),
    ] {
        for (deletion, expected) in invalid() {
            let scene = Scene::new().await;
            scene.put(pricelist_of(&["config", "db"], deletion)).await;
            scene.delete_set("pricelist", "Background").await;
            assert!(scene.has_set("pricelist"));
            assert_eq!(scene.terminating(), [""; 0]);
            assert_invalid(&scene, expected);
            let mut strategy = pricelist_of(&[], way_out.clone())["spec"]["strategy"].clone();
            strategy["deletionSync"] = Value::Null;
            let patch = json!({"spec": {"strategy": strategy}});
            scene.merge("applicationsets.argoproj.io", "pricelist", patch).await;
            scene.settle().await;
            assert_eq!(scene.terminating(), first);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_nothing_is_deleted_either() {
    let scene = Scene::new().await;
    scene.put(pricelist_of(&["config", "db"], json!({"deletionOrder": "Custom"}))).await;
    scene.delete_set("pricelist", "Foreground").await;
    assert!(scene.has_set("pricelist"));
    assert_eq!(scene.names(), ["pricelist-config", "pricelist-db"]);
    assert_eq!(scene.terminating(), [""; 0]);
}

fn assert_invalid(scene: &Scene, expected: &str) {
    let conditions = scene.conditions("pricelist");
    let invalid = conditions.iter().find(|condition| condition.starts_with("InvalidRolloutConfig=True"));
    let invalid = invalid.unwrap_or_else(|| panic!("{conditions:?}"));
    assert!(invalid.contains(expected), "{invalid}");
    assert!(invalid.contains("or set strategy.deletionOrder: AllAtOnce"), "{invalid}");
}
