//! Whom hooks call: slow, failing, silent, and well in the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_apiserver::Cluster;
use baton_controllers::{Caller, Clock, Prepared};
use baton_hooks::{Fault, Outcome, Reason, Verdict};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::checker::HookCall;
use crate::dice::Dice;
use crate::wire::Air;

/// Who called, in order.
pub(crate) type Calls = Arc<Mutex<Vec<HookCall>>>;

/// How it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As the dice fall, as long as faults are about.
    #[default]
    Moody,
    /// Well, but for those that are named, once they have turned.
    Steady(BTreeSet<String>),
}

/// A receiver.
pub(crate) struct Receiver {
    manner: Manner,
    dice: Mutex<Dice>,
    /// The caller's, which may be wrong.
    clock: Clock,
    /// Whose clock is right.
    control: Cluster,
    air: Arc<Air>,
    /// Whether those that are to fail do so now.
    turned: Arc<AtomicBool>,
    calls: Calls,
}

impl Receiver {
    pub(crate) fn new(
        seed: u64,
        (manner, turned, calls): (Manner, Arc<AtomicBool>, Calls),
        (clock, control): (Clock, Cluster),
        air: Arc<Air>,
    ) -> Receiver {
        Receiver { manner, dice: Mutex::new(Dice::new(seed, "receiver")), clock, control, air, turned, calls }
    }
}

/// What becomes of a call.
#[derive(Clone, Copy)]
enum Fate {
    /// It hangs until time is up.
    Hangs,
    Refuses,
    Well,
}

impl Fate {
    fn of(number: u64) -> Fate {
        match number {
            0..8 => Fate::Hangs,
            8..25 => Fate::Refuses,
            _ => Fate::Well,
        }
    }
}

impl Caller for Receiver {
    fn call(&self, prepared: Prepared) -> BoxFuture<'static, Outcome> {
        let (started, attempt, limit) = (self.clock.now(), prepared.call.key.attempt, prepared.call.limit);
        let (takes, fate) = {
            let mut dice = self.dice.lock();
            (Duration::from_millis(dice.below(4_000)), dice.below(100))
        };
        let calm = self.air.is_calm();
        let fate = match &self.manner {
            Manner::Moody if calm => Fate::Well,
            Manner::Moody => Fate::of(fate),
            Manner::Steady(failing)
                if failing.contains(&*prepared.call.name) && self.turned.load(Ordering::Relaxed) =>
            {
                Fate::Refuses
            }
            Manner::Steady(_) => Fate::Well,
        };
        let (calls, control) = (self.calls.clone(), self.control.clone());
        let call = HookCall {
            at: control.now(),
            passed: None,
            key: prepared.call.idempotency_key.clone(),
            phase: prepared.call.key.phase,
            name: prepared.call.name.clone(),
        };
        async move {
            let place = {
                let mut calls = calls.lock();
                calls.push(call);
                calls.len() - 1
            };
            let (duration, result) = match fate {
                Fate::Hangs => (limit, Verdict::Timeout { after: limit }),
                Fate::Refuses => {
                    let message = "answered 500, not 200".to_owned();
                    (takes, Verdict::Failure(Fault { reason: Reason::UnexpectedStatus, message }))
                }
                Fate::Well => (takes, Verdict::Success),
            };
            tokio::time::sleep(duration).await;
            if result == Verdict::Success {
                calls.lock()[place].passed = Some(control.now());
            }
            Outcome { started, duration, attempt, result, code: None, output: String::new() }
        }
        .boxed()
    }
}
