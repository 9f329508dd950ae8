//! What people do to a world, and what befalls its members.

use baton_apiserver::Cluster;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::fleet::{Element, Fleet, NAMESPACE, SET, TARGET_NAMESPACE};
use crate::repository::BRANCH;
use crate::scenario::Action;
use crate::world::World;

/// Who writes for people.
pub(crate) const PERSON: &str = "person";

/// People with a fleet in mind.
pub(crate) struct People<'w> {
    world: &'w World,
    pub(crate) fleet: Fleet,
    /// The commit that was pushed last.
    pub(crate) pushed: usize,
    pub(crate) deleted: bool,
}

impl<'w> People<'w> {
    pub(crate) fn new(world: &'w World, fleet: Fleet) -> People<'w> {
        People { world, fleet, pushed: 0, deleted: false }
    }

    /// Applies the set as it is wanted now.
    pub(crate) async fn apply(&self) {
        if !self.deleted {
            // A set that is going refuses nothing that is written here.
            let _ = self.world.control.apply(PERSON, &self.fleet.object()).await;
        }
    }

    pub(crate) async fn act(&mut self, action: &Action) {
        match action {
            Action::Push { noticed } => {
                self.pushed += 1;
                self.world.repository.push(self.pushed).expect("a repository that can be written");
                for app in noticed {
                    self.refresh(app).await;
                }
                return;
            }
            Action::Variant => self.fleet.variant = 1 - self.fleet.variant,
            Action::Option => self.fleet.option = !self.fleet.option,
            Action::Relabel { app, tier } => {
                if let Some(element) = self.fleet.elements.get_mut(app) {
                    element.tier = *tier;
                }
            }
            Action::Join { app, tier } => {
                let member = self.world.members.keys().next().copied().unwrap_or_default().to_owned();
                self.fleet.elements.insert(app.clone(), Element { tier: *tier, member });
            }
            Action::Leave { app } => drop(self.fleet.elements.remove(app)),
            Action::Pause => self.fleet.paused = true,
            Action::Resume => self.fleet.paused = false,
            Action::Strategy { steps } => self.fleet.steps.clone_from(steps),
            Action::DeletionOrder(order) => self.fleet.deletion = order.clone(),
            Action::Flap { app } => return self.flap(app).await,
            Action::SyncByHand => return self.sync_by_hand().await,
            Action::Approve => return self.approve().await,
            Action::DeleteSet { cascade } => {
                self.deleted = true;
                let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applicationsets/{SET}");
                let options =
                    json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": cascade});
                request(&self.world.control, Method::DELETE, &path, &options).await;
                return;
            }
        }
        self.apply().await;
    }

    async fn refresh(&self, app: &str) {
        let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
        self.patch(app, &patch).await;
    }

    async fn flap(&self, app: &str) {
        for cluster in self.world.members.values() {
            for pod in World::objects(cluster, "pods").keys().filter(|pod| is_of(pod, app)) {
                let path = format!("/api/v1/namespaces/{TARGET_NAMESPACE}/pods/{pod}");
                request(cluster, Method::DELETE, &path, &Value::Null).await;
            }
        }
    }

    /// Syncs what differs and nobody syncs.
    pub(crate) async fn sync_by_hand(&self) {
        let held: Vec<String> = self
            .fleet
            .steps
            .iter()
            .filter(|step| step.max_update == Some(json!(0)))
            .map(|step| format!("t{}", step.tier))
            .collect();
        for (name, app) in World::objects(&self.world.control, "applications.argoproj.io") {
            let tier = app.pointer("/metadata/labels/tier").and_then(Value::as_str).unwrap_or_default();
            let differs = app.pointer("/status/sync/status").and_then(Value::as_str) == Some("OutOfSync");
            let busy = app.get("operation").is_some_and(|operation| !operation.is_null());
            if differs && !busy && held.iter().any(|held| held == tier) {
                self.world.air.count("sync by hand");
                let sync = json!({"revision": BRANCH, "prune": true});
                let operation = json!({"operation": {"sync": sync, "initiatedBy": {"username": "someone"}}});
                self.patch(&name, &operation).await;
            }
        }
    }

    /// Approves every deletion of the Applications that wait for it.
    pub(crate) async fn approve(&self) {
        let now = self.world.control.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        for (name, app) in World::objects(&self.world.control, "applications.argoproj.io") {
            let state = &app["status"]["operationState"];
            let runs = matches!(state["phase"].as_str(), Some("Running" | "Terminating"));
            let since = if runs { &state["startedAt"] } else { &app["metadata"]["deletionTimestamp"] };
            let given = app.pointer("/metadata/annotations/argocd.argoproj.io~1deletion-approved");
            // Times of one form and zone: the later is the greater.
            let waits = since.is_string() && given.and_then(Value::as_str) < since.as_str();
            if waits {
                let patch =
                    json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}});
                self.patch(&name, &patch).await;
            }
        }
    }

    async fn patch(&self, app: &str, patch: &Value) {
        let path = format!(
            "/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications/{app}?fieldManager={PERSON}"
        );
        request(&self.world.control, Method::PATCH, &path, patch).await;
    }
}

fn is_of(pod: &str, app: &str) -> bool {
    pod.strip_prefix(app).is_some_and(|rest| rest.starts_with('-'))
}

/// A request without faults; what it is about may be gone.
async fn request(cluster: &Cluster, method: Method, path: &str, body: &Value) -> StatusCode {
    let kind = match method == Method::PATCH {
        true => "application/merge-patch+json",
        false => "application/json",
    };
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    match request.body(Full::new(body)) {
        Ok(request) => cluster.handle(request).await.status(),
        Err(_) => StatusCode::BAD_REQUEST,
    }
}
