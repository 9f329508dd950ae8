//! What people cost the server: a list of 5,000 Applications, and 500 browsers that look on while a fleet is rolled out. `make bench`
//! runs it.
//!
//! Clients, server and a Kubernetes API in memory share this process and this machine, so the numbers count all of them. Latency is
//! from the API's answer to a write until a browser has the event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_apiserver::{Cluster, Options};
use baton_clusters::{ClusterAccess, Connect};
use baton_server::auth::token::{Claims, ISSUER, SigningKey};
use baton_server::{Ask, Caller, Decision, Gate, Parts, Server, Settings};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

const NAMESPACE: &str = "argocd";
const KEY: &[u8] = b"a key that only this bench knows, long enough";
const APPLICATIONS: usize = 5000;
const LISTS: usize = 200;
const BROWSERS: usize = 500;
/// Applications that change, one after the other.
const CHANGES: usize = 100;
const FIELDS: &str =
    "items.metadata.name,items.spec.project,items.status.sync.status,items.status.health.status";

struct Everybody;

impl Gate for Everybody {
    fn decide(&self, _: &Caller, _: &Ask<'_>) -> Decision {
        Decision::allow("everybody may")
    }
}

struct NoMembers;

impl Connect for NoMembers {
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String> {
        Err(format!("no route to {}", cluster.server))
    }
}

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let control = Cluster::memory(Options::default());
    for definition in baton_api::crds() {
        control.apply("bench", &definition).await.expect("a definition");
    }
    for object in ground() {
        control.apply("bench", &object).await.expect("an object");
    }
    for index in 0..APPLICATIONS {
        control.apply("bench", &application(index)).await.expect("an Application");
    }
    let parts = Parts {
        client: Client::new(control.service(), NAMESPACE),
        connect: Arc::new(NoMembers),
        gate: Arc::new(Everybody),
        sources: None,
    };
    let server = Server::new(parts, Settings { secure: false, ..Settings::new(NAMESPACE) });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (follower, router) = (server.clone(), baton_server::rest::router(server.clone()));
    tokio::spawn(async move { follower.run().await });
    tokio::spawn(async move { match baton_server::rest::serve(listener, router).await {} });
    server.ready().await.expect("everything was read");

    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..LISTS {
        let begun = Instant::now();
        let answer = ask(address, &format!("/api/v1/applications?fields={FIELDS}"), "application/json").await;
        bytes = answer.into_body().collect().await.expect("a whole body").to_bytes().len();
        times.push(begun.elapsed());
    }
    let (half, most) = percentiles(&mut times);
    println!("list of {APPLICATIONS} Applications with fields, {bytes} bytes: p50 {half:?}, p99 {most:?}");

    let before = resident();
    let arrivals: Arc<Mutex<Vec<Duration>>> = Arc::default();
    // Written at, by number.
    let written: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let mut listeners = tokio::task::JoinSet::new();
    for _ in 0..BROWSERS {
        let path = "/api/v1/stream/applications?resourceVersion=1&name=&selector=bench%3Dchanges";
        let answer = ask(address, path, "text/event-stream").await;
        assert!(answer.status().is_success(), "{}", answer.status());
        listeners.spawn(listen(answer.into_body(), written.clone(), arrivals.clone()));
    }
    let connected = resident();
    for number in 0..CHANGES {
        let mut changed = application(number);
        changed["metadata"]["labels"] = json!({"bench": "changes"});
        changed["metadata"]["annotations"] = json!({"bench": format!("change-{number};")});
        written.lock().push(Instant::now());
        control.apply("bench", &changed).await.expect("an Application");
    }
    while let Some(ended) = listeners.join_next().await {
        ended.expect("a listener");
    }
    let mut arrivals = std::mem::take(&mut *arrivals.lock());
    let number = arrivals.len();
    let (half, most) = percentiles(&mut arrivals);
    println!(
        "{BROWSERS} browsers, {CHANGES} changes, {number} events: p50 {half:?}, p99 {most:?}; {} KB of memory a browser",
        connected.saturating_sub(before) / BROWSERS
    );
}

/// Reads a stream until the last change has come.
async fn listen(mut body: Incoming, written: Arc<Mutex<Vec<Instant>>>, arrivals: Arc<Mutex<Vec<Duration>>>) {
    let mut next = 0;
    let mut held = String::new();
    while next < CHANGES {
        let frame = body.frame().await.expect("the stream goes on").expect("a frame");
        let Ok(data) = frame.into_data() else { continue };
        held.push_str(std::str::from_utf8(&data).unwrap_or_default());
        // Changes come in order.
        while let Some(at) = held.find(&format!("change-{next};")) {
            held.drain(..at);
            let begun = written.lock()[next];
            arrivals.lock().push(begun.elapsed());
            next += 1;
        }
        let spare = held.len().saturating_sub(64);
        let cut = (spare..held.len()).find(|at| held.is_char_boundary(*at)).unwrap_or(held.len());
        held.drain(..cut);
    }
}

async fn ask(address: std::net::SocketAddr, path: &str, accept: &str) -> http::Response<Incoming> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    let request = Request::get(path)
        .header("host", address.to_string())
        .header("accept", accept)
        .header("authorization", format!("Bearer {}", token()))
        .body(Full::<Bytes>::default())
        .expect("a request");
    sender.send_request(request).await.expect("an answer")
}

fn token() -> String {
    let now = jiff::Timestamp::now().as_second();
    let [iss, sub, jti] = [ISSUER, "admin:login", "bench"].map(str::to_owned);
    let claims = Claims { iss, sub, jti, iat: now, nbf: now, exp: Some(now + 3600) };
    SigningKey::new(KEY).expect("a key").sign(&claims)
}

fn ground() -> [Value; 3] {
    let key = std::str::from_utf8(KEY).expect("a text");
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-secret", "namespace": NAMESPACE},
            "stringData": {"server.secretkey": key}}),
    ]
}

fn application(index: usize) -> Value {
    let resource = |at: usize| {
        json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop",
            "name": format!("part-{at}"), "status": "Synced", "health": {"status": "Healthy"}})
    };
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": format!("app-{index}"), "namespace": NAMESPACE},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example.com/fleet.git", "path": format!("apps/{index}"), "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        },
        "status": {
            "sync": {"status": "Synced", "revision": format!("{index:040x}")}, "health": {"status": "Healthy"},
            "resources": (0..14).map(resource).collect::<Vec<_>>(),
        },
    })
}

fn percentiles(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// Memory of this process, in KB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
