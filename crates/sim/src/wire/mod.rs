//! The wire between a controller and a cluster, and what goes wrong on it.
//!
//! Each request takes a while and has a moment of its own; each watch is late by a delay of its own and keeps its
//! order; requests fail in every way there is; a controller may be struck at any write. A new kind of fault is one more
//! [`Fault`].

mod life;
mod stream;
mod weather;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use baton_apiserver::{Body as Answer, Cluster};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::Service;

pub(crate) use self::life::{Blow, Doom, Life, Moment};
pub(crate) use self::weather::{Blind, Fault, Pattern, Weather};
use crate::dice::{Dice, hash};
use crate::sequencer::Sequencer;
use crate::world::CONTROL;

/// Longest time a request takes, in milliseconds.
const LATENCY: u64 = 12;
/// When a write without an answer takes effect, in milliseconds: after its controller gave it up.
const AFTERWARDS: (u64, u64) = (31_000, 45_000);

/// In how many of a hundred writes that are about something else a webhook changes the specification.
const MEDDLING: u64 = 10;

/// By how many versions an old list is too old.
const AGE: u64 = 40;

/// What all wires of a world share.
pub(crate) struct Air {
    seed: u64,
    begun: Instant,
    /// Where git is: it differs each time, and errors speak of it.
    directory: String,
    sequencer: Sequencer,
    pub(crate) weather: Weather,
    /// Set once faults have stopped.
    calm: AtomicBool,
    /// Places nothing can be heard of.
    away: Mutex<BTreeSet<String>>,
    /// What struck, when and whom, where it struck a controller.
    struck: Mutex<Vec<Struck>>,
    /// How many specifications a webhook rewrote.
    rewrites: AtomicU64,
}

/// Something that went wrong.
#[derive(Debug, Clone)]
pub(crate) struct Struck {
    /// How long after the world began.
    pub(crate) after: Duration,
    pub(crate) fault: Fault,
    /// The controller it befell; empty where it befell the world.
    pub(crate) whom: Arc<str>,
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
    pub(crate) fn new(seed: u64, directory: &Path, sequencer: Sequencer, weather: Weather) -> Arc<Air> {
        Arc::new(Air {
            seed,
            begun: Instant::now(),
            directory: directory.display().to_string(),
            sequencer,
            weather,
            calm: AtomicBool::new(false),
            away: Mutex::default(),
            struck: Mutex::default(),
            rewrites: AtomicU64::default(),
        })
    }

    /// No more faults.
    pub(crate) fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Whether nothing of a rollout can be shown.
    pub(crate) fn is_blind(&self) -> bool {
        match self.weather.blind {
            Blind::Never => false,
            Blind::Meanwhile => !self.is_calm(),
            Blind::ToTheEnd => true,
        }
    }

    /// Nothing is heard of a place any more, or again.
    pub(crate) fn set_away(&self, place: &str, away: bool) {
        let mut all = self.away.lock();
        match away {
            true => drop(all.insert(place.to_owned())),
            false => drop(all.remove(place)),
        }
    }

    fn is_away(&self, place: &str) -> bool {
        !self.is_calm() && self.away.lock().contains(place)
    }

    /// Counts what befell the world.
    pub(crate) fn count(&self, fault: Fault) {
        self.note(fault, "");
    }

    /// Counts what befell a controller.
    pub(crate) fn count_of(&self, life: &Life, fault: Fault) {
        self.note(fault, life.name.split(' ').next().unwrap_or_default());
    }

    fn note(&self, fault: Fault, whom: &str) {
        let after = Instant::now().duration_since(self.begun);
        self.struck.lock().push(Struck { after, fault, whom: whom.into() });
    }

    /// What struck, in order.
    pub(crate) fn struck(&self) -> Vec<Struck> {
        self.struck.lock().clone()
    }

    /// How often each fault happened.
    pub(crate) fn tally(&self) -> BTreeMap<Fault, u64> {
        let mut tally = BTreeMap::new();
        self.struck.lock().iter().for_each(|struck| *tally.entry(struck.fault).or_default() += 1);
        tally
    }
}

// === impl Wire ===

impl Wire {
    pub(crate) fn new(cluster: &Cluster, place: &str, life: &Arc<Life>, air: &Arc<Air>) -> Wire {
        Wire { cluster: cluster.clone(), place: place.into(), life: life.clone(), air: air.clone() }
    }

    async fn carry(self, request: Request<Body>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let body = match BodyExt::collect(body).await {
            Ok(body) => body.to_bytes(),
            // The controller gave its own request up.
            Err(_) => return std::future::pending().await,
        };
        let mut dice = self.dice(&head, &body);
        self.turn(&mut dice).await;
        if self.air.is_away(&self.place) {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
        }
        let query = head.uri.query().unwrap_or_default();
        if query.contains("watch=true") || query.contains("watch=1") {
            return self.watch(head, body, dice).await;
        }
        if self.air.is_blind() && is_view(&head) {
            self.count(Fault::ViewRefused);
            return refusal(StatusCode::FORBIDDEN, "Forbidden");
        }
        self.dawdle(&mut dice).await;
        let body = self.rewritten(&head, body, &mut dice);
        let is_read = head.method == Method::GET;
        if is_read && self.life.blow_at_read() && !self.air.is_calm() {
            return self.die(Fault::CrashAtRead).await;
        }
        if is_read || self.air.is_calm() {
            let failed = self.strike(&mut dice, &head.method);
            return match failed {
                Some(fault) => self.refused(fault, &mut dice),
                None => self.send(self.aged(head, &mut dice), body).await,
            };
        }
        match self.life.blow(is_recorded(&head), is_start(&head, &body)) {
            None => {}
            Some(Blow::Before) => return self.die(Fault::CrashBefore).await,
            Some(Blow::After) => {
                self.send(head, body).await;
                return self.die(Fault::CrashAfter).await;
            }
            Some(Blow::Freeze(nap)) => {
                self.count(Fault::FrozenLeader);
                self.life.freeze(nap);
                self.turn(&mut dice).await;
                return self.send(head, body).await;
            }
        }
        self.write(head, body, dice).await
    }

    /// Lets pass what a slow member takes until it does what it is asked for.
    async fn dawdle(&self, dice: &mut Dice) {
        let most = self.air.weather.slow_members;
        if most.is_zero() || &*self.place == CONTROL || self.air.is_calm() {
            return;
        }
        self.count(Fault::MemberSlow);
        let late = dice.between(0, u64::try_from(most.as_millis()).unwrap_or(u64::MAX));
        self.air.sequencer.turn(Duration::from_millis(late), dice.roll()).await;
    }

    async fn write(self, head: Parts, body: Bytes, mut dice: Dice) -> Response<Answer> {
        let Some(fault) = self.strike(&mut dice, &head.method) else { return self.send(head, body).await };
        match fault {
            Fault::FailedAfter => drop(self.send(head, body).await),
            Fault::Lost => return std::future::pending().await,
            Fault::Unanswered => {
                self.send(head, body).await;
                return std::future::pending().await;
            }
            Fault::LandsLater => {
                let late = Duration::from_millis(dice.between(AFTERWARDS.0, AFTERWARDS.1));
                tokio::spawn(async move {
                    self.air.sequencer.turn(late, dice.roll()).await;
                    self.send(head, body).await
                });
                return std::future::pending().await;
            }
            _ => {}
        }
        self.refused(fault, &mut dice)
    }

    async fn watch(self, head: Parts, body: Bytes, mut dice: Dice) -> Response<Answer> {
        let goes_on = head.uri.query().is_some_and(goes_on);
        if !self.air.is_calm() && goes_on && dice.chance(self.air.weather.too_old) {
            self.count(Fault::TooOld);
            return match dice.chance(50) {
                true => refusal(StatusCode::GONE, "Expired"),
                false => {
                    let event = json!({"type": "ERROR", "object": status(StatusCode::GONE, "Expired")});
                    answer(StatusCode::OK, format!("{event}\n"))
                }
            };
        }
        let answer = self.send(self.replayed(head, &mut dice), body).await;
        match answer.status().is_success() {
            true => stream::late(&self, answer, dice),
            false => answer,
        }
    }

    /// The same watch; perhaps from a while before where it is to go on.
    fn replayed(&self, mut head: Parts, dice: &mut Dice) -> Parts {
        let most = self.air.weather.replays;
        if most == 0 || self.air.is_calm() || !dice.chance(most) {
            return head;
        }
        let Some((path, query)) = head.uri.path_and_query().and_then(|uri| uri.as_str().split_once('?'))
        else {
            return head;
        };
        let back = dice.between(1, AGE);
        let is_version = |pair: &&str| pair.starts_with("resourceVersion=");
        let Some(pair) = query.split('&').find(is_version) else { return head };
        let Ok(version) = pair["resourceVersion=".len()..].parse::<u64>() else { return head };
        let earlier =
            query.replacen(pair, &format!("resourceVersion={}", version.saturating_sub(back).max(1)), 1);
        if earlier != query
            && let Ok(uri) = format!("{path}?{earlier}").parse()
        {
            head.uri = uri;
            self.count(Fault::Replayed);
        }
        head
    }

    /// The same request; where it fills a cache, perhaps for what was a while ago.
    fn aged(&self, mut head: Parts, dice: &mut Dice) -> Parts {
        // Lists that everything rests on ask for larger pages.
        let fills_a_cache = |query: &str| {
            query.contains("limit=")
                && !["labelSelector=", "continue=", "limit=1000"].iter().any(|other| query.contains(other))
        };
        let listed = head.uri.path_and_query().filter(|uri| uri.query().is_some_and(fills_a_cache));
        let Some(listed) = listed.filter(|_| !self.air.is_calm() && dice.chance(self.air.weather.stale))
        else {
            return head;
        };
        let old = self.cluster.store().revision().saturating_sub(dice.below(AGE)).max(1);
        let uri = format!("{listed}&resourceVersion={old}&resourceVersionMatch=Exact");
        if let Ok(uri) = uri.parse() {
            head.uri = uri;
            self.count(Fault::StaleList);
        }
        head
    }

    /// What a webhook makes of a write to an Application: it sees the whole object, whatever is written to it.
    fn rewritten(&self, head: &Parts, body: Bytes, dice: &mut Dice) -> Bytes {
        let path = head.uri.path();
        let is_meant = path.contains("/applications") && !path.ends_with("/status");
        let is_meant = is_meant && matches!(head.method, Method::PATCH | Method::POST);
        if !self.air.weather.rewrites || self.air.is_calm() || !is_meant {
            return body;
        }
        let Ok(mut object) = serde_json::from_slice::<Value>(&body) else { return body };
        if object.is_object() && object["spec"].is_null() && dice.chance(MEDDLING) {
            object["spec"] = json!({});
        }
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return body };
        let number = self.air.rewrites.fetch_add(1, Ordering::Relaxed);
        spec.insert("info".to_owned(), json!([{"name": "webhook", "value": number.to_string()}]));
        self.count(Fault::Rewritten);
        Bytes::from(object.to_string())
    }

    async fn send(&self, head: Parts, body: Bytes) -> Response<Answer> {
        self.cluster.handle(Request::from_parts(head, Full::new(body))).await
    }

    /// Waits for the moment of a request.
    async fn turn(&self, dice: &mut Dice) {
        self.life.moves().await;
        let latency = Duration::from_millis(dice.between(1, LATENCY));
        self.air.sequencer.turn(latency, dice.roll()).await;
        self.life.moves().await;
        if self.life.is_over() {
            std::future::pending().await
        }
    }

    /// What befalls a request.
    fn strike(&self, dice: &mut Dice, method: &Method) -> Option<Fault> {
        if self.air.is_calm() {
            return None;
        }
        let fault = self.air.weather.strike(dice, *method == Method::GET, *method == Method::POST)?;
        self.count(fault);
        Some(fault)
    }

    fn refused(&self, fault: Fault, dice: &mut Dice) -> Response<Answer> {
        match fault {
            Fault::Conflict => refusal(StatusCode::CONFLICT, "Conflict"),
            Fault::Throttled => refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            _ if dice.chance(50) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
            _ => refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
        }
    }

    /// Randomness of a request: of what it asks and when, and not of which thread was faster.
    fn dice(&self, head: &Parts, body: &Bytes) -> Dice {
        let now = Instant::now().duration_since(self.air.begun).as_millis();
        let body = hash(&String::from_utf8_lossy(body).replace(&self.air.directory, ""));
        let name = format!("{} {now} {} {} {} {body}", self.life.name, self.place, head.method, head.uri);
        Dice::new(self.air.seed, &name)
    }

    fn count(&self, fault: Fault) {
        self.air.count_of(&self.life, fault);
    }

    async fn die(&self, how: Fault) -> Response<Answer> {
        self.count(how);
        self.life.end();
        std::future::pending().await
    }
}

/// Whether it writes to an Application what the head of a rollout was changed for before.
fn is_recorded(head: &Parts) -> bool {
    is_of_rollout(head) && head.uri.path().contains("/applications/")
}

/// Whether it starts something that the head of a rollout was changed for.
fn is_start(head: &Parts, body: &[u8]) -> bool {
    const OPERATION: &[u8] = b"\"operation\":{\"";
    is_recorded(head) && body.windows(OPERATION.len()).any(|part| part == OPERATION)
}

/// Whether it writes what is shown of a rollout.
fn is_view(head: &Parts) -> bool {
    is_of_rollout(head)
        && head.uri.path().contains("/applicationsets/")
        && head.uri.path().ends_with("/status")
}

fn is_of_rollout(head: &Parts) -> bool {
    head.uri.query().is_some_and(|query| query.contains("fieldManager=baton-rollout"))
}

/// Whether a watch goes on from where another ended.
fn goes_on(query: &str) -> bool {
    query
        .split('&')
        .any(|pair| pair.strip_prefix("resourceVersion=").is_some_and(|version| !version.is_empty()))
}

fn status(code: StatusCode, reason: &str) -> serde_json::Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason,
        "code": code.as_u16(), "message": format!("the simulated weather says {reason}"),
    })
}

fn refusal(code: StatusCode, reason: &str) -> Response<Answer> {
    answer(code, status(code, reason).to_string())
}

fn answer(code: StatusCode, body: String) -> Response<Answer> {
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *answer.status_mut() = code;
    let json = http::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(http::header::CONTENT_TYPE, json);
    answer
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
