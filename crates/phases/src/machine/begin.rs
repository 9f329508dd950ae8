//! How a rollout begins, how a phase does, and who joins them later.

use super::*;
use crate::config::CallPlan;
use crate::lists::{Lists, ROLES};
use crate::sheet::Sheet;
use baton_api::phase_status::HookState;

/// So many of those in no phase are named.
const NAMED: usize = 20;

impl Work<'_> {
    /// Makes the status fit the plan: a new rollout begins at the first phase.
    pub(super) fn prepare(&mut self) {
        if self.stored.is_none() {
            let granted = match self.at.stored {
                Some(before) => before.granted.clone(),
                // What was asked for before anything was known is not of this life.
                None => self
                    .at
                    .requests
                    .texts()
                    .map(|(ask, text)| (ask.as_str().to_owned(), text.clone()))
                    .collect(),
            };
            let pending = |phase: &PhasePlan| PhaseStatus {
                name: phase.name.to_string(),
                state: PhaseState::Pending,
                ..PhaseStatus::default()
            };
            self.next = GeneratorPhases {
                generator: count(self.at.generator),
                rollout_id: self.at.rollout.to_owned(),
                started_at: moment(self.at.now),
                phases: self.plan.phases.iter().map(pending).collect(),
                granted,
                ..GeneratorPhases::default()
            };
        }
        if !self.last {
            self.next.granted.remove(released::REMOVED);
        }
        self.next.generator_type = self.at.kind.to_owned();
        self.next.amended = match crate::identity::run_of(self.at.rollout) {
            // What comes while a phase is finished whose field is gone is of that phase.
            Some(run) if self.last && self.next.rollout_id != self.at.rollout => run.to_string(),
            _ => self.at.amended.to_owned(),
        };
        self.next.total_phases = count(self.plan.phases.len());
        if !self.last {
            let unassigned = &self.roster.unassigned;
            self.next.unassigned_count = count(unassigned.len());
            self.next.unassigned = unassigned.iter().take(NAMED).map(|name| name.to_string()).collect();
        }
        for (phase, group) in self.next.phases.iter_mut().zip(&self.roster.phases) {
            if !self.last {
                (phase.matched, phase.selected) = (count(group.matched), count(group.own.len()));
            }
        }
        for index in 0..self.next.phases.len() {
            let state = &self.next.phases[index].state;
            if *state == PhaseState::PreHooks || is_under_way(state) {
                self.enrol(index);
            }
        }
    }

    /// Opens a phase, or passes it over where it matches nobody.
    pub(super) fn enter(&mut self, index: usize) {
        let now = self.at.now;
        let is_empty = self.roster.phases.get(index).is_none_or(|group| group.matched == 0);
        let phase = self.phase(index);
        phase.started_at = moment(now);
        if is_empty {
            (phase.state, phase.finished_at) = (PhaseState::Skipped, moment(now));
            return;
        }
        phase.state = PhaseState::PreHooks;
        self.enrol(index);
    }

    /// Notes who belongs to a phase, and has who joined go through what the others have.
    pub(super) fn enrol(&mut self, index: usize) {
        let own = self.own(index);
        let now = self.at.now;
        let known: BTreeSet<&str> =
            self.next.phases[index].applications.iter().map(|entry| entry.name.as_str()).collect();
        let joined: BTreeSet<Arc<str>> =
            own.iter().filter(|name| !known.contains(&***name)).cloned().collect();
        let entries = joined.iter().map(|name| PhaseApplication {
            name: name.to_string(),
            state: PhaseApplicationState::Held,
            since: moment(now),
            pin: self.seen(name).map(|seen| seen.pin.to_string()).unwrap_or_default(),
        });
        let entries: Vec<PhaseApplication> = entries.collect();
        let plan = self.phase_plan(index);
        let phase = self.phase(index);
        phase.applications.retain(|entry| own.binary_search_by(|name| (**name).cmp(&entry.name)).is_ok());
        phase.applications.extend(entries);
        phase.applications.sort_by(|a, b| a.name.cmp(&b.name));
        for role in ROLES {
            let calls = plan.calls(role);
            let mut sheet = Sheet::read(phase.results(role), calls);
            sheet.follow(role, calls, &own, &joined);
            sheet.sum_up(calls, &own);
            *phase.results_mut(role) = sheet.into_results();
        }
        // A phase that had got further goes through its stages again; what has passed for the others is passed over.
        let back_to = match plan.pre_hooks.iter().any(|hook| hook.per_target) {
            true => PhaseState::PreHooks,
            false => PhaseState::Deploying,
        };
        if !joined.is_empty() && is_under_way(&phase.state) {
            phase.state = back_to;
            phase.wait_until = None;
        }
    }

    /// Goes back to a phase that had ended and that somebody joined since. Where the rollout has failed, it stays so; and
    /// what is put back begins a run, in which those of phases that are complete have not started.
    pub(super) fn rejoin(&mut self) {
        let current = self.current();
        let stays = |phase: &PhaseStatus| is_frozen(phase) || phase.state == PhaseState::RollingBack;
        if self.last || self.next.phases.get(current).is_some_and(stays) {
            return;
        }
        let joined =
            (0..current.min(self.next.phases.len())).find(|&index| match self.next.phases[index].state {
                PhaseState::Skipped => self.roster.phases[index].matched > 0,
                PhaseState::Complete => self.own(index).iter().any(|name| self.has_joined(index, name)),
                _ => false,
            });
        let Some(index) = joined else { return };
        self.set_current(index);
        (self.next.finished_at, self.next.state) = (None, PhaseState::Pending);
        if self.next.phases[index].state == PhaseState::Skipped {
            self.phase(index).state = PhaseState::Pending;
            self.phase(index).finished_at = None;
            return;
        }
        self.restore_results(index);
        self.restore_entries(index);
        let phase = self.phase(index);
        (phase.state, phase.finished_at, phase.wait_until) = (PhaseState::PreHooks, None, None);
        self.enrol(index);
    }

    /// Whether nothing was written for an Application in this rollout yet.
    pub(super) fn is_new(&self, name: &str) -> bool {
        let unwritten = |progress: &Progress| matches!(progress, Progress::NotStarted | Progress::Stuck(_));
        self.seen(name).is_none_or(|seen| unwritten(&seen.progress) && !seen.touched)
    }

    /// Whether an Application came to a phase that is complete: as a new one, or from another phase, in which it has begun.
    pub(super) fn has_joined(&self, index: usize, name: &str) -> bool {
        let phase = &self.next.phases[index];
        let moved = || {
            let known = phase.applications.is_empty() || entry(phase, name).is_some();
            !known && self.seen(name).is_some_and(|seen| seen.touched)
        };
        self.is_new(name) || moved()
    }

    /// All calls of a phase that is complete have passed, also those whose results are kept elsewhere.
    fn restore_results(&mut self, index: usize) {
        let (plan, own) = (self.phase_plan(index), self.own(index));
        let joined = own.iter().filter(|name| self.has_joined(index, name));
        let joined: BTreeSet<Arc<str>> = joined.cloned().collect();
        let phase = self.phase(index);
        for role in ROLES {
            let calls: &[CallPlan] = plan.calls(role);
            let mut sheet = Sheet::read(phase.results(role), calls);
            for (place, call) in calls.iter().enumerate() {
                let all = own.iter().filter(|name| call.per_target && !joined.contains(*name)).cloned();
                let once = (!call.per_target).then(|| Arc::from(""));
                for target in all.chain(once) {
                    let result = sheet.entry(call, place, &target);
                    if result.state == HookState::Pending {
                        result.state = HookState::Succeeded;
                    }
                }
            }
            *phase.results_mut(role) = sheet.into_results();
        }
    }

    /// The same for its Applications.
    fn restore_entries(&mut self, index: usize) {
        let own = self.own(index);
        let known = |name: &Arc<str>| entry(&self.next.phases[index], name).is_some();
        let missing = own.into_iter().filter(|name| !known(name) && !self.has_joined(index, name));
        let missing: Vec<Arc<str>> = missing.collect();
        let entries: Vec<PhaseApplication> = missing
            .iter()
            .map(|name| PhaseApplication {
                name: name.to_string(),
                state: PhaseApplicationState::Healthy,
                since: moment(self.at.now),
                pin: self.seen(name).map(|seen| seen.pin.to_string()).unwrap_or_default(),
            })
            .collect();
        let phase = self.phase(index);
        phase.applications.extend(entries);
        phase.applications.sort_by(|a, b| a.name.cmp(&b.name));
    }
}
