//! A control plane in memory, a server behind a real socket, and callers of every kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_apiserver::{Cluster, Options};
use baton_clusters::{ClusterAccess, Connect};
use baton_server::auth::token::{Claims, ISSUER, SigningKey};
use baton_server::{
    Ask, Caller, Decision, Described, Gate, Later, Parts, References, Server, Settings, Sources,
};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const NAMESPACE: &str = "argocd";
pub(crate) const KEY: &[u8] = b"a key that only the server and its tests know";
/// What must never leave.
pub(crate) const CANARY: &str = "c4n4ryS3cr3t";
/// The same as Secrets hold it.
pub(crate) const CANARY_BASE64: &str = "YzRuNHJ5UzNjcjN0";

/// Everything a test needs.
pub(crate) struct Scene {
    pub(crate) control: Cluster,
    pub(crate) address: std::net::SocketAddr,
    ahead: Arc<Mutex<SignedDuration>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// Somebody who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Nobody,
    Reader,
    /// A token of a role of project shop, which may do everything to its Applications and sets but approve.
    Role,
    Admin,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// Who may what: subject, resource, action, object; a `*` at the end stands for anything.
struct Table(Vec<[&'static str; 4]>);

struct NoMembers;

/// Gives two Applications for every set, and one ConfigMap for every Application.
struct Scripted;

/// Takes in what names its host.
async fn webhook(headers: HeaderMap) -> (StatusCode, &'static str) {
    match headers.contains_key("x-github-event") {
        true => (StatusCode::OK, "taken"),
        false => (
            StatusCode::BAD_REQUEST,
            "{\"error\":\"Unknown webhook event\",\"message\":\"Unknown webhook event\",\"code\":3}",
        ),
    }
}

impl Gate for Table {
    fn decide(&self, caller: &Caller, ask: &Ask<'_>) -> Decision {
        let fits = |pattern: &str, text: &str| match pattern.strip_suffix('*') {
            Some(prefix) => text.starts_with(prefix),
            None => pattern == text,
        };
        let meant = |row: &&[&str; 4]| {
            row[0] == caller.subject && fits(row[1], ask.resource) && fits(row[3], ask.object)
        };
        let rows: Vec<&[&str; 4]> = self.0.iter().filter(meant).collect();
        if rows.iter().any(|row| row[2].strip_prefix('!').is_some_and(|denied| fits(denied, ask.action))) {
            return Decision::forbid("a row forbids it");
        }
        match rows.iter().any(|row| fits(row[2], ask.action)) {
            true => Decision::allow("a row"),
            false => Decision::refuse("no row"),
        }
    }
}

impl Connect for NoMembers {
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String> {
        Err(format!("no route to {}", cluster.server))
    }
}

impl Sources for Scripted {
    fn generate<'a>(&'a self, set: &'a baton_api::ApplicationSet) -> Later<'a, Vec<Value>> {
        let name = set.metadata.name.clone().unwrap_or_default();
        let one = move |env: &str| json!({"metadata": {"name": format!("{name}-{env}"), "labels": {"env": env}}, "spec": {"project": "shop"}});
        Box::pin(async move { Ok(vec![one("dev"), one("new")]) })
    }

    fn targets<'a>(&'a self, _: &'a baton_api::Application) -> Later<'a, Vec<Value>> {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "shop"},
            "stringData": {"key": CANARY}});
        Box::pin(async move { Ok(vec![secret]) })
    }

    fn describe<'a>(
        &'a self,
        application: &'a baton_api::Application,
        revision: &'a str,
    ) -> Later<'a, Described> {
        let source = application.spec.source.clone().unwrap_or_default();
        Box::pin(async move {
            if revision == "gone" {
                return Err(format!("{}: no such revision", source.repo_url));
            }
            Ok(match source.chart.as_str() {
                "" => Described::Commit {
                    author: "Ann <ann@example.com>".to_owned(),
                    date: Timestamp::UNIX_EPOCH,
                    tags: vec!["v1".to_owned()],
                    message: format!("what {revision} does, as {} has it", source.repo_url),
                },
                chart => Described::Chart {
                    description: format!("{chart} {revision}"),
                    home: "https://example.com".to_owned(),
                    maintainers: vec!["Ann".to_owned()],
                },
            })
        })
    }

    fn references<'a>(
        &'a self,
        url: &'a str,
        project: &'a str,
        fields: Option<&'a BTreeMap<String, String>>,
    ) -> Later<'a, References> {
        Box::pin(async move {
            if url.ends_with("/gone") {
                return Err(format!("{url}: there is no such repository"));
            }
            let opened = fields.and_then(|fields| fields.get("username")).map_or("", String::as_str);
            Ok(References {
                branches: vec!["main".to_owned(), format!("of-{project}{opened}")],
                tags: Vec::new(),
            })
        })
    }
}

impl Scene {
    pub(crate) async fn new() -> Scene {
        Scene::with(json!({})).await
    }

    /// A scene with more in `argocd-cm`.
    pub(crate) async fn with(settings: Value) -> Scene {
        let control = Cluster::memory(Options::default());
        for definition in baton_api::crds() {
            control.apply("test", &definition).await.expect("a definition");
        }
        for object in objects(settings) {
            let kind = object["kind"].clone();
            control.apply("test", &object).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
        }
        let ahead = Arc::new(Mutex::new(SignedDuration::ZERO));
        let clock = ahead.clone();
        let settings = Settings {
            now: Arc::new(move || Timestamp::now() + *clock.lock()),
            fresh: std::time::Duration::ZERO,
            password_cost: 4,
            secure: false,
            webhooks: Some(axum::Router::new().route("/api/webhook", axum::routing::post(webhook))),
            ..Settings::new(NAMESPACE)
        };
        let gate = Table(vec![
            ["admin", "*", "*", "*"],
            ["reader", "*", "get", "*"],
            ["keeper", "applications", "*", "shop/*"],
            ["keeper", "applicationsets", "*", "shop/*"],
            ["keeper", "applications", "!action//Namespace/approve-deletion", "*"],
            ["proj:shop:ci", "applications", "*", "shop/*"],
            ["proj:shop:ci", "applicationsets", "*", "shop/*"],
            ["proj:shop:ci", "applicationsets", "!action/argoproj.io/ApplicationSet/change-hooks", "*"],
            ["proj:shop:ci", "applications", "!action/*", "*"],
            ["proj:shop:ci", "projects", "get", "shop"],
            ["proj:shop:ci", "logs", "get", "shop/*"],
        ]);
        let parts = Parts {
            client: Client::new(control.service(), NAMESPACE),
            connect: Arc::new(NoMembers),
            gate: Arc::new(gate),
            sources: Some(Arc::new(Scripted)),
        };
        let server = Server::new(parts, settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = baton_server::rest::router(server.clone());
        let follower = server.clone();
        let tasks = vec![
            tokio::spawn(async move { follower.run().await }),
            tokio::spawn(async move { match baton_server::rest::serve(listener, router).await {} }),
        ];
        server.ready().await.expect("everything was read");
        Scene { control, address, ahead, tasks }
    }

    /// Lets the server's clock run ahead.
    pub(crate) fn advance(&self, seconds: i64) {
        *self.ahead.lock() += SignedDuration::from_secs(seconds);
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now() + *self.ahead.lock()
    }

    /// The token of a caller.
    pub(crate) fn token(&self, who: Who) -> Option<String> {
        let (sub, jti) = match who {
            Who::Nobody => return None,
            Who::Reader => ("reader:login", "r"),
            Who::Role => ("proj:shop:ci", "ci-1"),
            Who::Admin => ("admin:login", "a"),
        };
        Some(self.signed(sub, jti))
    }

    pub(crate) fn signed(&self, sub: &str, jti: &str) -> String {
        let second = self.now().as_second();
        let [iss, sub, jti] = [ISSUER, sub, jti].map(str::to_owned);
        sign(&Claims { iss, sub, jti, iat: second, nbf: second, exp: Some(second + 3600) })
    }

    pub(crate) async fn get(&self, who: Who, path: &str) -> Answer {
        self.call(who, "GET", path, Value::Null).await
    }

    pub(crate) async fn call(&self, who: Who, method: &str, path: &str, body: Value) -> Answer {
        let token = self.token(who).map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(token.map(|token| ("authorization", token)));
        self.send(method, path, &headers, if body.is_null() { String::new() } else { body.to_string() }).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: String,
    ) -> Answer {
        let response = self.open(method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("a text");
        Answer { status: parts.status, headers: parts.headers, text }
    }

    /// Sends a request and leaves the body of the answer to be read.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: String,
    ) -> http::Response<hyper::body::Incoming> {
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        let mut request =
            Request::builder().method(method).uri(path).header("host", self.address.to_string());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::<Bytes>::from(body)).expect("a request");
        sender.send_request(request).await.expect("an answer")
    }

    /// An object of the control plane as it is stored.
    pub(crate) async fn stored(&self, path: &str) -> Value {
        let client = Client::new(self.control.service(), NAMESPACE);
        let request = Request::get(path).body(Vec::new()).expect("a request");
        client.request(request).await.expect("an object")
    }

    /// Merges into an object of the control plane.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) {
        let client = Client::new(self.control.service(), NAMESPACE);
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        let request = request.body(patch.to_string().into_bytes()).expect("a request");
        client.request::<Value>(request).await.expect("a patch the API takes");
    }

    /// Calls until the answer is as hoped: what lists show follows what is written.
    pub(crate) async fn until(&self, who: Who, path: &str, hoped: impl Fn(&Value) -> bool) -> Value {
        loop {
            let answer = self.get(who, path).await;
            let value = answer.json();
            if answer.status.is_success() && hoped(&value) {
                return value;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|_| panic!("{} is no JSON: {}", self.status, self.text))
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) fn sign(claims: &Claims) -> String {
    SigningKey::new(KEY).expect("a key").sign(claims)
}

pub(crate) fn application(name: &str, project: &str, set: Option<&str>, status: Value) -> Value {
    let mut object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"team": project}},
        "spec": {
            "project": project,
            "source": {"repoURL": format!("https://me:{CANARY}@git.example.com/{name}"), "path": ".", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        },
        "status": status,
    });
    if let Some(uid) = set {
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "argoproj.io/v1alpha1",
            "kind": "ApplicationSet", "name": "web", "uid": uid, "controller": true}]);
    }
    object
}

/// What there is before the server starts.
fn objects(settings: Value) -> Vec<Value> {
    let mut config = json!({"accounts.reader": "login", "accounts.keeper": "login", "accounts.ci": "apiKey",
        "url": "https://cd.example.com"});
    for (key, value) in settings.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    let key = std::str::from_utf8(KEY).expect("a text");
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let tracked = |name: &str| {
        json!({"name": name, "namespace": "shop",
        "annotations": {"argocd.argoproj.io/tracking-id": format!("web-dev:/x:shop/{name}")}})
    };
    let map = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data});
    let project = |name: &str, roles: Value| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "roles": roles}})
    };
    vec![
        namespace(NAMESPACE),
        namespace("shop"),
        map("argocd-cm", config),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-secret", "namespace": NAMESPACE},
            "stringData": {"server.secretkey": key, "accounts.keeper.password": "$2a$04$broken"}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "repo", "namespace": NAMESPACE, "labels": {"argocd.argoproj.io/secret-type": "repository"}},
            "stringData": {"url": "https://git.example.com", "password": CANARY}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "member", "namespace": NAMESPACE, "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
            "stringData": {"name": "member", "server": "https://member.example.com",
                "config": json!({"bearerToken": CANARY, "tlsClientConfig": {"insecure": true}}).to_string()}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "creds", "namespace": NAMESPACE, "labels": {"argocd.argoproj.io/secret-type": "repo-creds"}},
            "stringData": {"url": format!("https://me:{CANARY}@git.example.com/team"), "sshPrivateKey": CANARY}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "hydrated", "namespace": NAMESPACE, "labels": {"argocd.argoproj.io/secret-type": "repository-write"}},
            "stringData": {"url": "https://git.example.com/hydrated", "username": CANARY, "password": CANARY}}),
        map(
            "argocd-ssh-known-hosts-cm",
            json!({"ssh_known_hosts": "# hosts\ngit.example.com ssh-ed25519 aGVsbG8=\n"}),
        ),
        map("argocd-tls-certs-cm", json!({"git.example.com": "a certificate"})),
        map("argocd-gpg-keys-cm", json!({"4AEE18F83AFDEB23": "a key"})),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": tracked("keys"), "stringData": {"key": CANARY}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": tracked("settings"), "data": {"a": "b"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": tracked("web"), "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}}),
        project("default", json!([])),
        project("shop", json!([{"name": "ci", "jwtTokens": [{"iat": 1, "id": "ci-1"}]}])),
        application("other", "default", None, json!({})),
    ]
}
