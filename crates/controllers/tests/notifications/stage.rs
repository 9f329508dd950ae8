//! An API with the objects of a test, and controllers that can be started, crashed and stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_apiserver::{Cluster, Options};
use baton_controllers::{Clock, NotificationController, NotificationSettings};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::faults::Wire;
use crate::letterbox::Letterbox;
use crate::scene::{NAMESPACE, objects, text};

const EPOCH: &str = "2026-01-01T00:00:00Z";
/// Virtual time after which a test's hope is given up.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Services and a trigger that most tests do with.
pub(crate) const PLAIN: &[(&str, &str)] = &[
    ("service.webhook.ops", "url: https://ops.example/hook\nheaders: [{name: X-Token, value: $token}]"),
    ("service.slack", "token: $token"),
    ("template.degraded", "message: '{{ .app.metadata.name }} is degraded in {{ .recipient }}'"),
    ("trigger.on-degraded", "- when: app.status?.health?.status == 'Degraded'\n  send: [degraded]"),
];

/// The canary in the Secret: nothing that people see may hold it.
pub(crate) const CANARY: &str = "canary-0451";

/// An API, and whom its letters reach.
pub(crate) struct Stage {
    pub(crate) control: Cluster,
    pub(crate) letters: Arc<Letterbox>,
    clock: Clock,
}

/// A controller that runs.
pub(crate) struct Running {
    pub(crate) controller: NotificationController,
    pub(crate) wire: Wire,
    pub(crate) task: JoinHandle<Result<(), String>>,
    stop: tokio::sync::oneshot::Sender<()>,
}

impl Stage {
    /// An API of its own with this configuration.
    pub(crate) async fn new(configuration: &[(&str, &str)]) -> Stage {
        Stage::with(Letterbox::default(), configuration).await
    }

    pub(crate) async fn with(letters: Letterbox, configuration: &[(&str, &str)]) -> Stage {
        let clock = baton_apiserver::Clock::starting_at(EPOCH.parse().expect("a date"));
        let control = Cluster::memory(Options { clock, seed: Some(7), ..Options::default() });
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        control.apply("test", &namespace).await.expect("a namespace");
        for kind in ["Application", "AppProject"] {
            control.apply("test", &definition(kind)).await.expect("a definition");
        }
        Stage::over(control, letters, configuration).await
    }

    /// The API of somebody else, with this configuration.
    pub(crate) async fn over(control: Cluster, letters: Letterbox, configuration: &[(&str, &str)]) -> Stage {
        control.apply("test", &definition("ApplicationSet")).await.expect("a definition");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "argocd-notifications-secret", "namespace": NAMESPACE},
            "stringData": {"token": CANARY},
        });
        control.apply("test", &secret).await.expect("a Secret");
        let clock = Clock::starting_at(control.now());
        let stage = Stage { control, letters: Arc::new(letters), clock };
        stage.configure(configuration).await;
        stage
    }

    /// Makes this the configuration.
    pub(crate) async fn configure(&self, data: &[(&str, &str)]) {
        let data: BTreeMap<&str, &str> = data.iter().copied().collect();
        self.apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "argocd-notifications-cm", "namespace": NAMESPACE}, "data": data,
        }))
        .await;
    }

    pub(crate) async fn apply(&self, object: Value) {
        self.control.apply("test", &object).await.expect("an object the API takes");
    }

    /// A controller with the usual settings, running.
    pub(crate) fn run(&self) -> Running {
        self.run_with(|_| {})
    }

    pub(crate) fn run_with(&self, change: impl FnOnce(&mut NotificationSettings)) -> Running {
        let wire = Wire::new(self.control.clone());
        let clock = self.clock.clone();
        let mut settings = NotificationSettings { clock, ..NotificationSettings::new(NAMESPACE) };
        change(&mut settings);
        let client = Client::new(wire.clone(), NAMESPACE);
        let controller = NotificationController::sending(client, settings, self.letters.clone());
        let controller = controller.expect("usable settings");
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let running = controller.clone();
        let task = tokio::spawn(async move {
            running.run(async { drop(stopped.await) }).await.map_err(|error| error.to_string())
        });
        Running { controller, wire, task, stop }
    }

    /// Applies an Application with this status.
    pub(crate) async fn application(&self, name: &str, annotations: Value, status: Value) {
        self.apply(application(name, annotations)).await;
        self.status("applications", name, status).await;
    }

    /// Merges into the status of an object, as a controller does.
    pub(crate) async fn status(&self, plural: &str, name: &str, status: Value) {
        self.patch(plural, name, json!({"status": status})).await;
    }

    pub(crate) async fn patch(&self, plural: &str, name: &str, patch: Value) {
        let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Any");
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let client = Client::new(self.control.service(), NAMESPACE);
        let api: kube::Api<DynamicObject> = kube::Api::namespaced_with(client, NAMESPACE, &resource);
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.expect("a patch the API takes");
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let deleted = self.control.delete_object("argoproj.io/v1alpha1", kind, NAMESPACE, name).await;
        deleted.expect("a deletion");
    }

    /// Waits until so many letters have arrived, and tells them.
    pub(crate) async fn arrived(&self, count: usize) -> Vec<String> {
        let hoped = || self.letters.arrived().len() >= count;
        self.until(&format!("{count} letters: {:?}", self.letters.arrived()), hoped).await;
        self.letters.arrived()
    }

    pub(crate) async fn until(&self, what: &str, hoped: impl Fn() -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !hoped() {
            assert!(tokio::time::Instant::now() < deadline, "in vain: {what}; {:?}", self.events());
            pass(Duration::from_millis(50)).await;
        }
    }

    /// Events as `kind name reason: message`.
    pub(crate) fn events(&self) -> Vec<String> {
        let line = |event: Value| {
            let part = |pointer: &str| text(&event, pointer);
            let (kind, name) = (part("/involvedObject/kind"), part("/involvedObject/name"));
            format!("{kind} {name} {}: {}", part("/reason"), part("/message"))
        };
        objects(&self.control, "events").into_values().map(line).collect()
    }

    /// Names of the Secrets that hold outboxes.
    pub(crate) fn outboxes(&self) -> Vec<String> {
        objects(&self.control, "secrets")
            .into_keys()
            .filter(|name| name.starts_with("baton-outbox-"))
            .collect()
    }

    /// What an Application says it has been told of.
    pub(crate) fn notified(&self, name: &str) -> Vec<String> {
        let applications = objects(&self.control, "applications.argoproj.io");
        let noted = applications[name].pointer("/metadata/annotations/notified.notifications.argoproj.io");
        let noted = noted.and_then(Value::as_str).unwrap_or("{}");
        let noted: BTreeMap<String, i64> = serde_json::from_str(noted).expect("a map");
        noted.into_keys().collect()
    }
}

impl Running {
    /// Ends it as a kill does.
    pub(crate) async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        assert_eq!(self.task.await.expect("the controller does not panic"), Ok(()));
    }
}

/// Lets time go by.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

pub(crate) fn application(name: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
        "spec": {"project": "default"},
    })
}

/// The status of an Application with this health.
pub(crate) fn health(status: &str) -> Value {
    json!({"health": {"status": status}})
}

/// A kind without its schema, whose reading would take most of a test's time.
fn definition(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let version = json!({
        "name": "v1alpha1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.argoproj.io")},
        "spec": {
            "group": "argoproj.io", "scope": "Namespaced", "versions": [version],
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
        },
    })
}
