//! Creating, reading, replacing and deleting one object, and the names it may have.

use crate::world::{World, cause_fields, config_map, names, text, version};
use serde_json::json;

pub(crate) async fn create_returns_the_stored_object(world: &World) {
    let made = world.config_map("settings", json!({"tier": "one"})).await;
    assert_eq!(made["kind"], "ConfigMap");
    assert_eq!(made["apiVersion"], "v1");
    assert_eq!(made["metadata"]["namespace"], world.namespace());
    assert_eq!(made["data"], json!({"key": "value"}));
    assert_eq!(text(&made, "/metadata/uid").len(), 36);
    assert!(text(&made, "/metadata/creationTimestamp").ends_with('Z'));
    assert!(version(&made).parse::<u64>().is_ok_and(|version| version > 0));
    let read = world.get(&world.core("configmaps/settings")).await.ok();
    assert_eq!(read, made);
}

pub(crate) async fn create_of_an_existing_name_is_a_conflict(world: &World) {
    world.config_map("settings", json!({})).await;
    let reply = world.post(&world.core("configmaps"), &config_map("settings", json!({}))).await;
    let status = reply.fails(409, "AlreadyExists");
    assert_eq!(status["message"], "configmaps \"settings\" already exists");
    assert_eq!(status["details"], json!({"name": "settings", "kind": "configmaps"}));
}

pub(crate) async fn create_ignores_what_the_server_owns(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    wanted["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    wanted["metadata"]["generation"] = json!(7);
    wanted["metadata"]["selfLink"] = json!("/nowhere");
    let made = world.post(&world.core("configmaps"), &wanted).await.created();
    assert_ne!(made["metadata"]["uid"], wanted["metadata"]["uid"]);
    assert_ne!(made["metadata"]["creationTimestamp"], wanted["metadata"]["creationTimestamp"]);
    assert!(made["metadata"].get("deletionTimestamp").is_none());
}

pub(crate) async fn create_with_a_resource_version_is_refused(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["metadata"]["resourceVersion"] = json!("1");
    let reply = world.post(&world.core("configmaps"), &wanted).await;
    assert!(reply.code >= 400, "{}", reply.code);
    assert!(
        text(&reply.json(), "/message")
            .contains("resourceVersion should not be set on objects to be created")
    );
    world.get(&world.core("configmaps/settings")).await.fails(404, "NotFound");
}

pub(crate) async fn generate_name_appends_five_characters(world: &World) {
    let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}});
    let first = world.post(&world.core("configmaps"), &wanted).await.created();
    let second = world.post(&world.core("configmaps"), &wanted).await.created();
    let suffix = text(&first, "/metadata/name").strip_prefix("made-").expect("the prefix is kept");
    assert_eq!(suffix.len(), 5);
    assert!(suffix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()));
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
    assert_eq!(first["metadata"]["generateName"], "made-");
}

pub(crate) async fn generate_name_cuts_a_long_prefix(world: &World) {
    let prefix = "x".repeat(80);
    let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": prefix}});
    let made = world.post(&world.core("configmaps"), &wanted).await.created();
    assert_eq!(text(&made, "/metadata/name").len(), 63);
}

pub(crate) async fn a_name_wins_over_generate_name(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["metadata"]["generateName"] = json!("made-");
    let made = world.post(&world.core("configmaps"), &wanted).await.created();
    assert_eq!(made["metadata"]["name"], "settings");
}

pub(crate) async fn a_name_is_required(world: &World) {
    let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let status = world.post(&world.core("configmaps"), &wanted).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("name or generateName is required"));
    assert_eq!(cause_fields(&status), ["metadata.name"]);
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueRequired");
}

pub(crate) async fn invalid_names_are_refused(world: &World) {
    for bad in ["Upper", "under_score", "-dash", "dot.", "a b", &"x".repeat(254)] {
        let reply = world.post(&world.core("configmaps"), &config_map(bad, json!({}))).await;
        let status = reply.fails(422, "Invalid");
        assert!(text(&status, "/message").contains("metadata.name: Invalid value"), "{status}");
        assert_eq!(status["details"]["name"], bad);
        assert_eq!(status["details"]["kind"], "ConfigMap");
        assert_eq!(cause_fields(&status), ["metadata.name"]);
        assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueInvalid");
    }
}

pub(crate) async fn a_service_name_is_a_dns_label(world: &World) {
    let wanted = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "has.dots"},
        "spec": {"ports": [{"port": 80}]},
    });
    let status = world.post(&world.core("services"), &wanted).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("metadata.name: Invalid value: \"has.dots\""), "{status}");
}

pub(crate) async fn invalid_labels_and_annotations_are_refused(world: &World) {
    let cases = [
        (json!({"labels": {"bad key!": "x"}}), "metadata.labels"),
        (json!({"labels": {"key": "bad value!"}}), "metadata.labels"),
        (json!({"labels": {"key": "x".repeat(64)}}), "metadata.labels"),
        (json!({"annotations": {"bad key!": "x"}}), "metadata.annotations"),
        (json!({"annotations": {"big": "x".repeat(300_000)}}), "metadata.annotations"),
        (json!({"finalizers": ["not valid"]}), "metadata.finalizers"),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": ""}]}),
            "metadata.ownerReferences",
        ),
    ];
    for (metadata, field) in cases {
        let mut wanted = config_map("settings", json!({}));
        for (key, value) in metadata.as_object().expect("a literal object") {
            wanted["metadata"][key] = value.clone();
        }
        let status = world.post(&world.core("configmaps"), &wanted).await.fails(422, "Invalid");
        assert!(cause_fields(&status).iter().any(|found| found.starts_with(field)), "{field}: {status}");
    }
    world.get(&world.core("configmaps/settings")).await.fails(404, "NotFound");
}

pub(crate) async fn a_missing_object_is_not_found(world: &World) {
    let status = world.get(&world.core("configmaps/absent")).await.fails(404, "NotFound");
    assert_eq!(status["message"], "configmaps \"absent\" not found");
    assert_eq!(status["details"], json!({"name": "absent", "kind": "configmaps"}));
    let deployments = world.in_group("/apis/apps/v1", "deployments/absent");
    let status = world.get(&deployments).await.fails(404, "NotFound");
    assert_eq!(status["message"], "deployments.apps \"absent\" not found");
    assert_eq!(status["details"], json!({"name": "absent", "group": "apps", "kind": "deployments"}));
    world.delete(&world.core("configmaps/absent")).await.fails(404, "NotFound");
}

pub(crate) async fn update_replaces_the_object(world: &World) {
    let made = world.config_map("settings", json!({"tier": "one"})).await;
    let path = world.core("configmaps/settings");
    let mut wanted = made.clone();
    wanted["data"] = json!({"other": "2"});
    wanted["metadata"]["labels"] = json!({});
    let updated = world.put(&path, &wanted).await.ok();
    assert_eq!(updated["data"], json!({"other": "2"}));
    assert!(updated["metadata"].get("labels").is_none());
    assert_eq!(updated["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(updated["metadata"]["creationTimestamp"], made["metadata"]["creationTimestamp"]);
    assert_ne!(version(&updated), version(&made));
}

pub(crate) async fn an_update_that_changes_nothing_keeps_the_version(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let updated = world.put(&world.core("configmaps/settings"), &made).await.ok();
    assert_eq!(version(&updated), version(&made));
}

pub(crate) async fn update_with_a_stale_version_is_a_conflict(world: &World) {
    let stale = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    let mut fresh = stale.clone();
    fresh["data"]["key"] = json!("first");
    world.put(&path, &fresh).await.ok();
    let mut late = stale;
    late["data"]["key"] = json!("second");
    let status = world.put(&path, &late).await.fails(409, "Conflict");
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on configmaps \"settings\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    assert_eq!(status["details"], json!({"name": "settings", "kind": "configmaps"}));
    assert_eq!(world.get(&path).await.ok()["data"]["key"], "first");
}

pub(crate) async fn update_without_a_version_is_unconditional(world: &World) {
    world.config_map("settings", json!({})).await;
    let mut wanted = config_map("settings", json!({}));
    wanted["data"]["key"] = json!("forced");
    let updated = world.put(&world.core("configmaps/settings"), &wanted).await.ok();
    assert_eq!(updated["data"]["key"], "forced");
}

pub(crate) async fn update_with_another_uid_is_a_conflict(world: &World) {
    let mut wanted = world.config_map("settings", json!({})).await;
    wanted["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    let reply = world.put(&world.core("configmaps/settings"), &wanted).await;
    reply.fails_saying(409, "Conflict", &["Precondition failed: UID in precondition: 11111111"]);
}

pub(crate) async fn update_of_a_missing_object_is_not_found(world: &World) {
    let reply = world.put(&world.core("configmaps/absent"), &config_map("absent", json!({}))).await;
    let status = reply.fails(404, "NotFound");
    assert_eq!(status["message"], "configmaps \"absent\" not found");
}

pub(crate) async fn the_name_in_the_body_must_be_the_one_in_the_path(world: &World) {
    world.config_map("settings", json!({})).await;
    let reply = world.put(&world.core("configmaps/settings"), &config_map("other", json!({}))).await;
    let status = reply.fails(400, "BadRequest");
    assert_eq!(
        status["message"],
        "the name of the object (other) does not match the name on the URL (settings)"
    );
}

pub(crate) async fn the_namespace_in_the_body_must_be_the_one_in_the_path(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["metadata"]["namespace"] = json!("elsewhere");
    let status = world.post(&world.core("configmaps"), &wanted).await.fails(400, "BadRequest");
    assert_eq!(
        status["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}

pub(crate) async fn immutable_config_maps_and_secrets_keep_their_data(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["immutable"] = json!(true);
    let mut made = world.post(&world.core("configmaps"), &wanted).await.created();
    made["data"]["key"] = json!("changed");
    let reply = world.put(&world.core("configmaps/settings"), &made).await;
    let status = reply.fails_saying(422, "Invalid", &["field is immutable when `immutable` is set"]);
    assert_eq!(cause_fields(&status), ["data"]);
}

pub(crate) async fn secrets_take_string_data_and_a_default_type(world: &World) {
    let wanted = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"},
        "stringData": {"a": "plain"}, "data": {"b": "Yg=="},
    });
    let made = world.post(&world.core("secrets"), &wanted).await.created();
    assert_eq!(made["data"], json!({"a": "cGxhaW4=", "b": "Yg=="}));
    assert_eq!(made["type"], "Opaque");
    assert!(made.get("stringData").is_none());
    let mut bad = wanted;
    bad["data"]["b"] = json!("not base64!");
    bad["metadata"]["name"] = json!("bad");
    world.post(&world.core("secrets"), &bad).await.fails(400, "BadRequest");
}

pub(crate) async fn delete_answers_success_and_removes(world: &World) {
    let made = world.config_map("settings", json!({})).await;
    let status = world.delete(&world.core("configmaps/settings")).await.ok();
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["status"], "Success");
    assert_eq!(status["details"]["name"], "settings");
    assert_eq!(status["details"]["kind"], "configmaps");
    assert_eq!(status["details"]["uid"], made["metadata"]["uid"]);
    world.get(&world.core("configmaps/settings")).await.fails(404, "NotFound");
    let list = world.get(&world.core("configmaps")).await.ok();
    assert!(!names(&list).contains(&"settings"));
}

pub(crate) async fn a_recreated_object_has_another_uid(world: &World) {
    let first = world.config_map("settings", json!({})).await;
    world.delete(&world.core("configmaps/settings")).await.ok();
    let second = world.config_map("settings", json!({})).await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
}
