//! Requests no well-behaved client sends, and the answers a client can make sense of.

use crate::world::{JSON, World, cause_fields, config_map, text};
use serde_json::json;

pub(crate) async fn malformed_json_is_a_bad_request(world: &World) {
    for body in
        ["{", "", "[]", "\"text\"", "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\",}", "\u{0}\u{1}"]
    {
        let reply = world.call("POST", &world.core("configmaps"), &[("content-type", JSON)], body).await;
        reply.fails(400, "BadRequest");
    }
}

pub(crate) async fn malformed_yaml_is_a_bad_request(world: &World) {
    for body in ["a: b: c", "{", "\t- x"] {
        let headers = [("content-type", "application/yaml")];
        let reply = world.call("POST", &world.core("configmaps"), &headers, body).await;
        reply.fails(400, "BadRequest");
    }
}

pub(crate) async fn yaml_bodies_are_accepted(world: &World) {
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-yaml\ndata:\n  key: |\n    two\n    lines\n";
    let reply =
        world.call("POST", &world.core("configmaps"), &[("content-type", "application/yaml")], body).await;
    assert_eq!(reply.created()["data"]["key"], "two\nlines\n");
}

pub(crate) async fn fields_of_the_wrong_type_are_a_bad_request(world: &World) {
    let mut wrong = config_map("settings", json!({}));
    wrong["data"] = json!({"key": 7});
    world.post(&world.core("configmaps"), &wrong).await.fails(400, "BadRequest");
    wrong["data"] = json!("text");
    world.post(&world.core("configmaps"), &wrong).await.fails(400, "BadRequest");
    let mut wrong = config_map("settings", json!({}));
    wrong["metadata"]["labels"] = json!(["a"]);
    world.post(&world.core("configmaps"), &wrong).await.fails(400, "BadRequest");
}

pub(crate) async fn an_unknown_content_type_is_unsupported(world: &World) {
    let headers = [("content-type", "text/plain")];
    let body = config_map("settings", json!({})).to_string();
    let reply = world.call("POST", &world.core("configmaps"), &headers, body).await;
    reply.fails_saying(415, "UnsupportedMediaType", &["application/json"]);
}

pub(crate) async fn an_unacceptable_answer_type_is_refused(world: &World) {
    let reply = world.get_as(&world.core("configmaps"), "text/csv").await;
    reply.fails_saying(406, "NotAcceptable", &["application/json"]);
}

pub(crate) async fn a_kind_unlike_the_path_is_a_bad_request(world: &World) {
    let mut wrong = config_map("settings", json!({}));
    wrong["kind"] = json!("Secret");
    world.post(&world.core("configmaps"), &wrong).await.fails(400, "BadRequest");
    wrong["kind"] = json!("Pod");
    wrong["apiVersion"] = json!("apps/v1");
    world.post(&world.core("configmaps"), &wrong).await.fails(400, "BadRequest");
}

pub(crate) async fn a_body_without_a_kind_takes_the_path_kind(world: &World) {
    let wanted = json!({"metadata": {"name": "settings"}, "data": {"a": "b"}});
    let made = world.post(&world.core("configmaps"), &wanted).await.created();
    assert_eq!(made["kind"], "ConfigMap");
    assert_eq!(made["apiVersion"], "v1");
}

pub(crate) async fn unknown_paths_are_not_found(world: &World) {
    for path in [
        world.core("gadgets"),
        "/api/v9/namespaces".to_owned(),
        "/apis/nothing.example/v1/things".to_owned(),
        "/apis/apps/v9/deployments".to_owned(),
        "/nowhere".to_owned(),
    ] {
        let reply = world.get(&path).await;
        assert_eq!(reply.code, 404, "{path}");
    }
    let reply = world.get(&world.in_group("/apis/apps/v1", "gadgets")).await;
    reply.fails_saying(404, "NotFound", &["the server could not find the requested resource"]);
}

pub(crate) async fn an_unknown_subresource_is_not_found(world: &World) {
    world.config_map("settings", json!({})).await;
    world.get(&world.core("configmaps/settings/nonsense")).await.fails(404, "NotFound");
    world.get(&world.core("configmaps/settings/status")).await.fails(404, "NotFound");
}

pub(crate) async fn a_method_the_resource_lacks_is_not_allowed(world: &World) {
    let wanted = config_map("settings", json!({}));
    world.put(&world.core("configmaps"), &wanted).await.fails(405, "MethodNotAllowed");
    world.post(&world.core("configmaps/settings"), &wanted).await.fails(405, "MethodNotAllowed");
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let status = world.get(reviews).await.fails(405, "MethodNotAllowed");
    assert!(text(&status, "/message").contains("does not allow this method"), "{status}");
}

pub(crate) async fn an_oversize_body_is_refused(world: &World) {
    let mut big = config_map("big", json!({}));
    big["data"]["key"] = json!("x".repeat(4 << 20));
    let reply = world.post(&world.core("configmaps"), &big).await;
    let status = reply.fails(413, "RequestEntityTooLarge");
    assert!(text(&status, "/message").contains("limit is 3145728"), "{status}");
    world.get(&world.core("configmaps/big")).await.fails(404, "NotFound");
}

pub(crate) async fn data_beyond_one_mebibyte_is_invalid(world: &World) {
    let mut big = config_map("big", json!({}));
    big["data"]["key"] = json!("x".repeat((1 << 20) + 1));
    let status = world.post(&world.core("configmaps"), &big).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("Too long: may not be more than 1048576"), "{status}");
}

pub(crate) async fn json_nested_ten_thousand_deep_is_refused(world: &World) {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let body =
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"deep"}},"data":{deep}}}"#);
    let reply = world.call("POST", &world.core("configmaps"), &[("content-type", JSON)], body).await;
    reply.fails(400, "BadRequest");
    world.get(&world.core("configmaps/deep")).await.fails(404, "NotFound");
}

pub(crate) async fn yaml_nested_ten_thousand_deep_is_refused(world: &World) {
    let body = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: deep}}\ndata: {}{}\n",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let headers = [("content-type", "application/yaml")];
    let reply = world.call("POST", &world.core("configmaps"), &headers, body).await;
    reply.fails(400, "BadRequest");
}

pub(crate) async fn several_faults_are_reported_together(world: &World) {
    let wanted = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 0}, {"port": 70000, "name": "Bad_Name"}]},
    });
    let status = world.post(&world.core("services"), &wanted).await.fails(422, "Invalid");
    let fields = cause_fields(&status);
    assert!(fields.contains(&"spec.ports[0].port") && fields.contains(&"spec.ports[1].port"), "{status}");
    assert!(fields.contains(&"spec.ports[0].name"), "ports must be named when there are several: {status}");
    assert!(text(&status, "/message").starts_with("Service \"web\" is invalid: ["), "{status}");
}

pub(crate) async fn invalid_query_parameters_are_a_bad_request(world: &World) {
    for query in [
        "limit=many",
        "labelSelector=a%3D%3D%3Db",
        "labelSelector=!!",
        "fieldSelector=nonsense",
        "continue=garbage",
        "timeoutSeconds=soon",
    ] {
        let reply = world.get(&format!("{}?{query}", world.core("configmaps"))).await;
        reply.fails(400, "BadRequest");
    }
}
