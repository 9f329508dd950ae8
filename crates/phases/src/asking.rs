//! What people may ask of phases, and why it cannot be done.

use baton_api::phase_status::{GeneratorPhases, PhaseState, PhaseStatus};

use crate::machine::is_frozen;
use crate::machine::released::REMOVED;
use crate::outlook::is_put_back;

/// Why what was put back is not gone on with.
const PUT_BACK: &str = "it was put back, and stays so until a new commit or template";

/// Why a way back is not ended: half of the Applications would be left with what was to be put away. It ends by itself.
const GOES_BACK: &str = "it is being put back, and that is not left half done: `baton appset pause` holds it, `baton appset skip` \
                         passes over an Application that does not get back";

/// What people ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// To end the rollout.
    Abort,
    /// To put back what the whole run changed.
    RollbackAll,
    /// To put back what the present phase changed.
    Rollback,
    /// To try again what failed.
    Retry,
    /// To end a wait, or to go on after a failure.
    Advance,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What was asked for.
    pub ask: Ask,
    /// The text that asked for it.
    pub text: String,
    /// Why it was refused, where it was.
    pub refused: Option<String>,
}

/// Why a request cannot be granted as a generator's phases stand, where it cannot. Whether Applications have a good state
/// to go back to is not known here.
pub fn refusal(ask: Ask, phases: &GeneratorPhases) -> Option<String> {
    let refuse = |why: &str| Some(why.to_owned());
    let open = usize::try_from(phases.current_phase).ok().and_then(|at| phases.phases.get(at));
    if matches!(ask, Ask::Rollback | Ask::RollbackAll) {
        let last = open.or(phases.phases.last());
        let left = ask == Ask::RollbackAll && !phases.phases.iter().all(is_over_with);
        return match last.map(|phase| &phase.state) {
            None => refuse("there are no phases"),
            Some(PhaseState::RollingBack) if !left => refuse("it is being put back already"),
            Some(PhaseState::RolledBack) if !left => refuse("it was put back already"),
            Some(_) => None,
        };
    }
    let goes_back = phases.phases.iter().any(|phase| phase.state == PhaseState::RollingBack);
    match ask {
        Ask::Abort if goes_back => return refuse(GOES_BACK),
        Ask::Retry | Ask::Advance if goes_back => return refuse(PUT_BACK),
        _ => {}
    }
    let Some(phase) = open else { return refuse("every phase has ended") };
    if phase.state == PhaseState::Pending {
        return refuse("no phase has begun");
    }
    // Whoever is held by a phase that has failed since the field was removed is let go by either.
    let removed = phases.granted.contains_key(REMOVED) && is_frozen(phase);
    match ask {
        Ask::Abort | Ask::Advance if removed => None,
        Ask::Abort if is_frozen(phase) => refuse("it has ended already"),
        Ask::Retry if !is_frozen(phase) => refuse("nothing has failed that is not tried by itself"),
        Ask::Retry | Ask::Advance if is_put_back(phase) => refuse(PUT_BACK),
        Ask::Advance if phase.state != PhaseState::Waiting && !is_frozen(phase) => {
            Some(format!("phase {:?} is {}: it neither waits nor has it stopped", phase.name, phase.state))
        }
        _ => None,
    }
}

/// Whether nothing of a phase is left to be put back.
fn is_over_with(phase: &PhaseStatus) -> bool {
    use PhaseState as P;
    matches!(phase.state, P::RollingBack | P::RolledBack | P::Pending | P::Skipped)
}

// === impl Ask ===

impl Ask {
    /// Every request, in the order in which they are answered.
    pub const ALL: [Ask; 5] = [Ask::Abort, Ask::RollbackAll, Ask::Rollback, Ask::Retry, Ask::Advance];

    /// As the status names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Ask::Abort => "abort",
            Ask::RollbackAll => "rollbackAll",
            Ask::Rollback => "rollback",
            Ask::Retry => "retry",
            Ask::Advance => "advance",
        }
    }
}
