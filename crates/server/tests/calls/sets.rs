//! ApplicationSets: all eight calls.

use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{Scene, Who};

fn set(name: &str, project: &str, annotations: Value) -> Value {
    json!({"metadata": {"name": name, "annotations": annotations}, "spec": {
        "generators": [{"list": {"elements": []}}],
        "template": {"metadata": {"name": "x"}, "spec": {"project": project, "destination": {}}}}})
}

#[tokio::test]
async fn a_set_is_created_changed_and_deleted() {
    let scene = Scene::new().await;
    let path = "/api/v1/applicationsets";
    let made = scene.call(Who::Role, "POST", path, set("api", "shop", json!({}))).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert_eq!(
        scene.call(Who::Role, "POST", path, set("api", "shop", json!({}))).await.status,
        200,
        "the same again"
    );
    let other = set("api", "shop", json!({"x": "y"}));
    let refused = scene.call(Who::Role, "POST", path, other.clone()).await;
    assert_eq!(
        refused.message(),
        "existing ApplicationSet spec is different, use upsert flag to force update"
    );
    let changed = scene.call(Who::Role, "POST", "/api/v1/applicationsets?upsert=true", other).await;
    assert_eq!(changed.json()["metadata"]["annotations"]["x"], "y", "{}", changed.text);
    assert_eq!(scene.call(Who::Role, "POST", path, set("api2", "default", json!({}))).await.status, 403);
    assert_eq!(scene.call(Who::Role, "POST", path, set("api2", "{{project}}", json!({}))).await.status, 400);
    assert_eq!(scene.call(Who::Role, "DELETE", "/api/v1/applicationsets/api", Value::Null).await.status, 200);
    // Whoever may see all learns that it is gone, and who may not sees what hides others.
    let gone = scene.get(Who::Admin, "/api/v1/applicationsets/api").await;
    let said = "applicationsets.argoproj.io \"api\" not found";
    assert_eq!((gone.status.as_u16(), gone.message().as_str()), (404, said));
    let hidden = scene.get(Who::Role, "/api/v1/applicationsets/api").await;
    assert_eq!((hidden.status.as_u16(), hidden.message().as_str()), (403, "permission denied"));
}

#[tokio::test]
async fn asking_by_annotation_needs_the_right_to_ask() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let paused = set("api", "shop", json!({"baton.dev/paused": "true"}));
    let keeper = vec![
        ("authorization", format!("Bearer {}", scene.signed("keeper:login", "k"))),
        ("content-type", "application/json".to_owned()),
    ];
    let made = scene.send("POST", "/api/v1/applicationsets", &keeper, paused.to_string()).await;
    assert_eq!(made.status, 200, "who may pause may write so: {}", made.text);
    let reader = scene
        .call(Who::Reader, "POST", "/api/v1/applicationsets?upsert=true", set("api", "shop", json!({})))
        .await;
    assert_eq!(reader.status, 403);
}

#[tokio::test]
async fn what_a_set_would_give_is_shown() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let generated = scene
        .call(
            Who::Role,
            "POST",
            "/api/v1/applicationsets/generate",
            json!({"applicationSet": set("web", "shop", json!({}))}),
        )
        .await
        .json();
    assert_eq!(generated["applications"].as_array().map(Vec::len), Some(2));
    let dry = scene
        .call(Who::Role, "POST", "/api/v1/applicationsets?dryRun=true", set("fresh", "shop", json!({})))
        .await
        .json();
    assert_eq!(dry["status"]["resources"][1]["name"], "fresh-new");
    assert_eq!(
        scene.get(Who::Admin, "/api/v1/applicationsets/fresh").await.status,
        404,
        "nothing was written"
    );
    let tree = scene.get(Who::Role, "/api/v1/applicationsets/web/resource-tree").await.json();
    assert_eq!(tree["nodes"].as_array().map(Vec::len), Some(2));
    let plan = scene.get(Who::Role, "/api/v1/applicationsets/web/plan").await.json();
    let row = |name: &str| {
        let items = plan["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|item| item["application"] == name).unwrap_or_default()["action"].clone()
    };
    assert_eq!((row("web-new"), row("web-prod")), (json!("create"), json!("delete")), "{plan}");
}
