//! Between a client's request and the cluster's answer.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, BodyStream, Limited, StreamBody};
use kube::Client;
use parking_lot::Mutex;

use crate::answer::{Body, BoxError, gone, refusal, strip_hop, whole};
use crate::counts::Counts;
use crate::fate::{Faults, Gone};
use crate::kept::{Answer, Kept};
use crate::request::{Asked, asked};
use crate::stream::{Framing, Happened, late};

/// Largest body of a request: what Kubernetes takes.
const REQUEST: usize = 3 * 1024 * 1024;
/// Largest list that is kept.
const LIST: usize = 4 * 1024 * 1024;
/// How long a client may take to send a request, and the cluster to begin its answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of how many different collections it is known how often they were asked for.
const COLLECTIONS: usize = 10_000;

/// A proxy before a cluster.
pub(crate) struct Before {
    cluster: Client,
    faults: Faults,
    kept: Kept,
    turns: Mutex<HashMap<u64, u64>>,
    counts: Mutex<Counts>,
}

impl Before {
    pub(crate) fn new(cluster: Client, faults: Faults) -> Before {
        Before { cluster, faults, kept: Kept::default(), turns: Mutex::default(), counts: Mutex::default() }
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock()
    }

    /// Refuses somebody without the token.
    pub(crate) fn stranger(&self) -> Response<Body> {
        self.count(|counts| counts.strangers += 1);
        refusal(
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "the lagging proxy lets in only who has its token: use the kubeconfig it wrote",
        )
    }

    /// Answers somebody with the token.
    pub(crate) async fn answer<B>(self: Arc<Before>, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.count(|counts| counts.requests += 1);
        let (head, body) = request.into_parts();
        match asked(&head) {
            Asked::Upgrade => refusal(
                StatusCode::NOT_IMPLEMENTED,
                "NotImplemented",
                "the lagging proxy passes on plain requests only, not exec, attach or port-forward: ask the cluster itself",
            ),
            Asked::Watch { of, from } => self.watch(head, &of, from).await,
            Asked::List { of, is_consistent } => self.list(head, &of, is_consistent).await,
            Asked::Other => match tokio::time::timeout(PATIENCE, Limited::new(body, REQUEST).collect()).await
            {
                Ok(Ok(body)) => self.pass(head, body.to_bytes()).await,
                Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => refusal(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "RequestEntityTooLarge",
                    &format!("the body is larger than {REQUEST} bytes"),
                ),
                Ok(Err(_)) => refusal(StatusCode::BAD_REQUEST, "BadRequest", "the body ended too early"),
                Err(_) => refusal(StatusCode::REQUEST_TIMEOUT, "Timeout", "the body took too long"),
            },
        }
    }

    async fn watch(self: Arc<Before>, head: Parts, of: &str, from: Option<String>) -> Response<Body> {
        let fate = self.faults.watch(of, self.turn(of));
        if let (Some(version), Some(how)) = (from, fate.gone) {
            self.count(|counts| counts.gone += 1);
            // Only JSON is written here; whoever asks for something else can still read a refusal.
            return gone(&version, if reads_json(&head.headers) { how } else { Gone::Answer });
        }
        let answer = self.pass(head, Bytes::new()).await;
        if answer.status() != StatusCode::OK {
            return answer;
        }
        self.count(|counts| counts.streams += 1);
        let (mut head, body) = answer.into_parts();
        head.headers.remove(CONTENT_LENGTH);
        let form = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let framing = Framing::of(form);
        let tell = move |happened| {
            self.count(|counts| match happened {
                Happened::Delivered { late, after } => {
                    counts.events += 1;
                    counts.delayed += u64::from(late);
                    counts.longest = counts.longest.max(if late { after } else { Duration::ZERO });
                }
                Happened::Cut { lost } => {
                    counts.cuts += 1;
                    counts.lost += lost as u64;
                }
            });
        };
        Response::from_parts(head, late(body, framing, fate, tell))
    }

    async fn list(&self, head: Parts, of: &str, is_consistent: bool) -> Response<Body> {
        let kept = self.kept.of(of);
        let old = self.faults.list(of, self.turn(of), is_consistent, kept.len());
        if let Some(old) = old.and_then(|which| kept.get(which)) {
            self.count(|counts| counts.old_lists += 1);
            let mut answer = Response::new(whole(old.body.clone()));
            *answer.headers_mut() = old.headers.clone();
            return answer;
        }
        let answer = self.pass(head, Bytes::new()).await;
        if answer.status() != StatusCode::OK || self.faults.stale_lists == 0 {
            return answer;
        }
        let (head, body) = answer.into_parts();
        match read_up_to(body, LIST).await {
            Read::Whole(body) => {
                let mut headers = head.headers.clone();
                headers.remove(CONTENT_LENGTH);
                self.kept.keep(of, Answer { headers, body: body.clone() });
                Response::from_parts(head, whole(body))
            }
            Read::More(body) => Response::from_parts(head, body),
        }
    }

    /// Passes a request on to the cluster.
    async fn pass(&self, head: Parts, body: Bytes) -> Response<Body> {
        let request = match onward(head, body) {
            Ok(request) => request,
            Err(error) => return refusal(StatusCode::BAD_REQUEST, "BadRequest", &error.to_string()),
        };
        match tokio::time::timeout(PATIENCE, self.cluster.send(request)).await {
            Ok(Ok(answer)) => {
                let (mut head, body) = answer.into_parts();
                strip_hop(&mut head.headers);
                let mut passed = Response::new(body.map_err(BoxError::from).boxed_unsync());
                *passed.status_mut() = head.status;
                *passed.headers_mut() = head.headers;
                passed
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the cluster behind the proxy does not answer");
                let message =
                    format!("the cluster behind the lagging proxy does not answer: {}", cause(&error));
                refusal(StatusCode::BAD_GATEWAY, "ServiceUnavailable", &message)
            }
            Err(_) => refusal(
                StatusCode::GATEWAY_TIMEOUT,
                "Timeout",
                "the cluster behind the lagging proxy did not answer in time",
            ),
        }
    }

    /// How often the same was asked for before.
    fn turn(&self, of: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        let mut turns = self.turns.lock();
        let key = hasher.finish();
        // Whoever invents ever new questions shares one count, instead of filling the memory.
        let key = if turns.len() < COLLECTIONS || turns.contains_key(&key) { key } else { 0 };
        let turn = turns.entry(key).or_default();
        *turn += 1;
        *turn - 1
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock());
    }
}

/// The request as the cluster gets it: without the client's token and what concerned its connection, and asking for an
/// answer that can be read here.
fn onward(head: Parts, body: Bytes) -> Result<Request<kube::client::Body>, http::Error> {
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request =
        Request::builder().method(head.method).uri(path).body(kube::client::Body::from(body))?;
    let mut headers = head.headers;
    strip_hop(&mut headers);
    for name in [AUTHORIZATION, HOST, ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT] {
        headers.remove(name);
    }
    // Names that a cluster may believe of a proxy.
    let remote: Vec<_> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in remote {
        headers.remove(name);
    }
    *request.headers_mut() = headers;
    Ok(request)
}

/// Whether the form a client likes best is JSON.
fn reads_json(headers: &HeaderMap) -> bool {
    let first = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    ["application/json", "*/*", "application/*"].iter().any(|form| first.trim_start().starts_with(form))
}

enum Read {
    /// All of it.
    Whole(Bytes),
    /// It is larger: what was read and the rest.
    More(Body),
}

/// Reads a body that may be too large to hold, or break off: then it is passed on as it is.
async fn read_up_to(mut body: Body, limit: usize) -> Read {
    let mut parts: Vec<Bytes> = Vec::new();
    let mut size = 0;
    let failure = loop {
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    size += data.len();
                    parts.push(data);
                }
                if size > limit {
                    break None;
                }
            }
            Some(Err(error)) => break Some(error),
            None => return Read::Whole(parts.concat().into()),
        }
    };
    let read = futures::stream::iter(parts.into_iter().map(|data| Ok(Frame::data(data))));
    let rest = match failure {
        Some(error) => futures::future::Either::Left(futures::stream::iter([Err(error)])),
        None => futures::future::Either::Right(BodyStream::new(body)),
    };
    Read::More(StreamBody::new(futures::StreamExt::chain(read, rest)).boxed_unsync())
}

/// What is behind an error: those around it only say that something failed.
fn cause(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error).to_string()
}
