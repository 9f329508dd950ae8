//! The wire between a controller and a cluster, and what goes wrong on it.
//!
//! Each request takes a while and has a moment of its own; each watch is late by a delay of its own and keeps its
//! order; a controller may be struck down at any write, before or after it took effect. A new kind of fault is one more
//! [`Fate`].

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use baton_apiserver::{Body as Answer, Cluster};
use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tower::Service;

use crate::dice::{Dice, hash};
use crate::sequencer::Sequencer;

/// Longest time a request takes, in milliseconds.
const LATENCY: u64 = 12;

/// What all wires of a world share.
pub(crate) struct Air {
    seed: u64,
    begun: Instant,
    sequencer: Sequencer,
    /// Longest delay of a watch.
    lag: Duration,
    /// Set once faults have stopped.
    calm: AtomicBool,
    tally: Mutex<BTreeMap<&'static str, u64>>,
}

/// One life of a controller, from its start to its crash.
pub(crate) struct Life {
    name: String,
    alive: AtomicBool,
    writes: AtomicU64,
    doom: Option<Doom>,
    struck: Notify,
}

/// When a controller is struck down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Doom {
    /// At which of its writes.
    pub(crate) write: u64,
    /// Whether that write took effect.
    pub(crate) after: bool,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    /// The controller dies before it took effect.
    Unsent,
    /// The controller dies after it took effect.
    Unheard,
}

/// A wire of one life to one cluster.
#[derive(Clone)]
pub(crate) struct Wire {
    cluster: Cluster,
    place: Arc<str>,
    life: Arc<Life>,
    air: Arc<Air>,
}

// === impl Air ===

impl Air {
    pub(crate) fn new(seed: u64, sequencer: Sequencer, lag: Duration) -> Arc<Air> {
        let (calm, tally) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Air { seed, begun: Instant::now(), sequencer, lag, calm, tally })
    }

    /// No more faults.
    pub(crate) fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.tally.lock().entry(what).or_default() += 1;
    }

    /// How often each fault happened.
    pub(crate) fn tally(&self) -> BTreeMap<&'static str, u64> {
        self.tally.lock().clone()
    }
}

// === impl Life ===

impl Life {
    pub(crate) fn new(name: String, doom: Option<Doom>) -> Arc<Life> {
        Arc::new(Life {
            name,
            alive: AtomicBool::new(true),
            writes: AtomicU64::new(0),
            doom,
            struck: Notify::new(),
        })
    }

    /// Waits until the controller is struck down.
    pub(crate) async fn struck(&self) {
        self.struck.notified().await;
    }

    /// Nothing of this life reaches a cluster any more.
    pub(crate) fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
        self.struck.notify_one();
    }

    fn is_over(&self) -> bool {
        !self.alive.load(Ordering::Relaxed)
    }
}

// === impl Wire ===

impl Wire {
    pub(crate) fn new(cluster: &Cluster, place: &str, life: &Arc<Life>, air: &Arc<Air>) -> Wire {
        Wire { cluster: cluster.clone(), place: place.into(), life: life.clone(), air: air.clone() }
    }

    fn fate(&self, method: &Method) -> Fate {
        if *method == Method::GET || self.air.is_calm() {
            return Fate::Answered;
        }
        let write = self.life.writes.fetch_add(1, Ordering::Relaxed) + 1;
        match self.life.doom {
            Some(doom) if doom.write == write && doom.after => Fate::Unheard,
            Some(doom) if doom.write == write => Fate::Unsent,
            _ => Fate::Answered,
        }
    }

    async fn carry(self, request: Request<Body>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let body = match BodyExt::collect(body).await {
            Ok(body) => body.to_bytes(),
            // The controller gave its own request up.
            Err(_) => return std::future::pending().await,
        };
        let query = head.uri.query().unwrap_or_default();
        let watch = query.contains("watch=true") || query.contains("watch=1");
        let mut dice = self.dice(&head, &body);
        let latency = Duration::from_millis(dice.between(1, LATENCY));
        self.air.sequencer.turn(latency, dice.roll()).await;
        if self.life.is_over() {
            return std::future::pending().await;
        }
        let fate = self.fate(&head.method);
        if fate == Fate::Unsent {
            return self.strike("crash before a write").await;
        }
        let answer = self.cluster.handle(Request::from_parts(head, Full::new(body))).await;
        if fate == Fate::Unheard {
            return self.strike("crash after a write").await;
        }
        match watch && answer.status().is_success() && !self.air.lag.is_zero() {
            true => self.late(answer, dice),
            false => answer,
        }
    }

    /// Randomness of a request: of what it asks and when, and not of which thread was faster.
    fn dice(&self, head: &http::request::Parts, body: &Bytes) -> Dice {
        let now = Instant::now().duration_since(self.air.begun).as_millis();
        let body = hash(&String::from_utf8_lossy(body));
        let name = format!("{} {now} {} {} {} {body}", self.life.name, self.place, head.method, head.uri);
        Dice::new(self.air.seed, &name)
    }

    async fn strike(&self, how: &'static str) -> Response<Answer> {
        self.air.count(how);
        self.life.end();
        std::future::pending().await
    }

    /// The same answer, whose parts come late and in order.
    fn late(&self, answer: Response<Answer>, mut dice: Dice) -> Response<Answer> {
        let (head, body) = answer.into_parts();
        let most = u64::try_from(self.air.lag.as_millis()).unwrap_or(u64::MAX);
        // Some streams are prompt, so that others are late beside them.
        let own = if dice.chance(30) { 0 } else { dice.below(most) };
        let (send, receive) = mpsc::unbounded_channel();
        tokio::spawn(pump(body, send, self.clone(), own, dice));
        let frames = futures::stream::unfold(receive, async |mut receive| {
            let (frame, due): (_, Instant) = receive.recv().await?;
            tokio::time::sleep_until(due).await;
            Some((frame, receive))
        });
        Response::from_parts(head, StreamBody::new(frames.boxed()).boxed_unsync())
    }
}

type Frame = Result<http_body::Frame<Bytes>, Infallible>;

/// Notes when each part was sent and when it is to arrive.
async fn pump(
    mut body: Answer,
    send: mpsc::UnboundedSender<(Frame, Instant)>,
    wire: Wire,
    own: u64,
    mut dice: Dice,
) {
    let mut last = Instant::now();
    loop {
        let frame = tokio::select! {
            biased;
            () = send.closed() => return,
            frame = body.frame() => frame,
        };
        let Some(frame) = frame else { return };
        if wire.life.is_over() {
            return;
        }
        let delay = if wire.air.is_calm() { 0 } else { own + dice.below(own / 4 + 1) };
        if delay > 0 {
            wire.air.count("event delivered late");
        }
        last = last.max(Instant::now() + Duration::from_millis(delay));
        if send.send((frame, last)).is_err() {
            return;
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
        Box::pin(async move { Ok(wire.carry(request).await) })
    }
}
