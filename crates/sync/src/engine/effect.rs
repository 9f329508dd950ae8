//! What an outcome means for the task it belongs to.

use std::sync::Arc;

use baton_api::application_status::{OperationPhase, ResultCode};
use baton_api::object::Object;
use serde_json::{Value, json};

use super::{Engine, message};
use crate::action::Outcome;
use crate::hooks;
use crate::order::is_namespace;

/// An action that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Issued {
    /// Position of its task.
    pub(super) task: usize,
    pub(super) effect: Effect,
}

/// What an action was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// To learn whether the API would take the object.
    Check,
    /// To apply the object.
    Apply,
    /// To prune the object.
    Prune,
    /// To learn what a running object has come to.
    Judge,
    /// To learn what an object that changed in between has become.
    LookAgain,
    /// To let go of a hook that has ended.
    ReleaseCompleted,
    /// To let go of a hook that is in the way or left over.
    Release,
    /// To get an old hook out of the way of a new one.
    ClearTheWay,
    /// To delete a hook whose time is over.
    DeleteHook,
    /// To stop a hook: its finalizer goes.
    StopRelease,
    /// To stop a hook: it is deleted.
    StopDelete,
}

impl Engine<'_> {
    pub(super) fn take_effect(&mut self, issued: &Issued, outcome: Outcome) {
        let index = issued.task;
        match issued.effect {
            Effect::Check => self.checked(index, outcome),
            Effect::Apply => self.applied(index, outcome),
            Effect::Prune => self.pruned(index, outcome),
            Effect::Judge => self.looked_at(index, outcome),
            Effect::LookAgain => self.looked_again(index, outcome),
            Effect::ReleaseCompleted => self.released(index, outcome, "Failed to remove hook finalizer"),
            Effect::Release => self.released(index, outcome, "failed to remove hook finalizer"),
            Effect::StopRelease => {
                self.had_errors |= matches!(outcome, Outcome::Failed { .. });
                self.released(index, outcome, "Failed to remove hook finalizer");
            }
            Effect::ClearTheWay | Effect::DeleteHook => {
                self.deleted(index, outcome, OperationPhase::Error, "failed to delete resource");
            }
            Effect::StopDelete => {
                self.had_errors |= matches!(outcome, Outcome::Failed { .. });
                self.deleted(index, outcome, OperationPhase::Failed, "Failed to delete");
            }
        }
    }

    /// Notes what came of a task. An empty message leaves the last one.
    pub(super) fn set(&mut self, index: usize, status: ResultCode, state: OperationPhase, message: &str) {
        let task = &mut self.tasks[index];
        task.status = status;
        task.state = state;
        if !message.is_empty() {
            task.message = message.to_owned();
        }
        self.results.put(task);
    }

    /// Notes how far a task is, whatever was done to it.
    pub(super) fn set_state(&mut self, index: usize, state: OperationPhase, message: &str) {
        let status = self.tasks[index].status.clone();
        self.set(index, status, state, message);
    }

    fn fail(&mut self, index: usize, message: &str) {
        let message = message::with_hint(message, &self.tasks[index]);
        self.set(index, ResultCode::SyncFailed, OperationPhase::Failed, &message);
    }

    fn checked(&mut self, index: usize, outcome: Outcome) {
        match outcome {
            Outcome::Failed { message } if self.is_for_missing_namespace(index, &message) => {}
            Outcome::Failed { message } => return self.fail(index, &message),
            Outcome::NeedsApproval => {
                self.denied.insert(self.tasks[index].key.clone());
            }
            Outcome::Applied { message, .. } if self.request.sync.dry_run => {
                return self.set(index, ResultCode::Synced, OperationPhase::Succeeded, &message);
            }
            _ => {}
        }
        if self.request.sync.dry_run {
            self.set(index, ResultCode::Synced, OperationPhase::Succeeded, "");
        }
    }

    /// Whether an object could not be checked only because the sync is yet to make its namespace.
    fn is_for_missing_namespace(&self, index: usize, message: &str) -> bool {
        let namespace = self.tasks[index].object().namespace();
        !namespace.is_empty()
            && message.contains(&format!("namespaces \"{namespace}\" not found"))
            && self
                .tasks
                .iter()
                .any(|task| task.key.name == namespace && task.target.as_deref().is_some_and(is_namespace))
    }

    fn applied(&mut self, index: usize, outcome: Outcome) {
        let key = self.tasks[index].key.clone();
        match outcome {
            Outcome::Applied { message, object } => {
                if !matches!((self.world.health)(&object), Ok(None)) {
                    self.stale.insert(key.clone());
                }
                self.denied.remove(&key);
                // A hook of two phases is let go of after each.
                self.released.remove(&key);
                self.saw(&key, Some(object));
                let state = match self.request.sync.dry_run {
                    true => OperationPhase::Succeeded,
                    false => OperationPhase::Running,
                };
                self.set(index, ResultCode::Synced, state, &message);
            }
            Outcome::Exists(object) => self.saw(&key, Some(object)),
            Outcome::NeedsApproval => {
                self.denied.insert(key);
            }
            Outcome::Changed => {}
            Outcome::Failed { message } => self.fail(index, &message),
            Outcome::Gone | Outcome::Terminating | Outcome::Done | Outcome::Found(_) => {
                self.fail(index, "applying the object had no outcome");
            }
        }
    }

    fn pruned(&mut self, index: usize, outcome: Outcome) {
        let key = self.tasks[index].key.clone();
        match outcome {
            Outcome::Changed => return,
            Outcome::Failed { message } => return self.fail(index, &message),
            Outcome::Terminating => {
                let live = self.tasks[index].live.as_deref().map(|live| terminating(live, self.world.now));
                self.saw(&key, live.map(Arc::new));
            }
            // The task keeps what was deleted: it is named by it until the next step.
            _ => {
                self.since.insert(key, None);
            }
        }
        self.set(index, ResultCode::Pruned, OperationPhase::Succeeded, "pruned");
    }

    fn looked_at(&mut self, index: usize, outcome: Outcome) {
        let key = self.tasks[index].key.clone();
        self.looked.insert(key.clone());
        match outcome {
            Outcome::Found(object) => {
                self.stale.remove(&key);
                self.saw(&key, Some(object));
            }
            Outcome::Gone => {
                let message = message::missing(&self.tasks[index]);
                self.saw(&key, None);
                self.set(index, ResultCode::SyncFailed, OperationPhase::Error, &message);
            }
            Outcome::Failed { message } if self.tasks[index].live.is_none() => {
                self.set_state(
                    index,
                    OperationPhase::Error,
                    &format!("Failed to get live resource {message}"),
                );
            }
            _ => {}
        }
    }

    fn looked_again(&mut self, index: usize, outcome: Outcome) {
        let key = self.tasks[index].key.clone();
        match outcome {
            Outcome::Found(object) => self.saw(&key, Some(object)),
            Outcome::Gone if self.tasks[index].is_prune() => {
                self.since.insert(key, None);
                self.set(index, ResultCode::Pruned, OperationPhase::Succeeded, "pruned");
            }
            Outcome::Gone => self.saw(&key, None),
            _ => {}
        }
    }

    fn released(&mut self, index: usize, outcome: Outcome, failure: &str) {
        let key = self.tasks[index].key.clone();
        self.released.insert(key.clone());
        match outcome {
            Outcome::Failed { message } => {
                self.set_state(index, OperationPhase::Error, &format!("{failure}: {message}"));
            }
            Outcome::Gone => self.saw(&key, None),
            _ => {
                let mut live = self.tasks[index].live.as_deref().cloned();
                live.as_mut().into_iter().for_each(hooks::release);
                self.saw(&key, live.map(Arc::new));
            }
        }
    }

    fn deleted(&mut self, index: usize, outcome: Outcome, state: OperationPhase, failure: &str) {
        let key = self.tasks[index].key.clone();
        match outcome {
            Outcome::Failed { message } => self.set_state(index, state, &format!("{failure}: {message}")),
            Outcome::Terminating => {
                let live = self.tasks[index].live.as_deref().map(|live| terminating(live, self.world.now));
                self.saw(&key, live.map(Arc::new));
            }
            Outcome::Changed => {}
            _ => self.saw(&key, None),
        }
    }
}

/// An object as it is once its deletion has begun.
fn terminating(live: &Value, now: jiff::Timestamp) -> Value {
    let mut live = live.clone();
    if live.deletion_timestamp().is_none() && live["metadata"].is_object() {
        live["metadata"]["deletionTimestamp"] = json!(now.to_string());
    }
    live
}
