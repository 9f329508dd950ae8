//! Every operation for everybody, decided by a real server: by `argocd-rbac-cm`, by the role of a project, by nothing. Nobody
//! but people changes anything here: there is an API, and no controller.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Running, address_in, client, eventually};
use crate::rows::{READS, Row, STREAMS, reading, rows};

/// What roles of the project may, as the table of the other tests has it.
const OF_THE_ROLE: [&str; 5] = [
    "p, proj:shop:ci, applications, *, shop/*, allow",
    "p, proj:shop:ci, applications, action/*, shop/*, deny",
    "p, proj:shop:ci, applicationsets, *, shop/*, allow",
    "p, proj:shop:ci, applicationsets, action/argoproj.io/ApplicationSet/change-hooks, shop/*, deny",
    "p, proj:shop:ci, logs, get, shop/*, allow",
];
const PASSWORD: &str = "a word that is long enough";

/// A Kubernetes API with a server beside it.
struct Ground {
    control: Client,
    address: SocketAddr,
    http: reqwest::Client,
    _server: Running,
    _api: Running,
    _home: TempDir,
}

impl Ground {
    async fn new() -> Ground {
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().join("control");
        let place = ["--data-dir", directory.to_str().expect("UTF-8"), "--listen", "127.0.0.1:0"];
        let mut api = Running::start(["apiserver", "--ephemeral"].into_iter().chain(place));
        api.line_with("kubeconfig");
        let kubeconfig = directory.join("kubeconfig");
        let control = client(&kubeconfig).await;
        for definition in baton_api::crds() {
            apply(&control, None, &definition).await;
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
        apply(&control, None, &namespace).await;
        eventually("the definitions hold", async || {
            tried(&control, Some("argocd"), &project("default", json!([]))).await.ok()
        })
        .await;
        for (namespace, object) in objects() {
            apply(&control, namespace, &object).await;
        }
        let repositories = home.path().join("repositories");
        let mut server = Running::start([
            "server",
            "--insecure",
            "--listen",
            "127.0.0.1:0",
            "--kubeconfig",
            kubeconfig.to_str().expect("UTF-8"),
            "--cache-dir",
            repositories.to_str().expect("UTF-8"),
        ]);
        let address = address_in(&server.line_with("Serving"));
        Ground { control, address, http: reqwest::Client::new(), _server: server, _api: api, _home: home }
    }

    async fn call(&self, token: Option<&str>, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        let answer = self.open(token, method, path, body).await;
        let status = answer.status();
        let text = answer.text().await.expect("an answer");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn open(&self, token: Option<&str>, method: &str, path: &str, body: &Value) -> reqwest::Response {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.http.request(method, format!("http://{}{path}", self.address));
        request = request.header("content-type", "application/json");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        request.send().await.expect("an answer")
    }

    async fn sign_in(&self, username: &str, password: &str) -> String {
        let body = json!({"username": username, "password": password});
        eventually(&format!("{username} signs in"), async || {
            let (_, answer) = self.call(None, "POST", "/api/v1/session", &body).await;
            answer["token"].as_str().map(str::to_owned)
        })
        .await
    }

    /// Tokens of nobody, a reader, a role of the project and the administrator, in the order of the rows.
    async fn everybody(&self) -> [Option<String>; 4] {
        let secrets: Api<DynamicObject> = Api::namespaced_with(
            self.control.clone(),
            "argocd",
            &resource(&json!({"apiVersion": "v1", "kind": "Secret"})),
        );
        let first =
            eventually("there is a password", async || secrets.get("argocd-initial-admin-secret").await.ok())
                .await;
        let first = first.data["data"]["password"].as_str().expect("a password");
        let first = BASE64_STANDARD.decode(first).expect("base64");
        let first = String::from_utf8(first).expect("a text");
        let admin = self.sign_in("admin", &first).await;
        let body = json!({"name": "reader", "currentPassword": first, "newPassword": PASSWORD});
        let (status, answer) = self.call(Some(&admin), "PUT", "/api/v1/account/password", &body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let path = "/api/v1/projects/shop/roles/ci/token";
        let (status, answer) = self.call(Some(&admin), "POST", path, &json!({})).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let role = answer["token"].as_str().expect("a token").to_owned();
        [None, Some(self.sign_in("reader", PASSWORD).await), Some(role), Some(admin)]
    }
}

/// Whether a status says that the caller may not, and which way it is said.
fn denial(status: u16) -> Option<u16> {
    Some(status).filter(|status| matches!(status, 401 | 403))
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_decide_of_every_operation_for_everybody_as_the_rows_say() {
    let ground = Ground::new().await;
    let everybody = ground.everybody().await;
    let [.., reader, role, admin] = &everybody;
    let seen = |list: &Value| list["items"].as_array().map_or(0, Vec::len);
    for (who, number) in [(reader, 3), (role, 2), (admin, 3)] {
        eventually("lists are filled", async || {
            let (_, list) = ground.call(who.as_deref(), "GET", "/api/v1/applications", &Value::Null).await;
            (seen(&list) == number).then_some(())
        })
        .await;
    }
    let waits = eventually("the prune waits", async || {
        let (_, list) = ground.call(admin.as_deref(), "GET", "/api/v1/approvals", &Value::Null).await;
        (seen(&list) == 1).then(|| list["items"][0].clone())
    })
    .await;

    let mut wrong = Vec::new();
    let mut compare = |what: String, statuses: Vec<u16>, expected: [u16; 4]| {
        // What an operation comes to depends on hosts that are not there; who may try it does not.
        let as_said =
            statuses.iter().zip(expected).all(|(is, said)| denial(*is) == denial(said) && *is != 500);
        if !as_said {
            wrong.push(format!("{what}: {statuses:?} and not {expected:?}"));
        }
    };
    for path in READS {
        let mut statuses = Vec::new();
        for who in &everybody {
            statuses.push(ground.call(who.as_deref(), "GET", path, &Value::Null).await.0.as_u16());
        }
        compare(format!("GET {path}"), statuses, reading(path));
    }
    for path in STREAMS {
        let mut statuses = Vec::new();
        for who in &everybody {
            statuses.push(ground.open(who.as_deref(), "GET", path, &Value::Null).await.status().as_u16());
        }
        compare(format!("GET {path}"), statuses, [401, 200, 200, 200]);
    }
    for Row { method, path, body, expected } in rows(&waits) {
        let mut statuses = Vec::new();
        for who in &everybody {
            statuses.push(ground.call(who.as_deref(), method, &path, &body).await.0.as_u16());
        }
        compare(format!("{method} {path}"), statuses, expected);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn resource(object: &Value) -> ApiResource {
    let api_version = object["apiVersion"].as_str().expect("an apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, object["kind"].as_str().expect("a kind")))
}

async fn tried(control: &Client, namespace: Option<&str>, object: &Value) -> kube::Result<DynamicObject> {
    let resource = resource(object);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(control.clone(), namespace, &resource),
        None => Api::all_with(control.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().expect("a name");
    let how = PatchParams::apply("people").force();
    let applied = api.patch(name, &how, &Patch::Apply(object)).await?;
    match object["kind"].as_str() {
        // Its status is a resource of its own.
        Some("ApplicationSet") => {
            let status = json!({"status": object["status"]});
            api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await
        }
        _ => Ok(applied),
    }
}

async fn apply(control: &Client, namespace: Option<&str>, object: &Value) {
    let applied = tried(control, namespace, object).await;
    applied.unwrap_or_else(|error| panic!("{}: {error}", object["metadata"]["name"]));
}

fn project(name: &str, roles: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": name},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "roles": roles},
    })
}

fn application(name: &str, project: &str, status: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "labels": {"env": name.trim_start_matches("web-")}},
        "spec": {
            "project": project,
            "source": {"repoURL": format!("https://git.example.com/{name}"), "path": ".", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        },
        "status": status,
    })
}

/// What there is, each with its namespace: what the rows speak of.
fn objects() -> Vec<(Option<&'static str>, Value)> {
    let map = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    let registered = |name: &str, kind: &str, texts: Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": texts,
            "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": kind}}})
    };
    let tracked = |name: &str| json!({"name": name, "annotations": {"argocd.argoproj.io/tracking-id": format!("web-dev:/x:shop/{name}")}});
    let row = |group: &str, kind: &str, name: &str, waits: bool| {
        json!({"group": group, "version": "v1", "kind": kind, "namespace": "shop", "name": name, "status": "OutOfSync",
            "requiresPruning": waits, "requiresDeletionConfirmation": waits, "requiresDeletionApproval": waits})
    };
    let mut waiting = application(
        "web-dev",
        "shop",
        json!({
            "resources": [row("", "ConfigMap", "settings", true), row("", "Secret", "keys", false), row("apps", "Deployment", "web", false)],
            "operationState": {"phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "message": "waiting for a person",
                "operation": {"initiatedBy": {"username": "alice"}}},
            "health": {"status": "Progressing"},
        }),
    );
    waiting["operation"] = json!({"sync": {"prune": true}});
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "web"},
        "spec": {
            "generators": [{"list": {"elements": []}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": [
                {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]}]}},
            "template": {"metadata": {"name": "x"}, "spec": {"project": "shop", "destination": {},
                "source": {"repoURL": "https://git.example.com/x", "path": "."}}},
        },
        "status": {"rollout": {"run": 3, "state": "Progressing",
            "steps": [{"step": 1, "state": "Open", "total": 1, "updating": 1}]}},
    });
    let accounts = json!({"accounts.reader": "login", "accounts.keeper": "login", "accounts.ci": "apiKey"});
    let own = [
        map("argocd-cm", accounts),
        map("argocd-rbac-cm", json!({"policy.csv": "g, reader, role:readonly\n"})),
        map(
            "argocd-ssh-known-hosts-cm",
            json!({"ssh_known_hosts": "git.example.com ssh-ed25519 aGVsbG8=\n"}),
        ),
        map("argocd-tls-certs-cm", json!({"git.example.com": "a certificate"})),
        map("argocd-gpg-keys-cm", json!({"4AEE18F83AFDEB23": "a key"})),
        registered("repo", "repository", json!({"url": "https://git.example.com"})),
        registered("creds", "repo-creds", json!({"url": "https://git.example.com/team", "password": "x"})),
        registered("hydrated", "repository-write", json!({"url": "https://git.example.com/hydrated"})),
        registered(
            "member",
            "cluster",
            json!({"name": "member", "server": "https://member.example.com", "config": "{\"tlsClientConfig\":{\"insecure\":true}}"}),
        ),
        project("shop", json!([{"name": "ci", "policies": OF_THE_ROLE}])),
        set,
        waiting,
        application("web-prod", "shop", json!({"health": {"status": "Healthy"}})),
        application("other", "default", json!({})),
    ];
    let deployed = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": tracked("keys"), "stringData": {"key": "x"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": tracked("settings"), "data": {"a": "b"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": tracked("web"), "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}}),
    ];
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let own = own.into_iter().map(|object| (Some("argocd"), object));
    std::iter::once((None, shop))
        .chain(own)
        .chain(deployed.into_iter().map(|object| (Some("shop"), object)))
        .collect()
}
