//! The life of a namespace, and what it means for the objects in it.

use crate::world::{MERGE_PATCH, World, condition, config_map, text};
use serde_json::json;

pub(crate) async fn a_new_namespace_is_active(world: &World) {
    let path = format!("/api/v1/namespaces/{}", world.namespace());
    let namespace = world.get(&path).await.ok();
    assert_eq!(namespace["status"]["phase"], "Active");
    assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], world.namespace());
}

pub(crate) async fn the_standard_namespaces_exist(world: &World) {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        world.get(&format!("/api/v1/namespaces/{name}")).await.ok();
    }
}

pub(crate) async fn creating_in_a_missing_namespace_is_not_found(world: &World) {
    let absent = format!("absent-{}", world.unique());
    let path = format!("/api/v1/namespaces/{absent}/configmaps");
    let status = world.post(&path, &config_map("settings", json!({}))).await.fails(404, "NotFound");
    assert_eq!(status["message"], format!("namespaces \"{absent}\" not found"));
    assert_eq!(status["details"], json!({"name": absent, "kind": "namespaces"}));
    assert_eq!(
        world.get(&path).await.ok()["items"],
        json!([]),
        "reading there finds nothing, and is no error"
    );
}

pub(crate) async fn deletion_empties_the_namespace(world: &World) {
    let namespace = second_namespace(world).await;
    let inside = format!("{namespace}/configmaps/settings");
    world.post(&format!("{namespace}/configmaps"), &config_map("settings", json!({}))).await.created();
    let marked = world.delete(&namespace).await.ok();
    assert_eq!(marked["status"]["phase"], "Terminating");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    world.until_gone(&namespace).await;
    world.get(&inside).await.fails(404, "NotFound");
}

pub(crate) async fn a_terminating_namespace_takes_no_objects(world: &World) {
    let namespace = second_namespace(world).await;
    let mut held = config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(&format!("{namespace}/configmaps"), &held).await.created();
    world.delete(&namespace).await.ok();
    let reply = world.post(&format!("{namespace}/configmaps"), &config_map("late", json!({}))).await;
    let status = reply.fails(403, "Forbidden");
    assert!(text(&status, "/message").contains("because it is being terminated"), "{status}");
    assert_eq!(status["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.namespace");
    let path = format!("{namespace}/configmaps/held");
    world.until(&path, "is being deleted", |held| held["metadata"]["deletionTimestamp"].is_string()).await;
    world
        .until(&namespace, "says what remains", |namespace| {
            condition(namespace, "NamespaceFinalizersRemaining")
                .is_some_and(|found| found["status"] == "True")
                && condition(namespace, "NamespaceContentRemaining")
                    .is_some_and(|found| found["status"] == "True")
        })
        .await;
    world.patch(&path, MERGE_PATCH, &json!({"metadata": {"finalizers": null}})).await.ok();
    world.until_gone(&namespace).await;
}

pub(crate) async fn the_default_namespace_cannot_be_deleted(world: &World) {
    let status = world.delete("/api/v1/namespaces/default").await.fails(403, "Forbidden");
    assert!(text(&status, "/message").contains("this namespace may not be deleted"), "{status}");
}

pub(crate) async fn finalize_removes_the_last_hold(world: &World) {
    let namespace = second_namespace(world).await;
    let mut wanted = world.get(&namespace).await.ok();
    wanted["spec"]["finalizers"] = json!([]);
    let finalized = world.put(&format!("{namespace}/finalize"), &wanted).await.ok();
    assert!(finalized["spec"].get("finalizers").is_none());
    // The first deletion marks it; with nothing left to finalize, the second removes it.
    let deletion = async || (world.delete(&namespace).await.code == 404).then_some(());
    world.eventually("the namespace is gone", deletion).await;
}

pub(crate) async fn a_namespace_name_is_a_dns_label(world: &World) {
    let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "has.dots"}});
    let status = world.post("/api/v1/namespaces", &wanted).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("metadata.name: Invalid value: \"has.dots\""), "{status}");
}

async fn second_namespace(world: &World) -> String {
    let name = format!("second-{}", world.unique());
    let path = format!("/api/v1/namespaces/{name}");
    world.delete_at_end(path.clone());
    let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    world.post("/api/v1/namespaces", &wanted).await.created();
    path
}
