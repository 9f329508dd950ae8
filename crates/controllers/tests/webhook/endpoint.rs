//! The endpoint, over HTTP.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_controllers::webhook::{Candidate, Refresh, Settings, WebhookSecrets, Work, webhooks};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::{Headers, git, github_push, secrets, sha256, spec};

/// Three sets; what is refreshed is told to the test.
struct World {
    secrets: Arc<WebhookSecrets>,
    refreshed: UnboundedSender<String>,
    broken: bool,
}

impl Refresh for World {
    fn secrets(&self) -> Arc<WebhookSecrets> {
        self.secrets.clone()
    }

    async fn sets(&self) -> Result<Vec<Candidate>, String> {
        if self.broken {
            return Err("no connection".to_owned());
        }
        let set = |name: &str, revision: &str| {
            let mut set = ApplicationSet::default();
            set.metadata.name = Some(name.to_owned());
            set.metadata.namespace = Some("argocd".to_owned());
            set.spec = spec(json!([git("https://github.com/org/apps.git", revision)]));
            Candidate { set: Arc::new(set), read: Some(Arc::new(BTreeSet::new())) }
        };
        Ok(vec![set("unlucky", "HEAD"), set("idle", "other"), set("follower", "main")])
    }

    async fn refresh(&self, namespace: &str, name: &str) -> Result<(), String> {
        // The test may have ended.
        let _ = self.refreshed.send(format!("{namespace}/{name}"));
        if name == "unlucky" { Err("conflict".to_owned()) } else { Ok(()) }
    }
}

struct Endpoint {
    address: SocketAddr,
    work: Work<World>,
    refreshed: UnboundedReceiver<String>,
}

async fn endpoint(settings: &Settings, secret: &[(&str, &str)], broken: bool) -> Endpoint {
    let (refreshed, receiver) = unbounded_channel();
    let world = World { secrets: Arc::new(secrets(secret)), refreshed, broken };
    let (router, work) = webhooks(Arc::new(world), settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    Endpoint { address, work, refreshed: receiver }
}

/// Sends a request and returns status and body of the answer.
async fn send(address: SocketAddr, method: &str, headers: Headers<'_>, body: &str) -> (u16, String) {
    let mut request = format!("{method} /api/webhook HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    if !headers.iter().any(|(name, _)| *name == "Content-Length") {
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    request += "\r\n";
    request += body;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("the request is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer.split_once("\r\n\r\n").expect("a body").1.to_owned())
}

#[tokio::test]
async fn a_push_refreshes_the_sets_it_concerns() {
    let mut endpoint = endpoint(&Settings::default(), &[("webhook.github.secret", "s3cret")], false).await;
    let body = github_push("refs/heads/main").to_string();
    let signature = format!("sha256={}", sha256("s3cret", &body));
    let headers = [("X-GitHub-Event", "push"), ("X-Hub-Signature-256", signature.as_str())];
    assert_eq!(send(endpoint.address, "POST", &headers, &body).await, (200, String::new()));
    tokio::spawn(endpoint.work.run());
    // One that cannot be refreshed does not keep the others from it.
    assert_eq!(endpoint.refreshed.recv().await.as_deref(), Some("argocd/unlucky"));
    assert_eq!(endpoint.refreshed.recv().await.as_deref(), Some("argocd/follower"));
}

#[tokio::test]
async fn what_is_refused_says_why() {
    let endpoint = endpoint(&Settings::default(), &[("webhook.github.secret", "s3cret")], false).await;
    let push = ("X-GitHub-Event", "push");
    let body = github_push("refs/heads/main").to_string();
    let cases: [(&str, Headers<'_>, &str, u16, &str); 7] = [
        ("POST", &[], "{}", 400, "Unknown webhook event\n"),
        ("GET", &[], "", 400, "Unknown webhook event\n"),
        ("GET", &[push], "", 405, "Webhook processing failed: invalid HTTP Method\n"),
        ("POST", &[push], &body, 400, "Webhook processing failed: missing X-Hub-Signature-256 Header\n"),
        (
            "POST",
            &[push, ("X-Hub-Signature-256", "sha256=00")],
            &body,
            400,
            "Webhook processing failed: HMAC verification failed\n",
        ),
        (
            "POST",
            &[("X-Gitlab-Event", "Push Hook")],
            "[",
            400,
            "Webhook processing failed: error parsing payload\n",
        ),
        (
            "POST",
            &[("X-Gitlab-Event", "Note Hook")],
            "{}",
            400,
            "Webhook processing failed: event not defined to be parsed\n",
        ),
    ];
    for (method, headers, body, status, message) in cases {
        assert_eq!(send(endpoint.address, method, headers, body).await, (status, message.to_owned()));
    }
}

#[tokio::test]
async fn bodies_are_bounded_whether_they_say_their_length_or_not() {
    let settings = Settings { max_body: 1 << 20, ..Settings::default() };
    let endpoint = endpoint(&settings, &[], false).await;
    let refused = (400, "Webhook processing failed: payload must be valid JSON under 1 MB\n".to_owned());
    let announced = [("X-GitHub-Event", "push"), ("Content-Length", "99999999999")];
    assert_eq!(send(endpoint.address, "POST", &announced, "").await, refused);

    let mut stream = TcpStream::connect(endpoint.address).await.expect("a connection");
    let head = "POST /api/webhook HTTP/1.1\r\nHost: localhost\r\nX-GitHub-Event: push\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("the head is taken");
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..17 {
        // The server may hang up as soon as it has seen enough.
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    if stream.read_exact(&mut answer).await.is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 400");
    }
}

#[tokio::test]
async fn a_full_queue_turns_events_away_and_pings_need_no_place() {
    let settings = Settings { queue: 2, ..Settings::default() };
    let mut endpoint = endpoint(&settings, &[], false).await;
    let push = [("X-GitHub-Event", "push")];
    let body = github_push("refs/heads/main").to_string();
    for _ in 0..2 {
        assert_eq!(send(endpoint.address, "POST", &push, &body).await.0, 200);
    }
    let full = (503, "Queue is full, discarding webhook payload\n".to_owned());
    assert_eq!(send(endpoint.address, "POST", &push, &body).await, full);
    assert_eq!(send(endpoint.address, "POST", &[("X-GitHub-Event", "ping")], "{}").await.0, 200);
    tokio::spawn(endpoint.work.run());
    for _ in 0..4 {
        assert!(endpoint.refreshed.recv().await.is_some());
    }
    assert_eq!(send(endpoint.address, "POST", &push, &body).await.0, 200);
    assert!(endpoint.refreshed.recv().await.is_some());
}

#[tokio::test]
async fn work_goes_on_when_sets_cannot_be_listed() {
    let (refreshed, mut receiver) = unbounded_channel();
    let world = World { secrets: Arc::new(WebhookSecrets::default()), refreshed, broken: true };
    let (router, work) = webhooks(Arc::new(world), &Settings::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = axum::serve(listener, router).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let server = tokio::spawn(async move { server.await });
    for _ in 0..3 {
        let body = github_push("refs/heads/main").to_string();
        assert_eq!(send(address, "POST", &[("X-GitHub-Event", "push")], &body).await.0, 200);
    }
    // Once the endpoint is gone, the work ends after its last event.
    let _ = stop.send(());
    server.await.expect("the server ends").expect("without trouble");
    work.run().await;
    assert_eq!(receiver.recv().await, None);
}
