//! Whether the phases of a generator and the steps of a RollingSync can both be kept.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use baton_rollout::steps::Steps;

use crate::config::Plan;
use crate::targets::Roster;

/// Two Applications that wait for each other: one is before the other by its phase, and after it by its step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The Application that is first by its phase.
    pub first: Arc<str>,
    /// Its phase.
    pub first_phase: Arc<str>,
    /// Its step, counted from 1.
    pub first_step: usize,
    /// The Application that is first by its step.
    pub second: Arc<str>,
    /// Its phase.
    pub second_phase: Arc<str>,
    /// Its step, counted from 1.
    pub second_step: usize,
}

/// The contradictions between phases and steps: one for each phase that has any. `labels` gives the labels of a rendered
/// Application, which choose its step.
pub fn contradictions(
    plan: &Plan,
    roster: &Roster,
    steps: &Steps,
    labels: impl Fn(&str) -> BTreeMap<String, String>,
) -> Vec<Contradiction> {
    clashes(plan, roster, |name| steps.place(&labels(name)))
}

/// The same, by the step of each Application, counted from 0.
pub(crate) fn clashes(
    plan: &Plan,
    roster: &Roster,
    step: impl Fn(&str) -> Option<usize>,
) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let mut latest: Option<(usize, Arc<str>, Arc<str>)> = None;
    for (phase, group) in plan.phases.iter().zip(&roster.phases) {
        // Who is in no step waits for none, and nobody waits for it.
        let placed = group.own.iter().filter_map(|name| Some((step(name)?, name)));
        let placed: Vec<(usize, &Arc<str>)> = placed.collect();
        if let (Some((step, first, of)), Some((least, second))) = (&latest, placed.iter().min())
            && least < step
        {
            found.push(Contradiction {
                first: first.clone(),
                first_phase: of.clone(),
                first_step: step + 1,
                second: (*second).clone(),
                second_phase: phase.name.clone(),
                second_step: least + 1,
            });
        }
        let most = placed.iter().max_by_key(|(step, _)| *step);
        if let Some((step, name)) =
            most.filter(|(step, _)| latest.as_ref().is_none_or(|(known, ..)| step > known))
        {
            latest = Some((*step, (*name).clone(), phase.name.clone()));
        }
    }
    found
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "phases and steps contradict each other: {} (phase {:?}, step {}) is to go before {} (phase {:?}, step {}) by \
             its phase and after it by its step, so neither can; change one of the two orders",
            self.first, self.first_phase, self.first_step, self.second, self.second_phase, self.second_step
        )
    }
}
