//! Traces over real HTTP to a collector that is busy, refuses, or is not there.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::any;
use baton_api::ApplicationSet;
use baton_traces::run::ended;
use baton_traces::{Collector, Span, exporter};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A collector that answers with these statuses one after the other, then well; and what it was sent.
#[derive(Clone, Default)]
struct Post {
    answers: Arc<Mutex<Vec<u16>>>,
    taken: Arc<Mutex<Vec<(String, HeaderMap, Value)>>>,
}

impl Post {
    async fn opened(answers: &[u16]) -> (Post, String) {
        let post = Post { answers: Arc::new(Mutex::new(answers.to_vec())), ..Post::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let router = Router::new().fallback(any(take)).with_state(post.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (post, format!("http://{address}"))
    }

    fn count(&self) -> usize {
        self.taken.lock().len()
    }
}

async fn take(State(post): State<Post>, uri: Uri, headers: HeaderMap, body: String) -> StatusCode {
    post.taken.lock().push((uri.path().to_owned(), headers, serde_json::from_str(&body).expect("JSON")));
    let mut answers = post.answers.lock();
    let status = if answers.is_empty() { 200 } else { answers.remove(0) };
    StatusCode::from_u16(status).expect("a status")
}

fn a_run() -> Vec<Span> {
    let set = |finished: Value| -> ApplicationSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "uid": "u"}, "spec": {"generators": [], "template": {}},
            "status": {"rollout": {"run": 1, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": finished}},
        }))
        .expect("a set")
    };
    ended(&set(Value::Null), &set("2026-01-01T00:01:00Z".into()), Timestamp::UNIX_EPOCH)
}

/// Sends some runs and asks for the end at once; tells how many were lost.
async fn sent(address: &str, headers: &str, runs: usize) -> u64 {
    let collector = Collector::new(address, headers, "fleet").expect("an address");
    let (traces, exporter) = exporter(collector).expect("an exporter");
    let (stop, stopped) = oneshot::channel::<()>();
    let work = tokio::spawn(exporter.run(async move { drop(stopped.await) }));
    (0..runs).for_each(|_| traces.send(a_run()));
    stop.send(()).expect("an exporter that listens");
    work.await.expect("an exporter that ends");
    traces.lost()
}

#[tokio::test]
async fn a_trace_arrives_where_collectors_listen() {
    let (post, address) = Post::opened(&[]).await;
    assert_eq!(sent(&address, "x-team=fleet, authorization=Bearer canary", 1).await, 0);
    let (path, headers, body) = post.taken.lock().remove(0);
    assert_eq!(path, "/v1/traces");
    assert_eq!(
        (&headers["x-team"], &headers["content-type"]),
        (&"fleet".parse().unwrap(), &"application/json".parse().unwrap())
    );
    assert_eq!(headers["authorization"], "Bearer canary");
    assert_eq!(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn what_a_busy_collector_does_not_take_is_sent_again() {
    let (post, address) = Post::opened(&[503]).await;
    assert_eq!(sent(&address, "", 1).await, 0);
    let taken = post.taken.lock();
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[0].2, taken[1].2, "it is the same to the byte");
}

#[tokio::test]
async fn what_a_collector_refuses_is_not_sent_again() {
    let (post, address) = Post::opened(&[400, 200]).await;
    assert_eq!(sent(&address, "", 2).await, 1);
    assert_eq!(post.count(), 2);
}

#[tokio::test]
async fn a_collector_that_leads_elsewhere_is_not_followed() {
    let (post, address) = Post::opened(&[307]).await;
    assert_eq!(sent(&address, "", 1).await, 1);
    assert_eq!(post.count(), 1);
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_nobody_up_and_no_end() {
    // Nobody listens on a port that was given back.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    drop(listener);
    assert_eq!(sent(&address, "", 100).await, 100, "64 wait, and 36 found no room");
}

#[test]
fn addresses_and_headers_that_cannot_be_used_are_refused_without_their_secrets() {
    for address in
        ["", "collector:4318", "grpc://host:4317", "http://user:hunter2@host", "unix:///x", "http://"]
    {
        let error = Collector::new(address, "", "").expect_err(address).to_string();
        assert!(error.contains("write http://HOST:4318") && !error.contains("hunter2"), "{error}");
    }
    for headers in ["canary", "a b=canary", "ok=1,x=can\nary"] {
        let error = Collector::new("http://host", headers, "").expect_err(headers).to_string();
        assert!(!error.contains("can"), "{error}");
    }
    let collector =
        Collector::new("https://host/otlp?key=canary", "authorization=canary", "").expect("an address");
    assert!(!format!("{collector:?}").contains("canary"), "{collector:?}");
}
