//! Hooks and checks: which begin now, what came of those that ran, and which are to be made or ended.

use std::time::Duration;

use baton_api::phase_status::{HookResult, HookState};
use baton_hooks::{Outcome, Role, Verdict};

use super::*;
use crate::calls::{Call, CallKey, idempotency_key};
use crate::config::{CallFailure, CallPlan};
use crate::instant::{after, stored, until};
use crate::lists::{Lists, ROLES};
use crate::sheet::{Sheet, Standing};

/// So many calls of a list are begun and not at their end at most: those that wait for their next attempt take no place
/// among those that run, but one in the status.
const MOST_OPEN: usize = 200;
/// Least time for an attempt, however near its deadline is.
const LEAST: Duration = Duration::from_secs(10);
/// So much of a message is kept.
const MESSAGE: usize = 200;

/// How a list of calls fares.
pub(super) enum Flow {
    /// Not at its end.
    Busy,
    /// All passed.
    Passed,
    /// One failed.
    Failed {
        /// In one word.
        reason: &'static str,
        /// In words.
        message: String,
        /// Whether the phase is to be aborted for it.
        aborts: bool,
    },
}

impl Work<'_> {
    /// Notes what came of calls. What is of another rollout, or of an attempt that nobody waits for, is left aside.
    pub(super) fn take_results(&mut self) {
        let mut settled = BTreeSet::new();
        for result in self.at.results {
            let key = &result.key;
            if *key.rollout != *self.next.rollout_id || key.generator != self.at.generator {
                continue;
            }
            let plan = self.plan.phases.get(key.phase);
            let Some(call) = plan.and_then(|plan| plan.calls(key.role).get(key.place)) else { continue };
            let Some(phase) = self.next.phases.get_mut(key.phase) else { continue };
            let frozen = is_frozen(phase);
            let mut results = phase.results_mut(key.role).iter_mut();
            let entry = results.find(|entry| *entry.name == *call.name && *entry.target == *key.target);
            if let Some(entry) = entry.filter(|entry| is_running(entry, key.attempt)) {
                settle(entry, call, &result.outcome);
                if frozen && entry.state == HookState::Retrying {
                    (entry.state, entry.next_attempt_at) = (HookState::Cancelled, None);
                }
                settled.insert(key.phase);
            }
        }
        // Also of a phase that has failed meanwhile, which is gone through no more.
        for index in settled {
            self.change_calls(index, |_| {});
        }
    }

    /// Begins what may begin of a list, in order.
    pub(super) fn call(&mut self, index: usize, role: Role) -> Flow {
        let calls = self.phase_plan(index).calls(role);
        let own = self.own(index);
        // Hooks after the phase tell that all is well, so none begins while it is not.
        let may_begin = role != Role::PostHook || self.is_all_well(index);
        let mut sheet = Sheet::read(self.next.phases[index].results(role), calls);
        let mut flow = Flow::Passed;
        let mut place = 0;
        while place < calls.len() && matches!(flow, Flow::Passed) {
            let beside = calls[place..].iter().take_while(|call| call.parallel).count().max(1);
            let group = place..place + beside;
            place = group.end;
            if let Some((place, failed)) = sheet.first_failure() {
                flow = failure(&calls[place], role, failed);
                break;
            }
            if may_begin {
                self.begin(index, role, group.clone(), &mut sheet);
            }
            if group.into_iter().any(|place| sheet.standing(&calls[place], place, &own) == Standing::Open) {
                flow = Flow::Busy;
            }
        }
        if let (Flow::Passed, Some((place, failed))) = (&flow, sheet.first_failure()) {
            flow = failure(&calls[place], role, failed);
        }
        sheet.sum_up(calls, &own);
        *self.phase(index).results_mut(role) = sheet.into_results();
        flow
    }

    /// Writes down the intent to call, for as many as there is room for.
    fn begin(&self, index: usize, role: Role, group: std::ops::Range<usize>, sheet: &mut Sheet) {
        let (plan, own, now) = (self.phase_plan(index), self.own(index), self.at.now);
        let most = if role == Role::Check { self.plan.caps.checks } else { self.plan.caps.hooks };
        for place in group {
            let call = &plan.calls(role)[place];
            let due = |result: &HookResult| {
                result.state == HookState::Retrying
                    && result.next_attempt_at.as_ref().is_none_or(|at| at.0 <= now)
            };
            let due = sheet.iter().filter(|(at, _, result)| *at == place && due(result));
            let due: Vec<Arc<str>> = due.map(|(_, target, _)| target.clone()).collect();
            let new_ones = sheet.waiting(call, place, &own);
            for target in due.into_iter().chain(new_ones) {
                let opens = sheet.get(place, &target).is_none_or(|result| result.state == HookState::Pending);
                if sheet.running() >= most || (opens && sheet.open() >= MOST_OPEN) {
                    break;
                }
                let result = sheet.entry(call, place, &target);
                result.state = HookState::Running;
                result.attempt += 1;
                result.started_at = result.started_at.take().or_else(|| moment(now));
                result.next_attempt_at = None;
                result.idempotency_key = idempotency_key(
                    self.at.set,
                    &self.next.rollout_id,
                    self.at.generator,
                    &plan.name,
                    role,
                    &call.name,
                    &target,
                );
            }
        }
    }

    /// The calls to make: intended in the status that was read, still intended, and not being made.
    pub(super) fn calls_to_make(&self) -> Vec<Call> {
        let (index, now) = (self.current(), self.at.now);
        let (Some(before), Some(phase)) = (self.stored, self.next.phases.get(index)) else {
            return Vec::new();
        };
        let Some(role) = role_of(&phase.state).filter(|_| self.at.hold == Hold::None) else {
            return Vec::new();
        };
        let Some(before) = before.phases.get(index) else { return Vec::new() };
        let plan = self.phase_plan(index);
        let known = Sheet::read(before.results(role), plan.calls(role));
        let sheet = Sheet::read(phase.results(role), plan.calls(role));
        let mut calls = Vec::new();
        for (place, target, result) in sheet.iter() {
            let attempt = u32::try_from(result.attempt).unwrap_or(u32::MAX);
            let key = self.key(index, role, place, target, attempt);
            let intended = known.get(place, target).is_some_and(|known| is_running(known, attempt));
            if !is_running(result, attempt) || !intended || self.at.in_flight.contains(&key) {
                continue;
            }
            let call = &plan.calls(role)[place];
            let left = call
                .again
                .zip(result.started_at.as_ref())
                .map(|(again, first)| until(now, after(first.0, again.deadline)).max(LEAST));
            calls.push(Call {
                key,
                phase: plan.name.clone(),
                name: call.name.clone(),
                idempotency_key: result.idempotency_key.clone(),
                limit: left.map_or(call.timeout, |left| left.min(call.timeout)),
            });
        }
        calls
    }

    /// The calls that are being made and that nobody waits for any more.
    pub(super) fn calls_to_end(&self) -> Vec<CallKey> {
        let mut running = BTreeSet::new();
        for (index, phase) in self.next.phases.iter().enumerate() {
            let Some(plan) = self.plan.phases.get(index) else { continue };
            for role in ROLES {
                let sheet = Sheet::read(phase.results(role), plan.calls(role));
                for (place, target, result) in sheet.iter() {
                    let attempt = u32::try_from(result.attempt).unwrap_or(u32::MAX);
                    if is_running(result, attempt) {
                        running.insert(self.key(index, role, place, target, attempt));
                    }
                }
            }
        }
        self.at.in_flight.iter().filter(|key| !running.contains(*key)).cloned().collect()
    }

    fn key(&self, phase: usize, role: Role, place: usize, target: &Arc<str>, attempt: u32) -> CallKey {
        let rollout = self.next.rollout_id.as_str().into();
        CallKey { rollout, generator: self.at.generator, phase, role, place, target: target.clone(), attempt }
    }

    /// Ends the calls of a phase that are not at their end.
    pub(super) fn cancel_calls(&mut self, index: usize, which: impl Fn(&HookResult) -> bool + Copy) {
        self.change_calls(index, |sheet| sheet.cancel(which));
    }

    /// Changes every list of a phase.
    pub(super) fn change_calls(&mut self, index: usize, change: impl Fn(&mut Sheet)) {
        let (plan, own) = (self.phase_plan(index), self.own(index));
        let phase = self.phase(index);
        for role in ROLES {
            let mut sheet = Sheet::read(phase.results(role), plan.calls(role));
            change(&mut sheet);
            sheet.sum_up(plan.calls(role), &own);
            *phase.results_mut(role) = sheet.into_results();
        }
    }
}

/// The list that a stage runs.
pub(super) fn role_of(state: &PhaseState) -> Option<Role> {
    match state {
        PhaseState::PreHooks => Some(Role::PreHook),
        PhaseState::Checking => Some(Role::Check),
        PhaseState::PostHooks => Some(Role::PostHook),
        _ => None,
    }
}

/// What a call is, in words.
pub(super) fn title(role: Role, name: &str, target: &str) -> String {
    let what = if role == Role::Check { "check" } else { "hook" };
    match target {
        "" => format!("{what} {name:?}"),
        target => format!("{what} {name:?} for {target}"),
    }
}

fn is_running(result: &HookResult, attempt: u32) -> bool {
    result.state == HookState::Running && result.attempt == i64::from(attempt) && attempt > 0
}

fn failure(call: &CallPlan, role: Role, failed: &HookResult) -> Flow {
    let title = title(role, &call.name, &failed.target);
    Flow::Failed {
        reason: if role == Role::Check { "CheckFailed" } else { "HookFailed" },
        message: format!("{title} failed: {}", failed.message),
        aborts: call.on_failure == CallFailure::Aborts,
    }
}

/// Notes what came of an attempt.
fn settle(result: &mut HookResult, call: &CallPlan, outcome: &Outcome) {
    // Whoever was stopped in the middle has said nothing; the attempt is made again.
    if outcome.result == Verdict::Cancelled {
        return;
    }
    let ended = after(outcome.started, outcome.duration);
    result.finished_at = Some(stored(ended));
    result.duration_milliseconds = i64::try_from(outcome.duration.as_millis()).unwrap_or(i64::MAX);
    result.code = outcome.code;
    let message = outcome.result.to_string();
    result.message = message[..message.floor_char_boundary(MESSAGE)].to_owned();
    result.state = match &outcome.result {
        Verdict::Success => {
            result.message = String::new();
            HookState::Succeeded
        }
        // What may not be called may not be called in a while either.
        Verdict::Failure(_) | Verdict::Timeout { .. } if next_attempt(result, call, ended).is_some() => {
            result.next_attempt_at = next_attempt(result, call, ended).map(stored);
            HookState::Retrying
        }
        _ if call.on_failure == CallFailure::Ignored => HookState::Ignored,
        _ => HookState::Failed,
    };
}

/// When a call is tried again: never after its deadline, and at the deadline itself where the pause would lead past it,
/// so that no time that was granted is given away.
fn next_attempt(result: &HookResult, call: &CallPlan, ended: Timestamp) -> Option<Timestamp> {
    let (again, first) = (call.again?, result.started_at.as_ref()?);
    let deadline = after(first.0, again.deadline);
    (ended < deadline).then(|| after(ended, again.interval).min(deadline))
}
