//! What a decision on phases rests on, and what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::phase_status::GeneratorPhases;
use baton_hooks::Finding;
use jiff::Timestamp;

use crate::asking::Answer;
use crate::calls::{Call, CallKey, CallResult};
use crate::config::Plan;
use crate::targets::Target;

/// All that is known of one generator's phases.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// UID of the set.
    pub set: &'a str,
    /// Place of the generator in the set.
    pub generator: usize,
    /// Which field the generator stands in, for example `clusters`.
    pub kind: &'a str,
    /// How it is to be deployed.
    pub strategy: Strategy<'a>,
    /// Which rollout this is: see [`identity::follow`](crate::identity::follow).
    pub rollout: &'a str,
    /// How far it has been followed, to be kept beside it.
    pub amended: &'a str,
    /// The status as it was read from the API, made whole by [`details::join`](crate::details::join). Nothing is called,
    /// opened or put back that does not stand in it.
    pub stored: Option<&'a GeneratorPhases>,
    /// The Applications of the generator.
    pub targets: &'a [Target],
    /// How far each of them is; who is not there has not started.
    pub seen: &'a BTreeMap<Arc<str>, Seen>,
    /// Whether `seen` is no older than a consistent list that was asked for by [`Decision::list`].
    pub consistent: bool,
    /// What people ask for.
    pub requests: &'a Requests,
    /// The step of each Application, counted from 0, where the set goes in steps as well. Who is in none is not there.
    pub steps: &'a BTreeMap<Arc<str>, usize>,
    /// What came of calls since the last decision.
    pub results: &'a [CallResult],
    /// The calls that this process is making.
    pub in_flight: &'a BTreeSet<CallKey>,
    /// Whether nothing new may begin.
    pub hold: Hold,
    /// The time.
    pub now: Timestamp,
}

/// How a generator is to be deployed.
#[derive(Debug, Clone, Copy)]
pub enum Strategy<'a> {
    /// In these phases.
    Wanted(&'a Plan),
    /// In phases that cannot be followed.
    Invalid(&'a [Finding]),
    /// No longer in phases: what is open is finished as it was planned, where that is still known.
    Removed(Option<&'a Plan>),
}

/// Whether nothing new may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// Everything may.
    #[default]
    None,
    /// A person holds the rollout. What runs is waited for.
    Paused,
    /// The set is being deleted. What runs is ended.
    Deleting,
}

/// How far one Application is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// How far it is on its way to `pin`.
    pub progress: Progress,
    /// What it is on its way to: the pin of the run, or the one it is put back to where the gate says so.
    pub pin: Arc<str>,
    /// Whether this run has written it, so that there is something to put back.
    pub touched: bool,
    /// Whether it counts as done because a person said so.
    pub skipped: bool,
    /// The newest good pin on record that is not the run's.
    pub good: Option<Arc<str>>,
}

/// How far an Application is on its way to a pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Nothing was written for this pin.
    NotStarted,
    /// Nothing was written for this pin: as it is, it cannot be synced. In words, why.
    Stuck(String),
    /// It was written, and is neither done nor failed.
    UnderWay,
    /// It was written, and a person has to approve something before it goes on. In words, what.
    AwaitingApproval(String),
    /// It is synced and healthy at the pin.
    Done,
    /// It was done at the pin, and is no longer.
    Regressed(String),
    /// It will not get there by itself.
    Failed {
        /// In one word.
        reason: String,
        /// In words.
        message: String,
    },
}

/// What people ask for. A text that was not there before asks anew.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requests {
    /// To end the wait of a phase, or to go on after a failure.
    pub advance: Option<String>,
    /// To put back what the present phase changed.
    pub rollback: Option<String>,
    /// To put back what the whole run changed.
    pub rollback_all: Option<String>,
    /// To end it.
    pub abort: Option<String>,
    /// To try again what failed.
    pub retry: Option<String>,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// What to store, by compare-and-swap on what was read; none where there is nothing to be kept any more. All else
    /// here follows from what is stored already, and may be done before or after.
    pub status: Option<GeneratorPhases>,
    /// Whether an Application may be changed.
    pub gates: BTreeMap<Arc<str>, Gate>,
    /// Per phase: how many Applications may be under way at once.
    pub limits: Vec<Option<usize>>,
    /// Calls to make.
    pub calls: Vec<Call>,
    /// Why nothing of it can be followed, where that is so: what is stored stays, and nobody is let through.
    pub invalid: Option<String>,
    /// Calls to end.
    pub cancel: Vec<CallKey>,
    /// Applications whose operation is to be ended.
    pub terminate: Vec<Arc<str>>,
    /// States that have proved good, by Application and pin. They are kept before `status` is stored.
    pub good: Vec<(Arc<str>, Arc<str>)>,
    /// Applications that are put back, as the status that was read says, and the pin each goes back to. What was recorded as
    /// good after that was put away, and is good no longer.
    pub back: Vec<(Arc<str>, Arc<str>)>,
    /// Whether a consistent list of the Applications is needed before the next phase opens.
    pub list: bool,
    /// What became of requests that were not answered before. It holds once `status` is stored.
    pub answers: Vec<Answer>,
    /// What people should know.
    pub notices: Vec<Notice>,
    /// What is waited for, the first first.
    pub waits: Vec<Wait>,
    /// When to decide again though nothing is seen.
    pub wake: Option<Timestamp>,
}

/// Whether an Application may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// It may, as one of its phase.
    Open {
        /// Place of the phase, counted from 0.
        phase: usize,
    },
    /// It may not: it is neither created nor changed nor deleted. In words, why.
    Held(String),
    /// The same, and nobody waits for it: no phase takes it. In words.
    Aside(String),
    /// It is put back to this pin, and kept there.
    Back {
        /// The pin.
        pin: Arc<str>,
    },
}

/// Something people should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How bad it is.
    pub severity: baton_hooks::Severity,
    /// In one word.
    pub reason: &'static str,
    /// In words.
    pub message: String,
}

/// Something that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The Application, hook or check; empty for the phase.
    pub object: String,
    /// In words.
    pub message: String,
    /// When it ends by itself, where that is known.
    pub until: Option<Timestamp>,
    /// Whether only another configuration ends it.
    pub config: bool,
}

// === impl Progress ===

impl Progress {
    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        *self == Progress::Done
    }
}

// === impl Gate ===

impl Gate {
    /// Whether the Application may be changed.
    pub fn is_open(&self) -> bool {
        !matches!(self, Gate::Held(_) | Gate::Aside(_))
    }
}

// === impl Wait ===

impl Wait {
    /// Something that holds the whole phase.
    pub fn of_phase(message: impl Into<String>) -> Wait {
        Wait { object: String::new(), message: message.into(), until: None, config: false }
    }
}

// === impl Notice ===

impl Notice {
    pub(crate) fn error(reason: &'static str, message: impl Into<String>) -> Notice {
        Notice { severity: baton_hooks::Severity::Error, reason, message: message.into() }
    }

    pub(crate) fn warning(reason: &'static str, message: impl Into<String>) -> Notice {
        Notice { severity: baton_hooks::Severity::Warning, reason, message: message.into() }
    }
}
