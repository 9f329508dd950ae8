//! A running `baton up` with a git repository, and people who call its API.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Running, address_in, baton, client, eventually};

/// What the repository is called elsewhere; a plain path names it too.
pub(crate) const REMOTE: &str = "https://git.example.com/fleet/config.git";

pub(crate) struct Place {
    pub(crate) home: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) up: Running,
    pub(crate) control: Client,
    http: reqwest::Client,
}

/// Somebody who has signed in, or nobody.
pub(crate) struct Person<'p> {
    place: &'p Place,
    pub(crate) token: Option<String>,
}

impl Place {
    pub(crate) async fn start() -> Place {
        Place::with(&[], &[]).await
    }

    /// One with more on its command line, and in its environment.
    pub(crate) async fn with(more: &[&str], environment: &[(&str, &str)]) -> Place {
        let home = tempfile::tempdir().expect("a directory");
        git(&home.path().join("config"), &["init", "-q", "-b", "main"]);
        let directory = home.path().join("up");
        let place = ["--data-dir", directory.to_str().expect("UTF-8"), "--listen", "127.0.0.1:0"];
        let mapping = format!("{REMOTE}={}", home.path().join("config").display());
        let how = ["--ephemeral", "--no-demo", "--api-listen", "127.0.0.1:0", "--ready-delay", "50ms"];
        let mut command = baton();
        command
            .args(["up", "--cluster", "dev,env=dev"])
            .args(place)
            .args(how)
            .args(["--repo", &mapping])
            .args(more);
        command.envs(environment.iter().copied());
        let mut up = Running::of(command);
        let address = address_in(&up.line_with("page "));
        let control = client(&directory.join("kubeconfig")).await;
        Place { home, address, up, control, http: reqwest::Client::new() }
    }

    pub(crate) fn repository(&self) -> String {
        self.home.path().join("config").to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn commit(&self, path: &str, content: &Value) {
        let repository = self.home.path().join("config");
        let file = repository.join(path);
        fs::create_dir_all(file.parent().expect("a directory")).expect("directories");
        fs::write(file, content.to_string()).expect("a file");
        git(&repository, &["add", "-A"]);
        git(&repository, &["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "change"]);
    }

    pub(crate) fn nobody(&self) -> Person<'_> {
        Person { place: self, token: None }
    }

    /// Signs somebody in; they are let in.
    pub(crate) async fn person(&self, username: &str, password: &str) -> Person<'_> {
        let answer = self.sign_in(username, password).await;
        assert_eq!(answer.status(), StatusCode::OK, "{username} signs in");
        let answer: Value = answer.json().await.expect("JSON");
        Person { place: self, token: answer["token"].as_str().map(str::to_owned) }
    }

    pub(crate) async fn admin(&self) -> Person<'_> {
        self.person("admin", &self.password()).await
    }

    pub(crate) fn password(&self) -> String {
        let file = self.home.path().join("up/admin-password");
        fs::read_to_string(file).expect("a password").trim().to_owned()
    }

    pub(crate) async fn sign_in(&self, username: &str, password: &str) -> Response {
        let body = json!({"username": username, "password": password});
        self.nobody().send(Method::POST, "/api/v1/session", Some(&body)).await
    }

    /// Applies an object to the control plane.
    pub(crate) async fn apply(&self, object: &Value) {
        let api_version = object["apiVersion"].as_str().expect("an apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str().expect("a kind"));
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.control.clone(), "argocd", &ApiResource::from_gvk(&kind));
        let name = object["metadata"]["name"].as_str().expect("a name");
        let how = PatchParams::apply("people").force();
        api.patch(name, &how, &Patch::Apply(object)).await.expect("an object");
    }

    /// Applies a ConfigMap to the control plane.
    pub(crate) async fn settings(&self, name: &str, data: Value) {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        self.apply(&map).await;
    }

    pub(crate) fn application(&self, name: &str, path: &str) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {
                "project": "default",
                "source": {"repoURL": self.repository(), "path": path, "targetRevision": "main"},
                "destination": {"name": "dev", "namespace": "web"},
                "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
            },
        })
    }
}

impl Person<'_> {
    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Response {
        let url = format!("http://{}{path}", self.place.address);
        let mut request = self.place.http.request(method, url).header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        request.send().await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        told(self.send(Method::GET, path, None).await).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        told(self.send(Method::POST, path, Some(&body)).await).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> (StatusCode, Value) {
        told(self.send(Method::PUT, path, Some(&body)).await).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (StatusCode, Value) {
        told(self.send(Method::DELETE, path, None).await).await
    }

    /// What the API says once it says something that holds.
    pub(crate) async fn until(
        &self,
        what: &str,
        path: &str,
        holds: impl Fn(StatusCode, &Value) -> bool,
    ) -> Value {
        eventually(what, async || {
            let (status, answer) = self.get(path).await;
            holds(status, &answer).then_some(answer)
        })
        .await
    }
}

async fn told(answer: Response) -> (StatusCode, Value) {
    let status = answer.status();
    let text = answer.text().await.expect("an answer");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

pub(crate) fn config_map(name: &str, annotations: Value) -> Value {
    let metadata = json!({"name": name, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "blue"}})
}

#[track_caller]
fn git(directory: &Path, arguments: &[&str]) {
    fs::create_dir_all(directory).expect("a directory");
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
