//! `fieldValidation`: unknown and duplicate fields are refused, warned about, or ignored.

use crate::world::{JSON, MERGE_PATCH, World, config_map, text};
use serde_json::json;

pub(crate) async fn strict_refuses_unknown_fields(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["surprise"] = json!(1);
    wanted["metadata"]["odd"] = json!(2);
    let path = world.core("configmaps");
    let reply = world.post(&format!("{path}?fieldValidation=Strict"), &wanted).await;
    let status = reply.fails(400, "BadRequest");
    let message = text(&status, "/message");
    assert!(message.contains("strict decoding error"), "{message}");
    assert!(
        message.contains("unknown field \"surprise\"") && message.contains("unknown field \"metadata.odd\""),
        "{message}"
    );
    world.get(&format!("{path}/settings")).await.fails(404, "NotFound");
}

pub(crate) async fn warn_stores_without_them_and_warns(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["surprise"] = json!(1);
    let reply = world.post(&format!("{}?fieldValidation=Warn", world.core("configmaps")), &wanted).await;
    let warnings = reply.warnings();
    assert_eq!(warnings, ["299 - \"unknown field \\\"surprise\\\"\""]);
    assert!(reply.created().get("surprise").is_none());
}

pub(crate) async fn warn_is_the_default(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["surprise"] = json!(1);
    let reply = world.post(&world.core("configmaps"), &wanted).await;
    assert_eq!(reply.warnings().len(), 1);
    reply.created();
}

pub(crate) async fn ignore_stays_silent(world: &World) {
    let mut wanted = config_map("settings", json!({}));
    wanted["surprise"] = json!(1);
    let reply = world.post(&format!("{}?fieldValidation=Ignore", world.core("configmaps")), &wanted).await;
    assert!(reply.warnings().is_empty());
    reply.created();
}

pub(crate) async fn duplicate_fields_are_unknown_fields(world: &World) {
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1"},"data":{"a":"2"}}"#;
    let path = world.core("configmaps");
    let headers = [("content-type", JSON)];
    let reply = world.call("POST", &format!("{path}?fieldValidation=Strict"), &headers, body).await;
    reply.fails_saying(400, "BadRequest", &["duplicate field \"data\""]);
    let reply = world.call("POST", &path, &headers, body).await;
    assert_eq!(reply.warnings(), ["299 - \"duplicate field \\\"data\\\"\""]);
    reply.created();
}

pub(crate) async fn strict_covers_updates_and_patches(world: &World) {
    let mut object = world.config_map("settings", json!({})).await;
    let path = world.core("configmaps/settings");
    object["surprise"] = json!(1);
    world.put(&format!("{path}?fieldValidation=Strict"), &object).await.fails(400, "BadRequest");
    let patch = json!({"surprise": 1});
    let reply = world.patch(&format!("{path}?fieldValidation=Strict"), MERGE_PATCH, &patch).await;
    let status = reply.json();
    assert!(text(&status, "/message").contains("unknown field \"surprise\""), "{status}");
    assert!(matches!(status["code"].as_u64(), Some(400 | 422)), "{status}");
    let reply = world.patch(&path, MERGE_PATCH, &patch).await;
    assert_eq!(reply.warnings().len(), 1);
    reply.ok();
}

pub(crate) async fn nested_unknown_fields_have_a_path(world: &World) {
    let mut wanted = crate::world::deployment("web", 0);
    wanted["spec"]["template"]["spec"]["containers"][0]["imagee"] = json!("typo");
    let path = format!("{}?fieldValidation=Strict", world.in_group("/apis/apps/v1", "deployments"));
    let reply = world.post(&path, &wanted).await;
    reply.fails_saying(400, "BadRequest", &["unknown field \"spec.template.spec.containers[0].imagee\""]);
}

pub(crate) async fn an_unknown_mode_is_refused(world: &World) {
    let path = format!("{}?fieldValidation=Sometimes", world.core("configmaps"));
    let status = world.post(&path, &config_map("settings", json!({}))).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("fieldValidation: Unsupported value"), "{status}");
}
