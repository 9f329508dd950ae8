//! The world a case acts in: a client, a namespace of its own, and the words to ask and to wait.

use crate::target::Target;
use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use std::{sync::Mutex, time::Duration};

/// How long one awaited thing may take before the case counts as failed.
const PATIENCE: Duration = Duration::from_secs(45);
/// Between two looks at something that is awaited.
const LOOK_EVERY: Duration = Duration::from_millis(25);

pub(crate) const JSON: &str = "application/json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// One case's view of the target.
pub(crate) struct World {
    client: Client,
    namespace: String,
    unique: String,
    leftovers: Mutex<Vec<String>>,
}

/// An answer, read to its end.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An open watch.
pub(crate) struct Watch {
    chunks: BoxStream<'static, Bytes>,
    unread: Vec<u8>,
}

// === impl World ===

impl World {
    /// Makes a fresh namespace; its generated suffix is also the case's unique word.
    pub(crate) async fn new(target: &Target) -> Self {
        let client = target.client();
        let mut world =
            Self { client, namespace: String::new(), unique: String::new(), leftovers: Mutex::default() };
        let wanted =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "behaviour-"}});
        let made = world.post("/api/v1/namespaces", &wanted).await.created();
        world.namespace = text(&made, "/metadata/name").to_owned();
        world.unique = world.namespace.rsplit('-').next().unwrap_or_default().to_owned();
        world.delete_at_end(format!("/api/v1/namespaces/{}", world.namespace));
        world
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A word no other case of this or another run has: five lower-case letters and digits.
    pub(crate) fn unique(&self) -> &str {
        &self.unique
    }

    /// The path of a core/v1 collection in this case's namespace.
    pub(crate) fn core(&self, plural: &str) -> String {
        self.in_group("/api/v1", plural)
    }

    /// The path of a collection in this case's namespace, below a group's root such as `/apis/apps/v1`.
    pub(crate) fn in_group(&self, root: &str, plural: &str) -> String {
        format!("{root}/namespaces/{}/{plural}", self.namespace)
    }

    /// Registers a cluster-scoped object for deletion when the case is over, however it ends.
    pub(crate) fn delete_at_end(&self, path: String) {
        self.leftovers.lock().expect("no case panics while it holds the list").push(path);
    }

    pub(crate) async fn clean_up(&self) {
        let leftovers = std::mem::take(&mut *self.leftovers.lock().expect("as above"));
        for path in leftovers.into_iter().rev() {
            self.delete(&path).await;
        }
    }

    // --- requests ---

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, &[], Vec::new()).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Reply {
        self.call("GET", path, &[("accept", accept)], Vec::new()).await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Reply {
        self.call("POST", path, &[("content-type", JSON)], object.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, object: &Value) -> Reply {
        self.call("PUT", path, &[("content-type", JSON)], object.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, patch: &Value) -> Reply {
        self.call("PATCH", path, &[("content-type", kind)], patch.to_string()).await
    }

    /// Server-side apply under the given manager; `query` may add `&force=true` and the like.
    pub(crate) async fn apply(&self, path: &str, manager: &str, query: &str, object: &Value) -> Reply {
        self.patch(&format!("{path}?fieldManager={manager}{query}"), APPLY_PATCH, object).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.call("DELETE", path, &[], Vec::new()).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Reply {
        self.call("DELETE", path, &[("content-type", JSON)], options.to_string()).await
    }

    /// The request as given, for what is checked on the wire.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Reply {
        let response = self.send(method, path, headers, body.into()).await;
        let (head, body) = response.into_parts();
        let body = body.collect_bytes().await.expect("the answer's body arrives");
        Reply { code: head.status.as_u16(), headers: head.headers, body }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).expect("cases write valid requests");
        let sent = self.client.send(request);
        let answer = tokio::time::timeout(PATIENCE, sent).await;
        answer.unwrap_or_else(|_| panic!("no answer to {method} {path}")).expect("the server answers")
    }

    // --- watching and waiting ---

    /// Opens a watch; `query` is everything after `watch=true&`.
    pub(crate) async fn watch(&self, path: &str, query: &str) -> Watch {
        self.watch_as(path, query, JSON).await
    }

    pub(crate) async fn watch_as(&self, path: &str, query: &str, accept: &str) -> Watch {
        let path = format!("{path}?watch=true&{query}");
        let response = self.send("GET", &path, &[("accept", accept)], Vec::new()).await;
        let (head, body) = response.into_parts();
        if head.status != 200 {
            let body = body.collect_bytes().await.expect("the answer's body arrives");
            panic!("GET {path}: {} {}", head.status, String::from_utf8_lossy(&body));
        }
        let chunks = body.into_data_stream().filter_map(|chunk| async { chunk.ok() }).boxed();
        Watch { chunks, unread: Vec::new() }
    }

    /// Looks again and again until `look` gives something.
    pub(crate) async fn eventually<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking)
            .await
            .unwrap_or_else(|_| panic!("waited in vain until {what}"))
    }

    /// Waits until the object at `path` exists and satisfies the condition.
    pub(crate) async fn until(&self, path: &str, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        self.eventually(&format!("{path} {what}"), async || {
            let reply = self.get(path).await;
            (reply.code == 200).then(|| reply.json()).filter(&condition)
        })
        .await
    }

    pub(crate) async fn until_gone(&self, path: &str) {
        self.eventually(&format!("{path} is gone"), async || (self.get(path).await.code == 404).then_some(()))
            .await
    }

    // --- frequent objects ---

    /// Creates a ConfigMap with one datum and gives it back as stored.
    pub(crate) async fn config_map(&self, name: &str, labels: Value) -> Value {
        self.post(&self.core("configmaps"), &config_map(name, labels)).await.created()
    }

    /// Installs a CRD and waits until its objects are served.
    pub(crate) async fn install(&self, crd: &Value) -> Value {
        let name = text(crd, "/metadata/name");
        self.delete_at_end(format!("{CRDS}/{name}"));
        self.post(CRDS, crd).await.created();
        let served = self
            .until(&format!("{CRDS}/{name}"), "is established", |crd| {
                condition(crd, "Established").is_some_and(|found| found["status"] == "True")
            })
            .await;
        let group = text(&served, "/spec/group");
        let plural = text(&served, "/spec/names/plural");
        for version in served["spec"]["versions"].as_array().into_iter().flatten() {
            if version["served"] == true {
                let path = format!("/apis/{group}/{}/{plural}", text(version, "/name"));
                self.eventually(&format!("{path} is served"), async || {
                    (self.get(&path).await.code == 200).then_some(())
                })
                .await;
            }
        }
        served
    }
}

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

// === impl Reply ===

impl Reply {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("{} is not JSON: {}", self.code, self.lossy()))
    }

    /// The object of a 200 answer.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.code, 200, "{}", self.lossy());
        self.json()
    }

    /// The object of a 201 answer.
    #[track_caller]
    pub(crate) fn created(self) -> Value {
        assert_eq!(self.code, 201, "{}", self.lossy());
        self.json()
    }

    /// The Status of a failure with this code and reason.
    #[track_caller]
    pub(crate) fn fails(self, code: u16, reason: &str) -> Value {
        let status = self.json();
        assert_eq!((self.code, status["reason"].as_str().unwrap_or_default()), (code, reason), "{status}");
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["apiVersion"], "v1");
        assert_eq!(status["status"], "Failure");
        assert_eq!(status["code"], code);
        status
    }

    /// As [`Reply::fails`], and its message has all the given parts.
    #[track_caller]
    pub(crate) fn fails_saying(self, code: u16, reason: &str, parts: &[&str]) -> Value {
        let status = self.fails(code, reason);
        let message = text(&status, "/message");
        for part in parts {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
        status
    }

    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The texts of the `Warning` headers, each `299 - "…"`.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all(header::WARNING).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }

    fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

// === impl Watch ===

impl Watch {
    /// The next event, or none when the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event is one line of JSON"));
            }
            let chunk = tokio::time::timeout(PATIENCE, self.chunks.next())
                .await
                .expect("an event or the end in time");
            self.unread.extend_from_slice(&chunk?);
        }
    }

    /// The object of the next event, which must have this type. Bookmarks in between do not count.
    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("the watch ended before {kind}"));
            if event["type"] == "BOOKMARK" && kind != "BOOKMARK" {
                continue;
            }
            assert_eq!(event["type"], kind, "{event}");
            return event["object"].clone();
        }
    }

    /// As [`Watch::expect`], and the object has this name.
    pub(crate) async fn expect_named(&mut self, kind: &str, name: &str) -> Value {
        let object = self.expect(kind).await;
        assert_eq!(object["metadata"]["name"], name, "{kind}");
        object
    }
}

// === reading and writing objects ===

/// The string at a JSON pointer; its absence fails the case.
#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {pointer} of {value}"))
}

#[track_caller]
pub(crate) fn version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// The names of a list's items, in its order.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

/// The status condition of this type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// The `field` of every cause of a Status, in its order.
pub(crate) fn cause_fields(status: &Value) -> Vec<&str> {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    causes.filter_map(|cause| cause["field"].as_str()).collect()
}

/// No labels are left out rather than sent empty: an applied empty map is a value, and can conflict.
pub(crate) fn config_map(name: &str, labels: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}});
    if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        object["metadata"]["labels"] = labels;
    }
    object
}

/// A Deployment of one container that no case needs to run.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example/main:1"}]},
            },
        },
    })
}
