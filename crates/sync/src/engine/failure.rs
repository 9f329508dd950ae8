//! What follows when something went wrong: failed hooks are cleaned up and SyncFail hooks run.

use baton_api::application_status::{OperationPhase, ResultCode};

use super::step::is_sync_fail;
use super::wave::{Part, Purpose, Run};
use super::{Engine, Stage, Turn, message};
use crate::hooks::DeletePolicy;

impl Engine<'_> {
    /// Something has ended badly: hooks that are not to outlive that go, then SyncFail hooks run, then it ends.
    pub(super) fn clean_up_failed(&mut self) -> Turn {
        let failed = self.which(|task| !is_sync_fail(task) && task.status == ResultCode::SyncFailed);
        let next = match self.after_failure(message::UNSUCCESSFUL, &failed) {
            Ok(text) => return self.delete_hooks(DeletePolicy::HookFailed, OperationPhase::Failed, text),
            Err(run) => Stage::Wave(run),
        };
        self.act_on_hooks(DeletePolicy::HookFailed, next)
    }

    /// Objects of a wave could not be applied. What else of it runs is waited for.
    pub(super) fn wave_failed(&mut self, run: &Run) -> Turn {
        if run.purpose == Purpose::Failure {
            return Turn::Go(Stage::Step);
        }
        let tasks = run.tasks.iter().copied();
        let failed: Vec<usize> =
            tasks.clone().filter(|index| self.tasks[*index].status == ResultCode::SyncFailed).collect();
        let some_run = tasks.clone().any(|index| self.tasks[index].is_running());
        match self.after_failure(message::APPLY_FAILED, &failed) {
            Err(run) => Turn::Go(Stage::Wave(run)),
            Ok(_) if some_run => Turn::Go(Stage::Step),
            Ok(text) => self.delete_hooks(DeletePolicy::HookFailed, OperationPhase::Failed, text),
        }
    }

    /// How the operation ends, unless SyncFail hooks are yet to run.
    fn after_failure(&mut self, text: &str, failed: &[usize]) -> Result<String, Run> {
        let pending = self.which(|task| is_sync_fail(task) && task.is_pending());
        if !pending.is_empty() {
            return Err(Run { tasks: pending, purpose: Purpose::Failure, part: Part::Release, rounds: 0 });
        }
        let text = message::with_reasons(text, failed.iter().map(|index| &self.tasks[*index]));
        let hooks =
            self.tasks.iter().filter(|task| is_sync_fail(task) && task.status == ResultCode::SyncFailed);
        Ok(match hooks.clone().next() {
            None => text,
            Some(_) => format!("{text}\n{}", message::with_reasons(message::SYNC_FAIL_FAILED, hooks)),
        })
    }
}
