//! Dependents: what becomes of them when their owner goes, by propagation policy.

use crate::world::{MERGE_PATCH, World, config_map, text};
use serde_json::{Value, json};

pub(crate) async fn background_removes_dependents_later(world: &World) {
    let (owner, child) = family(world, json!({})).await;
    let status = world.delete_with(&owner, &json!({"propagationPolicy": "Background"})).await.ok();
    assert_eq!(status["status"], "Success");
    world.get(&owner).await.fails(404, "NotFound");
    world.until_gone(&child).await;
}

pub(crate) async fn grandchildren_go_too(world: &World) {
    let (owner, child) = family(world, json!({})).await;
    let parent = world.get(&child).await.ok();
    dependent(world, "grandchild", &parent, json!({})).await;
    world.delete_with(&owner, &json!({"propagationPolicy": "Background"})).await.ok();
    world.until_gone(&child).await;
    world.until_gone(&world.core("configmaps/grandchild")).await;
}

pub(crate) async fn foreground_waits_for_blocking_dependents(world: &World) {
    let (owner, child) = family(world, json!({"blockOwnerDeletion": true})).await;
    world.patch(&child, MERGE_PATCH, &json!({"metadata": {"finalizers": ["example.com/hold"]}})).await.ok();
    let marked = world.delete_with(&owner, &json!({"propagationPolicy": "Foreground"})).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    world.until(&child, "is being deleted", |child| child["metadata"]["deletionTimestamp"].is_string()).await;
    world.get(&owner).await.ok();
    world.patch(&child, MERGE_PATCH, &json!({"metadata": {"finalizers": null}})).await.ok();
    world.until_gone(&child).await;
    world.until_gone(&owner).await;
}

pub(crate) async fn foreground_gets_out_of_a_cycle(world: &World) {
    let (owner, child) = family(world, json!({"blockOwnerDeletion": true})).await;
    let mut back = reference(&world.get(&child).await.ok());
    back["blockOwnerDeletion"] = json!(true);
    world.patch(&owner, MERGE_PATCH, &json!({"metadata": {"ownerReferences": [back]}})).await.ok();
    world.delete_with(&owner, &json!({"propagationPolicy": "Foreground"})).await.ok();
    world.until_gone(&owner).await;
    world.until_gone(&child).await;
}

pub(crate) async fn orphan_leaves_dependents_without_owner(world: &World) {
    let (owner, child) = family(world, json!({})).await;
    world.delete_with(&owner, &json!({"propagationPolicy": "Orphan"})).await.ok();
    world.until_gone(&owner).await;
    let left = world
        .until(&child, "has no owner", |child| {
            child["metadata"].get("ownerReferences").is_none_or(|owners| owners == &json!([]))
        })
        .await;
    assert!(left["metadata"].get("deletionTimestamp").is_none());
}

pub(crate) async fn a_second_owner_keeps_a_dependent(world: &World) {
    let first = world.config_map("owner", json!({})).await;
    let second = world.config_map("other", json!({})).await;
    let mut wanted = config_map("child", json!({}));
    wanted["metadata"]["ownerReferences"] = json!([reference(&first), reference(&second)]);
    world.post(&world.core("configmaps"), &wanted).await.created();
    let child = world.core("configmaps/child");
    world.delete(&world.core("configmaps/owner")).await.ok();
    let left = world
        .until(&child, "has one owner left", |child| {
            child["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1)
        })
        .await;
    assert_eq!(left["metadata"]["ownerReferences"][0]["uid"], second["metadata"]["uid"]);
    world.delete(&world.core("configmaps/other")).await.ok();
    world.until_gone(&child).await;
}

pub(crate) async fn a_dependent_of_nothing_is_removed(world: &World) {
    let mut ghost = world.config_map("ghost", json!({})).await;
    ghost["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    dependent(world, "child", &ghost, json!({})).await;
    world.until_gone(&world.core("configmaps/child")).await;
    world.get(&world.core("configmaps/ghost")).await.ok();
}

pub(crate) async fn orphan_dependents_option_is_still_read(world: &World) {
    let (owner, child) = family(world, json!({})).await;
    world.delete_with(&owner, &json!({"orphanDependents": true})).await.ok();
    world.until_gone(&owner).await;
    world.until(&child, "has no owner", |child| child["metadata"].get("ownerReferences").is_none()).await;
}

async fn family(world: &World, extra: Value) -> (String, String) {
    let owner = world.config_map("owner", json!({})).await;
    dependent(world, "child", &owner, extra).await;
    (world.core("configmaps/owner"), world.core("configmaps/child"))
}

async fn dependent(world: &World, name: &str, owner: &Value, extra: Value) {
    let mut wanted = config_map(name, json!({}));
    let mut owner = reference(owner);
    for (key, value) in extra.as_object().into_iter().flatten() {
        owner[key] = value.clone();
    }
    wanted["metadata"]["ownerReferences"] = json!([owner]);
    world.post(&world.core("configmaps"), &wanted).await.created();
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "name": text(owner, "/metadata/name"), "uid": text(owner, "/metadata/uid"),
    })
}
