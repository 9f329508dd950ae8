//! What ordered rollouts cost at the API: requests, bytes, lists, processor time, for fleets of up to 10,000
//! Applications. `make bench` runs it; `cargo bench -p baton-controllers --bench rollouts -- --bench 3000 teardown` only
//! these parts of it.
//!
//! The API is embedded in this process and answers without a socket. In the place of the Application controller stands
//! one that syncs at once, so that what is told is the cost of keeping order. Processor time holds the API's work too.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use baton_apiserver::{Body as Answer, Cluster, ClusterService, Options};
use baton_controllers::{Controller, Settings};
use baton_generators::Generators;
use baton_scm::Hosts;
use baton_source::Repositories;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body::Body as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::runtime::{WatchStreamExt, watcher};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::Service;

const NAMESPACE: &str = "argocd";
const REPOSITORY: &str = "https://git.example.com/fleet.git";

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let parts: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!("Applications made and rolled out once, then a commit; per Application: writes, bytes written");
    println!(
        "  {:>6} {:>5} {:>9} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>9} {:>6} {:>8} {:>7}",
        "apps",
        "steps",
        "maxUpdate",
        "made s",
        "writes",
        "heads",
        "views",
        "status",
        "lists",
        "409s",
        "bytes/app",
        "s",
        "cpu s",
        "MiB"
    );
    for (apps, steps) in [(1000, 3), (1000, 10), (3000, 3), (3000, 10)] {
        if !wanted(&apps.to_string()) {
            continue;
        }
        for limit in ["100%", "10%", "1"] {
            runtime.block_on(rollout(apps, steps, limit));
        }
    }
    if wanted("large") {
        runtime.block_on(large());
    }
    if wanted("flapping") {
        runtime.block_on(flapping());
    }
    if wanted("many") {
        runtime.block_on(many());
    }
    if wanted("teardown") {
        for apps in [500, 1000, 2000] {
            runtime.block_on(teardown(apps));
        }
    }
}

/// Requests, by what they are about.
#[derive(Debug, Default, Clone)]
struct Counts {
    writes: usize,
    heads: usize,
    /// Writes of the set's status by the rollout side, and by the generation side.
    views: usize,
    statuses: usize,
    lists: usize,
    deletes: usize,
    conflicts: usize,
    bytes: u64,
}

/// A fleet under RollingSync.
struct Fleet {
    home: tempfile::TempDir,
    control: Cluster,
    counts: Arc<Mutex<Counts>>,
    stand_in: tokio::task::JoinHandle<()>,
    controller: tokio::task::JoinHandle<()>,
    branch: Arc<Mutex<String>>,
}

async fn rollout(apps: usize, steps: usize, limit: &str) {
    let begin = Instant::now();
    let fleet = Fleet::new(&[("fleet", set("fleet", apps, steps, limit))]).await;
    fleet.complete(&["fleet"], 1).await;
    let made = begin.elapsed().as_secs_f64();
    *fleet.counts.lock() = Counts::default();
    let (before, begin) = (processor_time(), Instant::now());
    fleet.commit("second").await;
    fleet.complete(&["fleet"], 2).await;
    let (took, counts) = (begin.elapsed(), fleet.counts.lock().clone());
    println!(
        "  {apps:>6} {steps:>5} {limit:>9} {made:>6.1} {:>7.2} {:>6} {:>6} {:>6} {:>6} {:>6} {:>9.0} {:>6.1} {:>8.1} {:>7}",
        counts.writes as f64 / apps as f64,
        counts.heads,
        counts.views,
        counts.statuses,
        counts.lists,
        counts.conflicts,
        counts.bytes as f64 / apps as f64,
        took.as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
        resident() / 1024,
    );
    fleet.stop().await;
}

/// The object of a set of 10,000.
async fn large() {
    let fleet = Fleet::new(&[("fleet", set("fleet", 10_000, 10, "100%"))]).await;
    fleet.complete(&["fleet"], 1).await;
    let set = fleet.set("fleet").await;
    let head = fleet.head("fleet").await;
    println!(
        "10,000 Applications: the set has {} KiB, the head {} KiB",
        set.to_string().len() / 1024,
        head.to_string().len() / 1024
    );
    fleet.stop().await;
}

/// Health that comes and goes.
async fn flapping() {
    let fleet = Fleet::new(&[("fleet", set("fleet", 1000, 5, "10%"))]).await;
    fleet.complete(&["fleet"], 1).await;
    *fleet.counts.lock() = Counts::default();
    let client = Client::new(fleet.control.service(), NAMESPACE);
    let api = applications(client);
    let (before, begin) = (processor_time(), Instant::now());
    for round in 0..50 {
        let health = if round % 2 == 0 { "Progressing" } else { "Healthy" };
        let patch = json!({"status": {"health": {"status": health}}});
        for number in 0..1000 {
            let params = PatchParams::default();
            api.patch(&format!("fleet-{number:05}"), &params, &Patch::Merge(&patch)).await.expect("a patch");
        }
        let due = begin + Duration::from_millis(100) * (round + 1);
        tokio::time::sleep_until(due.into()).await;
    }
    let counts = fleet.counts.lock().clone();
    println!(
        "1,000 Applications change their health 50 times each: {} writes to Applications, {} of the head, {} of the status \
         in {:.1} s, {:.0} changes a second; {:.1} s of processor time, flapping included",
        counts.writes,
        counts.heads,
        counts.views,
        begin.elapsed().as_secs_f64(),
        50_000.0 / begin.elapsed().as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
    );
    fleet.stop().await;
}

/// Many rollouts at once.
async fn many() {
    let names: Vec<String> = (0..100).map(|number| format!("set-{number:02}")).collect();
    let sets: Vec<(&str, Value)> = names.iter().map(|name| (&**name, set(name, 100, 3, "10%"))).collect();
    let fleet = Fleet::new(&sets).await;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fleet.complete(&names, 1).await;
    *fleet.counts.lock() = Counts::default();
    let (before, begin) = (processor_time(), Instant::now());
    fleet.commit("second").await;
    fleet.complete(&names, 2).await;
    let counts = fleet.counts.lock().clone();
    println!(
        "100 rollouts of 100 Applications at once: {:.1} s, {:.1} s of processor time, {} writes, {} lists, {} conflicts",
        begin.elapsed().as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
        counts.writes,
        counts.lists,
        counts.conflicts,
    );
    fleet.stop().await;
}

/// A set that goes, last step first.
async fn teardown(apps: usize) {
    let mut ordered = set("fleet", apps, 5, "100%");
    ordered["spec"]["strategy"]["deletionOrder"] = "Reverse".into();
    let fleet = Fleet::new(&[("fleet", ordered)]).await;
    fleet.complete(&["fleet"], 1).await;
    *fleet.counts.lock() = Counts::default();
    let (before, begin) = (processor_time(), Instant::now());
    let client = Client::new(fleet.control.service(), NAMESPACE);
    let sets: Api<baton_api::ApplicationSet> = Api::namespaced(client, NAMESPACE);
    sets.delete("fleet", &Default::default()).await.expect("a deletion");
    while sets.get_opt("fleet").await.expect("an answer").is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let counts = fleet.counts.lock().clone();
    println!(
        "{apps} Applications deleted in 5 steps, last first: {:.1} s, {:.1} s of processor time, {} deletes, {} lists",
        begin.elapsed().as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
        counts.deletes,
        counts.lists,
    );
    fleet.stop().await;
}

impl Fleet {
    async fn new(sets: &[(&str, Value)]) -> Fleet {
        let home = tempfile::tempdir().expect("a directory");
        git(home.path(), &["init", "-q", "-b", "main"]);
        let options = Options { workloads: None, nodes: 0, ..Options::default() };
        let control = Cluster::memory(options);
        for definition in baton_api::crds() {
            control.apply("bench", &definition).await.expect("a definition");
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": "default", "namespace": NAMESPACE},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
        });
        for object in [namespace, project] {
            control.apply("bench", &object).await.expect("an object");
        }
        let branch = Arc::new(Mutex::new(String::new()));
        let fleet = Fleet {
            stand_in: tokio::spawn(stand_in(control.clone(), branch.clone())),
            counts: Arc::default(),
            controller: tokio::spawn(async {}),
            home,
            control,
            branch,
        };
        fleet.write_commit("first");
        for (_, set) in sets {
            fleet.control.apply("bench", set).await.expect("a set");
        }
        let controller = tokio::spawn(control_sets(
            fleet.control.clone(),
            fleet.counts.clone(),
            fleet.home.path().to_owned(),
        ));
        Fleet { controller, ..fleet }
    }

    fn write_commit(&self, text: &str) {
        let git_dir = self.home.path();
        git(
            git_dir,
            &[
                "-c",
                "user.name=b",
                "-c",
                "user.email=b@example.com",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                text,
            ],
        );
        *self.branch.lock() = git(git_dir, &["rev-parse", "HEAD"]);
    }

    /// A commit, which the Application controller notices in one Application of each set first.
    async fn commit(&self, text: &str) {
        self.write_commit(text);
        let api = applications(Client::new(self.control.service(), NAMESPACE));
        let branch = self.branch.lock().clone();
        let patch = json!({"status": {"sync": {"revision": branch, "status": "OutOfSync"}}});
        for application in api.list(&Default::default()).await.expect("a list").items {
            let name = application.metadata.name.unwrap_or_default();
            if name.ends_with("-00000") {
                api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.expect("a patch");
            }
        }
    }

    /// Waits until the sets have completed this run.
    async fn complete(&self, sets: &[&str], run: u64) {
        for set in sets {
            loop {
                let head = self.head(set).await;
                let text = head.pointer("/data/run").and_then(Value::as_str).unwrap_or("{}");
                let state: Value = serde_json::from_str(text).unwrap_or_default();
                let done = !state["finished"].is_null() && state["seq"].as_u64() >= Some(run);
                if done && state["open"].as_u64() > Some(0) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    async fn head(&self, set: &str) -> Value {
        let kind = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        let client = Client::new(self.control.service(), NAMESPACE);
        let maps: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &kind);
        let found = maps.get_opt(&format!("{set}.baton-rollout")).await.expect("an answer");
        found.map(|found| serde_json::to_value(found).expect("JSON")).unwrap_or_default()
    }

    async fn set(&self, name: &str) -> Value {
        let sets: Api<baton_api::ApplicationSet> =
            Api::namespaced(Client::new(self.control.service(), NAMESPACE), NAMESPACE);
        serde_json::to_value(sets.get(name).await.expect("a set")).expect("JSON")
    }

    async fn stop(self) {
        for task in [self.controller, self.stand_in] {
            task.abort();
            let _ = task.await;
        }
    }
}

async fn control_sets(control: Cluster, counts: Arc<Mutex<Counts>>, home: std::path::PathBuf) {
    let service = Counted { inner: control.service(), counts };
    let hosts = Hosts::new(baton_scm::Settings::default()).expect("usable settings");
    let repositories = Repositories::new(baton_source::Settings {
        local: BTreeMap::from([(REPOSITORY.to_owned(), home.clone())]),
        cache_dir: home.join(".git/baton"),
        ..baton_source::Settings::default()
    });
    let wanted = baton_generators::Settings { argocd_namespace: NAMESPACE.to_owned(), ..Default::default() };
    let generators = Generators::new(repositories, hosts, wanted);
    let settings = Settings { progressive_syncs: true, ..Settings::new(NAMESPACE) };
    let controller =
        Controller::new(Client::new(service, NAMESPACE), settings, generators).expect("settings");
    let _ = controller.run(std::future::pending()).await;
}

/// Syncs, compares and lets go at once what it is asked to.
async fn stand_in(control: Cluster, branch: Arc<Mutex<String>>) {
    let api = applications(Client::new(control.service(), NAMESPACE));
    let mut news = std::pin::pin!(watcher(api.clone(), watcher::Config::default()).applied_objects());
    while let Some(Ok(application)) = news.next().await {
        let name = application.metadata.name.clone().unwrap_or_default();
        if application.metadata.deletion_timestamp.is_some() {
            let patch = json!({"metadata": {"finalizers": null}});
            let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            continue;
        }
        let annotations = application.metadata.annotations.clone().unwrap_or_default();
        let asked = annotations.contains_key("argocd.argoproj.io/refresh");
        let operation = application.data.get("operation").filter(|operation| operation.is_object()).cloned();
        let spec = &application.data["spec"];
        let compared = json!({"source": spec["source"], "destination": spec["destination"]});
        let known = application.data.pointer("/status/sync/comparedTo").is_some();
        let mut patch = match operation {
            Some(operation) => {
                let revision = operation["sync"]["revision"].clone();
                json!({"operation": null, "status": {
                    "sync": {"status": "Synced", "revision": revision, "comparedTo": compared},
                    "health": {"status": "Healthy"},
                    "reconciledAt": "2026-01-01T00:00:02Z",
                    "operationState": {
                        "phase": "Succeeded", "message": "successfully synced", "operation": operation,
                        "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z",
                        "syncResult": {"revision": revision, "source": spec["source"]},
                    },
                }})
            }
            None if asked || !known => {
                let branch = branch.lock().clone();
                let deployed = application.data.pointer("/status/operationState/syncResult/revision");
                let same = deployed.and_then(Value::as_str) == Some(&*branch);
                let status = if same { "Synced" } else { "OutOfSync" };
                json!({"status": {
                    "sync": {"status": status, "revision": branch, "comparedTo": compared},
                    "health": {"status": if deployed.is_some() { "Healthy" } else { "Missing" }},
                    "reconciledAt": "2026-01-01T00:00:00Z",
                }})
            }
            None => continue,
        };
        patch["metadata"] = json!({"annotations": {
            "argocd.argoproj.io/refresh": null, "argocd.argoproj.io/refresh-timestamp": null,
        }});
        let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    }
}

fn applications(client: Client) -> Api<DynamicObject> {
    let kind = ApiResource::erase::<baton_api::Application>(&());
    Api::namespaced_with(client, NAMESPACE, &kind)
}

fn set(name: &str, apps: usize, steps: usize, limit: &str) -> Value {
    let limit = limit.parse::<i64>().map_or_else(|_| json!(limit), |count| json!(count));
    let elements: Vec<Value> = (0..apps)
        .map(|number| json!({"app": format!("{name}-{number:05}"), "step": format!("s{}", number * steps / apps)}))
        .collect();
    let steps: Vec<Value> = (0..steps)
        .map(|step| {
            json!({"maxUpdate": limit, "matchExpressions": [
                {"key": "step", "operator": "In", "values": [format!("s{step}")]},
            ]})
        })
        .collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "goTemplate": true,
            "generators": [{"list": {"elements": elements}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": steps}},
            "template": {
                "metadata": {"name": "{{ .app }}", "labels": {"step": "{{ .step }}"}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": REPOSITORY, "targetRevision": "main", "path": "app"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "{{ .app }}"},
                },
            },
        },
    })
}

/// Counts what the controller asks of the API.
#[derive(Clone)]
struct Counted {
    inner: ClusterService,
    counts: Arc<Mutex<Counts>>,
}

impl Service<Request<Body>> for Counted {
    type Response = Response<Answer>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        <ClusterService as Service<Request<Body>>>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let query = request.uri().query().unwrap_or_default().to_owned();
        {
            let mut counts = self.counts.lock();
            let bytes = request.body().size_hint().exact().unwrap_or(0);
            let about = |plural: &str| path.contains(&format!("/{plural}"));
            match method {
                Method::GET if path.ends_with("/applications") && !query.contains("watch=") => {
                    counts.lists += 1
                }
                Method::DELETE => counts.deletes += 1,
                Method::GET => {}
                _ if about("applications/") => {
                    (counts.writes, counts.bytes) = (counts.writes + 1, counts.bytes + bytes)
                }
                _ if about("configmaps") => {
                    (counts.heads, counts.bytes) = (counts.heads + 1, counts.bytes + bytes)
                }
                _ if path.ends_with("/status") => {
                    let ours = query.contains("fieldManager=baton-rollout");
                    counts.views += usize::from(ours);
                    counts.statuses += usize::from(!ours);
                    counts.bytes += bytes;
                }
                _ => {}
            }
        }
        let (counts, answer) = (self.counts.clone(), self.inner.call(request));
        Box::pin(async move {
            let answer = answer.await?;
            if answer.status() == http::StatusCode::CONFLICT {
                counts.lock().conflicts += 1;
            }
            Ok(answer)
        })
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().expect("git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Processor time of this process so far.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u64 =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Resident memory of this process in KiB.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
