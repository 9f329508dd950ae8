//! Before anything is done: the destination's namespace is made, and the API is asked whether it would take all objects.

use baton_api::application_status::{OperationPhase, ResultCode};
use baton_api::object::Object;

use super::effect::Effect;
use super::{Engine, Stage, Turn, message};
use crate::action::Verb;
use crate::options::{self, Removal};
use crate::order::is_namespace;
use crate::task::Task;

impl Engine<'_> {
    /// Makes the destination's namespace where it is missing: without it hardly anything could be checked.
    pub(super) fn make_namespace(&mut self) -> Turn {
        let destination = self.world.application.spec.destination.namespace.clone();
        let missing = self.which(|task| {
            let target = task.target.as_deref();
            task.live.is_none() && target.is_some_and(|t| is_namespace(t) && t.name() == destination)
        });
        let Some(&index) = missing.first() else { return self.check(None) };
        if !self.tasks[index].is_pending() {
            return self.check(Some(index));
        }
        let dry_run = self.request.sync.dry_run;
        let verb = |task: &Task| Verb::Apply(self.apply_of(task, dry_run, false));
        self.act([index], Effect::Apply, verb, Stage::NamespaceMade { task: index })
    }

    pub(super) fn after_namespace(&mut self, index: usize) -> Turn {
        let task = &self.tasks[index];
        if task.status == ResultCode::SyncFailed {
            let text = message::with_reasons(message::NAMESPACE_FAILED, std::iter::once(task));
            return self.end(OperationPhase::Failed, text);
        }
        self.check(Some(index))
    }

    /// Asks of all objects but one. Those that are as wanted were found to be so by asking.
    fn check(&mut self, but: Option<usize>) -> Turn {
        let dry_run = self.request.sync.dry_run;
        if dry_run {
            self.note_prunes();
        }
        let asked = self.which(|task| {
            let unchanged = task.live.is_some() && !task.modified && !task.is_hook();
            task.is_pending()
                && !task.is_prune()
                && !task.skip_dry_run
                && (dry_run || !unchanged)
                && !self.is_left_alone(task)
        });
        let asked: Vec<usize> = asked.into_iter().filter(|index| Some(*index) != but).collect();
        let shut = self.is_shut();
        let verb = |task: &Task| Verb::Apply(self.apply_of(task, true, shut));
        Turn::Act(self.by_kind(&asked, Effect::Check, verb), Stage::Checked)
    }

    pub(super) fn after_check(&mut self) -> Turn {
        if self.tasks.iter().any(|task| task.status == ResultCode::SyncFailed) {
            return self.end(OperationPhase::Failed, message::CHECK_FAILED.to_owned());
        }
        if self.request.sync.dry_run {
            let all = self.tasks.iter().all(|task| !task.is_pending());
            let text = if all { message::NO_MORE } else { message::ALL_RUN };
            return self.end(OperationPhase::Succeeded, text.to_owned());
        }
        Turn::Go(Stage::Step)
    }

    /// What a dry run makes of objects that are no longer in the source.
    fn note_prunes(&mut self) {
        for index in self.which(|task| task.is_prune() && task.is_pending()) {
            match self.prune_refusal(&self.tasks[index]) {
                Some(why) => self.set(index, ResultCode::PruneSkipped, OperationPhase::Succeeded, why),
                None => self.set(index, ResultCode::Pruned, OperationPhase::Succeeded, "pruned (dry run)"),
            }
        }
    }

    /// Why an object that is no longer in the source is kept.
    pub(super) fn prune_refusal(&self, task: &Task) -> Option<&'static str> {
        if !self.request.sync.prune {
            Some("ignored (requires pruning)")
        } else if options::prune(task.object(), &self.defaults()) == Removal::Kept {
            Some("ignored (no prune)")
        } else {
            None
        }
    }

    /// Whether an object is as wanted and only what is not is to be applied.
    ///
    /// What this operation made so, without coming to note it, is applied again: only then is its health waited for.
    pub(super) fn is_left_alone(&self, task: &Task) -> bool {
        self.request.has("ApplyOutOfSyncOnly=true")
            && !task.is_hook()
            && !task.modified
            && task.target.is_some()
            && task.live.as_deref().is_some_and(|live| !self.was_written(live))
    }
}
