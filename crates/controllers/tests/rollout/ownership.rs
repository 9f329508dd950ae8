//! Who writes what, read off the requests and the history.

use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::Call;
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
    // Who writes the head as an annotation of the set is noted once more for that.
    let writers = owners(&set, &["status"]).into_iter().filter(|(_, fields)| !fields.is_empty());
    let writers: Vec<_> = writers.collect();
    assert_eq!(writers.iter().filter(|(manager, _)| manager == ROLLOUT).count(), 1);
    for (manager, fields) in writers {
        let has = |names: &[&str]| names.iter().any(|name| fields.contains(&format!("f:{name}")));
        match manager.as_str() {
            GENERATION => assert!(!has(&["applicationStatus", "rollout", "phases"]), "{fields:?}"),
            ROLLOUT => {
                assert!(!has(&["resources", "resourcesCount", "health"]), "{fields:?}");
                assert!(has(&["applicationStatus"]), "{fields:?}");
                assert_eq!(has(&["rollout"]), scene.api.keeps_summary(), "{fields:?}");
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
        assert_eq!(entry["resourceVersion"].is_string(), scene.api.keeps_summary());
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
    assert_eq!(written_in_an_hour(&scene).await, []);
}

/// What the controller writes in an hour. What is refused is not written.
async fn written_in_an_hour(scene: &Scene) -> Vec<Call> {
    scene.wire.take_calls();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let calls = scene.wire.take_calls().into_iter();
    calls.filter(|call| call.method != http::Method::GET && !call.failed).collect()
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_is_held_writes_nothing() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    let mut set = fleet(&MEMBERS);
    // People sync this step.
    set["spec"]["strategy"]["rollingSync"]["steps"][1]["maxUpdate"] = json!(0);
    scene.apply(set).await;
    let open = |scene: &Scene| scene.rollout("fleet")["step"] == 2;
    scene.until("the step of people", open).await;
    let first = &scene.applications()["a"];
    assert_eq!(first["status"]["sync"]["revision"], *commit);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(written_in_an_hour(&scene).await, []);
    scene.annotate_set("fleet", "baton.dev/paused", Some("true")).await;
    scene.until("a pause", |scene| scene.rollout_state() == "Paused").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(written_in_an_hour(&scene).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_in_order_that_waits_writes_nothing() {
    let scene = Scene::new().await;
    scene.commit(&["a", "b", "c"], "0");
    let dropping = |members: &[(&str, &str)]| {
        let mut set = fleet(members);
        let steps = set["spec"]["strategy"]["rollingSync"]["steps"].take();
        set["spec"]["strategy"] =
            json!({"type": "AllAtOnce", "deletionOrder": "Custom", "deletionSync": {"steps": steps}});
        set["spec"]["template"]["metadata"]["finalizers"] = json!(["example.com/kept"]);
        set
    };
    scene.apply(dropping(&MEMBERS)).await;
    scene.until("the Applications", |scene| scene.applications().len() == 3).await;
    scene.apply(dropping(&MEMBERS[1..])).await;
    let goes = |scene: &Scene| scene.applications()["a"]["metadata"]["deletionTimestamp"].is_string();
    scene.until("its deletion", goes).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let told = scene.set("fleet")["status"]["conditions"].to_string();
    assert!(told.contains("DeletionProgressing") && told.contains("example.com/kept"), "{told}");
    assert_eq!(written_in_an_hour(&scene).await, []);
}
