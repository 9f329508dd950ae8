//! How much the embedded API does, measured on the real binary over TLS and in process. `make bench` runs it.
//!
//! Client and server share this machine, so the numbers over TLS count both ends. Counts come from
//! `BATON_BENCH_OBJECTS` (10,000 unless set).

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const CONNECTIONS: usize = 64;
const WATCHERS: usize = 100;

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let objects =
        std::env::var("BATON_BENCH_OBJECTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!("embedded API, {objects} objects, {CONNECTIONS} connections, client and server on this machine");
    runtime.block_on(in_process(objects));
    runtime.block_on(over_tls(objects, true));
    runtime.block_on(over_tls(objects, false));
}

fn config_map(index: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("settings-{index}"), "namespace": "default", "labels": {"bench": "yes"}},
        "data": {"key": "value", "index": index.to_string()},
    })
}

/// An Application as a fleet has them: about 5 KB, most of it status.
fn application(index: usize) -> Value {
    let resources: Vec<Value> = (0..14)
        .map(|at| {
            json!({
                "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "guestbook",
                "name": format!("guestbook-{index}-component-{at}"), "status": "Synced",
                "health": {"status": "Healthy", "message": format!("{} of 3 replicas are available", index % 4)},
            })
        })
        .collect();
    let revision = format!("{:040x}", index as u128 * 0x9e37_79b9_7f4a_7c15);
    let history: Vec<Value> = (0..6)
        .map(|id| {
            json!({
                "id": id, "revision": revision, "deployedAt": "2026-01-02T03:04:05Z",
                "source": {"repoURL": "https://git.example.com/platform/fleet.git", "path": format!("apps/{index}"), "targetRevision": "main"},
            })
        })
        .collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": format!("guestbook-{index}"), "namespace": "default"},
        "spec": {
            "project": "default",
            "destination": {"name": format!("cluster-{index}"), "namespace": "guestbook"},
            "source": {"repoURL": "https://git.example.com/platform/fleet.git", "path": format!("apps/{index}"), "targetRevision": "main"},
        },
        "status": {
            "sync": {"status": "Synced", "revision": revision},
            "health": {"status": "Healthy"},
            "resources": resources,
            "history": history,
        },
    })
}

fn rate(name: &str, count: usize, took: Duration) {
    println!("{name:<44} {:>10.0} /s", count as f64 / took.as_secs_f64());
}

async fn in_process(objects: usize) {
    let cluster = baton_apiserver::Cluster::memory(baton_apiserver::Options::default());
    let start = Instant::now();
    for index in 0..objects {
        let request = Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .body(Full::<Bytes>::from(config_map(index).to_string()))
            .expect("a request");
        let answer = cluster.handle(request).await;
        assert_eq!(answer.status(), 201);
    }
    rate("ConfigMap creates, in process, one task", objects, start.elapsed());
}

async fn over_tls(objects: usize, ephemeral: bool) {
    let mode = if ephemeral { "memory" } else { "disk" };
    let server = Server::start(ephemeral).await;
    let resting = server.memory_mib();

    let took = server
        .each(objects, move |index| {
            request(
                Method::POST,
                "/api/v1/namespaces/default/configmaps",
                "application/json",
                &config_map(index),
            )
        })
        .await;
    rate(&format!("ConfigMap creates, TLS, {mode}"), objects, took);

    let took = server
        .each(objects, move |index| {
            let path = format!("/api/v1/namespaces/default/configmaps/settings-{index}");
            let patch = json!({"data": {"key": format!("changed-{index}")}});
            request(Method::PATCH, &path, "application/merge-patch+json", &patch)
        })
        .await;
    rate(&format!("ConfigMap merge patches, TLS, {mode}"), objects, took);

    let mut connection = server.connect().await;
    let start = Instant::now();
    let bytes = get(&mut connection, "/api/v1/namespaces/default/configmaps").await;
    println!(
        "{:<44} {:>10.0} ms ({:.1} MB)",
        format!("list of {objects} ConfigMaps, TLS, {mode}"),
        start.elapsed().as_secs_f64() * 1e3,
        bytes as f64 / 1e6
    );
    if ephemeral {
        watch_latency(&server).await;
        drop(server);
        applications(objects).await;
    } else {
        println!("{:<44} {:>10.0} MiB", "memory at rest, disk", resting);
    }
}

async fn watch_latency(server: &Server) {
    const EVENTS: usize = 300;
    let sent: Arc<parking_lot::Mutex<Vec<Instant>>> = Arc::default();
    let ready = Arc::new(AtomicUsize::new(0));
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut connection = server.connect().await;
        let (sent, ready) = (sent.clone(), ready.clone());
        watchers.push(tokio::spawn(async move {
            let path = "/api/v1/namespaces/default/secrets?watch=true&timeoutSeconds=120";
            let request = Request::get(path).body(Full::<Bytes>::default()).expect("a request");
            let answer = connection.send_request(request).await.expect("a watch");
            ready.fetch_add(1, Ordering::SeqCst);
            let mut body = answer.into_body();
            let (mut latencies, mut seen) = (Vec::with_capacity(EVENTS), 0);
            while seen < EVENTS {
                let frame = body.frame().await.expect("the watch goes on").expect("a frame");
                let lines =
                    frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
                let now = Instant::now();
                let sent = sent.lock();
                for _ in 0..lines {
                    latencies.push(now - sent[seen]);
                    seen += 1;
                }
            }
            latencies
        }));
    }
    while ready.load(Ordering::SeqCst) < WATCHERS {
        tokio::task::yield_now().await;
    }
    let mut connection = server.connect().await;
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    for index in 0..EVENTS {
        pace.tick().await;
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s-{index}")}});
        sent.lock().push(Instant::now());
        send(
            &mut connection,
            request(Method::POST, "/api/v1/namespaces/default/secrets", "application/json", &secret),
        )
        .await;
    }
    let mut all = Vec::new();
    for watcher in watchers {
        all.extend(watcher.await.expect("a watcher"));
    }
    all.sort_unstable();
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{:<44} {:>10.2} ms p50, {:.2} ms p99",
        format!("watch latency, {WATCHERS} watchers, TLS"),
        at(0.50),
        at(0.99)
    );
}

async fn applications(objects: usize) {
    let server = Server::start(true).await;
    let mut connection = server.connect().await;
    for crd in baton_api::crds() {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        send(&mut connection, request(Method::POST, path, "application/json", &crd)).await;
    }
    let resting = server.memory_mib();
    let took = server
        .each(objects, move |index| {
            let path = "/apis/argoproj.io/v1alpha1/namespaces/default/applications";
            request(Method::POST, path, "application/json", &application(index))
        })
        .await;
    let size = application(objects / 2).to_string().len();
    rate(&format!("Application creates ({size} bytes), TLS, memory"), objects, took);
    println!(
        "{:<44} {:>10.0} MiB ({resting:.0} before them)",
        format!("memory with {objects} Applications"),
        server.memory_mib()
    );
    let start = Instant::now();
    let bytes = get(&mut connection, "/apis/argoproj.io/v1alpha1/namespaces/default/applications").await;
    println!(
        "{:<44} {:>10.0} ms ({:.1} MB)",
        format!("list of {objects} Applications, TLS"),
        start.elapsed().as_secs_f64() * 1e3,
        bytes as f64 / 1e6
    );
    println!("{:<44} {:>10.0} MiB", "memory after that list", server.memory_mib());
}

/// The real binary on a free port.
struct Server {
    process: Child,
    address: SocketAddr,
    tls: Arc<rustls::ClientConfig>,
    _directory: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    async fn start(ephemeral: bool) -> Server {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.args(["apiserver", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path());
        if ephemeral {
            command.arg("--ephemeral");
        }
        let process = command.stdout(Stdio::null()).spawn().expect("the server starts");
        let path = directory.path().join("kubeconfig");
        let kubeconfig = loop {
            match std::fs::read_to_string(&path) {
                Ok(text) => break text,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let field = |name: &str| {
            let at = kubeconfig.find(&format!("{name}: ")).expect("the kubeconfig has it") + name.len() + 2;
            kubeconfig[at..].lines().next().expect("a value").to_owned()
        };
        let pem = |name: &str| base64::engine::general_purpose::STANDARD.decode(field(name)).expect("base64");
        let address = field("server").trim_start_matches("https://").parse().expect("an address");
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&pem("certificate-authority-data")).expect("PEM"))
            .expect("a CA");
        let chain = vec![CertificateDer::from_pem_slice(&pem("client-certificate-data")).expect("PEM")];
        let key = PrivateKeyDer::from_pem_slice(&pem("client-key-data")).expect("PEM");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS versions")
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .expect("a client certificate");
        Server { process, address, tls: Arc::new(tls), _directory: directory }
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.set_nodelay(true).expect("a socket option");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await.expect("TLS");
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(async move { drop(connection.await) });
        sender
    }

    /// Sends `count` requests over all connections and tells how long it took.
    async fn each(
        &self,
        count: usize,
        make: impl Fn(usize) -> Request<Full<Bytes>> + Clone + Send + 'static,
    ) -> Duration {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(self.connect().await);
        }
        let next = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        let tasks: Vec<_> = connections
            .into_iter()
            .map(|mut connection| {
                let (next, make) = (next.clone(), make.clone());
                tokio::spawn(async move {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            break;
                        }
                        send(&mut connection, make(index)).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a client");
        }
        start.elapsed()
    }

    fn memory_mib(&self) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("the process runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        let kib: f64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
        kib / 1024.0
    }
}

fn request(method: Method, path: &str, content_type: &str, body: &Value) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(Full::from(body.to_string()))
        .expect("a request")
}

async fn send(connection: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) {
    connection.ready().await.expect("the connection is open");
    let answer = connection.send_request(request).await.expect("an answer");
    let status = answer.status();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
}

async fn get(connection: &mut SendRequest<Full<Bytes>>, path: &str) -> usize {
    let request = Request::get(path).body(Full::<Bytes>::default()).expect("a request");
    let mut body = connection.send_request(request).await.expect("an answer").into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.expect("a frame").data_ref().map_or(0, Bytes::len);
    }
    bytes
}
