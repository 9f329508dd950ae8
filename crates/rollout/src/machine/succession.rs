//! A run that is to be finished before anything newer is followed (`supersede: Finish`).
//!
//! What a run was begun for is known only as long as the machine is: the head holds hashes. Whoever takes over in the
//! middle of a run and finds another template begins anew.

use super::*;

impl Machine {
    /// Whether something newer than what is followed waits for the run to end.
    pub fn holds_back(&self) -> bool {
        self.holds_back
    }

    /// Whether what was held back may be followed now: tell the machine again what the set wants.
    pub fn may_move_on(&self) -> bool {
        self.holds_back && !self.wanted.as_ref().is_some_and(|wanted| self.finishes(wanted))
    }

    /// What is followed; none before anything was wanted.
    pub fn following(&self) -> Option<&Wanted> {
        self.wanted.as_ref()
    }

    /// What is to be followed now that the set wants this.
    pub(super) fn followed(&mut self, next: Wanted) -> Wanted {
        let before = self.wanted.as_ref().filter(|before| next.control.finish && before.set == next.set);
        let under_way = before.filter(|before| self.is_run_of(before));
        let amended = under_way.and_then(|before| before.until_finished(&next));
        // What the run was not begun for is no better than what is wanted now.
        let begun_for =
            |amended: &Wanted| self.head.run.strategy == amended.steps.hash && !self.differ().content;
        let amended = amended.filter(begun_for);
        self.holds_back = amended.is_some();
        amended.unwrap_or(next)
    }

    /// Whether the run is finished before a newer one begins.
    pub(super) fn finishes(&self, wanted: &Wanted) -> bool {
        wanted.control.finish && self.is_run_of(wanted)
    }

    /// Whether an Application reports the revisions of the run to come, and not those of the run that is to be finished.
    pub(super) fn is_overtaken(&self, wanted: &Wanted, member: &Member, live: &Live, pin: &Pin) -> bool {
        let newest = |key: &SourceKey| self.resolutions.get(key)?.known.clone();
        self.finishes(wanted)
            && !pin.accepts(&live.reported)
            && pin_of(member, newest).is_some_and(|newest| newest.accepts(&live.reported))
    }

    /// Whether a run is under way that was not begun for something newer than this. One whose phases have failed goes
    /// no further by itself: what is newer may be what mends it.
    fn is_run_of(&self, wanted: &Wanted) -> bool {
        let run = &self.head.run;
        let failed = matches!(self.phase_standing(), Some(PhaseStanding::Failed(_)));
        let under_way = run.seq > 0 && run.finished.is_none() && !run.aborted && !failed;
        under_way && *run.set == *wanted.set && !self.is_outdated(wanted)
    }
}

// === impl Wanted ===

impl Wanted {
    /// What is followed until the run for this has ended, though the set wants something else by now. Who stays is to
    /// be what it was to be; who joins, leaves or is moved, and what people ask for, is as wanted now. None where
    /// nothing else differs.
    fn until_finished(&self, next: &Wanted) -> Option<Wanted> {
        let same_steps = self.steps.hash == next.steps.hash;
        let changes = |(name, member): (&Arc<str>, &Member)| {
            let before = self.members.get(name);
            before.is_some_and(|before| (before.spec, &before.sources) != (member.spec, &member.sources))
        };
        if same_steps && !next.members.iter().any(changes) {
            return None;
        }
        let amended = |(name, member): (&Arc<str>, &Member)| {
            let member = match self.members.get(name) {
                Some(before) if same_steps => Member { step: member.step, ..before.clone() },
                Some(before) => before.clone(),
                None if same_steps => member.clone(),
                // Its step is one of the new ones: this run has none for it.
                None => Member { step: None, ..member.clone() },
            };
            (name.clone(), member)
        };
        Some(Wanted {
            set: self.set.clone(),
            generation: self.generation,
            steps: self.steps.clone(),
            members: next.members.iter().map(amended).collect(),
            frozen: next.frozen.clone(),
            fuse: next.fuse.clone(),
            keeps_leavers: next.keeps_leavers,
            control: next.control.clone(),
        })
    }
}
