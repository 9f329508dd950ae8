//! What must never happen, judged on what the API holds and what clusters have, not on what a leader believes.

use baton_rollout::head::Intent;
use baton_rollout::machine::Write;

use crate::search::Setup;
use crate::world::World;

/// Something that must not happen has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    /// One of a later step was started before all of an earlier one were done.
    Order,
    /// More of a step were under way than may be.
    Slots,
    /// A specification or an operation was written while an operation waited or ran.
    Busy,
    /// A write landed that the stored head does not intend.
    Unintended,
    /// The same intent landed twice, or an older one after a newer.
    Twice,
    /// One was synced again in a run that had synced it.
    Again,
    /// Drift was healed where there was none.
    Needless,
}

/// What has been so far. Each Application is a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Judge {
    run: u64,
    /// Who has had what the run is for.
    arrived: u8,
    /// Who was started and has not had what the run is for since.
    under_way: u8,
    /// Whose operation of this run ended well.
    synced: u8,
    pub(crate) broken: Option<Broken>,
}

impl Judge {
    /// Looks at a world in which something has happened.
    pub(crate) fn look(world: &mut World) {
        let (Some(stored), Some(target)) = (&world.head, world.target()) else { return };
        let mut judge = world.judge;
        if stored.head.run.seq != judge.run {
            judge = Judge { run: stored.head.run.seq, arrived: 0, synced: 0, ..judge };
        }
        for (number, app) in world.apps.iter().enumerate() {
            let bit = 1 << number;
            if app.is_at(target) {
                judge.arrived |= bit;
                judge.under_way &= !bit;
            }
            let last = app.live().last.as_ref().filter(|last| !last.is_running() && !last.has_failed());
            let stamp = last.and_then(|last| last.stamp.as_ref());
            if stamp.is_some_and(|stamp| stamp.run == judge.run && stamp.pin == target.pin()) {
                judge.synced |= bit;
            }
        }
        world.judge = judge;
    }

    /// A write has landed, and broke this rule if any.
    pub(crate) fn landed(&mut self, app: usize, write: &Write, broken: Option<Broken>) {
        self.broken = self.broken.or(broken);
        if matches!(write.what, Intent::Start | Intent::Heal) {
            self.under_way |= 1 << app;
        }
    }
}

/// What a write would break if it landed now.
pub(crate) fn landing(world: &World, setup: &Setup, app: usize, write: &Write) -> Option<Broken> {
    let thing = &world.apps[app];
    let starts = matches!(write.what, Intent::Start | Intent::Heal);
    if setup.strict && !is_intended(world, write) {
        return Some(Broken::Unintended);
    }
    let before = thing.live().stamp.as_ref().map_or(0, |stamp| stamp.n);
    if setup.strict && write.stamp.n <= before {
        return Some(Broken::Twice);
    }
    if (starts || write.spec || write.what == Intent::Arm) && thing.live().is_busy() {
        return Some(Broken::Busy);
    }
    if !starts {
        return None;
    }
    let judge = &world.judge;
    let others = || world.apps.iter().enumerate().filter(|(number, _)| *number != app);
    let has = |set: u8, number: usize| set & (1 << number) != 0;
    if write.what == Intent::Start {
        if others().any(|(number, other)| other.step < thing.step && !has(judge.arrived, number)) {
            return Some(Broken::Order);
        }
        if has(judge.synced, app) {
            return Some(Broken::Again);
        }
    }
    if write.what == Intent::Heal && thing.has(write) {
        return Some(Broken::Needless);
    }
    let mates = others().filter(|(_, other)| other.step == thing.step);
    let busy = mates.filter(|(number, _)| has(judge.under_way, *number)).count();
    let total = world.apps.iter().filter(|other| other.step == thing.step).count();
    let limit = setup.steps().get(thing.step).map_or(0, |step| step.limit(total));
    (busy + 1 > limit).then_some(Broken::Slots)
}

/// Whether the stored head asks for this write: it is the last intent of its row, or the one before it that is to be
/// made impossible and was not yet.
fn is_intended(world: &World, write: &Write) -> bool {
    let Some(stored) = &world.head else { return false };
    let id = baton_rollout::pin::Fingerprint::of([&*write.uid]);
    let Some(row) = stored.head.row(id) else { return false };
    let newest = row.n == write.stamp.n && (row.fence == (write.what == Intent::Fence));
    let fenced = row.fence && row.n == write.stamp.n + 1;
    stored.head.run.seq == write.stamp.run && (newest || fenced)
}
