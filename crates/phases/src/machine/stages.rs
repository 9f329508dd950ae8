//! The stages of a phase: hooks, deployment, checks, hooks, wait, and on to the next.

use baton_hooks::Role;
use baton_rules::{Rule, holds};

use super::*;
use crate::instant::after;
use crate::machine::calling::Flow;

impl Work<'_> {
    /// Goes as far as it can.
    pub(super) fn run(&mut self) {
        // Every turn moves a phase at least one stage on, so this ends; the bound is there should that ever be wrong.
        for _ in 0..10 * (self.next.phases.len() + 1) {
            let index = self.current();
            let Some(phase) = self.next.phases.get(index) else {
                self.finish();
                return;
            };
            let state = phase.state.clone();
            if self.at.hold == Hold::Paused {
                if is_under_way(&state) {
                    self.observe(index);
                }
                self.follow_back();
                return;
            }
            let moved = match state {
                PhaseState::Pending => {
                    self.enter(index);
                    true
                }
                PhaseState::PreHooks => self.calls_lead_to(index, Role::PreHook, PhaseState::Deploying),
                PhaseState::Deploying => self.deploy(index),
                PhaseState::Checking => {
                    self.stays_well(index) && self.calls_lead_to(index, Role::Check, PhaseState::PostHooks)
                }
                PhaseState::PostHooks => {
                    self.stays_well(index) && self.calls_lead_to(index, Role::PostHook, PhaseState::Waiting)
                }
                PhaseState::Waiting => self.stays_well(index) && self.end_wait(index),
                PhaseState::Skipped | PhaseState::Complete => {
                    let moved = self.move_on(index);
                    // Somebody may have joined it while an earlier one was open.
                    self.rejoin();
                    moved
                }
                PhaseState::Failed | PhaseState::Aborted if goes_on(&self.next.phases[index]) => {
                    self.unproved().is_none() && self.may_open_next(index) && self.move_on(index)
                }
                PhaseState::RollingBack
                | PhaseState::RolledBack
                | PhaseState::Failed
                | PhaseState::Aborted => {
                    // Those that were under way come to their end all the same, and that is told.
                    self.observe(index);
                    self.follow_back();
                    false
                }
                // Another version wrote it. Whoever understands it goes on.
                PhaseState::Paused | PhaseState::Other(_) => false,
            };
            if !moved {
                return;
            }
        }
    }

    /// Runs the calls of a list, and goes to the next stage when all have passed.
    fn calls_lead_to(&mut self, index: usize, role: Role, stage: PhaseState) -> bool {
        match self.call(index, role) {
            Flow::Busy if role == Role::PreHook || holds(Rule::CallsAreWaitedFor) => false,
            Flow::Failed { reason, message, aborts } => {
                self.fail(index, reason, message, aborts);
                true
            }
            // Whoever was healthy when checks began may not be any more. That is waited for, as long as the phase lets it take.
            Flow::Passed if role != Role::PreHook && !self.is_all_well(index) => false,
            Flow::Passed | Flow::Busy => {
                if stage == PhaseState::Waiting {
                    // Counted from the end of the hooks after the phase.
                    let wait = self.phase_plan(index).wait;
                    let until = wait.map(|wait| after(self.at.now, wait));
                    self.phase(index).wait_until = until.map(crate::instant::stored);
                }
                self.phase(index).state = stage;
                true
            }
        }
    }

    fn deploy(&mut self, index: usize) -> bool {
        if !self.stays_well(index) || !self.is_all_well(index) {
            return false;
        }
        self.phase(index).state = PhaseState::Checking;
        true
    }

    /// Looks at the phase's Applications. Says no where one of them has failed, which is then acted on.
    fn stays_well(&mut self, index: usize) -> bool {
        let Some((reason, message)) = self.observe(index) else { return true };
        self.fail(index, &reason, message, false);
        false
    }

    pub(super) fn is_all_well(&self, index: usize) -> bool {
        self.next.phases[index].applications.iter().all(|entry| is_well(&entry.state))
    }

    /// Ends a phase when its wait is over and all is still well.
    fn end_wait(&mut self, index: usize) -> bool {
        let waits = self.next.phases[index].wait_until.as_ref().is_some_and(|until| until.0 > self.at.now);
        let ended = !waits && self.is_all_well(index) && self.unproved().is_none();
        if !ended || !self.may_open_next(index) {
            return false;
        }
        let (now, seen) = (self.at.now, self.at.seen);
        let phase = self.phase(index);
        (phase.state, phase.finished_at) = (PhaseState::Complete, moment(now));
        // What a person had counted as done has not proved anything.
        let skipped = |name: &str| seen.get(name).is_some_and(|seen| seen.skipped);
        let proved = phase.applications.iter().filter(|entry| !entry.pin.is_empty() && !skipped(&entry.name));
        let proved = proved.map(|entry| (entry.name.as_str().into(), entry.pin.as_str().into()));
        let proved: Vec<(Arc<str>, Arc<str>)> = proved.collect();
        self.good.extend(proved);
        self.move_on(index)
    }

    /// Whether all is known that the opening of the next phase rests on. That nobody joined or regressed is the absence of
    /// news, for which only a consistent list will do.
    fn may_open_next(&mut self, index: usize) -> bool {
        let known = self.at.consistent || self.last || index + 1 >= self.next.phases.len();
        self.list |= !known;
        known
    }

    /// An Application of a phase before the open one that is complete which is not well any more, or has not been proved
    /// well since the run began anew; and what it waits for, in words. Who has joined a later phase has its turn after.
    pub(super) fn unproved(&self) -> Option<(Arc<str>, String)> {
        let complete = self.next.phases.iter().zip(&self.roster.phases).take(self.current());
        let complete = complete.filter(|(phase, _)| phase.state == PhaseState::Complete);
        let mut names = complete.flat_map(|(_, group)| &group.own);
        names.find_map(|name| {
            let why = match &self.at.seen.get(name)?.progress {
                Progress::Done => return None,
                Progress::Regressed(why) => format!("was healthy and is no longer: {why}"),
                Progress::Failed { message, .. } => format!("was healthy and has failed since: {message}"),
                Progress::AwaitingApproval(what) => format!("needs approval: {what}"),
                Progress::Stuck(why) => format!("cannot be synced as it is: {why}"),
                Progress::NotStarted | Progress::UnderWay => {
                    "has not been proved healthy in this run yet".to_owned()
                }
            };
            Some((name.clone(), why))
        })
    }

    fn move_on(&mut self, index: usize) -> bool {
        self.set_current(index + 1);
        !self.last
    }

    fn finish(&mut self) {
        let failed = self.next.phases.iter().any(|phase| phase.failure.is_some());
        self.next.state = if failed { PhaseState::Failed } else { PhaseState::Complete };
        self.next.finished_at = self.next.finished_at.take().or_else(|| moment(self.at.now));
    }
}
