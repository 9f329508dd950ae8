//! One step: judge what runs, wait for it, or choose the wave that comes next.

use std::collections::BTreeSet;

use baton_api::application_status::{OperationPhase, ResultCode, SyncPhase};

use super::effect::Effect;
use super::wave::{Part, Purpose, Run};
use super::{Engine, Stage, Turn, message};
use crate::action::Verb;
use crate::hooks::{self, DeletePolicy};
use crate::task::Task;

impl Engine<'_> {
    pub(super) fn step(&mut self) -> Turn {
        if let Some(message) = self.build() {
            return self.end_invalid(message);
        }
        let awaited = self.awaited();
        self.judge(&awaited);
        if let Some(turn) = self.await_running(&awaited) {
            return turn;
        }
        let is_going = |task: &Task| task.status == ResultCode::Pruned && task.is_terminating();
        let pruned = self.among(&awaited, is_going);
        if !pruned.is_empty() {
            return self.wait(self.waiting(&pruned, true), Vec::new());
        }
        let ended = self.which(|task| task.is_completed() && self.is_to_release(task));
        let ended = self.each_object_once(ended);
        if !ended.is_empty() {
            return self.act(ended, Effect::ReleaseCompleted, release_of, Stage::Step);
        }
        if self.tasks.iter().any(|task| !is_sync_fail(task) && task.is_unsuccessful()) {
            return self.clean_up_failed();
        }
        self.next_wave()
    }

    /// Waits for what runs: hooks always, and resources where something comes after them.
    fn await_running(&mut self, awaited: &[usize]) -> Option<Turn> {
        let (first, last) = (self.tasks.first()?, self.tasks.last()?);
        let several = !same(first, last);
        let running = self.among(awaited, |task| task.is_running() && (several || task.is_hook()));
        if running.is_empty() {
            return None;
        }
        let is_unseen = |task: &Task| self.is_outdated(task) && !self.looked.contains(&task.key);
        let unseen = self.among(&running, is_unseen);
        if !unseen.is_empty() {
            return Some(self.act(unseen, Effect::Judge, look_of, Stage::Step));
        }
        Some(self.wait(self.waiting(&running, false), Vec::new()))
    }

    /// The tasks of which it matters what they come to.
    ///
    /// A sync ends when its last wave is applied, whatever becomes of the resources in it; one that was stopped right then
    /// must not be of another mind when it is taken up again.
    fn awaited(&self) -> Vec<usize> {
        let over = self.last_when_over();
        self.which(|task| task.is_hook() || !over.is_some_and(|last| same(task, last)))
    }

    /// A task of the last wave, where all of it was applied and it holds no hook.
    fn last_when_over(&self) -> Option<&Task> {
        let mut part = self
            .tasks
            .iter()
            .filter(|task| !(is_sync_fail(task) || task.is_pending() && self.is_left_alone(task)));
        let last = part.clone().next_back()?;
        let unfinished = part
            .any(|task| task.is_pending() || task.is_unsuccessful() || (task.is_hook() && same(task, last)));
        (!unfinished).then_some(last)
    }

    fn next_wave(&mut self) -> Turn {
        let pending =
            self.which(|task| task.is_pending() && !is_sync_fail(task) && !self.is_left_alone(task));
        let Some((&first, &last)) = pending.first().zip(pending.last()) else {
            return self.succeed(message::NO_MORE);
        };
        let tasks: Vec<usize> =
            pending.iter().copied().filter(|index| same(&self.tasks[*index], &self.tasks[first])).collect();
        let is_last = same(&self.tasks[first], &self.tasks[last]);
        Turn::Go(Stage::Wave(Run {
            tasks,
            purpose: Purpose::Sync { is_last },
            part: Part::Release,
            rounds: 0,
        }))
    }

    /// Ends well, once hooks that are not to outlive success are deleted.
    pub(super) fn succeed(&mut self, text: &str) -> Turn {
        self.delete_hooks(DeletePolicy::HookSucceeded, OperationPhase::Succeeded, text.to_owned())
    }

    /// Deletes hooks of a policy, whichever phase they belong to, then ends.
    pub(super) fn delete_hooks(&mut self, policy: DeletePolicy, phase: OperationPhase, text: String) -> Turn {
        let end = Stage::End(super::Next::Done { phase, message: text });
        self.act_on_hooks(policy, end)
    }

    /// Deletes hooks of a policy, then goes on.
    pub(super) fn act_on_hooks(&mut self, policy: DeletePolicy, next: Stage) -> Turn {
        let over = self.which(|task| {
            task.live.is_some() && !task.is_running() && !task.is_terminating() && task.has_policy(policy)
        });
        let over = self.each_object_once(over);
        let held: Vec<usize> =
            over.iter().copied().filter(|index| self.is_to_release(&self.tasks[*index])).collect();
        let delete = |task: &Task| Verb::Delete(self.delete_of(task, false));
        let groups =
            vec![self.group(held, Effect::Release, release_of), self.group(over, Effect::DeleteHook, delete)];
        Turn::Act(groups, next)
    }

    /// The first task of each object: a hook of two phases is one.
    fn each_object_once(&self, mut tasks: Vec<usize>) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        tasks.retain(|index| seen.insert(&self.tasks[*index].key));
        tasks
    }

    /// Whether a hook is held by its finalizer and nobody tried to take that off yet.
    pub(super) fn is_to_release(&self, task: &Task) -> bool {
        task.is_hook()
            && task.live.as_deref().is_some_and(hooks::is_held)
            && !self.released.contains(&task.key)
    }

    /// Those of some tasks that fulfil a condition.
    fn among(&self, tasks: &[usize], condition: impl Fn(&Task) -> bool) -> Vec<usize> {
        tasks.iter().copied().filter(|index| condition(&self.tasks[*index])).collect()
    }

    pub(super) fn waiting(&self, tasks: &[usize], for_deletion: bool) -> String {
        let tasks: Vec<&Task> = tasks.iter().map(|index| &self.tasks[*index]).collect();
        message::waiting(&tasks, for_deletion)
    }
}

/// Whether two tasks are of one wave.
fn same(a: &Task, b: &Task) -> bool {
    a.phase == b.phase && a.wave == b.wave
}

/// Whether a task runs only after a failure.
pub(super) fn is_sync_fail(task: &Task) -> bool {
    task.phase == SyncPhase::SyncFail
}

pub(super) fn release_of(task: &Task) -> Verb {
    Verb::ReleaseHook { key: task.key.clone(), api_version: api_version(task) }
}

pub(super) fn look_of(task: &Task) -> Verb {
    Verb::Look { key: task.key.clone(), api_version: api_version(task) }
}

fn api_version(task: &Task) -> String {
    use baton_api::object::Object;
    task.object().api_version().to_owned()
}
