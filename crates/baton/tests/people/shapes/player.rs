//! Makes the calls at a server, ours or another, and keeps what their answers look like.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::shape::{self, Shape};
use crate::process::eventually;

/// The shapes of all answers, each under what was asked.
pub(super) type Recording = BTreeMap<String, Shape>;

/// A server with a fleet, and where its sources are.
pub(super) struct Target {
    pub(super) url: String,
    pub(super) password: String,
    /// The name of the cluster that Applications go to.
    pub(super) cluster: String,
    /// A git repository with a branch `main`, that the server reads under this path.
    pub(super) repository: PathBuf,
}

/// Somebody who asks, and writes down what comes.
pub(super) struct Player {
    pub(super) target: Target,
    http: reqwest::Client,
    /// What stands in the braces of calls.
    names: BTreeMap<&'static str, String>,
    token: String,
    recording: Recording,
}

/// How somebody is known who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Nobody,
    /// With a token that nobody has given out.
    Forger,
    Admin,
}

impl Player {
    pub(super) fn new(target: Target) -> Player {
        // Where no fleet of ours was started, nobody has said so yet.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (http, token) = (reqwest::Client::new(), String::new());
        Player { target, http, names: BTreeMap::new(), token, recording: Recording::new() }
    }

    /// What was recorded.
    pub(super) fn recording(self) -> Recording {
        self.recording
    }

    pub(super) fn repo_url(&self) -> String {
        format!("file://{}", self.target.repository.display())
    }

    /// Gives braces of calls a meaning.
    pub(super) fn name(&mut self, brace: &'static str, value: impl Into<String>) {
        self.names.insert(brace, value.into());
    }

    pub(super) async fn sign_in(&mut self) {
        let body = json!({"username": "admin", "password": self.target.password});
        let answer = self.send(By::Nobody, "POST /api/v1/session", Some(&body), &[]).await;
        let cookies = cookies(answer.headers());
        let answer = self.record("POST /api/v1/session", answer).await;
        self.recording.entry("POST /api/v1/session".to_owned()).or_default().extend(cookies);
        self.token = answer["token"].as_str().expect("a token").to_owned();
    }

    /// Asks as `admin`, and keeps what the answer looks like.
    pub(super) async fn ask(&mut self, call: &str) -> Value {
        let answer = self.send(By::Admin, call, None, &[]).await;
        self.record(call, answer).await
    }

    /// Sends something as `admin`, and keeps what the answer looks like.
    pub(super) async fn tell(&mut self, call: &str, body: Value) -> Value {
        let answer = self.send(By::Admin, call, Some(&body), &[]).await;
        self.record(call, answer).await
    }

    /// Asks in a way of its own, and keeps what the answer looks like under a note beside the call.
    pub(super) async fn odd(
        &mut self,
        note: &str,
        by: By,
        call: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Value {
        let answer = self.send(by, call, body.as_ref(), headers).await;
        self.record(&format!("{call} ({note})"), answer).await
    }

    /// Asks until the answer holds what is waited for; it is not kept.
    pub(super) async fn until(&self, what: &str, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        eventually(what, async || {
            let answer = self.send(By::Admin, &format!("GET {path}"), None, &[]).await;
            let answer: Value = serde_json::from_str(&answer.text().await.ok()?).ok()?;
            holds(&answer).then_some(answer)
        })
        .await
    }

    /// Listens to a stream until an event is as hoped, and keeps what the events look like, and how they are framed.
    pub(super) async fn listen(&mut self, call: &str, accept: &str, hoped: impl Fn(&Value) -> bool) {
        let mut answer = self.send(By::Admin, call, None, &[("accept", accept)]).await;
        let mut shape: Shape = [told(&answer)].into();
        let (mut held, mut seen) = (String::new(), false);
        while !seen {
            let part = answer.chunk().await.expect("the stream goes on").expect("a part");
            held.push_str(std::str::from_utf8(&part).expect("a text"));
            let end = if held.starts_with("data: ") || held.starts_with(':') { "\n\n" } else { "\n" };
            while let Some(at) = held.find(end) {
                let frame: String = held.drain(..at + end.len()).collect();
                let Some((framing, event)) = unframed(&frame) else { continue };
                shape.insert(format!("= {framing}"));
                shape.extend(shape::of(&event));
                seen |= hoped(&event);
            }
        }
        self.recording.insert(format!("{call} (Accept: {accept})"), shape);
    }

    async fn send(&self, by: By, call: &str, body: Option<&Value>, headers: &[(&str, &str)]) -> Response {
        let (method, path) = call.split_once(' ').expect("a method and a path");
        let mut path = path.to_owned();
        for (brace, value) in &self.names {
            path = path.replace(&format!("{{{brace}}}"), value);
        }
        assert!(!path.contains('{'), "{call}: something in braces has no meaning");
        let method: Method = method.parse().expect("a method");
        let mut request = self.http.request(method, format!("{}{path}", self.target.url));
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request = match by {
            By::Nobody => request,
            By::Forger => {
                request.bearer_auth("eyJhbGciOiJub25lIn0.eyJpc3MiOiJhcmdvY2QiLCJzdWIiOiJhZG1pbiJ9.")
            }
            By::Admin => request.bearer_auth(&self.token),
        };
        match body {
            Some(Value::String(text)) if by != By::Admin => request.body(text.clone()),
            Some(body) => request.body(body.to_string()),
            None => request,
        }
        .send()
        .await
        .expect("an answer")
    }

    async fn record(&mut self, call: &str, answer: Response) -> Value {
        let mut shape: Shape = [told(&answer)].into();
        let text = answer.text().await.expect("a whole body");
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if let (Some(code), Some(_)) = (value["code"].as_i64(), value["message"].as_str()) {
            shape.insert(format!("= code {code}"));
        }
        shape.extend(shape::of(&value));
        self.recording.entry(call.to_owned()).or_default().extend(shape);
        value
    }

    pub(super) fn commit(&self, path: &str, objects: &[Value]) {
        let file = self.target.repository.join(path);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("directories");
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        std::fs::write(file, text.join("\n---\n")).expect("a file");
        git(&self.target.repository, &["add", "-A"]);
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        git(&self.target.repository, &[&who[..], &["commit", "-qm", "change"]].concat());
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let output = std::process::Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Status and type of an answer.
fn told(answer: &Response) -> String {
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or("no type");
    format!("= {} {kind}", answer.status().as_u16())
}

/// The names of cookies that are set, and what protects them.
fn cookies(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all("set-cookie").iter().filter_map(|cookie| cookie.to_str().ok());
    let one = |cookie: &str| {
        let (name, rest) = cookie.split_once('=').unwrap_or((cookie, ""));
        let flags = rest.split(';').skip(1).map(|flag| flag.trim().to_ascii_lowercase());
        let flags: std::collections::BTreeSet<String> = flags.filter(|flag| !flag.is_empty()).collect();
        format!("= cookie {name}: {}", Vec::from_iter(flags).join(", "))
    };
    all.map(one).collect()
}

/// How an event is sent, and the event; comments are none.
fn unframed(frame: &str) -> Option<(&'static str, Value)> {
    let (framing, text) = match frame.strip_prefix("data: ") {
        Some(text) => ("server-sent events", text),
        None if frame.starts_with(':') || frame.trim().is_empty() => return None,
        None => ("a line each", frame),
    };
    Some((framing, serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("no JSON: {frame}"))))
}
