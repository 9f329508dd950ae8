//! Server-side apply: who owns which field, and what happens when two want the same.

use crate::world::{APPLY_PATCH, MERGE_PATCH, World, cause_fields, config_map, deployment, text, version};
use serde_json::{Value, json};

pub(crate) async fn apply_creates_what_is_missing(world: &World) {
    let path = world.core("configmaps/settings");
    let made = world.apply(&path, "first", "", &config_map("settings", json!({"a": "1"}))).await.created();
    let entries = made["metadata"]["managedFields"].as_array().expect("managedFields");
    assert_eq!(entries.len(), 1);
    let entry = &entries[0];
    assert_eq!(entry["manager"], "first");
    assert_eq!(entry["operation"], "Apply");
    assert_eq!(entry["apiVersion"], "v1");
    assert_eq!(entry["fieldsType"], "FieldsV1");
    assert!(entry["time"].is_string());
    let owned = json!({"f:data": {"f:key": {}}, "f:metadata": {"f:labels": {"f:a": {}}}});
    assert_eq!(entry["fieldsV1"], owned);
}

pub(crate) async fn create_and_update_record_their_manager(world: &World) {
    let path = world.core("configmaps");
    let wanted = config_map("settings", json!({"a": "1"}));
    let made = world.post(&format!("{path}?fieldManager=maker"), &wanted).await.created();
    let entry = &made["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("maker"), &json!("Update")));
    assert_eq!(
        entry["fieldsV1"],
        json!({"f:data": {".": {}, "f:key": {}}, "f:metadata": {"f:labels": {".": {}, "f:a": {}}}})
    );
    let patch = json!({"data": {"key": "2"}});
    let patched =
        world.patch(&format!("{path}/settings?fieldManager=editor"), MERGE_PATCH, &patch).await.ok();
    assert_eq!(owned_by(&patched, "editor")["fieldsV1"], json!({"f:data": {"f:key": {}}}));
    assert_eq!(
        owned_by(&patched, "maker")["fieldsV1"],
        json!({"f:data": {}, "f:metadata": {"f:labels": {".": {}, "f:a": {}}}})
    );
}

/// A struct that is always there is nobody's; its fields, its maps, its lists and what is optional are.
pub(crate) async fn a_manager_owns_fields_not_structs(world: &World) {
    let path = format!("{}?fieldManager=maker&dryRun=All", world.in_group("/apis/apps/v1", "deployments"));
    let made = world.post(&path, &deployment("web", 0)).await.created();
    let spec = &owned_by(&made, "maker")["fieldsV1"]["f:spec"];
    assert!(spec.get(".").is_none(), "{spec}");
    assert!(spec["f:template"].get(".").is_none(), "{spec}");
    assert_eq!(
        spec["f:strategy"],
        json!({"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}})
    );
    assert_eq!(spec["f:template"]["f:metadata"], json!({"f:labels": {".": {}, "f:app": {}}}));
    let containers = &spec["f:template"]["f:spec"]["f:containers"];
    assert!(containers["k:{\"name\":\"main\"}"].get(".").is_some(), "{containers}");
}

pub(crate) async fn an_apply_that_changes_nothing_keeps_the_version(world: &World) {
    let path = world.core("configmaps/settings");
    let wanted = config_map("settings", json!({}));
    let made = world.apply(&path, "first", "", &wanted).await.created();
    let again = world.apply(&path, "first", "", &wanted).await.ok();
    assert_eq!(version(&again), version(&made));
}

pub(crate) async fn two_managers_conflict_over_a_value(world: &World) {
    let path = world.core("configmaps/settings");
    let mut wanted = config_map("settings", json!({}));
    world.apply(&path, "first", "", &wanted).await.created();
    wanted["data"]["key"] = json!("other");
    let status = world.apply(&path, "second", "", &wanted).await.fails(409, "Conflict");
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"first\": .data.key");
    assert_eq!(cause_fields(&status), [".data.key"]);
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "FieldManagerConflict");
    assert_eq!(cause["message"], "conflict with \"first\"");
    assert_eq!(world.get(&path).await.ok()["data"]["key"], "value");
}

pub(crate) async fn a_conflict_with_an_update_names_its_version(world: &World) {
    let path = world.core("configmaps");
    world.post(&format!("{path}?fieldManager=maker"), &config_map("settings", json!({}))).await.created();
    let mut wanted = config_map("settings", json!({}));
    wanted["data"]["key"] = json!("other");
    let status = world.apply(&format!("{path}/settings"), "second", "", &wanted).await.fails(409, "Conflict");
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"maker\" using v1: .data.key"
    );
}

pub(crate) async fn several_conflicts_are_listed(world: &World) {
    let path = world.core("configmaps/settings");
    let mut wanted = config_map("settings", json!({"a": "1"}));
    world.apply(&path, "first", "", &wanted).await.created();
    wanted["data"]["key"] = json!("other");
    wanted["metadata"]["labels"]["a"] = json!("2");
    let status = world.apply(&path, "second", "", &wanted).await.fails(409, "Conflict");
    assert!(
        text(&status, "/message").starts_with("Apply failed with 2 conflicts: conflicts with \"first\":"),
        "{status}"
    );
    assert_eq!(cause_fields(&status).len(), 2);
}

pub(crate) async fn force_takes_the_field_over(world: &World) {
    let path = world.core("configmaps/settings");
    let mut wanted = config_map("settings", json!({}));
    world.apply(&path, "first", "", &wanted).await.created();
    wanted["data"]["key"] = json!("other");
    let forced = world.apply(&path, "second", "&force=true", &wanted).await.ok();
    assert_eq!(forced["data"]["key"], "other");
    assert!(owned_by(&forced, "second")["fieldsV1"]["f:data"]["f:key"].is_object());
    assert!(managers(&forced).iter().all(|name| *name != "first"), "nothing is left to the first: {forced}");
}

pub(crate) async fn equal_values_are_shared(world: &World) {
    let path = world.core("configmaps/settings");
    let wanted = config_map("settings", json!({}));
    world.apply(&path, "first", "", &wanted).await.created();
    let shared = world.apply(&path, "second", "", &wanted).await.ok();
    let mut found = managers(&shared);
    found.sort_unstable();
    assert_eq!(found, ["first", "second"]);
    // What one of two owners gives up stays.
    let less = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
    let kept = world.apply(&path, "first", "", &less).await.ok();
    assert_eq!(kept["data"]["key"], "value");
    // What the last owner gives up goes.
    let gone = world.apply(&path, "second", "", &less).await.ok();
    assert!(gone.get("data").is_none_or(|data| data == &json!({})), "{gone}");
}

pub(crate) async fn fields_left_out_are_removed_and_others_kept(world: &World) {
    let path = world.core("configmaps/settings");
    let mut wanted = config_map("settings", json!({}));
    wanted["data"] = json!({"a": "1", "b": "2"});
    world.apply(&path, "first", "", &wanted).await.created();
    world.patch(&format!("{path}?fieldManager=other"), MERGE_PATCH, &json!({"data": {"c": "3"}})).await.ok();
    wanted["data"] = json!({"a": "1"});
    let applied = world.apply(&path, "first", "", &wanted).await.ok();
    assert_eq!(applied["data"], json!({"a": "1", "c": "3"}));
}

pub(crate) async fn apply_needs_a_manager(world: &World) {
    let wanted = config_map("settings", json!({}));
    let reply = world.patch(&world.core("configmaps/settings"), APPLY_PATCH, &wanted).await;
    let status = reply.fails(422, "Invalid");
    assert!(
        text(&status, "/message").contains("fieldManager: Required value: is required for apply patch"),
        "{status}"
    );
}

pub(crate) async fn force_is_for_apply_only(world: &World) {
    world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings?fieldManager=x&force=true");
    let reply = world.patch(&path, MERGE_PATCH, &json!({})).await;
    reply.fails_saying(422, "Invalid", &["force: Forbidden: may not be specified for non-apply patch"]);
}

pub(crate) async fn apply_refuses_managed_fields_in_the_body(world: &World) {
    let path = world.core("configmaps/settings");
    let mut wanted = world.apply(&path, "first", "", &config_map("settings", json!({}))).await.created();
    let metadata = wanted["metadata"].as_object_mut().expect("metadata");
    metadata.remove("resourceVersion");
    let reply = world.apply(&path, "first", "", &wanted).await;
    reply.fails_saying(400, "BadRequest", &["metadata.managedFields must be nil"]);
}

pub(crate) async fn apply_refuses_undeclared_fields(world: &World) {
    let path = world.core("configmaps/settings");
    let mut wanted = config_map("settings", json!({}));
    wanted["surprise"] = json!(1);
    // A real server calls this an internal error; only the message and the effect matter.
    let reply = world.apply(&path, "first", "", &wanted).await;
    assert!(reply.code >= 400, "{}", reply.code);
    assert!(text(&reply.json(), "/message").contains(".surprise: field not declared in schema"));
    world.get(&path).await.fails(404, "NotFound");
}

pub(crate) async fn apply_accepts_yaml(world: &World) {
    let path = world.core("configmaps/settings?fieldManager=first");
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: one\n";
    let made = world.call("PATCH", &path, &[("content-type", APPLY_PATCH)], body).await.created();
    assert_eq!(made["data"], json!({"a": "one"}));
    let reply = world.call("PATCH", &path, &[("content-type", APPLY_PATCH)], "a: b: c").await;
    reply.fails(400, "BadRequest");
}

pub(crate) async fn apply_with_a_stale_version_is_a_conflict(world: &World) {
    let path = world.core("configmaps/settings");
    let mut wanted = config_map("settings", json!({}));
    let made = world.apply(&path, "first", "", &wanted).await.created();
    wanted["data"]["key"] = json!("2");
    world.apply(&path, "first", "", &wanted).await.ok();
    wanted["metadata"]["resourceVersion"] = json!(version(&made));
    wanted["data"]["key"] = json!("3");
    let status = world.apply(&path, "first", "", &wanted).await.fails(409, "Conflict");
    assert!(text(&status, "/message").contains("the object has been modified"), "{status}");
}

pub(crate) async fn keyed_lists_are_owned_by_element(world: &World) {
    let path = world.in_group("/apis/apps/v1", "deployments/web");
    let made = world.apply(&path, "first", "", &deployment("web", 0)).await.created();
    let fields = &owned_by(&made, "first")["fieldsV1"];
    let container = fields
        .pointer("/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"main\"}")
        .expect("the container by its key");
    assert_eq!(container, &json!({".": {}, "f:image": {}, "f:name": {}}));
    let side = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"name": "side", "image": "example/side:1"}]}},
        },
    });
    let both = world.apply(&path, "second", "", &side).await.ok();
    assert_eq!(container_names(&both), ["main", "side"]);
    let mut without = side;
    without["spec"]["template"]["spec"]["containers"] = json!([]);
    let one = world.apply(&path, "second", "", &without).await.ok();
    assert_eq!(container_names(&one), ["main"]);
}

pub(crate) async fn set_lists_are_owned_by_value(world: &World) {
    let path = world.core("configmaps/held");
    let mut wanted = config_map("held", json!({}));
    wanted["metadata"]["finalizers"] = json!(["example.com/a"]);
    let made = world.apply(&path, "first", "", &wanted).await.created();
    let owned = &owned_by(&made, "first")["fieldsV1"]["f:metadata"]["f:finalizers"];
    assert_eq!(owned, &json!({"v:\"example.com/a\"": {}}));
    wanted["metadata"]["finalizers"] = json!(["example.com/b"]);
    let both = world.apply(&path, "second", "", &wanted).await.ok();
    assert_eq!(both["metadata"]["finalizers"], json!(["example.com/a", "example.com/b"]));
    world.patch(&path, MERGE_PATCH, &json!({"metadata": {"finalizers": null}})).await.ok();
}

pub(crate) async fn status_is_owned_apart(world: &World) {
    let path = world.in_group("/apis/apps/v1", "deployments/web");
    world.apply(&path, "first", "", &deployment("web", 0)).await.created();
    let status = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "status": {"conditions": [{"type": "Custom", "status": "True"}]},
    });
    let applied = world.apply(&format!("{path}/status"), "reporter", "", &status).await.ok();
    let entry = owned_by(&applied, "reporter");
    assert_eq!(entry["subresource"], "status");
    assert!(entry["fieldsV1"]["f:status"].is_object(), "{entry}");
    assert!(entry["fieldsV1"].get("f:spec").is_none());
    // Status sent to the main resource is neither stored nor owned.
    let mut wanted = deployment("web", 0);
    wanted["status"] = json!({"observedGeneration": 77});
    let applied = world.apply(&path, "first", "", &wanted).await.ok();
    assert!(owned_by(&applied, "first")["fieldsV1"].get("f:status").is_none());
    assert_ne!(applied["status"]["observedGeneration"], 77);
}

pub(crate) async fn a_reset_clears_managed_fields(world: &World) {
    let path = world.core("configmaps/settings");
    world.apply(&path, "first", "", &config_map("settings", json!({}))).await.created();
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let cleared = world.patch(&path, MERGE_PATCH, &reset).await.ok();
    assert!(cleared["metadata"].get("managedFields").is_none_or(|left| left == &json!([])), "{cleared}");
}

pub(crate) async fn apply_of_the_wrong_name_or_kind_is_refused(world: &World) {
    let path = world.core("configmaps/settings");
    let reply = world.apply(&path, "first", "", &config_map("other", json!({}))).await;
    reply.fails_saying(400, "BadRequest", &["does not match the name on the URL"]);
    let mut wrong = config_map("settings", json!({}));
    wrong["kind"] = json!("Secret");
    let reply = world.apply(&path, "first", "", &wrong).await;
    assert!(matches!(reply.code, 400 | 500), "{}", reply.code);
    world.get(&path).await.fails(404, "NotFound");
}

pub(crate) fn owned_by<'a>(object: &'a Value, manager: &str) -> &'a Value {
    let entries = object["metadata"]["managedFields"].as_array().expect("managedFields");
    entries
        .iter()
        .find(|entry| entry["manager"] == manager)
        .unwrap_or_else(|| panic!("{manager} owns nothing of {object}"))
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["manager"].as_str()).collect()
}

fn container_names(object: &Value) -> Vec<&str> {
    let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    containers.into_iter().flatten().filter_map(|container| container["name"].as_str()).collect()
}

pub(crate) async fn apply_needs_a_name_and_a_readable_manager(world: &World) {
    let path = world.core("configmaps/nameless");
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    world.apply(&path, "first", "", &nameless).await.fails(400, "BadRequest");
    let wanted = config_map("nameless", json!({}));
    world.apply(&path, "a%00b", "", &wanted).await.fails(422, "Invalid");
    world.get(&path).await.fails(404, "NotFound");
}
