//! Phased deployments: the shell around the decisions of `baton-phases`.
//!
//! The rollout side asks for a round over a set whenever something has happened to it, and acts within what the round
//! rules. A round decides for every generator that has, or had, phases; ends the calls that nobody waits for; writes what
//! proved good, then details, then `status.phases`; makes the calls that are intended there; and tidies up.
//!
//! # Guarantees
//! - `status.phases` is changed only by compare-and-swap on the version that was decided on. Where that fails, nothing is
//!   called and nobody is let through.
//! - Nothing is called, opened or put back that does not stand in the stored status, and no older status than this
//!   process has read or written is ever decided on.
//! - A call that was recorded as passed is not made again. One that was intended and of which nothing is known is, with
//!   the same number and key.
//! - A round that changes nothing makes no request.

mod audit;
mod caller;
mod calls;
mod good;
mod hook_caller;
mod judge;
mod memory;
mod metrics;
mod names;
mod params;
mod plans;
mod recall;
mod round;
mod secrets;
mod sides;
#[cfg(test)]
mod tests;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;

pub use caller::{Caller, Prepared, What};
pub(crate) use calls::Hangup;
pub use hook_caller::HookCaller;
pub(crate) use metrics::CallMetrics;
pub(crate) use plans::phased;
pub(crate) use recall::GoodState;
pub(crate) use told::{PhaseError, Round, Ruling, SeenApp, newest_run};

use crate::cache::ObjectKey;
use crate::events::Recorder;
use crate::namespaces::AllowedNamespaces;
use crate::queue::Queue;
use crate::settings::Settings;
use audit::Audit;
use calls::Calls;
use memory::Memory;
use plans::Plans;

/// Field manager of every write for phases.
const MANAGER: &str = "baton-phases";

/// Phased deployments of all sets.
pub(crate) struct Phases {
    client: Client,
    settings: Arc<Settings>,
    namespaces: AllowedNamespaces,
    calls: Calls,
    audit: Audit,
    memories: Mutex<BTreeMap<ObjectKey, Memory>>,
    plans: Mutex<BTreeMap<ObjectKey, Plans>>,
}

/// What phased deployments are made of.
pub(crate) struct PhaseParts {
    pub(crate) client: Client,
    pub(crate) settings: Arc<Settings>,
    /// Told of every attempt at a call, and of every answer to a person.
    pub(crate) recorder: Option<Recorder>,
    /// Makes the calls.
    pub(crate) caller: Arc<dyn Caller>,
    /// Counts them.
    pub(crate) calls: CallMetrics,
    /// A set is added to it when a call of it has ended.
    pub(crate) wake: Queue<ObjectKey>,
}

impl Phases {
    pub(crate) fn new(parts: PhaseParts) -> Phases {
        let settings = parts.settings;
        let namespaces = settings.hook_namespaces().unwrap_or_else(|error| {
            tracing::error!(%error, "only sets in the controller's own namespace may make calls");
            AllowedNamespaces::only_own(&settings.namespace)
        });
        let audit = Audit { recorder: parts.recorder, calls: parts.calls };
        Phases {
            calls: Calls::new(parts.caller, settings.clock.clone(), parts.wake, audit.clone()),
            audit,
            client: parts.client,
            settings,
            namespaces,
            memories: Mutex::default(),
            plans: Mutex::default(),
        }
    }

    /// One round over one set: decides for every generator that has, or had, phases, stores what follows and does it.
    /// There is one round over a set at a time.
    ///
    /// # Errors
    /// What kept it from its end. Nothing was called, and nobody may be let through; it is worth another try.
    pub(crate) async fn round(&self, key: &ObjectKey, round: Round<'_>) -> Result<Ruling, PhaseError> {
        let uid = round.set.metadata.uid.as_deref().unwrap_or_default();
        let known = self.memories.lock().remove(key);
        let mut memory = match known {
            Some(memory) if memory.uid == uid => memory,
            // Another set of the same name is another set.
            Some(_) => {
                self.calls.forget(key);
                Memory::new(uid)
            }
            None => Memory::new(uid),
        };
        let ruling = self.work(key, &mut memory, &round).await;
        if ruling.is_err() {
            memory.doubt();
        }
        if !memory.is_idle() {
            self.memories.lock().insert(key.clone(), memory);
        }
        ruling
    }

    /// The set is gone, is being deleted or has no phases any more: every call of it ends. Not to be called in the middle of
    /// a round over it.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.memories.lock().remove(key);
        self.plans.lock().remove(key);
        self.calls.forget(key);
    }

    /// What ends the calls of sets that are being deleted.
    pub(crate) fn hangup(&self) -> Hangup {
        self.calls.hangup()
    }

    /// Somebody else leads now, or nobody: every call ends, and nothing is remembered.
    pub(crate) fn stop(&self) {
        self.memories.lock().clear();
        self.plans.lock().clear();
        self.calls.stop();
    }

    /// How many calls are being made.
    pub(crate) fn under_way(&self) -> usize {
        self.calls.count()
    }
}
