//! What scripts write for Argo CD's server means the same here, however it is spelled.

use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{Scene, Who};

const SYNC: &str = "/api/v1/applications/web-prod/sync";

#[tokio::test]
async fn a_dry_run_is_one_in_whatever_case_it_is_asked_for() {
    for name in ["dryRun", "DryRun", "dryrun"] {
        let scene = Scene::new().await;
        furnish(&scene).await;
        let answer = scene.call(Who::Admin, "POST", SYNC, json!({name: true})).await;
        assert_eq!(answer.json()["operation"]["sync"]["dryRun"], true, "{name}: {}", answer.text);
    }
}

#[tokio::test]
async fn what_keeps_resources_is_understood_or_refused() {
    for (value, expected) in [("False", 200), ("0", 200), ("f", 200), ("maybe", 400), ("", 400)] {
        let scene = Scene::new().await;
        furnish(&scene).await;
        let path = format!("/api/v1/applications/web-prod?cascade={value}");
        let answer = scene.call(Who::Admin, "DELETE", &path, Value::Null).await;
        assert_eq!(answer.status, expected, "{value:?}: {}", answer.text);
        let left = scene.get(Who::Admin, "/api/v1/applications/web-prod").await;
        match expected {
            // It had nothing to wait for: no finalizer was put on it.
            200 => assert_eq!(left.status, 403, "{value:?}: {}", left.text),
            _ => assert!(left.json()["metadata"]["deletionTimestamp"].is_null(), "{value:?}"),
        }
    }
}

#[tokio::test]
async fn a_new_set_is_only_shown_where_a_dry_run_is_asked_for_by_any_word() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let set = json!({
        "metadata": {"name": "shown"},
        "spec": {"generators": [{"list": {"elements": []}}], "template": {
            "metadata": {"name": "x"},
            "spec": {"project": "default", "source": {"repoURL": "r", "path": "p"}, "destination": {"name": "dev"}},
        }},
    });
    for (word, expected) in [("True", 200), ("1", 200), ("yes", 400)] {
        let path = format!("/api/v1/applicationsets?dryRun={word}");
        let answer = scene.call(Who::Admin, "POST", &path, set.clone()).await;
        assert_eq!(answer.status, expected, "{word}: {}", answer.text);
        assert_eq!(scene.get(Who::Admin, "/api/v1/applicationsets/shown").await.status, 404, "{word}");
    }
}

#[tokio::test]
async fn whose_application_is_meant_may_stand_in_the_body() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    for (query, body, expected) in [
        ("", json!({"appNamespace": "team-a"}), 403),
        ("", json!({"AppNamespace": "team-a"}), 403),
        ("", json!({"project": "other"}), 404),
        ("?appNamespace=default", json!({"appNamespace": "team-a"}), 400),
        ("?project=shop", json!({"project": "other"}), 400),
        ("", json!({"project": "shop", "dryRun": true}), 200),
    ] {
        let answer = scene.call(Who::Admin, "POST", &format!("{SYNC}{query}"), body.clone()).await;
        assert_eq!(answer.status, expected, "{query} {body}: {}", answer.text);
    }
    let path = "/api/v1/applications/web-prod";
    let mut wanted = scene.get(Who::Admin, path).await.json();
    wanted["metadata"]["namespace"] = "team-a".into();
    assert_eq!(scene.call(Who::Admin, "PUT", path, wanted).await.status, 403, "it is another one");
}
