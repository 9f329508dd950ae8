//! Who may be changed.

use std::collections::BTreeMap;

use super::*;
use crate::outlook::is_put_back;

impl Work<'_> {
    /// A gate per Application. It is open only where both the status that was read and the next one say so: the one is what
    /// is known to be stored, the other may have closed it.
    pub(super) fn gates(&self) -> BTreeMap<Arc<str>, Gate> {
        let places = self.roster.places();
        let turn = self.turn_back();
        let gate = |name: &Arc<str>| match places.get(name) {
            Some(&index) => self.gate(index, name, &turn),
            None if self.last => Gate::Held(self.release_sentence()),
            // Where nobody has a phase, the phases are wrong, and that is not passed over.
            None if self.roster.is_idle() => Gate::Held(NOTHING_MATCHES.to_owned()),
            None => Gate::Aside("no phase takes it: it stays as it is".to_owned()),
        };
        self.at.targets.iter().map(|target| (target.name.clone(), gate(&target.name))).collect()
    }

    fn gate(&self, index: usize, name: &Arc<str>, turn: &BTreeSet<Arc<str>>) -> Gate {
        let Some(stored) = self.stored else {
            return Gate::Held("the rollout is about to begin".to_owned());
        };
        let entry_in = |status: &GeneratorPhases| {
            status.phases.get(index).and_then(|phase| entry(phase, name)).cloned().unwrap_or_default()
        };
        let (before, next) = (entry_in(stored), entry_in(&self.next));
        if is_back(&next.state) {
            let was_stored = is_back(&before.state) && before.pin == next.pin;
            let goes = next.state != PhaseApplicationState::RollingBack || turn.contains(name);
            return match was_stored && goes {
                true => Gate::Back { pin: next.pin.as_str().into() },
                false => Gate::Held("it is put back when its turn comes".to_owned()),
            };
        }
        let touched = self.seen(name).is_some_and(|seen| seen.touched);
        let open =
            lets_through(stored, index, &before, touched) && lets_through(&self.next, index, &next, touched);
        // Who has come to a phase that is complete goes through it before it is let through, and that is stored first.
        let complete = |status: &GeneratorPhases| {
            status.phases.get(index).is_some_and(|phase| phase.state == PhaseState::Complete)
        };
        let joins = self.has_joined(index, name) && (complete(stored) || complete(&self.next));
        let paused = self.at.hold == Hold::Paused && self.is_new(name);
        match open && !joins && !paused {
            true => Gate::Open { phase: index },
            false => Gate::Held(self.why_held(index, &next)),
        }
    }

    /// Why an Application is held, in words.
    fn why_held(&self, index: usize, entry: &PhaseApplication) -> String {
        let own = &self.next.phases[index];
        let current = self.current();
        let open = self.next.phases.get(current);
        if self.at.hold == Hold::Paused {
            return "a person holds the rollout".to_owned();
        }
        match (&own.state, open) {
            (PhaseState::Failed, _) => format!("phase {:?} has failed before it was its turn", own.name),
            (PhaseState::Aborted, _) => format!("phase {:?} was aborted", own.name),
            (PhaseState::RollingBack | PhaseState::RolledBack, _) => {
                format!("phase {:?} was put back", own.name)
            }
            (PhaseState::PreHooks, _) if index == current => {
                format!("phase {:?} runs its hooks first", own.name)
            }
            (_, Some(open)) if is_frozen(open) => {
                format!("its phase {:?} does not open: phase {:?} is {}", own.name, open.name, open.state)
            }
            (_, Some(open)) if index > current => {
                format!("its phase {:?} opens after phase {:?}, which is {}", own.name, open.name, open.state)
            }
            _ if entry.state == PhaseApplicationState::Held => {
                format!("its phase {:?} is about to open", own.name)
            }
            _ => format!("its phase {:?} is {}", own.name, own.state),
        }
    }
}

/// Whether a status lets an Application of a phase through. What it waits for, or has failed at, may be of an earlier
/// rollout: only who was brought on its way in this one has begun.
fn lets_through(status: &GeneratorPhases, index: usize, entry: &PhaseApplication, touched: bool) -> bool {
    let Some(phase) = status.phases.get(index) else { return false };
    let is_current = usize::try_from(status.current_phase).is_ok_and(|current| current == index);
    let has_begun = is_begun(&entry.state) && (touched || is_well(&entry.state));
    match &phase.state {
        PhaseState::Complete => true,
        state if is_under_way(state) => is_current || has_begun,
        // Who has begun goes on; nobody else does.
        PhaseState::PreHooks => has_begun,
        // What has no good state to go back to is left as it is.
        PhaseState::Failed => has_begun && !is_put_back(phase),
        _ => false,
    }
}

/// The phase that a sentence on why an Application is held is about: its own, which it names first.
pub fn phase_held_by(why: &str) -> Option<&str> {
    let named = why.strip_prefix("its ").unwrap_or(why).strip_prefix("phase \"")?;
    named.split_once('"').map(|(name, _)| name)
}
