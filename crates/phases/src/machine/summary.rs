//! What is stored and told at the end of a decision.

use baton_api::phase_status::HookState;
use baton_hooks::Role;

use super::*;
use crate::lists::Lists;
use crate::machine::calling::{role_of, title};

impl Work<'_> {
    pub(super) fn conclude(mut self) -> Decision {
        self.count();
        let waits = self.waits();
        self.tell(&waits);
        self.warn();
        let wake = self.wake();
        self.next.next_check_at = wake.map(crate::instant::stored);
        let limits = (0..self.next.phases.len())
            .map(|index| self.phase_plan(index).limit(self.own(index).len()))
            .collect();
        Decision {
            gates: self.gates(),
            limits,
            calls: self.calls_to_make(),
            invalid: None,
            cancel: self.calls_to_end(),
            terminate: self.terminations(),
            good: std::mem::take(&mut self.good),
            back: Vec::new(),
            list: self.list,
            answers: std::mem::take(&mut self.answers),
            notices: std::mem::take(&mut self.notices),
            waits,
            wake,
            status: Some(self.next),
        }
    }

    /// Operations to end: of a phase that was aborted, as long as there are any.
    fn terminations(&self) -> Vec<Arc<str>> {
        let mut names = self.terminate.clone();
        for (index, phase) in self.next.phases.iter().enumerate() {
            if phase.state == PhaseState::Aborted && !goes_on(phase) {
                names.extend(self.own(index).into_iter().filter(|name| {
                    self.seen(name).is_some_and(|seen| seen.touched && seen.progress == Progress::UnderWay)
                }));
            }
        }
        names.into_iter().collect()
    }

    /// Brings the counts of every phase up to date.
    fn count(&mut self) {
        for phase in &mut self.next.phases {
            // Counts stay where the entries they are of are kept elsewhere.
            if phase.applications.is_empty() {
                continue;
            }
            let those = |which: fn(&PhaseApplicationState) -> bool| {
                count(phase.applications.iter().filter(|entry| which(&entry.state)).count())
            };
            let updated = those(is_begun);
            let healthy = those(is_well);
            let failed = those(|state| *state == PhaseApplicationState::Failed);
            (phase.updated, phase.healthy, phase.failed) = (updated, healthy, failed);
        }
    }

    /// What the open phase waits for, the first first.
    fn waits(&self) -> Vec<Wait> {
        let index = self.current();
        let Some(phase) = self.next.phases.get(index) else { return Vec::new() };
        let mut waits = Vec::new();
        if self.is_unmatched() {
            waits.push(Wait { config: true, ..Wait::of_phase(NOTHING_MATCHES) });
        }
        let mut wait = |object: &str, message: String, until: Option<Timestamp>| {
            waits.push(Wait { object: object.to_owned(), message, until, config: false });
        };
        let name = &phase.name;
        if self.at.hold == Hold::Paused {
            wait("", "the rollout is paused: `baton appset resume`".to_owned(), None);
        }
        if let Some(failure) = phase.failure.as_ref().filter(|_| is_frozen(phase)) {
            wait(
                "",
                format!("phase {name:?} has failed: {}; it needs {}", failure.message, failure.remedy),
                None,
            );
        }
        if let Some(role) = role_of(&phase.state) {
            self.waiting_calls(phase, role, &mut wait);
        }
        let turn = self.turn_back();
        for name in turn.iter().rev() {
            wait(name, format!("{name} is being put back{}", self.why_not_back(name)), None);
        }
        for entry in &phase.applications {
            let message = match entry.state {
                PhaseApplicationState::Updating if is_under_way(&phase.state) => match self.seen(&entry.name)
                {
                    Some(Seen { progress: Progress::Regressed(why), .. }) => {
                        format!("{} was healthy and is no longer: {why}", entry.name)
                    }
                    Some(Seen { progress: Progress::Stuck(why), .. }) => {
                        format!("{} cannot be synced as it is: {why}", entry.name)
                    }
                    _ => format!("{} is being updated", entry.name),
                },
                PhaseApplicationState::AwaitingApproval => match self.seen(&entry.name) {
                    Some(Seen { progress: Progress::AwaitingApproval(what), .. }) => {
                        format!("{} needs approval: {what}", entry.name)
                    }
                    _ => format!("{} needs approval", entry.name),
                },
                PhaseApplicationState::Held if is_under_way(&phase.state) => {
                    format!("{} has not started", entry.name)
                }
                PhaseApplicationState::RollingBack if !turn.contains(entry.name.as_str()) => {
                    format!("{} is put back when its turn comes", entry.name)
                }
                PhaseApplicationState::RollbackFailed => {
                    format!("{} was not put back in time{}", entry.name, self.why_not_back(&entry.name))
                }
                _ => continue,
            };
            wait(&entry.name, message, None);
        }
        if let Some(until) = phase.wait_until.as_ref().filter(|until| until.0 > self.at.now) {
            let message =
                format!("phase {name:?} waits until {}; `baton appset advance` ends it now", until.0);
            wait("", message, Some(until.0));
        }
        if let Some((app, why)) = self.unproved() {
            wait(&app, format!("{app} of an earlier phase {why}"), None);
        }
        if self.list {
            wait(
                "",
                "a consistent list of the Applications is needed before the next phase opens".to_owned(),
                None,
            );
        }
        waits
    }

    /// What keeps an Application from being back, as far as that is known.
    fn why_not_back(&self, name: &str) -> String {
        match self.seen(name).map(|seen| &seen.progress) {
            Some(Progress::Regressed(why) | Progress::Stuck(why)) => format!(": {why}"),
            Some(Progress::Failed { message, .. }) => format!(": {message}"),
            Some(Progress::AwaitingApproval(what)) => format!(": it needs approval: {what}"),
            _ => String::new(),
        }
    }

    fn waiting_calls(
        &self,
        phase: &PhaseStatus,
        role: Role,
        wait: &mut impl FnMut(&str, String, Option<Timestamp>),
    ) {
        for result in phase.results(role) {
            let title = title(role, &result.name, &result.target);
            match result.state {
                HookState::Running if result.through.is_empty() => {
                    wait(&result.name, format!("{title} is running"), None);
                }
                HookState::Retrying => {
                    let until = result.next_attempt_at.as_ref().map(|at| at.0);
                    let message = format!("{title} is tried again, after it said: {}", result.message);
                    wait(&result.name, message, until);
                }
                _ => {}
            }
        }
    }

    /// The state of the whole, and the first thing that is waited for.
    fn tell(&mut self, waits: &[Wait]) {
        let index = self.current();
        let Some(phase) = self.next.phases.get(index) else {
            let failed: Vec<&str> = self
                .next
                .phases
                .iter()
                .filter(|phase| phase.failure.is_some())
                .map(|phase| phase.name.as_str())
                .collect();
            self.next.message = match failed.is_empty() {
                true => "every phase is complete".to_owned(),
                false => format!("every phase has ended; these have failed: {}", failed.join(", ")),
            };
            self.next.phases.iter_mut().for_each(|phase| phase.message.clear());
            return;
        };
        let first = waits.first().map(|wait| wait.message.clone()).unwrap_or_default();
        let state = match &phase.state {
            _ if self.next.state == PhaseState::Failed && self.roster.is_idle() && !self.last => return,
            _ if self.at.hold == Hold::Paused => PhaseState::Paused,
            // The phase was put back, and with that the rollout has failed.
            PhaseState::RolledBack => PhaseState::Failed,
            state => state.clone(),
        };
        let place = index + 1;
        let own = format!("phase {:?} ", phase.name);
        let said = match first.strip_prefix(&own) {
            Some(rest) => format!(" {rest}"),
            None => format!(": {first}"),
        };
        let message = format!("{own}({place} of {}){said}", self.next.phases.len());
        self.phase(index).message.clone_from(&first);
        (self.next.state, self.next.message) = (state, message);
        for (other, phase) in self.next.phases.iter_mut().enumerate() {
            if other != index {
                phase.message = String::new();
            }
        }
    }

    /// What people should know of how targets and phases fit.
    fn warn(&mut self) {
        if self.last {
            let message = self.release_sentence();
            self.notices.push(Notice::warning("PhasesRemoved", message));
            return;
        }
        let unassigned = &self.roster.unassigned;
        if let Some(first) = unassigned.first() {
            let message = match unassigned.len() {
                1 => format!("{first} is in no phase and is left as it is"),
                count => format!(
                    "{count} Applications are in no phase and are left as they are, {first} among them"
                ),
            };
            self.notices.push(Notice::warning("Unassigned", message));
        }
        let doubts = self.plan.phases.iter().zip(&self.roster.phases);
        let doubts = doubts.filter_map(|(phase, group)| group.doubt(phase));
        self.notices.extend(doubts.map(|doubt| Notice::warning("EmptyPhase", doubt)));
    }

    /// When something changes by itself.
    fn wake(&self) -> Option<Timestamp> {
        let index = self.current();
        let phase = self.next.phases.get(index)?;
        if self.at.hold != Hold::None {
            return None;
        }
        let mut times: Vec<Timestamp> = phase.wait_until.iter().map(|until| until.0).collect();
        if let Some(role) = role_of(&phase.state) {
            let retries = phase.results(role).iter().filter(|result| result.state == HookState::Retrying);
            times.extend(retries.filter_map(|result| Some(result.next_attempt_at.as_ref()?.0)));
        }
        if is_under_way(&phase.state) {
            let plan = self.phase_plan(index);
            times.extend(phase.applications.iter().filter_map(|entry| self.late_at(entry, plan)));
        }
        times.extend(self.backs_late_at());
        times.into_iter().filter(|time| *time > self.at.now).min()
    }
}
