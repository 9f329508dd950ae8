//! `dryRun=All`: the whole answer, and nothing stored.

use crate::world::{JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, World, config_map, names, text, version};
use serde_json::json;

pub(crate) async fn a_dry_create_answers_but_stores_nothing(world: &World) {
    let path = world.core("configmaps");
    let made = world.post(&format!("{path}?dryRun=All"), &config_map("settings", json!({}))).await.created();
    assert!(made["metadata"]["uid"].is_string());
    world.get(&format!("{path}/settings")).await.fails(404, "NotFound");
}

pub(crate) async fn a_dry_create_is_validated(world: &World) {
    let path = format!("{}?dryRun=All", world.core("configmaps"));
    world.post(&path, &config_map("Bad_Name", json!({}))).await.fails(422, "Invalid");
    world.config_map("settings", json!({})).await;
    world.post(&path, &config_map("settings", json!({}))).await.fails(409, "AlreadyExists");
}

pub(crate) async fn a_dry_update_answers_but_stores_nothing(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let mut wanted = made.clone();
    wanted["data"]["key"] = json!("changed");
    let updated = world.put(&format!("{path}?dryRun=All"), &wanted).await.ok();
    assert_eq!(updated["data"]["key"], "changed");
    assert_eq!(version(&updated), version(&made));
    assert_eq!(world.get(&path).await.ok(), made);
}

pub(crate) async fn dry_patches_answer_but_store_nothing(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let merge = json!({"data": {"key": "changed"}});
    for (kind, patch) in [
        (MERGE_PATCH, merge.clone()),
        (STRATEGIC_PATCH, merge),
        (JSON_PATCH, json!([{"op": "replace", "path": "/data/key", "value": "changed"}])),
    ] {
        let patched = world.patch(&format!("{path}?dryRun=All"), kind, &patch).await.ok();
        assert_eq!(patched["data"]["key"], "changed", "{kind}");
    }
    assert_eq!(world.get(&path).await.ok(), made);
}

pub(crate) async fn a_dry_apply_answers_but_stores_nothing(world: &World) {
    let path = world.core("configmaps/settings");
    let mut wanted = config_map("settings", json!({}));
    world.apply(&path, "first", "&dryRun=All", &wanted).await.created();
    world.get(&path).await.fails(404, "NotFound");
    let made = world.apply(&path, "first", "", &wanted).await.created();
    wanted["data"]["key"] = json!("changed");
    world.apply(&path, "first", "&dryRun=All", &wanted).await.ok();
    world.apply(&path, "second", "&dryRun=All", &wanted).await.fails(409, "Conflict");
    assert_eq!(world.get(&path).await.ok(), made);
}

pub(crate) async fn a_dry_delete_keeps_the_object(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let status = world.delete(&format!("{path}?dryRun=All")).await.ok();
    assert_eq!(status["status"], "Success");
    world
        .delete_with(&path, &json!({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}))
        .await
        .ok();
    assert_eq!(world.get(&path).await.ok(), made);
    world.delete(&format!("{}?dryRun=All", world.core("configmaps"))).await.ok();
    assert!(names(&world.get(&world.core("configmaps")).await.ok()).contains(&"settings"));
}

pub(crate) async fn a_dry_write_makes_no_watch_event(world: &World) {
    let path = world.core("secrets");
    let list = world.get(&path).await.ok();
    let mut watch = world.watch(&path, &format!("resourceVersion={}", version(&list))).await;
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    world.post(&format!("{path}?dryRun=All"), &secret("dry")).await.created();
    world.post(&path, &secret("wet")).await.created();
    watch.expect_named("ADDED", "wet").await;
}

pub(crate) async fn an_unknown_dry_run_value_is_refused(world: &World) {
    let path = format!("{}?dryRun=Some", world.core("configmaps"));
    let status = world.post(&path, &config_map("settings", json!({}))).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("dryRun: Unsupported value"), "{status}");
}
