//! A cluster to send requests to, and what must hold of it whatever is sent.

use std::time::Duration;

use baton_apiserver::store::{Change, Page};
use baton_apiserver::{Clock, Cluster, Options, store};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::encoding::JSON;
use crate::templates::{GADGETS, OBJECTS};

/// How long an answer may take to arrive, in virtual time; a watch has no end and is left then.
const PATIENCE: Duration = Duration::from_millis(10);

/// A request before it is sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) method: &'static str,
    pub(crate) uri: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// One fuzzed cluster.
pub(crate) struct World {
    cluster: Cluster,
}

/// Runs a case to its end on its own paused clock, so that housekeeping is done whenever the case waits.
pub(crate) fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing of the system");
    runtime.block_on(case);
}

impl World {
    /// A cluster with a custom kind and one object of each template it takes.
    pub(crate) async fn new() -> World {
        let epoch = "2026-01-01T00:00:00Z".parse().expect("a date");
        let cluster = Cluster::memory(Options {
            store: store::Options::unlimited(),
            clock: Clock::starting_at(epoch),
            seed: Some(7),
            workloads: None,
            nodes: 1,
            ..Options::default()
        });
        let world = World { cluster };
        world.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &GADGETS).await;
        world.settle().await;
        for (path, kind) in [
            ("/api/v1/namespaces", "Namespace"),
            ("/api/v1/namespaces/default/configmaps", "ConfigMap"),
            ("/apis/apps/v1/namespaces/default/deployments", "Deployment"),
            ("/apis/example.com/v1/namespaces/default/gadgets", "Gadget"),
        ] {
            let object =
                OBJECTS.iter().find(|object| object["kind"] == kind).expect("a template of the kind");
            world.must("POST", path, object).await;
        }
        world.settle().await;
        world
    }

    async fn must(&self, method: &'static str, uri: &str, object: &Value) {
        let headers = vec![("content-type", JSON.to_owned())];
        let sent = Sent { method, uri: uri.to_owned(), headers, body: object.to_string().into() };
        let reply = self.send(&sent).await.expect("the case writes a valid request");
        assert!(reply.code < 300, "{uri}: {}", reply.text());
    }

    /// Waits until housekeeping has nothing left to do: a paused clock only moves when every task is idle.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    pub(crate) fn revision(&self) -> u64 {
        self.cluster.store().revision()
    }

    /// The answer; `None` for what is no HTTP request at all.
    pub(crate) async fn send(&self, sent: &Sent) -> Option<Reply> {
        let mut request = Request::builder().method(sent.method).uri(&sent.uri);
        for (name, value) in &sent.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::<Bytes>::from(sent.body.clone())).ok()?;
        let (head, mut body) = self.cluster.handle(request).await.into_parts();
        let mut bytes = Vec::new();
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, body.frame()).await {
            bytes.extend(frame.into_data().unwrap_or_default());
        }
        let content_type = head.headers.get("content-type").and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        Some(Reply { code: head.status.as_u16(), content_type, body: bytes.into() })
    }

    /// Checks every state the history holds, and that every object there is now can be read and written back as it
    /// stands.
    pub(crate) async fn check(&self) {
        self.settle().await;
        for event in self.cluster.store().history(self.cluster.store().oldest()) {
            let object: Value = match serde_json::from_slice(&event.record.json()) {
                Ok(object) => object,
                Err(error) => panic!("{:?} is stored as no JSON: {error}", event.record.key),
            };
            for field in
                ["/apiVersion", "/kind", "/metadata/name", "/metadata/uid", "/metadata/resourceVersion"]
            {
                let text = object.pointer(field).and_then(Value::as_str).unwrap_or_default();
                assert!(!text.is_empty(), "stored without {field}: {object}");
            }
            assert_eq!(object["metadata"]["name"], &*event.record.key.name);
            assert_eq!(event.previous.is_none(), event.change == Change::Added);
        }
        for resource in self.cluster.store().resources() {
            let listing =
                self.cluster.store().list(&resource, None, Page::default()).expect("the present is kept");
            for record in listing.records {
                let object: Value = serde_json::from_slice(&record.json()).expect("checked with the history");
                self.check_unchanged(&resource, &object).await;
            }
        }
    }

    async fn check_unchanged(&self, resource: &str, object: &Value) {
        let uri = path(resource, object);
        let reply = self.send(&Sent { method: "GET", uri: uri.clone(), ..Sent::default() }).await;
        let reply = reply.expect("a stored object's path is a valid one");
        let custom = resource.ends_with("example.com");
        if custom && reply.code == 404 {
            return; // Its definition went away or no longer serves this version.
        }
        assert_eq!(reply.code, 200, "GET {uri}: {}", reply.text());
        let shown: Value = serde_json::from_slice(&reply.body).expect("the answer is JSON");
        assert!(custom || &shown == object, "GET {uri} shows {shown}, stored is {object}");

        if resource == "events" {
            return; // Its two shapes have rules of their own; what one accepts the other may refuse.
        }
        let before = self.revision();
        let headers = vec![("content-type", JSON.to_owned())];
        let put = Sent { method: "PUT", uri: uri.clone(), headers, body: reply.body.to_vec() };
        let reply = self.send(&put).await.expect("the same path again");
        if custom && reply.code == 422 {
            return; // Its definition became stricter.
        }
        assert_eq!(reply.code, 200, "PUT {uri}: {} of {shown}", reply.text());
        assert_eq!(
            self.revision(),
            before,
            "PUT {uri} as it stands is a write: {shown} became {}",
            reply.text()
        );
    }
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Where a stored object is served.
fn path(resource: &str, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let root = if text("/apiVersion").contains('/') { "/apis" } else { "/api" };
    let plural = resource.split('.').next().unwrap_or_default();
    let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let scope = match text("/metadata/namespace") {
        "" => String::new(),
        namespace => format!("/namespaces/{}", escaped(namespace)),
    };
    format!("{root}/{}{scope}/{plural}/{}", text("/apiVersion"), escaped(text("/metadata/name")))
}
