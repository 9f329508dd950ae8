//! Sending traces to a collector: in the background, with bounded memory and patience.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;

use crate::otlp;
use crate::span::Span;

/// How many traces may wait for a collector. One more is lost, and counted.
const WAITING: usize = 64;
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a trace is sent anew where the collector is away or busy.
const ATTEMPTS: u32 = 5;
/// The first pause between two attempts; twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
/// How long traces that still wait are sent after the end was asked for.
const FAREWELL: Duration = Duration::from_secs(5);

/// Where traces go.
#[derive(Clone)]
pub struct Collector {
    url: Url,
    headers: HeaderMap,
    service: String,
}

/// Why a collector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    /// An address.
    #[error("{0:?} is no address of a collector: write http://HOST:4318 or https://HOST/path")]
    Url(String),
    /// Headers; their values may be secret.
    #[error("headers are written as NAME=VALUE,NAME=VALUE; entry {0} is not")]
    Headers(usize),
    /// No client.
    #[error("no HTTP client can be made: {0}")]
    Client(String),
}

/// Takes traces for a collector; whoever has none drops them.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    sender: Option<mpsc::Sender<Vec<Span>>>,
    lost: Arc<AtomicU64>,
}

/// Sends what [`Traces`] takes.
pub struct Exporter {
    collector: Collector,
    client: Client,
    receiver: mpsc::Receiver<Vec<Span>>,
    lost: Arc<AtomicU64>,
}

// === impl Collector ===

impl Collector {
    /// The collector at an address. As OpenTelemetry wants it, `/v1/traces` is added where it does not stand there.
    ///
    /// # Errors
    /// The address or the headers cannot be read.
    pub fn new(address: &str, headers: &str, service: &str) -> Result<Collector, CollectorError> {
        let refused = || CollectorError::Url(without_query(address));
        let mut url = Url::parse(address.trim()).map_err(|_| refused())?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.host().is_some();
        if !is_web || !url.username().is_empty() || url.password().is_some() {
            return Err(refused());
        }
        if !url.path().ends_with("/v1/traces") {
            let base = url.path().trim_end_matches('/').to_owned();
            url.set_path(&format!("{base}/v1/traces"));
        }
        let service = if service.is_empty() { "baton" } else { service };
        Ok(Collector { url, headers: read_headers(headers)?, service: service.to_owned() })
    }
}

/// What may be told of an address that cannot be used.
fn without_query(address: &str) -> String {
    let bare = address.split(['?', '#']).next().unwrap_or_default();
    match bare.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => bare.to_owned(),
    }
}

/// Headers as `OTEL_EXPORTER_OTLP_HEADERS` holds them.
fn read_headers(text: &str) -> Result<HeaderMap, CollectorError> {
    let mut headers = HeaderMap::new();
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    for (place, entry) in entries.enumerate() {
        let wrong = || CollectorError::Headers(place + 1);
        let (name, value) = entry.split_once('=').ok_or_else(wrong)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("url", &without_query(self.url.as_str())).finish_non_exhaustive()
    }
}

/// Traces for a collector, and what sends them.
///
/// # Errors
/// No HTTP client can be made.
pub fn exporter(collector: Collector) -> Result<(Traces, Exporter), CollectorError> {
    // Whoever installs one first decides; all that matters is that there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().redirect(Policy::none()).timeout(PATIENCE).build();
    let client = client.map_err(|error| CollectorError::Client(error.without_url().to_string()))?;
    let (traces, receiver) = channel();
    let lost = Arc::clone(&traces.lost);
    Ok((traces, Exporter { collector, client, receiver, lost }))
}

/// Traces for whoever takes them here.
pub fn channel() -> (Traces, mpsc::Receiver<Vec<Span>>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Traces { sender: Some(sender), lost: Arc::default() }, receiver)
}

// === impl Traces ===

impl Traces {
    /// Whether anybody wants traces.
    pub fn are_wanted(&self) -> bool {
        self.sender.is_some()
    }

    /// Has a trace sent. Never waits: where too many do already, it is lost.
    pub fn send(&self, spans: Vec<Span>) {
        let Some(sender) = self.sender.as_ref().filter(|_| !spans.is_empty()) else { return };
        if sender.try_send(spans).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            tracing::warn!("a trace is lost: {WAITING} wait for the collector already");
        }
    }

    /// How many traces were lost.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

// === impl Exporter ===

impl Exporter {
    /// Sends traces until `shutdown` is done, and then for a few seconds those that still wait.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let spans = tokio::select! {
                () = &mut shutdown => break,
                spans = self.receiver.recv() => spans,
            };
            let Some(spans) = spans else { return };
            tokio::select! {
                () = &mut shutdown => {
                    // What was being sent is sent anew: its identities are the same.
                    self.farewell(Some(spans)).await;
                    return;
                }
                () = self.send(&spans) => {}
            }
        }
        self.farewell(None).await;
    }

    async fn farewell(&mut self, under_way: Option<Vec<Span>>) {
        self.receiver.close();
        let end = Instant::now() + FAREWELL;
        let mut next = under_way.or_else(|| self.receiver.try_recv().ok());
        while let Some(spans) = next {
            if tokio::time::timeout_at(end, self.send(&spans)).await.is_err() {
                let lost = 1 + u64::try_from(self.receiver.len()).unwrap_or(u64::MAX);
                self.lost.fetch_add(lost, Ordering::Relaxed);
                tracing::warn!("{lost} traces are lost: the collector did not take them before the end");
                return;
            }
            next = self.receiver.try_recv().ok();
        }
    }

    /// Sends one trace, again where that may help.
    async fn send(&self, spans: &[Span]) {
        let body = otlp::request(&self.collector.service, spans).to_string();
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            let why = match self.post(body.clone()).await {
                Ok(status) if status.is_success() => return,
                Ok(status) if !may_pass(status) => {
                    tracing::warn!(%status, "a trace is lost: the collector refuses it");
                    break;
                }
                Ok(status) => status.to_string(),
                Err(error) => error.without_url().to_string(),
            };
            if attempt == ATTEMPTS {
                tracing::warn!(why, "a trace is lost: the collector could not be reached {ATTEMPTS} times");
                break;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    async fn post(&self, body: String) -> Result<StatusCode, reqwest::Error> {
        let request = self.client.post(self.collector.url.clone()).headers(self.collector.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        Ok(request.send().await?.status())
    }
}

/// Whether the same request may be taken later, as the protocol says.
fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}
