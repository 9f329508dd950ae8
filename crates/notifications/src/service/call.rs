//! One HTTP call of a service.

use std::time::Duration;

use baton_hooks::{Connector, Exchange, Reply, Secret, origin};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use url::Url;

use super::{Failure, MOST_READ};
use crate::outbox::{DeliveryId, Wait};

/// What every call says it is.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("baton-notifications/", env!("CARGO_PKG_VERSION")));

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Longest part of an unwelcome answer that is told, in characters.
const EXCERPT: usize = 200;

/// A call that is about to be made.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) insecure: bool,
}

// === impl Call ===

impl<'a> Call<'a> {
    /// A call with the headers every call has.
    pub(super) fn new(
        method: Method,
        url: Url,
        id: &DeliveryId,
        body: &'a [u8],
    ) -> Result<Call<'a>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, USER_AGENT);
        headers.insert(IDEMPOTENCY_KEY, plain(id.as_str())?);
        Ok(Call { method, url, headers, body, insecure: false })
    }

    /// Sets a header whose value nobody may see.
    pub(super) fn set(&mut self, name: HeaderName, value: &Secret) -> Result<(), Failure> {
        let mut value = plain(value.expose())?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    /// Makes the call. Redirects are an unwelcome answer: a message would go where its author never meant it to.
    pub(super) async fn make(&self, connector: &Connector) -> Result<Reply, Failure> {
        let exchange = Exchange {
            url: &self.url,
            method: &self.method,
            headers: &self.headers,
            body: self.body,
            insecure: self.insecure,
            most_read: MOST_READ,
            most_kept: MOST_READ,
        };
        let reply = connector.exchange(&exchange).await.map_err(|fault| Failure::new(fault.message))?;
        match reply.status.as_u16() {
            200..=299 => Ok(reply),
            _ => Err(self.unwelcome(&reply)),
        }
    }

    fn unwelcome(&self, reply: &Reply) -> Failure {
        let status = reply.status.as_u16();
        let body = String::from_utf8_lossy(&reply.body);
        let excerpt: String = body.chars().filter(|char| !char.is_control()).take(EXCERPT).collect();
        let said = if excerpt.is_empty() { String::new() } else { format!(": {excerpt}") };
        let message = format!("{} answered with status {status}{said}", origin(&self.url));
        let wait = match (status, retry_after(&reply.headers)) {
            (_, Some(after)) => Wait::AtLeast(after),
            (408 | 425 | 429 | 500..=599, None) => Wait::Usual,
            _ => Wait::Longest,
        };
        Failure { message, wait }
    }
}

/// What the receiver asks to be waited for, in seconds; a date is not minded.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// A URL of the configuration. What is wrong with it is told without it.
pub(super) fn url(text: &str) -> Result<Url, Failure> {
    Url::parse(text).map_err(|_| Failure::lasting("the URL of the service is none"))
}

fn plain(value: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(value).map_err(|_| Failure::lasting("a header holds characters it may not"))
}
