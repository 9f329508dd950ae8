//! Makes one HTTP call.
//!
//! # Guarantees
//! - No address is connected to that leads inward, unless the operator allows it: judged after resolution, for each
//!   redirect anew, and the judged address is the one connected to (`connect`).
//! - The time limit holds for everything together: look-up, connections, redirects, headers, the body as far as it
//!   is read.
//! - When the call ends, in whatever way, its connection is closed: no pool, no task left behind.
//! - The verdict depends on the status alone. At most [`crate::Limits::response`] bytes of the body are read.
//!
//! # Redirects
//! Five are followed at most. A redirect whose status is an expected one is the answer. Calls without effects (GET,
//! HEAD, OPTIONS) follow any; others only 307 and 308 on the same origin, which keep method and body: a POST that
//! turns into the GET of a login page would read as success, and a body may not go to a host its author never
//! named. To another origin nothing of the configuration's headers goes along. From https to http no redirect is
//! followed.

mod address;
mod allow;
mod connect;
mod headers;
mod tls;

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use url::Url;

pub use address::{Inward, judge};
pub use allow::{AllowList, Places, SettingError};
use connect::Connector;
pub(crate) use connect::origin;
pub use connect::{Resolve, SystemResolver};
pub(crate) use headers::{is_credential, reserved};

use crate::call::{Call, Request};
use crate::outcome::{Fault, Reason};
use crate::settings::Settings;

const MOST_REDIRECTS: usize = 5;

/// How much of an unwelcome answer is kept, in bytes.
const EXCERPT: usize = 1 << 10;

/// Makes HTTP calls.
pub(crate) struct HttpCaller {
    connector: Connector,
    allow_http: bool,
    allow_insecure_tls: bool,
    most_read: usize,
}

/// How a call ended that got an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) excerpt: String,
    pub(crate) fault: Option<Fault>,
}

struct Reply {
    status: StatusCode,
    location: Option<String>,
    body: Vec<u8>,
}

// === impl HttpCaller ===

impl HttpCaller {
    pub(crate) fn new(settings: &Settings, resolver: Arc<dyn Resolve>) -> std::io::Result<HttpCaller> {
        let connector = Connector {
            allow: settings.allow.clone(),
            places: settings.places.clone(),
            resolver,
            trust: tls::Trust::new(settings.authorities.as_deref())?,
        };
        Ok(HttpCaller {
            connector,
            allow_http: settings.allow_http,
            allow_insecure_tls: settings.allow_insecure_tls,
            most_read: settings.limits.response,
        })
    }

    /// Makes the call. The caller holds the time limit: dropping the future closes the connection.
    pub(crate) async fn call(&self, call: &Call, request: &Request) -> Result<Answer, Fault> {
        self.may_begin(request)?;
        let mut url = request.url.clone();
        let mut headers = headers::all(call, request)?;
        for _ in 0..=MOST_REDIRECTS {
            let reply = self.exchange(request, &url, &headers).await?;
            let status = reply.status.as_u16();
            if request.expected.contains(&status) {
                return Ok(Answer { status, excerpt: String::new(), fault: None });
            }
            let Some(next) = next_hop(request, &url, &reply)? else {
                return Ok(unexpected(request, &url, &reply));
            };
            if next.origin() != url.origin() {
                headers = headers::for_another_origin(call, headers);
            }
            url = next;
        }
        let message = format!("more than {MOST_REDIRECTS} redirects, the last from {}", origin(&url));
        Err(Fault::new(Reason::BadRedirect, message))
    }

    /// What validation has refused already is refused here too: nobody has to have asked it.
    fn may_begin(&self, request: &Request) -> Result<(), Fault> {
        let url = &request.url;
        let refuse =
            |message: &str| Err(Fault::new(Reason::AddressNotAllowed, format!("{}: {message}", origin(url))));
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            "http" => {
                return refuse("only https is allowed; the operator can allow http with --hooks-allow-http");
            }
            _ => return refuse("only https is allowed"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("user names and passwords do not belong into a URL");
        }
        if request.insecure && !self.allow_insecure_tls {
            return refuse("insecureSkipVerify needs the operator's --hooks-allow-insecure-tls");
        }
        Ok(())
    }

    async fn exchange(&self, request: &Request, url: &Url, headers: &HeaderMap) -> Result<Reply, Fault> {
        let broken = |fault: hyper::Error| {
            Fault::new(Reason::ProtocolError, format!("the exchange with {} broke off: {fault}", origin(url)))
        };
        let stream = self.connector.connect(url, request.insecure).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let outgoing = outgoing(request, url, headers)?;
        let mut exchange = pin!(async {
            let response = sender.send_request(outgoing).await?;
            let location = response.headers().get(header::LOCATION);
            let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
            let status = response.status();
            let body = read_some(response.into_body(), self.most_read).await?;
            Ok(Reply { status, location, body })
        });
        let mut connection = pin!(connection);
        // The connection is driven here and not by a task of its own, so that it ends with this future. When it
        // ends first, what it has read is still to be taken.
        tokio::select! {
            biased;
            reply = &mut exchange => reply.map_err(broken),
            _ = &mut connection => exchange.await.map_err(broken),
        }
    }
}

fn outgoing(request: &Request, url: &Url, headers: &HeaderMap) -> Result<http::Request<Full<Bytes>>, Fault> {
    let wrong =
        |fault: http::Error| Fault::new(Reason::Invalid, format!("no request can be made of it: {fault}"));
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let body = Bytes::copy_from_slice(request.body.expose().as_bytes());
    let mut outgoing = http::Request::builder()
        .method(request.method.clone())
        .uri(target)
        .header(header::HOST, host)
        .body(Full::new(body))
        .map_err(wrong)?;
    outgoing.headers_mut().extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    outgoing.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    Ok(outgoing)
}

/// Reads a body up to a bound; what comes after it is not waited for.
async fn read_some(mut body: Incoming, most: usize) -> Result<Vec<u8>, hyper::Error> {
    let (mut kept, mut read) = (Vec::new(), 0);
    while read < most
        && let Some(frame) = body.frame().await
    {
        let Ok(data) = frame?.into_data() else { continue };
        read += data.len();
        let room = EXCERPT.saturating_sub(kept.len()).min(data.len());
        kept.extend_from_slice(&data[..room]);
    }
    Ok(kept)
}

/// Where a reply sends the call; none if it is the last one.
fn next_hop(request: &Request, url: &Url, reply: &Reply) -> Result<Option<Url>, Fault> {
    let (301 | 302 | 303 | 307 | 308) = reply.status.as_u16() else { return Ok(None) };
    let Some(location) = &reply.location else { return Ok(None) };
    let refuse =
        |why: String| Err(Fault::new(Reason::BadRedirect, format!("{} redirects {why}", origin(url))));
    let Ok(next) = url.join(location) else { return refuse("to what is no URL".to_owned()) };
    if !matches!(next.scheme(), "http" | "https") {
        return refuse(format!("to the scheme {}", next.scheme()));
    }
    if url.scheme() == "https" && next.scheme() == "http" {
        return refuse(format!("from https to {}", origin(&next)));
    }
    if !next.username().is_empty() || next.password().is_some() {
        return refuse("to a URL with a user name".to_owned());
    }
    let harmless = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
    let keeps = matches!(reply.status.as_u16(), 307 | 308);
    if harmless || (keeps && next.origin() == url.origin()) {
        return Ok(Some(next));
    }
    refuse(format!(
        "the {} to {} with status {}, which is not followed; use the URL it redirects to",
        request.method,
        origin(&next),
        reply.status.as_u16()
    ))
}

fn unexpected(request: &Request, url: &Url, reply: &Reply) -> Answer {
    let status = reply.status.as_u16();
    let expected = match request.expected.as_slice() {
        [one] => one.to_string(),
        several => format!("one of {}", several.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")),
    };
    let message = format!("{} answered with status {status}, expected was {expected}", origin(url));
    Answer {
        status,
        excerpt: String::from_utf8_lossy(&reply.body).into_owned(),
        fault: Some(Fault::new(Reason::UnexpectedStatus, message)),
    }
}
