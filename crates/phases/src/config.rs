//! A phased deployment as it is meant, once nothing is wrong with how it is written. [`compile`](crate::compile) makes it.

use std::sync::Arc;
use std::time::Duration;

use baton_api::phases::{FailureAction, PhaseTarget};
use baton_hooks::Need;
use baton_rollout::pin::Fingerprint;
use baton_rollout::steps::Share;

/// The phases of one generator.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Where it is written, for example `spec.generators[0].deploymentStrategy`.
    pub path: Arc<str>,
    /// The phases, in order.
    pub phases: Vec<PhasePlan>,
    /// How many good states of each Application are kept.
    pub history: usize,
    /// How much there may be at once.
    pub caps: Caps,
    /// Tells this configuration from others.
    pub hash: Fingerprint,
}

/// How much there may be at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Hooks under way.
    pub hooks: usize,
    /// Checks under way.
    pub checks: usize,
    /// Applications of one phase.
    pub applications: usize,
}

/// One phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhasePlan {
    /// Its name.
    pub name: Arc<str>,
    /// Which targets it matches: any entry.
    pub targets: Vec<PhaseTarget>,
    /// How many of those it matches are to be updated when it ends; all if none.
    pub quota: Option<Share>,
    /// How many may be under way at once; all if none.
    pub max_concurrent: Option<Share>,
    /// Calls before it.
    pub pre_hooks: Vec<CallPlan>,
    /// Calls that must pass when its targets are healthy.
    pub checks: Vec<CallPlan>,
    /// Calls after those.
    pub post_hooks: Vec<CallPlan>,
    /// How long to wait at its end.
    pub wait: Option<Duration>,
    /// How long a target may take.
    pub deadline: Duration,
    /// What follows a failure.
    pub on_failure: Action,
    /// Which parameters its hooks and checks need.
    pub needs: Vec<NeedPlan>,
}

/// A parameter that a text of a hook or check needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedPlan {
    /// The path of the text.
    pub path: String,
    /// What it needs.
    pub need: Need,
}

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// All stays as it is.
    Stop,
    /// What the phase changed is put back.
    Rollback,
    /// The next phase begins.
    Continue,
    /// All stays as it is, and what is under way is ended.
    Abort,
}

/// A hook or a check, as far as it matters when it runs and what its failure means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlan {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it runs once for each target instead of once.
    pub per_target: bool,
    /// Whether it runs beside neighbours that say the same.
    pub parallel: bool,
    /// What a failure means.
    pub on_failure: CallFailure,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Whether it is tried again.
    pub again: Option<Again>,
}

/// What the failure of a call means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    /// The phase has failed.
    Fails,
    /// Nothing.
    Ignored,
    /// The phase is aborted, whatever it says of failures.
    Aborts,
}

/// Further attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// Pause after an attempt.
    pub interval: Duration,
    /// How long after the first attempt the last may begin.
    pub deadline: Duration,
}

// === impl PhasePlan ===

impl PhasePlan {
    /// A phase of which nothing is known any more but its name.
    pub(crate) fn bare(name: &str) -> PhasePlan {
        PhasePlan {
            name: name.into(),
            targets: Vec::new(),
            quota: None,
            max_concurrent: None,
            pre_hooks: Vec::new(),
            checks: Vec::new(),
            post_hooks: Vec::new(),
            wait: None,
            deadline: DEADLINE,
            on_failure: Action::Stop,
            needs: Vec::new(),
        }
    }

    /// How many of so many targets it matches are to be updated when it ends. Parts are rounded up: a part of one is one.
    pub fn selects(&self, matched: usize) -> usize {
        let selected = match self.quota {
            None => matched,
            Some(Share::Count(count)) => count as usize,
            Some(Share::Percent(percent)) => (percent as usize * matched).div_ceil(100),
        };
        selected.min(matched)
    }

    /// How many of so many targets may be under way at once; none is all.
    pub fn limit(&self, total: usize) -> Option<usize> {
        self.max_concurrent.map(|share| share.of(total).max(1))
    }
}

/// How long a target may take where neither the phase nor its checks say more.
pub(crate) const DEADLINE: Duration = Duration::from_secs(600);

// === impl Action ===

impl Action {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Stop => "stop",
            Action::Rollback => "rollback",
            Action::Continue => "continue",
            Action::Abort => "abort",
        }
    }

    /// The action of a word; none where it is no action.
    pub(crate) fn read(word: &FailureAction) -> Option<Action> {
        match word {
            FailureAction::Stop => Some(Action::Stop),
            FailureAction::Rollback => Some(Action::Rollback),
            FailureAction::Continue => Some(Action::Continue),
            FailureAction::Abort => Some(Action::Abort),
            FailureAction::Other(word) => word.is_empty().then_some(Action::Stop),
        }
    }
}
