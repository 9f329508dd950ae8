//! Applications go in their order, whoever asks for it and however, or they do not go.

mod cascade;
mod fuse;
mod guard;
mod invalid;
mod mishaps;
mod order;
mod rolling;
mod stuck;

use std::collections::{BTreeMap, BTreeSet};

use baton_apiserver::store::Change;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::scene::{NAMESPACE, Scene};

const APPLICATIONS: &str = "applications.argoproj.io";

/// The three services of the proposal, under a `RollingSync` of config, db and frontend.
fn pricelist(deletion: Value) -> Value {
    pricelist_of(&["config", "db", "frontend"], deletion)
}

fn pricelist_of(services: &[&str], deletion: Value) -> Value {
    let elements: Vec<Value> = services
        .iter()
        .map(|srv| json!({"srv": srv, "path": format!("applicationsets/rollingsync/apps/pricelist-{srv}")}))
        .collect();
    let mut strategy = json!({
        "type": "RollingSync",
        "rollingSync": {"steps": [step(&["config"]), step(&["db"]), step(&["frontend"])]},
    });
    for (key, value) in deletion.as_object().expect("fields") {
        strategy[key] = value.clone();
    }
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "pricelist", "namespace": NAMESPACE},
        "spec": {
            "generators": [{"list": {"elements": elements}}],
            "strategy": strategy,
            "template": {
                "metadata": {"name": "pricelist-{{srv}}", "labels": {"pricelist-component": "{{srv}}"}},
                "spec": {
                    "project": "default",
                    "syncPolicy": {
                        "automated": {"prune": true, "selfHeal": true},
                        "retry": {"limit": 5, "backoff": {"duration": "5s", "maxDuration": "3m0s", "factor": 2}},
                    },
                    "source": {
                        "repoURL": "https://github.com/christianh814/gitops-examples", "targetRevision": "main", "path": "{{path}}",
                    },
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "pricelist"},
                },
            },
        },
    })
}

fn step(values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": "pricelist-component", "operator": "In", "values": values}]})
}

fn reverse() -> Value {
    json!({"deletionOrder": "Reverse"})
}

fn custom() -> Value {
    let steps = [step(&["config"]), step(&["frontend"]), step(&["db"])];
    json!({"deletionOrder": "Custom", "deletionSync": {"steps": steps}})
}

impl Scene {
    /// Deletes the set as `kubectl delete --cascade=…` does.
    async fn delete_set(&self, name: &str, policy: &str) {
        self.ask_to_delete_set(name, policy).await;
        self.settle().await;
    }

    /// The same while no controller runs: only the garbage collector acts.
    async fn delete_set_unseen(&self, policy: &str) {
        self.ask_to_delete_set("pricelist", policy).await;
        let mut revision = 0;
        while revision != self.revision() {
            revision = self.revision();
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    }

    async fn ask_to_delete_set(&self, name: &str, policy: &str) {
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applicationsets/{name}");
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        let request = Request::builder()
            .method(Method::DELETE)
            .uri(path)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("a request");
        let answer = self.cluster.handle(request).await;
        assert!(answer.status().is_success(), "{}", answer.status());
        drop(answer.into_body().collect().await);
    }

    /// Plays the application controller, which has deleted what the Application deployed.
    async fn let_application_go(&self, name: &str) {
        self.merge(APPLICATIONS, name, json!({"metadata": {"finalizers": null}})).await;
        self.settle().await;
    }

    /// A merge patch by somebody else.
    async fn merge(&self, resource: &str, name: &str, patch: Value) -> Value {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let root = if group.is_empty() { "api/v1".to_owned() } else { format!("apis/{group}/v1alpha1") };
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("/{root}/namespaces/{NAMESPACE}/{plural}/{name}"))
            .header("content-type", "application/merge-patch+json")
            .body(Full::new(Bytes::from(patch.to_string())))
            .expect("a request");
        let answer = self.cluster.handle(request).await;
        let status = answer.status();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Names of Applications that are being deleted.
    fn terminating(&self) -> Vec<String> {
        let dying = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
        self.applications().into_iter().filter(|(_, object)| dying(object)).map(|(name, _)| name).collect()
    }

    fn has_set(&self, name: &str) -> bool {
        self.objects("applicationsets.argoproj.io").contains_key(name)
    }

    /// Names of the set's guard and witness, as far as they are there.
    fn maps(&self) -> Vec<String> {
        let all = self.objects("configmaps").into_keys();
        all.filter(|name| name.ends_with(".baton-rollout") || name.ends_with(".baton-witness")).collect()
    }

    /// Applications in the order in which their deletion began, whoever asked for it, the garbage collector included.
    ///
    /// # Panics
    /// If one began while another with a lower place was there (I3).
    fn went_in_order(&self, place: impl Fn(&Value) -> usize) -> Vec<String> {
        self.went_in_order_since(0, place)
    }

    /// The same for a part of the history, at whose beginning there was no Application.
    fn went_in_order_since(&self, revision: u64, place: impl Fn(&Value) -> usize) -> Vec<String> {
        let mut there: BTreeMap<String, Value> = BTreeMap::new();
        let mut going: BTreeSet<String> = BTreeSet::new();
        let mut began = Vec::new();
        let history = self.cluster.store().history(revision);
        let new = history.iter().filter(|event| event.revision > revision);
        for event in new.filter(|event| &*event.record.key.resource == APPLICATIONS) {
            let name = event.record.key.name.to_string();
            let object: Value = serde_json::from_slice(&event.record.json()).expect("JSON");
            let marked = object.pointer("/metadata/deletionTimestamp").is_some();
            let gone = matches!(event.change, Change::Deleted);
            if (marked || gone) && going.insert(name.clone()) {
                let own = place(&object);
                for (other, found) in there.iter().filter(|(other, _)| **other != name) {
                    assert!(place(found) >= own, "{name} goes while {other} is there");
                }
                began.push(name.clone());
            }
            match gone {
                true => drop((there.remove(&name), going.remove(&name))),
                false => drop(there.insert(name, object)),
            }
        }
        began
    }
}

/// The place of a service in an order.
fn by_component(order: &'static [&'static str]) -> impl Fn(&Value) -> usize {
    move |object| {
        let component = object.pointer("/metadata/labels/pricelist-component").and_then(Value::as_str);
        let place = component.and_then(|component| order.iter().position(|name| *name == component));
        place.unwrap_or(order.len())
    }
}
