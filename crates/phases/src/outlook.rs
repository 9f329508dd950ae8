//! How the phases of a whole set stand, all its generators together: whether its rollout is over, and how it ended.

use baton_api::phase_status::{GeneratorPhases, PhaseState, PhaseStatus};

use crate::machine::is_frozen;

/// How the phases of a set stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// Every phase has come to a good end, or there are none.
    Done,
    /// A hook, an Application, a check, a wait or a way back has not come to its end. In words, the first.
    UnderWay(String),
    /// Nothing is under way, and a phase has failed, was aborted or was put back. In words.
    Failed(String),
}

/// Tells it from `status.phases`. While one generator is under way, another's failure is not the end.
pub fn outlook(phases: &[GeneratorPhases]) -> Outlook {
    let each = || phases.iter().map(of_generator);
    let busy = each().find(|one| matches!(one, Outlook::UnderWay(_)));
    let failed = || each().find(|one| matches!(one, Outlook::Failed(_)));
    busy.or_else(failed).unwrap_or(Outlook::Done)
}

fn of_generator(generator: &GeneratorPhases) -> Outlook {
    let open = usize::try_from(generator.current_phase).ok().and_then(|at| generator.phases.get(at));
    match open {
        // No phase matches anybody, so that none begins.
        Some(phase) if phase.state == PhaseState::Pending && generator.state == PhaseState::Failed => {
            Outlook::Failed(generator.message.clone())
        }
        Some(phase) if is_frozen(phase) => {
            let why = phase.failure.as_ref().map(|failure| failure.message.as_str()).unwrap_or_default();
            let what = match phase.state {
                PhaseState::Aborted => "was aborted",
                PhaseState::RolledBack => "was put back",
                _ => "has failed",
            };
            Outlook::Failed(format!("phase {:?} {what}: {why}", phase.name))
        }
        Some(phase) => Outlook::UnderWay(format!("phase {:?} is {}", phase.name, phase.state)),
        None if generator.phases.iter().any(|phase| phase.failure.is_some()) => {
            Outlook::Failed(generator.message.clone())
        }
        None => Outlook::Done,
    }
}

/// Whether a phase was answered by putting back what it had changed.
pub(crate) fn is_put_back(phase: &PhaseStatus) -> bool {
    phase.failure.as_ref().is_some_and(|failure| failure.action == "rollback")
}
