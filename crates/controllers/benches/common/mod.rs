//! A fleet for benches: the embedded API, the controller over it, and a stand-in for the Application controller that syncs
//! at once, so that what is told is the cost of keeping order.

#![allow(dead_code, reason = "each bench uses its own part of it")]

mod counts;
pub(crate) mod process;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_apiserver::{Cluster, Options};
use baton_controllers::{Controller, Settings};
use baton_generators::Generators;
use baton_scm::Hosts;
use baton_source::Repositories;
use futures::StreamExt;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(crate) use counts::Counts;

use counts::Counted;
use process::git;

pub(crate) const NAMESPACE: &str = "argocd";
const REPOSITORY: &str = "https://git.example.com/fleet.git";

/// A fleet, and what is asked of the API for it.
pub(crate) struct Fleet {
    home: tempfile::TempDir,
    pub(crate) control: Cluster,
    pub(crate) counts: Arc<Mutex<Counts>>,
    stand_in: tokio::task::JoinHandle<()>,
    controller: tokio::task::JoinHandle<()>,
    branch: Arc<Mutex<String>>,
}

/// Whether this process is to measure, and which parts were asked for; none is all. `cargo test` runs benches too, to see
/// that they build.
pub(crate) fn parts() -> Option<Vec<String>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments
        .iter()
        .any(|argument| argument == "--bench")
        .then(|| arguments.iter().filter(|argument| !argument.starts_with("--")).cloned().collect())
}

/// Settings under which sets are rolled out in order.
pub(crate) fn ordered() -> Settings {
    Settings { progressive_syncs: true, ..Settings::new(NAMESPACE) }
}

/// A set whose Applications `<name>-<number>` are in groups of the same size, told by the label and parameter `step`.
pub(crate) fn grouped(name: &str, apps: usize, groups: usize) -> Value {
    let elements: Vec<Value> = (0..apps)
        .map(|number| json!({"app": format!("{name}-{number:05}"), "step": format!("s{}", number * groups / apps)}))
        .collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "goTemplate": true,
            "generators": [{"list": {"elements": elements}}],
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

/// The same, rolled out group by group.
pub(crate) fn stepwise(name: &str, apps: usize, steps: usize, limit: &str) -> Value {
    let limit = limit.parse::<i64>().map_or_else(|_| json!(limit), |count| json!(count));
    let each: Vec<Value> = (0..steps)
        .map(|step| {
            json!({"maxUpdate": limit, "matchExpressions": [
                {"key": "step", "operator": "In", "values": [format!("s{step}")]},
            ]})
        })
        .collect();
    let mut set = grouped(name, apps, steps);
    set["spec"]["strategy"] = json!({"type": "RollingSync", "rollingSync": {"steps": each}});
    set
}

impl Fleet {
    /// A controller with these settings, over these sets.
    pub(crate) async fn new(settings: Settings, sets: &[Value]) -> Fleet {
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
        for set in sets {
            fleet.control.apply("bench", set).await.expect("a set");
        }
        let controller = tokio::spawn(control_sets(
            fleet.control.clone(),
            fleet.counts.clone(),
            fleet.home.path().to_owned(),
            settings,
        ));
        Fleet { controller, ..fleet }
    }

    /// A client that is not counted.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.control.service(), NAMESPACE)
    }

    /// The Applications.
    pub(crate) fn applications(&self) -> Api<DynamicObject> {
        applications(self.client())
    }

    /// The sets.
    pub(crate) fn sets(&self) -> Api<ApplicationSet> {
        Api::namespaced(self.client(), NAMESPACE)
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
    pub(crate) async fn commit(&self, text: &str) {
        self.write_commit(text);
        let api = self.applications();
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
    pub(crate) async fn complete(&self, sets: &[&str], run: u64) {
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

    /// The head of a set's rollout.
    pub(crate) async fn head(&self, set: &str) -> Value {
        let kind = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        let maps: Api<DynamicObject> = Api::namespaced_with(self.client(), NAMESPACE, &kind);
        let found = maps.get_opt(&format!("{set}.baton-rollout")).await.expect("an answer");
        found.map(|found| serde_json::to_value(found).expect("JSON")).unwrap_or_default()
    }

    /// A set as it is now.
    pub(crate) async fn set(&self, name: &str) -> Value {
        serde_json::to_value(self.sets().get(name).await.expect("a set")).expect("JSON")
    }

    /// Ends the controller and the stand-in.
    pub(crate) async fn stop(self) {
        for task in [self.controller, self.stand_in] {
            task.abort();
            let _ = task.await;
        }
    }
}

async fn control_sets(control: Cluster, counts: Arc<Mutex<Counts>>, home: PathBuf, settings: Settings) {
    let service = Counted { inner: control.service(), counts };
    let hosts = Hosts::new(baton_scm::Settings::default()).expect("usable settings");
    let repositories = Repositories::new(baton_source::Settings {
        local: BTreeMap::from([(REPOSITORY.to_owned(), home.clone())]),
        cache_dir: home.join(".git/baton"),
        ..baton_source::Settings::default()
    });
    let wanted = baton_generators::Settings { argocd_namespace: NAMESPACE.to_owned(), ..Default::default() };
    let generators = Generators::new(repositories, hosts, wanted);
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
