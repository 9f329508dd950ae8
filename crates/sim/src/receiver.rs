//! Whom hooks call: slow, failing, silent, sending callers astray, and well in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_api::phases::HttpMethod;
use baton_apiserver::Cluster;
use baton_controllers::{Caller, Clock, Prepared, What};
use baton_hooks::{Fault, Outcome, Reason, Role, Verdict};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::checker::HookCall;
use crate::dice::Dice;
use crate::wire::{self, Air, Blow, Life};

/// By how much an answer is in time, or late, where it comes at the last moment.
const NARROWLY: Duration = Duration::from_millis(50);

/// What is known of everybody who called.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Who called, in order.
    pub(crate) calls: Mutex<Vec<HookCall>>,
    /// How they were answered, and how often.
    pub(crate) fates: Mutex<BTreeMap<Fate, u64>>,
}

/// How it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As the dice fall, as long as faults are about.
    #[default]
    Moody,
    /// Well, but for those that are named, once they have turned.
    Steady(BTreeSet<String>),
    /// In every way there is, so many times of a hundred, once it has turned and as long as faults are about.
    Trying(u64),
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    Well,
    /// It is answered well at the last moment.
    JustInTime,
    /// It is answered well when nobody waits for it any more.
    TooLate,
    /// There is no connection.
    Refused,
    /// It is answered with 500.
    Broken,
    /// It hangs until time is up.
    Hangs,
    /// It is sent on to an address inside.
    RedirectedInward,
    /// It is answered with 200 and a gigabyte.
    Flooded,
}

/// One attempt on its way.
struct Visit {
    fate: Fate,
    /// How long it takes where nothing is said of that.
    takes: Duration,
    limit: Duration,
    /// Whether it follows redirects, as calls do that change nothing.
    follows: bool,
}

/// A receiver, as one life of a controller reaches it.
pub(crate) struct Receiver {
    manner: Manner,
    dice: Mutex<Dice>,
    /// The caller's, which may be wrong.
    clock: Clock,
    /// Whose clock is right.
    control: Cluster,
    air: Arc<Air>,
    /// The caller's.
    life: Arc<Life>,
    /// Whether it answers as it is to.
    turned: Arc<AtomicBool>,
    log: Arc<Log>,
}

// === impl Fate ===

impl Fate {
    /// Every one that is worth a word.
    pub(crate) const ALL: [Fate; 7] = [
        Fate::JustInTime,
        Fate::TooLate,
        Fate::Refused,
        Fate::Broken,
        Fate::Hangs,
        Fate::RedirectedInward,
        Fate::Flooded,
    ];

    /// In a few words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Fate::Well => "well",
            Fate::JustInTime => "well, at the last moment",
            Fate::TooLate => "well, after its time was up",
            Fate::Refused => "connection refused",
            Fate::Broken => "with 500",
            Fate::Hangs => "never",
            Fate::RedirectedInward => "with a redirect to an address inside",
            Fate::Flooded => "with 1 GB",
        }
    }

    fn moody(number: u64) -> Fate {
        match number {
            0..8 => Fate::Hangs,
            8..25 => Fate::Broken,
            _ => Fate::Well,
        }
    }
}

// === impl Visit ===

impl Visit {
    /// How long it takes the caller, and what it makes of it: what `baton_hooks` reports of such an answer.
    fn ends(&self) -> (Duration, Verdict, Option<i64>) {
        let failed = |reason, message: &str| Verdict::Failure(Fault { reason, message: message.to_owned() });
        let timeout = Verdict::Timeout { after: self.limit };
        match self.fate {
            Fate::Well | Fate::Flooded => (self.takes, Verdict::Success, Some(200)),
            Fate::JustInTime => (self.limit.saturating_sub(NARROWLY), Verdict::Success, Some(200)),
            Fate::TooLate | Fate::Hangs => (self.limit, timeout, None),
            Fate::Refused => {
                let message = "no connection to https://hooks.example.com: connection refused";
                (Duration::ZERO, failed(Reason::ConnectionFailed, message), None)
            }
            Fate::Broken => {
                (self.takes, failed(Reason::UnexpectedStatus, "answered 500, not 200"), Some(500))
            }
            Fate::RedirectedInward if self.follows => {
                let message = "http://169.254.169.254 may not be called".to_owned();
                let fault = Fault { reason: Reason::AddressNotAllowed, message };
                (self.takes, Verdict::Refused(fault), None)
            }
            Fate::RedirectedInward => {
                let message =
                    "https://hooks.example.com redirects the POST with status 302, which is not followed";
                (self.takes, failed(Reason::BadRedirect, message), None)
            }
        }
    }
}

// === impl Receiver ===

impl Receiver {
    pub(crate) fn new(
        seed: u64,
        (manner, turned, log): (Manner, Arc<AtomicBool>, Arc<Log>),
        (clock, control): (Clock, Cluster),
        (air, life): (Arc<Air>, Arc<Life>),
    ) -> Receiver {
        let dice = Mutex::new(Dice::new(seed, "receiver"));
        Receiver { manner, dice, clock, control, air, life, turned, log }
    }

    fn fate(&self, name: &str, dice: &mut Dice) -> Fate {
        let number = dice.below(100);
        let (calm, turned) = (self.air.is_calm(), self.turned.load(Ordering::Relaxed));
        match &self.manner {
            Manner::Moody if calm => Fate::Well,
            Manner::Moody => Fate::moody(number),
            Manner::Steady(failing) if failing.contains(name) && turned => Fate::Broken,
            Manner::Steady(_) => Fate::Well,
            Manner::Trying(share) if !calm && turned && number < *share => *dice.pick(&Fate::ALL),
            Manner::Trying(_) => Fate::Well,
        }
    }

    /// Whether a blow falls at this call: none does once faults have stopped.
    fn blow(&self) -> Option<Blow> {
        self.life.blow_at_call().filter(|_| !self.air.is_calm())
    }
}

impl Caller for Receiver {
    fn call(&self, prepared: Prepared) -> BoxFuture<'static, Outcome> {
        let key = &prepared.call.key;
        let (started, attempt, limit) = (self.clock.now(), key.attempt, prepared.call.limit);
        let visit = {
            let mut dice = self.dice.lock();
            let takes = Duration::from_millis(dice.below(4_000));
            let fate = self.fate(&prepared.call.name, &mut dice);
            Visit { fate, takes, limit, follows: follows(&prepared.what) }
        };
        let (log, control, blow) = (self.log.clone(), self.control.clone(), self.blow());
        let (air, life) = (self.air.clone(), self.life.clone());
        // Elsewhere worlds stay what they were before it could be told.
        let tries = matches!(self.manner, Manner::Trying(_));
        let call = HookCall {
            at: control.now(),
            passed: None,
            key: prepared.call.idempotency_key.clone(),
            phase: key.phase,
            list: match key.role {
                Role::PreHook => "preHooks",
                Role::Check => "checks",
                Role::PostHook => "postHooks",
            },
            target: key.target.clone(),
            name: prepared.call.name.clone(),
        };
        async move {
            if tries {
                life.moves().await;
            }
            if blow == Some(Blow::Before) {
                return die(&air, &life, wire::Fault::CallCrashBefore).await;
            }
            let place = {
                *log.fates.lock().entry(visit.fate).or_default() += 1;
                let mut calls = log.calls.lock();
                calls.push(HookCall { at: control.now(), ..call });
                calls.len() - 1
            };
            let (duration, result, code) = visit.ends();
            tokio::time::sleep(duration).await;
            if tries {
                // What came back meanwhile is read when the caller goes on.
                life.moves().await;
            }
            if result == Verdict::Success {
                log.calls.lock()[place].passed = Some(control.now());
            }
            if blow == Some(Blow::After) {
                return die(&air, &life, wire::Fault::CallCrashAfter).await;
            }
            Outcome {
                started,
                duration,
                attempt,
                result,
                code: code.filter(|_| tries),
                output: String::new(),
            }
        }
        .boxed()
    }
}

/// The caller dies here.
async fn die(air: &Air, life: &Life, how: wire::Fault) -> Outcome {
    air.count_of(life, how);
    life.end();
    std::future::pending().await
}

/// Whether a call changes nothing, so that it is followed where it is sent on.
fn follows(what: &What) -> bool {
    let http = match what {
        What::Hook(hook) => &hook.http,
        What::Check(check) => &check.http,
    };
    match http.as_ref().map(|http| &http.method) {
        Some(HttpMethod::Get | HttpMethod::Head | HttpMethod::Options) => true,
        Some(HttpMethod::Other(unsaid)) => unsaid.is_empty() && matches!(what, What::Check(_)),
        _ => false,
    }
}
