//! What a pass over a large ApplicationSet costs, and what the controller keeps of each Application. `make bench` runs it.
//!
//! The set has three Applications for each of 1,000 clusters. The API is embedded in this process and answers without a
//! socket, so times of passes that write hold its work too.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use baton_apiserver::{Body as Answer, Cluster, ClusterService, Options};
use baton_controllers::{Controller, ObjectKey, Settings};
use baton_generators::Generators;
use baton_scm::Hosts;
use baton_source::Repositories;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::Service;

const NAMESPACE: &str = "argocd";
const CLUSTERS: usize = 1000;
const PER_CLUSTER: usize = 3;
const PASSES: usize = 50;
/// More controllers over the same cluster, to weigh one.
const WEIGHED: usize = 4;

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let applications = CLUSTERS * PER_CLUSTER;
    println!("one ApplicationSet, {CLUSTERS} clusters, {applications} Applications");
    let cluster = populated().await;
    let (controller, requests) = controller(&cluster).await;
    let set = ObjectKey::new(NAMESPACE, "fleet");

    let begin = Instant::now();
    controller.pass(&set).await.expect("a pass");
    let took = begin.elapsed();
    println!("  first pass:           {} creates in {:.0} ms", controller.owned_applications(), ms(took));
    assert_eq!(controller.owned_applications(), applications);
    caught_up(&controller, &set).await;

    requests.store(0, Ordering::Relaxed);
    let revision = cluster.store().revision();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..PASSES {
        let begin = Instant::now();
        controller.pass(&set).await.expect("a pass");
        times.push(begin.elapsed());
    }
    times.sort();
    println!(
        "  no-op pass:           {:.2} ms at best, {:.2} ms median; {} requests, {} writes in {PASSES} passes",
        ms(times[0]),
        ms(times[PASSES / 2]),
        requests.load(Ordering::Relaxed),
        cluster.store().revision() - revision,
    );

    // A cluster that no generator reads changes: the whole set is generated anew, and nothing comes of it.
    let revision = cluster.store().revision();
    let mut times: Vec<Duration> = Vec::new();
    for number in 0..PASSES {
        cluster.apply("bench", &elsewhere(number)).await.expect("a Secret");
        caught_up(&controller, &set).await;
        let begin = Instant::now();
        controller.pass(&set).await.expect("a pass");
        times.push(begin.elapsed());
    }
    times.sort();
    println!(
        "  generated anew:       {:.2} ms at best, {:.2} ms median; {} writes to Applications and the set",
        ms(times[0]),
        ms(times[PASSES / 2]),
        cluster.store().revision() - revision - PASSES as u64,
    );

    let renders = controller.renders();
    cluster.apply("bench", &secret(500, "changed")).await.expect("a Secret");
    let revision = cluster.store().revision();
    caught_up(&controller, &set).await;
    let begin = Instant::now();
    controller.pass(&set).await.expect("a pass");
    println!(
        "  one label changed:    {} renders, {} writes, {:.2} ms",
        controller.renders() - renders,
        cluster.store().revision() - revision,
        ms(begin.elapsed()),
    );
    weigh(&cluster, applications).await;
}

/// What more controllers take, each after a full pass. Memory that one has freed, the next uses again.
async fn weigh(cluster: &Cluster, applications: usize) {
    let set = ObjectKey::new(NAMESPACE, "fleet");
    let mut controllers = Vec::new();
    let mut before = 0;
    for number in 0..=WEIGHED {
        // The first one warms up the allocator.
        if number == 1 {
            before = resident();
        }
        let (controller, _) = controller(cluster).await;
        controller.pass(&set).await.expect("a pass");
        assert_eq!(controller.owned_applications(), applications);
        controllers.push(controller);
    }
    let more = resident().saturating_sub(before) * 1024;
    println!(
        "  memory:               {} bytes per owned Application, {} of them counted",
        more / (WEIGHED * applications),
        WEIGHED * applications
    );
    drop(controllers);
}

/// Resident memory of this process in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Lets the watches deliver what was written.
async fn caught_up(controller: &Controller, set: &ObjectKey) {
    for _ in 0..20_000 {
        tokio::task::yield_now().await;
    }
    let known = controller.application_sets();
    assert!(known.iter().any(|known| known.metadata.name.as_deref() == Some(&*set.name)));
}

async fn controller(cluster: &Cluster) -> (Controller, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let service = Counted { inner: cluster.service(), requests: requests.clone() };
    let hosts = Hosts::new(baton_scm::Settings::default()).expect("usable settings");
    let repositories = Repositories::new(baton_source::Settings::default());
    let generators = Generators::new(repositories, hosts, baton_generators::Settings::default());
    let client = Client::new(service, NAMESPACE);
    let controller = Controller::new(client, Settings::new(NAMESPACE), generators).expect("settings");
    let follows = controller.clone();
    tokio::spawn(async move { follows.follow(std::future::pending()).await });
    (controller, requests)
}

async fn populated() -> Cluster {
    let options = Options { workloads: None, nodes: 0, ..Options::default() };
    let cluster = Cluster::memory(options);
    for crd in baton_api::crds() {
        cluster.apply("bench", &crd).await.expect("a CRD");
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
    });
    for object in [namespace, project] {
        cluster.apply("bench", &object).await.expect("an object");
    }
    for index in 0..CLUSTERS {
        cluster.apply("bench", &secret(index, "blue")).await.expect("a Secret");
    }
    let elements: Vec<Value> = (0..PER_CLUSTER).map(|index| json!({"app": format!("app-{index}")})).collect();
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "fleet", "namespace": NAMESPACE},
        "spec": {
            "goTemplate": true,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [{"matrix": {"generators": [
                {"clusters": {"selector": {"matchLabels": {"env": "prod"}}}},
                {"list": {"elements": elements}},
            ]}}],
            "template": {
                "metadata": {
                    "name": "{{ .app }}-{{ .name }}",
                    "labels": {"colour": "{{ .metadata.labels.colour }}", "app": "{{ .app }}"},
                },
                "spec": {
                    "project": "default",
                    "source": {
                        "repoURL": "https://git.example.com/apps.git", "targetRevision": "HEAD",
                        "path": "apps/{{ .app }}",
                        "helm": {"values": "cluster: {{ .name }}\nregion: {{ .metadata.labels.region }}\n"},
                    },
                    "destination": {"server": "{{ .server }}", "namespace": "{{ .app }}"},
                    "syncPolicy": {"automated": {"prune": true}},
                },
            },
        },
    });
    cluster.apply("bench", &set).await.expect("a set");
    cluster
}

/// A cluster outside of the set's selector.
fn elsewhere(number: usize) -> Value {
    let mut secret = secret(CLUSTERS, &format!("number-{number}"));
    secret["metadata"]["labels"]["env"] = "test".into();
    secret
}

fn secret(index: usize, colour: &str) -> Value {
    let name = format!("cluster-{index:04}");
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {
            "argocd.argoproj.io/secret-type": "cluster", "env": "prod", "colour": colour,
            "region": format!("region-{}", index % 7),
        }},
        "stringData": {"name": name, "server": format!("https://{name}.example.com"), "config": "{}"},
    })
}

/// Counts requests that are no watches.
#[derive(Clone)]
struct Counted {
    inner: ClusterService,
    requests: Arc<AtomicUsize>,
}

impl Service<Request<Body>> for Counted {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if !request.uri().query().unwrap_or_default().contains("watch=true") {
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.call(request)
    }
}
