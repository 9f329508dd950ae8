//! What fleets cost: how long they take to roll out, and what the controllers need for it. `make sizing` runs it.
//!
//! The API and both controllers are processes of the real binary, as on a cluster. One commit changes every Application,
//! which has a ConfigMap and a Deployment of its own; each set has three steps. Counts come from
//! `BATON_SIZING_APPLICATIONS` (100,1000,10000 unless set). Linux only: it reads `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;

const NAMESPACE: &str = "argocd";
/// What a set can hold and still be an object that etcd takes.
const MOST_OF_A_SET: usize = 1000;
/// How long a fleet at rest is watched.
const REST: Duration = Duration::from_secs(60);
/// How many ticks of a process make a second, on every Linux there is.
const TICKS: f64 = 100.0;
/// How long anything may take at which no Application comes in between.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a rollout may go without another Application being done.
const STANDSTILL: Duration = Duration::from_secs(600);
/// How often a rollout is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const RINGS: [&str; 3] = ["canary", "early", "late"];

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let counts = std::env::var("BATON_SIZING_APPLICATIONS").ok().filter(|counts| !counts.is_empty());
    let counts = counts.unwrap_or_else(|| "100,1000,10000".to_owned());
    let counts: Vec<usize> = (counts.split(','))
        .map(|count| count.trim().parse().expect("BATON_SIZING_APPLICATIONS is numbers with commas between"))
        .collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!(
        "| Applications | sets | what | time | ApplicationSet controller: CPU | requests | memory | Application controller: CPU | requests | memory |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    shown();
    for count in counts {
        runtime.block_on(measure(count));
    }
}

/// Lets a row be read as soon as it is measured, also through a pipe.
fn shown() {
    std::io::stdout().flush().expect("somebody reads the table");
}

/// A fleet from nothing, at rest, and through a commit.
async fn measure(count: usize) {
    let fleet = Fleet::start(count).await;
    let first = fleet.commit("1");
    let mut before = fleet.usage().await;
    let mut row = async |what: &str, took: Duration| {
        let now = fleet.usage().await;
        let [sets, applications] = [0, 1].map(|at| now[at].since(&before[at]));
        println!(
            "| {count} | {} | {what} | {:.0} s | {sets} | {applications} |",
            fleet.sets,
            took.as_secs_f64()
        );
        shown();
        before = now;
    };
    let begun = Instant::now();
    fleet.create().await;
    fleet.rolled_out(&first).await;
    row("rolled out the first time", begun.elapsed()).await;
    tokio::time::sleep(REST).await;
    row("at rest", REST).await;
    let second = fleet.commit("2");
    let begun = Instant::now();
    fleet.look().await;
    fleet.rolled_out(&second).await;
    row("a commit that changes all", begun.elapsed()).await;
}

struct Fleet {
    home: TempDir,
    client: Client,
    count: usize,
    sets: usize,
    /// Of ApplicationSets, and of Applications.
    controllers: [Process; 2],
    _api: Process,
}

struct Process {
    child: Child,
    metrics: SocketAddr,
    log: PathBuf,
}

/// What a process has used so far.
#[derive(Debug, Clone, Copy)]
struct Usage {
    /// In seconds.
    cpu: f64,
    requests: f64,
    /// The most it has ever held, in MiB.
    memory: f64,
}

/// What it used meanwhile.
struct Used {
    cpu: f64,
    requests: f64,
    memory: f64,
}

impl std::fmt::Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} s | {:.0} | {:.0} MiB", self.cpu, self.requests, self.memory)
    }
}

impl Usage {
    fn since(&self, before: &Usage) -> Used {
        Used { cpu: self.cpu - before.cpu, requests: self.requests - before.requests, memory: self.memory }
    }
}

// === impl Process ===

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(arguments: &[&str], log: &Path) -> Process {
        let metrics = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let metrics = metrics.expect("a free port");
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.args(arguments);
        if arguments[0] == "controller" {
            command.args(["--metrics-listen", &metrics.to_string()]);
        }
        let file = fs::File::create(log).expect("a file");
        let child = command.stdout(Stdio::null()).stderr(file).spawn().expect("the binary starts");
        Process { child, metrics, log: log.to_owned() }
    }

    /// The last lines it has logged.
    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// It still runs.
    fn lives(&mut self) {
        let ended = self.child.try_wait().expect("a child can be waited for");
        assert!(ended.is_none(), "it has ended with {ended:?}:\n{}", self.last_words());
    }

    async fn usage(&self) -> Usage {
        let read =
            |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("Linux");
        let stat = read("stat");
        // What follows the name, which may hold anything: the 14th to 17th field of all are the time used, by programs it ran too.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: f64 = fields[11..15].iter().map(|field| field.parse::<f64>().expect("a number")).sum();
        let status = read("status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        let peak: f64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        let requests = sum(&self.metrics().await, "rest_client_requests_total{");
        Usage { cpu: ticks / TICKS, requests, memory: peak / 1024.0 }
    }

    async fn metrics(&self) -> String {
        let url = format!("http://{}/metrics", self.metrics);
        let begun = Instant::now();
        loop {
            let error = match reqwest::get(&url).await {
                Ok(answer) => match answer.text().await {
                    Ok(text) => return text,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            assert!(begun.elapsed() < PATIENCE, "{url}: {error}\n{}", self.last_words());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The sum over all lines of a family.
fn sum(metrics: &str, name: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.starts_with(name));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

// === impl Fleet ===

impl Fleet {
    async fn start(count: usize) -> Fleet {
        let home = tempfile::tempdir().expect("a directory");
        let path = |name: &str| home.path().join(name);
        let directory = path("api").display().to_string();
        let listen = "127.0.0.1:0";
        let arguments = ["apiserver", "--ephemeral", "--data-dir", &directory, "--listen", listen];
        let mut api = Process::start(&arguments, &path("api.log"));
        let kubeconfig = path("api/kubeconfig");
        let begun = Instant::now();
        while !kubeconfig.exists() {
            api.lives();
            assert!(begun.elapsed() < PATIENCE, "the API writes no kubeconfig:\n{}", api.last_words());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let client = client(&kubeconfig).await;
        define(&client).await;
        let kubeconfig = kubeconfig.display().to_string();
        let controllers = ["applicationset", "application"].map(|name| {
            let arguments = [
                "controller",
                "--kubeconfig",
                &kubeconfig,
                "--controllers",
                name,
                "--allow-local-repos",
                "--enable-progressive-syncs",
            ];
            // Only the controller of sets has steps.
            let arguments = if name == "application" { &arguments[..6] } else { &arguments[..] };
            Process::start(arguments, &path(&format!("{name}.log")))
        });
        let fleet =
            Fleet { client, count, sets: count.div_ceil(MOST_OF_A_SET), controllers, _api: api, home };
        git(&fleet.repository(), &["init", "-q", "-b", "main"]);
        fleet
    }

    fn repository(&self) -> PathBuf {
        let path = self.home.path().join("git");
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    async fn usage(&self) -> [Usage; 2] {
        [self.controllers[0].usage().await, self.controllers[1].usage().await]
    }

    /// Changes every Application, and tells the commit.
    fn commit(&self, version: &str) -> String {
        let repository = self.repository();
        for number in 0..self.count {
            let directory = repository.join(format!("apps/{number:05}"));
            fs::create_dir_all(&directory).expect("a directory");
            fs::write(directory.join("all.yaml"), manifests(number, version)).expect("a file");
        }
        git(&repository, &["add", "-A"]);
        let author = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "gc.auto=0"];
        git(&repository, &[&author[..], &["commit", "-qm", version]].concat());
        git(&repository, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    async fn create(&self) {
        for number in 0..self.sets {
            apply(&self.client, &set(number, self.members(number), &self.repository())).await;
        }
    }

    /// Has every set look for the commit at once, as a webhook does.
    async fn look(&self) {
        let sets = self.api();
        let asked =
            json!({"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}});
        for number in 0..self.sets {
            sets.patch(&set_name(number), &PatchParams::default(), &Patch::Merge(&asked))
                .await
                .expect("a set");
        }
    }

    fn api(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "ApplicationSet"));
        Api::namespaced_with(self.client.clone(), NAMESPACE, &kind)
    }

    /// Waits until each set by itself has come to the end of a run that brings this commit to all of its members.
    async fn rolled_out(&self, commit: &str) {
        let sets = self.api();
        let mut left: BTreeMap<usize, Standing> =
            (0..self.sets).map(|number| (number, Standing::default())).collect();
        let (mut told, mut moved) = (Instant::now(), Instant::now());
        while !left.is_empty() {
            tokio::time::sleep(LOOK_EVERY).await;
            for number in left.keys().copied().collect::<Vec<_>>() {
                let set = sets.get(&set_name(number)).await.expect("a set");
                let now = Standing::of(&set.data["status"]["rollout"], commit);
                if left[&number] != now {
                    moved = Instant::now();
                }
                match now.is_complete && now.done == self.members(number).len() as i64 {
                    true => drop(left.remove(&number)),
                    false => drop(left.insert(number, now)),
                }
            }
            let seen = || {
                let sets = left.iter().map(|(number, standing)| format!("{}: {standing}", set_name(*number)));
                sets.collect::<Vec<_>>().join("\n")
            };
            let logs = || self.controllers.each_ref().map(Process::last_words).join("\n");
            let still = moved.elapsed() > STANDSTILL;
            assert!(!still, "nothing has moved for {STANDSTILL:?}; last seen:\n{}\n{}", seen(), logs());
            if told.elapsed() > Duration::from_secs(30) {
                told = Instant::now();
                eprintln!("{} Applications to {commit}:\n{}", self.count, seen());
            }
        }
    }

    fn members(&self, number: usize) -> std::ops::Range<usize> {
        let first = number * MOST_OF_A_SET;
        first..self.count.min(first + MOST_OF_A_SET)
    }
}

/// How far the rollout of a set is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Standing {
    /// Whether a run to the commit has ended well.
    is_complete: bool,
    run: i64,
    state: String,
    step: i64,
    done: i64,
    failed: i64,
    waits_for: String,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Standing { run, state, step, done, failed, waits_for, .. } = self;
        write!(f, "run {run} {state}, step {step}, {done} done, {failed} failed")?;
        if waits_for.is_empty() { Ok(()) } else { write!(f, ", waits: {waits_for}") }
    }
}

impl Standing {
    fn of(rollout: &Value, commit: &str) -> Standing {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let steps = || rollout["steps"].as_array().into_iter().flatten();
        let sum = |field: &str| steps().filter_map(|step| step[field].as_i64()).sum();
        let revisions = rollout["revisions"].as_array();
        let is_to = revisions.is_some_and(|all| all.iter().any(|one| one["revision"] == commit));
        let waits_for = format!(
            "{} {}",
            text(&rollout["blockers"][0]["reason"]),
            text(&rollout["blockers"][0]["object"])
        );
        Standing {
            is_complete: is_to && rollout["state"] == "Complete",
            run: rollout["run"].as_i64().unwrap_or_default(),
            state: text(&rollout["state"]),
            step: rollout["step"].as_i64().unwrap_or_default(),
            done: sum("done"),
            failed: sum("failed"),
            waits_for: waits_for.trim().to_owned(),
        }
    }
}

fn set_name(number: usize) -> String {
    format!("fleet-{number:02}")
}

fn set(number: usize, members: std::ops::Range<usize>, repository: &Path) -> Value {
    // A tenth goes first, three tenths next.
    let ring = |number: usize| match number % 10 {
        0 => RINGS[0],
        1..=3 => RINGS[1],
        _ => RINGS[2],
    };
    let elements: Vec<Value> =
        members.map(|number| json!({"id": format!("{number:05}"), "ring": ring(number)})).collect();
    let step = |ring| json!({"matchExpressions": [{"key": "ring", "operator": "In", "values": [ring]}]});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": set_name(number), "namespace": NAMESPACE},
        "spec": {
            "goTemplate": true,
            "generators": [{"list": {"elements": elements}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": RINGS.map(step)}},
            "template": {
                "metadata": {"name": "app-{{.id}}", "labels": {"ring": "{{.ring}}"}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": repository, "targetRevision": "main", "path": "apps/{{.id}}"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "work"},
                },
            },
        },
    })
}

fn manifests(number: usize, version: &str) -> String {
    let name = format!("app-{number:05}");
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"version": version},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": format!("example.com/app:{version}")}]},
            },
        },
    });
    format!("{map}\n---\n{deployment}\n")
}

async fn client(kubeconfig: &Path) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let text = fs::read_to_string(kubeconfig).expect("a kubeconfig");
    let kubeconfig = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

async fn define(client: &Client) {
    for definition in baton_api::crds() {
        apply(client, &definition).await;
    }
    for name in [NAMESPACE, "work"] {
        apply(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    }
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
    });
    apply(client, &project).await;
}

async fn apply(client: &Client, object: &Value) {
    let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    let types = object.types.clone().expect("a kind");
    let (group, version) = types.api_version.rsplit_once('/').unwrap_or(("", &types.api_version));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let name = object.metadata.name.clone().expect("a name");
    let begun = Instant::now();
    // A definition takes a moment until its kind is served.
    while let Err(error) =
        api.patch(&name, &PatchParams::apply("sizing").force(), &Patch::Apply(&object)).await
    {
        assert!(begun.elapsed() < Duration::from_secs(30), "{name}: {error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
