//! How the Applications of a phase fare.

use super::*;
use crate::config::Action;
use crate::forecast::brief;
use crate::instant::after;

impl Work<'_> {
    /// Notes how each Application of a phase fares. Gives the first that has failed, once that is to be acted on.
    pub(super) fn observe(&mut self, index: usize) -> Option<(String, String)> {
        let plan = self.phase_plan(index);
        let over = self.next.phases[index].failure.is_some();
        let mut entries = std::mem::take(&mut self.phase(index).applications);
        let mut failed = None;
        for entry in &mut entries {
            let seen = self.at.seen.get(entry.name.as_str());
            let state = match self.state_of(entry, seen, plan) {
                // Nobody is let through any more. What had failed before it was written has failed all the same.
                PhaseApplicationState::Held if over => entry.state.clone(),
                state => state,
            };
            if state != entry.state {
                (entry.state, entry.since) = (state, moment(self.at.now));
            }
            if let Some(seen) = seen.filter(|_| !is_back(&entry.state)) {
                entry.pin = seen.pin.to_string();
            }
            if entry.state == PhaseApplicationState::Failed && failed.is_none() {
                failed = Some(reason(entry, seen, plan));
            }
        }
        let settled =
            entries.iter().all(|entry| is_well(&entry.state) || entry.state == PhaseApplicationState::Failed);
        self.phase(index).applications = entries;
        // Where a failure does not stop the rollout, it does not stop the phase's other Applications either.
        failed.filter(|_| settled || plan.on_failure != Action::Continue)
    }

    fn state_of(
        &self,
        entry: &PhaseApplication,
        seen: Option<&Seen>,
        plan: &PhasePlan,
    ) -> PhaseApplicationState {
        use PhaseApplicationState as S;
        if is_back(&entry.state) {
            return entry.state.clone();
        }
        let Some(seen) = seen else { return S::Held };
        match &seen.progress {
            Progress::NotStarted => S::Held,
            Progress::Done if entry.state == S::Unchanged && !seen.touched => S::Unchanged,
            Progress::Done if seen.touched || is_begun(&entry.state) => S::Healthy,
            Progress::Done => S::Unchanged,
            Progress::Failed { .. } => S::Failed,
            // People may take their time: no deadline runs meanwhile.
            Progress::AwaitingApproval(_) => S::AwaitingApproval,
            // What took too long has failed, until it is done or a person has it tried again.
            Progress::UnderWay | Progress::Stuck(_) | Progress::Regressed(_) if entry.state == S::Failed => {
                S::Failed
            }
            Progress::UnderWay | Progress::Stuck(_) | Progress::Regressed(_) => {
                match self.late_at(entry, plan) {
                    Some(late) if late <= self.at.now => S::Failed,
                    _ => S::Updating,
                }
            }
        }
    }

    /// When an Application that is under way has taken too long.
    pub(super) fn late_at(&self, entry: &PhaseApplication, plan: &PhasePlan) -> Option<Timestamp> {
        let since = entry.since.as_ref().filter(|_| entry.state == PhaseApplicationState::Updating)?;
        Some(after(since.0, plan.deadline))
    }
}

/// Why an Application has failed.
fn reason(entry: &PhaseApplication, seen: Option<&Seen>, plan: &PhasePlan) -> (String, String) {
    match seen.map(|seen| &seen.progress) {
        Some(Progress::Failed { reason, message }) => {
            (reason.clone(), format!("Application {} failed: {message}", entry.name))
        }
        other => {
            let within = brief(plan.deadline);
            let message = match other {
                Some(Progress::Stuck(why)) => {
                    format!("Application {} could not be synced within {within}: {why}", entry.name)
                }
                _ => format!("Application {} was not healthy within {within}", entry.name),
            };
            ("ProgressDeadlineExceeded".to_owned(), message)
        }
    }
}
