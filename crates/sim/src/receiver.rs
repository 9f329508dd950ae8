//! Whom hooks call: slow, failing, silent, and well in the end.

use std::sync::Arc;
use std::time::Duration;

use baton_controllers::{Caller, Clock, Prepared};
use baton_hooks::{Fault, Outcome, Reason, Verdict};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::dice::Dice;
use crate::wire::Air;

/// A receiver.
pub(crate) struct Receiver {
    dice: Mutex<Dice>,
    clock: Clock,
    air: Arc<Air>,
}

impl Receiver {
    pub(crate) fn new(seed: u64, clock: Clock, air: Arc<Air>) -> Receiver {
        Receiver { dice: Mutex::new(Dice::new(seed, "receiver")), clock, air }
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
        async move {
            let (duration, result) = match fate {
                // It hangs until time is up.
                0..8 if !calm => (limit, Verdict::Timeout { after: limit }),
                8..25 if !calm => {
                    let message = "answered 500, not 200".to_owned();
                    (takes, Verdict::Failure(Fault { reason: Reason::UnexpectedStatus, message }))
                }
                _ => (takes, Verdict::Success),
            };
            tokio::time::sleep(duration).await;
            Outcome { started, duration, attempt, result, code: None, output: String::new() }
        }
        .boxed()
    }
}
