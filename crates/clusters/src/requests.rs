//! Requests to one cluster's API: each bounded in time and in the size of its answer, and few at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::future::poll_fn;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::connect::with_causes;
use crate::error::ClusterError;

/// Time until the head of an answer must be there, and its whole unless it is a watch.
pub(crate) const LONGEST_ANSWER: Duration = Duration::from_secs(60);
/// Most bytes of an answer that is no watch.
const LARGEST_ANSWER: usize = 256 * 1024 * 1024;
/// Most bytes of one event of a watch.
const LARGEST_EVENT: usize = 32 * 1024 * 1024;
/// Requests under way at a time, watches aside.
const AT_A_TIME: usize = 50;
/// How often a read is sent again that the server had no time for.
const TRIES: u32 = 3;

/// Content types.
pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Lists of objects without anything but metadata, where the server can make them.
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// Sends requests to one cluster.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
    free: Arc<Semaphore>,
}

/// An answer with the status that says whether something was made.
pub(crate) struct Answer {
    pub(crate) created: bool,
    pub(crate) object: Value,
}

/// The lines of an open watch.
pub(crate) struct Lines {
    body: Body,
    unread: BytesMut,
    /// Bytes of `unread` known to hold no end of line.
    searched: usize,
}

impl Requests {
    pub(crate) fn new(client: Client) -> Requests {
        Requests { client, free: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Reads a path. A server that is busy is asked again.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, ClusterError> {
        self.get_as(path, JSON).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Result<Value, ClusterError> {
        parsed(&self.text(path, accept).await?)
    }

    /// As [`Requests::get`], not parsed.
    pub(crate) async fn text(&self, path: &str, accept: &str) -> Result<BytesMut, ClusterError> {
        let mut pause = Duration::from_millis(500);
        for _ in 1..TRIES {
            match self.ask(Method::GET, path, accept, None).await {
                Err(ClusterError::Api { code: 429 | 503 | 504, .. }) => tokio::time::sleep(pause).await,
                answer => return answer.map(|(_, text)| text),
            }
            pause *= 2;
        }
        self.ask(Method::GET, path, accept, None).await.map(|(_, text)| text)
    }

    /// Writes. It is sent once, whatever comes of it.
    pub(crate) async fn write(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Answer, ClusterError> {
        let (status, text) = self.ask(method, path, JSON, Some((content_type, body))).await?;
        Ok(Answer { created: status == StatusCode::CREATED, object: parsed(&text)? })
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, path: &str) -> Result<Lines, ClusterError> {
        let request = request(Method::GET, path, JSON, None)?;
        let answer = tokio::time::timeout(LONGEST_ANSWER, self.client.send(request)).await;
        let answer = answer.map_err(|_| too_slow())?.map_err(|error| no_answer(&error))?;
        if !answer.status().is_success() {
            return Err(failure(answer).await);
        }
        Ok(Lines { body: answer.into_body(), unread: BytesMut::new(), searched: 0 })
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<(StatusCode, BytesMut), ClusterError> {
        let request = request(method, path, accept, body)?;
        let exchange = async {
            let _turn = self.free.acquire().await;
            let answer = self.client.send(request).await.map_err(|error| no_answer(&error))?;
            if !answer.status().is_success() {
                return Err(failure(answer).await);
            }
            Ok((answer.status(), whole(answer.into_body()).await?))
        };
        tokio::time::timeout(LONGEST_ANSWER, exchange).await.map_err(|_| too_slow())?
    }
}

// === impl Lines ===

impl Lines {
    /// The next line, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ClusterError> {
        loop {
            let found = self.unread[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = found {
                let line = self.unread.split_to(self.searched + end).freeze();
                self.unread.advance(1);
                self.searched = 0;
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.unread.len();
            if self.unread.len() > LARGEST_EVENT {
                return Err(ClusterError::NoAnswer("an event of a watch is too large".to_owned()));
            }
            match chunk(&mut self.body).await? {
                Some(more) => self.unread.extend_from_slice(&more),
                // A line without its end was cut off.
                None => return Ok(None),
            }
        }
    }
}

fn request(
    method: Method,
    path: &str,
    accept: &str,
    body: Option<(&str, &Value)>,
) -> Result<Request<Body>, ClusterError> {
    let mut request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
    let mut bytes = Vec::new();
    if let Some((content_type, body)) = body {
        request = request.header(CONTENT_TYPE, content_type);
        bytes = serde_json::to_vec(body).map_err(|error| ClusterError::NoAnswer(error.to_string()))?;
    }
    request.body(Body::from(bytes)).map_err(|error| ClusterError::Api {
        code: 400,
        reason: "BadRequest".to_owned(),
        message: format!("the request cannot be written: {error}"),
    })
}

async fn failure(answer: Response<Body>) -> ClusterError {
    let code = answer.status().as_u16();
    let text = match whole(answer.into_body()).await {
        Ok(text) => text,
        Err(error) => return error,
    };
    let status: Value = serde_json::from_slice(&text).unwrap_or_default();
    let said = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let message = match said("message") {
        message if message.is_empty() => format!("the Kubernetes API answered {code}"),
        message => message,
    };
    match code {
        403 => ClusterError::Forbidden(message),
        _ => ClusterError::Api { code, reason: said("reason"), message },
    }
}

async fn whole(mut body: Body) -> Result<BytesMut, ClusterError> {
    let mut text = BytesMut::new();
    while let Some(more) = chunk(&mut body).await? {
        if text.len() + more.len() > LARGEST_ANSWER {
            return Err(ClusterError::NoAnswer("the answer is too large".to_owned()));
        }
        text.extend_from_slice(&more);
    }
    Ok(text)
}

async fn chunk(body: &mut Body) -> Result<Option<Bytes>, ClusterError> {
    loop {
        let frame = poll_fn(|context| std::pin::Pin::new(&mut *body).poll_frame(context)).await;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => return Err(no_answer(&error)),
        }
    }
}

/// The parser bounds the depth.
fn parsed<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, ClusterError> {
    serde_json::from_slice(text)
        .map_err(|error| ClusterError::NoAnswer(format!("not the JSON that is expected: {error}")))
}

fn too_slow() -> ClusterError {
    ClusterError::NoAnswer(format!("none within {} s", LONGEST_ANSWER.as_secs()))
}

fn no_answer(error: &dyn std::error::Error) -> ClusterError {
    ClusterError::NoAnswer(with_causes(error))
}
