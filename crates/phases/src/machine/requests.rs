//! What people ask for.

use std::ops::RangeInclusive;

use super::*;
use crate::config::Action;
use crate::situation::Requests;

impl Requests {
    /// Every request, by its kind, in the order in which they are answered.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let all = [
            ("abort", &self.abort),
            ("rollbackAll", &self.rollback_all),
            ("rollback", &self.rollback),
            ("retry", &self.retry),
            ("advance", &self.advance),
        ];
        all.into_iter().filter_map(|(kind, text)| Some((kind, text.as_ref()?)))
    }
}

impl Work<'_> {
    /// Answers what was not answered before. What cannot be done is said until something else is asked for, and not done
    /// later.
    pub(super) fn grant(&mut self) {
        let is_news = |(kind, text): &(&'static str, &String)| self.next.granted.get(*kind) != Some(*text);
        let news: Vec<(&'static str, &String)> = self.at.requests.texts().filter(is_news).collect();
        if !news.is_empty() {
            self.next.refused.clear();
        }
        for (kind, text) in news {
            self.next.granted.insert(kind.to_owned(), text.clone());
            let answer = match kind {
                "abort" => self.abort(),
                "rollbackAll" => self.roll_back_all(),
                "rollback" => self.roll_back(),
                "retry" => self.retry(),
                _ => self.advance(),
            };
            if let Err(why) = answer {
                self.next.refused.push(format!("{kind}: {why}"));
            }
        }
        let refused = self.next.refused.iter().cloned();
        self.notices.extend(refused.map(|what| Notice::warning("RequestRefused", what)));
    }

    /// The open phase, where there is one.
    fn open_phase(&self) -> Result<usize, String> {
        let index = self.current();
        match self.next.phases.get(index) {
            None => Err("every phase has ended".to_owned()),
            Some(phase) if phase.state == PhaseState::Pending => Err("no phase has begun".to_owned()),
            Some(_) => Ok(index),
        }
    }

    fn abort(&mut self) -> Result<(), String> {
        let index = self.open_phase()?;
        if is_frozen(&self.next.phases[index]) {
            return Err("it has ended already".to_owned());
        }
        self.end(index, "AbortedByRequest", "a person aborted the rollout".to_owned(), Action::Abort);
        Ok(())
    }

    fn roll_back(&mut self) -> Result<(), String> {
        let last = self.next.phases.len().checked_sub(1).ok_or("there are no phases")?;
        let index = self.current().min(last);
        self.is_not_back(index)?;
        if self.next.phases[index].state == PhaseState::Complete {
            self.has_good(index..=index)?;
        }
        let message = "a person had the phase put back".to_owned();
        self.end(index, "RollbackByRequest", message, Action::Rollback);
        self.set_current(index);
        self.next.finished_at = None;
        Ok(())
    }

    fn roll_back_all(&mut self) -> Result<(), String> {
        let last = self.next.phases.len().checked_sub(1).ok_or("there are no phases")?;
        let current = self.current().min(last);
        if self.next.phases[current].state == PhaseState::Complete {
            self.has_good(0..=current)?;
        }
        let mut any = false;
        for index in (0..=current).rev().filter(|index| self.is_not_back(*index).is_ok()).collect::<Vec<_>>()
        {
            let (back, stays) = self.to_put_back(index);
            if index == current || !back.is_empty() || !stays.is_empty() {
                let message = "a person had the whole rollout put back".to_owned();
                self.end(index, "RollbackByRequest", message, Action::Rollback);
                any = true;
            }
        }
        if !any {
            return self.is_not_back(current);
        }
        // Whatever the open phase itself had changed, the run does not go on from here.
        if let Some(failure) = &mut self.phase(current).failure {
            failure.action = Action::Rollback.as_str().to_owned();
        }
        self.set_current(current);
        self.next.finished_at = None;
        Ok(())
    }

    /// What has ended well is left alone where nothing of it can be put back.
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
        let index = self.open_phase()?;
        let phase = &self.next.phases[index];
        let failure = phase.failure.as_ref().map(|failure| failure.action.as_str());
        if !is_frozen(phase) {
            return Err("nothing has failed that is not tried by itself".to_owned());
        }
        if failure == Some("rollback") {
            return Err("it was put back, and stays so until a new commit or template".to_owned());
        }
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
        let index = self.open_phase()?;
        let now = self.at.now;
        let phase = self.phase(index);
        match (&phase.state, &mut phase.failure) {
            (PhaseState::Waiting, _) => {
                phase.wait_until =
                    phase.wait_until.take().map(|until| until.min(crate::instant::stored(now)));
                Ok(())
            }
            (PhaseState::Failed | PhaseState::Aborted, Some(failure)) if failure.action != "rollback" => {
                failure.action = "advance".to_owned();
                failure.remedy = "a person let the rollout go on without it".to_owned();
                Ok(())
            }
            (state, _) => {
                Err(format!("phase {:?} is {state}: it neither waits nor has it stopped", phase.name))
            }
        }
    }
}
