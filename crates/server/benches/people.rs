//! What people cost the server: a list of 5,000 Applications, 500 browsers that follow Applications, and 500 that look at the
//! board of a set of 1,000 while it is rolled out. `make bench` runs it.
//!
//! Clients, server and a Kubernetes API in memory share this process and this machine, so the numbers count all of them. Latency is
//! from before a write until a browser has an event that shows it; boards are put together once a second, which is a part of it.

use std::net::SocketAddr;
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
/// Applications of the set that is rolled out, in steps of a hundred.
const MEMBERS: usize = 1000;
const STEP: usize = 100;
/// Writes of a rollout: in each some Applications go on, and the set's status with them.
const WRITES: usize = 200;
const AT_ONCE: usize = MEMBERS / WRITES;
/// Between two writes.
const PAUSE: Duration = Duration::from_millis(150);
/// Writes after which the memory is looked at.
const LOOK: usize = 40;
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

    follow(&control, address).await;
    look_on(&control, address).await;
}

/// Browsers that follow Applications.
async fn follow(control: &Cluster, address: SocketAddr) {
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

/// Browsers that have a board open while its set is rolled out.
async fn look_on(control: &Cluster, address: SocketAddr) {
    let stored = control.apply("bench", &set()).await.expect("a set");
    let uid = stored["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let client = Client::new(control.service(), NAMESPACE);
    tell(&client, 0, 0).await;
    for index in 0..MEMBERS {
        control.apply("bench", &member(index, &uid, "Healthy")).await.expect("an Application");
    }
    let before = resident();
    let arrivals: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let written: Arc<Mutex<Vec<Instant>>> = Arc::new(Mutex::new(vec![Instant::now()]));
    let mut listeners = tokio::task::JoinSet::new();
    for _ in 0..BROWSERS {
        let answer = ask(address, "/api/v1/stream/rollouts", "text/event-stream").await;
        assert!(answer.status().is_success(), "{}", answer.status());
        listeners.spawn(watch(answer.into_body(), written.clone(), arrivals.clone()));
    }
    let mut memory = vec![resident()];
    for number in 1..=WRITES {
        tokio::time::sleep(PAUSE).await;
        let done = number * AT_ONCE;
        written.lock().push(Instant::now());
        for index in done - AT_ONCE..done {
            control.apply("bench", &member(index, &uid, "Progressing")).await.expect("an Application");
        }
        tell(&client, number, done).await;
        if number % LOOK == 0 {
            memory.push(resident());
        }
    }
    while let Some(ended) = listeners.join_next().await {
        ended.expect("a listener");
    }
    let mut arrivals = std::mem::take(&mut *arrivals.lock());
    let number = arrivals.len();
    let (half, most) = percentiles(&mut arrivals);
    println!(
        "{BROWSERS} browsers at a board of {MEMBERS} Applications, {WRITES} writes in {:?}: {number} arrivals, p50 {half:?}, p99 {most:?}",
        PAUSE * u32::try_from(WRITES).unwrap_or(u32::MAX)
    );
    let memory: Vec<String> =
        memory.iter().map(|now| (now.saturating_sub(before) / 1024).to_string()).collect();
    let after = resident().saturating_sub(before) / 1024;
    println!(
        "  memory beyond {} MB before they came, every {LOOK} writes: {} MB; once they have gone: {after} MB",
        before / 1024,
        memory.join(", ")
    );
}

/// Reads a stream of boards until the last write shows. Boards leave out what was in between: what shows a write shows those
/// before it.
async fn watch(mut body: Incoming, written: Arc<Mutex<Vec<Instant>>>, arrivals: Arc<Mutex<Vec<Duration>>>) {
    let mut seen = 0;
    let mut held: Vec<u8> = Vec::new();
    while seen < WRITES {
        let frame = body.frame().await.expect("the stream goes on").expect("a frame");
        let Ok(data) = frame.into_data() else { continue };
        held.extend_from_slice(&data);
        let Some(end) = held.iter().rposition(|byte| *byte == b'\n') else { continue };
        let lines: Vec<u8> = held.drain(..=end).collect();
        let text = String::from_utf8_lossy(&lines);
        let now = Instant::now();
        for told in text.split("write-").skip(1) {
            let number = told.split(';').next().and_then(|number| number.parse().ok()).unwrap_or_default();
            if number > seen {
                let written = written.lock();
                arrivals
                    .lock()
                    .extend(written[seen + 1..=number].iter().map(|begun| now.duration_since(*begun)));
                seen = number;
            }
        }
    }
}

/// What the controller writes of a rollout in which so many are done.
async fn tell(client: &Client, number: usize, done: usize) {
    let entry = |index: usize| {
        let (status, message) = match index {
            index if index + AT_ONCE <= done => ("Healthy", ""),
            index if index < done => ("Progressing", "Progressing: it is not healthy yet"),
            _ => ("Waiting", "WaitingForStep: it is OutOfSync"),
        };
        json!({"application": name(index), "step": (index / STEP + 1).to_string(), "status": status, "message": message,
            "targetRevisions": [format!("{:040x}", 7)], "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let step = |at: usize| {
        let done = done.saturating_sub(at * STEP).min(STEP);
        let state = match done {
            STEP => "Complete",
            0 => "Waiting",
            _ => "Open",
        };
        json!({"step": at + 1, "state": state, "total": STEP, "done": done})
    };
    let status = json!({"status": {
        "rollout": {"run": 2, "state": "Progressing", "message": format!("write-{number};"), "step": done / STEP + 1,
            "steps": (0..MEMBERS / STEP).map(step).collect::<Vec<_>>()},
        "applicationStatus": (0..MEMBERS).map(entry).collect::<Vec<_>>(),
    }});
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applicationsets/edge/status");
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    let request = request.body(status.to_string().into_bytes()).expect("a request");
    client.request::<Value>(request).await.expect("a status");
}

fn name(index: usize) -> String {
    format!("edge-{index:04}")
}

fn set() -> Value {
    let step = |at: usize| json!({"matchExpressions": [{"key": "step", "operator": "In", "values": [at.to_string()]}]});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "edge", "namespace": NAMESPACE},
        "spec": {
            "generators": [{"list": {"elements": []}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": (0..MEMBERS / STEP).map(step).collect::<Vec<_>>()}},
            "template": {"metadata": {"name": "edge"}, "spec": application(0)["spec"]},
        },
    })
}

/// An Application of the set.
fn member(index: usize, uid: &str, health: &str) -> Value {
    let mut member = application(index);
    member["metadata"]["name"] = name(index).into();
    member["metadata"]["ownerReferences"] = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "name": "edge", "uid": uid, "controller": true}]);
    member["status"]["health"] = json!({"status": health});
    member
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

async fn ask(address: SocketAddr, path: &str, accept: &str) -> http::Response<Incoming> {
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
