//! The field was removed: the open phase is finished, then everybody is let go.

use super::*;
use crate::config::Caps;
use crate::forecast::BY_HAND;
use crate::targets::Group;
use baton_rollout::pin::Fingerprint;

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
    let ended = |phase: &PhaseStatus| {
        matches!(phase.state, PhaseState::Pending | PhaseState::Complete | PhaseState::Skipped)
            || is_frozen(phase)
            || goes_on(phase)
    };
    if stored.phases.get(open).is_none_or(ended) {
        return released(at);
    }
    let mut decision = work.decide();
    let over = match decision.status.as_ref() {
        None => true,
        Some(next) => next.current_phase != stored.current_phase || next.phases.get(open).is_none_or(ended),
    };
    if over {
        // What proved good is kept all the same, and what was to be ended is.
        let Decision { good, cancel, terminate, answers, .. } = decision;
        decision = Decision { good, cancel, terminate, answers, ..released(at) };
    }
    decision
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
        let open = self.next.phases.get(self.current()).map_or("", |phase| phase.name.as_str());
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
