//! One pass over an object: what is decided is stored, sent and noted, in this order.
//!
//! The order is the guarantee:
//! 1. What an earlier pass has left as arrived is noted as told, then taken out of the outbox.
//! 2. What is new is stored in the outbox, before anything of it is sent.
//! 3. What is over is taken out of what has been told.
//! 4. What is due is sent, and each arrival or failure is stored before the next is sent.
//! 5. What has arrived is noted as told, then taken out of the outbox.
//!
//! A pass can die anywhere; the next one goes on from what is stored.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::config::Config;
use crate::decide::{State, decide, settle};
use crate::notified::Notified;
use crate::outbox::{DeliveryId, Entry, Outbox, Wait};
use crate::service::{Doubt, Failure, Post};
use crate::subject::Subject;

/// Most deliveries of one pass: an object with many recipients is not to keep others waiting.
const MOST_DELIVERIES: usize = 16;

/// When to look again at what the post had no room for.
const CROWDED: SignedDuration = SignedDuration::from_secs(5);

/// Stores what is known about an object.
pub trait Keeper: Send + Sync {
    /// Stores the outbox, if it is still the one that was read. An empty one may be deleted.
    fn store_outbox<'a>(&'a self, outbox: &'a Outbox) -> BoxFuture<'a, Result<(), NotStored>>;

    /// Stores what has been told with the object itself. That the object is gone, or another of its name is in its
    /// place, is no error: there is nothing left to tell it by.
    fn store_notified<'a>(&'a self, notified: &'a Notified) -> BoxFuture<'a, Result<(), NotStored>>;
}

/// Something could not be stored, or nobody knows whether it was. The pass ends, and the next begins with what is
/// stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not stored, so nothing more is done until it is read again: {0}")]
pub struct NotStored(pub String);

/// What this process knows beyond what is stored. It is an advantage, never a need: another process does without.
#[derive(Debug, Default)]
pub struct Ledger {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Stored by this process, and never tried since.
    untried: BTreeSet<DeliveryId>,
    /// Sent by this process, which could not be stored yet.
    arrived: BTreeSet<DeliveryId>,
}

/// What came of a pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passed {
    /// What is stored now.
    pub state: State,
    /// What was tried, and what came of it.
    pub attempts: Vec<Attempt>,
    /// What people should know. No text of it holds a value of the Secret.
    pub complaints: Vec<String>,
    /// The triggers that were evaluated, and whether they were met.
    pub evaluated: Vec<(String, bool)>,
    /// When to look again without an event.
    pub wake: Option<Timestamp>,
}

/// One attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The trigger it comes from.
    pub trigger: String,
    /// The service.
    pub service: String,
    /// Why it failed, if it did.
    pub fault: Option<String>,
}

/// Makes one pass over an object; without one (it is gone), over what is left of it in the outbox.
///
/// # Errors
/// Something could not be stored. What was sent before is remembered in the ledger and not sent again by this process.
pub async fn pass(
    subject: Option<&Subject<'_>>,
    config: &Config,
    state: State,
    keeper: &dyn Keeper,
    post: &dyn Post,
    ledger: &Ledger,
    now: Timestamp,
) -> Result<Passed, NotStored> {
    let mut state = state;
    settle_in(&mut state, keeper, ledger, now).await?;

    let decision = decide(subject, config, &state, now);
    let next = decision.state;
    if next.outbox != state.outbox {
        keeper.store_outbox(&next.outbox).await?;
        ledger.note_new(&state.outbox, &next.outbox);
    }
    if next.notified != state.notified {
        keeper.store_notified(&next.notified).await?;
    }
    state = next;

    let (mut attempts, mut crowded) = (Vec::new(), None);
    let due: Vec<Entry> = state.outbox.due(now).into_iter().take(MOST_DELIVERIES).cloned().collect();
    for entry in due {
        if !post.has_room(&entry.service) {
            crowded = now.checked_add(CROWDED).ok();
            continue;
        }
        let result = deliver(&entry, config, post, ledger).await;
        match &result {
            Ok(()) => state.outbox.mark_sent(&entry.id),
            Err(failure) => {
                let patience = config.services.get(&entry.service).map(|service| service.patience);
                let patience = patience.unwrap_or_default();
                let fault = config.redactor.redact(&failure.message);
                state.outbox.mark_failed(&entry.id, &fault, failure.wait, &patience, now);
            }
        }
        keeper.store_outbox(&state.outbox).await?;
        ledger.forget(&entry.id);
        let fault = result.err().map(|failure| config.redactor.redact(&failure.message));
        attempts.push(Attempt { trigger: entry.trigger, service: entry.service, fault });
    }
    settle_in(&mut state, keeper, ledger, now).await?;

    // What is due and had no room is not due at once.
    let next = state.outbox.next_at().map(|at| crowded.map_or(at, |later| at.max(later)));
    let wake = [decision.wake, next].into_iter().flatten().min();
    Ok(Passed { state, attempts, complaints: decision.complaints, evaluated: decision.evaluated, wake })
}

/// Notes what has arrived as told, then takes it out of the outbox.
async fn settle_in(
    state: &mut State,
    keeper: &dyn Keeper,
    ledger: &Ledger,
    now: Timestamp,
) -> Result<(), NotStored> {
    if state.outbox.finished().next().is_none() {
        return Ok(());
    }
    // That it has arrived is stored: a store whose answer was lost may have done it.
    state.outbox.finished().for_each(|entry| ledger.forget(&entry.id));
    let notified = settle(state, now);
    if notified != state.notified {
        keeper.store_notified(&notified).await?;
        state.notified = notified;
    }
    let mut outbox = state.outbox.clone();
    outbox.clear_finished();
    keeper.store_outbox(&outbox).await?;
    state.outbox = outbox;
    Ok(())
}

async fn deliver(entry: &Entry, config: &Config, post: &dyn Post, ledger: &Ledger) -> Result<(), Failure> {
    let doubt = match ledger.standing(&entry.id) {
        Standing::Arrived => return Ok(()),
        Standing::Untried => Doubt::None,
        Standing::Unknown => Doubt::MayHaveArrived,
    };
    let Some(service) = config.services.get(&entry.service) else {
        let message = format!("there is no service {} any more", entry.service);
        return Err(Failure { message, wait: Wait::Longest });
    };
    let result = post.deliver(service, entry, doubt).await;
    if result.is_ok() {
        ledger.note_arrived(&entry.id);
    }
    result
}

enum Standing {
    Untried,
    Arrived,
    Unknown,
}

// === impl Ledger ===

impl Ledger {
    fn note_new(&self, before: &Outbox, after: &Outbox) {
        let is_old = |entry: &&Entry| before.entries().iter().any(|old| old.id == entry.id);
        let new = after.entries().iter().filter(|entry| !is_old(entry)).map(|entry| entry.id.clone());
        self.known.lock().untried.extend(new);
    }

    /// What is known of a delivery that is about to be tried. From now on it may have arrived.
    fn standing(&self, id: &DeliveryId) -> Standing {
        let mut known = self.known.lock();
        if known.arrived.contains(id) {
            Standing::Arrived
        } else if known.untried.remove(id) {
            Standing::Untried
        } else {
            Standing::Unknown
        }
    }

    fn note_arrived(&self, id: &DeliveryId) {
        self.known.lock().arrived.insert(id.clone());
    }

    /// What came of it is stored.
    fn forget(&self, id: &DeliveryId) {
        self.known.lock().arrived.remove(id);
    }
}
