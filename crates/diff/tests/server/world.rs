//! A namespace on a server, and the words to write to it and to judge what is there.

use baton_diff::{Difference, Quick, Rules, compare, prepare, quick};
use http::Request;
use kube::{Client, Config, config::KubeConfigOptions, config::Kubeconfig};
use serde_json::{Value, json};

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Our field manager.
pub(crate) const OURS: &str = "argocd-controller";

pub(crate) struct World {
    client: Client,
    pub(crate) namespace: String,
}

impl World {
    pub(crate) async fn new() -> World {
        let client = match std::env::var_os("BATON_TEST_KUBECONFIG") {
            Some(path) => {
                // Whoever comes second finds it installed.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let file = Kubeconfig::read_from(path).expect("a kubeconfig");
                let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
                Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
            }
            None => {
                // Workloads stay as written: only what the tests do changes an object.
                let options = baton_apiserver::Options { workloads: None, ..Default::default() };
                Client::new(baton_apiserver::Cluster::memory(options).service(), "default")
            }
        };
        let mut world = World { client, namespace: String::new() };
        let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "diff-"}});
        let made = world.call("POST", "/api/v1/namespaces", "application/json", &wanted).await;
        world.namespace = made["metadata"]["name"].as_str().expect("a name").to_owned();
        world
    }

    /// Applies a target as a sync does.
    pub(crate) async fn sync(&self, target: &Value) -> Value {
        let path = format!("{}?fieldManager={OURS}&force=true", self.path(target));
        self.call("PATCH", &path, APPLY, &prepare(target)).await
    }

    /// Applies a definition and asks for its kind until that is served.
    pub(crate) async fn install(&self, definition: &Value) {
        self.sync(definition).await;
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let (group, version) = (text(&spec["group"]), text(&spec["versions"][0]["name"]));
        let path = format!("/apis/{group}/{version}/{}", text(&spec["names"]["plural"]));
        let ask = || Request::get(&path).body(Vec::new()).expect("a request");
        while self.client.request::<Value>(ask()).await.is_err() {}
    }

    /// Applies as somebody else.
    pub(crate) async fn apply_as(&self, manager: &str, object: &Value) -> Value {
        let path = format!("{}?fieldManager={manager}&force=true", self.path(object));
        self.call("PATCH", &path, APPLY, object).await
    }

    /// Creates as somebody.
    pub(crate) async fn create_as(&self, manager: &str, object: &Value) -> Value {
        let path = self.path(object);
        let (collection, _) = path.rsplit_once('/').expect("a path");
        self.call("POST", &format!("{collection}?fieldManager={manager}"), "application/json", object).await
    }

    /// Replaces as somebody.
    pub(crate) async fn replace_as(&self, manager: &str, object: &Value) -> Value {
        let path = format!("{}?fieldManager={manager}", self.path(object));
        self.call("PUT", &path, "application/json", object).await
    }

    /// Patches as somebody.
    pub(crate) async fn patch_as(&self, manager: &str, object: &Value, how: &str, patch: &Value) -> Value {
        let path = format!("{}?fieldManager={manager}", self.path(object));
        self.call("PATCH", &path, how, patch).await
    }

    pub(crate) async fn predict(&self, target: &Value) -> Value {
        let path = format!("{}?fieldManager={OURS}&force=true&dryRun=All", self.path(target));
        self.call("PATCH", &path, APPLY, &prepare(target)).await
    }

    pub(crate) async fn live(&self, object: &Value) -> Value {
        self.call("GET", &self.path(object), "application/json", &Value::Null).await
    }

    /// The verdict about an object; the shortcut must not contradict it.
    pub(crate) async fn judge(&self, target: &Value) -> Difference {
        self.judge_by(target, &Rules::default()).await
    }

    pub(crate) async fn judge_by(&self, target: &Value, rules: &Rules) -> Difference {
        let (predicted, live) = self.predict_and_live(target).await;
        let target = prepare(target);
        let difference = compare(&target, &predicted, &live, rules, false);
        assert_eq!(difference.modified, difference.live != difference.predicted);
        if quick(&target, &live, rules) == Quick::Same {
            assert!(!difference.modified, "the shortcut says they are the same: {difference:#?}");
        }
        difference
    }

    /// Both of the same state: controllers of a real cluster write in between.
    async fn predict_and_live(&self, target: &Value) -> (Value, Value) {
        loop {
            let (live, predicted) = (self.live(target).await, self.predict(target).await);
            if self.live(target).await == live {
                return (predicted, live);
            }
        }
    }

    /// Whether the shortcut needs no dry run.
    pub(crate) async fn is_quick(&self, target: &Value, rules: &Rules) -> bool {
        quick(&prepare(target), &self.live(target).await, rules) == Quick::Same
    }

    fn path(&self, object: &Value) -> String {
        let version = object["apiVersion"].as_str().expect("a version");
        let root = if version.contains('/') { "/apis" } else { "/api" };
        let (plural, namespaced) = match object["kind"].as_str().expect("a kind") {
            "ClusterRole" => ("clusterroles", false),
            "CustomResourceDefinition" => ("customresourcedefinitions", false),
            "Ingress" => ("ingresses", true),
            "NetworkPolicy" => ("networkpolicies", true),
            kind => (&*format!("{}s", kind.to_lowercase()), true),
        };
        let name = object["metadata"]["name"].as_str().expect("a name");
        match namespaced {
            true => format!("{root}/{version}/namespaces/{}/{plural}/{name}", self.namespace),
            false => format!("{root}/{version}/{plural}/{name}"),
        }
    }

    /// The code of the refusal of a JSON patch.
    pub(crate) async fn refusal(&self, manager: &str, object: &Value, patch: &Value) -> u16 {
        let path = format!("{}?fieldManager={manager}", self.path(object));
        match self.send("PATCH", &path, JSON_PATCH, patch).await {
            Err(kube::Error::Api(status)) => status.code,
            other => panic!("PATCH {path}: {other:?}"),
        }
    }

    async fn call(&self, method: &str, path: &str, kind: &str, body: &Value) -> Value {
        let answer = self.send(method, path, kind, body).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> Result<Value, kube::Error> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", kind).body(body);
        self.client.request::<Value>(request.expect("a request")).await
    }
}

/// Changes of an object as a verdict shows them: each place that differs, with what is there and what would be.
pub(crate) fn changes(difference: &Difference) -> Vec<String> {
    let mut found = Vec::new();
    walk(&difference.live, &difference.predicted, String::new(), &mut found);
    found
}

fn walk(live: &Value, predicted: &Value, place: String, found: &mut Vec<String>) {
    match (live, predicted) {
        (Value::Object(live), Value::Object(predicted)) => {
            let names: std::collections::BTreeSet<&String> = live.keys().chain(predicted.keys()).collect();
            for name in names {
                let below =
                    |side: &serde_json::Map<String, Value>| side.get(name).cloned().unwrap_or_default();
                walk(&below(live), &below(predicted), format!("{place}/{name}"), found);
            }
        }
        (Value::Array(live), Value::Array(predicted)) if live.len() == predicted.len() => {
            for (index, (live, predicted)) in live.iter().zip(predicted).enumerate() {
                walk(live, predicted, format!("{place}/{index}"), found);
            }
        }
        _ if live != predicted => found.push(format!("{place}: {live} -> {predicted}")),
        _ => {}
    }
}
