//! The API for people and the web pages of a real `baton up`, and of a `baton server` beside it.

mod accounts;
mod approvals;
mod canary;
mod matrix;
mod place;
#[path = "../process/mod.rs"]
mod process;
mod projects;
mod registered;
#[path = "../../../server/tests/calls/rows.rs"]
#[allow(dead_code, reason = "which operations there are is looked at by the tests of the server")]
mod rows;
mod scripts;
mod served;
mod shapes;
mod shell;
mod sso;

use std::fs;

use place::{Place, REMOTE, config_map};
use process::{Running, address_in};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_watched_synced_and_deleted_with_approval() {
    let place = Place::start().await;
    place.commit("web/a.yaml", &config_map("plain", json!({})));
    let guarded = json!({"argocd.argoproj.io/sync-options": "Delete=confirm"});
    place.commit("web/b.yaml", &config_map("precious", guarded));
    let admin = place.admin().await;
    let (status, who) = admin.get("/api/v1/session/userinfo").await;
    assert_eq!((status, &who["username"]), (StatusCode::OK, &json!("admin")));
    assert_eq!(place.sign_in("admin", "wrong").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(place.nobody().get("/api/v1/applications").await.0, StatusCode::UNAUTHORIZED);

    let mut stream = admin.send(Method::GET, "/api/v1/stream/applications?name=web", None).await;
    assert_eq!(stream.status(), StatusCode::OK);
    place.apply(&place.application("web", "web")).await;
    until_line(&mut stream, |event| event["result"]["type"] == "ADDED").await;
    let listed = |status: StatusCode, answer: &Value| {
        status == StatusCode::OK && answer["items"][0]["metadata"]["name"] == "web"
    };
    admin.until("the list has it", "/api/v1/applications", listed).await;

    let (status, answer) = admin.post("/api/v1/applications/web/sync", json!({})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let synced = |event: &Value| {
        let status = &event["result"]["application"]["status"];
        status["operationState"]["phase"] == "Succeeded" && status["sync"]["status"] == "Synced"
    };
    until_line(&mut stream, synced).await;
    let (status, managed) = admin.get("/api/v1/applications/web/managed-resources").await;
    assert_eq!(status, StatusCode::OK, "{managed}");
    let precious =
        managed["items"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "precious"));
    let target = precious.and_then(|one| one["targetState"].as_str()).unwrap_or_default();
    assert!(target.contains("blue"), "what git wants is told: {managed}");

    let (status, answer) = admin.delete("/api/v1/applications/web").await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let waits = |_: StatusCode, answer: &Value| answer["items"].as_array().is_some_and(|all| !all.is_empty());
    let inbox = admin.until("the deletion waits", "/api/v1/approvals", waits).await;
    let item = &inbox["items"][0];
    assert_eq!((&item["kind"], &item["allowed"]), (&json!("delete"), &json!(true)), "{inbox}");
    let stale = json!({"items": [{"id": item["id"], "setHash": "another"}]});
    let (_, answer) = admin.post("/api/v1/approvals/approve", stale).await;
    assert_eq!(answer["items"][0]["ok"], false, "what was not seen is not approved: {answer}");
    let verdict = json!({"items": [{"id": item["id"], "setHash": item["setHash"]}], "reason": "moved"});
    let (status, answer) = admin.post("/api/v1/approvals/approve", verdict).await;
    assert_eq!((status, &answer["items"][0]["ok"]), (StatusCode::OK, &json!(true)), "{answer}");
    until_line(&mut stream, |event| event["result"]["type"] == "DELETED").await;

    let (_, deeds) = admin.get("/api/v1/audit").await;
    let told =
        |verb: &str| deeds["items"].as_array().is_some_and(|all| all.iter().any(|one| one["verb"] == verb));
    assert!(told("approve") && told("sync"), "{deeds}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_policy_holds_at_once_and_who_may_not_is_refused() {
    let place = Place::start().await;
    place.commit("web/a.yaml", &config_map("plain", json!({})));
    place.apply(&place.application("web", "web")).await;
    place.settings("argocd-cm", json!({"accounts.reader": "login"})).await;
    let admin = place.admin().await;
    let body = json!({"name": "reader", "currentPassword": place.password(), "newPassword": "a word that is long enough"});
    process::eventually("the account has a password", async || {
        let (status, _) = admin.put("/api/v1/account/password", body.clone()).await;
        (status == StatusCode::OK).then_some(())
    })
    .await;
    let reader = place.person("reader", "a word that is long enough").await;
    let path = "/api/v1/applications/web";
    assert_eq!(reader.get(path).await.0, StatusCode::FORBIDDEN, "nobody has given them a right");

    place.settings("argocd-rbac-cm", json!({"policy.csv": "p, reader, applications, get, */*, allow"})).await;
    reader.until("the policy holds", path, |status, _| status == StatusCode::OK).await;
    let (status, answer) = reader.post("/api/v1/applications/web/sync", json!({})).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
    let told = answer["message"].as_str().unwrap_or_default();
    assert!(told.starts_with("permission denied: applications, sync, default/web, sub: reader"), "{told}");
    assert_eq!(reader.delete(path).await.0, StatusCode::FORBIDDEN);
    let (_, can) = reader.get("/api/v1/account/can-i/applications/sync/default%2Fweb").await;
    assert_eq!(can, json!({"value": "no"}));

    // One that cannot be read changes nothing; one that takes the right away does.
    place.settings("argocd-rbac-cm", json!({"policy.csv": "p, reader"})).await;
    assert_eq!(reader.get(path).await.0, StatusCode::OK);
    place.settings("argocd-rbac-cm", json!({"policy.csv": ""})).await;
    reader.until("the right is gone", path, |status, _| status == StatusCode::FORBIDDEN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_is_worked_through_by_command_with_a_server_and_without_one() {
    let place = Place::start().await;
    let guarded = json!({"argocd.argoproj.io/sync-options": "Delete=confirm"});
    let admin = place.admin().await;
    for name in ["one", "two"] {
        place.commit(&format!("{name}/a.yaml"), &config_map(name, guarded.clone()));
        place.apply(&place.application(name, name)).await;
        let path = format!("/api/v1/applications/{name}");
        admin.until("it is known", &path, |status, _| status == StatusCode::OK).await;
        assert_eq!(admin.post(&format!("{path}/sync"), json!({})).await.0, StatusCode::OK);
        let synced = |_: StatusCode, answer: &Value| answer["status"]["sync"]["status"] == "Synced";
        admin.until("it is synced", &path, synced).await;
        assert_eq!(admin.delete(&path).await.0, StatusCode::OK);
    }
    let both = |_: StatusCode, answer: &Value| answer["items"].as_array().is_some_and(|all| all.len() == 2);
    admin.until("both wait", "/api/v1/approvals", both).await;

    let address = place.address.to_string();
    let token = admin.token.clone().expect("a token");
    let config = place.home.path().join("argocd-config");
    let config = config.to_str().expect("UTF-8");
    let by_server = ["--server", &address, "--plaintext", "--auth-token", &token, "--config", config];
    let kubeconfig = place.home.path().join("up/kubeconfig");
    let by_kubeconfig = ["--core", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    let approvals =
        |what: &[&str], place: &[&str]| process::run(["approvals"].iter().chain(what).chain(place).copied());
    for place in [&by_server[..], &by_kubeconfig] {
        let listed = approvals(&["list", "-o", "name"], place);
        let mut names: Vec<&str> = listed.stdout.lines().collect();
        names.sort_unstable();
        assert_eq!(names, ["delete/argocd/one", "delete/argocd/two"], "{listed:?}");
        assert_eq!(listed.stderr, "");
    }
    let unknown = approvals(&["approve", "delete/argocd/three"], &by_server);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    let rejected = approvals(&["reject", "delete/argocd/one", "--reason", "no"], &by_server);
    assert_eq!(rejected.code, Some(3), "a deletion cannot be taken back: {rejected:?}");
    for (name, by) in [("delete/argocd/one", &by_server[..]), ("delete/argocd/two", &by_kubeconfig)] {
        let approved = approvals(&["approve", name, "--reason", "moved"], by);
        assert_eq!(approved.code, Some(0), "{approved:?}");
        assert!(approved.stdout.starts_with(name), "{approved:?}");
    }
    let none = |_: StatusCode, answer: &Value| answer["items"] == json!([]);
    admin.until("both are gone", "/api/v1/applications", none).await;
    let (_, deeds) = admin.get("/api/v1/audit").await;
    let approved = deeds["items"].as_array().into_iter().flatten();
    let approved = approved.filter(|one| one["verb"] == "approve" && one["outcome"] == "done");
    assert_eq!(approved.count(), 2, "both ways are written down: {deeds}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_paused_and_goes_on() {
    let place = Place::start().await;
    place.commit("web/a.yaml", &config_map("plain", json!({})));
    let element = |env: &str| json!({"env": env});
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let mut template = place.application("web-{{.env}}", "web");
    template["metadata"]["labels"] = json!({"env": "{{.env}}"});
    template["spec"]["destination"]["namespace"] = json!("web-{{.env}}");
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "web"},
        "spec": {
            "goTemplate": true,
            "generators": [{"list": {"elements": [element("dev"), element("prod")]}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), step("prod")]}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    });
    place.apply(&set).await;
    let admin = place.admin().await;
    let board = "/api/v1/applicationsets/web/rollout";
    let actions = "/api/v1/applicationsets/web/actions";
    admin.until("the set is known", board, |status, _| status == StatusCode::OK).await;
    let (_, planned) = admin.get("/api/v1/applicationsets/web/plan").await;
    assert!(planned["items"].as_array().is_some_and(|all| all.len() == 2), "generators run here: {planned}");

    let (status, answer) = admin.post(actions, json!({"action": "pause", "reason": "lunch"})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let is = |paused: bool| {
        move |_: StatusCode, set: &Value| {
            (set["metadata"]["annotations"]["baton.dev/paused"] == "true") == paused
        }
    };
    let path = "/api/v1/applicationsets/web";
    admin.until("it is paused", path, is(true)).await;
    let (status, answer) = admin.post(actions, json!({"action": "resume"})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    admin.until("it is not paused", path, is(false)).await;
    let (status, _) = place.nobody().post(actions, json!({"action": "pause"})).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let done = |_: StatusCode, answer: &Value| {
        let synced = |one: &Value| one["status"]["sync"]["status"] == "Synced";
        answer["items"].as_array().is_some_and(|all| all.len() == 2 && all.iter().all(synced))
    };
    admin.until("both are deployed", "/api/v1/applications", done).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_a_host_tells_of_is_seen_at_once_by_what_it_concerns() {
    let place = Place::start().await;
    place.commit("web/a.yaml", &config_map("plain", json!({})));
    let mut application = place.application("web", "web");
    application["spec"]["source"]["repoURL"] = REMOTE.into();
    place.apply(&application).await;
    let admin = place.admin().await;
    let path = "/api/v1/applications/web";
    admin.until("it is known", path, |status, _| status == StatusCode::OK).await;
    assert_eq!(admin.post(&format!("{path}/sync"), json!({})).await.0, StatusCode::OK);
    let is =
        |state: &'static str| move |_: StatusCode, found: &Value| found["status"]["sync"]["status"] == state;
    admin.until("it is synced", path, is("Synced")).await;

    place.commit("web/b.yaml", &config_map("new", json!({})));
    let push = json!({"ref": "refs/heads/main", "repository": {"html_url": "https://git.example.com/fleet/config",
        "default_branch": "main"}});
    let told = reqwest::Client::new().post(format!("http://{}/api/webhook", place.address));
    let told = told.header("content-type", "application/json").header("x-github-event", "push");
    let answer = told.body(push.to_string()).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
    // Without it, it would look in three minutes.
    admin.until("the commit is seen", path, is("OutOfSync")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_the_api_live_beside_each_other() {
    let place = Place::start().await;
    let nobody = place.nobody();
    for path in ["/", "/approvals", "/rollouts/argocd/web"] {
        let answer = nobody.send(Method::GET, path, None).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert_eq!(header(&answer, "content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(header(&answer, "cache-control"), "no-cache", "{path}");
        assert!(header(&answer, "content-security-policy").starts_with("default-src 'self'"), "{path}");
    }
    for (path, expected) in [
        ("/healthz", StatusCode::OK),
        ("/readyz", StatusCode::OK),
        ("/api/version", StatusCode::OK),
        ("/api/v1/nothing", StatusCode::NOT_FOUND),
        ("/assets/nothing.js", StatusCode::NOT_FOUND),
    ] {
        let answer = nobody.send(Method::GET, path, None).await;
        let without_pages =
            path.starts_with("/assets") && header(&answer, "content-type").starts_with("text/html");
        assert!(answer.status() == expected || without_pages, "{path}: {}", answer.status());
    }
    let webhook = nobody.send(Method::POST, "/api/webhook", Some(&json!({}))).await;
    assert_ne!(webhook.status(), StatusCode::NOT_FOUND, "webhooks are still taken");
    assert_eq!(place.up.terminate().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_its_own_speaks_tls_and_stops_when_told() {
    let place = Place::start().await;
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (place.home.path().join("tls.crt"), place.home.path().join("tls.key"));
    fs::write(&certificate, made.cert.pem()).expect("a file");
    fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let kubeconfig = place.home.path().join("up/kubeconfig");
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let at = ["server", "--listen", "127.0.0.1:0", "--kubeconfig", &text(&kubeconfig)].map(str::to_owned);
    let with = ["--tls-cert".to_owned(), text(&certificate), "--tls-key".to_owned(), text(&key)];
    let mut server = Running::start(at.iter().chain(&with));
    let address = address_in(&server.line_with("Serving"));
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).expect("a certificate");
    let http = reqwest::Client::builder().tls_certs_only([trusted]).build().expect("a client");
    let url = |path: &str| format!("https://localhost:{}{path}", address.port());
    let answer = http.get(url("/healthz")).send().await.expect("an answer");
    assert_eq!((answer.status(), answer.version()), (StatusCode::OK, reqwest::Version::HTTP_2));
    assert!(!header(&answer, "strict-transport-security").is_empty());
    let body = json!({"username": "admin", "password": place.password()});
    let request = http.post(url("/api/v1/session")).header("content-type", "application/json");
    let answer = request.body(body.to_string()).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK, "the accounts are those of the control plane");
    let cookie = header(&answer, "set-cookie");
    assert!(cookie.contains("Secure") && cookie.contains("HttpOnly"), "{cookie}");
    let outcome = server.terminate();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("Stopped."), "{outcome:?}");

    let neither = process::run(at.iter());
    assert_eq!(neither.code, Some(1), "{neither:?}");
    assert!(neither.stderr.contains("--insecure"), "{neither:?}");
}

/// Reads a stream of lines on until one holds.
async fn until_line(stream: &mut Response, holds: impl Fn(&Value) -> bool) {
    let mut text = Vec::new();
    let read = async {
        loop {
            let part = stream.chunk().await.expect("a stream").expect("the stream goes on");
            text.extend_from_slice(&part);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                if holds(&serde_json::from_slice(&line).expect("JSON")) {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(process::PATIENCE, read).await.expect("the event comes");
}

fn header<'r>(answer: &'r Response, name: &str) -> &'r str {
    answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
