//! Requests to a host: sent with credentials to that host only, bounded, cached, and not at all while the host
//! wants to be left alone.

mod answers;
mod auth;
mod cache;
mod clients;
mod pages;
mod rates;

use std::error::Error as _;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use reqwest::header::{ACCEPT, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH};
use reqwest::{Method, StatusCode, Url};
use serde::Serialize;
use serde::de::IgnoredAny;
use tracing::debug;

pub(crate) use answers::Answer;
pub(crate) use auth::Auth;
pub(crate) use clients::{Trust, base};
pub(crate) use pages::{Budget, Item, NumberedPage, Page, link_page, list, numbered};

use crate::error::{Kind, ScmError};
use crate::lookup::Lookup;
use crate::metrics::Metrics;
use crate::settings::Settings;

/// How often one request waits for a host that wants to be left alone.
const MAX_WAITS: u32 = 20;

/// What all calls share.
pub(crate) struct Http {
    pub(crate) settings: Settings,
    clients: clients::Clients,
    cache: cache::Cache,
    rates: rates::Rates,
    pub(crate) metrics: Metrics,
}

impl Http {
    pub(crate) fn new(settings: Settings) -> Result<Http, ScmError> {
        Ok(Http {
            clients: clients::Clients::new(&settings)?,
            cache: cache::Cache::new(settings.cache_bytes),
            rates: rates::Rates::default(),
            metrics: Metrics::default(),
            settings,
        })
    }

    /// The API of a host.
    pub(crate) fn api(&self, base: Url, auth: Auth, trust: &Trust) -> Result<Api<'_>, ScmError> {
        let client = self.clients.get(trust)?;
        let dialect = Dialect::Plain;
        Ok(Api { http: self, client, base, auth, headers: HeaderMap::new(), counted: None, dialect })
    }
}

/// One host's API as one user.
pub(crate) struct Api<'a> {
    http: &'a Http,
    client: reqwest::Client,
    base: Url,
    auth: Auth,
    headers: HeaderMap,
    /// Namespace and name of the ApplicationSet whose calls are counted.
    counted: Option<(String, String)>,
    dialect: Dialect,
}

/// How a host uses what others use differently.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// As most do.
    Plain,
    /// Azure DevOps serves on when nothing remains of its allowance and asks, with a status of success, to wait
    /// before the next request. With a status of success it also shows those it does not know a page to sign in.
    Azure,
}

impl<'a> Api<'a> {
    /// Sends a header with every request.
    pub(crate) fn with_header(mut self, name: &'static str, value: &'static str) -> Api<'a> {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// Counts the calls, if calls are to be counted.
    pub(crate) fn counted_for(mut self, lookup: &impl Lookup) -> Api<'a> {
        if self.http.settings.github_metrics {
            self.counted = Some((lookup.namespace().to_owned(), lookup.name().to_owned()));
        }
        self
    }

    /// A host with ways of its own.
    pub(crate) fn speaking(mut self, dialect: Dialect) -> Api<'a> {
        self.dialect = dialect;
        self
    }

    /// The same API as another user.
    pub(crate) fn with_auth(mut self, auth: Auth) -> Api<'a> {
        self.auth = auth;
        self
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.http.settings
    }

    /// Host and port, for caches of what the host said.
    pub(crate) fn authority(&self) -> String {
        self.base.authority().to_owned()
    }

    /// The URL of an escaped path below the API's own.
    pub(crate) fn url<K: AsRef<str>, V: AsRef<str>>(&self, path: &str, query: &[(K, V)]) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// A URL the host gave, if it is the host's own.
    pub(crate) fn own_url(&self, text: &str) -> Result<Url, ScmError> {
        let url =
            Url::parse(text).map_err(|_| ScmError::protocol("the link to the next page is not a URL"))?;
        if url.origin() != self.base.origin() || !url.username().is_empty() || url.password().is_some() {
            return Err(ScmError::protocol(format!(
                "the link to the next page leads from {} to {}",
                self.base.authority(),
                url.host_str().unwrap_or_default()
            )));
        }
        Ok(url)
    }

    /// Reads; tries again when the host is out of order for the moment, and waits when it asks for a short wait.
    pub(crate) async fn get(&self, url: Url) -> Result<Answer, ScmError> {
        let (mut left, mut waits) = (self.settings().attempts, MAX_WAITS);
        let mut delay = self.settings().retry_delay;
        loop {
            let failure = match self.get_once(&url).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            left = left.saturating_sub(1);
            let pause = match self.short_wait(&failure.error) {
                Some(wait) if waits > 0 => {
                    waits -= 1;
                    wait
                }
                None if failure.transient && left > 0 => {
                    let pause = delay;
                    delay = delay.saturating_mul(2);
                    pause
                }
                _ => return Err(failure.error),
            };
            debug!(error = %failure.error, ?pause, "asking again");
            tokio::time::sleep(pause).await;
        }
    }

    /// How long to wait for a host that wants to be left alone, if it is worth it: a long list would otherwise be
    /// begun again and again and never come to its end.
    fn short_wait(&self, error: &ScmError) -> Option<Duration> {
        let Kind::RateLimited { until } = error.kind() else { return None };
        let wait = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
        (wait < self.settings().longest_wait).then_some(wait)
    }

    /// Asks for the whole answer the next time, whatever was kept of it.
    pub(crate) fn forget(&self, url: &Url) {
        self.http.cache.remove(self.auth.identity(), url);
    }

    /// Whether there is something at a URL. A page in HTML, from a proxy that wants a word first, tells neither.
    pub(crate) async fn exists(&self, url: Url) -> Result<bool, ScmError> {
        match self.get(url).await {
            Ok(answer) => answer.json::<IgnoredAny>().map(|_| true),
            Err(error) if error.kind() == Kind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes, once.
    pub(crate) async fn post(&self, url: Url, body: &impl Serialize) -> Result<Answer, ScmError> {
        let request = self.request(Method::POST, &url).json(body);
        self.send(&url, Method::POST, request)
            .await
            .map(|(answer, _)| answer)
            .map_err(|failure| failure.error)
    }

    async fn get_once(&self, url: &Url) -> Result<Answer, Failure> {
        let known = self.http.cache.get(self.auth.identity(), url);
        let mut request = self.request(Method::GET, url);
        if let Some(known) = &known {
            request = request.header(IF_NONE_MATCH, known.etag.clone());
        }
        let (answer, status) = self.send(url, Method::GET, request).await?;
        if status == StatusCode::NOT_MODIFIED {
            let unasked = || failure(ScmError::protocol(said(&Method::GET, url, "304 to a plain request")));
            return known.map(|known| known.answer).ok_or_else(unasked);
        }
        if let Some(etag) = answer.header(ETAG) {
            self.http.cache.put(self.auth.identity(), url, etag.clone(), &answer);
        }
        Ok(answer)
    }

    fn request(&self, method: Method, url: &Url) -> reqwest::RequestBuilder {
        let mut headers = self.headers.clone();
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        if let Some((name, value)) = self.auth.header() {
            headers.insert(name, value);
        }
        self.client.request(method, url.clone()).headers(headers)
    }

    async fn send(
        &self,
        url: &Url,
        method: Method,
        request: reqwest::RequestBuilder,
    ) -> Result<(Answer, StatusCode), Failure> {
        let authority = self.base.authority();
        if let Some(until) = self.http.rates.blocked(authority, self.auth.identity(), Timestamp::now()) {
            return Err(failure(limited(&method, url, until)));
        }
        let started = Instant::now();
        let sent = request.send().await;
        if let Some((namespace, name)) = &self.counted {
            let answer = sent.as_ref().ok().map(|response| (response.status().as_u16(), response.headers()));
            self.http.metrics.note(namespace, name, method.as_str(), url.path(), started.elapsed(), answer);
        }
        let mut response = sent.map_err(|error| broken(&method, url, error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.body(&mut response).await;

        let excerpt = body.as_deref().unwrap_or_default();
        let now = Timestamp::now();
        let rate = rates::read(status, &headers, excerpt, self.dialect, now);
        if let Some(until) = rate.until() {
            self.http.rates.block(authority, self.auth.identity(), until, now);
        }
        if let rates::Rate::Refused(until) = rate {
            return Err(failure(limited(&method, url, until)));
        }
        let is_sign_in =
            self.dialect == Dialect::Azure && status == StatusCode::NON_AUTHORITATIVE_INFORMATION;
        if is_sign_in || !status.is_success() && status != StatusCode::NOT_MODIFIED {
            return Err(answers::refusal(&method, url, status, &headers, excerpt));
        }
        let body = body.map_err(|error| match error {
            BodyError::Large => failure(ScmError::new(
                Kind::Limit,
                said(&method, url, &format!("the answer is larger than {} bytes", self.settings().max_body)),
            )),
            BodyError::Broken(error) => broken(&method, url, error),
        })?;
        Ok((Answer::new(said(&method, url, "the answer"), status, &headers, body), status))
    }

    async fn body(&self, response: &mut reqwest::Response) -> Result<Bytes, BodyError> {
        let limit = self.settings().max_body;
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(BodyError::Large);
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
            if body.len() + chunk.len() > limit {
                return Err(BodyError::Large);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

enum BodyError {
    Large,
    Broken(reqwest::Error),
}

/// An error, and whether the same request may succeed in a moment.
struct Failure {
    error: ScmError,
    transient: bool,
}

fn failure(error: ScmError) -> Failure {
    Failure { error, transient: false }
}

fn limited(method: &Method, url: &Url, until: Timestamp) -> ScmError {
    let until_text = until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    ScmError::new(
        Kind::RateLimited { until },
        said(method, url, &format!("the rate limit is reached, not asking again before {until_text}")),
    )
}

fn broken(method: &Method, url: &Url, error: reqwest::Error) -> Failure {
    // A host that is slow once is slow again: trying once more would only double the wait.
    let transient = !error.is_timeout() && !error.is_builder() && !error.is_redirect();
    let error = error.without_url();
    let mut text = if error.is_timeout() { "no answer in time".to_owned() } else { error.to_string() };
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    Failure { error: ScmError::new(Kind::Network, said(method, url, &text)), transient }
}

/// A sentence about a request. The query stays out of it: it is long and tells nothing that the path does not.
fn said(method: &Method, url: &Url, what: &str) -> String {
    format!("{method} {}://{}{}: {what}", url.scheme(), url.authority(), url.path())
}
