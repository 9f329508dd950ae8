//! What people do to rollouts, in the words of policies, requests and records.

use crate::names::GROUP;

/// What people do to the rollout of an ApplicationSet, each with a right of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetVerb {
    /// Hold everything.
    Pause,
    /// Go on.
    Resume,
    /// Give the run up.
    Abort,
    /// Try again what failed.
    Retry,
    /// Leave out what is waited for.
    Skip,
    /// Open the next step or phase.
    Advance,
    /// Put one phase back.
    Rollback,
    /// Put every phase back.
    RollbackAll,
    /// Let a mass deletion happen.
    ApproveDeletion,
    /// Add or change hooks.
    ChangeHooks,
}

/// The word by which a deletion is approved, of a set as of a resource.
pub const APPROVE_DELETION: &str = "approve-deletion";

// === impl SetVerb ===

impl SetVerb {
    /// All of them.
    pub const ALL: [SetVerb; 10] = [
        SetVerb::Pause,
        SetVerb::Resume,
        SetVerb::Abort,
        SetVerb::Retry,
        SetVerb::Skip,
        SetVerb::Advance,
        SetVerb::Rollback,
        SetVerb::RollbackAll,
        SetVerb::ApproveDeletion,
        SetVerb::ChangeHooks,
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            SetVerb::Pause => "pause",
            SetVerb::Resume => "resume",
            SetVerb::Abort => "abort",
            SetVerb::Retry => "retry",
            SetVerb::Skip => "skip",
            SetVerb::Advance => "advance",
            SetVerb::Rollback => "rollback",
            SetVerb::RollbackAll => "rollback-all",
            SetVerb::ApproveDeletion => APPROVE_DELETION,
            SetVerb::ChangeHooks => "change-hooks",
        }
    }

    /// How policies name the right to it.
    pub fn right(self) -> String {
        format!("action/{GROUP}/ApplicationSet/{}", self.word())
    }
}
