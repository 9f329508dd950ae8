//! Strategic merge patch: lists merged by key on built-in kinds, and refused elsewhere.

use crate::world::{STRATEGIC_PATCH, World, deployment};
use serde_json::{Value, json};

pub(crate) async fn containers_merge_by_name(world: &World) {
    let path = two_containers(world).await;
    let patch = template(json!({"containers": [{"name": "side", "image": "example/side:2"}]}));
    let patched = world.patch(&path, STRATEGIC_PATCH, &patch).await.ok();
    let containers = patched.pointer("/spec/template/spec/containers").expect("containers");
    assert_eq!(named(containers), ["main", "side"]);
    assert_eq!(containers[0]["image"], "example/main:1");
    assert_eq!(containers[1]["image"], "example/side:2");
}

pub(crate) async fn a_new_container_is_added(world: &World) {
    let path = two_containers(world).await;
    let patch = template(json!({"containers": [{"name": "third", "image": "example/third:1"}]}));
    let patched = world.patch(&path, STRATEGIC_PATCH, &patch).await.ok();
    let containers = patched.pointer("/spec/template/spec/containers").expect("containers");
    let mut found = named(containers);
    found.sort_unstable();
    assert_eq!(found, ["main", "side", "third"]);
}

pub(crate) async fn patch_delete_removes_an_element(world: &World) {
    let path = two_containers(world).await;
    let patch = template(json!({"containers": [{"$patch": "delete", "name": "side"}]}));
    let patched = world.patch(&path, STRATEGIC_PATCH, &patch).await.ok();
    assert_eq!(named(patched.pointer("/spec/template/spec/containers").expect("containers")), ["main"]);
}

pub(crate) async fn patch_replace_replaces_the_list(world: &World) {
    let path = two_containers(world).await;
    let patch =
        template(json!({"containers": [{"name": "only", "image": "example/only:1"}, {"$patch": "replace"}]}));
    let patched = world.patch(&path, STRATEGIC_PATCH, &patch).await.ok();
    assert_eq!(named(patched.pointer("/spec/template/spec/containers").expect("containers")), ["only"]);
}

pub(crate) async fn set_element_order_reorders(world: &World) {
    let path = two_containers(world).await;
    let patch = template(json!({
        "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
        "containers": [{"name": "main", "image": "example/main:2"}],
    }));
    let patched = world.patch(&path, STRATEGIC_PATCH, &patch).await.ok();
    let containers = patched.pointer("/spec/template/spec/containers").expect("containers");
    assert_eq!(named(containers), ["side", "main"]);
    assert_eq!(containers[1]["image"], "example/main:2");
}

pub(crate) async fn primitive_lists_merge_and_delete(world: &World) {
    let mut wanted = crate::world::config_map("held", json!({}));
    wanted["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    world.post(&world.core("configmaps"), &wanted).await.created();
    let path = world.core("configmaps/held");
    let patch = json!({"metadata": {"finalizers": ["example.com/c"]}});
    let patched = world.patch(&path, STRATEGIC_PATCH, &patch).await.ok();
    let finalizers = patched["metadata"]["finalizers"].as_array().expect("finalizers").clone();
    assert_eq!(finalizers.len(), 3, "{finalizers:?}");
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b", "example.com/c"]}});
    let patched = world.patch(&path, STRATEGIC_PATCH, &patch).await.ok();
    assert!(patched["metadata"].get("finalizers").is_none_or(|left| left == &json!([])), "{patched}");
}

pub(crate) async fn atomic_lists_are_replaced(world: &World) {
    let path = two_containers(world).await;
    let command = |words: Value| template(json!({"containers": [{"name": "main", "command": words}]}));
    world.patch(&path, STRATEGIC_PATCH, &command(json!(["a", "b"]))).await.ok();
    let patched = world.patch(&path, STRATEGIC_PATCH, &command(json!(["c"]))).await.ok();
    assert_eq!(patched.pointer("/spec/template/spec/containers/0/command"), Some(&json!(["c"])));
}

pub(crate) async fn service_ports_merge_by_port(world: &World) {
    let wanted = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]},
    });
    world.post(&world.core("services"), &wanted).await.created();
    let patch = json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}]}});
    let patched = world.patch(&world.core("services/web"), STRATEGIC_PATCH, &patch).await.ok();
    let ports = patched["spec"]["ports"].as_array().expect("ports");
    assert_eq!(ports.len(), 2, "{ports:?}");
    let https = ports.iter().find(|port| port["port"] == 443).expect("443");
    assert_eq!((&https["name"], &https["targetPort"]), (&json!("https"), &json!(8443)));
}

pub(crate) async fn maps_merge_and_null_removes(world: &World) {
    world.config_map("settings", json!({"a": "1", "b": "2"})).await;
    let patch =
        json!({"metadata": {"labels": {"a": null, "c": "3"}}, "data": {"$patch": "replace", "only": "x"}});
    let patched = world.patch(&world.core("configmaps/settings"), STRATEGIC_PATCH, &patch).await.ok();
    assert_eq!(patched["metadata"]["labels"], json!({"b": "2", "c": "3"}));
    assert_eq!(patched["data"], json!({"only": "x"}));
}

pub(crate) async fn env_and_volumes_merge_by_name(world: &World) {
    let path = two_containers(world).await;
    let add = template(json!({
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "containers": [{
            "name": "main",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        }],
    }));
    world.patch(&path, STRATEGIC_PATCH, &add).await.ok();
    let change = template(json!({
        "containers": [{"name": "main", "env": [{"name": "B", "value": "3"}, {"name": "A", "$patch": "delete"}]}],
    }));
    let patched = world.patch(&path, STRATEGIC_PATCH, &change).await.ok();
    let main = patched.pointer("/spec/template/spec/containers/0").expect("main");
    assert_eq!(main["env"], json!([{"name": "B", "value": "3"}]));
    assert_eq!(main["volumeMounts"], json!([{"name": "tmp", "mountPath": "/tmp"}]));
}

pub(crate) async fn retain_keys_drops_the_rest_of_a_union(world: &World) {
    let path = two_containers(world).await;
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let patched = world.patch(&path, STRATEGIC_PATCH, &patch).await.ok();
    assert_eq!(patched["spec"]["strategy"], json!({"type": "Recreate"}));
}

async fn two_containers(world: &World) -> String {
    let mut wanted = deployment("web", 0);
    wanted["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .expect("a literal list")
        .push(json!({"name": "side", "image": "example/side:1"}));
    world.post(&world.in_group("/apis/apps/v1", "deployments"), &wanted).await.created();
    world.in_group("/apis/apps/v1", "deployments/web")
}

fn template(spec: Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

fn named(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}
