//! What is told of a set whose phases are not at their end, or have come to a bad one.

use std::time::Duration;

use serde_json::{Value, json};

use crate::order::names;
use crate::phases::{condition, deployed, phase, phased, phases, scene};
use crate::scene::{Scene, text};

/// The state of the rollout, the health of the set, and whether conditions tell of an error and of progress.
fn told(scene: &Scene) -> [String; 4] {
    let status = |kind: &str| condition(scene, kind).map(|it| text(&it, "/status")).unwrap_or_default();
    let health = text(&scene.set("fleet"), "/status/health/status");
    [scene.rollout_state(), health, status("ErrorOccurred"), status("RolloutProgressing")]
}

fn only_prod(change: impl Fn(&mut Value)) -> Value {
    phased(|env, phase| {
        if env == "prod" {
            change(phase);
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_rollout_goes_on_while_the_last_phase_has_something_to_call_or_to_wait_for() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.receiver.silence("after-prod", true);
    scene.apply(only_prod(|phase| phase["waitDuration"] = "10m".into())).await;
    scene.until("the last hook", |scene| phase(scene, 2)["state"] == "PostHooks").await;
    let busy = ["Progressing", "Progressing", "False", "True"];
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(told(&scene), busy, "{:#}", scene.rollout("fleet"));
    assert!(scene.rollout("fleet")["finishedAt"].is_null());
    scene.receiver.silence("after-prod", false);
    let scene = scene.crash().await;
    scene.until("the wait", |scene| phase(scene, 2)["state"] == "Waiting").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(told(&scene), busy, "{:#}", scene.rollout("fleet"));
    deployed(&scene, &commit).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(told(&scene), ["Complete", "Healthy", "False", "False"]);
}

#[tokio::test(start_paused = true)]
async fn a_last_phase_that_failed_is_told_as_a_failure_until_it_is_tried_again() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.receiver.fail("after-prod", 1);
    scene.apply(only_prod(|_| {})).await;
    let failed = ["Failed", "Degraded", "True", "False"];
    scene.until("the failure to be told", |scene| told(scene) == failed).await;
    let error = condition(&scene, "ErrorOccurred").expect("a condition");
    assert!(text(&error, "/message").starts_with("phase \"prod\" has failed: "), "{error:#}");
    assert_eq!(text(&error, "/reason"), "ApplicationSetRolloutError");
    let scene = scene.crash().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(told(&scene), failed, "also by whoever takes over");
    scene.annotate_set("fleet", "baton.dev/retry", Some("again")).await;
    deployed(&scene, &commit).await;
    let well = ["Complete", "Healthy", "False", "False"];
    scene.until("the end to be told", |scene| told(scene) == well).await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_was_put_back_has_failed() {
    let Some(scene) = scene().await else { return };
    let good = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &good).await;
    let bad = scene.commit(&names(), "1");
    deployed(&scene, &bad).await;
    scene.annotate_set("fleet", "baton.dev/rollback-all", Some("back")).await;
    let failed = ["Failed", "Degraded", "True", "False"];
    scene
        .until("the way back to be told", |scene| phases(scene)["state"] == "Failed" && told(scene) == failed)
        .await;
    let mended = scene.commit(&names(), "2");
    deployed(&scene, &mended).await;
    let well = ["Complete", "Healthy", "False", "False"];
    scene.until("the end to be told", |scene| told(scene) == well).await;
}

#[tokio::test(start_paused = true)]
async fn a_first_rollout_that_cannot_be_put_back_is_tried_again() {
    let Some(scene) = scene().await else { return };
    let commit = scene.commit(&names(), "0");
    scene.receiver.fail("after-dev", 1);
    scene.apply(phased(|_, phase| phase["onFailure"] = json!({"action": "rollback"}))).await;
    scene.until("the failure", |scene| phase(scene, 0)["state"] == "Failed").await;
    assert_eq!(phase(&scene, 0)["failure"]["action"], "stop");
    scene.annotate_set("fleet", "baton.dev/retry", Some("again")).await;
    deployed(&scene, &commit).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_to_be_finished_and_has_failed_does_not_hold_back_the_next_commit() {
    for action in ["stop", "rollback"] {
        let Some(scene) = scene().await else { return };
        let good = scene.commit(&names(), "0");
        scene.apply(only_prod(|phase| phase["onFailure"] = json!({"action": action}))).await;
        deployed(&scene, &good).await;
        scene.annotate_set("fleet", "baton.dev/supersede", Some("Finish")).await;
        scene.receiver.fail("after-prod", 1);
        scene.commit(&names(), "1");
        scene.until("the failure to be told", |scene| told(scene)[0] == "Failed").await;
        let mended = scene.commit(&names(), "2");
        deployed(&scene, &mended).await;
    }
}
