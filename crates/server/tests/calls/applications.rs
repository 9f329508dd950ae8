//! Applications: what calls write, and what they leave alone.

use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{Scene, Who};

const STORED: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web-prod";

/// An action as operators write them.
const RESTART: &str = r#"
discovery.lua: |
  return {restart = {}}
definitions:
- name: restart
  action.lua: |
    obj.spec.template.metadata.annotations = {restarted = "now"}
    return obj
"#;

#[tokio::test]
async fn an_update_changes_what_it_may_and_nothing_else() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let patch = json!({
        "metadata": {"labels": {"new": "yes"}, "annotations": {"baton.dev/pin": "forged"}},
        "spec": {"revisionHistoryLimit": 3},
        "status": {"health": {"status": "Degraded"}},
        "operation": {"sync": {}},
    });
    let body = json!({"patch": patch.to_string(), "patchType": "merge"});
    let answer = scene.call(Who::Role, "PATCH", "/api/v1/applications/web-prod", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let stored = scene.stored(STORED).await;
    assert_eq!(
        (stored["metadata"]["labels"]["new"].as_str(), stored["spec"]["revisionHistoryLimit"].as_i64()),
        (Some("yes"), Some(3))
    );
    assert_eq!(stored["status"]["health"]["status"], "Healthy", "status is the controller's");
    assert_eq!(
        (stored.get("operation"), stored["metadata"]["annotations"].get("baton.dev/pin")),
        (None, None)
    );
    let spec =
        scene.call(Who::Admin, "PUT", "/api/v1/applications/web-prod/spec", stored["spec"].clone()).await;
    assert_eq!(spec.json()["project"], "shop");
}

#[tokio::test]
async fn moving_to_another_project_needs_rights_in_both() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let body = json!({"patch": "{\"spec\":{\"project\":\"default\"}}", "patchType": "merge"});
    let answer = scene.call(Who::Role, "PATCH", "/api/v1/applications/web-prod", body.clone()).await;
    assert_eq!(answer.status, 403, "{}", answer.text);
    assert!(
        answer
            .message()
            .starts_with("permission denied: applications, create, default/web-prod, sub: proj:shop:ci")
    );
    assert_eq!(scene.call(Who::Admin, "PATCH", "/api/v1/applications/web-prod", body).await.status, 200);
}

#[tokio::test]
async fn an_approval_is_no_mere_update_and_bears_the_servers_time() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let approve = |time: &str| {
        let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": time}}});
        json!({"patch": patch.to_string(), "patchType": "merge"})
    };
    let path = "/api/v1/applications/web-dev";
    let answer = scene.call(Who::Role, "PATCH", path, approve("2030-01-01T00:00:00Z")).await;
    assert_eq!(answer.status, 403, "{}", answer.text);
    assert!(answer.message().contains("approve-deletion"), "{}", answer.text);
    let answer = scene.call(Who::Admin, "PATCH", path, approve("2030-01-01T00:00:00Z")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let stamped = answer.json()["metadata"]["annotations"]["argocd.argoproj.io/deletion-approved"].clone();
    assert!(stamped.as_str().is_some_and(|time| !time.starts_with("2030")), "{stamped}");
}

#[tokio::test]
async fn a_sync_is_written_once_and_told_of() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/v1/applications/web-prod/sync";
    let body = json!({"prune": true, "infos": [{"name": "why", "value": "test"}], "strategy": {"hook": {}}});
    let answer = scene.call(Who::Role, "POST", path, body.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["operation"]["initiatedBy"]["username"], "proj:shop:ci");
    let again = scene.call(Who::Admin, "POST", path, body).await;
    assert_eq!(
        (again.status.as_u16(), again.message().as_str()),
        (400, "another operation is already in progress")
    );
    let audit = scene.get(Who::Admin, "/api/v1/audit").await.json();
    let rows: Vec<(&str, &str, &str)> = audit["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| (&row["actor"], &row["verb"], &row["outcome"]))
        .filter_map(|(actor, verb, outcome)| Some((actor.as_str()?, verb.as_str()?, outcome.as_str()?)))
        .collect();
    assert!(rows.contains(&("proj:shop:ci", "sync", "done")), "{audit}");
    assert!(rows.contains(&("admin", "sync", "failed")), "{audit}");
    let seen = scene.get(Who::Role, "/api/v1/applications/web-prod/events").await.json();
    assert!(
        seen["items"]
            .as_array()
            .is_some_and(|items| items.iter().any(|event| event["reason"] == "OperationStarted"))
    );
}

#[tokio::test]
async fn deleting_sets_the_finalizer_that_is_asked_for() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/v1/applications/web-prod";
    for (query, status) in
        [("?cascade=false&propagationPolicy=foreground", 400), ("?propagationPolicy=sideways", 400)]
    {
        assert_eq!(
            scene.call(Who::Admin, "DELETE", &format!("{path}{query}"), Value::Null).await.status,
            status
        );
    }
    let answer =
        scene.call(Who::Admin, "DELETE", &format!("{path}?propagationPolicy=foreground"), Value::Null).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({})));
    let stored = scene.stored(STORED).await;
    assert_eq!(
        stored["metadata"]["finalizers"],
        json!(["resources-finalizer.argocd.argoproj.io/foreground"])
    );
    assert!(stored["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test]
async fn resources_are_shown_and_acted_upon_only_if_they_are_the_applications() {
    let scene = Scene::with(json!({"resource.customizations.actions.apps_Deployment": RESTART})).await;
    furnish(&scene).await;
    let tree = scene.get(Who::Role, "/api/v1/applications/web-dev/resource-tree").await.json();
    let kinds: Vec<&str> =
        tree["nodes"].as_array().into_iter().flatten().filter_map(|node| node["kind"].as_str()).collect();
    assert!(
        kinds.contains(&"ConfigMap") && kinds.contains(&"Secret") && kinds.contains(&"Deployment"),
        "{tree}"
    );
    let managed =
        scene.get(Who::Role, "/api/v1/applications/web-dev/managed-resources?kind=ConfigMap").await.json();
    assert_eq!(managed["items"].as_array().map(Vec::len), Some(1));
    let strange = "/api/v1/applications/web-dev/resource?kind=Secret&version=v1&namespace=argocd&resourceName=argocd-secret";
    assert_eq!(
        scene.get(Who::Admin, strange).await.status,
        400,
        "the key of all tokens is none of the Application's"
    );
    let actions = "/api/v1/applications/web-dev/resource/actions?kind=Deployment&group=apps&version=v1&namespace=shop&resourceName=web";
    let offered = scene.get(Who::Role, actions).await.json();
    assert!(
        offered["actions"].as_array().is_some_and(|all| all.iter().any(|action| action["name"] == "restart")),
        "{offered}"
    );
    let run = json!({"kind": "Deployment", "group": "apps", "version": "v1", "namespace": "shop", "resourceName": "web", "action": "restart"});
    let path = "/api/v1/applications/web-dev/resource/actions/v2";
    assert_eq!(
        scene.call(Who::Role, "POST", path, run.clone()).await.status,
        403,
        "the role is forbidden actions"
    );
    let answer = scene.call(Who::Admin, "POST", path, run).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({})));
    let old = scene.call(Who::Admin, "POST", actions, json!("restart")).await;
    assert_eq!(old.status, 200, "{}", old.text);
    let sneaky =
        json!("{\"metadata\":{\"annotations\":{\"argocd.argoproj.io/deletion-approved\":\"true\"}}}");
    let patch = "/api/v1/applications/web-dev/resource?kind=ConfigMap&version=v1&namespace=shop&resourceName=settings&patchType=application/merge-patch%2Bjson";
    let answer = scene.call(Who::Admin, "POST", patch, sneaky).await;
    assert_eq!(answer.status, 403, "{}", answer.text);
    let answer = scene.call(Who::Admin, "POST", patch, json!("{\"data\":{\"a\":\"c\"}}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}
