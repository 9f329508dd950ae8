//! Rollouts: what is shown, and what people ask.

use serde_json::json;

use crate::canary::furnish;
use crate::scene::{Scene, Who};

const SET: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/web";

#[tokio::test]
async fn a_rollout_is_shown_with_what_the_caller_can_ask() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let rollout = scene.get(Who::Reader, "/api/v1/applicationsets/web/rollout").await.json();
    assert_eq!((rollout["run"].as_i64(), rollout["strategy"].as_str()), (Some(3), Some("RollingSync")));
    assert_eq!((rollout["state"].as_str(), rollout["approvals"].as_i64()), (Some("Waiting"), Some(1)));
    let offer = |rollout: &serde_json::Value, action: &str| {
        let offers = rollout["actions"].as_array().cloned().unwrap_or_default();
        offers.into_iter().find(|offer| offer["action"] == action).expect("an offer")
    };
    let denied = offer(&rollout, "pause");
    assert_eq!(denied["allowed"], false);
    assert!(
        denied["why"].as_str().is_some_and(|why| why.contains("action/argoproj.io/ApplicationSet/pause")),
        "{denied}"
    );
    let rollout = scene.get(Who::Role, "/api/v1/applicationsets/web/rollout").await.json();
    let (pause, resume) = (offer(&rollout, "pause"), offer(&rollout, "resume"));
    assert_eq!((pause["allowed"].as_bool(), pause["sensible"].as_bool()), (Some(true), Some(true)));
    assert_eq!(
        (resume["sensible"].as_bool(), resume["why"].as_str()),
        (Some(false), Some("it is not paused"))
    );
    let fleet = scene.until(Who::Reader, "/api/v1/rollouts", |fleet| fleet["items"][0].is_object()).await;
    assert_eq!(fleet["items"][0]["name"], "web");
    assert!(fleet["items"][0].get("lanes").is_none());
}

#[tokio::test]
async fn people_ask_of_the_run_they_looked_at() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/v1/applicationsets/web/actions";
    let ask = |body: serde_json::Value| scene.call(Who::Role, "POST", path, body);
    let stale = ask(json!({"action": "pause", "run": 2})).await;
    assert_eq!((stale.status.as_u16(), stale.json()["code"].as_i64()), (409, Some(10)), "{}", stale.text);
    let paused = ask(json!({"action": "pause", "run": 3, "reason": "it smells"})).await;
    assert_eq!(paused.status, 200, "{}", paused.text);
    assert_eq!(paused.json()["state"], "Paused");
    assert_eq!(scene.stored(SET).await["metadata"]["annotations"]["baton.dev/paused"], "true");
    assert_eq!(ask(json!({"action": "pause"})).await.message(), "it is paused already");
    assert_eq!(ask(json!({"action": "resume"})).await.status, 200);
    assert!(scene.stored(SET).await["metadata"]["annotations"].get("baton.dev/paused").is_none());
    for (body, message) in [
        (json!({"action": "advance"}), "it has no phases: none of its generators has a deploymentStrategy"),
        (json!({"action": "approve-deletion"}), "no mass deletion waits for approval"),
        (json!({"action": "skip"}), "name the Application to skip"),
        (json!({"action": "skip", "application": "other"}), "web has no Application other"),
        (
            json!({"action": "abort", "application": "web-dev"}),
            "abort is asked of the whole set, not of an Application",
        ),
    ] {
        let answer = ask(body).await;
        assert_eq!((answer.status.as_u16(), answer.message().as_str()), (400, message));
    }
    assert_eq!(ask(json!({"action": "retry", "application": "web-dev"})).await.status, 200);
    let retry = scene.stored(SET).await["metadata"]["annotations"]["baton.dev/retry"].clone();
    assert!(retry.as_str().is_some_and(|text| text.ends_with("/web-dev")), "{retry}");
    let audit = scene.get(Who::Admin, "/api/v1/audit").await.json();
    let told = audit["items"].as_array().into_iter().flatten();
    assert!(
        told.clone()
            .any(|row| row["verb"] == "pause" && row["reason"] == "it smells" && row["outcome"] == "done"),
        "{audit}"
    );
}

#[tokio::test]
async fn a_pause_stands_in_the_head_too() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let head = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"run": "{\"seq\":3}"}, "metadata": {
        "name": "web.baton-rollout", "namespace": "argocd", "labels": {"baton.dev/application-set": "web"}}});
    scene.control.apply("test", &head).await.expect("a head");
    let path = "/api/v1/applicationsets/web/actions";
    assert_eq!(scene.call(Who::Role, "POST", path, json!({"action": "pause"})).await.status, 200);
    let stored = || scene.stored("/api/v1/namespaces/argocd/configmaps/web.baton-rollout");
    assert_eq!(stored().await["data"]["run"], "{\"paused\":true,\"seq\":3}");
    assert_eq!(scene.call(Who::Role, "POST", path, json!({"action": "resume"})).await.status, 200);
    assert_eq!(stored().await["data"]["run"], "{\"paused\":false,\"seq\":3}");
}

#[tokio::test]
async fn what_a_word_would_do_is_told_before_it_is_said() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/v1/applicationsets/web/actions";
    let ask = |who: Who, body: serde_json::Value| scene.call(who, "POST", path, body);
    let before = scene.stored(SET).await["metadata"]["resourceVersion"].clone();
    let told = ask(Who::Role, json!({"action": "pause", "dryRun": true, "run": 3})).await;
    assert_eq!(told.status, 200, "{}", told.text);
    let text = told.json()["text"].as_str().expect("a text").to_owned();
    assert!(text.starts_with("Nothing more is started, healed or written"), "{text}");
    assert_eq!(scene.stored(SET).await["metadata"]["resourceVersion"], before, "nothing was done");
    let dry = |action: &str| json!({"action": action, "dryRun": true});
    assert_eq!(ask(Who::Role, dry("resume")).await.message(), "it is not paused");
    assert_eq!(ask(Who::Role, dry("skip")).await.message(), "name the Application to skip");
    assert_eq!(ask(Who::Reader, dry("pause")).await.status, 403);
    let stale = ask(Who::Role, json!({"action": "pause", "dryRun": true, "run": 2})).await;
    assert_eq!(stale.status, 409);
}

#[tokio::test]
async fn the_runs_that_the_set_still_tells_of_are_shown() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let rollout = scene.get(Who::Reader, "/api/v1/applicationsets/web/rollout").await.json();
    assert_eq!(rollout["history"], json!([{"run": 3, "state": "Progressing"}]));
}
