//! A control plane with both controllers, a member cluster, and a git repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use baton_apiserver::store::Change;
use baton_apiserver::{Cluster, Options, WorkloadSettings};
use baton_clusters::{ClusterAccess, Connect};
use baton_controllers::{ApplicationController, ApplicationSettings, Clock, Controller, Settings};
use baton_generators::Generators;
use baton_manifests::Manifests;
use baton_rollout::blocker::Reason;
use baton_scm::Hosts;
use baton_source::Repositories;
use baton_traces::{Span, channel};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use crate::api::Api;
use crate::charts::helm;
use crate::faults::Wire;
use crate::matrix::HOOK;
use crate::receiver::Receiver;

pub(crate) const NAMESPACE: &str = "argocd";
pub(crate) const REPOSITORY: &str = "https://git.example.com/apps.git";
/// Another repository, for Applications that come from two.
pub(crate) const SECOND: &str = "https://git.example.com/more.git";
const MEMBER: &str = "https://east.example.com";
/// Annotation of a set that holds the head of its rollout where there can be no ConfigMap.
pub(crate) const ROLLOUT: &str = "baton.dev/rollout";
const EPOCH: &str = "2026-01-01T00:00:00Z";
/// Virtual time after which a test's hope is given up.
const PATIENCE: Duration = Duration::from_secs(600);

/// Everything a test needs.
pub(crate) struct Scene {
    pub(crate) control: Cluster,
    pub(crate) member: Cluster,
    pub(crate) api: Api,
    /// What the ApplicationSet controller asks of the API.
    pub(crate) wire: Wire,
    /// Whom hooks and checks call.
    pub(crate) receiver: Receiver,
    repository: TempDir,
    second: TempDir,
    clock: Clock,
    /// What the ApplicationSet controller tells of runs that have ended.
    pub(crate) traces: mpsc::Receiver<Vec<Span>>,
    /// What each controller has measured.
    routers: BTreeMap<&'static str, Router>,
    sets: Option<JoinHandle<()>>,
    applications: Option<JoinHandle<()>>,
}

struct InProcess(Cluster);

impl Connect for InProcess {
    fn connect(&self, _: &ClusterAccess) -> Result<Client, String> {
        Ok(Client::new(self.0.service(), "default"))
    }
}

/// What may befall the head of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It is not there any more.
    Lost,
    /// It is there, and nothing is in it.
    Emptied,
    /// It cannot be read.
    Garbled,
    /// The run is told, and nothing of its revisions and Applications.
    Halved,
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
        let api = Api::of_process();
        let repository = tempfile::tempdir().expect("a directory");
        let second = tempfile::tempdir().expect("a directory");
        for directory in [&repository, &second] {
            git(directory.path(), &["init", "-q", "-b", "main"]);
        }
        let control = cluster(1).await;
        let member = cluster(2).await;
        for definition in api.definitions() {
            control.apply("test", &definition).await.expect("a definition");
        }
        for object in [project(), cluster_secret()] {
            control.apply("test", &object).await.expect("an object");
        }
        let clock = Clock::starting_at(EPOCH.parse().expect("a date"));
        let receiver = Receiver::new(clock.clone(), control.clone());
        Scene::start(api, [control, member], [repository, second], clock, receiver)
    }

    fn start(
        api: Api,
        [control, member]: [Cluster; 2],
        [repository, second]: [TempDir; 2],
        clock: Clock,
        receiver: Receiver,
    ) -> Scene {
        let wire = Wire::new(control.clone()).with_rights(move |call| api.refuses(call));
        let mut scene = Scene {
            control,
            member,
            api,
            wire,
            receiver,
            repository,
            second,
            clock,
            traces: channel().1,
            routers: BTreeMap::new(),
            sets: None,
            applications: None,
        };
        scene.start_sets();
        scene.start_applications();
        scene
    }

    /// Starts the ApplicationSet controller.
    pub(crate) fn start_sets(&mut self) {
        let (traces, told) = channel();
        self.traces = told;
        let clock = self.clock.clone();
        let settings = Settings { progressive_syncs: true, clock, traces, ..Settings::new(NAMESPACE) };
        let hosts = Hosts::new(baton_scm::Settings::default()).expect("usable settings");
        let wanted =
            baton_generators::Settings { argocd_namespace: NAMESPACE.to_owned(), ..Default::default() };
        let generators = Generators::new(self.repositories(), hosts, wanted);
        let client = Client::new(self.wire.clone(), NAMESPACE);
        let caller = Arc::new(self.receiver.clone());
        let controller = Controller::calling(client, settings, generators, caller).expect("usable settings");
        self.routers.insert("sets", controller.router());
        self.sets = Some(tokio::spawn(async move { drop(controller.run(std::future::pending()).await) }));
    }

    /// Drops the ApplicationSet controller where it stands. The Application controller goes on.
    pub(crate) async fn stop_sets(&mut self) {
        stop(self.sets.take()).await;
    }

    fn start_applications(&mut self) {
        let settings =
            ApplicationSettings { clock: self.clock.clone(), ..ApplicationSettings::new(NAMESPACE) };
        let tools = baton_manifests::Settings { helm: helm(), ..Default::default() };
        let manifests = Manifests::new(self.repositories(), tools);
        let client = Client::new(self.control.service(), NAMESPACE);
        let member = Arc::new(InProcess(self.member.clone()));
        let controller =
            ApplicationController::new(client, settings, manifests, member).expect("usable settings");
        self.routers.insert("applications", controller.router());
        let run = async move { drop(controller.run(std::future::pending()).await) };
        self.applications = Some(tokio::spawn(run));
    }

    /// Everything that is measured, as Prometheus reads it.
    pub(crate) async fn metrics(&self) -> String {
        let mut all = String::new();
        for router in self.routers.values() {
            let request = http::Request::get("/metrics").body(Body::empty()).expect("a request");
            let answer = router.clone().oneshot(request).await.expect("an answer");
            let text = answer.into_body().collect().await.expect("a body").to_bytes();
            all.push_str(std::str::from_utf8(&text).expect("UTF-8"));
        }
        all
    }

    fn repositories(&self) -> Repositories {
        Repositories::new(baton_source::Settings {
            local: BTreeMap::from([
                (REPOSITORY.to_owned(), self.repository.path().to_owned()),
                (SECOND.to_owned(), self.second.path().to_owned()),
            ]),
            revision_cache: Duration::ZERO,
            cache_dir: self.repository.path().join(".git").join("baton"),
            ..baton_source::Settings::default()
        })
    }

    /// Drops both controllers where they stand, as a crash would, and starts others.
    pub(crate) async fn crash(mut self) -> Scene {
        stop(self.sets.take()).await;
        stop(self.applications.take()).await;
        let repositories = [self.repository, self.second];
        Scene::start(self.api, [self.control, self.member], repositories, self.clock, self.receiver)
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

    /// Has the syncs of Applications take so long that something may come in between. The next commit holds it.
    pub(crate) fn slow_down(&self, names: &[&str]) {
        for name in names {
            self.write(&format!("{name}/hook.yaml"), Some(&HOOK.replace("slow", &format!("slow-{name}"))));
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
        let mut texts = self.head(set);
        let mut run: Value = serde_json::from_str(&texts["run"]).expect("a run");
        run["paused"] = json!(true);
        texts.insert("run".to_owned(), run.to_string());
        match self.api.allows_maps() {
            true => self.patch_map(&head_name(set), json!({ "data": texts })).await,
            false => self.annotate_set(set, ROLLOUT, Some(&json!(texts).to_string())).await,
        }
    }

    pub(crate) async fn patch_map(&self, name: &str, patch: Value) {
        let client = Client::new(self.control.service(), NAMESPACE);
        let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(client, NAMESPACE);
        let params = kube::api::PatchParams::default();
        maps.patch(name, &params, &kube::api::Patch::Merge(patch)).await.expect("a patch");
    }

    /// The texts of the head of a set's rollout, wherever it is kept; none where it is not.
    pub(crate) fn head(&self, set: &str) -> BTreeMap<String, String> {
        let map = objects(&self.control, "configmaps").remove(&head_name(set)).unwrap_or_default();
        let texts = match map["data"].is_null() {
            false => serde_json::from_value(map["data"].clone()).ok(),
            true => {
                let sets = objects(&self.control, "applicationsets.argoproj.io");
                let set = sets.get(set).unwrap_or(&Value::Null);
                serde_json::from_str(set["metadata"]["annotations"][ROLLOUT].as_str().unwrap_or_default())
                    .ok()
            }
        };
        texts.unwrap_or_default()
    }

    /// The run as the head tells it; null where it does not.
    pub(crate) fn run(&self, set: &str) -> Value {
        let head = self.head(set);
        head.get("run").and_then(|run| serde_json::from_str(run).ok()).unwrap_or_default()
    }

    /// The runs that heads told of since a revision, in the order written.
    pub(crate) fn runs_since(&self, revision: u64) -> Vec<(u64, Value)> {
        let history = self.control.store().history(revision);
        let run = |resource: &str, name: &str, object: &Value| {
            let text = match resource {
                "configmaps" if name.ends_with(".baton-rollout") => text(object, "/data/run"),
                "applicationsets.argoproj.io" => {
                    let head = object["metadata"]["annotations"][ROLLOUT].as_str().unwrap_or("{}");
                    text(&serde_json::from_str(head).unwrap_or_default(), "/run")
                }
                _ => return None,
            };
            serde_json::from_str::<Value>(&text).ok()
        };
        let of_event = |event: &Arc<baton_apiserver::store::Event>| {
            let key = &event.record.key;
            let object: Value = serde_json::from_slice(&event.record.json()).expect("JSON");
            Some((event.revision, run(&key.resource, &key.name, &object)?))
        };
        history.iter().filter(|event| event.revision > revision).filter_map(of_event).collect()
    }

    /// Does something to the head of a set's rollout that leaves it useless.
    pub(crate) async fn harm_head(&self, set: &str, harm: Harm) {
        let mut texts = self.head(set);
        assert!(!texts.is_empty(), "a head");
        match harm {
            Harm::Garbled => drop(texts.insert("run".to_owned(), "no longer JSON".to_owned())),
            Harm::Halved => texts.retain(|key, _| key == "run"),
            Harm::Lost | Harm::Emptied => texts.clear(),
        }
        if !self.api.allows_maps() {
            let garbled = json!(texts).to_string();
            let text = match harm {
                Harm::Lost => None,
                Harm::Emptied => Some(""),
                Harm::Garbled | Harm::Halved => Some(garbled.as_str()),
            };
            return self.annotate_set(set, ROLLOUT, text).await;
        }
        let name = head_name(set);
        if harm == Harm::Lost {
            self.control.delete_object("v1", "ConfigMap", NAMESPACE, &name).await.expect("a deletion");
            return;
        }
        let data = self.head(set).into_keys().map(|key| (key.clone(), texts.remove(&key)));
        let data: BTreeMap<String, Option<String>> = data.collect();
        self.patch_map(&name, json!({ "data": data })).await;
    }

    /// Waits until something is true of the whole scene.
    pub(crate) async fn until(&self, what: &str, hoped: impl Fn(&Scene) -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !hoped(self) {
            if tokio::time::Instant::now() >= deadline {
                let sets = objects(&self.control, "applicationsets.argoproj.io").into_keys();
                let rollout = Value::from_iter(sets.map(|set| self.rollout(&set)));
                let applications: Vec<String> =
                    self.applications().values().map(|one| format!("{:#}", one["status"]["sync"])).collect();
                let phases = Value::from_iter(
                    objects(&self.control, "applicationsets.argoproj.io")
                        .into_values()
                        .map(|set| set["status"]["phases"].clone()),
                );
                panic!("in vain: {what}\n{rollout:#}\n{phases}\n{}", applications.join("\n"));
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
        text(&self.rollout("fleet"), "/state")
    }

    /// What people are told of a set's rollout: `status.rollout`, or where the API does not keep that, the same as far as
    /// conditions, `status.applicationStatus` and the head tell it.
    pub(crate) fn rollout(&self, set: &str) -> Value {
        match self.api.keeps_summary() {
            true => self.set(set)["status"]["rollout"].clone(),
            false => self.told(set),
        }
    }

    fn told(&self, set: &str) -> Value {
        let status = self.set(set)["status"].clone();
        assert!(status["rollout"].is_null(), "it is not kept");
        let run = self.run(set);
        let list = |field: &str| status[field].as_array().cloned().unwrap_or_default();
        let conditions = list("conditions");
        let condition = conditions.iter().find(|condition| condition["type"] == "RolloutProgressing");
        let condition = condition.cloned().unwrap_or_default();
        let message = text(&condition, "/message");
        let (_, notes) = message.split_once("; ").unwrap_or_default();
        // What is said of the whole comes first, then what is said of Applications.
        let mut blockers: Vec<Value> = Vec::new();
        for note in notes.split("; ").filter(|note| !note.is_empty()) {
            match (blocker(note, ""), blockers.last_mut()) {
                (Some(blocker), _) => blockers.push(blocker),
                (None, Some(last)) => last["message"] = format!("{}; {note}", text(last, "/message")).into(),
                (None, None) => {}
            }
        }
        let entries = list("applicationStatus");
        let said = |entry: &Value| blocker(&text(entry, "/message"), &text(entry, "/application"));
        let mut own: Vec<Value> = entries.iter().filter_map(said).collect();
        own.sort_by_key(|blocker| {
            ["WaitingForStep", "WaitingForSlot"].contains(&text(blocker, "/reason").as_str())
        });
        blockers.extend(own);
        // Of each reason the first is told.
        let mut reasons: BTreeSet<String> = BTreeSet::new();
        blockers.retain(|blocker| reasons.insert(text(blocker, "/reason")));
        let has = |reason: &str| blockers.iter().any(|blocker| blocker["reason"] == reason);
        let state = match () {
            () if has("Paused") => "Paused",
            () if has("Aborted") => "Aborted",
            () if notes.is_empty() && condition["status"] == "False" && !run["finished"].is_null() => {
                "Complete"
            }
            () => "Progressing",
        };
        let steps = run["open"].as_u64().unwrap_or(0);
        let done = |step: u64| {
            let of_step = entries.iter().filter(|entry| text(entry, "/step") == (step + 1).to_string());
            of_step.filter(|entry| entry["status"] == "Healthy").count()
        };
        json!({
            "run": run["seq"], "step": run["open"], "state": state, "message": notes, "blockers": blockers,
            "steps": (0..steps).map(|step| json!({"done": done(step)})).collect::<Vec<_>>(),
            "revisions": [{"revision": entries.first().map(|entry| entry["targetRevisions"][0].clone())}],
        })
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

async fn stop(task: Option<JoinHandle<()>>) {
    if let Some(task) = task {
        task.abort();
        let _ = task.await;
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

/// Name of the ConfigMap that holds the head of a set's rollout.
pub(crate) fn head_name(set: &str) -> String {
    format!("{set}.baton-rollout")
}

/// What a line tells to be waited for, if it does.
fn blocker(line: &str, object: &str) -> Option<Value> {
    let (reason, message) = line.split_once(": ")?;
    Reason::named(reason)?;
    Some(json!({"reason": reason, "object": object, "message": message}))
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
