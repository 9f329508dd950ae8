//! Putting Applications back to what was good.

use baton_rules::{Rule, holds};

use super::failing::NAMED;
use super::*;
use crate::instant::after;

/// Applications and the pins they go back to, and those that have none to go back to.
type Shares = (Vec<(Arc<str>, Arc<str>)>, Vec<Arc<str>>);

/// Who is put back, as a status says, and to what.
pub(super) fn stored(status: Option<&GeneratorPhases>) -> Vec<(Arc<str>, Arc<str>)> {
    let entries = status.into_iter().flat_map(|status| &status.phases).flat_map(|phase| &phase.applications);
    let back = entries.filter(|entry| is_back(&entry.state));
    back.map(|entry| (entry.name.as_str().into(), entry.pin.as_str().into())).collect()
}

impl Work<'_> {
    /// What a phase has changed: with what it goes back to, and without.
    pub(super) fn to_put_back(&self, index: usize) -> Shares {
        let (mut back, mut stays) = (Vec::new(), Vec::new());
        for name in self.own(index) {
            let state = entry(&self.next.phases[index], &name).map(|entry| &entry.state);
            let changed =
                |state: &PhaseApplicationState| is_begun(state) && *state != PhaseApplicationState::Unchanged;
            let seen = self.seen(&name);
            if !seen.is_some_and(|seen| seen.touched) && !state.is_some_and(changed) {
                continue;
            }
            match seen.and_then(|seen| seen.good.clone()) {
                Some(pin) => back.push((name, pin)),
                None => stays.push(name),
            }
        }
        (back, stays)
    }

    /// Writes down what is to be put back. Nothing is, before this is stored.
    pub(super) fn begin_back(&mut self, index: usize, back: Vec<(Arc<str>, Arc<str>)>) {
        let now = self.at.now;
        let phase = self.phase(index);
        for (name, pin) in &back {
            let place = phase.applications.binary_search_by(|entry| entry.name.as_str().cmp(name));
            let place = place.unwrap_or_else(|place| {
                phase
                    .applications
                    .insert(place, PhaseApplication { name: name.to_string(), ..Default::default() });
                place
            });
            let entry = &mut phase.applications[place];
            (entry.state, entry.since) = (PhaseApplicationState::RollingBack, moment(now));
            entry.pin = pin.to_string();
        }
        phase.state = PhaseState::RollingBack;
    }

    /// Follows what is put back, in all phases.
    pub(super) fn follow_back(&mut self) {
        use PhaseApplicationState as S;
        let now = self.at.now;
        let turn = self.turn_back();
        let known: BTreeSet<&str> = self.at.targets.iter().map(|target| &*target.name).collect();
        let awaited = |entry: &PhaseApplication| matches!(entry.state, S::RollingBack | S::RollbackFailed);
        let paused = self.at.hold == Hold::Paused;
        let plans = self.plan.phases.iter();
        let phases = self.next.phases.iter_mut().zip(plans);
        for (phase, plan) in phases.filter(|(phase, _)| phase.applications.iter().any(awaited)) {
            let mut failure = phase.failure.take().unwrap_or_default();
            // Who has left the set meanwhile is not waited for.
            phase.applications.retain(|entry| known.contains(entry.name.as_str()));
            for entry in phase.applications.iter_mut().filter(|entry| awaited(entry)) {
                let seen = self.at.seen.get(entry.name.as_str()).filter(|seen| *seen.pin == *entry.pin);
                let (state, names) = match seen.map(|seen| &seen.progress) {
                    Some(Progress::Done) => (S::RolledBack, &mut failure.rolled_back),
                    _ if !holds(Rule::BackIsProved) => (S::RolledBack, &mut failure.rolled_back),
                    // It is kept where it goes back to, and gives way to others.
                    Some(Progress::Failed { .. }) if entry.state == S::RollingBack => {
                        (S::RollbackFailed, &mut failure.not_rolled_back)
                    }
                    // So does what takes too long, whatever keeps it; people may take their time.
                    Some(Progress::AwaitingApproval(_)) => continue,
                    _ if !paused
                        && turn.contains(entry.name.as_str())
                        && back_by(entry, plan).is_some_and(|late| late <= now) =>
                    {
                        (S::RollbackFailed, &mut failure.not_rolled_back)
                    }
                    _ => continue,
                };
                (entry.state, entry.since) = (state, moment(now));
                if names.len() < NAMED {
                    names.push(entry.name.clone());
                }
                let rolled_back = &failure.rolled_back;
                failure.not_rolled_back.retain(|name| !rolled_back.contains(name));
            }
            if !phase.applications.iter().any(|entry| entry.state == S::RollingBack) {
                let whole = failure.not_rolled_back.is_empty();
                phase.state = if whole { PhaseState::RolledBack } else { PhaseState::Failed };
                phase.finished_at = phase.finished_at.take().or_else(|| moment(now));
            }
            phase.failure = Some(failure);
        }
        self.begin_turns(&turn);
    }

    /// The time of those whose turn has come begins now.
    fn begin_turns(&mut self, before: &BTreeSet<Arc<str>>) {
        let (now, turn) = (self.at.now, self.turn_back());
        let entries = self.next.phases.iter_mut().flat_map(|phase| &mut phase.applications);
        let rolling = entries.filter(|entry| entry.state == PhaseApplicationState::RollingBack);
        for entry in rolling {
            let name = entry.name.as_str();
            if turn.contains(name) && !before.contains(name) {
                entry.since = moment(now);
            }
        }
    }

    /// When the next of those whose turn it is has taken too long.
    pub(super) fn backs_late_at(&self) -> impl Iterator<Item = Timestamp> + '_ {
        let turn = self.turn_back();
        let phases = self.next.phases.iter().zip(&self.plan.phases);
        phases.flat_map(move |(phase, plan)| {
            let entries = phase.applications.iter();
            let theirs = entries.filter(|entry| turn.contains(entry.name.as_str()));
            theirs.filter_map(|entry| back_by(entry, plan)).collect::<Vec<_>>()
        })
    }

    /// Those whose turn it is to be put back: of the last phase that has such, the last by name, as many as may be under
    /// way at once.
    pub(super) fn turn_back(&self) -> BTreeSet<Arc<str>> {
        let rolling = |entry: &&PhaseApplication| entry.state == PhaseApplicationState::RollingBack;
        let phases = self.next.phases.iter().enumerate().rev();
        let with_some = phases.filter(|(_, phase)| phase.applications.iter().any(|entry| rolling(&entry)));
        let Some((index, phase)) = with_some.take(1).next() else { return BTreeSet::new() };
        let most = self.phase_plan(index).limit(self.own(index).len()).unwrap_or(usize::MAX);
        let last_first = phase.applications.iter().rev().filter(rolling);
        last_first.take(most).map(|entry| entry.name.as_str().into()).collect()
    }
}

/// By when an Application whose turn it is to go back is to be there. It has as long as it had to come.
fn back_by(entry: &PhaseApplication, plan: &PhasePlan) -> Option<Timestamp> {
    let since = entry.since.as_ref().filter(|_| entry.state == PhaseApplicationState::RollingBack)?;
    Some(after(since.0, plan.deadline))
}
