//! The endpoint webhooks are sent to, and the work they cause.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use baton_api::{ApplicationSet, ApplicationSpec};
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, StatusCode};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::event::{Event, Provider, WebhookError, parse};
use super::secrets::WebhookSecrets;

/// Bodies of all requests together, in KiB.
const BODIES: usize = 128 << 10;

/// How webhooks are taken in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Events that may wait; more are turned away.
    pub queue: usize,
    /// Events that are worked on at the same time.
    pub workers: usize,
    /// Largest body, in bytes.
    pub max_body: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
}

/// A set that an event may concern.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The set.
    pub set: Arc<ApplicationSet>,
    /// The repositories and revisions it read when it was last generated, if that is known.
    pub read: Option<Arc<BTreeSet<(String, String)>>>,
}

/// An Application that an event may concern.
#[derive(Debug, Clone)]
pub struct Deployed {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it deploys.
    pub spec: ApplicationSpec,
}

/// What the endpoint needs of its surroundings.
pub trait Refresh: Send + Sync + 'static {
    /// What webhooks are signed with, as of now.
    fn secrets(&self) -> Arc<WebhookSecrets>;

    /// Every set.
    fn sets(&self) -> impl Future<Output = Result<Vec<Candidate>, String>> + Send;

    /// Makes a set be generated anew, without what is remembered of revisions.
    fn refresh(&self, namespace: &str, name: &str) -> impl Future<Output = Result<(), String>> + Send;

    /// Every Application; none where sets alone are looked after.
    fn applications(&self) -> impl Future<Output = Result<Vec<Deployed>, String>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Makes an Application be compared anew.
    fn compare(&self, namespace: &str, name: &str) -> impl Future<Output = Result<(), String>> + Send {
        std::future::ready(Err(format!("nobody here compares {namespace}/{name}")))
    }
}

/// The events taken in, to be worked on by [`Work::run`].
pub struct Work<R> {
    refresh: Arc<R>,
    events: mpsc::Receiver<Event>,
    workers: usize,
}

struct Inbox<R> {
    refresh: Arc<R>,
    events: mpsc::Sender<Event>,
    max_body: usize,
    body_timeout: Duration,
    bodies: Semaphore,
}

/// A request that is answered with something else than 200.
struct Refusal(StatusCode, String);

/// The endpoint, at `/api/webhook`, and the work that its events cause.
pub fn webhooks<R: Refresh>(refresh: Arc<R>, settings: &Settings) -> (Router, Work<R>) {
    let (sender, events) = mpsc::channel(settings.queue.max(1));
    let inbox = Inbox {
        refresh: refresh.clone(),
        events: sender,
        max_body: settings.max_body,
        body_timeout: settings.body_timeout,
        bodies: Semaphore::new(BODIES),
    };
    let router = Router::new().route("/api/webhook", any(receive::<R>)).with_state(Arc::new(inbox));
    (router, Work { refresh, events, workers: settings.workers.max(1) })
}

// === impl Settings ===

impl Default for Settings {
    /// Argo CD's numbers, except for bodies: GitHub, which sends the largest, stops at 25 MB.
    fn default() -> Settings {
        Settings { queue: 50_000, workers: 50, max_body: 25 << 20, body_timeout: Duration::from_secs(30) }
    }
}

// === impl Work ===

impl<R: Refresh> Work<R> {
    /// Works until the endpoint is gone and its last event is done.
    pub async fn run(mut self) {
        let mut running = JoinSet::new();
        while let Some(event) = self.events.recv().await {
            while running.len() >= self.workers {
                running.join_next().await;
            }
            while running.try_join_next().is_some() {}
            running.spawn(work(self.refresh.clone(), event));
        }
        while running.join_next().await.is_some() {}
    }
}

async fn work<R: Refresh>(refresh: Arc<R>, event: Event) {
    tokio::join!(wake_sets(&*refresh, &event), wake_applications(&*refresh, &event));
}

async fn wake_applications(refresh: &impl Refresh, event: &Event) {
    let all = match refresh.applications().await {
        Ok(all) => all,
        Err(error) => {
            tracing::error!(error, "Applications cannot be listed for a webhook");
            return;
        }
    };
    for Deployed { namespace, name, .. } in all.iter().filter(|one| event.moves_sources(&one.spec)) {
        match refresh.compare(namespace, name).await {
            Ok(()) => tracing::info!(namespace, name, "Application is compared after a webhook"),
            Err(error) => tracing::error!(namespace, name, error, "Application cannot be compared"),
        }
    }
}

async fn wake_sets(refresh: &impl Refresh, event: &Event) {
    let sets = match refresh.sets().await {
        Ok(sets) => sets,
        Err(error) => {
            tracing::error!(error, "ApplicationSets cannot be listed for a webhook");
            return;
        }
    };
    let concerned = |candidate: &&Candidate| event.touches(&candidate.set.spec, candidate.read.as_deref());
    for Candidate { set, .. } in sets.iter().filter(concerned) {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let name = set.metadata.name.as_deref().unwrap_or_default();
        match refresh.refresh(namespace, name).await {
            Ok(()) => tracing::info!(namespace, name, "ApplicationSet is refreshed after a webhook"),
            Err(error) => tracing::error!(namespace, name, error, "ApplicationSet cannot be refreshed"),
        }
    }
}

async fn receive<R: Refresh>(State(inbox): State<Arc<Inbox<R>>>, request: Request) -> Response {
    match inbox.take(request).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(Refusal(status, message)) => {
            tracing::info!(status = status.as_u16(), message, "webhook is refused");
            (status, [("x-content-type-options", "nosniff")], message + "\n").into_response()
        }
    }
}

impl<R: Refresh> Inbox<R> {
    async fn take(&self, request: Request) -> Result<(), Refusal> {
        let (parts, body) = request.into_parts();
        if Provider::of(&parts.headers).is_none() {
            return Err(WebhookError::UnknownProvider.into());
        }
        if parts.method != Method::POST {
            let message = "Webhook processing failed: invalid HTTP Method";
            return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, message.to_owned()));
        }
        let event = {
            let length = self.announced(&parts.headers)?;
            // The permit is held while the body is, so that many large bodies cannot fill the memory.
            let permits = u32::try_from(length.div_ceil(1024).clamp(1, BODIES)).unwrap_or(u32::MAX);
            let arriving = async {
                let permit = self.bodies.acquire_many(permits).await;
                (permit, self.read(body).await)
            };
            let (_permit, body) = tokio::time::timeout(self.body_timeout, arriving).await.map_err(|_| {
                Refusal(StatusCode::REQUEST_TIMEOUT, "Webhook processing failed: body is late".to_owned())
            })?;
            parse(&parts.headers, &body?, &self.refresh.secrets())?
        };
        if matches!(event, Event::Nothing) {
            return Ok(());
        }
        self.events.try_send(event).map_err(|error| {
            let message = match error {
                TrySendError::Full(_) => "Queue is full, discarding webhook payload",
                TrySendError::Closed(_) => "Webhooks are not worked on any more",
            };
            Refusal(StatusCode::SERVICE_UNAVAILABLE, message.to_owned())
        })
    }

    /// The length a body says it has; the greatest permitted if it does not say.
    fn announced(&self, headers: &HeaderMap) -> Result<usize, Refusal> {
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        match length {
            Some(length) if length > self.max_body => Err(self.too_large()),
            Some(length) => Ok(length),
            None => Ok(self.max_body),
        }
    }

    async fn read(&self, body: Body) -> Result<Bytes, Refusal> {
        to_bytes(body, self.max_body).await.map_err(|_| self.too_large())
    }

    fn too_large(&self) -> Refusal {
        let megabytes = self.max_body >> 20;
        let message = format!("Webhook processing failed: payload must be valid JSON under {megabytes} MB");
        Refusal(StatusCode::BAD_REQUEST, message)
    }
}

impl From<WebhookError> for Refusal {
    fn from(error: WebhookError) -> Refusal {
        Refusal(StatusCode::BAD_REQUEST, error.to_string())
    }
}
