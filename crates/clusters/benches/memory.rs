//! What is kept of a cluster's objects, in bytes. `make bench` runs it.
//!
//! The API is a service in this process that makes each page when it is asked for, so that nothing else holds objects.
//! The count comes from `BATON_BENCH_OBJECTS` (10,000 unless set).

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use baton_api::application::Destination;
use baton_clusters::{ClusterAccess, Clusters, Connect, Settings};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// Tracked Deployments, each with one ReplicaSet and two Pods.
static ROOTS: LazyLock<usize> = LazyLock::new(|| {
    std::env::var("BATON_BENCH_OBJECTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
});
const PAGE: usize = 500;

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let roots = *ROOTS;
    println!("one cluster, {roots} tracked Deployments with {} children", 3 * roots);
    let local = client();
    let settings = Settings { ready_wait: Duration::from_secs(3600), ..Settings::default() };
    let clusters = Clusters::new(Arc::new(Canned), local, settings, Arc::new(|_| {}));
    let access =
        ClusterAccess { server: "https://big".into(), name: "big".to_owned(), ..ClusterAccess::in_cluster() };
    clusters.set(vec![access]);
    let destination = Destination { name: "big".to_owned(), ..Destination::default() };
    let cluster = clusters.resolve(&destination).expect("registered");
    let before = resident();
    let begin = Instant::now();
    cluster.ready(&[("apps/v1".to_owned(), "Deployment".to_owned())]).await.expect("ready");
    while cluster.object_count() < 4 * roots {
        tokio::task::yield_now().await;
    }
    let took = begin.elapsed();
    let kept = resident() - before;
    println!("  read in:              {:.1} s", took.as_secs_f64());
    println!("  kept:                 {:.1} MiB", kept as f64 / f64::from(1 << 20));
    let text = deployment(0).to_string().len();
    let before = resident();
    let values: Vec<Value> = (0..1000).map(deployment).collect();
    let parsed = (resident() - before) / values.len();
    println!(
        "  a root and its three: {} bytes; the root alone is {text} as text, {parsed} parsed",
        kept / roots
    );
    let begin = Instant::now();
    let managed = cluster.managed("app-7");
    println!("  one app's objects:    {} in {:.0} µs", managed.len(), begin.elapsed().as_secs_f64() * 1e6);
}

struct Canned;

impl Connect for Canned {
    fn connect(&self, _: &ClusterAccess) -> Result<Client, String> {
        Ok(client())
    }
}

fn client() -> Client {
    let answer = |request: Request<Body>| async move {
        let (path, query) =
            (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
        if query.contains("watch=true") {
            return std::future::pending().await;
        }
        Ok::<_, Infallible>(Response::new(Body::from(page(&path, &query).to_string().into_bytes())))
    };
    Client::new(tower::service_fn(answer), "default")
}

fn page(path: &str, query: &str) -> Value {
    let kinds = |kinds: &[(&str, &str)]| {
        let kinds = kinds.iter().map(|(name, kind)| {
            json!({"name": name, "kind": kind, "namespaced": true, "verbs": ["get", "list", "watch"]})
        });
        json!({"resources": kinds.collect::<Vec<_>>()})
    };
    match path {
        "/version" => json!({"gitVersion": "v1.34.0"}),
        "/api" => json!({"versions": ["v1"]}),
        "/apis" => json!({"groups": [{"preferredVersion": {"groupVersion": "apps/v1"}, "versions": []}]}),
        "/api/v1" => kinds(&[("pods", "Pod")]),
        "/apis/apps/v1" => kinds(&[("deployments", "Deployment"), ("replicasets", "ReplicaSet")]),
        "/apis/apps/v1/deployments" => list(query, *ROOTS, deployment),
        "/apis/apps/v1/replicasets" => {
            list(query, *ROOTS, |number| child("ReplicaSet", number, "Deployment", number))
        }
        "/api/v1/pods" => list(query, 2 * *ROOTS, |number| child("Pod", number, "ReplicaSet", number / 2)),
        other => panic!("not asked for: {other}"),
    }
}

fn list(query: &str, count: usize, make: impl Fn(usize) -> Value) -> Value {
    let start = query.split("continue=").nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    let end = (start + PAGE).min(count);
    let more = if end < count { end.to_string() } else { String::new() };
    json!({"metadata": {"resourceVersion": "9000000", "continue": more}, "items": (start..end).map(make).collect::<Vec<_>>()})
}

fn uid(kind: &str, number: usize) -> String {
    format!("{:08x}-0000-4000-8000-{number:012x}", kind.as_bytes()[0])
}

fn deployment(number: usize) -> Value {
    let name = format!("service-{number}");
    let container = json!({"name": "main", "image": format!("registry.example.com/team/service:{}", number % 50),
        "ports": [{"containerPort": 8080, "protocol": "TCP"}], "imagePullPolicy": "IfNotPresent",
        "env": (0..10).map(|at| json!({"name": format!("SETTING_{at}"), "value": format!("value-{at}-{number}")})).collect::<Vec<_>>(),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
    let fields = json!({"f:metadata": {"f:annotations": {"f:argocd.argoproj.io/tracking-id": {}}, "f:labels": {"f:app": {}}},
        "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {
            "f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:image": {}, "f:name": {}, "f:env": (0..10).map(|at|
                (format!("k:{{\"name\":\"SETTING_{at}\"}}"), json!({".": {}, "f:name": {}, "f:value": {}}))).collect::<serde_json::Map<_, _>>(),
                "f:ports": {"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                "f:resources": {"f:requests": {"f:cpu": {}, "f:memory": {}}, "f:limits": {"f:memory": {}}}}}}}}});
    json!({"metadata": {"name": name, "namespace": format!("team-{}", number % 100), "uid": uid("Deployment", number),
            "resourceVersion": (100_000 + number).to_string(), "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": name},
            "annotations": {"argocd.argoproj.io/tracking-id": format!("app-{}:apps/Deployment:x/{name}", number / 10)},
            "managedFields": [
                {"manager": "argocd-controller", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields},
                {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1", "subresource": "status",
                 "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:availableReplicas": {}, "f:conditions": {}, "f:observedGeneration": {}, "f:readyReplicas": {}}}}]},
        "spec": {"replicas": 2, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], "restartPolicy": "Always",
                "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30}}},
        "status": {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 3, "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability."},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": format!("ReplicaSet \"{name}-5d4f8c7b9\" has successfully progressed.")}]}})
}

fn child(kind: &str, number: usize, owner: &str, owner_number: usize) -> Value {
    let mut object = deployment(number);
    object["metadata"]["name"] = format!("service-{number}-5d4f8c7b9").into();
    object["metadata"]["uid"] = uid(kind, number).into();
    object["metadata"]["annotations"] = Value::Null;
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": owner, "uid": uid(owner, owner_number)}]);
    object
}

/// Bytes of memory this process has.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    pages * 4096
}
