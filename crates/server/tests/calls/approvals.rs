//! The inbox: seen, approved, rejected, each once and as it was seen.

use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{Scene, Who};

async fn inbox(scene: &Scene, who: Who) -> Vec<Value> {
    scene.get(who, "/api/v1/approvals").await.json()["items"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn what_waits_is_shown_to_whoever_may_see_it() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let items = inbox(&scene, Who::Admin).await;
    assert_eq!(items.len(), 1);
    let item = &items[0];
    assert_eq!(
        (item["kind"].as_str(), item["requestedBy"].as_str(), item["allowed"].as_bool()),
        (Some("prune"), Some("alice"), Some(true))
    );
    assert_eq!(item["object"], json!({"kind": "Application", "namespace": "argocd", "name": "web-dev"}));
    assert_eq!(item["resources"].as_array().map(Vec::len), Some(1));
    let denied = inbox(&scene, Who::Reader).await;
    assert_eq!(denied[0]["allowed"], false);
    assert!(denied[0]["whyNot"].as_str().is_some_and(|why| why.contains("approve-deletion")), "{denied:?}");
}

#[tokio::test]
async fn an_approval_is_bound_to_what_was_seen_and_bears_a_name() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let item = inbox(&scene, Who::Admin).await.remove(0);
    let approve = |who: Who, hash: Value| {
        scene.call(
            who,
            "POST",
            "/api/v1/approvals/approve",
            json!({"items": [{"id": item["id"], "setHash": hash}], "reason": "ok"}),
        )
    };
    let stale = approve(Who::Admin, json!("other")).await.json();
    assert_eq!(stale["items"][0]["ok"], false);
    assert_eq!(stale["items"][0]["message"], "what waits has changed since: look at it again");
    for who in [Who::Reader, Who::Role] {
        let denied = approve(who, item["setHash"].clone()).await.json();
        assert_eq!(denied["items"][0]["ok"], false, "{denied}");
        assert!(
            denied["items"][0]["message"].as_str().is_some_and(|why| why.starts_with("permission denied")),
            "{denied}"
        );
    }
    let path = "/api/v1/namespaces/shop/configmaps/settings";
    assert!(
        scene.stored(path).await["metadata"]["annotations"].get("baton.dev/approval").is_none(),
        "nothing was written"
    );
    let done = approve(Who::Admin, item["setHash"].clone()).await.json();
    assert_eq!(done["items"][0]["ok"], true, "{done}");
    let annotations = scene.stored(path).await["metadata"]["annotations"].clone();
    assert_eq!(annotations["argocd.argoproj.io/deletion-approved"], "true");
    let grant: Value =
        serde_json::from_str(annotations["baton.dev/approval"].as_str().expect("a grant")).expect("JSON");
    assert_eq!(
        (grant["actor"].as_str(), grant["operation"].as_str()),
        (Some("admin"), Some("2026-01-01T00:00:00Z"))
    );
    let secret = scene.stored("/api/v1/namespaces/shop/secrets/keys").await;
    assert!(
        secret["metadata"]["annotations"].get("baton.dev/approval").is_none(),
        "only what waited is approved"
    );
}

#[tokio::test]
async fn a_rejection_needs_a_reason_and_ends_the_sync() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let item = inbox(&scene, Who::Admin).await.remove(0);
    let items = json!([{"id": item["id"], "setHash": item["setHash"]}]);
    let path = "/api/v1/approvals/reject";
    assert_eq!(scene.call(Who::Admin, "POST", path, json!({"items": items})).await.status, 400);
    let answer =
        scene.call(Who::Admin, "POST", path, json!({"items": items, "reason": "not today"})).await.json();
    assert_eq!(answer["items"][0]["ok"], true, "{answer}");
    let stored = scene.stored("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web-dev").await;
    assert_eq!(stored["status"]["operationState"]["phase"], "Terminating");
    let nonsense = json!({"items": [{"id": "bm8", "setHash": ""}], "reason": "x"});
    let answer = scene.call(Who::Admin, "POST", path, nonsense).await.json();
    assert_eq!(answer["items"][0], json!({"id": "bm8", "ok": false, "message": "permission denied"}));
}

#[tokio::test]
async fn one_resource_is_approved_by_its_action() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let run = |name: &str| json!({"kind": "ConfigMap", "version": "v1", "namespace": "shop", "resourceName": name, "action": "approve-deletion"});
    let path = "/api/v1/applications/web-dev/resource/actions/v2";
    let list = "/api/v1/applications/web-dev/resource/actions?kind=ConfigMap&version=v1&namespace=shop&resourceName=settings";
    assert_eq!(scene.get(Who::Reader, list).await.json()["actions"][0]["name"], "approve-deletion");
    assert_eq!(scene.call(Who::Role, "POST", path, run("settings")).await.status, 403);
    assert_eq!(scene.call(Who::Admin, "POST", path, run("other")).await.status, 400);
    assert_eq!(scene.call(Who::Admin, "POST", path, run("settings")).await.status, 200);
    let stored = scene.stored("/api/v1/namespaces/shop/configmaps/settings").await;
    assert_eq!(stored["metadata"]["annotations"]["argocd.argoproj.io/deletion-approved"], "true");
}
