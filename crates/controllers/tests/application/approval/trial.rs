//! A scene whose every write is judged, and the hands of its people.

use std::time::Duration;

use serde_json::{Value, json};

use super::journal::Journal;
use super::judge::{Scope, violations};
use crate::scene::{NAMESPACE, Scene, application, config_map, text};

pub(super) const APPROVED: &str = "argocd.argoproj.io/deletion-approved";
pub(super) const OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// Long enough for several looks that nothing but time asks for.
pub(super) const A_WHILE: Duration = Duration::from_secs(400);

/// A scene under watch.
pub(super) struct Trial {
    pub(super) scene: Scene,
    pub(super) journal: Journal,
    scope: Scope,
    by_people: Vec<&'static str>,
}

impl Trial {
    pub(super) async fn new() -> Trial {
        Trial::over(Scene::new().await, Scope::Operation)
    }

    /// With approval asked for wave by wave.
    pub(super) async fn by_wave() -> Trial {
        Trial::over(Scene::with(|settings| settings.approval_by_wave = true, &[]).await, Scope::Wave)
    }

    fn over(scene: Scene, scope: Scope) -> Trial {
        let journal = Journal::of(&scene);
        Trial { scene, journal, scope, by_people: Vec::new() }
    }

    /// With the Application `app` of these files deployed a while ago.
    pub(super) async fn deployed(files: &[(&str, &str)]) -> Trial {
        let trial = Trial::new().await;
        trial.deploy(by_hand("app"), files).await;
        trial
    }

    /// Deploys an Application of these files and lets a while pass.
    pub(super) async fn deploy(&self, application: Value, files: &[(&str, &str)]) {
        self.scene.commit(files);
        let name = text(&application, "/metadata/name");
        self.scene.apply(application).await;
        self.sync(&name).await;
    }

    /// Syncs an Application and lets a while pass.
    pub(super) async fn sync(&self, name: &str) {
        let options = json!(["CreateNamespace=true"]);
        self.scene.patch(name, json!({"operation": {"sync": {"syncOptions": options}}})).await;
        let (phase, message) = self.scene.ended(name).await;
        assert_eq!(phase, "Succeeded", "{message}");
        self.pass(A_WHILE).await;
    }

    pub(super) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Takes files out of git.
    pub(super) fn drop_files(&self, paths: &[&str]) {
        for path in paths {
            self.scene.remove(path);
        }
    }

    /// Begins a sync of `app` that prunes, and gives its start once it runs.
    pub(super) async fn prune(&self, more: Value) -> String {
        let before = self.scene.find("app").map(|app| text(&app, "/status/operationState/startedAt"));
        let mut sync = json!({"prune": true});
        for (name, value) in more.as_object().into_iter().flatten() {
            sync[name] = value.clone();
        }
        self.scene.patch("app", json!({"operation": {"sync": sync}})).await;
        let started = |app: &Value| text(app, "/status/operationState/startedAt");
        let running = self.scene.until("app", |app| Some(started(app)) != before && !started(app).is_empty());
        started(&running.await)
    }

    /// Waits until the sync of `app` asks for approval of this, sees it still do so a while later, and gives `app`.
    pub(super) async fn asks_for(&self, what: &str) -> Value {
        let words = format!("waiting for pruning confirmation of {what}");
        let asks = |app: &Value| text(app, "/status/operationState/message") == words;
        self.scene.until("app", asks).await;
        self.pass(A_WHILE).await;
        let app = self.scene.application("app");
        assert!(asks(&app), "it no longer waits: {app:#?}");
        assert_eq!(text(&app, "/status/operationState/phase"), "Running");
        app
    }

    /// The sync of `app` ends well.
    pub(super) async fn succeeds(&self) {
        let (phase, message) = self.scene.ended("app").await;
        assert_eq!(phase, "Succeeded", "{message}");
    }

    pub(super) fn now(&self) -> jiff::Timestamp {
        self.scene.control.now()
    }

    /// Approves everything of the running operation, in these words.
    pub(super) async fn approve_all(&self, application: &str, words: &str) {
        self.scene.patch(application, json!({"metadata": {"annotations": {APPROVED: words}}})).await;
    }

    pub(super) async fn approve_all_now(&self) {
        self.approve_all("app", &self.now().to_string()).await;
    }

    pub(super) async fn take_back_all(&self) {
        self.scene.patch("app", json!({"metadata": {"annotations": {APPROVED: null}}})).await;
    }

    /// A person writes annotations on a ConfigMap of namespace `demo`, and takes back all they wrote before.
    pub(super) async fn annotate(&self, name: &str, annotations: Value) {
        self.annotate_in("demo", name, annotations).await;
    }

    pub(super) async fn annotate_in(&self, namespace: &str, name: &str, annotations: Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        });
        self.scene.member("east").apply("person", &object).await.expect("an annotation");
    }

    pub(super) async fn approve(&self, name: &str) {
        self.annotate(name, json!({APPROVED: "true"})).await;
    }

    /// A person deletes a ConfigMap themselves.
    pub(super) async fn delete_by_hand(&mut self, name: &'static str) {
        self.by_people.push(name);
        let deleted = self.scene.member("east").delete_object("v1", "ConfigMap", "demo", name).await;
        deleted.expect("a deletion");
    }

    /// Deletes an Application.
    pub(super) async fn delete(&self, name: &str) {
        let version = "argoproj.io/v1alpha1";
        let deleted = self.scene.control.delete_object(version, "Application", NAMESPACE, name).await;
        deleted.expect("a deletion");
    }

    pub(super) async fn is_gone(&self, name: &str) {
        self.scene.until_all("the Application is gone", |scene| scene.find(name).is_none()).await;
    }

    pub(super) async fn crash(self) -> Trial {
        Trial { scene: self.scene.crash().await, ..self }
    }

    /// Whether the ConfigMap is there and not going.
    pub(super) fn has(&self, name: &str) -> bool {
        let found = self.scene.object("east", "configmaps", name);
        found.is_some_and(|found| found.pointer("/metadata/deletionTimestamp").is_none())
    }

    /// The names of these ConfigMaps that are there.
    pub(super) fn left<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        names.iter().copied().filter(|name| self.has(name)).collect()
    }

    /// Judges everything that happened.
    pub(super) async fn judge(&self) {
        let found = violations(&self.journal.entries().await, &self.by_people, self.scope);
        assert_eq!(found, [] as [String; 0]);
    }
}

/// An Application of the directory of its name that nobody syncs by itself.
pub(super) fn by_hand(name: &str) -> Value {
    let mut wanted = application(name, name, "east");
    wanted["spec"]["syncPolicy"] = json!({"syncOptions": ["CreateNamespace=true"]});
    wanted
}

pub(super) fn finalized(mut application: Value) -> Value {
    application["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    application
}

/// The Application with these sync options of its own.
pub(super) fn with_options(mut application: Value, options: &[&str]) -> Value {
    application["spec"]["syncPolicy"]["syncOptions"] = json!(options);
    application
}

pub(super) fn plain(name: &str) -> String {
    config_map(name, "a", "b", "")
}

/// A ConfigMap with sync options.
pub(super) fn with(name: &str, options: &str) -> String {
    config_map(name, "a", "b", &format!("{OPTIONS}: \"{options}\""))
}

pub(super) fn guarded(name: &str) -> String {
    with(name, "Prune=confirm")
}
