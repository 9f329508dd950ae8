//! The operation that is carried out, as its state tells it.

use baton_api::application_status::{OperationPhase, OperationState, SyncPhase};
use baton_api::object::ResourceKey;
use baton_api::operation::SyncOperation;
use jiff::Timestamp;

use crate::action::Propagation;
use crate::approval::operation_name;

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) sync: SyncOperation,
    pub(crate) started_at: Timestamp,
    pub(crate) terminating: bool,
    attempt: i64,
}

impl Request {
    pub(crate) fn of(state: &OperationState, now: Timestamp) -> Request {
        Request {
            sync: state.operation.sync.clone().unwrap_or_default(),
            started_at: state.started_at.as_ref().map_or(now, |time| time.0),
            terminating: state.phase == OperationPhase::Terminating,
            attempt: state.retry_count,
        }
    }

    /// Whether the operation has an option, word for word.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.sync.sync_options.iter().any(|own| own == option)
    }

    /// Whether objects may be deleted and created anew where they cannot be changed.
    pub(crate) fn force(&self) -> bool {
        self.sync.sync_strategy.as_ref().is_some_and(|strategy| {
            strategy.apply.as_ref().is_some_and(|apply| apply.force)
                || strategy.hook.as_ref().is_some_and(|hook| hook.force)
        })
    }

    /// Whether hooks are left out: on request, and where only some resources are synced.
    pub(crate) fn skips_hooks(&self) -> bool {
        let apply = self.sync.sync_strategy.as_ref().is_some_and(|strategy| strategy.apply.is_some());
        apply || !self.sync.resources.is_empty()
    }

    /// Whether an object is among those to sync.
    pub(crate) fn selects(&self, key: &ResourceKey) -> bool {
        let resources = &self.sync.resources;
        resources.is_empty()
            || resources.iter().any(|resource| {
                resource.name == key.name
                    && resource.kind == key.kind
                    && resource.group == key.group
                    && (resource.namespace.is_empty() || resource.namespace == key.namespace)
            })
    }

    /// What becomes of the dependants of what is deleted.
    pub(crate) fn propagation(&self) -> Propagation {
        if self.has("PrunePropagationPolicy=background") {
            Propagation::Background
        } else if self.has("PrunePropagationPolicy=orphan") && !self.has("PrunePropagationPolicy=foreground")
        {
            Propagation::Orphan
        } else {
            Propagation::Foreground
        }
    }

    /// What a hook carries to be known again after a restart.
    ///
    /// A retry runs hooks anew, so the attempt is part of it; so is the phase, for one hook may run in several.
    pub(crate) fn stamp(&self, phase: &SyncPhase) -> String {
        format!("{}/{}/{phase}", operation_name(self.started_at), self.attempt)
    }
}
