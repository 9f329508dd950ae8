//! What goes wrong, or is forbidden, holds up those who must wait for it and nobody else.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::scene::{Harm, NAMESPACE, Scene, fleet, objects, text};

const MEMBERS: [(&str, &str); 4] = [("a", "dev"), ("b", "dev"), ("c", "test"), ("d", "prod")];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn is_at(scene: &Scene, name: &str, commit: &str) -> bool {
    let application = &scene.applications()[name];
    let status = &application["status"];
    status["sync"]["status"] == "Synced"
        && status["operationState"]["syncResult"]["revision"] == commit
        && application["operation"].is_null()
}

fn condition(scene: &Scene, kind: &str) -> String {
    let set = scene.set("fleet");
    let all = set["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
    format!("{}: {}", text(&found, "/status"), text(&found, "/message"))
}

#[tokio::test(start_paused = true)]
async fn an_application_that_cannot_be_written_holds_up_only_later_steps() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    scene.wire.fail(|_, call| {
        let (resource, name, _) = call.target();
        (call.method == Method::PATCH && resource == "applications" && name == "a")
            .then(|| Fault::Refused(422, "a webhook says no".to_owned()))
    });
    let commit = scene.commit(&NAMES, "1");
    scene.until("its neighbour to be synced", |scene| is_at(scene, "b", &commit)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    for late in ["a", "c", "d"] {
        assert!(!is_at(&scene, late, &commit), "{late}");
    }
    scene.wire.heal();
    scene.rolled_out(&commit).await;
}

#[tokio::test(start_paused = true)]
async fn any_failing_request_only_delays() {
    let scene = Scene::new().await;
    // In no rhythm that a controller could fall into.
    let mut dice = 1u64;
    scene.wire.fail(move |_, call| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(!call.watch));
        let fault = match (dice >> 33) % 15 {
            3 => Fault::Refused(500, "no".to_owned()),
            5 => Fault::Done(500, "done, and not told".to_owned()),
            _ => return None,
        };
        (!call.watch).then_some(fault)
    });
    for number in 0..3 {
        let commit = scene.commit(&NAMES, &number.to_string());
        if number == 0 {
            scene.apply(fleet(&MEMBERS)).await;
        }
        scene.rolled_out(&commit).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_window_holds_its_step_and_is_named() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let mut project = objects(&scene.control, "appprojects.argoproj.io")["default"].clone();
    project["metadata"] = json!({"name": "default", "namespace": NAMESPACE});
    project["spec"]["syncWindows"] =
        json!([{"kind": "deny", "schedule": "0 0 * * *", "duration": "1h", "applications": ["c"]}]);
    scene.apply(project).await;
    let commit = scene.commit(&NAMES, "1");
    scene
        .until("the window to be named", |scene| {
            let rollout = scene.rollout("fleet");
            let blockers = rollout["blockers"].as_array().cloned().unwrap_or_default();
            let named = |blocker: &Value| blocker["reason"] == "SyncWindow" && blocker["object"] == "c";
            is_at(scene, "a", &commit) && is_at(scene, "b", &commit) && blockers.iter().any(named)
        })
        .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!is_at(&scene, "c", &commit) && !is_at(&scene, "d", &commit));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    scene.rolled_out(&commit).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_steps_is_told_and_they_go_on() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    let mut set = fleet(&MEMBERS);
    set["spec"]["strategy"]["rollingSync"]["steps"][1]["maxUpdate"] = "many".into();
    scene.apply(set.clone()).await;
    scene.rolled_out(&commit).await;
    let expected = "True: step 2: maxUpdate \"many\" is neither a number nor a percentage: 1 is used";
    assert_eq!(condition(&scene, "InvalidRolloutConfig"), expected);
    set["spec"]["strategy"]["rollingSync"]["steps"][1]["matchExpressions"][0]["values"] =
        json!(["dev", "test"]);
    scene.apply(set.clone()).await;
    let expected =
        "True: Application a is selected by steps 1, 2: the first counts (and 1 more Applications)";
    scene.until("the overlap to be told", |scene| condition(scene, "InvalidRolloutConfig") == expected).await;
    set["spec"]["ignoreApplicationDifferences"] = json!([{"jsonPointers": ["/spec/syncPolicy"]}]);
    scene.apply(set.clone()).await;
    scene
        .until("the rule to be told", |scene| {
            condition(scene, "InvalidRolloutConfig").starts_with("True: ignoreApplicationDifferences covers")
        })
        .await;
    set["spec"]["strategy"]["rollingSync"]["steps"] = json!([]);
    scene.apply(set).await;
    scene
        .until("the lack of steps to be told", |scene| {
            condition(scene, "ErrorOccurred") == "True: No steps defined for rollout"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_keeps_an_application_from_being_created_is_told() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let mut other = fleet(&[("b", "dev"), ("twice", "dev"), ("twice", "dev")]);
    other["metadata"]["name"] = "other".into();
    scene.apply(other).await;
    let told = |scene: &Scene, words: &str| {
        let set = scene.set("other");
        let entries = set["status"]["applicationStatus"].as_array().cloned().unwrap_or_default();
        entries.iter().any(|entry| text(entry, "/message").starts_with(words))
    };
    let taken =
        "InvalidApplication: Object argocd/b is already owned by another ApplicationSet controller fleet";
    let twice = "InvalidApplication: ApplicationSet other contains applications with duplicate name: twice";
    scene.until("both reasons", |scene| told(scene, taken) && told(scene, twice)).await;
    scene.annotate_set("fleet", "baton.dev/supersede", Some("maybe")).await;
    scene
        .until("the word to be named", |scene| {
            condition(scene, "InvalidRolloutConfig").starts_with("True: baton.dev/supersede: \"maybe\"")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_head_is_made_anew_and_nothing_is_synced_again() {
    let scene = Scene::new().await;
    let commit = scene.commit(&NAMES, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let run = scene.rollout("fleet")["run"].as_i64().expect("a run");
    scene.harm_head("fleet", Harm::Garbled).await;
    let revision = scene.revision();
    let scene = scene.crash().await;
    scene
        .until("the next run", |scene| {
            let rollout = scene.rollout("fleet");
            rollout["run"].as_i64() > Some(run) && rollout["state"] == "Complete"
        })
        .await;
    // No Application carries a mark of that run, since none had to be written: only what is shown tells its number, and
    // where that is not kept the number may come again, as a mark of it cannot.
    let known = if scene.api.keeps_summary() { scene.rollout("fleet")["run"].as_i64() } else { Some(run) };
    scene.harm_head("fleet", Harm::Lost).await;
    let scene = scene.crash().await;
    scene
        .until("another head", |scene| {
            !scene.head("fleet").is_empty() && scene.rollout("fleet")["run"].as_i64() > known
        })
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let operated = scene.versions_since(revision).into_iter().filter_map(|version| version.object);
    assert_eq!(operated.filter(|object| !object["operation"].is_null()).count(), 0);
    let commit = scene.commit(&NAMES, "1");
    scene.rolled_out(&commit).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_write_config_maps_the_head_is_an_annotation() {
    let scene = Scene::new().await;
    let forbid = |scene: &Scene| {
        scene.wire.fail(|_, call| {
            let (resource, name, _) = call.target();
            // Listing is another right.
            let is_map = resource == "configmaps" && (!name.is_empty() || call.method == Method::POST);
            is_map.then(|| Fault::Refused(403, "configmaps is forbidden".to_owned()))
        });
    };
    forbid(&scene);
    let commit = scene.commit(&NAMES, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let head = text(&scene.set("fleet"), "/metadata/annotations/baton.dev~1rollout");
    assert!(head.contains("finished"), "{head}");
    assert_eq!(
        objects(&scene.control, "configmaps").keys().filter(|name| name.starts_with("fleet")).count(),
        0
    );
    let run = scene.rollout("fleet")["run"].clone();
    let scene = scene.crash().await;
    forbid(&scene);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.rollout("fleet")["run"], run, "the same run goes on");
    let commit = scene.commit(&NAMES, "1");
    scene.rolled_out(&commit).await;
}

#[tokio::test(start_paused = true)]
async fn sets_with_long_names_are_rolled_out() {
    for length in [100, 250] {
        let scene = Scene::new().await;
        let commit = scene.commit(&NAMES, "0");
        let name = format!("{}.{}", "w".repeat(45), "x".repeat(length - 46));
        let mut set = fleet(&MEMBERS);
        set["metadata"]["name"] = name.as_str().into();
        scene.apply(set).await;
        until_at(&scene, &name, &commit).await;
        let commit = scene.commit(&NAMES, "1");
        until_at(&scene, &name, &commit).await;
        let conditions = scene.set(&name)["status"]["conditions"].as_array().cloned().expect("conditions");
        let config = conditions.iter().find(|condition| condition["type"] == "InvalidRolloutConfig");
        let told = text(config.expect("a condition"), "/message");
        assert_eq!(told.contains("longer than 239 characters"), length > 239, "{told}");
    }
}

/// Waits until the run of a set is complete and every Application is at the commit.
async fn until_at(scene: &Scene, set: &str, commit: &str) {
    scene
        .until(&format!("a rollout of {commit}"), |scene| {
            let there = |app: &&str| scene.applications().contains_key(*app) && is_at(scene, app, commit);
            NAMES.iter().all(there) && text(&scene.rollout(set), "/state") == "Complete"
        })
        .await;
}
