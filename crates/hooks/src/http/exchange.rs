//! One request and its answer, over a connection of their own.

use std::pin::pin;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use url::Url;

use super::connect::{Connector, origin};
use crate::outcome::{Fault, Reason};

/// One request, as it goes out. Redirects are the caller's business.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// Where to.
    pub url: &'a Url,
    /// How.
    pub method: &'a Method,
    /// Every header but `Host` and what belongs to the connection.
    pub headers: &'a HeaderMap,
    /// The body.
    pub body: &'a [u8],
    /// Take any certificate.
    pub insecure: bool,
    /// Bytes of the answer that are read; the rest is not waited for.
    pub most_read: usize,
    /// Bytes of the answer that are kept, from its start.
    pub most_kept: usize,
}

/// What was answered.
#[derive(Clone)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The start of the body.
    pub body: Vec<u8>,
}

// === impl Connector ===

impl Connector {
    /// Sends one request and reads the answer. The caller holds the time limit: dropping the future closes the
    /// connection.
    ///
    /// # Errors
    /// There is no connection, or it breaks before the answer is there.
    pub async fn exchange(&self, exchange: &Exchange<'_>) -> Result<Reply, Fault> {
        let broken = |fault: hyper::Error| {
            let message = format!("the exchange with {} broke off: {fault}", origin(exchange.url));
            Fault::new(Reason::ProtocolError, message)
        };
        let stream = self.connect(exchange.url, exchange.insecure).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let outgoing = outgoing(exchange)?;
        let mut answer = pin!(async {
            let response = sender.send_request(outgoing).await?;
            let (head, body) = response.into_parts();
            let body = read_some(body, exchange.most_read, exchange.most_kept).await;
            Ok(Reply { status: head.status, headers: head.headers, body })
        });
        let mut connection = pin!(connection);
        // The connection is driven here and not by a task of its own, so that it ends with this future. When it
        // ends first, what it has read is still to be taken.
        tokio::select! {
            biased;
            reply = &mut answer => reply.map_err(broken),
            _ = &mut connection => answer.await.map_err(broken),
        }
    }
}

fn outgoing(exchange: &Exchange<'_>) -> Result<http::Request<Full<Bytes>>, Fault> {
    let wrong =
        |fault: http::Error| Fault::new(Reason::Invalid, format!("no request can be made of it: {fault}"));
    let url = exchange.url;
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut outgoing = http::Request::builder()
        .method(exchange.method.clone())
        .uri(target)
        .header(header::HOST, host)
        .body(Full::new(Bytes::copy_from_slice(exchange.body)))
        .map_err(wrong)?;
    let given = exchange.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    outgoing.headers_mut().extend(given);
    outgoing.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    // Front ends ask for it, and hyper says nothing of a body that is empty.
    let has_body = matches!(*exchange.method, Method::POST | Method::PUT | Method::PATCH);
    if has_body && exchange.body.is_empty() {
        outgoing.headers_mut().insert(header::CONTENT_LENGTH, header::HeaderValue::from_static("0"));
    }
    Ok(outgoing)
}

/// Reads a body up to a bound; what comes after it is not waited for, and where it breaks off it ends: the status has
/// been told, and it alone decides.
async fn read_some(mut body: Incoming, most: usize, most_kept: usize) -> Vec<u8> {
    let (mut kept, mut read) = (Vec::new(), 0);
    while read < most
        && let Some(Ok(frame)) = body.frame().await
    {
        let Ok(data) = frame.into_data() else { continue };
        read += data.len();
        let room = most_kept.saturating_sub(kept.len()).min(data.len());
        kept.extend_from_slice(&data[..room]);
    }
    kept
}
