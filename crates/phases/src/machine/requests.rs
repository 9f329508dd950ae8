//! What people ask for.

use std::ops::RangeInclusive;

use super::*;
use crate::asking::{Answer, Ask, refusal};
use crate::config::Action;
use crate::situation::Requests;

/// Before why a request is refused while nothing of it can be done.
pub(super) const NOT_FOLLOWED: &str = "the phases cannot be followed: ";

impl Requests {
    /// Every request, in the order in which they are answered.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (Ask, &String)> {
        let text = |ask: Ask| match ask {
            Ask::Abort => self.abort.as_ref(),
            Ask::RollbackAll => self.rollback_all.as_ref(),
            Ask::Rollback => self.rollback.as_ref(),
            Ask::Retry => self.retry.as_ref(),
            Ask::Advance => self.advance.as_ref(),
        };
        Ask::ALL.into_iter().filter_map(move |ask| Some((ask, text(ask)?)))
    }
}

/// Those that a status does not say the answer to.
pub(super) fn unanswered<'r>(requests: &'r Requests, status: &GeneratorPhases) -> Vec<(Ask, &'r String)> {
    let is_news = |(ask, text): &(Ask, &String)| status.granted.get(ask.as_str()) != Some(*text);
    requests.texts().filter(is_news).collect()
}

/// Refuses what was not answered before: it is not done later, when nobody thinks of it any more.
pub(super) fn refuse_all(status: &mut GeneratorPhases, requests: &Requests, why: &str) -> Vec<Answer> {
    let news = unanswered(requests, status);
    let mut note = |(ask, text): (Ask, &String)| note(status, ask, text, Some(why.to_owned()));
    news.into_iter().map(&mut note).collect()
}

/// Notes an answer: a refusal until the same is asked for again, or something else is granted.
fn note(status: &mut GeneratorPhases, ask: Ask, text: &str, refused: Option<String>) -> Answer {
    status.granted.insert(ask.as_str().to_owned(), text.to_owned());
    let begin = format!("{}: ", ask.as_str());
    status.refused.retain(|earlier| refused.is_some() && !earlier.starts_with(&begin));
    status.refused.extend(refused.iter().map(|why| format!("{begin}{why}")));
    Answer { ask, text: text.to_owned(), refused }
}

/// What people should know of requests.
pub(super) fn refusals(status: &GeneratorPhases) -> impl Iterator<Item = Notice> + '_ {
    status.refused.iter().map(|what| Notice::warning("RequestRefused", what.clone()))
}

impl Work<'_> {
    /// Answers what was not answered before. What cannot be done is said until the same is asked for again or something
    /// else is granted, and not done later.
    pub(super) fn grant(&mut self) {
        for (ask, text) in unanswered(self.at.requests, &self.next) {
            let answer = match refusal(ask, &self.next) {
                Some(why) => Err(why),
                None => match ask {
                    Ask::Abort => self.abort(),
                    Ask::RollbackAll => self.roll_back_all(),
                    Ask::Rollback => self.roll_back(),
                    Ask::Retry => self.retry(),
                    Ask::Advance => self.advance(),
                },
            };
            self.answers.push(note(&mut self.next, ask, text, answer.err()));
        }
        self.notices.extend(refusals(&self.next));
    }

    /// Refuses them where none can be granted.
    pub(super) fn refuse_requests(&mut self, why: &str) {
        self.answers.extend(refuse_all(&mut self.next, self.at.requests, &format!("{NOT_FOLLOWED}{why}")));
        self.notices.extend(refusals(&self.next));
    }

    fn abort(&mut self) -> Result<(), String> {
        let index = self.current();
        self.end(index, ABORTED_BY_REQUEST, "a person aborted the rollout".to_owned(), Action::Abort);
        Ok(())
    }

    fn roll_back(&mut self) -> Result<(), String> {
        let last = self.next.phases.len().checked_sub(1).ok_or("there are no phases")?;
        let index = self.current().min(last);
        if !self.is_busy(index) {
            self.has_good(index..=index)?;
        }
        let message = "a person asked for the phase to be put back".to_owned();
        self.end(index, "RollbackByRequest", message, Action::Rollback);
        self.set_current(index);
        self.next.finished_at = None;
        Ok(())
    }

    fn roll_back_all(&mut self) -> Result<(), String> {
        let last = self.next.phases.len().checked_sub(1).ok_or("there are no phases")?;
        let current = self.current().min(last);
        if !self.is_busy(current) {
            self.has_good(0..=last)?;
        }
        // Later ones too: a rollout that went back to an earlier phase, for somebody who joined it, has changed those.
        let open: Vec<usize> = (0..=last).rev().filter(|index| self.is_not_back(*index).is_ok()).collect();
        let goes = open.iter().any(|index| !self.to_put_back(*index).0.is_empty());
        let (mut any, mut left) = (false, Vec::new());
        for index in open {
            let (back, stays) = self.to_put_back(index);
            if index != current && back.is_empty() && (stays.is_empty() || !goes) {
                left.extend(stays);
                continue;
            }
            let message = "a person asked for the whole rollout to be put back".to_owned();
            self.end(index, "RollbackByRequest", message, Action::Rollback);
            // Whatever the phase itself had changed, the run does not go on from where others were put back.
            if let Some(failure) = self.phase(index).failure.as_mut().filter(|_| goes) {
                super::failing::answer(failure, Action::Rollback);
            }
            any = true;
        }
        if !any {
            return self.is_not_back(current);
        }
        // Where nothing goes back, those of phases that are left alone are told of as well.
        if let Some(failure) = self.phase(current).failure.as_mut() {
            failure.not_rolled_back.extend(left.iter().map(|name| name.to_string()));
            failure.not_rolled_back.truncate(super::failing::NAMED);
        }
        self.set_current(current);
        self.next.finished_at = None;
        Ok(())
    }

    /// Whether a phase has begun and not ended: to put it back is to end it, also where there is nothing to go back to.
    fn is_busy(&self, index: usize) -> bool {
        let state = &self.next.phases[index].state;
        *state == PhaseState::PreHooks || is_under_way(state)
    }

    /// What has ended is left alone where nothing of it can be put back.
    fn has_good(&self, mut phases: RangeInclusive<usize>) -> Result<(), String> {
        match phases.any(|index| !self.to_put_back(index).0.is_empty()) {
            true => Ok(()),
            false => Err("no Application has a good state to go back to".to_owned()),
        }
    }

    fn is_not_back(&self, index: usize) -> Result<(), String> {
        match self.next.phases[index].state {
            PhaseState::RollingBack => Err("it is being put back already".to_owned()),
            PhaseState::RolledBack => Err("it was put back already".to_owned()),
            _ => Ok(()),
        }
    }

    /// Has what failed tried again. Its calls keep their keys and numbers.
    fn retry(&mut self) -> Result<(), String> {
        let index = self.current();
        let now = self.at.now;
        self.change_calls(index, crate::sheet::Sheet::reset);
        let phase = self.phase(index);
        for entry in &mut phase.applications {
            if matches!(entry.state, PhaseApplicationState::Failed | PhaseApplicationState::Updating) {
                (entry.state, entry.since) = (PhaseApplicationState::Updating, moment(now));
            }
        }
        (phase.state, phase.failure, phase.finished_at) = (PhaseState::PreHooks, None, None);
        Ok(())
    }

    /// Ends a wait, or goes on after a failure. A hook, a check or an Application that is not at its end is never passed
    /// over.
    fn advance(&mut self) -> Result<(), String> {
        let index = self.current();
        let now = self.at.now;
        let phase = self.phase(index);
        match &mut phase.failure {
            Some(failure) => {
                failure.action = "advance".to_owned();
                failure.remedy =
                    format!("a person let the rollout go on without it; {}", super::failing::LEFT);
            }
            None => {
                phase.wait_until =
                    phase.wait_until.take().map(|until| until.min(crate::instant::stored(now)));
            }
        }
        Ok(())
    }
}
