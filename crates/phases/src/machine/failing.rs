//! What follows a failure.

use baton_api::phase_status::{HookState, PhaseFailure};
use baton_rules::{Rule, holds};

use super::*;
use crate::config::Action;

/// What a person can do after a failure that froze a rollout.
const MEND: &str = "a new commit or template, `baton appset retry`, or `baton appset advance`";
/// The same where something can be put back.
const MEND_OR_BACK: &str =
    "a new commit or template, `baton appset retry`, `baton appset advance`, or `baton appset rollback`";
/// So many are named of those that cannot be put back.
pub(super) const NAMED: usize = 100;
/// What becomes of those of a phase that was passed over.
pub(super) const LEFT: &str =
    "whoever of its Applications was not changed is changed by the next commit or template";
/// What a person can do after a rollback.
const AFTER_ROLLBACK: &str = "a new commit or template: what was put back stays so until then; \
                              `baton appset skip` passes over whoever does not get back";

impl Work<'_> {
    /// A phase has failed: does what it says is to be done then.
    pub(super) fn fail(&mut self, index: usize, reason: &str, message: String, aborts: bool) {
        let action = match self.phase_plan(index).on_failure {
            _ if !holds(Rule::FailuresAreAnswered) => Action::Continue,
            _ if aborts => Action::Abort,
            action => action,
        };
        self.end(index, reason, message, action);
    }

    /// Ends a phase badly.
    pub(super) fn end(&mut self, index: usize, reason: &str, message: String, action: Action) {
        let (touched, untouchable) = match action {
            Action::Rollback => self.to_put_back(index),
            _ => (Vec::new(), Vec::new()),
        };
        // Where nothing was changed, or nothing of it has a good state, there is nothing to put back.
        let action = match action {
            Action::Rollback if touched.is_empty() => Action::Stop,
            action => action,
        };
        let goes_back = !self.to_put_back(index).0.is_empty();
        let now = self.at.now;
        match action {
            // What runs comes to its end; nothing else begins.
            Action::Stop => self.cancel_calls(index, |result| result.state != HookState::Running),
            Action::Rollback | Action::Continue | Action::Abort => self.cancel_calls(index, |_| true),
        }
        if action == Action::Abort {
            self.terminate_under_way(index);
        }
        let phase = self.phase(index);
        let message = match &phase.failure {
            Some(before) => format!("{message}{AFTER}{}", cause(before)),
            None => message,
        };
        phase.wait_until = None;
        phase.state = if action == Action::Abort { PhaseState::Aborted } else { PhaseState::Failed };
        phase.finished_at = moment(now);
        let mut failure =
            PhaseFailure { reason: reason.to_owned(), message, at: moment(now), ..PhaseFailure::default() };
        answer(&mut failure, action);
        if failure.remedy == MEND && goes_back {
            failure.remedy = MEND_OR_BACK.to_owned();
        }
        failure.not_rolled_back = untouchable.iter().take(NAMED).map(|name| name.to_string()).collect();
        phase.failure = Some(failure);
        if action == Action::Rollback {
            self.begin_back(index, touched);
        }
    }

    /// Has the operations of a phase ended.
    fn terminate_under_way(&mut self, index: usize) {
        let under_way = |name: &Arc<str>| {
            self.seen(name).is_some_and(|seen| seen.touched && seen.progress == Progress::UnderWay)
        };
        let under_way: Vec<Arc<str>> = self.own(index).into_iter().filter(under_way).collect();
        self.terminate.extend(under_way);
    }
}

/// Between what a person did and what had failed before.
const AFTER: &str = ", after it had failed: ";

/// What failed first, whatever people did since.
fn cause(failure: &PhaseFailure) -> String {
    match failure.message.rsplit_once(AFTER) {
        Some((_, cause)) => cause.to_owned(),
        None => format!("{} ({})", failure.message, failure.reason),
    }
}

/// Notes what is done about a failure, and what a person can do then.
pub(super) fn answer(failure: &mut PhaseFailure, action: Action) {
    failure.action = action.as_str().to_owned();
    failure.remedy = match action {
        Action::Stop | Action::Abort => MEND.to_owned(),
        Action::Rollback => AFTER_ROLLBACK.to_owned(),
        Action::Continue => format!("the rollout goes on without it; {LEFT}"),
    };
}
