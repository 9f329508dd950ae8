//! What is written down of every call that changes something, and of every one that was denied.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

use crate::canary::furnish;
use crate::rows::rows;
use crate::scene::{Answer, Scene, Who};

/// What answers but changes nothing, so that there is nothing to tell.
const LOOKS: [&str; 2] = ["/api/v1/applicationsets/generate", "/validate"];

type Line = BTreeMap<&'static str, String>;

/// Keeps the lines of the audit log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Line>>>);

struct Reader<'l>(&'l mut Line);

impl Visit for Reader<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "baton::audit"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::new();
        event.record(&mut Reader(&mut line));
        self.0.lock().expect("nobody panicked").push(line);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Log {
    fn listen() -> (Log, DefaultGuard) {
        let log = Log::default();
        (log.clone(), tracing::subscriber::set_default(log))
    }

    fn of(&self, request: &str) -> Vec<Line> {
        let lines = self.0.lock().expect("nobody panicked");
        lines.iter().filter(|line| line.get("request").is_some_and(|id| id == request)).cloned().collect()
    }
}

async fn call(scene: &Scene, who: Who, request: &str, method: &str, path: &str, body: &Value) -> Answer {
    let token = scene.token(who).map(|token| ("authorization", format!("Bearer {token}")));
    let mut headers =
        vec![("content-type", "application/json".to_owned()), ("x-request-id", request.to_owned())];
    headers.extend(token);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    scene.send(method, path, &headers, body).await
}

/// The Events of a request.
async fn events(scene: &Scene, request: &str) -> Vec<Value> {
    let all = scene.stored("/api/v1/events").await["items"].take();
    let all = all.as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|one| one["metadata"]["annotations"]["baton.dev/request"] == request).collect()
}

#[tokio::test]
async fn every_change_is_told_once_with_who_made_it() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new().await;
    furnish(&scene).await;
    let waits = scene.get(Who::Admin, "/api/v1/approvals").await.json()["items"][0].clone();
    let mut told = 0;
    for (number, row) in rows(&waits).into_iter().enumerate() {
        let request = format!("change-{number}");
        let answer = call(&scene, Who::Admin, &request, row.method, &row.path, &row.body).await;
        let what = format!("{} {}: {}", row.method, row.path, answer.text);
        let (lines, events) = (log.of(&request), events(&scene, &request).await);
        if !answer.status.is_success() || LOOKS.iter().any(|look| row.path.ends_with(look)) {
            assert!(lines.iter().all(|line| line["outcome"] != "done"), "{what} {lines:?}");
            continue;
        }
        assert_eq!(lines.len(), 1, "{what} {lines:?}");
        let line = &lines[0];
        assert_eq!(line["actor"], "admin", "{what}");
        assert!(!line["verb"].is_empty(), "{what}");
        // Calls about nothing that Kubernetes has an object for are in the log alone.
        if line["name"].is_empty() {
            assert_eq!(events, Vec::<Value>::new(), "{what}");
            continue;
        }
        assert_eq!(events.len(), 1, "{what} {line:?}");
        let about = &events[0]["involvedObject"];
        assert_eq!(
            (about["kind"].as_str(), about["name"].as_str(), about["namespace"].as_str()),
            (Some(&*line["kind"]), Some(&*line["name"]), Some(&*line["namespace"])),
            "{what}"
        );
        assert_eq!(events[0]["metadata"]["annotations"]["baton.dev/actor"], "admin", "{what}");
        told += 1;
    }
    assert!(told > 20, "only {told} changes had an Event");
}

#[tokio::test]
async fn every_denied_call_is_told_with_who_made_it() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new().await;
    furnish(&scene).await;
    let waits = scene.get(Who::Admin, "/api/v1/approvals").await.json()["items"][0].clone();
    for (number, row) in rows(&waits).into_iter().enumerate() {
        // Only so many are told in a while.
        scene.advance(300);
        let request = format!("denied-{number}");
        let answer = call(&scene, Who::Reader, &request, row.method, &row.path, &row.body).await;
        let what = format!("{} {}: {}", row.method, row.path, answer.text);
        assert_eq!(answer.status, 403, "{what}");
        let lines = log.of(&request);
        assert_eq!(lines.len(), 1, "{what} {lines:?}");
        assert_eq!(
            (lines[0]["actor"].as_str(), lines[0]["outcome"].as_str()),
            ("reader", "denied"),
            "{what}"
        );
        let named =
            row.path.split(['/', '?']).any(|part| matches!(part, "web-dev" | "web-prod" | "web" | "shop"));
        let events = events(&scene, &request).await;
        if named {
            assert_eq!(events.len(), 1, "{what} {lines:?}");
            assert_eq!(events[0]["metadata"]["annotations"]["baton.dev/outcome"], "denied", "{what}");
        }
    }
    let deeds = scene.get(Who::Admin, "/api/v1/audit?limit=1000").await.json();
    let told =
        |one: &&Value| one["actor"] == "reader" && one["verb"] == "pause" && one["outcome"] == "denied";
    assert_eq!(deeds["items"].as_array().expect("deeds").iter().filter(told).count(), 1, "{deeds}");
}

#[tokio::test]
async fn whoever_may_do_nothing_does_not_fill_the_log() {
    let (log, _listening) = Log::listen();
    let scene = Scene::new().await;
    furnish(&scene).await;
    for _ in 0..100 {
        let answer =
            call(&scene, Who::Reader, "many", "DELETE", "/api/v1/applications/web-prod", &json!(null)).await;
        assert_eq!(answer.status, 403);
    }
    assert_eq!((log.of("many").len(), events(&scene, "many").await.len()), (20, 20));
}

#[tokio::test]
async fn of_what_may_not_be_seen_nothing_is_written_beside_it_that_its_denial_would_show() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    for path in ["/api/v1/applications/other", "/api/v1/applications/no-such"] {
        assert_eq!(scene.call(Who::Role, "DELETE", path, json!(null)).await.status, 403);
    }
    let seen = scene.get(Who::Role, "/api/v1/audit?limit=1000").await;
    assert!(!seen.text.contains("other") && !seen.text.contains("no-such"), "{}", seen.text);
}
