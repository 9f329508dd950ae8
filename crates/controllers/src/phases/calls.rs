//! The calls that this process is making, and what came of those that have ended and nobody has taken note of yet.
//!
//! # Guarantees
//! - A result stays until a status is stored that holds it, or says that nobody waits for it.
//! - When a set is forgotten, or all of this is dropped, its calls end, and each is told of as cancelled.
//! - Of a set that is being deleted none begins, once [`Hangup`] has ended those that ran.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_hooks::{Fault, Outcome, Reason, Verdict};
use baton_phases::{CallKey, CallResult};
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::audit::{Attempt, Audit};
use super::caller::{Caller, Prepared};
use crate::cache::ObjectKey;
use crate::clock::Clock;
use crate::queue::Queue;

/// All calls of a controller.
pub(super) struct Calls {
    shared: Arc<Shared>,
    caller: Arc<dyn Caller>,
    clock: Clock,
}

struct Shared {
    state: Mutex<State>,
    wake: Queue<ObjectKey>,
    audit: Audit,
}

#[derive(Default)]
struct State {
    sets: BTreeMap<ObjectKey, SetCalls>,
    /// Tells a call from an earlier one that was ended.
    begun: u64,
    /// The UIDs of sets that are being deleted.
    leaving: BTreeMap<ObjectKey, String>,
}

#[derive(Default)]
struct SetCalls {
    running: BTreeMap<CallKey, Running>,
    ended: Vec<Ended>,
}

struct Running {
    number: u64,
    attempt: Attempt,
    task: JoinHandle<()>,
}

/// A call that has ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) result: CallResult,
    /// Name of the hook or check.
    pub(super) name: Arc<str>,
}

/// Ends the calls of sets that go. Clones are the same.
#[derive(Clone)]
pub(crate) struct Hangup(Arc<Shared>);

impl Hangup {
    /// Ends every call of a set that is being deleted, and lets none begin. When this returns, nothing of them is left.
    pub(crate) async fn end(&self, set: &ObjectKey, uid: &str) {
        let calls = {
            let mut state = self.0.state.lock();
            state.leaving.insert(set.clone(), uid.to_owned());
            state.sets.remove(set)
        };
        let running: Vec<Running> = calls.into_iter().flat_map(|calls| calls.running.into_values()).collect();
        running.iter().for_each(|running| self.0.cancel(running));
        for running in running {
            // It was ended, which is all there is to hear.
            let _ = running.task.await;
        }
    }

    /// The set is gone.
    pub(crate) fn gone(&self, set: &ObjectKey) {
        self.0.state.lock().leaving.remove(set);
    }
}

impl Calls {
    /// What ends the calls of sets that go.
    pub(super) fn hangup(&self) -> Hangup {
        Hangup(self.shared.clone())
    }

    pub(super) fn new(caller: Arc<dyn Caller>, clock: Clock, wake: Queue<ObjectKey>, audit: Audit) -> Calls {
        Calls { shared: Arc::new(Shared { state: Mutex::default(), wake, audit }), caller, clock }
    }

    /// The calls of a set that are being made, and those that have ended.
    pub(super) fn of(&self, set: &ObjectKey) -> (BTreeSet<CallKey>, Vec<Ended>) {
        let state = self.shared.state.lock();
        let Some(calls) = state.sets.get(set) else { return Default::default() };
        (calls.running.keys().cloned().collect(), calls.ended.clone())
    }

    /// Makes a call, unless it is being made.
    pub(super) fn begin(&self, set: &ObjectKey, of: &ApplicationSet, prepared: Prepared) {
        let (key, name) = (prepared.call.key.clone(), prepared.call.name.clone());
        let attempt = Attempt::new(of, &prepared, self.clock.now());
        let mut state = self.shared.state.lock();
        if state.leaving.get(set).is_some_and(|uid| of.metadata.uid.as_ref() == Some(uid)) {
            return;
        }
        state.begun += 1;
        let number = state.begun;
        let calls = state.sets.entry(set.clone()).or_default();
        if calls.running.contains_key(&key) {
            return;
        }
        let (shared, caller, clock) = (self.shared.clone(), self.caller.clone(), self.clock.clone());
        let (set, ran) = (set.clone(), key.clone());
        // It cannot end before it stands among those that run: whoever ends it takes the lock that is held here.
        let task = tokio::spawn(async move {
            let started = clock.now();
            let made = AssertUnwindSafe(async { caller.call(prepared).await }).catch_unwind().await;
            let outcome = made.unwrap_or_else(|_| Outcome {
                started,
                duration: Duration::ZERO,
                attempt: ran.attempt,
                result: Verdict::Failure(Fault {
                    reason: Reason::NotStarted,
                    message: "the call broke off inside the controller; its log says where".to_owned(),
                }),
                code: None,
                output: String::new(),
            });
            shared.end(&set, Ended { result: CallResult { key: ran, outcome }, name }, number);
        });
        calls.running.insert(key, Running { number, attempt, task });
    }

    /// Ends a call that nobody waits for any more.
    pub(super) fn cancel(&self, set: &ObjectKey, key: &CallKey) {
        let running = self.shared.state.lock().sets.get_mut(set).and_then(|calls| calls.running.remove(key));
        running.iter().for_each(|running| self.shared.cancel(running));
    }

    /// Ends every call of a set, and forgets what came of others.
    pub(super) fn forget(&self, set: &ObjectKey) {
        let calls = self.shared.state.lock().sets.remove(set);
        calls.iter().flat_map(|calls| calls.running.values()).for_each(|running| self.shared.cancel(running));
    }

    /// Forgets the results that were shown, but for those that somebody still waits for.
    pub(super) fn taken(&self, set: &ObjectKey, shown: &[Ended], waits: impl Fn(&Ended) -> bool) {
        let mut state = self.shared.state.lock();
        let Some(calls) = state.sets.get_mut(set) else { return };
        let was_shown = |ended: &Ended| shown.iter().any(|shown| shown.result.key == ended.result.key);
        calls.ended.retain(|ended| !was_shown(ended) || waits(ended));
        if calls.ended.is_empty() && calls.running.is_empty() {
            state.sets.remove(set);
        }
    }

    /// Ends every call.
    pub(super) fn stop(&self) {
        let sets = std::mem::take(&mut self.shared.state.lock().sets);
        let running = sets.values().flat_map(|calls| calls.running.values());
        running.for_each(|running| self.shared.cancel(running));
    }

    /// How many calls are being made.
    pub(super) fn count(&self) -> usize {
        self.shared.state.lock().sets.values().map(|calls| calls.running.len()).sum()
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn cancel(&self, running: &Running) {
        running.task.abort();
        self.audit.cancelled(&running.attempt);
    }

    fn end(&self, set: &ObjectKey, ended: Ended, number: u64) {
        let attempt = {
            let mut state = self.state.lock();
            let Some(calls) = state.sets.get_mut(set) else { return };
            let key = &ended.result.key;
            // Whoever was ended in the moment of coming to an end has been told of.
            if calls.running.get(key).is_none_or(|running| running.number != number) {
                return;
            }
            let Some(running) = calls.running.remove(key) else { return };
            calls.ended.push(ended.clone());
            running.attempt
        };
        self.audit.ended(&attempt, &ended.result.outcome);
        self.wake.add(set.clone());
    }
}
