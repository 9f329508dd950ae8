//! Ends an operation on request: what runs as a hook is stopped; resources stay as they are.

use baton_api::application_status::OperationPhase;

use super::effect::Effect;
use super::step::{look_of, release_of};
use super::{Engine, Next, Stage, Turn, message};
use crate::action::Verb;
use crate::hooks::DeletePolicy;
use crate::task::Task;

/// How far the end is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Hooks that no cache shows are looked for.
    Look,
    /// Every hook is let go of.
    Release,
    /// Hooks that still run are deleted.
    Delete,
    /// What each had come to before is noted.
    Note(Vec<(usize, OperationPhase, String)>),
}

impl Engine<'_> {
    pub(super) fn begin_terminate(&mut self) -> Turn {
        // What must not be carried out any more may run nevertheless, and is stopped as well.
        self.rebuild();
        Turn::Go(Stage::TakeDown(Part::Look))
    }

    pub(super) fn take_down(&mut self, part: Part) -> Turn {
        let running = self.which(|task| task.is_hook() && task.is_running());
        match part {
            Part::Look => {
                let unseen: Vec<usize> =
                    running.into_iter().filter(|index| self.tasks[*index].live.is_none()).collect();
                self.act(unseen, Effect::LookAgain, look_of, Stage::TakeDown(Part::Release))
            }
            Part::Release => {
                let held =
                    self.which(|task| (task.is_running() || task.is_completed()) && self.is_to_release(task));
                self.act(held, Effect::StopRelease, release_of, Stage::TakeDown(Part::Delete))
            }
            Part::Delete => {
                let notes = running.iter().map(|index| self.last_word(*index)).collect();
                let stopped: Vec<usize> =
                    running.into_iter().filter(|index| self.is_to_stop(*index)).collect();
                let verb = |task: &Task| Verb::Delete(self.delete_of(task, false));
                self.act(stopped, Effect::StopDelete, verb, Stage::TakeDown(Part::Note(notes)))
            }
            Part::Note(notes) => self.note_stopped(notes),
        }
    }

    /// Whether a running hook is deleted: unless it has ended meanwhile and may stay.
    fn is_to_stop(&self, index: usize) -> bool {
        let task = &self.tasks[index];
        let Some(live) = task.live.as_deref() else { return false };
        let ended = self.hook_state(live).is_ok_and(|(state, _)| state.is_completed());
        !task.is_terminating() && (!ended || task.has_policy(DeletePolicy::HookFailed))
    }

    /// What is noted of a running hook once it is stopped.
    fn last_word(&self, index: usize) -> (usize, OperationPhase, String) {
        let stopped = "Terminated".to_owned();
        let (state, message) = match self.tasks[index].live.as_deref().map(|live| self.hook_state(live)) {
            None => (OperationPhase::Succeeded, stopped),
            Some(Ok((state, message))) if state.is_completed() => (state, message),
            Some(Ok(_)) => (OperationPhase::Failed, stopped),
            Some(Err(error)) => (OperationPhase::Error, format!("Failed to get hook health: {error}")),
        };
        (index, state, message)
    }

    fn note_stopped(&mut self, notes: Vec<(usize, OperationPhase, String)>) -> Turn {
        for (index, state, message) in notes {
            // What could not be deleted says so already.
            if self.tasks[index].is_running() {
                self.set_state(index, state, &message);
            }
        }
        let (phase, message) = match self.invalid.take() {
            Some(message) => (OperationPhase::Failed, message),
            None if self.had_errors => (OperationPhase::Error, message::TERMINATED_BADLY.to_owned()),
            None => (OperationPhase::Failed, message::TERMINATED.to_owned()),
        };
        Turn::Go(Stage::End(Next::Done { phase, message }))
    }
}
