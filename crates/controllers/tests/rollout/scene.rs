//! A control plane with both controllers, a member cluster, and a git repository.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use baton_apiserver::store::Change;
use baton_apiserver::{Cluster, Options, WorkloadSettings};
use baton_clusters::{ClusterAccess, Connect};
use baton_controllers::{ApplicationController, ApplicationSettings, Clock, Controller, Settings};
use baton_generators::Generators;
use baton_manifests::Manifests;
use baton_scm::Hosts;
use baton_source::Repositories;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::faults::Wire;

pub(crate) const NAMESPACE: &str = "argocd";
pub(crate) const REPOSITORY: &str = "https://git.example.com/apps.git";
/// Another repository, for Applications that come from two.
pub(crate) const SECOND: &str = "https://git.example.com/more.git";
const MEMBER: &str = "https://east.example.com";
const EPOCH: &str = "2026-01-01T00:00:00Z";
/// Virtual time after which a test's hope is given up.
const PATIENCE: Duration = Duration::from_secs(600);

/// Everything a test needs.
pub(crate) struct Scene {
    pub(crate) control: Cluster,
    pub(crate) member: Cluster,
    /// What the ApplicationSet controller asks of the API.
    pub(crate) wire: Wire,
    repository: TempDir,
    second: TempDir,
    clock: Clock,
    running: Vec<JoinHandle<()>>,
}

struct InProcess(Cluster);

impl Connect for InProcess {
    fn connect(&self, _: &ClusterAccess) -> Result<Client, String> {
        Ok(Client::new(self.0.service(), "default"))
    }
}

/// One version of an Application, and what became of it.
pub(crate) struct Version {
    pub(crate) revision: u64,
    pub(crate) name: String,
    /// None once it is gone.
    pub(crate) object: Option<Value>,
}

impl Scene {
    pub(crate) async fn new() -> Scene {
        let repository = tempfile::tempdir().expect("a directory");
        let second = tempfile::tempdir().expect("a directory");
        for directory in [&repository, &second] {
            git(directory.path(), &["init", "-q", "-b", "main"]);
        }
        let control = cluster(1).await;
        let member = cluster(2).await;
        for definition in definitions() {
            control.apply("test", &definition).await.expect("a definition");
        }
        for object in [project(), cluster_secret()] {
            control.apply("test", &object).await.expect("an object");
        }
        let clock = Clock::starting_at(EPOCH.parse().expect("a date"));
        Scene::start(control, member, [repository, second], clock)
    }

    fn start(control: Cluster, member: Cluster, [repository, second]: [TempDir; 2], clock: Clock) -> Scene {
        let wire = Wire::new(control.clone());
        let repositories = || {
            Repositories::new(baton_source::Settings {
                local: BTreeMap::from([
                    (REPOSITORY.to_owned(), repository.path().to_owned()),
                    (SECOND.to_owned(), second.path().to_owned()),
                ]),
                revision_cache: Duration::ZERO,
                cache_dir: repository.path().join(".git").join("baton"),
                ..baton_source::Settings::default()
            })
        };
        let settings = Settings { progressive_syncs: true, clock: clock.clone(), ..Settings::new(NAMESPACE) };
        let hosts = Hosts::new(baton_scm::Settings::default()).expect("usable settings");
        let wanted =
            baton_generators::Settings { argocd_namespace: NAMESPACE.to_owned(), ..Default::default() };
        let generators = Generators::new(repositories(), hosts, wanted);
        let client = Client::new(wire.clone(), NAMESPACE);
        let controller = Controller::new(client, settings, generators).expect("usable settings");
        let settings = ApplicationSettings { clock: clock.clone(), ..ApplicationSettings::new(NAMESPACE) };
        let manifests = Manifests::new(repositories(), baton_manifests::Settings::default());
        let client = Client::new(control.service(), NAMESPACE);
        let applications =
            ApplicationController::new(client, settings, manifests, Arc::new(InProcess(member.clone())))
                .expect("usable settings");
        let running = vec![
            tokio::spawn(async move { drop(controller.run(std::future::pending()).await) }),
            tokio::spawn(async move { drop(applications.run(std::future::pending()).await) }),
        ];
        Scene { control, member, wire, repository, second, clock, running }
    }

    /// Drops both controllers where they stand, as a crash would, and starts others.
    pub(crate) async fn crash(self) -> Scene {
        for task in self.running {
            task.abort();
            let _ = task.await;
        }
        Scene::start(self.control, self.member, [self.repository, self.second], self.clock)
    }

    /// Writes the files of Applications with this value and commits them; tells the commit.
    pub(crate) fn commit(&self, names: &[&str], value: &str) -> String {
        write_and_commit(self.repository.path(), names, value)
    }

    /// The same on another branch.
    pub(crate) fn commit_on(&self, branch: &str, names: &[&str], value: &str) -> String {
        let repository = self.repository.path();
        git(repository, &["checkout", "-q", "-B", branch]);
        let commit = write_and_commit(repository, names, &format!("{branch} {value}"));
        git(repository, &["checkout", "-q", "main"]);
        commit
    }

    /// The same in the second repository.
    pub(crate) fn commit_second(&self, names: &[&str], value: &str) -> String {
        write_and_commit(self.second.path(), names, value)
    }

    /// Puts an annotated tag on the last commit, or moves it there; tells the tag's own object.
    pub(crate) fn tag(&self, name: &str) -> String {
        tag(self.repository.path(), name)
    }

    /// The same in the second repository.
    pub(crate) fn tag_second(&self, name: &str) -> String {
        tag(self.second.path(), name)
    }

    /// Writes a file of the repository, or takes it away; the next commit holds it.
    pub(crate) fn write(&self, path: &str, content: Option<&str>) {
        let path = self.repository.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        match content {
            Some(content) => std::fs::write(path, content).expect("a file"),
            None => std::fs::remove_file(path).expect("a file"),
        }
    }

    /// Now, as approvals are written.
    pub(crate) fn now(&self) -> String {
        self.clock.now_in_seconds().to_string()
    }

    /// Asks for a comparison, as people do when they push.
    pub(crate) async fn ask_for_refresh(&self, name: &str) {
        self.annotate_application(name, "argocd.argoproj.io/refresh", "normal").await;
    }

    pub(crate) async fn annotate_application(&self, name: &str, annotation: &str, value: &str) {
        let client = Client::new(self.control.service(), NAMESPACE);
        let api: kube::Api<baton_api::Application> = kube::Api::namespaced(client, NAMESPACE);
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        let params = kube::api::PatchParams::default();
        api.patch(name, &params, &kube::api::Patch::Merge(patch)).await.expect("a patch");
    }

    pub(crate) async fn apply(&self, object: Value) -> Value {
        self.control.apply("test", &object).await.expect("an object the API takes")
    }

    /// Merges into an object, as kubectl patch does.
    pub(crate) async fn annotate_set(&self, name: &str, annotation: &str, value: Option<&str>) {
        let client = Client::new(self.control.service(), NAMESPACE);
        let api: kube::Api<baton_api::ApplicationSet> = kube::Api::namespaced(client, NAMESPACE);
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        let params = kube::api::PatchParams::default();
        api.patch(name, &params, &kube::api::Patch::Merge(patch)).await.expect("a patch");
    }

    /// Writes the pause into the head of the rollout, as `baton appset pause` does beside the annotation.
    pub(crate) async fn pause_in_head(&self, set: &str) {
        let client = Client::new(self.control.service(), NAMESPACE);
        let heads: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
            kube::Api::namespaced(client, NAMESPACE);
        let name = format!("{set}.baton-rollout");
        let data = heads.get(&name).await.expect("a head").data.expect("data");
        let mut run: Value = serde_json::from_str(&data["run"]).expect("a run");
        run["paused"] = json!(true);
        let patch = json!({"data": {"run": run.to_string()}});
        let params = kube::api::PatchParams::default();
        heads.patch(&name, &params, &kube::api::Patch::Merge(patch)).await.expect("a patch");
    }

    /// Waits until something is true of the whole scene.
    pub(crate) async fn until(&self, what: &str, hoped: impl Fn(&Scene) -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !hoped(self) {
            if tokio::time::Instant::now() >= deadline {
                let sets = objects(&self.control, "applicationsets.argoproj.io").into_values();
                let rollout = Value::from_iter(sets.map(|set| set["status"]["rollout"].clone()));
                let applications: Vec<String> =
                    self.applications().values().map(|one| format!("{:#}", one["status"]["sync"])).collect();
                panic!("in vain: {what}\n{rollout:#}\n{}", applications.join("\n"));
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Waits until the run is complete and every Application is Synced and Healthy at the commit.
    pub(crate) async fn rolled_out(&self, commit: &str) {
        self.until(&format!("a rollout of {commit}"), |scene| {
            let done = |application: &Value| {
                let status = &application["status"];
                status["sync"]["status"] == "Synced"
                    && status["sync"]["revision"] == commit
                    && status["health"]["status"] == "Healthy"
                    && application["operation"].is_null()
            };
            scene.rollout_state() == "Complete" && scene.applications().values().all(done)
        })
        .await;
    }

    pub(crate) fn rollout_state(&self) -> String {
        text(&self.set("fleet"), "/status/rollout/state")
    }

    pub(crate) fn applications(&self) -> BTreeMap<String, Value> {
        objects(&self.control, "applications.argoproj.io")
    }

    pub(crate) fn set(&self, name: &str) -> Value {
        let mut sets = objects(&self.control, "applicationsets.argoproj.io");
        sets.remove(name).unwrap_or_else(|| panic!("no set {name}"))
    }

    pub(crate) fn revision(&self) -> u64 {
        self.control.store().revision()
    }

    /// Every version of every Application since a revision, in the order written.
    pub(crate) fn versions_since(&self, revision: u64) -> Vec<Version> {
        let history = self.control.store().history(revision);
        let of_applications = history
            .iter()
            .filter(|event| event.revision > revision)
            .filter(|event| &*event.record.key.resource == "applications.argoproj.io");
        of_applications
            .map(|event| Version {
                revision: event.revision,
                name: event.record.key.name.to_string(),
                object: (event.change != Change::Deleted)
                    .then(|| serde_json::from_slice(&event.record.json()).expect("JSON")),
            })
            .collect()
    }
}

fn write_and_commit(repository: &Path, names: &[&str], value: &str) -> String {
    for name in names {
        let directory = repository.join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        let manifest = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: \"{value}\"\n"
        );
        std::fs::write(directory.join("map.yaml"), manifest).expect("a file");
    }
    git(repository, &["add", "-A"]);
    git(repository, &["commit", "-q", "--allow-empty", "-m", value]);
    git(repository, &["rev-parse", "HEAD"])
}

fn tag(repository: &Path, name: &str) -> String {
    git(repository, &["tag", "-f", "-a", "-m", name, name]);
    git(repository, &["rev-parse", &format!("refs/tags/{name}")])
}

pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(crate) fn objects(cluster: &Cluster, resource: &str) -> BTreeMap<String, Value> {
    let listing = cluster.store().list(resource, None, Default::default()).expect("a listing");
    let read = |record: &Arc<baton_apiserver::store::Record>| {
        let object: Value = serde_json::from_slice(&record.json()).expect("JSON");
        (record.key.name.to_string(), object)
    };
    listing.records.iter().map(read).collect()
}

/// A set with one Application per name and environment, and one step per environment: dev, test, prod.
pub(crate) fn fleet(members: &[(&str, &str)]) -> Value {
    let elements: Vec<Value> = members.iter().map(|(name, env)| json!({"name": name, "env": env})).collect();
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "fleet", "namespace": NAMESPACE},
        "spec": {
            "generators": [{"list": {"elements": elements}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), step("test"), step("prod")]}},
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"env": "{{env}}"}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": REPOSITORY, "path": "{{name}}", "targetRevision": "main"},
                    "destination": {"server": MEMBER, "namespace": "demo"},
                    "syncPolicy": {
                        "automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"],
                    },
                },
            },
        },
    })
}

async fn cluster(seed: u64) -> Cluster {
    let clock = baton_apiserver::Clock::starting_at(EPOCH.parse().expect("a date"));
    let workloads = Some(WorkloadSettings::default());
    let options = Options { clock, seed: Some(seed), workloads, ..Options::default() };
    let cluster = Cluster::memory(options);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    cluster.apply("test", &namespace).await.expect("a namespace");
    cluster
}

/// The kinds without their schemas, whose reading would take most of a test's time.
fn definitions() -> Vec<Value> {
    let kinds = [
        ("applications", "Application"),
        ("applicationsets", "ApplicationSet"),
        ("appprojects", "AppProject"),
    ];
    let definition = |(plural, kind): (&str, &str)| {
        let mut version = json!({
            "name": "v1alpha1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        });
        if kind == "ApplicationSet" {
            version["subresources"] = json!({"status": {}});
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.argoproj.io")},
            "spec": {
                "group": "argoproj.io", "scope": "Namespaced", "versions": [version],
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            },
        })
    };
    kinds.into_iter().map(definition).collect()
}

fn project() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {
            "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    })
}

fn cluster_secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "cluster-east", "namespace": NAMESPACE,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "stringData": {"name": "east", "server": MEMBER, "config": "{}"},
    })
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
