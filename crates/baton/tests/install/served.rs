//! The server as it is installed: people do by it whatever Argo CD's rights let them, and Kubernetes refuses it nothing.

use std::time::Instant;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cluster::{Cluster, NAMESPACE, PATIENCE, Repository};
use crate::process::{LOOK_EVERY, Running, address_in};
use crate::{APPLICATIONS, SETS, end, map, rolling};

const SERVER: &str = "baton-server";

/// Somebody at the API.
struct Person<'c> {
    cluster: &'c Cluster,
    runtime: Runtime,
    http: reqwest::Client,
    root: String,
    token: String,
}

impl<'c> Person<'c> {
    /// The administrator, by the password that the server has made.
    fn signed_in(cluster: &'c Cluster, server: &mut Running) -> Person<'c> {
        let line: Value = serde_json::from_str(&server.line_with("Serving")).expect("a line of the log");
        let root = format!("http://{}", address_in(line["fields"]["message"].as_str().expect("a message")));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let (runtime, http) = (runtime.expect("a runtime"), reqwest::Client::new());
        let mut person = Person { cluster, runtime, http, root, token: String::new() };
        person.until("the server is ready", "/readyz", |status, told| status == 200 && told == "ok");
        let secret = cluster.kubectl(&[
            "get",
            "secret",
            "argocd-initial-admin-secret",
            "-n",
            NAMESPACE,
            "-o",
            "go-template={{.data.password | base64decode}}",
        ]);
        let answer = person.post("/api/v1/session", json!({"username": "admin", "password": secret}));
        person.token = answer["token"].as_str().expect("a token").to_owned();
        person
    }

    fn asked(&self, method: Method, path: &str, body: &Value) -> (StatusCode, String) {
        let is_read = method == Method::GET;
        let mut request = self.http.request(method, format!("{}{path}", self.root));
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        if !is_read {
            // Also where nothing is sent: no page of somebody else can have a browser do it.
            request = request.header("content-type", "application/json");
        }
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        self.runtime.block_on(async {
            let answer = request.send().await.expect("an answer");
            let status = answer.status();
            (status, answer.text().await.expect("a text"))
        })
    }

    /// What is answered to what succeeds.
    #[track_caller]
    fn does(&self, method: Method, path: &str, body: Value) -> String {
        let (status, told) = self.asked(method.clone(), path, &body);
        assert_eq!(status, StatusCode::OK, "{method} {path}: {told}");
        assert!(!told.contains("is forbidden"), "{method} {path}: {told}");
        told
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let told = self.does(Method::GET, path, Value::Null);
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{path}: {error}: {told}"))
    }

    #[track_caller]
    fn post(&self, path: &str, body: Value) -> Value {
        let told = self.does(Method::POST, path, body);
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{path}: {error}: {told}"))
    }

    #[track_caller]
    fn until(&self, what: &str, path: &str, good: impl Fn(u16, &str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let (status, told) = self.asked(Method::GET, path, &Value::Null);
            if good(status.as_u16(), &told) {
                return told;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {status} {told}");
            std::thread::sleep(10 * LOOK_EVERY);
        }
    }
}

fn deployed(repository: &Repository) -> String {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example.com/job:1"}],
        }}}}},
    });
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "registry.example.com/web:1"}]},
        }},
    });
    repository.commit(
        &[
            ("web/web.yaml", web.to_string()),
            ("web/job.yaml", job.to_string()),
            ("web/map.yaml", map("plain", "blue", "")),
            ("web/dear.yaml", map("dear", "blue", "Prune=confirm")),
        ],
        &[],
    )
}

fn application(repository: &Repository) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web"},
        "spec": {
            "project": "default",
            "source": {"repoURL": repository.url(), "targetRevision": "main", "path": "web"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "work"},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
        },
    })
}

#[test]
fn the_server_does_everything_with_exactly_the_rights_it_is_given() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install"]);
    let repository = cluster.repository();
    deployed(&repository);
    let mut server = cluster.start_component(SERVER);
    let mut running: Vec<(&str, Running)> =
        [SETS, APPLICATIONS].map(|name| (name, cluster.start_component(name))).into();
    let admin = Person::signed_in(&cluster, &mut server);
    cluster.until("there is a project", || {
        let found = cluster.kubectl(&["get", "appprojects", "-n", NAMESPACE, "-o", "name"]);
        found.contains("default").then_some(())
    });

    applications(&admin, &repository);
    resources(&admin);
    approvals(&admin, &repository);
    sets(&admin, &repository);
    registered(&admin);
    accounts_and_projects(&admin);
    for path in ["/api/v1/settings", "/api/v1/audit", "/api/v1/rollouts", "/api/v1/clusters"] {
        admin.get(path);
    }
    admin.does(Method::DELETE, "/api/v1/applications/web", Value::Null);
    cluster.until("the Application is gone", || cluster.find("application", "web").is_none().then_some(()));
    // Signing out is remembered.
    admin.does(Method::DELETE, "/api/v1/session", Value::Null);
    admin.until("the token counts no more", "/api/v1/applications", |status, _| status == 401);
    running.push((SERVER, server));
    end(running);
}

fn applications(admin: &Person<'_>, repository: &Repository) {
    admin.post("/api/v1/applications", application(repository));
    admin.until("it was compared", "/api/v1/applications/web", |_, told| told.contains("OutOfSync"));
    admin.post("/api/v1/applications/web/sync", json!({}));
    admin.until("it is synced", "/api/v1/applications/web", |_, told| {
        let told: Value = serde_json::from_str(told).unwrap_or_default();
        let status = &told["status"];
        status["sync"]["status"] == "Synced" && status["health"]["status"] == "Healthy"
    });
    let listed = admin.get("/api/v1/applications");
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    for path in ["/resource-tree", "/managed-resources", "/events", "/manifests", "/syncwindows"] {
        admin.get(&format!("/api/v1/applications/web{path}"));
    }
    admin.does(
        Method::PATCH,
        "/api/v1/applications/web",
        json!({"patch": "{\"metadata\":{\"labels\":{\"team\":\"a\"}}}", "patchType": "merge"}),
    );
}

fn resources(admin: &Person<'_>) {
    let on = |kind: &str, name: &str, more: &str| {
        let group = match kind {
            "Deployment" => "apps",
            "CronJob" => "batch",
            _ => "",
        };
        format!(
            "/api/v1/applications/web/resource{more}?group={group}&version=v1&kind={kind}&namespace=work&resourceName={name}"
        )
    };
    admin.get(&on("Deployment", "web", ""));
    admin.get(&on("Deployment", "web", "/actions"));
    admin.does(Method::POST, &on("Deployment", "web", "/actions"), json!("restart"));
    admin.does(Method::POST, &on("CronJob", "nightly", "/actions"), json!("create-job"));
    let patch = on("ConfigMap", "plain", "") + "&patchType=application/merge-patch%2Bjson";
    admin.does(Method::POST, &patch, json!("{\"data\":{\"colour\":\"green\"}}"));
    admin.does(Method::DELETE, &on("ConfigMap", "plain", ""), Value::Null);
    let logs = "/api/v1/applications/web/logs?namespace=work&group=apps&kind=Deployment&resourceName=web&tailLines=5";
    let told = admin.until("there are logs", logs, |status, told| status == 200 && told.contains("content"));
    assert!(!told.contains("forbidden"), "{told}");
}

fn approvals(admin: &Person<'_>, repository: &Repository) {
    let commit = repository.commit(&[], &["web/dear.yaml"]);
    admin.get("/api/v1/applications/web?refresh=normal");
    admin.until("the commit was compared", "/api/v1/applications/web", |_, told| {
        let told: Value = serde_json::from_str(told).unwrap_or_default();
        told["status"]["sync"]["revision"] == *commit
    });
    admin.post("/api/v1/applications/web/sync", json!({"prune": true}));
    let inbox = admin.until("the prune waits", "/api/v1/approvals", |_, told| told.contains("prune"));
    let inbox: Value = serde_json::from_str(&inbox).expect("JSON");
    let item = &inbox["items"][0];
    let verdict = json!({"items": [{"id": item["id"], "setHash": item["setHash"]}], "reason": "moved"});
    let answer = admin.post("/api/v1/approvals/approve", verdict);
    assert_eq!(answer["items"][0]["ok"], true, "{answer}");
    admin.until("it is gone", "/api/v1/applications/web", |_, told| {
        let told: Value = serde_json::from_str(told).unwrap_or_default();
        told["status"]["operationState"]["phase"] == "Succeeded"
            && told["status"]["sync"]["status"] == "Synced"
    });
}

fn sets(admin: &Person<'_>, repository: &Repository) {
    crate::commit(repository, "blue");
    let set = rolling(repository);
    admin.post("/api/v1/applicationsets/generate", json!({"applicationSet": set}));
    admin.post("/api/v1/applicationsets", set);
    admin.until("its Applications are there", "/api/v1/applications", |_, told| told.contains("rolling-two"));
    for path in ["", "/rollout", "/plan", "/phases", "/events", "/resource-tree"] {
        admin.get(&format!("/api/v1/applicationsets/rolling{path}"));
    }
    for action in ["pause", "resume"] {
        admin.post("/api/v1/applicationsets/rolling/actions", json!({"action": action}));
    }
    admin.does(Method::DELETE, "/api/v1/applicationsets/rolling", Value::Null);
    admin
        .cluster
        .until("the set is gone", || admin.cluster.find("applicationset", "rolling").is_none().then_some(()));
}

fn registered(admin: &Person<'_>) {
    for (collection, field) in [
        ("repositories", "repo"),
        ("repocreds", "url"),
        ("write-repositories", "repo"),
        ("write-repocreds", "url"),
    ] {
        let body = json!({field: "https://git.example.com/new", "username": "u", "password": "p"});
        let one = format!("/api/v1/{collection}/https%3A%2F%2Fgit.example.com%2Fnew");
        // Nobody is asked whether it can be read, for there is no such host.
        let made = admin.asked(Method::POST, &format!("/api/v1/{collection}"), &body);
        assert!(!made.1.contains("is forbidden"), "{collection}: {}", made.1);
        if made.0 == StatusCode::OK {
            admin.does(Method::PUT, &one, body);
            admin.does(Method::DELETE, &one, Value::Null);
        }
    }
    let cluster = json!({"server": "https://new.example.com", "name": "new"});
    admin.post("/api/v1/clusters", cluster.clone());
    let one = "/api/v1/clusters/https%3A%2F%2Fnew.example.com";
    admin.does(Method::PUT, one, cluster);
    admin.does(Method::DELETE, one, Value::Null);
    admin.get("/api/v1/certificates");
    admin.get("/api/v1/gpgkeys");
}

fn accounts_and_projects(admin: &Person<'_>) {
    admin.get("/api/v1/account");
    let project = json!({"project": {
        "metadata": {"name": "fresh"},
        "spec": {
            "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "roles": [{"name": "ci", "policies": []}],
        },
    }});
    admin.post("/api/v1/projects", project);
    let token = admin.post("/api/v1/projects/fresh/roles/ci/token", json!({}));
    assert!(token["token"].is_string(), "{token}");
    admin.get("/api/v1/projects/fresh/events");
    admin.does(Method::DELETE, "/api/v1/projects/fresh", Value::Null);
}
