//! Deleting: finalizers, grace, preconditions, options, and whole collections.

use crate::world::{MERGE_PATCH, World, config_map, names, text, version};
use serde_json::{Value, json};

pub(crate) async fn a_finalizer_delays_the_removal(world: &World) {
    let path = held(world, "held").await;
    let marked = world.delete(&path).await.ok();
    assert_eq!(marked["kind"], "ConfigMap", "an object that lives on is answered, not a Status");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = world.delete(&path).await.ok();
    assert_eq!(again["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
    let last = world.patch(&path, MERGE_PATCH, &json!({"metadata": {"finalizers": null}})).await.ok();
    assert!(last["metadata"].get("finalizers").is_none());
    world.get(&path).await.fails(404, "NotFound");
}

pub(crate) async fn a_deleted_object_takes_no_new_finalizers(world: &World) {
    let path = held(world, "held").await;
    world.delete(&path).await.ok();
    let patch = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let status = world.patch(&path, MERGE_PATCH, &patch).await.fails(422, "Invalid");
    assert!(
        text(&status, "/message").contains("no new finalizers can be added if the object is being deleted"),
        "{status}"
    );
    let changed = world.patch(&path, MERGE_PATCH, &json!({"data": {"key": "still writable"}})).await.ok();
    assert_eq!(changed["data"]["key"], "still writable");
    release(world, &path).await;
}

pub(crate) async fn the_deletion_mark_cannot_be_removed(world: &World) {
    let path = held(world, "held").await;
    let marked = world.delete(&path).await.ok();
    let mut wanted = marked.clone();
    wanted["metadata"].as_object_mut().expect("metadata").remove("deletionTimestamp");
    let updated = world.put(&path, &wanted).await.ok();
    assert_eq!(updated["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
    release(world, &path).await;
}

pub(crate) async fn preconditions_guard_a_deletion(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let other = json!({"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}});
    let reply = world.delete_with(&path, &other).await;
    reply.fails_saying(409, "Conflict", &["the UID in the precondition", "does not match the UID in record"]);
    world.patch(&path, MERGE_PATCH, &json!({"data": {"key": "2"}})).await.ok();
    let stale = json!({"preconditions": {"resourceVersion": version(&made)}});
    let reply = world.delete_with(&path, &stale).await;
    reply.fails_saying(409, "Conflict", &["the ResourceVersion in the precondition", "does not match"]);
    let current = world.get(&path).await.ok();
    let right = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": text(&current, "/metadata/uid"), "resourceVersion": version(&current)},
    });
    world.delete_with(&path, &right).await.ok();
    world.get(&path).await.fails(404, "NotFound");
}

pub(crate) async fn bad_delete_options_are_refused(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let both = json!({"orphanDependents": true, "propagationPolicy": "Foreground"});
    let status = world.delete_with(&path, &both).await.fails(422, "Invalid");
    assert!(
        text(&status, "/message").contains("orphanDependents and deletionPropagation cannot be both set"),
        "{status}"
    );
    world.delete_with(&path, &json!({"propagationPolicy": "Sideways"})).await.fails(422, "Invalid");
    world
        .delete_with(&path, &json!({"kind": "ConfigMap", "apiVersion": "v1"}))
        .await
        .fails(400, "BadRequest");
    world.delete(&format!("{path}?gracePeriodSeconds=soon")).await.fails(400, "BadRequest");
    world.call("DELETE", &path, &[("content-type", "application/json")], "{").await.fails(400, "BadRequest");
    world.get(&path).await.ok();
}

pub(crate) async fn delete_options_may_come_in_the_query(world: &World) {
    let path = held(world, "held").await;
    let marked = world.delete(&format!("{path}?propagationPolicy=Foreground")).await.ok();
    let finalizers = marked["metadata"]["finalizers"].as_array().expect("finalizers");
    assert!(finalizers.contains(&json!("foregroundDeletion")), "{finalizers:?}");
    world
        .until(&path, "has lost the foreground finalizer", |object| {
            object["metadata"]["finalizers"] == json!(["example.com/hold"])
        })
        .await;
    release(world, &path).await;
}

pub(crate) async fn a_collection_is_deleted_by_selector(world: &World) {
    for (name, tier) in [("a", "one"), ("b", "two"), ("c", "one")] {
        world.config_map(name, json!({"tier": tier, "set": "d"})).await;
    }
    let path = world.core("configmaps");
    let answer = world.delete(&format!("{path}?labelSelector=tier%3Done")).await.ok();
    assert_eq!(answer["kind"], "ConfigMapList");
    let left = world.get(&format!("{path}?labelSelector=set%3Dd")).await.ok();
    assert_eq!(names(&left), ["b"]);
    world.delete(&format!("{path}?fieldSelector=metadata.name%3Db")).await.ok();
    let left = world.get(&format!("{path}?labelSelector=set%3Dd")).await.ok();
    assert!(names(&left).is_empty());
}

pub(crate) async fn a_collection_is_deleted_in_one_namespace_only(world: &World) {
    world.config_map("kept", json!({"run": world.unique()})).await;
    let everywhere = format!("/api/v1/configmaps?labelSelector=run%3D{}", world.unique());
    world.delete(&everywhere).await.fails(405, "MethodNotAllowed");
    world.get(&world.core("configmaps/kept")).await.ok();
}

pub(crate) async fn a_collection_deletion_respects_finalizers(world: &World) {
    let path = held(world, "held").await;
    world.delete(&format!("{}?labelSelector=set%3Dheld", world.core("configmaps"))).await.ok();
    let marked = world.get(&path).await.ok();
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    release(world, &path).await;
}

pub(crate) async fn a_pod_without_a_node_goes_at_once(world: &World) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "idle"},
        "spec": {"nodeSelector": {"no": "such"}, "containers": [{"name": "main", "image": "example/main:1"}]},
    });
    world.post(&world.core("pods"), &pod).await.created();
    let path = world.core("pods/idle");
    world.delete_with(&path, &json!({"gracePeriodSeconds": 0})).await.ok();
    world.until_gone(&path).await;
}

async fn held(world: &World, name: &str) -> String {
    let mut wanted = config_map(name, json!({"set": "held"}));
    wanted["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(&world.core("configmaps"), &wanted).await.created();
    world.core(&format!("configmaps/{name}"))
}

async fn release(world: &World, path: &str) {
    let released: Value = json!({"metadata": {"finalizers": null}});
    world.patch(path, MERGE_PATCH, &released).await;
    world.until_gone(path).await;
}
