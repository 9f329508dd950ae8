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
mod exchange;
mod headers;
mod tls;

use std::sync::Arc;

use http::{HeaderMap, Method, header};
use url::Url;

pub use address::{Inward, judge};
pub use allow::{AllowList, Places, SettingError};
pub use connect::{Connector, Resolve, SystemResolver, origin};
pub use exchange::{Exchange, Reply};
pub(crate) use headers::reserved;

use crate::call::{Call, Request};
use crate::outcome::{Fault, Reason};
use crate::secret::Cut;
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
    /// Where the excerpt was cut off.
    pub(crate) cut: Cut,
    pub(crate) fault: Option<Fault>,
}

// === impl HttpCaller ===

impl HttpCaller {
    pub(crate) fn new(settings: &Settings, resolver: Arc<dyn Resolve>) -> std::io::Result<HttpCaller> {
        let connector = Connector::new(
            settings.allow.clone(),
            settings.places.clone(),
            resolver,
            settings.authorities.as_deref(),
        )?;
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
                return Ok(Answer { status, excerpt: String::new(), cut: Cut::Nowhere, fault: None });
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
        let exchange = Exchange {
            url,
            method: &request.method,
            headers,
            body: request.body.expose().as_bytes(),
            insecure: request.insecure,
            most_read: self.most_read,
            most_kept: EXCERPT,
        };
        self.connector.exchange(&exchange).await
    }
}

/// Where a reply sends the call; none if it is the last one.
fn next_hop(request: &Request, url: &Url, reply: &Reply) -> Result<Option<Url>, Fault> {
    let (301 | 302 | 303 | 307 | 308) = reply.status.as_u16() else { return Ok(None) };
    let location = reply.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let Some(location) = location else { return Ok(None) };
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
        "the {} to {} with status {}, which is not followed; write the receiver's own URL",
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
        cut: if reply.body.len() < EXCERPT { Cut::Nowhere } else { Cut::After },
        fault: Some(Fault::new(Reason::UnexpectedStatus, message)),
    }
}
