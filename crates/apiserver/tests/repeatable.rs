//! In memory a cluster depends on nothing but its requests, its seed and tokio's clock.

use std::time::Duration;

use baton_apiserver::{Clock, Cluster, Options};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// Rolls a workload out, changes it, deletes it and its namespace, and returns every write in order.
fn history(seed: u64) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let epoch = "2026-01-01T00:00:00Z".parse().expect("a date");
        let options = Options { clock: Clock::starting_at(epoch), seed: Some(seed), nodes: 3, ..Options::default() };
        let cluster = Cluster::memory(options);
        send(&cluster, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "shop"}})).await;
        for name in ["web", "api", "jobs"] {
            let labels = json!({"app": name});
            let deployment = json!({
                "metadata": {"name": name},
                "spec": {
                    "replicas": 3, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}},
                },
            });
            send(&cluster, "POST", "/apis/apps/v1/namespaces/shop/deployments", deployment).await;
        }
        send(&cluster, "POST", "/api/v1/namespaces/shop/configmaps", json!({"metadata": {"generateName": "a-"}})).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let web = send(&cluster, "GET", "/apis/apps/v1/namespaces/shop/deployments/web", Value::Null).await;
        assert_eq!(web["status"]["readyReplicas"], 3, "{web}");
        send(&cluster, "DELETE", "/api/v1/namespaces/shop", Value::Null).await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        let events = cluster.store().history(0);
        assert_eq!(events.last().map(|event| event.record.key.name.to_string()).as_deref(), Some("shop"));
        events
            .iter()
            .map(|event| {
                let json = String::from_utf8(event.record.json().to_vec()).expect("JSON is UTF-8");
                format!("{} {:?} {json}", event.revision, event.change)
            })
            .collect()
    })
}

async fn send(cluster: &Cluster, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(body))
        .expect("a request");
    let answer = cluster.handle(request).await;
    assert!(answer.status().is_success(), "{method} {path}: {}", answer.status());
    let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&bytes).expect("JSON")
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let (first, second) = (history(7), history(7));
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a, b);
    }
    assert_eq!(first.len(), second.len());
}

#[test]
fn another_seed_gives_other_identities() {
    assert_ne!(history(7), history(8));
}
