//! Requests of the controller, counted, and failed where a test says so.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use baton_apiserver::{Body as Answer, Cluster};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tower::Service;

/// What happens to a request that is to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is answered with this status and message and does nothing.
    Refused(u16, String),
    /// It is carried out, and answered with this status and message.
    Done(u16, String),
    /// It is carried out, and never answered.
    Silent,
    /// It is neither carried out nor answered.
    #[allow(dead_code, reason = "not every test that shares this file loses requests")]
    Lost,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) watch: bool,
    /// Whether nothing is to come of it.
    #[allow(dead_code, reason = "not every test that shares this file asks")]
    pub(crate) dry_run: bool,
    /// The body of a patch.
    pub(crate) patch: Option<Value>,
    /// Name of the object to be created.
    pub(crate) created: Option<String>,
    /// Whether it was refused, by the API or for the test.
    pub(crate) failed: bool,
}

impl Call {
    /// Plural name of the resource, name of the object, subresource; empty where there is none.
    pub(crate) fn target(&self) -> (&str, &str, &str) {
        let mut parts: Vec<&str> = self.path.split('/').skip_while(|part| *part != "namespaces").collect();
        parts.resize(6, "");
        (parts[2], parts[3], parts[4])
    }
}

type Judge = Box<dyn FnMut(usize, &Call) -> Option<Fault> + Send>;
type Rights = Arc<dyn Fn(&Call) -> Option<Fault> + Send + Sync>;

/// The wire between a controller and its cluster.
#[derive(Clone)]
pub(crate) struct Wire {
    cluster: Cluster,
    /// What the client has no right to, whatever else a test makes of its requests.
    rights: Option<Rights>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    calls: Vec<Call>,
    judge: Option<Judge>,
}

impl Wire {
    pub(crate) fn new(cluster: Cluster) -> Wire {
        Wire { cluster, rights: None, shared: Arc::default() }
    }

    /// The wire of a client that lacks rights: `refuses` tells which of its requests are refused.
    #[allow(dead_code, reason = "not every test that shares this file takes rights away")]
    pub(crate) fn with_rights(
        self,
        refuses: impl Fn(&Call) -> Option<Fault> + Send + Sync + 'static,
    ) -> Wire {
        Wire { rights: Some(Arc::new(refuses)), ..self }
    }

    /// Lets `judge` decide about each further request, told its number from 0 and what it asks.
    pub(crate) fn fail(&self, judge: impl FnMut(usize, &Call) -> Option<Fault> + Send + 'static) {
        let mut shared = self.shared.lock();
        shared.calls.clear();
        shared.judge = Some(Box::new(judge));
    }

    pub(crate) fn heal(&self) {
        self.shared.lock().judge = None;
    }

    /// Requests since the last call of this, watches aside.
    pub(crate) fn take_calls(&self) -> Vec<Call> {
        let calls = std::mem::take(&mut self.shared.lock().calls);
        calls.into_iter().filter(|call| !call.watch).collect()
    }

    /// Notes a request and tells its number and fate.
    fn note(&self, mut call: Call) -> (usize, Option<Fault>) {
        let mut shared = self.shared.lock();
        let number = shared.calls.len();
        let judged = shared.judge.as_mut().and_then(|judge| judge(number, &call));
        let fault = judged.or_else(|| self.rights.as_ref().and_then(|refuses| refuses(&call)));
        call.failed = fault.is_some();
        shared.calls.push(call);
        (number, fault)
    }

    fn answered(&self, number: usize, answer: &Response<Answer>) {
        if let Some(call) = self.shared.lock().calls.get_mut(number) {
            call.failed = !answer.status().is_success();
        }
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let wire = self.clone();
        Box::pin(async move {
            let cluster = wire.cluster.clone();
            let (head, body) = request.into_parts();
            let body = BodyExt::collect(body).await.expect("a body").to_bytes();
            let call = Call {
                method: head.method.clone(),
                path: head.uri.path().to_owned(),
                watch: head.uri.query().unwrap_or_default().contains("watch=true"),
                dry_run: head.uri.query().unwrap_or_default().contains("dryRun=All"),
                patch: (head.method == Method::PATCH).then(|| serde_json::from_slice(&body).expect("JSON")),
                created: (head.method == Method::POST).then(|| name(&body)),
                failed: false,
            };
            let request = Request::from_parts(head, Full::new(body));
            let (number, fault) = wire.note(call);
            match fault {
                None => {
                    let answer = cluster.handle(request).await;
                    wire.answered(number, &answer);
                    Ok(answer)
                }
                Some(Fault::Refused(code, message)) => Ok(failure(code, &message)),
                Some(Fault::Done(code, message)) => {
                    cluster.handle(request).await;
                    Ok(failure(code, &message))
                }
                Some(Fault::Lost) => std::future::pending().await,
                Some(Fault::Silent) => {
                    cluster.handle(request).await;
                    std::future::pending().await
                }
            }
        })
    }
}

fn name(body: &[u8]) -> String {
    let object: Value = serde_json::from_slice(body).expect("JSON");
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// A failure as the API tells it.
fn failure(code: u16, message: &str) -> Response<Answer> {
    let reasons = BTreeMap::from([
        (409, "Conflict"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (504, "Timeout"),
    ]);
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reasons.get(&code).copied().unwrap_or("InternalError"),
        "message": message,
    });
    let body = Full::new(bytes::Bytes::from(status.to_string()));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).expect("a status");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
