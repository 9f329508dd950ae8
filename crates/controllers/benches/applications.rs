//! What Applications cost: the first sync of a fleet, standing still, and one refresh among many. `make bench` runs it.
//!
//! All clusters are embedded in this process and answer without a socket, so every number holds their work too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_apiserver::{Cluster, Options};
use baton_clusters::{ClusterAccess, Connect};
use baton_controllers::{ApplicationController, ApplicationSettings};
use baton_manifests::Manifests;
use baton_source::Repositories;
use kube::Client;
use serde_json::{Value, json};

const NAMESPACE: &str = "argocd";
const REPOSITORY: &str = "https://git.example.com/fleet.git";
const CLUSTERS: usize = 10;
const OBJECTS: usize = 10;
/// How long standing still is watched.
const STILL: Duration = Duration::from_secs(20);

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(fleet(500, true));
    runtime.block_on(fleet(5000, false));
}

/// Syncs a fleet of Applications, watches it stand still, and refreshes one of them.
async fn fleet(applications: usize, deploys: bool) {
    let objects = if deploys { OBJECTS } else { 1 };
    println!("{applications} Applications of {objects} objects over {CLUSTERS} clusters");
    let home = tempfile::tempdir().expect("a directory");
    repository(home.path(), objects);
    let control = control_plane().await;
    let mut members = BTreeMap::new();
    for number in 0..CLUSTERS {
        let member = Cluster::memory(Options::default());
        control.apply("bench", &secret(number)).await.expect("a Secret");
        members.insert(server(number), member);
    }
    for number in 0..applications {
        control.apply("bench", &application(number)).await.expect("an Application");
    }

    let (before, begin) = (processor_time(), Instant::now());
    let connect = Arc::new(Members(members.clone()));
    let settings = ApplicationSettings::new(NAMESPACE);
    let client = Client::new(control.service(), NAMESPACE);
    let repositories = baton_source::Settings {
        cache_dir: home.path().join("cache"),
        local: BTreeMap::from([(REPOSITORY.to_owned(), home.path().join("git"))]),
        ..baton_source::Settings::default()
    };
    let work_dir = home.path().join("work");
    let manifests = Manifests::new(
        Repositories::new(repositories),
        baton_manifests::Settings { work_dir, ..baton_manifests::Settings::default() },
    );
    let controller = ApplicationController::new(client, settings, manifests, connect).expect("a controller");
    let running = controller.clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(async move { running.run(async { drop(stopped.await) }).await });
    // A look lists every Application, so looks are rarer where there are more.
    let pause = Duration::from_millis(u64::try_from(applications).unwrap_or(u64::MAX) / 2);
    while synced(&control).await < applications {
        tokio::time::sleep(pause).await;
    }
    let took = begin.elapsed();
    println!(
        "  first full sync:      {:.1} s, {:.1} s of processor time, {} objects, peak memory {} MiB with all clusters",
        took.as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
        applications * objects,
        peak() / 1024,
    );

    // What comes after the first sync (health, events, the last status) is over when no cluster is written to.
    let revisions =
        || members.values().chain([&control]).map(|cluster| cluster.store().revision()).sum::<u64>();
    let mut seen = 0;
    while seen != revisions() {
        seen = revisions();
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let before = processor_time();
    tokio::time::sleep(STILL).await;
    let share = (processor_time() - before).as_secs_f64() / STILL.as_secs_f64() * 100.0;
    println!(
        "  standing still:       {} writes in {} s, {share:.2} % of a core",
        revisions() - seen,
        STILL.as_secs()
    );

    let (name, before, begin) = (format!("app-{:04}", applications / 2), revisions(), Instant::now());
    let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
    let api = applications_of(&control);
    api.patch(&name, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(&patch))
        .await
        .expect("a patch");
    while refreshing(&api.get(&name).await.expect("an Application")) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!(
        "  refresh of one:       {:.1} ms, {} writes (one asks for it)",
        begin.elapsed().as_secs_f64() * 1000.0,
        revisions() - before
    );
    let _ = stop.send(());
    let _ = task.await;
}

struct Members(BTreeMap<String, Cluster>);

impl Connect for Members {
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String> {
        let member = self.0.get(&*cluster.server).ok_or("no such cluster")?;
        Ok(Client::new(member.service(), "default"))
    }
}

fn applications_of(control: &Cluster) -> kube::Api<kube::core::DynamicObject> {
    let kind = kube::core::ApiResource::erase::<baton_api::Application>(&());
    kube::Api::namespaced_with(Client::new(control.service(), NAMESPACE), NAMESPACE, &kind)
}

fn refreshing(application: &kube::core::DynamicObject) -> bool {
    let annotations = application.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key("argocd.argoproj.io/refresh"))
}

/// How many Applications are Synced and Healthy.
async fn synced(control: &Cluster) -> usize {
    let listed = applications_of(control).list(&kube::api::ListParams::default()).await.expect("a list");
    let done = |application: &&kube::core::DynamicObject| {
        let status = &application.data["status"];
        status["sync"]["status"] == "Synced" && status["health"]["status"] == "Healthy"
    };
    listed.items.iter().filter(done).count()
}

async fn control_plane() -> Cluster {
    let control = Cluster::memory(Options::default());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    control.apply("bench", &namespace).await.expect("a namespace");
    for definition in baton_api::crds() {
        let definition = serde_json::to_value(definition).expect("JSON");
        control.apply("bench", &definition).await.expect("a definition");
    }
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]},
    });
    control.apply("bench", &project).await.expect("a project");
    control
}

fn server(number: usize) -> String {
    format!("https://cluster-{number}.example.com")
}

fn secret(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("cluster-{number}"), "namespace": NAMESPACE,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": format!("cluster-{number}"), "server": server(number), "config": "{}"},
    })
}

fn application(number: usize) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": format!("app-{number:04}"), "namespace": NAMESPACE},
        "spec": {
            "project": "default",
            "source": {"repoURL": REPOSITORY, "path": "app", "targetRevision": "HEAD"},
            "destination": {"server": server(number % CLUSTERS), "namespace": format!("app-{number:04}")},
            "syncPolicy": {"automated": {"selfHeal": true, "prune": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    })
}

/// A repository with one directory: a Deployment, a Service and ConfigMaps up to the number of objects.
fn repository(home: &Path, objects: usize) {
    let app = home.join("git/app");
    fs::create_dir_all(&app).expect("directories");
    let mut documents: Vec<Value> = (0..objects)
        .map(|number| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("settings-{number}")},
                "data": {"key": format!("value {number}"), "more": "x".repeat(200)}})
        })
        .collect();
    if objects > 2 {
        let labels = json!({"app": "web"});
        documents[0] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "registry.example.com/web:1"}]}}}});
        documents[1] = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": labels, "ports": [{"port": 80}]}});
    }
    for (number, document) in documents.iter().enumerate() {
        fs::write(app.join(format!("{number}.json")), document.to_string()).expect("a file");
    }
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["add", "-A"],
        &["-c", "user.name=b", "-c", "user.email=b@example.com", "commit", "-qm", "all"],
    ] {
        let git = Command::new("git").arg("-C").arg(home.join("git")).args(arguments).status().expect("git");
        assert!(git.success(), "git {arguments:?}");
    }
}

/// Processor time of this process so far.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u64 =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Most memory this process ever had, in KiB.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
