//! One secret in a Secret that is deployed, in the credentials of a repository, in a git URL, in a header of a hook and in one of
//! a notification, all of them in use and most of them failing: nothing that leaves a running fleet has it.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::place::{Person, Place};
use crate::process::{self, PATIENCE, Running, client, eventually};

const CANARY: &str = "c4n4ryS3cr3t";
/// The same as Secrets hold it.
const ENCODED: &str = "YzRuNHJ5UzNjcjN0";
/// Nobody listens there.
const DEAD: &str = "127.0.0.1:1";

/// Refuses every call, and says in its answer all that it was sent.
struct Echo {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = heard.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let (mut text, mut bytes) = (String::new(), [0; 4096]);
                while !text.contains("\r\n\r\n") {
                    match stream.read(&mut bytes) {
                        Ok(count) if count > 0 => text.push_str(&String::from_utf8_lossy(&bytes[..count])),
                        _ => break,
                    }
                }
                let answer = format!(
                    "HTTP/1.1 500 no\r\nx-said: {CANARY}\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                );
                // Whoever has gone meanwhile needs no answer.
                let _ = stream.write_all(answer.as_bytes());
                hears.lock().push(text);
            }
        });
        Echo { address, heard }
    }

    fn heard(&self, part: &str) -> bool {
        self.heard.lock().iter().any(|call| call.contains(part))
    }
}

fn hooked(place: &Place, echo: &Echo) -> Value {
    let call = |name: &str, headers: Value| {
        json!({"name": name, "type": "http", "failurePolicy": "ignore", "secretRefs": [{"name": "pager"}],
            "http": {"url": format!("http://{}/{name}", echo.address), "headers": headers}})
    };
    let mut last = call("last", json!({"Cookie": format!("session={CANARY}")}));
    last["failurePolicy"] = "fail".into();
    let phases = json!([{"name": "canary", "targets": [{"clusters": ["dev"]}], "preHooks": [
        call("literal", json!({"Authorization": format!("Bearer {CANARY}"), "X-Api-Key": CANARY})),
        call("kept", json!({"Authorization": "Bearer {{secrets.pager.token}}"})),
        last,
    ]}]);
    let mut template = place.application("hooked-{{name}}", "web");
    template["spec"]["destination"] = json!({"name": "{{name}}", "namespace": "hooked"});
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "hooked"},
        "spec": {
            "generators": [{"clusters": {}, "deploymentStrategy": {"type": "phaseDeployment", "phases": phases}}],
            "template": {"metadata": {"name": "hooked-{{name}}"}, "spec": template["spec"]},
        },
    })
}

/// Plants the secret everywhere, and waits until everything has been tried.
async fn plant(place: &Place, echo: &Echo, admin: &Person<'_>) {
    let secret = |name: &str, labels: Value, texts: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}, "stringData": texts});
    place.commit("web/keys.yaml", &secret("keys", json!({}), json!({"key": CANARY})));
    let kind = |kind: &str| json!({"argocd.argoproj.io/secret-type": kind});
    let credentials =
        json!({"url": format!("https://{DEAD}/private.git"), "username": "me", "password": CANARY});
    place.apply(&secret("repo", kind("repository"), credentials)).await;
    let credentials =
        json!({"url": format!("https://{DEAD}/team"), "sshPrivateKey": CANARY, "password": CANARY});
    place.apply(&secret("creds", kind("repo-creds"), credentials)).await;
    place.apply(&secret("pager", json!({"baton.dev/hooks": "true"}), json!({"token": CANARY}))).await;
    place.apply(&secret("argocd-notifications-secret", json!({}), json!({"token": CANARY}))).await;
    let recipients = json!([{"recipients": ["webhook"], "triggers": ["on-phase-failed", "on-deployed"]}]);
    let service = format!(
        "url: http://{}/told\nretryMax: 0\nheaders: [{{name: Authorization, value: Bearer $token}}]",
        echo.address
    );
    place
        .settings(
            "argocd-notifications-cm",
            json!({"service.webhook": service, "subscriptions": recipients.to_string()}),
        )
        .await;
    for (name, url) in [
        ("leaky", format!("https://me:{CANARY}@{DEAD}/leaky.git")),
        ("private", format!("https://{DEAD}/private.git")),
    ] {
        let mut application = place.application(name, ".");
        application["spec"]["source"]["repoURL"] = url.into();
        place.apply(&application).await;
    }
    place.apply(&place.application("web", "web")).await;
    place.apply(&hooked(place, echo)).await;

    for name in ["leaky", "private"] {
        let told = |_: StatusCode, found: &Value| {
            let mut conditions = found["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|one| one["type"] == "ComparisonError")
        };
        admin.until("git cannot be read", &format!("/api/v1/applications/{name}"), told).await;
    }
    let known = |status: StatusCode, _: &Value| status == StatusCode::OK;
    admin.until("it is known", "/api/v1/applications/web", known).await;
    let (status, answer) = admin.post("/api/v1/applications/web/sync", json!({})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let synced = |_: StatusCode, found: &Value| found["status"]["operationState"]["phase"] == "Succeeded";
    admin.until("it is synced", "/api/v1/applications/web", synced).await;
    let failed = |_: StatusCode, board: &Value| board["state"] == "Failed";
    admin.until("the hooks have failed", "/api/v1/applicationsets/hooked/rollout", failed).await;
    for part in ["/literal", "/kept", "/last", "/told"] {
        eventually(&format!("{part} was called"), async || echo.heard(part).then_some(())).await;
    }
    assert!(echo.heard(&format!("Bearer {CANARY}")), "the secret was sent where it belongs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_leaves_by_no_answer_stream_event_status_log_or_metric() {
    let echo = Echo::start();
    let place =
        Place::with(&["--hooks-allow-http", "--hooks-allow", "127.0.0.1"], &[("BATON_LOG", "debug")]).await;
    let admin = place.admin().await;
    plant(&place, &echo, &admin).await;
    let mut leaks = Leaks::default();

    // Every operation that shows something, of everything there is.
    let (_, document) = place.nobody().get("/api/v1/openapi.json").await;
    let mut shown = 0;
    for path in paths(&document) {
        for (who, person) in [("admin", &admin), ("nobody", &place.nobody())] {
            let answer = person.send(Method::GET, &path, None).await;
            let status = answer.status();
            let headers = format!("{:?}", answer.headers());
            let text = answer.text().await.expect("an answer");
            assert!(status != StatusCode::INTERNAL_SERVER_ERROR, "{path}: {text}");
            shown += usize::from(status == StatusCode::OK && who == "admin");
            leaks.look(&format!("GET {path} as {who}"), &(headers + &text));
        }
    }
    assert!(shown > 60, "only {shown} answers were good for anything");
    for (path, sign) in [
        ("/api/v1/applications/web/managed-resources", "++++++++"),
        ("/api/v1/applications/leaky", "https://***@"),
        ("/api/v1/applicationsets/hooked", "\"Authorization\":\"***\""),
        ("/api/v1/applicationsets/hooked", "Bearer {{secrets.pager.token}}"),
        ("/api/v1/applicationsets/hooked/rollout", "answered with status 500"),
    ] {
        let text = admin.send(Method::GET, path, None).await.text().await.expect("an answer");
        assert!(text.contains(sign), "{path} does not show {sign}: {text}");
    }

    for (path, until) in [
        ("applications", "leaky"),
        ("applicationsets", "hooked"),
        ("rollouts", "hooked"),
        ("approvals", "items"),
    ] {
        let path = format!("/api/v1/stream/{path}");
        leaks.look(&path, &streamed(&admin, &path, until).await);
    }

    // What was shown and is sent back keeps what it had, and an answer to a change says no more than one to a question.
    let (_, mut set) = admin.get("/api/v1/applicationsets/hooked").await;
    set["metadata"]["labels"] = json!({"team": "shop"});
    let (status, answer) = admin.post("/api/v1/applicationsets?upsert=true", set).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    leaks.look("POST /api/v1/applicationsets", &answer.to_string());
    let sets = objects(&place.control, "argoproj.io/v1alpha1", "ApplicationSet").await;
    let stored = sets[0]["spec"]["generators"][0]["deploymentStrategy"]["phases"][0]["preHooks"][0].clone();
    assert_eq!(stored["http"]["headers"]["Authorization"], format!("Bearer {CANARY}"), "{stored}");

    // What whoever may read the control plane or a member is told, without Secrets and specs.
    let member = client(&place.home.path().join("up/clusters/dev.kubeconfig")).await;
    for (which, cluster) in [("control plane", &place.control), ("member", &member)] {
        for event in objects(cluster, "v1", "Event").await {
            leaks.look(&format!("Event of the {which}"), &event.to_string());
        }
    }
    for kind in ["Application", "ApplicationSet", "AppProject"] {
        for mut object in objects(&place.control, "argoproj.io/v1alpha1", kind).await {
            // A copy of the source as the spec of the same object has it: by it the two are compared.
            object["status"]["sync"]["comparedTo"] = Value::Null;
            let place = format!("status of {kind} {}", object["metadata"]["name"]);
            leaks.look(&place, &object["status"].to_string());
        }
    }

    let (metrics, log) = measured(&place.home.path().join("up/kubeconfig")).await;
    assert!(metrics.contains("baton_") || metrics.contains("argocd_"), "{metrics}");
    leaks.look("/metrics", &metrics);
    leaks.look("the log of a controller", &log);
    let outcome = place.up.terminate();
    assert!(outcome.stderr.contains("DEBUG"), "it logs all that it can: {}", outcome.stderr);
    leaks.look("standard output", &outcome.stdout);
    leaks.look("standard error", &outcome.stderr);
    assert!(leaks.0.is_empty(), "{:#?}", leaks.0);
}

/// Where the secret was seen, with what stands around it.
#[derive(Default)]
struct Leaks(BTreeSet<String>);

impl Leaks {
    fn look(&mut self, place: &str, text: &str) {
        for secret in [CANARY, ENCODED] {
            if let Some(at) = text.find(secret) {
                let (from, to) =
                    (text.floor_char_boundary(at.saturating_sub(200)), text.ceil_char_boundary(at + 100));
                self.0.insert(format!("{place}: …{}…", &text[from..to.min(text.len())]));
            }
        }
    }
}

/// All that is read and ends, with names of what there is.
fn paths(document: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (template, operations) in document["paths"].as_object().expect("paths") {
        if operations["get"].is_null() || template.contains("/stream/") || template.starts_with("/auth/") {
            continue;
        }
        let names: &[&str] = match template.starts_with("/api/v1/applications/") {
            true => &["web", "leaky", "private", "hooked-dev"],
            false => &[""],
        };
        all.extend(names.iter().map(|name| filled(template, name)));
    }
    all
}

fn filled(template: &str, application: &str) -> String {
    let mut path: Vec<&str> = Vec::new();
    for part in template.split('/') {
        let before = path.last().copied().unwrap_or_default();
        path.push(match (part.starts_with('{'), before) {
            (false, _) => part,
            (true, "applications") => application,
            (true, "applicationsets") => "hooked",
            (true, "projects") => "default",
            (true, "clusters") => "dev",
            (true, "repositories") => "https%3A%2F%2F127.0.0.1%3A1%2Fprivate.git",
            (true, "account") => "admin",
            (true, "revisions") => "main",
            (true, "can-i") => "applications",
            (true, _) => "x",
        });
    }
    let of_secret = "kind=Secret&version=v1&namespace=web&resourceName=keys";
    let query = match template {
        template if template.ends_with("/clusters/{id}") => "?id.type=name".to_owned(),
        template
            if template.contains("/resource")
                && template.contains("/applications/")
                && !template.ends_with("-tree") =>
        {
            format!("?{of_secret}")
        }
        _ => String::new(),
    };
    path.join("/") + &query
}

/// What a stream says until it has said something.
async fn streamed(person: &Person<'_>, path: &str, until: &str) -> String {
    let mut answer = person.send(Method::GET, path, None).await;
    let mut text = String::new();
    let read = async {
        while !text.contains(until) {
            let part = answer.chunk().await.expect("a stream").expect("the stream goes on");
            text.push_str(&String::from_utf8_lossy(&part));
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("{path} does not say {until}"));
    text
}

async fn objects(cluster: &Client, api_version: &str, kind: &str) -> Vec<Value> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::all_with(cluster.clone(), &resource);
    let all = api.list(&ListParams::default()).await.expect("a list");
    all.into_iter().map(|object| serde_json::to_value(object).expect("JSON")).collect()
}

/// What a controller of the same fleet measures, and what it logs.
async fn measured(kubeconfig: &Path) -> (String, String) {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut command = process::baton();
    command.env("BATON_LOG", "debug").args(["controller", "--allow-local-repos", "--hooks-allow-http"]);
    command.args(["--hooks-allow", "127.0.0.1", "--controllers", "applicationset,application,notifications"]);
    command.args(["--metrics-listen", &free.to_string(), "--kubeconfig"]).arg(kubeconfig);
    let controller = Running::of(command);
    let metrics = eventually("a controller measures the set", async || {
        let answer = reqwest::get(format!("http://{free}/metrics")).await.ok()?;
        let text = answer.text().await.ok()?;
        text.contains("hooked").then_some(text)
    })
    .await;
    (metrics, controller.terminate().stderr)
}
