//! JSON patch and merge patch, on built-in kinds and what is common to all patches.

use crate::world::{JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, World, cause_fields, text, version};
use serde_json::json;

pub(crate) async fn json_patch_applies_every_operation(world: &World) {
    world.config_map("settings", json!({"a": "1"})).await;
    let patch = json!([
        {"op": "test", "path": "/data/key", "value": "value"},
        {"op": "add", "path": "/data/new", "value": "n"},
        {"op": "replace", "path": "/data/key", "value": "changed"},
        {"op": "copy", "from": "/data/key", "path": "/data/copied"},
        {"op": "move", "from": "/data/new", "path": "/data/moved"},
        {"op": "add", "path": "/metadata/labels/example.com~1b", "value": "2"},
        {"op": "remove", "path": "/metadata/labels/a"},
    ]);
    let patched = world.patch(&world.core("configmaps/settings"), JSON_PATCH, &patch).await.ok();
    assert_eq!(patched["data"], json!({"key": "changed", "copied": "changed", "moved": "n"}));
    assert_eq!(patched["metadata"]["labels"], json!({"example.com/b": "2"}));
}

pub(crate) async fn a_failed_json_patch_test_is_unprocessable(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let patch = json!([
        {"op": "replace", "path": "/data/key", "value": "changed"},
        {"op": "test", "path": "/data/key", "value": "value"},
    ]);
    let status = world.patch(&path, JSON_PATCH, &patch).await.fails(422, "Invalid");
    assert!(
        text(&status, "/message").contains("the server rejected our request due to an error in our request")
    );
    assert_eq!(version(&world.get(&path).await.ok()), version(&made));
}

pub(crate) async fn a_json_patch_of_a_missing_path_is_unprocessable(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    for operation in [
        json!({"op": "remove", "path": "/data/absent"}),
        json!({"op": "add", "path": "/absent/deeper/still", "value": "x"}),
    ] {
        world.patch(&path, JSON_PATCH, &json!([operation])).await.fails(422, "Invalid");
    }
}

pub(crate) async fn a_patch_that_is_no_patch_is_a_bad_request(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    world.patch(&path, JSON_PATCH, &json!({"op": "add"})).await.fails(400, "BadRequest");
    world.patch(&path, MERGE_PATCH, &json!(["x"])).await.fails(400, "BadRequest");
    for kind in [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH] {
        let reply = world.call("PATCH", &path, &[("content-type", kind)], "{").await;
        reply.fails(400, "BadRequest");
    }
}

pub(crate) async fn a_json_patch_of_too_many_operations_is_refused(world: &World) {
    world.config_map("settings", json!({})).await;
    let operations = vec![json!({"op": "test", "path": "/data/key", "value": "value"}); 10_001];
    let reply = world.patch(&world.core("configmaps/settings"), JSON_PATCH, &json!(operations)).await;
    reply.fails(413, "RequestEntityTooLarge");
}

pub(crate) async fn an_unknown_patch_type_is_unsupported(world: &World) {
    world.config_map("settings", json!({})).await;
    let reply = world.patch(&world.core("configmaps/settings"), JSON, &json!({})).await;
    reply.fails(415, "UnsupportedMediaType");
}

pub(crate) async fn merge_patch_sets_and_null_removes(world: &World) {
    world.config_map("settings", json!({"a": "1", "b": "2"})).await;
    let patch = json!({
        "data": {"key": null, "other": "x"},
        "metadata": {"labels": {"a": null, "c": "3"}, "annotations": {"note": "here"}},
    });
    let patched = world.patch(&world.core("configmaps/settings"), MERGE_PATCH, &patch).await.ok();
    assert_eq!(patched["data"], json!({"other": "x"}));
    assert_eq!(patched["metadata"]["labels"], json!({"b": "2", "c": "3"}));
    assert_eq!(patched["metadata"]["annotations"], json!({"note": "here"}));
}

pub(crate) async fn an_empty_patch_changes_nothing(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    for (kind, patch) in [(MERGE_PATCH, json!({})), (JSON_PATCH, json!([])), (STRATEGIC_PATCH, json!({}))] {
        let patched = world.patch(&path, kind, &patch).await.ok();
        assert_eq!(version(&patched), version(&made), "{kind}");
    }
}

pub(crate) async fn a_patch_of_a_missing_object_is_not_found(world: &World) {
    let path = world.core("configmaps/absent");
    for (kind, patch) in [(MERGE_PATCH, json!({})), (JSON_PATCH, json!([])), (STRATEGIC_PATCH, json!({}))] {
        world.patch(&path, kind, &patch).await.fails(404, "NotFound");
    }
}

pub(crate) async fn a_patch_with_a_stale_version_is_a_conflict(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    world.patch(&path, MERGE_PATCH, &json!({"data": {"key": "2"}})).await.ok();
    let patch = json!({"metadata": {"resourceVersion": version(&made)}, "data": {"key": "3"}});
    let status = world.patch(&path, MERGE_PATCH, &patch).await.fails(409, "Conflict");
    assert!(text(&status, "/message").contains("the object has been modified"));
}

pub(crate) async fn a_patch_cannot_rename(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let reply = world.patch(&path, MERGE_PATCH, &json!({"metadata": {"name": "other"}})).await;
    reply.fails_saying(400, "BadRequest", &["does not match the name on the URL"]);
    let reply = world.patch(&path, MERGE_PATCH, &json!({"metadata": {"uid": "another"}})).await;
    assert!(matches!(reply.code, 409 | 422), "{}", reply.code);
}

pub(crate) async fn a_patch_cannot_change_the_kind(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    for patch in [
        json!({"kind": "Secret"}),
        json!({"apiVersion": "v9"}),
        json!({"data": "text"}),
        json!({"data": {"key": 7}}),
    ] {
        world.patch(&path, MERGE_PATCH, &patch).await.fails(422, "Invalid");
    }
    assert_eq!(world.get(&path).await.ok(), made);
}

pub(crate) async fn a_patch_is_validated_as_a_whole(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let reply = world.patch(&path, MERGE_PATCH, &json!({"metadata": {"labels": {"bad key!": "x"}}})).await;
    let status = reply.fails(422, "Invalid");
    assert!(cause_fields(&status).iter().all(|field| *field == "metadata.labels"), "{status}");
}

pub(crate) async fn concurrent_patches_all_land(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let patches = (0..10).map(|index| {
        let patch = json!({"data": {format!("k{index}"): "x"}});
        let path = &path;
        async move { world.patch(path, MERGE_PATCH, &patch).await.ok() }
    });
    futures::future::join_all(patches).await;
    let data = &world.get(&path).await.ok()["data"];
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(11));
}

pub(crate) async fn a_patch_cannot_change_the_uid(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let change = json!([{"op": "replace", "path": "/metadata/uid", "value": "another"}]);
    world.patch(&path, crate::world::JSON_PATCH, &change).await.fails(422, "Invalid");
    assert_eq!(world.get(&path).await.ok(), made);
}
