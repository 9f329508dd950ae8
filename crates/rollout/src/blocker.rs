//! What a rollout waits for, so that no wait is without a name.

use std::sync::Arc;

use jiff::Timestamp;

/// Why nothing happens, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// An earlier step is not done.
    WaitingForStep,
    /// As many as may be under way are.
    WaitingForSlot,
    /// The Application has not yet been compared as it was asked to be.
    WaitingForRefresh,
    /// It syncs, or becomes healthy.
    Progressing,
    /// Its operation failed.
    SyncFailed,
    /// It is synced and not healthy.
    Degraded,
    /// It is suspended.
    Suspended,
    /// It, or something of it, is not there.
    Missing,
    /// It was synced and still differs.
    OutOfSyncAfterSync,
    /// Only prunings keep it from being synced, and nobody prunes.
    PruneOnly,
    /// Its state is not known.
    Unknown,
    /// It has an error that keeps it from being compared.
    InvalidApplication,
    /// A person must approve a deletion.
    ApprovalRequired,
    /// The project's windows are closed.
    SyncWindow,
    /// A person holds the rollout.
    Paused,
    /// A person ended the rollout.
    Aborted,
    /// People sync the step by hand.
    HoldStep,
    /// Our own write comes back different, again and again.
    SpecRewritten,
    /// It reports a revision that is none of its pin's.
    RevisionMismatch,
    /// A revision cannot be resolved.
    RevisionUnresolved,
    /// An operation runs that nobody carries out.
    OrphanedOperation,
    /// It was done and is no longer.
    Regressed,
    /// Something newer is to be rolled out by the next run.
    Superseded,
    /// The API does not do what the rollout asks of it.
    ApiError,
    /// A mass deletion waits for approval.
    DeletionFuse,
    /// A phase does not let it through.
    PhaseGate,
    /// The Application controller says nothing.
    NoReport,
    /// The run is begun anew faster than it can end.
    Starved,
    /// The step must stay healthy for a while.
    Soaking,
    /// More Applications failed than the step allows.
    TooManyFailures,
    /// An Application that left the set is not gone yet.
    Leaving,
    /// Generators fail: who belongs to the set is not known.
    GeneratorError,
    /// Automatic sync is being switched off.
    Arming,
    /// What a step says of its end cannot be read.
    InvalidRolloutConfig,
}

/// One thing that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// In one word.
    pub reason: Reason,
    /// The Application or step it is about.
    pub object: Arc<str>,
    /// In words.
    pub message: String,
    /// What ends the wait.
    pub remedy: &'static str,
    /// Since when.
    pub since: Option<Timestamp>,
    /// When it is looked at again without an event.
    pub next_look: Option<Timestamp>,
}

// === impl Reason ===

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 34] = [
        Reason::WaitingForStep,
        Reason::WaitingForSlot,
        Reason::WaitingForRefresh,
        Reason::Progressing,
        Reason::SyncFailed,
        Reason::Degraded,
        Reason::Suspended,
        Reason::Missing,
        Reason::OutOfSyncAfterSync,
        Reason::PruneOnly,
        Reason::Unknown,
        Reason::InvalidApplication,
        Reason::ApprovalRequired,
        Reason::SyncWindow,
        Reason::Paused,
        Reason::Aborted,
        Reason::HoldStep,
        Reason::SpecRewritten,
        Reason::RevisionMismatch,
        Reason::RevisionUnresolved,
        Reason::OrphanedOperation,
        Reason::Regressed,
        Reason::Superseded,
        Reason::ApiError,
        Reason::DeletionFuse,
        Reason::PhaseGate,
        Reason::NoReport,
        Reason::Starved,
        Reason::Soaking,
        Reason::TooManyFailures,
        Reason::Leaving,
        Reason::GeneratorError,
        Reason::Arming,
        Reason::InvalidRolloutConfig,
    ];

    /// The reason of this name.
    pub fn named(name: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.as_str() == name)
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::WaitingForStep => "WaitingForStep",
            Reason::WaitingForSlot => "WaitingForSlot",
            Reason::WaitingForRefresh => "WaitingForRefresh",
            Reason::Progressing => "Progressing",
            Reason::SyncFailed => "SyncFailed",
            Reason::Degraded => "Degraded",
            Reason::Suspended => "Suspended",
            Reason::Missing => "Missing",
            Reason::OutOfSyncAfterSync => "OutOfSyncAfterSync",
            Reason::PruneOnly => "PruneOnly",
            Reason::Unknown => "Unknown",
            Reason::InvalidApplication => "InvalidApplication",
            Reason::ApprovalRequired => "ApprovalRequired",
            Reason::SyncWindow => "SyncWindow",
            Reason::Paused => "Paused",
            Reason::Aborted => "Aborted",
            Reason::HoldStep => "HoldStep",
            Reason::SpecRewritten => "SpecRewritten",
            Reason::RevisionMismatch => "RevisionMismatch",
            Reason::RevisionUnresolved => "RevisionUnresolved",
            Reason::OrphanedOperation => "OrphanedOperation",
            Reason::Regressed => "Regressed",
            Reason::Superseded => "Superseded",
            Reason::ApiError => "ApiError",
            Reason::DeletionFuse => "DeletionFuse",
            Reason::PhaseGate => "PhaseGate",
            Reason::NoReport => "NoReport",
            Reason::Starved => "Starved",
            Reason::Soaking => "Soaking",
            Reason::TooManyFailures => "TooManyFailures",
            Reason::Leaving => "Leaving",
            Reason::GeneratorError => "GeneratorError",
            Reason::Arming => "Arming",
            Reason::InvalidRolloutConfig => "InvalidRolloutConfig",
        }
    }

    /// What ends the wait.
    pub fn remedy(self) -> &'static str {
        match self {
            Reason::WaitingForStep => "the earlier step to be done",
            Reason::WaitingForSlot => "one that is under way to be done",
            Reason::WaitingForRefresh => "the application controller to compare it",
            Reason::Progressing => "its sync to end and its resources to become healthy",
            Reason::SyncFailed => "a new commit or template, or `baton appset retry`",
            Reason::Degraded => "its resources to become healthy, or a new commit",
            Reason::Suspended => "somebody to resume the suspended resource",
            Reason::Missing => "the missing resource or Application to appear",
            Reason::OutOfSyncAfterSync => {
                "the difference to go: see `baton app diff`, or ignore the field in ignoreDifferences"
            }
            Reason::PruneOnly => {
                "`automated.prune: true` in the template and `baton appset retry`, or a sync with prune by hand"
            }
            Reason::Unknown => "the application controller to tell its state: see its conditions",
            Reason::InvalidApplication => "the error in its conditions to be mended",
            Reason::ApprovalRequired => "`baton app confirm-deletion`",
            Reason::SyncWindow => "the window to open",
            Reason::Paused => "`baton appset resume`",
            Reason::Aborted => "a new commit or template, or `baton appset retry`",
            Reason::HoldStep => "its Applications to be synced by hand: `baton app sync`",
            Reason::SpecRewritten => {
                "whoever rewrites the Application to stop, then `baton appset retry`; or the field in \
                 ignoreApplicationDifferences"
            }
            Reason::RevisionMismatch => "the application controller to see the revision of this run",
            Reason::RevisionUnresolved => "the repository to be reachable and to have the revision",
            Reason::OrphanedOperation => "another operation in its place: `baton app sync`",
            Reason::Regressed => {
                "it to be synced and healthy again (`baton app sync`), `baton appset skip`, or a new commit"
            }
            Reason::Superseded => "the next run to begin, once nothing else named here holds it",
            Reason::ApiError => "the cause in the message to be mended; it is tried again by itself",
            Reason::DeletionFuse => "approval of the deletion: `baton appset approve-deletion`",
            Reason::PhaseGate => "what its phase waits for: `baton appset phases` tells",
            Reason::NoReport => "the application controller to run and to see this namespace",
            Reason::Starved => "fewer commits, or the annotation `baton.dev/supersede: Finish`",
            Reason::Soaking => "the wait of the step to pass",
            Reason::TooManyFailures => "a new commit or template, or `baton appset retry`",
            Reason::Leaving => "its deletion to end",
            Reason::GeneratorError => "the error of the ApplicationSet to be mended",
            Reason::Arming => "automatic sync to be off everywhere",
            Reason::InvalidRolloutConfig => "the field to be mended in the ApplicationSet",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_found_by_its_name() {
        for reason in Reason::ALL {
            assert_eq!(Reason::named(reason.as_str()), Some(reason));
            assert!(!reason.remedy().is_empty());
        }
        assert_eq!(Reason::named("Nonsense"), None);
    }
}
