//! Counts per step, kept up to date one Application at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_rules::{Rule, holds};

/// What one Application adds to the counts of its step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Share {
    /// Its step; none is outside all steps.
    pub(super) step: Option<usize>,
    /// It is no longer wanted: it is waited for, and no part of what percentages are of.
    pub(super) leaves: bool,
    /// It is not done.
    pub(super) undone: bool,
    /// It holds a slot, or an operation of somebody else's runs.
    pub(super) uses_slot: bool,
    /// It is being synced, or was in this run and is not done: a slot that is more than a claim.
    pub(super) active: bool,
    /// It was done and is no longer.
    pub(super) regressed: bool,
    /// It was done and is going.
    pub(super) going: bool,
    /// It failed.
    pub(super) failed: bool,
    /// It failed, which was allowed.
    pub(super) tolerated: bool,
    /// It holds a slot that it took itself, or is being synced.
    pub(super) firm: bool,
    /// It wants a slot.
    pub(super) wants_slot: bool,
    /// How it holds a slot already.
    pub(super) hold: Hold,
    /// It wants to be written without a slot.
    pub(super) wants_write: bool,
    /// Its automatic sync is not known to be off.
    pub(super) unarmed: bool,
}

/// How an Application holds a slot. Those that hold it the more firmly go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Hold {
    /// It took it.
    Firm,
    /// It may have taken it: the head that would tell was lost.
    Claim,
    /// Not at all.
    #[default]
    None,
}

/// Counts of one step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Count {
    pub(super) total: usize,
    pub(super) undone: usize,
    /// Those of the undone that are no longer wanted, and no part of the total.
    pub(super) leaving: usize,
    pub(super) used: usize,
    pub(super) active: usize,
    pub(super) firm: usize,
    pub(super) regressed: usize,
    pub(super) going: usize,
    pub(super) failed: usize,
    pub(super) tolerated: usize,
    /// Those that want a slot: who has one first, then by name.
    pub(super) wanting: BTreeSet<(Hold, Arc<str>)>,
    /// Those that want to be written without a slot.
    pub(super) writing: BTreeSet<Arc<str>>,
}

impl Count {
    /// How many of the total are done, and still are.
    pub(super) fn done(&self) -> usize {
        self.total.saturating_sub(self.undone - self.leaving).saturating_sub(self.regressed)
    }
}

/// Counts of all steps, and of what is in none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) steps: Vec<Count>,
    pub(super) outside: Count,
    /// Those whose automatic sync is not known to be off.
    pub(super) unarmed: BTreeSet<Arc<str>>,
}

impl Tally {
    pub(super) fn new(steps: usize) -> Tally {
        Tally { steps: vec![Count::default(); steps], ..Tally::default() }
    }

    pub(super) fn add(&mut self, name: &Arc<str>, share: &Share) {
        let count = self.count_of(share);
        count.total += usize::from(!share.leaves);
        count.undone += usize::from(share.undone);
        count.leaving += usize::from(share.undone && share.leaves);
        count.used += usize::from(share.uses_slot);
        count.active += usize::from(share.active);
        count.firm += usize::from(share.firm);
        count.regressed += usize::from(share.regressed);
        count.going += usize::from(share.going);
        count.failed += usize::from(share.failed);
        count.tolerated += usize::from(share.tolerated);
        if share.wants_slot {
            count.wanting.insert((share.hold, name.clone()));
        }
        if share.wants_write {
            count.writing.insert(name.clone());
        }
        if share.unarmed {
            self.unarmed.insert(name.clone());
        }
    }

    pub(super) fn remove(&mut self, name: &Arc<str>, share: &Share) {
        let count = self.count_of(share);
        count.total -= usize::from(!share.leaves);
        count.undone -= usize::from(share.undone);
        count.leaving -= usize::from(share.undone && share.leaves);
        count.used -= usize::from(share.uses_slot);
        count.active -= usize::from(share.active);
        count.firm -= usize::from(share.firm);
        count.regressed -= usize::from(share.regressed);
        count.going -= usize::from(share.going);
        count.failed -= usize::from(share.failed);
        count.tolerated -= usize::from(share.tolerated);
        if share.wants_slot {
            count.wanting.remove(&(share.hold, name.clone()));
        }
        if share.wants_write {
            count.writing.remove(name);
        }
        if share.unarmed {
            self.unarmed.remove(name);
        }
    }

    /// Whether every Application of all steps before this one is done.
    pub(super) fn is_reached(&self, step: usize) -> bool {
        self.steps.iter().take(step).all(|count| count.undone == 0) || !holds(Rule::StepsAreReached)
    }

    /// Whether all that was done still is, and stays.
    pub(super) fn is_well(&self) -> bool {
        self.steps.iter().all(|count| count.regressed == 0 && count.going == 0)
    }

    fn count_of(&mut self, share: &Share) -> &mut Count {
        match share.step.filter(|&step| step < self.steps.len()) {
            Some(step) => &mut self.steps[step],
            None => &mut self.outside,
        }
    }
}
