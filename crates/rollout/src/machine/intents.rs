//! What is to be written next: every write is an intent in the head first.

use super::*;
use crate::stamp::Stamp;

/// Waits that another operation may end, though the last one did not fail.
const AGAIN: [Reason; 3] = [Reason::OutOfSyncAfterSync, Reason::PruneOnly, Reason::SpecRewritten];

impl Machine {
    /// Grants what people ask for.
    pub(super) fn granted(&self, wanted: &Wanted) -> Option<Change> {
        let (control, run) = (&wanted.control, &self.head.run);
        let aborts = control.abort.is_some() && control.abort != run.granted.abort;
        let retries = control.retry.is_some() && control.retry != run.granted.retry;
        // Another leader may not have seen it: what the head says holds them both.
        let pauses = control.paused && !run.paused;
        if (!aborts && !retries && !pauses) || run.seq == 0 {
            return None;
        }
        let mut run = run.clone();
        run.paused |= pauses;
        let mut rows = Vec::new();
        if aborts {
            run.granted.abort.clone_from(&control.abort);
            run.aborted = run.finished.is_none();
        }
        if retries {
            run.granted.retry.clone_from(&control.retry);
            run.aborted = false;
            let named = control.retry.as_deref().and_then(|text| text.split_once('/'));
            let named: Option<BTreeSet<&str>> = named.map(|(_, names)| names.split(',').collect());
            for (name, app) in &self.apps {
                let stuck = match &app.outcome {
                    Outcome::Wait(wait) => wait.failed || AGAIN.contains(&wait.reason),
                    _ => false,
                };
                let meant = named.as_ref().is_none_or(|named| named.contains(&**name));
                if let Some(row) = self.head.row(app.id).filter(|_| stuck && meant) {
                    rows.push(Row { intent: None, since: 0, ..row.clone() });
                }
            }
        }
        Some(Change { run: Some(run), rows, ..Change::default() })
    }

    /// Intends to make impossible what was intended and has not landed, where nothing may be started; and tells apart
    /// what had landed before its fence could from what never will.
    pub(super) fn fences(&self, stopped: bool) -> Option<Change> {
        let mut rows = Vec::new();
        for name in self.unsettled.iter().chain(&self.fenced) {
            let Some(app) = self.apps.get(name).filter(|app| app.in_flight.is_none()) else { continue };
            let (Some(live), Some(row)) = (&app.live, self.head.row(app.id)) else { continue };
            let landed = landed(live, &self.head.run.set);
            let stopped = stopped || self.is_held_back(name, row);
            match row.fence {
                true if landed >= row.n => {
                    // A slot that an earlier write took stays taken, and what came of that write still counts.
                    let slot = row.slot && row.taken + 1 != row.n;
                    let intent = slot.then_some(Intent::Fence);
                    // Where an earlier write has brought it on its way, its operation tells.
                    let begun = row.begun && !row.intent.is_some_and(Intent::begins);
                    rows.push(Row { intent, fence: false, slot, begun, ..row.clone() })
                }
                true if landed + 1 == row.n => {
                    // It took its slot in a head that may have been lost since.
                    let set = &self.head.run.set;
                    let began = live.operations().any(|stamp| stamp.n == landed && stamp.set == *set);
                    let (slot, taken) =
                        if began && !row.slot { (true, landed) } else { (row.slot, row.taken) };
                    rows.push(Row { n: landed, fence: false, slot, taken, ..row.clone() })
                }
                true => {}
                false if stopped && landed < row.n => match holds(Rule::Fencing) {
                    true => rows.push(Row { n: row.n + 1, fence: true, ..row.clone() }),
                    false => {
                        let slot = row.slot && row.taken != row.n;
                        rows.push(Row { intent: None, slot, begun: false, ..row.clone() })
                    }
                },
                false => {}
            }
        }
        (!rows.is_empty()).then(|| Change { rows, ..Change::default() })
    }

    /// The writes whose intents are stored and that have not landed.
    pub(super) fn writes(&mut self, only_fences: bool, now: Timestamp) -> Vec<Write> {
        let mut writes = Vec::new();
        let held = |name: &Arc<str>| {
            let row = self.apps.get(name).and_then(|app| self.head.row(app.id));
            row.is_some_and(|row| self.is_held_back(name, row))
        };
        let held: BTreeSet<Arc<str>> = self.unsettled.iter().filter(|name| held(name)).cloned().collect();
        for name in &self.unsettled {
            if writes.len() == BATCH {
                break;
            }
            let Some(app) = self.apps.get_mut(name).filter(|app| app.in_flight.is_none()) else { continue };
            let (Some(live), Some(pin), Some(row)) = (&app.live, &app.pin, self.head.row(app.id)) else {
                continue;
            };
            let intended = row.intent.filter(|_| !only_fences && pin.hash == row.pin && !held.contains(name));
            let what = if row.fence { Some(Intent::Fence) } else { intended };
            let Some(mut what) = what else { continue };
            if what.waits_for_operations() && live.is_busy() && holds(Rule::BusyIsLeftAlone) {
                continue;
            }
            let as_before = what == Intent::Heal && row.done.is_none();
            let differs =
                pin.spec != Fingerprint::default() && live.spec != pin.spec && app.adopted != Some(live.spec);
            // Somebody has edited what was to be brought back: an operation would bring in the edit.
            let edited = match as_before {
                true => !live.is_as_stamped(),
                false => differs,
            };
            // An operation that has ended since cannot be ended: nobody would carry out what is then said to run.
            let ended = live.operation.is_none() || !live.last.as_ref().is_some_and(Operation::is_running);
            if (what == Intent::Heal && edited) || (what == Intent::Terminate && ended) {
                what = Intent::Fence;
            }
            let (stamped, revisions) = match what {
                Intent::Heal if as_before && holds(Rule::HealsBringBack) => {
                    let stamped = live.stamp.as_ref().map_or(row.pin, |stamp| stamp.pin);
                    (stamped, live.deployed.clone())
                }
                Intent::Start | Intent::Heal if !holds(Rule::PinnedOperations) => (row.pin, Vec::new()),
                Intent::Start | Intent::Heal => (row.pin, pin.revisions()),
                _ => (row.pin, Vec::new()),
            };
            let stamp =
                Stamp { set: self.head.run.set.clone(), run: self.head.run.seq, n: row.n, pin: stamped };
            writes.push(Write {
                name: name.clone(),
                uid: live.uid.clone(),
                version: live.version,
                what,
                nonce: what.asks_for_comparison().then(|| stamp.nonce().into()),
                stamp,
                spec: matches!(what, Intent::Start | Intent::Spec) && differs,
                revisions,
            });
            // Who fights over an Application that is done does so ever more slowly.
            if what == Intent::Heal || (what == Intent::Start && row.done.is_some()) {
                app.heals = (app.heals.0 + 1, Some(now));
            }
            if what.asks_for_comparison() {
                app.asked = Some(Asked::at(live, row.n));
            }
            app.asks = match what {
                Intent::Refresh | Intent::HardRefresh => app.asks + 1,
                Intent::Fence | Intent::Terminate => app.asks,
                Intent::Arm | Intent::Spec | Intent::Start | Intent::Heal => 0,
            };
            app.in_flight = Some(row.n);
        }
        writes
    }

    /// Intends the next writes.
    pub(super) fn intend(&self, wanted: &Wanted, change: &mut Change, now: Timestamp) {
        let mut left = BATCH;
        let unarmed: Vec<&Arc<str>> = self.tally.unarmed.iter().collect();
        for name in unarmed {
            // Whether it is armed is told by a comparison, which may have to be asked for again.
            self.add_intent(name, false, change, &mut left, now, Intent::asks_for_comparison);
        }
        for name in &self.tally.outside.writing {
            self.add_intent(name, false, change, &mut left, now, Intent::asks_for_comparison);
        }
        if self.head.run.open == 0 {
            if self.tally.unarmed.is_empty() && self.joining.is_empty() {
                let (floor, opening) = (self.head.run.floor, self.run_of(change));
                opening.open = 1.min(wanted.steps.len());
                let first = Opening { version: floor, at: Some(now), well_since: None };
                opening.openings = vec![first; opening.open];
            }
            return;
        }
        let open = change.run.as_ref().map_or(self.head.run.open, |run| run.open);
        let (mut room, backs) = (self.room(), self.has_backs());
        for (step, (count, plan)) in self.tally.steps.iter().zip(wanted.steps.iter()).enumerate() {
            let limit = match plan.limit(count.total) {
                0 if !holds(Rule::HeldSteps) => 1,
                _ if !holds(Rule::Limit) => usize::MAX,
                limit => limit,
            };
            let mut used = count.used - self.released(step, change, |_| true);
            let mut active = count.active - self.released(step, change, |share| share.active);
            let mut firm = count.firm - self.released(step, change, |share| share.firm);
            let reached = self.tally.is_reached(step) || !holds(Rule::LaterStepsClose);
            let opened = step < open && reached;
            for name in &count.writing {
                let begun =
                    self.apps.get(name).and_then(|app| self.head.row(app.id)).is_some_and(|row| row.slot);
                // Who was begun before the step closed again comes to its end.
                self.add_intent(name, false, change, &mut left, now, |intent| match intent {
                    _ if opened => true,
                    Intent::Terminate => true,
                    Intent::Refresh | Intent::HardRefresh => begun,
                    _ => false,
                });
            }
            let goes_on = opened && !self.is_overwhelmed(step, wanted);
            if !goes_on && !backs {
                continue;
            }
            for (hold, name) in &count.wanting {
                let back = self.goes_back(name);
                if !goes_on && !back {
                    continue;
                }
                let limit = if back { limit.max(1) } else { limit };
                // Who holds a slot goes on in it, unless steps were changed or Applications moved so that more hold
                // one than may.
                let own = usize::from(self.is_active(name));
                let full = match hold {
                    Hold::Firm => active - own >= limit,
                    Hold::Claim => firm - own >= limit,
                    Hold::None => used >= limit || active >= limit,
                };
                let mut nothing = usize::MAX;
                let more = self.phase_of(name).and_then(|phase| room.get_mut(&phase)).unwrap_or(&mut nothing);
                // Where this one must wait, another that is under way already may go on.
                if full || (*more == 0 && *hold == Hold::None) {
                    continue;
                }
                if left == 0 {
                    break;
                }
                let added = usize::from(self.add_intent(name, true, change, &mut left, now, |_| true));
                let new = added * usize::from(*hold == Hold::None);
                *more -= new;
                used += new;
                active += added * (1 - own);
                firm += added * usize::from(*hold != Hold::Firm) * (1 - own);
            }
        }
        self.intend_heals((wanted, open), &mut room, change, &mut left, now);
    }

    /// How many slots of a step the change gives back, of those held by such.
    fn released(&self, step: usize, change: &Change, such: impl Fn(&Share) -> bool) -> usize {
        let released = change.rows.iter().filter(|row| {
            let app = self.names.get(&row.id).and_then(|name| self.apps.get(name));
            let share = app.and_then(|app| app.share.as_ref());
            let counts =
                share.is_some_and(|share| share.step == Some(step) && share.uses_slot && such(share));
            counts && !row.slot && self.head.row(row.id).is_some_and(|before| before.slot)
        });
        released.count()
    }

    /// Whether what is intended for an Application is what its phase does not let through any more.
    fn is_held_back(&self, name: &str, row: &Row) -> bool {
        row.intent.is_some_and(Intent::begins) && self.shut(name).is_some()
    }

    pub(super) fn is_active(&self, name: &Arc<str>) -> bool {
        self.apps.get(name).and_then(|app| app.share.as_ref()).is_some_and(|share| share.active)
    }

    pub(super) fn is_overwhelmed(&self, step: usize, wanted: &Wanted) -> bool {
        let (Some(plan), Some(count)) = (wanted.steps.get(step), self.tally.steps.get(step)) else {
            return false;
        };
        plan.max_failures.is_some_and(|share| count.failed + count.tolerated > share.of(count.total))
    }

    pub(super) fn intend_heals(
        &self,
        (wanted, open): (&Wanted, usize),
        room: &mut BTreeMap<PhaseKey, usize>,
        change: &mut Change,
        left: &mut usize,
        now: Timestamp,
    ) {
        for name in &self.healing {
            let Some(app) = self.apps.get(name) else { continue };
            let Some(ready) = app.heal.as_ref().filter(|ready| ready.not_before.is_none_or(|at| now >= at))
            else {
                continue;
            };
            let Some(row) = self.head.row(app.id) else { continue };
            let Some(step) = app.share.as_ref().and_then(|share| share.step) else { continue };
            let (Some(count), Some(plan)) = (self.tally.steps.get(step), wanted.steps.get(step)) else {
                continue;
            };
            // Whose turn has come is synced to the new pin, not healed to the old.
            let turn = row.done.is_none() && step < open && self.tally.is_reached(step);
            let touched = change.rows.iter().any(|changed| changed.id == row.id);
            let taken = change.rows.iter().filter(|changed| {
                changed.slot && self.head.row(changed.id).is_some_and(|before| !before.slot)
            });
            let used = count.used + taken.count();
            let mut nothing = usize::MAX;
            let more = self.phase_of(name).and_then(|phase| room.get_mut(&phase)).unwrap_or(&mut nothing);
            let full = used >= plan.limit(count.total) || *more == 0;
            if turn
                || touched
                || plan.is_held()
                || *left == 0
                || (!row.slot && full && holds(Rule::HealsTakeSlots))
            {
                continue;
            }
            *left -= 1;
            *more = more.saturating_sub(usize::from(!row.slot));
            let since = now.as_second();
            change.rows.push(Row {
                intent: Some(ready.intent),
                n: row.n + 1,
                slot: true,
                since,
                taken: if row.slot { row.taken } else { row.n + 1 },
                ..row.clone()
            });
        }
    }

    /// Adds what an Application is ready for to the change, where it is of the kind asked for.
    pub(super) fn add_intent(
        &self,
        name: &Arc<str>,
        slot: bool,
        change: &mut Change,
        left: &mut usize,
        now: Timestamp,
        fits: impl Fn(Intent) -> bool,
    ) -> bool {
        let Some(app) = self.apps.get(name) else { return false };
        let Outcome::Ready(ready) = &app.outcome else { return false };
        let Some(row) = self.head.row(app.id).filter(|_| fits(ready.intent) && *left > 0) else {
            return false;
        };
        if change.rows.iter().any(|changed| changed.id == row.id) {
            return false;
        }
        *left -= 1;
        let takes = slot && !row.slot;
        let taken = if takes { row.n + 1 } else { row.taken };
        // A claim becomes firm, and who begins in this run has all the time that its step allows.
        let since = if slot && (takes || row.since == 0 || row.intent.is_none()) {
            now.as_second()
        } else {
            row.since
        };
        let row = Row {
            intent: Some(ready.intent),
            n: row.n + 1,
            slot: row.slot || slot,
            since,
            taken,
            begun: row.begun || ready.intent.begins(),
            ..row.clone()
        };
        change.rows.push(row);
        true
    }
}

/// Number of the last write of a rollout of this set that landed on an Application. The operations it began tell as much
/// as its own mark, which people can take away.
pub(super) fn landed(live: &Live, set: &str) -> u64 {
    live.stamps().filter(|stamp| *stamp.set == *set).map(|stamp| stamp.n).max().unwrap_or(0)
}
