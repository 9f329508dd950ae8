//! The field was removed: the open phase is finished, then everybody is let go.
//!
//! A phase that fails after the field was removed is answered as it was planned, and holds everybody as it would have: who
//! took the field away did not know of the failure, and what a check has just kept from production does not go there for
//! that. A person lets go, or something newer does.

use super::*;
use crate::asking::{Answer, Ask};
use crate::config::Caps;
use crate::forecast::BY_HAND;
use crate::targets::Group;
use baton_rollout::pin::Fingerprint;

/// Under this name the status notes, beside what people asked for, that the field was removed while a phase was open: which.
pub(crate) const REMOVED: &str = "removal";

/// Decides where there are no phases any more.
pub(super) fn decide(at: &Situation<'_>, kept: Option<&Plan>) -> Decision {
    let Some(stored) = at.stored else { return released(at) };
    let bare;
    let plan = match kept.filter(|plan| fits(plan, stored)) {
        Some(plan) => plan,
        None => {
            bare = remembered(stored);
            &bare
        }
    };
    let work = Work::new(at, plan, roster(at, stored), true);
    let open = work.current();
    let was_open = stored.granted.contains_key(REMOVED);
    match stored.phases.get(open) {
        Some(phase) if was_open && stays(phase) => {
            let answers = let_go(at, stored, phase);
            if !answers.is_empty() || at.rollout != stored.rollout_id {
                return Decision { answers, ..released(at) };
            }
        }
        Some(phase) if !has_ended(phase) => {}
        _ => return released(at),
    }
    let mut decision = work.decide();
    let over = match decision.status.as_ref() {
        None => true,
        Some(next) => {
            let phase = next.phases.get(open);
            next.current_phase != stored.current_phase
                || phase.is_none_or(|phase| has_ended(phase) && !stays(phase))
        }
    };
    if over {
        // What proved good is kept all the same, and what was to be ended is.
        let Decision { good, cancel, terminate, answers, .. } = decision;
        decision = Decision { good, cancel, terminate, answers, ..released(at) };
    } else if let Some(next) = &mut decision.status {
        let name = next.phases.get(open).map(|phase| phase.name.clone()).unwrap_or_default();
        next.granted.insert(REMOVED.to_owned(), name);
    }
    decision
}

/// Whether nothing is left of a phase that could be finished.
fn has_ended(phase: &PhaseStatus) -> bool {
    matches!(phase.state, PhaseState::Pending | PhaseState::Complete | PhaseState::Skipped)
        || is_frozen(phase)
        || goes_on(phase)
}

/// Whether a phase holds everybody though the field is gone. It does not where a person ended it.
fn stays(phase: &PhaseStatus) -> bool {
    is_frozen(phase) && phase.failure.as_ref().is_none_or(|failure| failure.reason != ABORTED_BY_REQUEST)
}

/// What people ask for that lets everybody go from a phase that has failed since the field was removed.
fn let_go(at: &Situation<'_>, stored: &GeneratorPhases, phase: &PhaseStatus) -> Vec<Answer> {
    if !is_frozen(phase) {
        return Vec::new();
    }
    let asked = requests::unanswered(at.requests, stored).into_iter();
    let asked = asked.filter(|(ask, _)| matches!(ask, Ask::Abort | Ask::Advance));
    asked.map(|(ask, text)| Answer { ask, text: text.clone(), refused: None }).collect()
}

/// Everybody goes, and nothing is kept.
fn released(at: &Situation<'_>) -> Decision {
    let open = |target: &crate::targets::Target| (target.name.clone(), Gate::Open { phase: 0 });
    let gates = at.targets.iter().map(open).collect();
    Decision { gates, cancel: at.in_flight.iter().cloned().collect(), ..Decision::default() }
}

/// Whether a plan is of the phases that are stored.
pub(super) fn fits(plan: &Plan, stored: &GeneratorPhases) -> bool {
    plan.phases.len() == stored.phases.len()
        && plan.phases.iter().zip(&stored.phases).all(|(plan, phase)| *plan.name == *phase.name)
}

/// The phases as far as the status remembers them: their hooks and checks are gone with the field.
fn remembered(stored: &GeneratorPhases) -> Plan {
    Plan {
        path: "".into(),
        phases: stored.phases.iter().map(|phase| PhasePlan::bare(&phase.name)).collect(),
        history: 0,
        caps: Caps { hooks: 1, checks: 1, applications: usize::MAX },
        hash: Fingerprint::default(),
    }
}

/// Who is in which phase, by what was noted when each began.
fn roster(at: &Situation<'_>, stored: &GeneratorPhases) -> Roster {
    let known: BTreeSet<&str> = at.targets.iter().map(|target| &*target.name).collect();
    let group = |phase: &PhaseStatus| {
        let names = phase.applications.iter().map(|entry| entry.name.as_str());
        let own: Vec<Arc<str>> = names.filter(|name| known.contains(name)).map(Arc::from).collect();
        Group { matched: own.len(), own }
    };
    let phases: Vec<Group> = stored.phases.iter().map(group).collect();
    Roster { phases, unassigned: Vec::new() }
}

impl Work<'_> {
    /// What those wait for who are not in the open phase.
    pub(super) fn release_sentence(&self) -> String {
        let phase = self.next.phases.get(self.current());
        let open = phase.map_or("", |phase| phase.name.as_str());
        if let Some(phase) = phase.filter(|phase| is_frozen(phase)) {
            return format!(
                "deploymentStrategy was removed, and phase {open:?} is {} since: {} Applications are held until `baton appset \
                 advance` or `baton appset abort` lets all go, or a new commit or template does",
                phase.state,
                self.left_over()
            );
        }
        format!(
            "deploymentStrategy was removed: phase {open:?} is finished first, then {} Applications go at once{BY_HAND}",
            self.left_over()
        )
    }

    /// How many Applications are let go when the open phase has ended.
    pub(super) fn left_over(&self) -> usize {
        let followed: usize = self.roster.phases.iter().map(|group| group.own.len()).sum();
        self.at.targets.len().saturating_sub(followed)
    }
}
