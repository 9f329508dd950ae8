//! A control plane, two member clusters, a git repository and a running controller.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use baton_apiserver::store::Change;
use baton_apiserver::{Cluster, Options, WorkloadSettings};
use baton_clusters::{ClusterAccess, Connect};
use baton_controllers::{ApplicationController, ApplicationSettings, Clock, SharedRegistry};
use baton_manifests::Manifests;
use baton_source::Repositories;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::faults::Wire;

pub(crate) const NAMESPACE: &str = "argocd";
pub(crate) const REPOSITORY: &str = "https://git.example.com/apps.git";
const EPOCH: &str = "2026-01-01T00:00:00Z";
/// Virtual time after which a test's hope is given up.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Everything a test needs.
pub(crate) struct Scene {
    pub(crate) control: Cluster,
    pub(crate) wire: Wire,
    pub(crate) members: BTreeMap<&'static str, (Cluster, Wire)>,
    settings: ApplicationSettings,
    repository: TempDir,
    registry: SharedRegistry,
    running: JoinHandle<Result<(), String>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// Connects to the members of the scene by the names in their URLs.
struct InProcess(BTreeMap<String, Wire>);

impl Connect for InProcess {
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String> {
        let wire = self.0.get(&*cluster.server).ok_or_else(|| format!("no route to {}", cluster.server))?;
        Ok(Client::new(wire.clone(), "default"))
    }
}

impl Scene {
    /// A scene with an empty repository and a controller with default settings.
    pub(crate) async fn new() -> Scene {
        Scene::with(|_| {}, &[]).await
    }

    /// A scene whose controller has other settings and finds these objects.
    pub(crate) async fn with(change: impl FnOnce(&mut ApplicationSettings), found: &[Value]) -> Scene {
        let repository = tempfile::tempdir().expect("a directory");
        git(repository.path(), &["init", "-q", "-b", "main"]);
        let clock = Clock::starting_at(EPOCH.parse().expect("a date"));
        let control = cluster(1).await;
        let mut members = BTreeMap::new();
        for (name, seed) in [("east", 2), ("west", 3)] {
            let member = cluster(seed).await;
            control.apply("test", &cluster_secret(name)).await.expect("a Secret");
            members.insert(name, (member.clone(), Wire::new(member)));
        }
        for definition in definitions() {
            control.apply("test", &definition).await.expect("a definition");
        }
        control.apply("test", &project("default", json!({}))).await.expect("a project");
        for object in found {
            control.apply("test", object).await.expect("an object the API takes");
        }
        let mut settings = ApplicationSettings { clock, ..ApplicationSettings::new(NAMESPACE) };
        change(&mut settings);
        let scene = Scene::start(control, members, repository, settings);
        scene.commit(&[("README.md", "nothing yet")]);
        scene
    }

    fn start(
        control: Cluster,
        members: BTreeMap<&'static str, (Cluster, Wire)>,
        repository: TempDir,
        settings: ApplicationSettings,
    ) -> Scene {
        let (controller, wire) = controller(&control, &members, repository.path(), &settings);
        let registry = controller.registry();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let running = tokio::spawn(async move {
            controller.run(async { drop(stopped.await) }).await.map_err(|error| error.to_string())
        });
        Scene { control, wire, members, settings, repository, registry, running, stop: Some(stop) }
    }

    /// Another controller over the same clusters, beside this one.
    pub(crate) fn second(&self) -> JoinHandle<Result<(), String>> {
        let controller = controller(&self.control, &self.members, self.repository.path(), &self.settings).0;
        tokio::spawn(async move {
            controller.run(std::future::pending()).await.map_err(|error| error.to_string())
        })
    }

    /// Drops the controller where it stands and starts no other.
    pub(crate) fn abandon(self) -> Scene {
        self.running.abort();
        self
    }

    /// Drops the controller where it stands, as a crash would, and starts another.
    pub(crate) async fn crash(self) -> Scene {
        self.running.abort();
        let _ = self.running.await;
        Scene::start(self.control, self.members, self.repository, self.settings)
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
            assert_eq!((&mut self.running).await.expect("the controller does not panic"), Ok(()));
        }
    }

    /// How many passes the controller has made.
    pub(crate) fn passes(&self) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry.read()).expect("metrics");
        let counts = text.lines().filter(|line| line.starts_with("argocd_app_reconcile_count"));
        counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Takes the repository away.
    pub(crate) fn hide_repository(&self) {
        let git = self.repository.path().join(".git");
        std::fs::rename(&git, git.with_extension("away")).expect("a repository");
    }

    /// Writes files and commits everything, and tells the commit.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            let path = self.repository.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, content).expect("a file");
        }
        git(self.repository.path(), &["add", "-A"]);
        git(self.repository.path(), &["commit", "-q", "--allow-empty", "-m", "change"]);
        git(self.repository.path(), &["rev-parse", "HEAD"])
    }

    pub(crate) fn remove(&self, path: &str) -> String {
        std::fs::remove_file(self.repository.path().join(path)).expect("a file to remove");
        self.commit(&[])
    }

    pub(crate) async fn apply(&self, object: Value) -> Value {
        self.control.apply("test", &object).await.expect("an object the API takes")
    }

    /// Merges into the Application, as kubectl patch does.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let client = Client::new(self.control.service(), NAMESPACE);
        let api: kube::Api<baton_api::Application> = kube::Api::namespaced(client, NAMESPACE);
        let params = kube::api::PatchParams::default();
        api.patch(name, &params, &kube::api::Patch::Merge(patch)).await.expect("a patch the API takes");
    }

    /// Asks for a comparison and waits until it was made.
    pub(crate) async fn refresh(&self, name: &str) {
        self.patch(name, json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}))
            .await;
        let asked = "/metadata/annotations/argocd.argoproj.io~1refresh";
        self.until(name, |application| application.pointer(asked).is_none()).await;
    }

    /// Waits until the Application is as hoped.
    pub(crate) async fn until(&self, name: &str, hoped: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(application) = self.find(name)
                && hoped(&application)
            {
                return application;
            }
            assert!(tokio::time::Instant::now() < deadline, "in vain: {:#?}", self.find(name));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until something is true of the whole scene.
    pub(crate) async fn until_all(&self, what: &str, hoped: impl Fn(&Scene) -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !hoped(self) {
            assert!(tokio::time::Instant::now() < deadline, "in vain: {what}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the Application is Synced and Healthy, with no operation under way.
    pub(crate) async fn settled(&self, name: &str) -> Value {
        self.until(name, |application| {
            sync(application) == "Synced" && health(application) == "Healthy" && !operating(application)
        })
        .await
    }

    /// Waits until the last operation ended, and gives its phase and message.
    pub(crate) async fn ended(&self, name: &str) -> (String, String) {
        let application = self
            .until(name, |application| {
                let phase = text(application, "/status/operationState/phase");
                !operating(application) && matches!(phase.as_str(), "Succeeded" | "Failed" | "Error")
            })
            .await;
        let state = |field: &str| text(&application, &format!("/status/operationState/{field}"));
        (state("phase"), state("message"))
    }

    pub(crate) fn find(&self, name: &str) -> Option<Value> {
        objects(&self.control, "applications.argoproj.io").remove(name)
    }

    pub(crate) fn application(&self, name: &str) -> Value {
        self.find(name).unwrap_or_else(|| panic!("no Application {name}"))
    }

    pub(crate) fn member(&self, name: &str) -> &Cluster {
        &self.members[name].0
    }

    /// An object of a member, by the plural name of its kind with its group.
    pub(crate) fn object(&self, member: &str, resource: &str, name: &str) -> Option<Value> {
        objects(self.member(member), resource).remove(name)
    }

    /// What was written to a cluster after a revision, Events, Leases and what the cluster does itself aside.
    pub(crate) fn control_writes_since(&self, revision: u64) -> Vec<String> {
        let history = self.control.store().history(revision);
        let quiet = ["events", "leases.coordination.k8s.io"];
        let told = history
            .iter()
            .filter(|event| event.revision > revision && !quiet.contains(&&*event.record.key.resource));
        told.map(|event| {
            let change = match event.change {
                Change::Added => "added",
                Change::Modified => "modified",
                Change::Deleted => "deleted",
            };
            format!("{change} {} {}", event.record.key.resource, event.record.key.name)
        })
        .collect()
    }

    /// Events as `reason: message`, in the order they were written.
    pub(crate) fn events(&self) -> Vec<String> {
        let history = self.control.store().history(0);
        let events = history.iter().filter(|event| &*event.record.key.resource == "events");
        let line = |event: &baton_apiserver::store::Event| {
            let object: Value = serde_json::from_slice(&event.record.json()).expect("JSON");
            format!("{}: {}", text(&object, "/reason"), text(&object, "/message"))
        };
        events.map(|event| line(event)).collect()
    }
}

fn controller(
    control: &Cluster,
    members: &BTreeMap<&'static str, (Cluster, Wire)>,
    repository: &Path,
    settings: &ApplicationSettings,
) -> (ApplicationController, Wire) {
    let wire = Wire::new(control.clone());
    let client = Client::new(wire.clone(), NAMESPACE);
    let local = BTreeMap::from([(REPOSITORY.to_owned(), repository.to_owned())]);
    let source = baton_source::Settings {
        local,
        revision_cache: Duration::ZERO,
        cache_dir: repository.join(".git").join("baton"),
        ..baton_source::Settings::default()
    };
    let manifests = Manifests::new(Repositories::new(source), baton_manifests::Settings::default());
    let routes = members.iter().map(|(name, (_, wire))| (server(name), wire.clone())).collect();
    let connect = Arc::new(InProcess(routes));
    let controller =
        ApplicationController::new(client, settings.clone(), manifests, connect).expect("usable settings");
    (controller, wire)
}

pub(crate) fn sync(application: &Value) -> String {
    text(application, "/status/sync/status")
}

pub(crate) fn health(application: &Value) -> String {
    text(application, "/status/health/status")
}

pub(crate) fn operating(application: &Value) -> bool {
    application.get("operation").is_some_and(|operation| !operation.is_null())
}

pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Conditions as `type: message`.
pub(crate) fn conditions(application: &Value) -> Vec<String> {
    let conditions = application.pointer("/status/conditions").and_then(Value::as_array);
    let line = |condition: &Value| format!("{}: {}", text(condition, "/type"), text(condition, "/message"));
    conditions.into_iter().flatten().map(line).collect()
}

/// Results of the last operation as `kind/name status phase`.
pub(crate) fn results(application: &Value) -> Vec<String> {
    let results =
        application.pointer("/status/operationState/syncResult/resources").and_then(Value::as_array);
    let line = |result: &Value| {
        let field = |name: &str| result[name].as_str().unwrap_or_default();
        format!("{}/{} {} {}", field("kind"), field("name"), field("status"), field("hookPhase"))
    };
    results.into_iter().flatten().map(line).collect()
}

pub(crate) fn objects(cluster: &Cluster, resource: &str) -> BTreeMap<String, Value> {
    let listing = cluster.store().list(resource, None, Default::default()).expect("a listing");
    let read = |record: &Arc<baton_apiserver::store::Record>| {
        let object: Value = serde_json::from_slice(&record.json()).expect("JSON");
        (record.key.name.to_string(), object)
    };
    listing.records.iter().map(read).collect()
}

pub(crate) fn server(member: &str) -> String {
    format!("https://{member}.example.com")
}

/// argocd-cm with this in it.
pub(crate) fn argocd_cm(data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/part-of": "argocd"},
        },
        "data": data,
    })
}

/// An Application of a directory of the repository, deployed to a member.
pub(crate) fn application(name: &str, path: &str, member: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "project": "default",
            "source": {"repoURL": REPOSITORY, "path": path, "targetRevision": "main"},
            "destination": {"server": server(member), "namespace": "demo"},
        },
    })
}

/// The same with automatic sync, pruning and self-heal.
pub(crate) fn automated(mut application: Value) -> Value {
    application["spec"]["syncPolicy"] = json!({
        "automated": {"prune": true, "selfHeal": true},
        "syncOptions": ["CreateNamespace=true"],
    });
    application
}

pub(crate) fn project(name: &str, extra: Value) -> Value {
    let mut project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        project["spec"][key] = value.clone();
    }
    project
}

pub(crate) fn config_map(name: &str, key: &str, value: &str, annotations: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\ndata:\n  {key}: \"{value}\"\n"
    )
}

pub(crate) fn deployment(name: &str, annotations: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\nspec:\n  replicas: 1\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers: [{{name: main, image: \"example.com/{name}:1\"}}]\n"
    )
}

pub(crate) fn job(name: &str, annotations: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\nspec:\n  backoffLimit: 0\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{{name: main, image: \"example.com/job:1\"}}]\n"
    )
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
    let kinds = [("applications", "Application"), ("appprojects", "AppProject")];
    let definition = |(plural, kind): (&str, &str)| {
        let version = json!({
            "name": "v1alpha1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        });
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

pub(crate) fn cluster_secret(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": format!("cluster-{name}"), "namespace": NAMESPACE,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "stringData": {"name": name, "server": server(name), "config": "{}"},
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
