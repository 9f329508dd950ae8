//! Sessions at a server: `baton login`, `logout`, `context`, `account` and `version`, against one that speaks Argo CD's API.

mod process;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path as Segments, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use process::{Outcome, baton};
use serde_json::{Value, json};

const TOKEN: &str = "a.b.c";

/// What was asked of the server: path and what may be done.
type Asked = Arc<Mutex<Vec<String>>>;

/// A server that knows one account.
async fn server() -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let router = Router::new()
        .route("/api/version", get(|| async { json!({"Version": "v3.1.0"}).to_string() }))
        .route("/api/v1/session", post(sign_in).delete(sign_out))
        .route("/api/v1/session/userinfo", get(who))
        .route("/api/v1/account/can-i/{resource}/{action}/{object}", get(may))
        .with_state(asked.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum_serve(listener, router).await });
    (address, asked)
}

async fn axum_serve(listener: tokio::net::TcpListener, router: Router) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        let io = hyper_util::rt::TokioIo::new(stream);
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
    }
}

fn refusal(message: &str) -> String {
    json!({"error": message, "code": 16, "message": message}).to_string()
}

async fn sign_in(headers: HeaderMap, body: String) -> (StatusCode, String) {
    assert_eq!(headers["content-type"], "application/json");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    match body == json!({"username": "admin", "password": "right"}) {
        true => (StatusCode::OK, json!({"token": TOKEN}).to_string()),
        false => (StatusCode::UNAUTHORIZED, refusal("Invalid username or password")),
    }
}

fn is_known(headers: &HeaderMap) -> bool {
    headers.get("authorization").is_some_and(|value| *value == format!("Bearer {TOKEN}"))
}

async fn sign_out(State(asked): State<Asked>, headers: HeaderMap) -> String {
    assert!(is_known(&headers));
    asked.lock().expect("nobody panicked").push("signed out".to_owned());
    json!({}).to_string()
}

async fn who(headers: HeaderMap) -> (StatusCode, String) {
    match is_known(&headers) {
        true => (StatusCode::OK, json!({"loggedIn": true, "username": "admin", "iss": "argocd"}).to_string()),
        false => (StatusCode::UNAUTHORIZED, refusal("invalid session: token is expired")),
    }
}

async fn may(State(asked): State<Asked>, Segments(what): Segments<(String, String, String)>) -> String {
    let answer = if what.1 == "get" { "yes" } else { "no" };
    asked.lock().expect("nobody panicked").push(format!("{} {} {}", what.0, what.1, what.2));
    json!({"value": answer}).to_string()
}

/// Runs a command with a home of its own, and something to read.
fn run(home: &Path, arguments: &[&str], input: &str) -> Outcome {
    let path = home.join("input");
    std::fs::write(&path, input).expect("a file");
    let mut command = baton();
    command.env("HOME", home).args(arguments).stdin(std::fs::File::open(&path).expect("the file"));
    for name in ["ARGOCD_CONFIG_DIR", "ARGOCD_SERVER", "ARGOCD_AUTH_TOKEN"] {
        command.env_remove(name);
    }
    let output = command.output().expect("the binary under test starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_begun_used_and_ended() {
    let (address, asked) = server().await;
    let (home, server) = (tempfile::tempdir().expect("a directory"), address.to_string());
    let run = |arguments: &[&str], input: &str| run(home.path(), arguments, input);
    let login =
        ["login", &server, "--plaintext", "--username", "admin", "--password-stdin", "--name", "local"];
    let refused = run(&login, "wrong\n");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(20), ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("Invalid username or password"), "{}", refused.stderr);
    let config = home.path().join(".config/argocd/config");
    assert!(!config.exists(), "nothing is kept of what was refused");
    let welcome = run(&login, "right\n");
    assert_eq!(
        welcome.stdout, "'admin' logged in successfully\nContext 'local' updated\n",
        "{}",
        welcome.stderr
    );
    let kept = std::fs::read_to_string(&config).expect("a configuration");
    assert!(kept.contains(TOKEN) && !kept.contains("right"), "{kept}");
    let contexts = run(&["context"], "").stdout;
    assert_eq!(
        contexts.lines().nth(1).map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["*", "local", &server])
    );
    assert!(run(&["account", "get-user-info"], "").stdout.contains("Username: admin"));
    let can = run(&["account", "can-i", "get", "applications", "shop/*"], "");
    assert_eq!((can.code, can.stdout.as_str()), (Some(0), "yes\n"), "{}", can.stderr);
    let action = "action/argoproj.io/Application/approve-deletion";
    assert_eq!(run(&["account", "can-i", action, "applications", "shop/*"], "").stdout, "no\n");
    assert_eq!(run(&["version"], "").stdout.lines().nth(1), Some("server: v3.1.0"));
    assert_eq!(run(&["logout"], "").stdout, "Logged out from 'local'\n");
    let told = asked.lock().expect("nobody panicked").clone();
    assert_eq!(
        told,
        [
            "applications get shop/*".to_owned(),
            format!("applications {action} shop/*"),
            "signed out".to_owned()
        ]
    );
    assert!(!std::fs::read_to_string(&config).expect("a configuration").contains(TOKEN));
    let after = run(&["account", "get-user-info", "--auth-token", "other"], "");
    assert_eq!(after.code, Some(20));
    assert!(after.stderr.contains("sign in with `baton login`"), "{}", after.stderr);
    assert_eq!(run(&["context", "local", "--delete"], "").stdout, "Context 'local' deleted\n");
    assert!(run(&["version"], "").stderr.contains("nobody is signed in anywhere"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_no_such_server_gets_no_password() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let page = Router::new().fallback(|| async { "hello" });
    tokio::spawn(async move { axum_serve(listener, page).await });
    let home = tempfile::tempdir().expect("a directory");
    let arguments = ["login", &address, "--plaintext", "--username", "admin", "--password-stdin"];
    let outcome = run(home.path(), &arguments, "right\n");
    assert_eq!(outcome.code, Some(20));
    assert!(
        outcome.stderr.contains("does not answer as a server of Baton or Argo CD does"),
        "{}",
        outcome.stderr
    );
    let tls = run(home.path(), &["login", &address, "--username", "admin", "--password-stdin"], "right\n");
    assert_eq!(tls.code, Some(20));
    assert!(tls.stderr.contains("--plaintext"), "{}", tls.stderr);
}
