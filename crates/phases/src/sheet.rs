//! The results of one list of hooks or checks, as the status keeps them.
//!
//! A call that is made once has one result. One that is made for each target has a summary, whose target is empty, and
//! a result per target. Targets are begun in the order of their names, and the summary says through which; so results
//! of those that passed may be left out of the status, and are known to have passed all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::phase_status::{HookResult, HookState};
use baton_hooks::Role;
use baton_rules::{Rule, holds};

use crate::config::CallPlan;

/// Results by place in the list and target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sheet {
    results: BTreeMap<usize, BTreeMap<Arc<str>, HookResult>>,
}

/// How a call fares for all it is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Some are not at their end.
    Open,
    /// All are at their end, and one of them a bad one.
    Failed,
    /// All passed, or are not minded.
    Passed,
}

impl Sheet {
    /// Reads results; those of calls that the list does not hold are dropped.
    pub(crate) fn read(results: &[HookResult], calls: &[CallPlan]) -> Sheet {
        let place = |result: &HookResult| calls.iter().position(|call| *call.name == *result.name);
        let mut sheet = Sheet::default();
        for (place, result) in results.iter().filter_map(|result| Some((place(result)?, result))) {
            sheet.results.entry(place).or_default().insert(result.target.as_str().into(), result.clone());
        }
        sheet
    }

    /// The results as they are stored: in the order of the list, each summary before its targets.
    pub(crate) fn into_results(self) -> Vec<HookResult> {
        self.results.into_values().flat_map(BTreeMap::into_values).collect()
    }

    pub(crate) fn get(&self, place: usize, target: &str) -> Option<&HookResult> {
        self.results.get(&place)?.get(target)
    }

    /// The result of a call, made if it is not there.
    pub(crate) fn entry(&mut self, call: &CallPlan, place: usize, target: &Arc<str>) -> &mut HookResult {
        self.results.entry(place).or_default().entry(target.clone()).or_insert_with(|| HookResult {
            name: call.name.to_string(),
            target: target.to_string(),
            state: HookState::Pending,
            ..HookResult::default()
        })
    }

    /// Every result, by place and target.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Arc<str>, &HookResult)> {
        let each = self.results.iter();
        each.flat_map(|(place, results)| results.iter().map(move |(target, result)| (*place, target, result)))
    }

    /// Whether a call that is made for a target had passed, or was given up, before its result was left out.
    fn is_covered(&self, place: usize, target: &str) -> bool {
        self.get(place, "").is_some_and(|summary| !summary.through.is_empty() && target <= &*summary.through)
    }

    fn state(&self, call: &CallPlan, place: usize, target: &Arc<str>) -> HookState {
        match self.get(place, target) {
            Some(result) => result.state.clone(),
            None if call.per_target && self.is_covered(place, target) => HookState::Succeeded,
            None => HookState::Pending,
        }
    }

    /// How a call fares.
    pub(crate) fn standing(&self, call: &CallPlan, place: usize, targets: &[Arc<str>]) -> Standing {
        let mut failed = false;
        for target in &subjects(call, targets) {
            match self.state(call, place, target) {
                HookState::Succeeded | HookState::Ignored => {}
                HookState::Failed => failed = true,
                _ => return Standing::Open,
            }
        }
        if failed { Standing::Failed } else { Standing::Passed }
    }

    /// The first result with a bad end.
    pub(crate) fn first_failure(&self) -> Option<(usize, &HookResult)> {
        let failed = |result: &HookResult| result.state == HookState::Failed && !is_summary(result);
        self.iter().find(|(_, _, result)| failed(result)).map(|(place, _, result)| (place, result))
    }

    /// Those for whom an attempt could begin, in order: who was tried before and is due, then who was not.
    pub(crate) fn waiting(&self, call: &CallPlan, place: usize, targets: &[Arc<str>]) -> Vec<Arc<str>> {
        let mut waiting = subjects(call, targets);
        waiting.retain(|target| self.state(call, place, target) == HookState::Pending);
        waiting
    }

    /// How many attempts are under way.
    pub(crate) fn running(&self) -> usize {
        self.calls().filter(|result| result.state == HookState::Running).count()
    }

    /// How many calls are begun and not at their end.
    pub(crate) fn open(&self) -> usize {
        let open = |result: &&HookResult| matches!(result.state, HookState::Running | HookState::Retrying);
        self.calls().filter(open).count()
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut HookResult> {
        self.results.values_mut().flat_map(BTreeMap::values_mut)
    }

    /// Results that are no summaries.
    fn calls(&self) -> impl Iterator<Item = &HookResult> {
        self.iter().map(|(_, _, result)| result).filter(|result| !is_summary(result))
    }

    /// Ends what is not at its end.
    pub(crate) fn cancel(&mut self, which: impl Fn(&HookResult) -> bool) {
        for result in self.all_mut().filter(|result| is_open(&result.state) && which(result)) {
            result.state = HookState::Cancelled;
            result.next_attempt_at = None;
        }
    }

    /// Lets what failed or was ended early begin anew, with its number of attempts and its key.
    pub(crate) fn reset(&mut self) {
        let again = |state: &HookState| {
            matches!(state, HookState::Failed | HookState::Cancelled) || !holds(Rule::PassedOnce)
        };
        for result in self.all_mut().filter(|result| again(&result.state)) {
            result.state = HookState::Pending;
            (result.started_at, result.finished_at, result.next_attempt_at) = (None, None, None);
        }
    }

    /// Forgets those that are no longer targets, and has the call made for those who joined after it had come further. A
    /// hook that has passed for somebody who left is not run again should it come back; a check is.
    pub(crate) fn follow(
        &mut self,
        role: Role,
        calls: &[CallPlan],
        targets: &[Arc<str>],
        joined: &BTreeSet<Arc<str>>,
    ) {
        for results in self.results.values_mut() {
            results.retain(|target, result| {
                let ran = matches!(result.state, HookState::Succeeded | HookState::Ignored);
                target.is_empty() || targets.binary_search(target).is_ok() || (ran && role != Role::Check)
            });
        }
        for (place, call) in calls.iter().enumerate().filter(|(_, call)| call.per_target) {
            for target in joined {
                if self.get(place, target).is_none() && self.is_covered(place, target) {
                    self.entry(call, place, target);
                }
            }
        }
    }

    /// Brings the summaries of calls that are made for each target up to date.
    pub(crate) fn sum_up(&mut self, calls: &[CallPlan], targets: &[Arc<str>]) {
        for (place, call) in calls.iter().enumerate().filter(|(_, call)| call.per_target) {
            let Some(through) = self.begun_through(place, targets) else { continue };
            let (mut succeeded, mut failed) = (0, 0);
            for target in targets {
                match self.state(call, place, target) {
                    HookState::Succeeded => succeeded += 1,
                    HookState::Failed | HookState::Ignored => failed += 1,
                    _ => {}
                }
            }
            let standing = self.standing(call, place, targets);
            let cancelled =
                self.calls().any(|result| *result.name == *call.name && result.state == HookState::Cancelled);
            let summary = self.entry(call, place, &"".into());
            (summary.succeeded, summary.failed) = (succeeded, failed);
            summary.through = through;
            summary.state = match standing {
                Standing::Open if cancelled => HookState::Cancelled,
                Standing::Open => HookState::Running,
                Standing::Failed => HookState::Failed,
                Standing::Passed if failed > 0 => HookState::Ignored,
                Standing::Passed => HookState::Succeeded,
            };
        }
    }

    /// The last target, in order, for which a call was begun: what it was, unless more have begun. As calls begin in that
    /// order, nobody between looks as if it had passed.
    fn begun_through(&self, place: usize, targets: &[Arc<str>]) -> Option<String> {
        let before = self.get(place, "").map(|summary| summary.through.clone()).unwrap_or_default();
        let begun = targets
            .iter()
            .rev()
            .find(|target| self.get(place, target).is_some_and(|result| result.state != HookState::Pending));
        let begun = begun.map(|target| target.to_string()).unwrap_or_default();
        let through = before.max(begun);
        (!through.is_empty()).then_some(through)
    }
}

/// Whether a result is of a call that is not at its end.
pub(crate) fn is_open(state: &HookState) -> bool {
    matches!(state, HookState::Pending | HookState::Running | HookState::Retrying)
}

fn is_summary(result: &HookResult) -> bool {
    result.target.is_empty() && !result.through.is_empty()
}

/// What a call is made for: each target, or the phase as a whole.
fn subjects(call: &CallPlan, targets: &[Arc<str>]) -> Vec<Arc<str>> {
    match call.per_target {
        true => targets.to_vec(),
        false => vec!["".into()],
    }
}
