//! The machine of one generator's phases: from what is stored and seen to what is stored next, and what may be done.
//!
//! # Guarantees
//! - Whatever opens, is called or is put back follows from the status **as it was read**, and from the next one: a crash
//!   before or after the next one is stored changes neither who may go nor what was called.
//! - An Application of a phase is let through only when every Application, check, hook and wait of all earlier phases
//!   has come to its end, and to a good one unless the phase, or a person, says to go on.
//! - A call that has succeeded is not made again in the rollout. One that was begun and of which nothing is known is
//!   made again, with the same number and key.
//! - With the same input, the next status is the same as the one before: there is nothing to write.

mod back;
mod begin;
mod calling;
mod deploying;
mod failing;
mod gates;
pub(crate) mod released;
mod requests;
mod stages;
mod summary;

pub use gates::phase_held_by;

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_api::phase_status::{
    GeneratorPhases, PhaseApplication, PhaseApplicationState, PhaseState, PhaseStatus,
};
use baton_hooks::Finding;
use jiff::Timestamp;

use crate::asking::Answer;
use crate::config::{PhasePlan, Plan};
use crate::lint::{Contradiction, clashes};
use crate::machine::requests::NOT_FOLLOWED;
use crate::situation::{Decision, Gate, Hold, Notice, Progress, Seen, Situation, Strategy, Wait};
use crate::targets::{Roster, assign_on, entry};

/// Why a phase has ended that a person aborted.
const ABORTED_BY_REQUEST: &str = "AbortedByRequest";
/// Why everybody is held where phases are for others.
const NOTHING_MATCHES: &str = "no phase matches any Application of this generator: mend its targets";

/// Decides.
pub fn decide(at: &Situation<'_>) -> Decision {
    Decision { back: back::stored(at.stored), ..decide_on(at) }
}

fn decide_on(at: &Situation<'_>) -> Decision {
    if at.hold == Hold::Deleting {
        return stand_still(at, "the ApplicationSet is being deleted", Vec::new());
    }
    match at.strategy {
        Strategy::Wanted(plan) => match shared_out(at, plan) {
            Ok(roster) => match clashes(plan, &roster, |name| at.steps.get(name).copied()).as_slice() {
                [] => Work::new(at, plan, roster, false).decide(),
                clashes => contradicted(at, clashes),
            },
            Err(findings) => invalid(at, &findings),
        },
        Strategy::Invalid(findings) => invalid(at, findings),
        Strategy::Removed(kept) => released::decide(at, kept),
    }
}

/// Nothing is begun and nobody is let through; the status stays, so that mending the configuration goes on from there.
fn stand_still(at: &Situation<'_>, why: &str, notices: Vec<Notice>) -> Decision {
    let held = |target: &crate::targets::Target| (target.name.clone(), Gate::Held(why.to_owned()));
    Decision {
        status: at.stored.cloned(),
        gates: at.targets.iter().map(held).collect(),
        cancel: at.in_flight.iter().cloned().collect(),
        waits: vec![Wait::of_phase(why)],
        notices,
        ..Decision::default()
    }
}

fn invalid(at: &Situation<'_>, findings: &[Finding]) -> Decision {
    let errors: Vec<String> =
        findings.iter().filter(|finding| finding.is_error()).map(ToString::to_string).collect();
    refuse(at, &errors, format!("{NOT_FOLLOWED}{}", first_of(&errors)), "")
}

/// Phases and steps contradict each other. Some would wait for each other for ever: a hook that runs for them, or whoever is
/// brought on its way before them, would begin what cannot come to an end.
fn contradicted(at: &Situation<'_>, clashes: &[Contradiction]) -> Decision {
    let errors: Vec<String> = clashes.iter().map(ToString::to_string).collect();
    let named = clashes.first().map(|clash| &*clash.first).unwrap_or_default();
    refuse(at, &errors, first_of(&errors), named)
}

/// Stands still until the configuration is another. `named` is the Application that it is about, if it is about one.
///
/// What people ask for meanwhile is refused, and is not done when the phases are mended. Where nothing is stored yet, there
/// is nothing that it could be done to: the first rollout takes what was asked before it for old.
fn refuse(at: &Situation<'_>, errors: &[String], why: String, named: &str) -> Decision {
    let notices = errors.iter().map(|error| Notice::error("InvalidPhaseConfig", error)).collect();
    let waits = vec![Wait { object: named.to_owned(), config: true, ..Wait::of_phase(&*why) }];
    let mut decision = stand_still(at, &why, notices);
    if let Some(status) = &mut decision.status {
        decision.answers =
            requests::refuse_all(status, at.requests, &format!("{NOT_FOLLOWED}{}", first_of(errors)));
        decision.notices.extend(requests::refusals(status));
    }
    Decision { waits, invalid: Some(why), ..decision }
}

/// The first, and how many more there are.
fn first_of(errors: &[String]) -> String {
    let first = errors.first().map(String::as_str).unwrap_or_default();
    match errors.len() {
        0 | 1 => first.to_owned(),
        count => format!("{first} (and {} more)", count - 1),
    }
}

/// Shares the targets out among phases, each where it has begun.
fn shared_out(at: &Situation<'_>, plan: &Plan) -> Result<Roster, Vec<Finding>> {
    let stored = at.stored.filter(|stored| *stored.rollout_id == *at.rollout);
    let phases = stored.map(|stored| stored.phases.as_slice()).unwrap_or_default();
    let touched = |name: &str| at.seen.get(name).is_some_and(|seen| seen.touched);
    assign_on(plan, at.targets, phases, &touched)
}

/// One decision on its way.
struct Work<'a> {
    at: &'a Situation<'a>,
    plan: &'a Plan,
    roster: Roster,
    /// The status as it was read, where it is of this rollout.
    stored: Option<&'a GeneratorPhases>,
    next: GeneratorPhases,
    /// Whether the open phase is the last that is followed.
    last: bool,
    good: Vec<(Arc<str>, Arc<str>)>,
    notices: Vec<Notice>,
    answers: Vec<Answer>,
    list: bool,
    /// Whether what people asked for brought back something that had ended.
    terminate: BTreeSet<Arc<str>>,
}

impl<'a> Work<'a> {
    fn new(at: &'a Situation<'a>, plan: &'a Plan, roster: Roster, last: bool) -> Work<'a> {
        let stored = at.stored.filter(|stored| *stored.rollout_id == *at.rollout || last);
        let stored = stored.filter(|stored| released::fits(plan, stored));
        let next = stored.cloned().unwrap_or_default();
        let (good, notices, answers) = (Vec::new(), Vec::new(), Vec::new());
        let terminate = BTreeSet::new();
        Work { at, plan, roster, stored, next, last, good, notices, answers, list: false, terminate }
    }

    fn decide(mut self) -> Decision {
        self.prepare();
        if self.is_unmatched() {
            self.notices.push(Notice::error("NothingMatches", NOTHING_MATCHES));
            self.refuse_requests(NOTHING_MATCHES);
            self.next.state = PhaseState::Failed;
            self.next.message = NOTHING_MATCHES.to_owned();
            return self.conclude();
        }
        self.take_results();
        self.grant();
        if self.at.hold == Hold::None {
            self.rejoin();
        }
        self.run();
        self.conclude()
    }

    /// Whether there are Applications, and no phase matches any.
    fn is_unmatched(&self) -> bool {
        !self.last && !self.at.targets.is_empty() && self.roster.is_idle()
    }

    fn seen(&self, name: &str) -> Option<&'a Seen> {
        self.at.seen.get(name)
    }

    fn phase(&mut self, index: usize) -> &mut PhaseStatus {
        &mut self.next.phases[index]
    }

    fn phase_plan(&self, index: usize) -> &'a PhasePlan {
        &self.plan.phases[index]
    }

    fn own(&self, index: usize) -> Vec<Arc<str>> {
        self.roster.phases.get(index).map(|group| group.own.clone()).unwrap_or_default()
    }

    /// The open phase; as many as there are where all have ended.
    fn current(&self) -> usize {
        usize::try_from(self.next.current_phase).unwrap_or(0)
    }

    fn set_current(&mut self, index: usize) {
        self.next.current_phase = count(index);
    }
}

/// A number as the status holds it.
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Whether an Application has been let through and changed.
fn is_begun(state: &PhaseApplicationState) -> bool {
    use PhaseApplicationState as S;
    matches!(state, S::Updating | S::AwaitingApproval | S::Healthy | S::Unchanged | S::Failed)
}

/// Whether an Application is, or is being, put back.
pub(crate) fn is_back(state: &PhaseApplicationState) -> bool {
    use PhaseApplicationState as S;
    matches!(state, S::RollingBack | S::RolledBack | S::RollbackFailed)
}

/// Whether an Application is done in its phase.
fn is_well(state: &PhaseApplicationState) -> bool {
    matches!(state, PhaseApplicationState::Healthy | PhaseApplicationState::Unchanged)
}

/// Whether a phase lets its Applications through and has not come to its end.
fn is_under_way(state: &PhaseState) -> bool {
    matches!(
        state,
        PhaseState::Deploying | PhaseState::Checking | PhaseState::PostHooks | PhaseState::Waiting
    )
}

/// Whether a phase has come to an end that nothing follows by itself.
pub(crate) fn is_frozen(phase: &PhaseStatus) -> bool {
    let ended = matches!(phase.state, PhaseState::Failed | PhaseState::Aborted | PhaseState::RolledBack);
    ended && !goes_on(phase)
}

/// Whether a failed phase is followed by the next all the same.
fn goes_on(phase: &PhaseStatus) -> bool {
    phase.failure.as_ref().is_some_and(|failure| matches!(failure.action.as_str(), "continue" | "advance"))
}

/// The moment of a decision, as it is stored.
fn moment(now: Timestamp) -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    Some(crate::instant::stored(now))
}
