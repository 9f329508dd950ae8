//! `pods/log`: what clients read of the containers of simulated Pods.

use std::time::Duration;

use baton_apiserver::{Clock, Cluster, Options};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/shop/pods";

async fn cluster() -> Cluster {
    let epoch = "2026-01-01T00:00:00Z".parse().expect("a date");
    let cluster = Cluster::memory(Options { clock: Clock::starting_at(epoch), ..Options::default() });
    send(&cluster, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "shop"}})).await;
    cluster
}

async fn pod(cluster: &Cluster, name: &str, spec: Value, annotations: Value) {
    let pod = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    let (status, text) = send(cluster, "POST", PODS, pod).await;
    assert_eq!(status, 201, "{text}");
}

async fn open(
    cluster: &Cluster,
    method: &str,
    path: &str,
    body: Value,
) -> http::Response<baton_apiserver::Body> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    cluster.handle(request.body(Full::new(body)).expect("a request")).await
}

async fn send(cluster: &Cluster, method: &str, path: &str, body: Value) -> (u16, String) {
    let answer = open(cluster, method, path, body).await;
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(bytes.to_vec()).expect("a text"))
}

async fn log(cluster: &Cluster, name: &str, query: &str) -> (u16, String) {
    send(cluster, "GET", &format!("{PODS}/{name}/log?{query}"), Value::Null).await
}

fn one() -> Value {
    json!({"containers": [{"name": "web", "image": "web:1"}]})
}

#[tokio::test(start_paused = true)]
async fn a_container_that_runs_has_a_log_in_the_form_that_is_asked_for() {
    let cluster = cluster().await;
    pod(&cluster, "web", one(), json!({})).await;
    let (status, text) = log(&cluster, "web", "").await;
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("is waiting to start: ContainerCreating"), "{text}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (status, whole) = log(&cluster, "web", "").await;
    assert_eq!((status, whole.lines().count()), (200, 3), "{whole}");
    assert!(whole.starts_with("simulated container web of pod shop/web\n"), "{whole}");
    assert_eq!(log(&cluster, "web", "container=web").await.1, whole);
    let last = whole.lines().last().expect("a line");
    assert_eq!(log(&cluster, "web", "tailLines=1").await.1, format!("{last}\n"));
    assert_eq!(log(&cluster, "web", "tailLines=0").await.1, "");
    assert_eq!(log(&cluster, "web", "limitBytes=9").await.1, "simulated");
    assert_eq!(log(&cluster, "web", "sinceSeconds=1").await.1, "", "all of it is older");
    assert_eq!(log(&cluster, "web", "sinceSeconds=3600").await.1, whole);
    let timed = log(&cluster, "web", "timestamps=true").await.1;
    assert!(timed.starts_with("2026-01-01T00:00:0") && timed.contains("Z simulated container"), "{timed}");
    let since = "sinceTime=2026-01-01T00:00:00Z";
    assert_eq!(log(&cluster, "web", since).await.1, whole);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_refused_with_the_reason() {
    let cluster = cluster().await;
    let two = json!({"containers": [{"name": "web", "image": "web:1"}, {"name": "proxy", "image": "p:1"}]});
    pod(&cluster, "two", two.clone(), json!({})).await;
    pod(&cluster, "usual", two, json!({"kubectl.kubernetes.io/default-container": "proxy"})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    for (query, words) in [
        ("", "a container name must be specified for pod two, choose one of: [web proxy]"),
        ("container=other", "container other is not valid for pod two"),
        ("container=web&previous=true", "not found"),
        ("container=web&tailLines=-1", "tailLines: Invalid value: -1"),
        ("container=web&tailLines=x", "must be a whole number"),
        ("container=web&sinceSeconds=0", "sinceSeconds"),
        ("container=web&limitBytes=0", "limitBytes"),
        ("container=web&sinceTime=soon", "sinceTime"),
        ("container=web&sinceTime=2026-01-01T00:00:00Z&sinceSeconds=1", "at most one of"),
    ] {
        let (status, text) = log(&cluster, "two", query).await;
        assert_eq!(status, 400, "{query}: {text}");
        let told: Value = serde_json::from_str(&text).expect("a Status");
        assert!(told["message"].as_str().is_some_and(|message| message.contains(words)), "{query}: {text}");
    }
    assert_eq!(log(&cluster, "none", "").await.0, 404);
    assert!(log(&cluster, "usual", "").await.1.starts_with("simulated container proxy"));
    assert_eq!(send(&cluster, "POST", &format!("{PODS}/two/log"), json!({})).await.0, 405);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_followed_ends_with_its_pod() {
    let cluster = cluster().await;
    pod(&cluster, "web", one(), json!({})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let whole = log(&cluster, "web", "").await.1;
    let answer = open(&cluster, "GET", &format!("{PODS}/web/log?follow=true"), Value::Null).await;
    assert_eq!(answer.headers()["content-type"], "text/plain");
    let reading = tokio::spawn(async move { answer.into_body().collect().await.expect("a body").to_bytes() });
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!reading.is_finished(), "it goes on while the container runs");
    let now = json!({"gracePeriodSeconds": 0});
    assert_eq!(send(&cluster, "DELETE", &format!("{PODS}/web"), now).await.0, 200);
    assert_eq!(reading.await.expect("read"), whole.as_bytes());
}

#[tokio::test(start_paused = true)]
async fn a_container_that_crashed_tells_of_its_last_run() {
    let cluster = cluster().await;
    pod(&cluster, "bad", one(), json!({"sim.baton.dev/fail": "no database"})).await;
    let once = json!({"restartPolicy": "Never", "containers": [{"name": "job", "image": "job:1"}]});
    pod(&cluster, "done", once, json!({})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let crashed = log(&cluster, "bad", "").await.1;
    assert!(crashed.ends_with("ended with exit code 1 (Error): no database\n"), "{crashed}");
    assert_eq!(log(&cluster, "bad", "previous=true").await.1, crashed);
    let done = log(&cluster, "done", "follow=true").await.1;
    assert!(done.ends_with("ended with exit code 0 (Completed)\n"), "{done}");
}
