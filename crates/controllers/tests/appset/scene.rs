//! A cluster with a running controller, and the words to change it and look at it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use baton_apiserver::store::Change;
use baton_apiserver::{Cluster, Options};
use baton_controllers::{Clock, Controller, ObjectKey, Settings};
use baton_generators::Generators;
use baton_scm::Hosts;
use baton_source::Repositories;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::faults::Wire;

pub(crate) const NAMESPACE: &str = "argocd";
/// Repositories that generators find on disk.
const REPOSITORIES: [&str; 2] = ["https://git.example.com/apps.git", "https://git.example.com/config.git"];
const EPOCH: &str = "2026-01-01T00:00:00Z";

/// A cluster and its controller.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) wire: Wire,
    pub(crate) controller: Controller,
    pub(crate) settings: Settings,
    running: JoinHandle<Result<(), String>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// One write that the history shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Write {
    pub(crate) change: &'static str,
    pub(crate) resource: String,
    pub(crate) name: String,
}

impl Scene {
    /// A cluster with Argo CD's CRDs, namespace and default project, and a controller with its default settings.
    pub(crate) async fn new() -> Scene {
        Scene::with(Settings::new(NAMESPACE)).await
    }

    pub(crate) async fn with(settings: Settings) -> Scene {
        Scene::defined_by(definitions(), settings).await
    }

    /// A cluster whose kinds have these definitions.
    pub(crate) async fn defined_by(definitions: Vec<Value>, settings: Settings) -> Scene {
        let cluster = prepared(definitions).await;
        cluster.apply("test", &project("default")).await.expect("a project");
        let settings = Settings { clock: Clock::starting_at(EPOCH.parse().expect("a date")), ..settings };
        Scene::over(cluster, settings).await
    }

    /// A new controller over a cluster that is there already, once it has nothing to do.
    pub(crate) async fn over(cluster: Cluster, settings: Settings) -> Scene {
        let scene = Scene::start(cluster, settings);
        scene.settle().await;
        scene
    }

    /// A new controller that has only begun.
    pub(crate) fn start(cluster: Cluster, settings: Settings) -> Scene {
        let wire = Wire::new(cluster.clone());
        let client = Client::new(wire.clone(), NAMESPACE);
        let controller = Controller::new(client, settings.clone(), generators()).expect("usable settings");
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runs = controller.clone();
        let running = tokio::spawn(async move {
            runs.run(async { drop(stopped.await) }).await.map_err(|error| error.to_string())
        });
        Scene { cluster, wire, controller, settings, running, stop: Some(stop) }
    }

    /// What is measured, as /metrics tells it.
    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.controller.registry().read())
            .expect("metrics");
        text
    }

    /// Ends the controller and starts a new one over the same cluster.
    pub(crate) async fn restart(mut self) -> Scene {
        self.stop().await;
        Scene::over(self.cluster.clone(), self.settings.clone()).await
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
            assert_eq!(self.ended().await, Ok(()));
        }
    }

    /// How the controller ended, once it did.
    pub(crate) async fn ended(&mut self) -> Result<(), String> {
        (&mut self.running).await.expect("the controller does not panic")
    }

    pub(crate) async fn apply(&self, object: Value) -> Value {
        self.cluster.apply("test", &object).await.expect("an object the API takes")
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let api_version = if kind == "Secret" { "v1" } else { "argoproj.io/v1alpha1" };
        self.cluster.delete_object(api_version, kind, NAMESPACE, name).await.expect("a deletion");
    }

    /// Waits until the controller has nothing to do and the cluster has been still for a second.
    pub(crate) async fn settle(&self) {
        let mut still = 0;
        let mut revision = 0;
        // For less than a second, after which a leader renews its lease.
        while still < 15 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = self.cluster.store().revision();
            still = if self.controller.is_idle() && now == revision { still + 1 } else { 0 };
            revision = now;
        }
    }

    /// Applies an object and waits for what follows.
    pub(crate) async fn put(&self, object: Value) {
        self.apply(object).await;
        self.settle().await;
    }

    pub(crate) async fn remove(&self, kind: &str, name: &str) {
        self.delete(kind, name).await;
        self.settle().await;
    }

    /// Asks for one more pass over a set and waits for it.
    pub(crate) async fn wake(&self, name: &str) {
        self.controller.wake(ObjectKey::new(NAMESPACE, name));
        self.settle().await;
    }

    pub(crate) fn objects(&self, resource: &str) -> BTreeMap<String, Value> {
        let listing = self.cluster.store().list(resource, None, Default::default()).expect("a listing");
        let read = |record: &std::sync::Arc<baton_apiserver::store::Record>| {
            let object: Value = serde_json::from_slice(&record.json()).expect("JSON");
            (record.key.name.to_string(), object)
        };
        listing.records.iter().map(read).collect()
    }

    pub(crate) fn applications(&self) -> BTreeMap<String, Value> {
        self.objects("applications.argoproj.io")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.applications().into_keys().collect()
    }

    pub(crate) fn application(&self, name: &str) -> Value {
        self.applications().remove(name).unwrap_or_else(|| panic!("no Application {name}"))
    }

    pub(crate) fn set(&self, name: &str) -> Value {
        self.objects("applicationsets.argoproj.io").remove(name).unwrap_or_else(|| panic!("no set {name}"))
    }

    /// Conditions as `type=status reason: message`.
    pub(crate) fn conditions(&self, set: &str) -> Vec<String> {
        let set = self.set(set);
        let conditions =
            set.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        let line = |c: &Value| {
            format!("{}={} {}: {}", text(c, "type"), text(c, "status"), text(c, "reason"), text(c, "message"))
        };
        conditions.iter().map(line).collect()
    }

    /// Events as `reason: message`, in the order they were written.
    pub(crate) fn events(&self) -> Vec<String> {
        let history = self.cluster.store().history(0);
        let events = history.iter().filter(|event| &*event.record.key.resource == "events");
        events
            .map(|event| {
                let object: Value = serde_json::from_slice(&event.record.json()).expect("JSON");
                format!(
                    "{}: {}",
                    object["reason"].as_str().unwrap_or("?"),
                    object["message"].as_str().unwrap_or("?")
                )
            })
            .collect()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.cluster.store().revision()
    }

    /// What was written after a revision, Events aside.
    pub(crate) fn writes_since(&self, revision: u64) -> Vec<Write> {
        let history = self.cluster.store().history(revision);
        let written = history.iter().filter(|event| event.revision > revision);
        written
            .filter(|event| &*event.record.key.resource != "events")
            .map(|event| Write {
                change: match event.change {
                    Change::Added => "added",
                    Change::Modified => "modified",
                    Change::Deleted => "deleted",
                },
                resource: event.record.key.resource.to_string(),
                name: event.record.key.name.to_string(),
            })
            .collect()
    }

    pub(crate) fn application_writes_since(&self, revision: u64) -> Vec<String> {
        let writes = self.writes_since(revision).into_iter();
        writes
            .filter(|write| write.resource == "applications.argoproj.io")
            .map(|write| format!("{} {}", write.change, write.name))
            .collect()
    }
}

/// A cluster with these kinds and Argo CD's namespaces.
pub(crate) async fn prepared(definitions: Vec<Value>) -> Cluster {
    let clock = baton_apiserver::Clock::starting_at(EPOCH.parse().expect("a date"));
    let options = Options { clock, seed: Some(7), workloads: None, nodes: 0, ..Options::default() };
    let cluster = Cluster::memory(options);
    for definition in definitions {
        cluster.apply("test", &definition).await.expect("a definition");
    }
    for namespace in [NAMESPACE, "team", "other"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        cluster.apply("test", &object).await.expect("a namespace");
    }
    cluster
}

/// The three kinds without their schemas, whose reading would take most of a test's time.
pub(crate) fn definitions() -> Vec<Value> {
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

pub(crate) fn generators() -> Generators {
    generators_with(Path::new(""))
}

/// Generators that read Argo CD's example repository from this directory.
pub(crate) fn generators_with(repository: &Path) -> Generators {
    let local = REPOSITORIES.iter().map(|url| ((*url).to_owned(), repository.to_owned())).collect();
    let source = baton_source::Settings { local, ..baton_source::Settings::default() };
    let hosts = Hosts::new(baton_scm::Settings::default()).expect("usable settings");
    let settings =
        baton_generators::Settings { argocd_namespace: NAMESPACE.to_owned(), ..Default::default() };
    Generators::new(Repositories::new(source), hosts, settings)
}

pub(crate) fn project(name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
    })
}

pub(crate) fn cluster_secret(name: &str, labels: Value) -> Value {
    let mut all = json!({"argocd.argoproj.io/secret-type": "cluster"});
    for (key, value) in labels.as_object().expect("labels") {
        all[key] = value.clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("cluster-{name}"), "namespace": NAMESPACE, "labels": all},
        "stringData": {"name": name, "server": format!("https://{name}.example.com"), "config": "{}"},
    })
}

/// A set with these generators; its template takes `name` and, as target revision, `revision`.
pub(crate) fn set(name: &str, generators: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "generators": generators,
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"from": name}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": "https://git.example.com/apps.git", "path": "app", "targetRevision": "HEAD"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "demo"},
                },
            },
        },
    })
}

/// A list generator with one element per name.
pub(crate) fn list(names: &[&str]) -> Value {
    let elements: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!([{"list": {"elements": elements}}])
}
