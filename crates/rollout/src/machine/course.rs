//! The course of a run: how it begins, who joins it, when steps open and close, and how it ends.

use baton_api::application_status::{HealthCode, SyncCode};

use super::*;
use crate::stamp::Stamp;

impl Machine {
    /// Begins the next run.
    pub(super) fn begin(&self, wanted: &Wanted, version: u64, now: Timestamp) -> Change {
        let before = &self.head.run;
        let highest = self.last_known_run(wanted);
        let is_lost = self.has_lost_head(wanted);
        let known: BTreeMap<SourceKey, Resolution> = self
            .resolutions
            .iter()
            .filter_map(|(key, resolving)| Some((key.clone(), resolving.known.clone()?)))
            .collect();
        let mut rows = Vec::new();
        for app in self.apps.values() {
            let (Some(member), Some(live)) = (&app.member, &app.live) else { continue };
            let Some(pin) = pin_of(member, |key| known.get(key).cloned()) else { continue };
            let row = self.fresh_row(wanted, app, live, &pin);
            // What a step allows its Applications counts from the beginning of the run.
            let since = if row.since > 0 { now.as_second() } else { 0 };
            // What a lost head intended next is not known and may land yet: it shows, or is made impossible.
            let fence = is_lost && holds(Rule::Fencing);
            rows.push(Row { since, n: row.n + if fence { 2 } else { 0 }, fence, ..row });
        }
        let same_set = *before.set == *wanted.set;
        let interrupted = same_set && before.seq > 0 && before.finished.is_none() && !before.aborted;
        let run = Run {
            set: wanted.set.clone(),
            // The run of a lost head may have left no mark: its number is left out.
            seq: (before.seq.max(highest) + u64::from(holds(Rule::RunNumbers)) + u64::from(is_lost)).max(1),
            strategy: wanted.steps.hash,
            generation: wanted.generation,
            open: 0,
            floor: version,
            started: Some(now),
            finished: None,
            openings: Vec::new(),
            restarts: if interrupted { before.restarts + 1 } else { 0 },
            aborted: false,
            paused: (before.paused && same_set) || wanted.control.paused,
            granted: before.granted.clone(),
            gates: None,
        };
        Change { run: Some(run), revisions: Some(known), rows, anew: true }
    }

    /// The highest number that a run of the set is known to have had, other than by the head.
    fn last_known_run(&self, wanted: &Wanted) -> u64 {
        let lives = self.apps.values().filter_map(|app| app.live.as_ref());
        let stamps = lives.flat_map(Live::stamps).filter(|stamp| *stamp.set == *wanted.set);
        stamps.map(|stamp| stamp.run).max().unwrap_or(0).max(self.highest_run)
    }

    /// Whether runs of the set have been and there is no head that would tell of them.
    pub(super) fn has_lost_head(&self, wanted: &Wanted) -> bool {
        self.head.run.seq == 0 && self.last_known_run(wanted) > 0
    }

    /// A row for an Application at the beginning of its part in a run. A slot it holds stays its own.
    pub(super) fn fresh_row(&self, wanted: &Wanted, app: &App, live: &Live, pin: &Pin) -> Row {
        let before = self.head.row(app.id);
        let stamped = intents::landed(live, &wanted.set);
        // Where no head knows it, as after one was lost, the operation that a run began tells.
        let has_slot = before.map_or_else(|| is_left_unwell(live, &wanted.set), |row| row.slot);
        let has_slot = has_slot && holds(Rule::SlotsAreKept);
        // One that surely holds it goes before those that may: they would begin beside it.
        let surely = has_slot && before.is_none() && is_left_open(live, &wanted.set);
        Row {
            n: before.map_or(0, |row| row.n).max(stamped),
            slot: has_slot,
            since: before.filter(|_| has_slot).map_or(0, |row| row.since),
            taken: before.filter(|_| has_slot).map_or(if surely { stamped } else { 0 }, |row| row.taken),
            ..Row::new(app.id, pin.hash)
        }
    }

    /// Records what came to be done, and gives slots back.
    pub(super) fn record(&self, wanted: &Wanted, change: &mut Change, now: Timestamp) {
        let mut tolerated: BTreeMap<usize, usize> = BTreeMap::new();
        for name in &self.settling {
            let Some(app) = self.apps.get(name) else { continue };
            let Some(row) = self.head.row(app.id) else { continue };
            match &app.outcome {
                Outcome::Done(how) => {
                    let done = row.done.or(Some(*how));
                    // Who is said to be done by people may be under way yet.
                    let under_way =
                        app.live.as_ref().is_some_and(Live::is_busy) || self.unsettled.contains(name);
                    change.rows.push(Row { done, slot: row.slot && under_way, ..row.clone() });
                }
                Outcome::Regressed(..) => change.rows.push(Row { done: None, ..row.clone() }),
                Outcome::Wait(wait) if wait.failed => {
                    let Some(step) = app.member.as_ref().and_then(|member| member.step) else { continue };
                    let Some(count) = self.tally.steps.get(step) else { continue };
                    let plan = wanted.steps.get(step).and_then(|plan| plan.max_failures);
                    let more = tolerated.entry(step).or_default();
                    if plan.is_some_and(|share| count.tolerated + *more < share.of(count.total)) {
                        *more += 1;
                        change.rows.push(Row { done: Some(Done::Tolerated), slot: false, ..row.clone() });
                    }
                }
                _ => {}
            }
        }
        let mut openings = self.head.run.openings.clone();
        for (step, opening) in openings.iter_mut().enumerate() {
            let (Some(plan), Some(count)) = (wanted.steps.get(step), self.tally.steps.get(step)) else {
                continue;
            };
            if plan.wait.is_some() {
                let well = count.undone == 0 && count.regressed == 0;
                opening.well_since = well.then(|| opening.well_since.unwrap_or(now));
            }
        }
        if openings != self.head.run.openings {
            self.run_of(change).openings = openings;
        }
    }

    /// The run as the change will leave it.
    pub(super) fn run_of<'a>(&self, change: &'a mut Change) -> &'a mut Run {
        change.run.get_or_insert_with(|| self.head.run.clone())
    }

    /// Takes newcomers into the run.
    pub(super) fn join(&self, wanted: &Wanted, change: &mut Change) {
        if self.joining.is_empty() {
            return;
        }
        let mut revisions = self.head.revisions.clone();
        let mut learned = false;
        for name in self.joining.iter().take(BATCH) {
            let Some(app) = self.apps.get(name) else { continue };
            let (Some(member), Some(live), Some(pin)) = (&app.member, &app.live, &app.pin) else { continue };
            change.rows.push(self.fresh_row(wanted, app, live, pin));
            for key in &member.sources {
                if !revisions.contains_key(key)
                    && let Some(known) =
                        self.resolutions.get(key).and_then(|resolving| resolving.known.clone())
                {
                    revisions.insert(key.clone(), known);
                    learned = true;
                }
            }
        }
        if learned {
            change.revisions = Some(revisions);
        }
    }

    /// Closes steps that opened before somebody joined, or was moved to, an earlier one.
    pub(super) fn close_early(&self, change: &mut Change) {
        let undone = self.tally.steps.iter().position(|count| count.undone > 0);
        let Some(step) = undone.filter(|_| holds(Rule::LaterStepsClose) && holds(Rule::StepsAreReached))
        else {
            return;
        };
        let (open, finished) = (self.head.run.open, self.head.run.finished);
        if open > step + 1 || finished.is_some() {
            let run = self.run_of(change);
            run.open = open.min(step + 1);
            run.openings.truncate(run.open);
            run.finished = None;
        }
    }

    /// Whether all that is known speaks for opening the next step.
    pub(super) fn may_open(&self, wanted: &Wanted, change: &Change, now: Timestamp) -> bool {
        let run = change.run.as_ref().unwrap_or(&self.head.run);
        (1..wanted.steps.len()).contains(&run.open)
            && self.joining.is_empty()
            && self.tally.is_reached(run.open)
            && self.tally.is_well()
            && self.soaked_at(wanted, run).is_none_or(|end| now >= end)
            && self.misstated(wanted, run.open).is_none()
    }

    /// What cannot be read of how the last of so many open steps ends: nobody knows whether the next may open.
    pub(super) fn misstated<'a>(&self, wanted: &'a Wanted, open: usize) -> Option<&'a Arc<str>> {
        let step = open.checked_sub(1)?;
        let holds = self.tally.steps.get(step).is_some_and(|count| count.total > 0);
        wanted.steps.get(step)?.misstated.as_ref().filter(|_| holds)
    }

    /// When the last open step has been well for long enough; none where it need not be.
    pub(super) fn soaked_at(&self, wanted: &Wanted, run: &Run) -> Option<Timestamp> {
        let step = run.open.checked_sub(1)?;
        let wait = SignedDuration::try_from(wanted.steps.get(step)?.wait?).ok()?;
        if self.tally.steps.get(step)?.total == 0 {
            return None;
        }
        let since = run.openings.get(step).and_then(|opening| opening.well_since);
        Some(since.and_then(|since| since.checked_add(wait).ok()).unwrap_or(Timestamp::MAX))
    }

    /// Opens the next step, and those after it that have nothing left to do.
    pub(super) fn open(&self, wanted: &Wanted, version: u64, change: &mut Change, now: Timestamp) {
        loop {
            let run = self.run_of(change);
            run.open += 1;
            run.openings.push(Opening { version, at: Some(now), well_since: None });
            let open = run.open;
            let waits = wanted.steps.get(open - 1).is_some_and(|plan| plan.wait.is_some());
            let count = self.tally.steps.get(open - 1);
            let empty = count.is_none_or(|count| count.total == 0);
            let done = count.is_none_or(|count| count.undone == 0);
            let shut = self.misstated(wanted, open).is_some();
            if open >= wanted.steps.len() || !done || shut || (waits && !empty) {
                return;
            }
        }
    }

    pub(super) fn finish(&self, wanted: &Wanted, change: &mut Change, now: Timestamp) {
        let run = change.run.as_ref().unwrap_or(&self.head.run);
        let all_open = run.open >= wanted.steps.len() && (run.open > 0 || wanted.steps.is_empty());
        let done = self.tally.is_reached(wanted.steps.len()) && self.joining.is_empty();
        // What phases still check, call and wait for is part of the run.
        if all_open && done && run.finished.is_none() && run.seq > 0 && !self.has_open_phase() {
            let run = self.run_of(change);
            run.finished = Some(now);
            run.restarts = 0;
        }
    }
}

/// Whether a rollout of the set synced it last, and it has not been well since. One that differs only since something
/// newer came was.
fn is_left_unwell(live: &Live, set: &str) -> bool {
    // One that has not begun yet counts as well: it will.
    if live.operation.as_ref().is_some_and(|stamp| stamp.as_ref().is_some_and(|stamp| *stamp.set == *set)) {
        return true;
    }
    let Some(last) = &live.last else { return false };
    let differs = live.sync != SyncCode::Synced && live.reported == last.revisions;
    let unwell = differs || live.health != HealthCode::Healthy || last.has_failed();
    // Nobody is done before a comparison was asked for after the operation.
    let unasked = |stamp: &Stamp| intents::landed(live, set) == stamp.n;
    last.stamp.as_ref().is_some_and(|stamp| *stamp.set == *set && (unwell || unasked(stamp)))
}

/// Whether an operation that a rollout of the set began has not ended, or has ended badly.
fn is_left_open(live: &Live, set: &str) -> bool {
    let is_own = |stamp: &Option<Stamp>| stamp.as_ref().is_some_and(|stamp| *stamp.set == *set);
    live.operation.as_ref().is_some_and(is_own)
        || live.last.as_ref().is_some_and(|last| is_own(&last.stamp) && (live.is_busy() || last.has_failed()))
}
