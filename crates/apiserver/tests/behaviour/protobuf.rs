//! Bodies in protobuf, which kubectl sends for `create` and `auth can-i` and does not retry as JSON.

use crate::world::{JSON, World, text};
use serde_json::json;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub(crate) async fn a_config_map_is_created(world: &World) {
    let metadata = field(1, b"settings");
    let mut object = field(1, &metadata);
    for (key, value) in [("a", "one"), ("b", "two")] {
        object.extend(field(2, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat()));
    }
    object.extend(field(3, &[field(1, b"raw"), field(2, &[0, 159, 146])].concat()));
    let made = send(world, &world.core("configmaps"), &envelope("v1", "ConfigMap", &object)).await.created();
    assert_eq!(made["data"], json!({"a": "one", "b": "two"}));
    assert_eq!(made["binaryData"], json!({"raw": "AJ+S"}));
}

pub(crate) async fn a_namespace_is_created(world: &World) {
    let name = format!("binary-{}", world.unique());
    world.delete_at_end(format!("/api/v1/namespaces/{name}"));
    let labels = field(11, &[field(1, b"team"), field(2, b"blue")].concat());
    let object = field(1, &[field(1, name.as_bytes()), labels].concat());
    let made = send(world, "/api/v1/namespaces", &envelope("v1", "Namespace", &object)).await.created();
    assert_eq!(text(&made, "/metadata/name"), name);
    assert_eq!(made["metadata"]["labels"]["team"], "blue");
}

pub(crate) async fn a_secret_is_created(world: &World) {
    let object = [
        field(1, &field(1, b"token")),
        field(2, &[field(1, b"key"), field(2, b"hidden")].concat()),
        field(3, b"Opaque"),
    ]
    .concat();
    let made = send(world, &world.core("secrets"), &envelope("v1", "Secret", &object)).await.created();
    assert_eq!(made["data"], json!({"key": "aGlkZGVu"}));
}

pub(crate) async fn an_access_review_is_answered(world: &World) {
    let attributes =
        [field(1, world.namespace().as_bytes()), field(2, b"create"), field(5, b"pods")].concat();
    let object = [field(1, b""), field(2, &field(1, &attributes))].concat();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let body = envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", &object);
    let review = send(world, path, &body).await.created();
    assert_eq!(review["spec"]["resourceAttributes"]["verb"], "create");
    assert_eq!(review["status"]["allowed"], true);
}

pub(crate) async fn broken_protobuf_is_a_bad_request(world: &World) {
    let path = world.core("configmaps");
    for body in [&b"k8s\0"[..], b"k8s\0\xff\xff\xff", b"nonsense", b""] {
        let reply = send(world, &path, body).await;
        assert!(matches!(reply.code, 400 | 415), "{}: {:?}", reply.code, body);
        assert_eq!(reply.json()["kind"], "Status");
    }
    let truncated = envelope("v1", "ConfigMap", &[0x0a, 0x7f, 0x01]);
    let reply = send(world, &path, &truncated).await;
    assert_eq!(reply.code, 400);
}

async fn send(world: &World, path: &str, body: &[u8]) -> crate::world::Reply {
    world.call("POST", path, &[("content-type", PROTOBUF), ("accept", JSON)], body).await
}

/// The magic number, then `runtime.Unknown` with the type and the raw object.
fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let kind = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, object)].concat()
}

/// One length-delimited field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 127 {
        bytes.push((length & 127) as u8 | 128);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}
