//! `status`, `scale` and the generation counter.

use crate::crds::{Widgets, widgets};
use crate::world::{JSON_PATCH, MERGE_PATCH, World, deployment, text};
use serde_json::{Value, json};

pub(crate) async fn generation_follows_the_spec_only(world: &World) {
    let deployments = world.in_group("/apis/apps/v1", "deployments");
    let made = world.post(&deployments, &deployment("web", 0)).await.created();
    let path = format!("{deployments}/web");
    assert_eq!(made["metadata"]["generation"], 1);
    let labelled = world.patch(&path, MERGE_PATCH, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!(labelled["metadata"]["generation"], 1);
    let changed = world.patch(&path, MERGE_PATCH, &json!({"spec": {"minReadySeconds": 3}})).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    let same = world.patch(&path, MERGE_PATCH, &json!({"spec": {"minReadySeconds": 3}})).await.ok();
    assert_eq!(same["metadata"]["generation"], 2);
    let set = world.patch(&path, MERGE_PATCH, &json!({"metadata": {"generation": 50}})).await.ok();
    assert_eq!(set["metadata"]["generation"], 2, "clients do not set it");
}

pub(crate) async fn kinds_without_a_spec_have_no_generation(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    assert!(made["metadata"].get("generation").is_none());
}

pub(crate) async fn custom_resources_count_generations(world: &World) {
    let Widgets { path, kind, api_version, .. } = widgets(world).await;
    let wanted =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": {"size": 1}});
    let made = world.post(&path, &wanted).await.created();
    assert_eq!(made["metadata"]["generation"], 1);
    let path = format!("{path}/w");
    let noted = world.patch(&path, MERGE_PATCH, &json!({"metadata": {"annotations": {"a": "b"}}})).await.ok();
    assert_eq!(noted["metadata"]["generation"], 1);
    let changed = world.patch(&path, MERGE_PATCH, &json!({"spec": {"size": 2}})).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    let reported =
        world.patch(&format!("{path}/status"), MERGE_PATCH, &json!({"status": {"phase": "Up"}})).await.ok();
    assert_eq!(reported["metadata"]["generation"], 2);
}

pub(crate) async fn status_and_spec_are_written_apart(world: &World) {
    let Widgets { path, kind, api_version, .. } = widgets(world).await;
    let wanted = json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "w"},
        "spec": {"size": 1}, "status": {"phase": "Smuggled"},
    });
    let made = world.post(&path, &wanted).await.created();
    assert!(made.get("status").is_none(), "a create does not set status: {made}");
    let path = format!("{path}/w");
    let smuggled = world.patch(&path, MERGE_PATCH, &json!({"status": {"phase": "Smuggled"}})).await.ok();
    assert!(smuggled.get("status").is_none());
    let mut report = smuggled;
    report["status"] = json!({"phase": "Up"});
    report["spec"]["size"] = json!(99);
    report["metadata"]["labels"] = json!({"smuggled": "yes"});
    let reported = world.put(&format!("{path}/status"), &report).await.ok();
    assert_eq!(reported["status"]["phase"], "Up");
    assert_eq!(reported["spec"]["size"], 1);
    assert!(reported["metadata"].get("labels").is_none());
    let changed = world.patch(&path, MERGE_PATCH, &json!({"spec": {"size": 3}})).await.ok();
    assert_eq!(changed["status"]["phase"], "Up", "a spec write keeps the status");
    assert_eq!(world.get(&format!("{path}/status")).await.ok(), changed);
}

pub(crate) async fn built_in_status_is_written_apart(world: &World) {
    let path = world.core("persistentvolumeclaims");
    let wanted = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Lost"},
    });
    let made = world.post(&path, &wanted).await.created();
    assert_eq!(made["status"]["phase"], "Pending");
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "status": {"capacity": {"storage": "1Gi"}}});
    let reported = world.patch(&format!("{path}/disk/status"), MERGE_PATCH, &patch).await.ok();
    assert_eq!(reported["status"]["capacity"], json!({"storage": "1Gi"}));
}

pub(crate) async fn a_deployment_scales_through_its_subresource(world: &World) {
    let deployments = world.in_group("/apis/apps/v1", "deployments");
    world.post(&deployments, &deployment("web", 0)).await.created();
    let path = format!("{deployments}/web/scale");
    let scale = world.get(&path).await.ok();
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["apiVersion"], "autoscaling/v1");
    assert_eq!(scale["metadata"]["name"], "web");
    assert_eq!(text(&scale, "/status/selector"), "app=web");
    assert_eq!(replicas(&scale), 0);
    let mut wanted = scale;
    // A controller may be writing to the object at the same time.
    wanted["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    wanted["spec"] = json!({"replicas": 2});
    let scaled = world.put(&path, &wanted).await.ok();
    assert_eq!(replicas(&scaled), 2);
    assert_eq!(world.get(&format!("{deployments}/web")).await.ok()["spec"]["replicas"], 2);
    let patched = world.patch(&path, MERGE_PATCH, &json!({"spec": {"replicas": 1}})).await.ok();
    assert_eq!(replicas(&patched), 1);
    world.patch(&path, MERGE_PATCH, &json!({"spec": {"replicas": -1}})).await.fails(422, "Invalid");
    let patch = json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]);
    assert_eq!(replicas(&world.patch(&path, JSON_PATCH, &patch).await.ok()), 3);
    world.delete(&format!("{deployments}/web")).await.ok();
}

pub(crate) async fn a_custom_resource_scales_where_its_definition_says(world: &World) {
    let Widgets { path, kind, api_version, .. } = widgets(world).await;
    let wanted = json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": {"size": 1, "replicas": 2},
    });
    world.post(&path, &wanted).await.created();
    let status = json!({"status": {"replicas": 1, "selector": "a=b"}});
    world.patch(&format!("{path}/w/status"), MERGE_PATCH, &status).await.ok();
    let scale = world.get(&format!("{path}/w/scale")).await.ok();
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(replicas(&scale), 2);
    assert_eq!(scale["status"], json!({"replicas": 1, "selector": "a=b"}));
    let patched =
        world.patch(&format!("{path}/w/scale"), MERGE_PATCH, &json!({"spec": {"replicas": 5}})).await.ok();
    assert_eq!(replicas(&patched), 5);
    let scaled = world.get(&format!("{path}/w")).await.ok();
    assert_eq!(scaled["spec"], json!({"size": 1, "replicas": 5}));
    assert_eq!(scaled["metadata"]["generation"], 2);
}

/// Zero is left out of the wire form.
fn replicas(scale: &Value) -> i64 {
    scale["spec"]["replicas"].as_i64().unwrap_or(0)
}
