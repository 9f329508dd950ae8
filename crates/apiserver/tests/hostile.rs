//! What a cluster answers to input no well-behaved client sends: one row for each sort, in the words of a real
//! kube-apiserver (observed on 1.33 and later), and nothing stored.
//!
//! Random input is thrown at the same paths by the tests of `crates/hostile`.

use baton_apiserver::{Cluster, Options};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const UNRECOGNIZED: &str = "the object provided is unrecognized (must be of type ConfigMap): ";
const BODY_LIMIT: usize = 3 << 20;

/// A request and the refusal it gets.
struct Row {
    what: &'static str,
    request: (&'static str, &'static str, &'static str),
    body: String,
    code: u16,
    reason: &'static str,
    says: &'static [&'static str],
    /// The fields its causes name.
    fields: &'static [&'static str],
}

fn rows() -> Vec<Row> {
    let row = |what, request, body: String, code, reason, says| Row {
        what,
        request,
        body,
        code,
        reason,
        says,
        fields: &[],
    };
    let post = ("POST", CONFIG_MAPS, JSON);
    let config_map =
        |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let apply = ("PATCH", "/api/v1/namespaces/default/configmaps/there?fieldManager=me", APPLY);
    vec![
        row(
            "malformed JSON",
            post,
            r#"{"apiVersion":"v1","kind":"ConfigMap""#.into(),
            400,
            "BadRequest",
            &["the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ",
              r#" ({"apiVersion":"v1","kind":"Con ...)"#],
        ),
        row(
            "malformed YAML",
            ("POST", CONFIG_MAPS, YAML),
            "a: b: c".into(),
            400,
            "BadRequest",
            &["the object provided is unrecognized (must be of type ConfigMap): yaml: ", " (613a20623a2063)"],
        ),
        row(
            "a wrong content type",
            ("POST", CONFIG_MAPS, "text/plain"),
            config_map(json!({"name": "new"})),
            415,
            "UnsupportedMediaType",
            &["the body of the request was in an unknown format - accepted media types include: application/json, \
               application/yaml, application/vnd.kubernetes.protobuf"],
        ),
        row(
            "an unknown kind",
            post,
            json!({"apiVersion": "v1", "kind": "Gizmo", "metadata": {"name": "new"}}).to_string(),
            400,
            "BadRequest",
            &[r#"Gizmo in version "v1" cannot be handled as a ConfigMap: no kind "Gizmo" is registered for version "v1""#],
        ),
        Row {
            fields: &["metadata.name"],
            ..row(
                "an invalid name",
                post,
                config_map(json!({"name": "Bad_Name"})),
                422,
                "Invalid",
                &[r#"ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of"#],
            )
        },
        Row {
            fields: &["metadata.labels", "metadata.labels"],
            ..row(
                "invalid labels",
                post,
                config_map(json!({"name": "new", "labels": {"a b": "-"}})),
                422,
                "Invalid",
                &[r#"ConfigMap "new" is invalid: [metadata.labels: Invalid value: "a b": name part must consist of"#,
                  r#"metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of"#],
            )
        },
        row(
            "an oversize body",
            post,
            format!(r#"{{"a":"{}"}}"#, "x".repeat(BODY_LIMIT + 1 - 8)),
            413,
            "RequestEntityTooLarge",
            &["Request entity too large: limit is 3145728"],
        ),
        row(
            "10,000-deep JSON",
            post,
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"new"}},"data":{deep}}}"#),
            400,
            "BadRequest",
            &[UNRECOGNIZED, "exceeded max depth"],
        ),
        row(
            "10,000-deep YAML",
            ("POST", CONFIG_MAPS, YAML),
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: new}}\ndata: {deep}\n"),
            400,
            "BadRequest",
            &[UNRECOGNIZED],
        ),
        row(
            "unknown and repeated fields under Strict",
            ("POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict", JSON),
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"},"dat":{},"data":{"a":"1","a":"2"}}"#.into(),
            400,
            "BadRequest",
            &[r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: "#,
              r#"unknown field "dat""#, r#"duplicate field "data.a""#],
        ),
        row(
            "a wrong resourceVersion",
            ("PUT", "/api/v1/namespaces/default/configmaps/there", JSON),
            config_map(json!({"name": "there", "resourceVersion": "1"})),
            409,
            "Conflict",
            &[r#"Operation cannot be fulfilled on configmaps "there": the object has been modified; please apply your changes to the latest version and try again"#],
        ),
        row(
            "a missing definition",
            ("POST", "/apis/nothing.example/v1/namespaces/default/things", JSON),
            json!({"apiVersion": "nothing.example/v1", "kind": "Thing", "metadata": {"name": "new"}}).to_string(),
            404,
            "NotFound",
            &["the server could not find the requested resource"],
        ),
        row(
            "an apply that is a list",
            apply,
            "[]".into(),
            400,
            "BadRequest",
            &["error decoding YAML: ", "cannot unmarshal array into Go value of type map[string]interface {}"],
        ),
        row(
            "an apply that is a text",
            apply,
            r#""x""#.into(),
            400,
            "BadRequest",
            &["error decoding YAML: ", "cannot unmarshal string into Go value of type map[string]interface {}"],
        ),
        row("an apply that is null", apply, "null".into(), 400, "BadRequest", &["invalid object type: /, Kind="]),
    ]
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_refused_as_a_real_server_refuses_it_and_stores_nothing() {
    let cluster = cluster().await;
    for row in rows() {
        let before = cluster.store().revision();
        let (method, path, content_type) = row.request;
        let (code, body) = send(&cluster, method, path, content_type, row.body).await;
        let status: Value =
            serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{}: {body:?}", row.what));
        let what = format!("{}: {status}", row.what);
        assert_eq!((code, status["code"].as_u64()), (row.code, Some(u64::from(row.code))), "{what}");
        assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Failure")), "{what}");
        assert_eq!(status["reason"], row.reason, "{what}");
        let message = status["message"].as_str().unwrap_or_default();
        for part in row.says {
            assert!(message.contains(part), "{what} lacks {part:?}");
        }
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        let fields: Vec<_> = causes.filter_map(|cause| cause["field"].as_str()).collect();
        assert_eq!(fields, row.fields, "{what}");
        assert_eq!(cluster.store().revision(), before, "{what}: something was stored");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_compacted_revision_is_told_so_in_the_stream() {
    let cluster = cluster().await;
    cluster.store().compact(cluster.store().revision());
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=2");
    let (code, body) = send(&cluster, "GET", &path, JSON, String::new()).await;
    assert_eq!(code, 200);
    let event: Value = serde_json::from_slice(&body).expect("one event and the end");
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")), "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("too old resource version: 2 ("), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_finalized_without_spec_and_status_keeps_both() {
    let cluster = cluster().await;
    let bare = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}).to_string();
    let (code, body) = send(&cluster, "PUT", "/api/v1/namespaces/default/finalize", JSON, bare).await;
    let namespace: Value = serde_json::from_slice(&body).expect("the answer is JSON");
    assert_eq!(code, 200, "{namespace}");
    assert_eq!((&namespace["spec"], &namespace["status"]["phase"]), (&json!({}), &json!("Active")));
}

/// A cluster with one ConfigMap, which nothing but requests changes.
async fn cluster() -> Cluster {
    let cluster = Cluster::memory(Options { workloads: None, ..Options::default() });
    let there = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}}).to_string();
    let (code, _) = send(&cluster, "POST", CONFIG_MAPS, JSON, there).await;
    assert_eq!(code, 201);
    cluster
}

async fn send(cluster: &Cluster, method: &str, path: &str, content_type: &str, body: String) -> (u16, Bytes) {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(Full::<Bytes>::from(body)).expect("the request is well formed");
    let (head, body) = cluster.handle(request).await.into_parts();
    let body = body.collect().await.expect("answers cannot fail on the way");
    (head.status.as_u16(), body.to_bytes())
}
