//! The processes: an API, a proxy for each controller, and the controllers, which die and come again.

use std::path::PathBuf;
use std::time::Duration;

use baton_rules::{Rule, WITHOUT};
use baton_sim::checker::Entry;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use rand::{Rng as _, rngs::StdRng};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::fleet::{self, Fleet};
use crate::process::{Running, baton, client, eventually, run};
use crate::recorder::{CONTROL_NAMESPACE, MEMBER_NAMESPACE, Recorded, Recorder};
use crate::stand_in;

/// A history that is silent for so long while something is awaited has come to a standstill.
const QUIET: SignedDuration = SignedDuration::from_mins(10);

/// A machine with everything on it.
pub(crate) struct Place {
    home: TempDir,
    _api: Running,
    client: Client,
    recorder: Recorder,
    controllers: Vec<Controller>,
    kills: usize,
    freezes: usize,
    without: &'static [Rule],
}

/// Whose the controller of Applications is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applications {
    Ours,
    /// One that behaves as Argo CD's does.
    StandIn,
}

/// How many controllers of sets there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaders {
    One,
    /// Two with a Lease, which also freeze and thaw.
    Two,
}

/// What a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sets,
    /// One of several of which one leads at a time.
    Candidate,
    Applications,
    StandIn(u64),
}

/// A controller and the proxy it stands behind.
struct Controller {
    kind: Kind,
    running: Running,
    proxy: Running,
    kubeconfig: String,
    /// When it dies next, or freezes, or thaws.
    dies: Instant,
    /// It was stopped, and may wake up at any moment.
    frozen: bool,
}

impl Place {
    pub(crate) async fn start(
        seed: u64,
        delay: &str,
        applications: Applications,
        leaders: Leaders,
        without: &'static [Rule],
    ) -> Place {
        let home = tempfile::tempdir().expect("a directory");
        let path = |name: &str| home.path().join(name).to_str().expect("UTF-8").to_owned();
        let mut api = Running::start([
            "apiserver",
            "--ephemeral",
            "--data-dir",
            &path("api"),
            "--listen",
            "127.0.0.1:0",
            "--ready-delay",
            "200ms",
        ]);
        api.line_with("kubeconfig");
        let client = client(&home.path().join("api/kubeconfig")).await;
        define(&client).await;
        let recorder = Recorder::start(&client).await;
        let second = match applications {
            Applications::Ours => Kind::Applications,
            Applications::StandIn => Kind::StandIn(seed),
        };
        if applications == Applications::StandIn {
            println!("{:?}", stand_in::temper(seed));
            project(&client).await;
        }
        let sets = match leaders {
            Leaders::One => vec![Kind::Sets],
            Leaders::Two => vec![Kind::Candidate; 2],
        };
        let controllers = (sets.into_iter().chain([second]).zip(0..))
            .map(|(kind, number)| {
                let seed = seed.wrapping_add(number);
                let kubeconfig = path(&format!("{seed}.kubeconfig"));
                let mut proxy = Running::start([
                    "dev",
                    "lag-proxy",
                    "--kubeconfig",
                    &path("api/kubeconfig"),
                    "--write-kubeconfig",
                    &kubeconfig,
                    "--delay",
                    delay,
                    "--cut",
                    "15s",
                    "--stale-lists",
                    "30",
                    "--seed",
                    &seed.to_string(),
                ]);
                proxy.line_with("kubectl");
                let running = controller(kind, &kubeconfig, without);
                let dies = Instant::now() + Duration::from_secs(5);
                Controller { kind, running, proxy, kubeconfig, dies, frozen: false }
            })
            .collect();
        Place { _api: api, client, recorder, controllers, kills: 0, freezes: 0, without, home }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn kills(&self) -> usize {
        self.kills
    }

    pub(crate) fn freezes(&self) -> usize {
        self.freezes
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Makes the set.
    pub(crate) async fn create(&self, fleet: &Fleet) {
        let set = serde_json::from_value(fleet.set()).expect("a set");
        self.api("ApplicationSet").create(&PostParams::default(), &set).await.expect("it is made");
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        api(&self.client, "argoproj.io", "v1alpha1", kind)
    }

    /// Writes the set as it is now, and has git looked at, as a webhook would.
    pub(crate) async fn tell(&self, fleet: &Fleet) {
        let annotations = json!({"argocd.argoproj.io/application-set-refresh": "true"});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": fleet.set()["spec"]});
        let sets = self.api("ApplicationSet");
        sets.patch(fleet::SET, &PatchParams::default(), &Patch::Merge(&patch)).await.expect("the set");
    }

    /// Until every Application is where the last change leads. Controllers die meanwhile.
    pub(crate) async fn until_done(&mut self, random: &mut StdRng, fleet: &Fleet) {
        let all = fleet.applications().len();
        let is_done =
            |recorded: &Recorded| recorded.applications().filter(|one| fleet.is_done(one)).count() == all;
        self.kill_until(random, is_done).await;
    }

    /// Until one is on its way there, or all have arrived.
    pub(crate) async fn until_begun(&mut self, random: &mut StdRng, fleet: &Fleet) {
        let has_begun = |one: &Value| fleet.has_begun(one) || fleet.is_done(one);
        self.kill_until(random, |recorded| recorded.applications().any(has_begun)).await;
    }

    /// Deletes the set, and waits until its last Application is gone. Controllers die meanwhile.
    pub(crate) async fn delete(&mut self, random: &mut StdRng) {
        self.api("ApplicationSet").delete(fleet::SET, &DeleteParams::default()).await.expect("it is there");
        self.kill_until(random, Recorded::are_gone).await;
    }

    /// For so long, whatever becomes of it. Controllers die meanwhile.
    pub(crate) async fn meanwhile(&mut self, random: &mut StdRng, time: Duration) {
        let _ = tokio::time::timeout(time, self.kill_until(random, |_| false)).await;
    }

    /// Kills controllers at their times until the history says that it is so.
    async fn kill_until(&mut self, random: &mut StdRng, is_so: impl Fn(&Recorded) -> bool) {
        loop {
            // Somebody is always awake, so that somebody can lead.
            let all_awake = self.controllers.iter().all(|controller| !controller.frozen);
            let never = self.freezes == 0;
            let next = self.controllers.iter_mut().min_by_key(|controller| controller.dies);
            let next = next.expect("there are two");
            tokio::select! {
                () = self.recorder.until(|recorded| is_so(recorded).then_some(())) => return,
                () = tokio::time::sleep_until(next.dies) => {
                    next.dies = Instant::now() + crate::pause(random);
                    if next.frozen {
                        // It goes on in the middle of what it was about to do, and finds out later that it no longer leads.
                        next.running.signal("CONT");
                        next.frozen = false;
                    } else if next.kind == Kind::Candidate
                        && next.running.runs()
                        && all_awake
                        && (never || random.random_bool(0.6))
                    {
                        next.running.signal("STOP");
                        next.frozen = true;
                        self.freezes += 1;
                    } else {
                        next.running.kill();
                        next.running = controller(next.kind, &next.kubeconfig, self.without);
                        self.kills += 1;
                    }
                }
            }
            let quiet = Timestamp::now().duration_since(self.recorder.last());
            if quiet > QUIET {
                let now: Vec<String> =
                    self.recorder.now(|recorded| recorded.applications().map(standing).collect());
                panic!("nothing was written for {quiet:#}, and it is not done:\n{}", now.join("\n"));
            }
        }
    }

    /// Ends everything, and gives the history and what the proxies say they did.
    pub(crate) async fn end(self) -> (Vec<Entry>, Vec<String>) {
        let mut told = Vec::new();
        for Controller { kind, mut running, proxy, .. } in self.controllers {
            running.kill();
            let outcome = proxy.terminate();
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
            told.push(format!("before {kind:?}: {}", outcome.stdout.lines().last().unwrap_or_default()));
        }
        (self.recorder.end().await, told)
    }
}

/// An Application in one line.
fn standing(application: &Value) -> String {
    let (name, status) = (&application["metadata"]["name"], &application["status"]);
    let (sync, health) = (&status["sync"], &status["health"]["status"]);
    let (revision, phase) = (&sync["revision"], &status["operationState"]["phase"]);
    format!(
        "{name}: {} at {revision}, {health}, operation {} {phase}",
        sync["status"], application["operation"]
    )
}

fn controller(kind: Kind, kubeconfig: &str, without: &[Rule]) -> Running {
    let name = match kind {
        Kind::Sets | Kind::Candidate => "applicationset",
        Kind::Applications => "application",
        Kind::StandIn(seed) => return Running::of(stand_in::command(kubeconfig, seed)),
    };
    let mut command = baton();
    command
        .args(["controller", "--controllers", name, "--allow-local-repos", "--enable-progressive-syncs"])
        .args(["--kubeconfig", kubeconfig])
        // Each Application looks at git on its own, which is what the order has to hold against.
        .env("ARGOCD_RECONCILIATION_TIMEOUT", "5s")
        .env("ARGOCD_APPLICATIONSET_CONTROLLER_REQUEUE_AFTER", "5s");
    if kind == Kind::Candidate {
        command.args(["--leader-elect", "--lease-duration", "3s", "--renew-deadline", "2s"]);
        command.args(["--retry-period", "500ms"]);
    }
    if !without.is_empty() {
        let names: Vec<String> = without.iter().map(|rule| format!("{rule:?}")).collect();
        command.env(WITHOUT, names.join(","));
    }
    Running::of(command)
}

/// The project, which our own controller of Applications would make.
async fn project(client: &Client) {
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": CONTROL_NAMESPACE},
        "spec": {
            "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    });
    let project = serde_json::from_value(project).expect("a project");
    let projects = api(client, "argoproj.io", "v1alpha1", "AppProject");
    projects.create(&PostParams::default(), &project).await.expect("the project");
}

/// The kinds and namespaces.
async fn define(client: &Client) {
    let definitions = api(client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    for definition in baton_grammar::yaml::documents(&run(["crds"]).stdout).expect("YAML") {
        let definition = serde_json::from_value(definition).expect("a definition");
        definitions.create(&PostParams::default(), &definition).await.expect("a definition");
    }
    let namespaces = api(client, "", "v1", "Namespace");
    for name in [CONTROL_NAMESPACE, MEMBER_NAMESPACE] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let namespace = serde_json::from_value(namespace).expect("a namespace");
        namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace");
    }
    for kind in ["ApplicationSet", "Application", "AppProject"] {
        let kind = api(client, "argoproj.io", "v1alpha1", kind);
        eventually("the kind is served", async || kind.list(&Default::default()).await.ok()).await;
    }
}

fn api(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match kind {
        "Namespace" | "CustomResourceDefinition" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), CONTROL_NAMESPACE, &resource),
    }
}
