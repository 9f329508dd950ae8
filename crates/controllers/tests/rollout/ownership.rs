//! Who writes what, read off the requests and the history.

use std::time::Duration;

use serde_json::Value;

use crate::scene::{Scene, fleet};

const GENERATION: &str = "argocd-applicationset-controller";
const ROLLOUT: &str = "baton-rollout";
const MEMBERS: [(&str, &str); 3] = [("a", "dev"), ("b", "test"), ("c", "prod")];

/// Field managers of an object with the fields they own below a path.
fn owners(object: &Value, path: &[&str]) -> Vec<(String, Vec<String>)> {
    let managers = object["metadata"]["managedFields"].as_array().expect("managers");
    let fields = |manager: &Value| {
        let mut place = &manager["fieldsV1"];
        for part in path {
            place = &place[format!("f:{part}")];
        }
        place.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
    };
    let named = |manager: &Value| manager["manager"].as_str().unwrap_or_default().to_owned();
    managers.iter().map(|manager| (named(manager), fields(manager))).collect()
}

#[tokio::test(start_paused = true)]
async fn each_side_writes_its_own_fields() {
    let scene = Scene::new().await;
    let mut last = String::new();
    for number in 0..2 {
        last = scene.commit(&["a", "b", "c"], &number.to_string());
        if number == 0 {
            scene.apply(fleet(&MEMBERS)).await;
        }
        scene.rolled_out(&last).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let set = scene.set("fleet");
    for (manager, fields) in owners(&set, &["status"]) {
        let has = |names: &[&str]| names.iter().any(|name| fields.contains(&format!("f:{name}")));
        match manager.as_str() {
            GENERATION => assert!(!has(&["applicationStatus", "rollout", "phases"]), "{fields:?}"),
            ROLLOUT => {
                assert!(!has(&["resources", "resourcesCount", "health"]), "{fields:?}");
                assert!(has(&["applicationStatus"]) && has(&["rollout"]), "{fields:?}");
            }
            _ => {}
        }
    }
    // Of an Application that was there already the generation side writes neither specification nor operation.
    for call in scene.wire.take_calls() {
        let (resource, name, _) = call.target();
        let Some(patch) = &call.patch else { continue };
        if resource == "applications" {
            let stamped = patch.pointer("/metadata/annotations/baton.dev~1pin").is_some();
            let decides = patch.get("spec").is_some() || patch.get("operation").is_some();
            assert!(stamped || !decides, "{name}: {patch}");
        }
    }
    let entries = set["status"]["applicationStatus"].as_array().expect("entries");
    assert_eq!(entries.len(), 3);
    for (entry, step) in entries.iter().zip(["1", "2", "3"]) {
        assert_eq!((entry["step"].as_str(), entry["status"].as_str()), (Some(step), Some("Healthy")));
        assert_eq!(entry["targetRevisions"][0], last);
        assert!(entry["resourceVersion"].is_string());
    }
    let condition = |kind: &str| {
        let all = set["status"]["conditions"].as_array().expect("conditions");
        all.iter().find(|condition| condition["type"] == kind).map(|condition| condition["message"].clone())
    };
    assert_eq!(condition("RolloutProgressing"), Some("ApplicationSet Rollout has completed".into()));
    assert_eq!(condition("InvalidRolloutConfig"), Some("Rolling Sync Configured correctly".into()));
}

#[tokio::test(start_paused = true)]
async fn a_set_at_rest_writes_nothing() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    scene.wire.take_calls();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let writes: Vec<_> =
        scene.wire.take_calls().into_iter().filter(|call| call.method != http::Method::GET).collect();
    assert_eq!(writes, []);
}
