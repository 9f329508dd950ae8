//! Streams: what is there, what happens, and their end.

use futures::StreamExt as _;
use http_body_util::BodyStream;
use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{CANARY, Scene, Who, application};

/// Lines of a stream, as they come.
struct Lines {
    body: BodyStream<hyper::body::Incoming>,
    held: String,
}

impl Lines {
    async fn open(scene: &Scene, who: Who, path: &str, events: bool) -> Lines {
        let mut headers = vec![("authorization", format!("Bearer {}", scene.token(who).expect("a token")))];
        if events {
            headers.push(("accept", "text/event-stream".to_owned()));
        }
        let response = scene.open("GET", path, &headers, String::new()).await;
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().expect("a text").to_owned();
        assert_eq!(kind, if events { "text/event-stream" } else { "application/json" });
        Lines { body: BodyStream::new(response.into_body()), held: String::new() }
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some((line, rest)) = self.held.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.held = rest;
                if !line.is_empty() {
                    return line;
                }
                continue;
            }
            let frame = self.body.next().await.expect("more to come").expect("a frame");
            if let Ok(data) = frame.into_data() {
                self.held.push_str(std::str::from_utf8(&data).expect("a text"));
            }
        }
    }

    async fn json(&mut self) -> Value {
        let line = self.line().await;
        assert!(!line.contains(CANARY), "{line}");
        serde_json::from_str(line.strip_prefix("data: ").unwrap_or(&line)).expect("JSON")
    }

    /// The next event that is as hoped.
    async fn until(&mut self, hoped: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.json().await;
            if hoped(&event) {
                return event;
            }
        }
    }
}

#[tokio::test]
async fn applications_are_told_as_they_come_change_and_go() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let mut lines = Lines::open(&scene, Who::Role, "/api/v1/stream/applications", false).await;
    let mut first = Vec::new();
    for _ in 0..2 {
        let event = lines.json().await;
        assert_eq!(event["result"]["type"], "ADDED");
        first.push(event["result"]["application"]["metadata"]["name"].as_str().expect("a name").to_owned());
    }
    assert_eq!(first, ["web-dev", "web-prod"], "other is not the role's to see");
    let named = |name: &'static str, word: &'static str| {
        move |event: &Value| {
            event["result"]["application"]["metadata"]["name"] == name && event["result"]["type"] == word
        }
    };
    scene.control.apply("test", &application("new", "shop", None, json!({}))).await.expect("an Application");
    lines.until(named("new", "ADDED")).await;
    scene
        .control
        .apply("test", &application("new", "shop", None, json!({"health": {"status": "Healthy"}})))
        .await
        .expect("it");
    lines.until(named("new", "MODIFIED")).await;
    // One that moves out of the caller's sight is gone for them.
    scene.control.apply("test", &application("new", "default", None, json!({}))).await.expect("it");
    let gone = lines.until(named("new", "DELETED")).await;
    assert!(gone["result"]["application"].get("spec").is_none(), "and nothing more is told of it");
}

#[tokio::test]
async fn fields_choose_what_is_told_and_nothing_is_told_twice() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/v1/stream/applications?name=web-dev&fields=result.type,result.application.metadata.name,result.application.status.health";
    let mut lines = Lines::open(&scene, Who::Reader, path, true).await;
    let event = lines.json().await;
    assert_eq!(
        event,
        json!({"result": {"type": "ADDED", "application": {"metadata": {"name": "web-dev"},
        "status": {"health": {"status": "Progressing"}}}}})
    );
    let patch = |body: Value| {
        let body = json!({"patch": body.to_string(), "patchType": "merge"});
        scene.call(Who::Admin, "PATCH", "/api/v1/applications/web-dev", body)
    };
    assert_eq!(patch(json!({"metadata": {"labels": {"a": "b"}}})).await.status, 200);
    scene
        .control
        .apply(
            "other",
            &json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web-dev", "namespace": "argocd"}, "status": {"health": {"status": "Healthy"}}}),
        )
        .await
        .expect("it");
    let event = lines.json().await;
    assert_eq!(
        event["result"]["application"]["status"]["health"]["status"], "Healthy",
        "labels were not asked for"
    );
}

#[tokio::test]
async fn rollouts_and_approvals_are_told_when_they_change() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let mut rollouts = Lines::open(&scene, Who::Role, "/api/v1/stream/rollouts?name=web", true).await;
    let added = rollouts.until(|event| event["result"]["type"] == "ADDED").await;
    assert_eq!(added["result"]["rollout"]["name"], "web");
    let mut approvals = Lines::open(&scene, Who::Role, "/api/v1/stream/approvals", false).await;
    let waits = approvals.json().await;
    assert_eq!(waits["result"]["items"].as_array().map(Vec::len), Some(1));
    let path = "/api/v1/applicationsets/web/actions";
    assert_eq!(scene.call(Who::Role, "POST", path, json!({"action": "pause"})).await.status, 200);
    let changed = rollouts.until(|event| event["result"]["rollout"]["state"] == "Paused").await;
    assert_eq!(changed["result"]["type"], "MODIFIED");
    assert!(changed["result"]["rollout"]["lanes"][0].get("targets").is_none());
    assert_eq!(
        scene.call(Who::Admin, "DELETE", "/api/v1/applicationsets/web", Value::Null).await.status,
        200
    );
    let gone = rollouts.until(|event| event["result"]["type"] == "DELETED").await;
    assert_eq!(gone["result"]["rollout"], json!({"name": "web", "namespace": "argocd"}));
}

#[tokio::test]
async fn a_stream_ends_with_the_token_of_its_listener() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let mut lines = Lines::open(&scene, Who::Reader, "/api/v1/stream/applications", false).await;
    lines.json().await;
    scene.advance(3601);
    scene.control.apply("test", &application("new", "shop", None, json!({}))).await.expect("an Application");
    let end = lines.until(|event| event.get("error").is_some()).await;
    assert_eq!(
        (end["error"]["http_code"].as_i64(), end["error"]["grpc_code"].as_i64()),
        (Some(401), Some(16))
    );
}

#[tokio::test]
async fn sets_are_told_as_they_change() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let mut lines =
        Lines::open(&scene, Who::Reader, "/api/v1/stream/applicationsets?appSetNamespace=argocd", false)
            .await;
    let event = lines.json().await;
    assert_eq!(
        (event["result"]["type"].as_str(), event["result"]["applicationSet"]["metadata"]["name"].as_str()),
        (Some("ADDED"), Some("web"))
    );
}

#[tokio::test]
async fn the_fleet_is_told_in_a_line_each() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let mut lines = Lines::open(&scene, Who::Role, "/api/v1/stream/rollouts?summary=true", true).await;
    let added = lines.until(|event| event["result"]["type"] == "ADDED").await;
    let line = &added["result"]["rollout"];
    assert_eq!((line["name"].as_str(), line["run"].as_i64()), (Some("web"), Some(3)));
    assert!(line.get("lanes").is_none() && line.get("actions").is_none(), "{added}");
    let path = "/api/v1/applicationsets/web/actions";
    assert_eq!(scene.call(Who::Role, "POST", path, json!({"action": "pause"})).await.status, 200);
    let changed = lines.until(|event| event["result"]["rollout"]["state"] == "Paused").await;
    assert_eq!(changed["result"]["type"], "MODIFIED");
    assert!(
        changed["result"].get("targets").is_none() && changed["result"]["rollout"].get("lanes").is_none()
    );
}
