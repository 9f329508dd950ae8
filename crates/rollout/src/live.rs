//! What one version of an Application object says, as far as an order depends on it.

use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};

use crate::pin::{Fingerprint, Pin, Resolution};
use crate::stamp::Stamp;

/// One version of one Application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// Its resourceVersion as a number.
    pub version: u64,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// The mark of the last write of a rollout.
    pub stamp: Option<Stamp>,
    /// Of its specification, made comparable with what is wanted: normalised, without ignored fields and without
    /// automatic sync.
    pub spec: Fingerprint,
    /// Whether it may sync by itself.
    pub automatic: bool,
    /// Whether `status.sync.comparedTo` is of the specification it has now.
    pub compared: bool,
    /// Whether it is as it should be.
    pub sync: SyncCode,
    /// Whether only prunings are missing for it to be Synced.
    pub prune_only: bool,
    /// How it is.
    pub health: HealthCode,
    /// Which of its resources makes it so, and what that says, where it is not healthy and something is told.
    pub ailing: Option<Arc<str>>,
    /// The revisions it reports, one per source.
    pub reported: Vec<Arc<str>>,
    /// The first error among its conditions that casts doubt on the rest: type and message.
    pub error: Option<(Arc<str>, Arc<str>)>,
    /// `.operation`, which waits or runs: its stamp, if it is of a rollout.
    pub operation: Option<Option<Stamp>>,
    /// The last operation that was begun.
    pub last: Option<Operation>,
    /// Revisions of the last full sync that succeeded, from the history.
    pub deployed: Vec<Arc<str>>,
    /// Whether `argocd.argoproj.io/refresh` is there.
    pub refresh: bool,
    /// Value of `argocd.argoproj.io/refresh-timestamp`.
    pub nonce: Option<Arc<str>>,
    /// Whether the comparison that its stamp asked for is known to be what its status tells of.
    pub answered: bool,
    /// When the last comparison began, in seconds.
    pub reconciled: Option<i64>,
    /// Why the project's windows let nothing be synced now, where they do.
    pub closed: Option<Arc<str>>,
    /// Whether drift goes through the steps (`baton.dev/heal: ordered`).
    pub heals_in_order: bool,
}

/// An operation as `status.operationState` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// How far it is.
    pub phase: OperationPhase,
    /// Its stamp, if it is of a rollout.
    pub stamp: Option<Stamp>,
    /// Whether it syncs everything and for real: no selection of resources, no dry run.
    pub full: bool,
    /// The revisions it synced, as its result tells them, one per source.
    pub revisions: Vec<Arc<str>>,
    /// When it ended, in seconds.
    pub finished: Option<i64>,
    /// Whether it waits before it is tried again.
    pub retrying: bool,
    /// Whether it waits for a person to approve deletions.
    pub awaits_approval: bool,
    /// In words.
    pub message: Arc<str>,
}

// === impl Live ===

impl Live {
    /// Every mark of a rollout on it.
    pub fn stamps(&self) -> impl Iterator<Item = &Stamp> {
        self.stamp.iter().chain(self.operations())
    }

    /// The marks on its operations: the one that waits or runs, and the last that was begun.
    pub fn operations(&self) -> impl Iterator<Item = &Stamp> {
        let operations = [
            self.operation.as_ref().and_then(Option::as_ref),
            self.last.as_ref().and_then(|last| last.stamp.as_ref()),
        ];
        operations.into_iter().flatten()
    }

    /// The pin of its specification at the revisions of the last full sync.
    pub(crate) fn last_pin(&self) -> Pin {
        Pin::new(self.spec, self.deployed.iter().cloned().map(Resolution::exact).collect())
    }

    /// Whether its specification, at the revisions of the last full sync, is what its stamp is for.
    pub(crate) fn is_as_stamped(&self) -> bool {
        self.stamp.as_ref().is_some_and(|stamp| stamp.pin == self.last_pin().hash)
    }

    /// Whether an operation waits or runs.
    pub fn is_busy(&self) -> bool {
        self.operation.is_some() || self.last.as_ref().is_some_and(Operation::is_running)
    }
}

// === impl Operation ===

impl Operation {
    /// Whether it has not come to its end.
    pub fn is_running(&self) -> bool {
        !matches!(self.phase, OperationPhase::Succeeded | OperationPhase::Failed | OperationPhase::Error)
    }

    /// Whether it came to a bad end.
    pub fn has_failed(&self) -> bool {
        matches!(self.phase, OperationPhase::Failed | OperationPhase::Error)
    }
}
