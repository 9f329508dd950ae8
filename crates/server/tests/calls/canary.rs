//! A secret in a Secret, in credentials and in a URL: it leaves by no path, for nobody.

use serde_json::json;

use crate::rows::READS;
use crate::scene::{CANARY, CANARY_BASE64, Scene, Who, application};

/// A set of two Applications, one of which waits for approval of a prune.
pub(crate) async fn furnish(scene: &Scene) {
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {
            "generators": [{"list": {"elements": []}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": [
                {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]}]}},
            "template": {"metadata": {"name": "x"}, "spec": {"project": "shop", "destination": {},
                "source": {"repoURL": format!("https://me:{CANARY}@git.example.com/x"), "path": "."}}},
        },
    });
    let stored = scene.control.apply("test", &set).await.expect("a set");
    let status = json!({"status": {
        "rollout": {"run": 3, "state": "Progressing", "steps": [{"step": 1, "state": "Open", "total": 1, "updating": 1}]},
        "applicationStatus": [{"application": "web-dev", "step": "1", "status": "Progressing", "message": "",
            "targetRevisions": []}],
    }});
    scene.patch("/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/web/status", &status).await;
    let uid = stored["metadata"]["uid"].as_str().expect("a uid");
    let row = |group: &str, version: &str, kind: &str, name: &str, waits: bool| {
        json!({"group": group, "version": version, "kind": kind, "namespace": "shop", "name": name, "status": "OutOfSync",
            "requiresPruning": waits, "requiresDeletionConfirmation": waits, "requiresDeletionApproval": waits})
    };
    let status = json!({
        "resources": [
            row("", "v1", "ConfigMap", "settings", true),
            row("", "v1", "Secret", "keys", false),
            row("apps", "v1", "Deployment", "web", false),
        ],
        "operationState": {"phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "message": "waiting for a person",
            "operation": {"initiatedBy": {"username": "alice"}}},
        "health": {"status": "Progressing"},
        "conditions": [{"type": "ComparisonError", "message": format!("cannot read https://me:{CANARY}@git.example.com/x")}],
    });
    let mut dev = application("web-dev", "shop", Some(uid), status);
    dev["operation"] = json!({"sync": {"prune": true}});
    dev["metadata"]["labels"] = json!({"env": "dev"});
    scene.control.apply("test", &dev).await.expect("an Application");
    let prod = application("web-prod", "shop", Some(uid), json!({"health": {"status": "Healthy"}}));
    scene.control.apply("test", &prod).await.expect("an Application");
    scene
        .until(Who::Admin, "/api/v1/applications", |list| {
            list["items"].as_array().is_some_and(|items| items.len() == 3)
        })
        .await;
    scene
        .until(Who::Admin, "/api/v1/applicationsets", |list| {
            list["items"].as_array().is_some_and(|items| !items.is_empty())
        })
        .await;
}

#[tokio::test]
async fn the_canary_leaves_by_no_path() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    for who in [Who::Nobody, Who::Reader, Who::Role, Who::Admin] {
        for path in READS {
            let answer = scene.get(who, path).await;
            assert!(!answer.status.is_server_error(), "{path} for {who:?}: {}", answer.text);
            for secret in [CANARY, CANARY_BASE64] {
                assert!(!answer.text.contains(secret), "{path} for {who:?}: {}", answer.text);
            }
        }
    }
    // What was hidden is still there, and shown as hidden.
    let shown = scene.get(Who::Admin, "/api/v1/applications/web-dev").await.json();
    assert_eq!(shown["spec"]["source"]["repoURL"], "https://***@git.example.com/web-dev");
    let secret = scene.get(Who::Admin, READS[13]).await.json();
    assert!(secret["manifest"].as_str().is_some_and(|text| text.contains("++++++++")), "{secret}");
}

#[tokio::test]
async fn writes_and_errors_do_not_say_the_canary_either() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let shown = scene.get(Who::Admin, "/api/v1/applications/web-prod").await.json();
    let mut wanted = shown.clone();
    wanted["metadata"]["labels"]["x"] = "y".into();
    let answer = scene.call(Who::Admin, "PUT", "/api/v1/applications/web-prod", wanted).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!answer.text.contains(CANARY));
    let path = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web-prod";
    let stored = scene.stored(path).await;
    let url = stored["spec"]["source"]["repoURL"].as_str().expect("a URL");
    assert!(url.contains(CANARY), "what was hidden from the caller is not lost by sending it back");
    let patch = json!({"patch": "[{\"op\":\"test\",\"path\":\"/spec/project\",\"value\":\"no\"}]"});
    let answer = scene.call(Who::Admin, "PATCH", "/api/v1/applications/web-prod", patch).await;
    assert!(answer.status == 400 && !answer.text.contains(CANARY), "{}", answer.text);
}
