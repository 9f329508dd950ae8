//! One wave: prunes first, then old hooks out of the way, then objects kind by kind.

use baton_api::application_status::{OperationPhase, ResultCode};
use baton_api::object::ResourceKey;

use super::effect::Effect;
use super::step::{look_of, release_of};
use super::{Engine, Next, Stage, Turn, message};
use crate::action::Verb;
use crate::approval::waiting_message;
use crate::task::Task;

/// How often a wave is gone through anew because the world changed under it.
const ROUNDS: u8 = 5;

/// A wave that is being carried out.
#[derive(Debug)]
pub(super) struct Run {
    /// Positions of its tasks, in order.
    pub(super) tasks: Vec<usize>,
    pub(super) purpose: Purpose,
    pub(super) part: Part,
    pub(super) rounds: u8,
}

/// What a wave is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is the next of the sync.
    Sync {
        /// Whether none comes after it.
        is_last: bool,
    },
    /// The sync has failed.
    Failure,
}

/// How far a wave is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Hooks of earlier operations are let go of.
    Release,
    /// What is no longer in the source is deleted.
    Prune,
    /// Deletions were asked for.
    Pruned,
    /// Old hooks are deleted where new ones come.
    ClearTheWay,
    /// Old hooks were asked to go.
    Cleared,
    /// Objects are applied.
    Applied,
}

impl Engine<'_> {
    pub(super) fn run(&mut self, run: Run) -> Turn {
        match run.part {
            Part::Release => self.release_old_hooks(run),
            Part::Prune => self.prune(run),
            Part::Pruned => self.after_prune(run),
            Part::ClearTheWay => self.clear_the_way(run),
            Part::Cleared => self.after_clearing(run),
            Part::Applied => self.after_apply(run),
        }
    }

    /// A hook left over from an earlier operation may still be held; nothing could delete it.
    fn release_old_hooks(&mut self, run: Run) -> Turn {
        let held = self.of_wave(&run, |engine, index| {
            engine.tasks[index].is_pending() && engine.is_to_release(&engine.tasks[index])
        });
        self.act(held, Effect::Release, release_of, Stage::Wave(run.at(Part::Prune)))
    }

    fn prune(&mut self, run: Run) -> Turn {
        if self.has_failed(&run) {
            return self.wave_failed(&run);
        }
        let prunes = self.of_wave(&run, |engine, index| {
            engine.tasks[index].is_prune() && engine.tasks[index].is_pending()
        });
        for &index in &prunes {
            if let Some(why) = self.prune_refusal(&self.tasks[index]) {
                self.set(index, ResultCode::PruneSkipped, OperationPhase::Succeeded, why);
            } else if self.tasks[index].is_terminating() {
                self.set(index, ResultCode::Pruned, OperationPhase::Succeeded, "pruned");
            }
        }
        let deletes: Vec<usize> =
            prunes.into_iter().filter(|index| self.tasks[*index].is_pending()).collect();
        let turns = run.tasks.iter().any(|index| self.turns_guarded(&self.tasks[*index]));
        if deletes.is_empty() && !turns {
            return Turn::Go(Stage::Wave(run.at(Part::ClearTheWay)));
        }
        let missing = self.unapproved(&run.tasks);
        if !missing.is_empty() {
            return self.wait_for_approval(missing);
        }
        let verb = |task: &Task| Verb::Delete(self.delete_of(task, true));
        self.act(deletes, Effect::Prune, verb, Stage::Wave(run.at(Part::Pruned)))
    }

    fn after_prune(&mut self, run: Run) -> Turn {
        if self.has_failed(&run) {
            return self.wave_failed(&run);
        }
        let changed = self.of_wave(&run, |engine, index| {
            engine.tasks[index].is_prune() && engine.tasks[index].is_pending()
        });
        if changed.is_empty() {
            return Turn::Go(Stage::Wave(run.at(Part::ClearTheWay)));
        }
        match run.again(Part::Prune) {
            Ok(run) => self.act(changed, Effect::LookAgain, look_of, Stage::Wave(run)),
            Err(_) => self.wait(self.waiting(&changed, true), Vec::new()),
        }
    }

    fn clear_the_way(&mut self, run: Run) -> Turn {
        let old = self.of_wave(&run, |engine, index| {
            engine.tasks[index].is_in_the_way() && !engine.tasks[index].is_terminating()
        });
        let verb = |task: &Task| Verb::Delete(self.delete_of(task, false));
        self.act(old, Effect::ClearTheWay, verb, Stage::Wave(run.at(Part::Cleared)))
    }

    fn after_clearing(&mut self, run: Run) -> Turn {
        if self.has_failed(&run) {
            return self.wave_failed(&run);
        }
        let left = self.of_wave(&run, |engine, index| engine.tasks[index].is_in_the_way());
        if !left.is_empty() {
            return self.wait(self.waiting(&left, true), Vec::new());
        }
        let creates = self.of_wave(&run, |engine, index| {
            !engine.tasks[index].is_prune() && engine.tasks[index].is_pending()
        });
        let shut = self.is_shut();
        let verb = |task: &Task| Verb::Apply(self.apply_of(task, false, shut));
        Turn::Act(self.by_kind(&creates, Effect::Apply, verb), Stage::Wave(run.at(Part::Applied)))
    }

    fn after_apply(&mut self, run: Run) -> Turn {
        self.adopt();
        let left = self.of_wave(&run, |engine, index| {
            !engine.tasks[index].is_prune() && engine.tasks[index].is_pending()
        });
        if self.has_failed(&run) {
            return self.wave_failed(&run);
        }
        let denied: Vec<usize> =
            left.iter().copied().filter(|index| self.denied.contains(&self.tasks[*index].key)).collect();
        if !denied.is_empty() {
            return self.wait_for_recreation(&denied);
        }
        if left.is_empty() {
            return self.wave_done(&run);
        }
        match run.again(Part::Release) {
            Ok(run) => self.act(left, Effect::LookAgain, look_of, Stage::Wave(run)),
            Err(_) => self.wait(message::BUSY.to_owned(), Vec::new()),
        }
    }

    /// An object could only be changed by deleting it, and that, or something else of the operation, is not approved.
    fn wait_for_recreation(&mut self, denied: &[usize]) -> Turn {
        let own = denied.iter().filter(|index| self.is_protected(&self.tasks[**index]));
        let mut missing: Vec<ResourceKey> = own.map(|index| self.tasks[*index].key.clone()).collect();
        for key in self.unapproved(&[]) {
            if !missing.contains(&key) {
                missing.push(key);
            }
        }
        if missing.is_empty() {
            return self.wait(message::BUSY.to_owned(), Vec::new());
        }
        self.wait_for_approval(missing)
    }

    fn wait_for_approval(&mut self, missing: Vec<ResourceKey>) -> Turn {
        self.wait(waiting_message(&missing), missing)
    }

    fn wave_done(&mut self, run: &Run) -> Turn {
        let Purpose::Sync { is_last } = run.purpose else { return Turn::Go(Stage::Step) };
        if is_last && !run.tasks.iter().any(|index| self.tasks[*index].is_hook()) {
            return self.succeed(message::ALL_RUN);
        }
        let delay = self.world.settings.wave_delay;
        if is_last || delay.is_zero() {
            return Turn::Go(Stage::Step);
        }
        Turn::Answer(Next::Pause(delay), Stage::Step)
    }

    fn has_failed(&self, run: &Run) -> bool {
        run.tasks.iter().any(|index| self.tasks[*index].is_unsuccessful())
    }

    fn of_wave(&self, run: &Run, condition: impl Fn(&Self, usize) -> bool) -> Vec<usize> {
        run.tasks.iter().copied().filter(|index| condition(self, *index)).collect()
    }
}

// === impl Run ===

impl Run {
    fn at(self, part: Part) -> Run {
        Run { part, ..self }
    }

    /// The same wave once more, unless that was tried often enough.
    fn again(self, part: Part) -> Result<Run, Run> {
        match self.rounds < ROUNDS {
            true => Ok(Run { part, rounds: self.rounds + 1, ..self }),
            false => Err(self),
        }
    }
}
