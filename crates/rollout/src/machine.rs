//! The machine of a rollout: it is fed with what is seen, and tells what to do next.
//!
//! # How it is driven
//! The shell keeps one machine per set and repeats: feed what is new, then [`Machine::decide`], then do what it says,
//! in this order: resolve, list, store the change of the head (compare-and-swap), write. Nothing in
//! [`Decision::writes`] may be done while [`Decision::change`] is not stored; `decide` never gives writes whose intent
//! is not in the stored head. After each of these steps the machine is told the outcome and asked again. When a
//! decision asks for nothing, the pass is over until something is seen or [`Decision::wake`].

mod consensus;
mod course;
mod evaluate;
mod exchange;
mod gates;
mod intents;
mod judging;
#[cfg(test)]
mod news;
mod succession;
mod tally;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_rules::{Rule, holds};
use jiff::{SignedDuration, Timestamp};

use crate::blocker::Reason;
use crate::head::{Change, Done, Head, Intent, Opening, Row, Run};
use crate::live::{Live, Operation};
use crate::pin::{Fingerprint, Pin, Resolution, SourceKey};
use evaluate::{Asked, Outcome, Ready, Wait};
use tally::{Hold, Share, Tally};

pub use exchange::{Back, Control, Decision, Member, Progress, Status, Wanted, Write};
pub use gates::{Gate, Gates, Mark, PhaseKey, PhaseStanding, PhaseWait};

/// Most intents that one change of the head may hold.
const BATCH: usize = 200;
/// How often revisions are resolved without being asked to.
const POLL: SignedDuration = SignedDuration::from_secs(180);
/// How soon a revision is resolved again after an error.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// How soon a revision is resolved again after an Application reported another.
const DOUBT: SignedDuration = SignedDuration::from_secs(1);
/// A new run waits until nothing has changed for so long …
const QUIET: SignedDuration = SignedDuration::from_millis(300);
/// … but no longer than this.
const RESTLESS: SignedDuration = SignedDuration::from_secs(2);
/// A run begun anew so often without an end is said to starve.
const STARVED: u64 = 5;

/// Since when an outcome lasts that was never judged.
const NEVER: Timestamp = Timestamp::UNIX_EPOCH;

/// Decides for one set.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    head: Head,
    /// What is followed.
    wanted: Option<Wanted>,
    /// Whether something newer waits for the run to end.
    holds_back: bool,
    /// Since when a person holds the rollout.
    paused_since: Option<Timestamp>,
    /// The highest number of a run that is known to have been, whatever the head says.
    highest_run: u64,
    apps: BTreeMap<Arc<str>, App>,
    names: BTreeMap<Fingerprint, Arc<str>>,
    resolutions: BTreeMap<SourceKey, Resolving>,
    /// When to resolve which revision; those never asked for come first.
    polls: BTreeSet<(Option<Timestamp>, SourceKey)>,
    /// Revisions that nobody can resolve and that Applications are asked for.
    disputed: BTreeSet<SourceKey>,
    /// How many revisions are not known.
    unknown: usize,
    tally: Tally,
    /// Who may be changed, where phases have a say, and what of it is noted in the head.
    gates: Option<(Gates, Mark)>,
    /// Applications to be judged again.
    dirty: BTreeSet<Arc<str>>,
    /// When to judge which Application again.
    timers: BTreeSet<(Timestamp, Arc<str>)>,
    /// Applications that are done and not yet recorded so, or give back a slot.
    settling: BTreeSet<Arc<str>>,
    /// Applications whose intended write has not been seen to land.
    unsettled: BTreeSet<Arc<str>>,
    /// Applications whose intended write is to be made impossible, or just was.
    fenced: BTreeSet<Arc<str>>,
    /// Applications that have no row in the run.
    joining: BTreeSet<Arc<str>>,
    /// Applications whose drift is to be healed.
    healing: BTreeSet<Arc<str>>,
    /// How what is wanted differs from the run, where it was looked at since something changed.
    difference: Option<Difference>,
    /// Version of a consistent list that was just made.
    list: Option<u64>,
    /// Whether somebody who has not been seen holds a slot, so that a list is to tell whether they are there.
    strangers: bool,
    /// What makes a new run necessary, and since when it has changed.
    unrest: Option<Unrest>,
    /// How often a version older than the one known was shown.
    stale: u64,
    /// Since when what holds the set or a step, and not one Application, is in the way.
    held_since: BTreeMap<(Reason, Arc<str>), Timestamp>,
}

/// How what is wanted differs from the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Difference {
    /// Other steps, or another specification.
    content: bool,
    /// Only another revision.
    revision: bool,
}

#[derive(Debug, Clone, Copy)]
struct Unrest {
    first: Timestamp,
    last: Timestamp,
}

#[derive(Debug, Clone, Default)]
struct Resolving {
    known: Option<Resolution>,
    error: Option<String>,
    /// Since when it cannot be resolved.
    failing_since: Option<Timestamp>,
    /// When it was asked last.
    at: Option<Timestamp>,
    /// Whether something speaks for another answer by now.
    doubted: bool,
    /// A round of asking Applications, where nobody can resolve it.
    round: Option<consensus::Round>,
}

#[derive(Debug, Clone)]
struct App {
    id: Fingerprint,
    member: Option<Member>,
    /// The step it had before it left.
    left_from: Option<usize>,
    live: Option<Live>,
    /// The last version of the one that is gone.
    last_seen: u64,
    pin: Option<Pin>,
    /// Number of the write that is being made.
    in_flight: Option<u64>,
    adopted: Option<Fingerprint>,
    /// What was known when the last comparison was asked for.
    asked: Option<Asked>,
    /// How often one was asked for since something was written that may change what is found.
    asks: u32,
    heals: (u32, Option<Timestamp>),
    outcome: Outcome,
    since: Timestamp,
    /// What it waits for, over the requests for a comparison that are made meanwhile, and since when.
    named: Option<(Reason, Timestamp)>,
    status: Status,
    status_since: Timestamp,
    status_version: u64,
    share: Option<Share>,
    timer: Option<Timestamp>,
    /// What brings drift back.
    heal: Option<Ready>,
}

// === impl Machine ===

impl Machine {
    /// A machine that goes on from a head; without one, what was done is proved again.
    pub fn new(head: Option<Head>) -> Machine {
        Machine { head: head.unwrap_or_default(), ..Machine::default() }
    }

    /// A run of this number is known to have been: the next has a higher one, even if head and stamps are lost.
    pub fn runs_after(&mut self, run: u64) {
        self.highest_run = self.highest_run.max(run);
    }

    /// The head as it is stored.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// How often a version older than the one known was shown, and refused.
    pub fn stale_reads(&self) -> u64 {
        self.stale
    }

    /// The set wants this. Where a run is to be finished first, the machine goes on with what it was begun for and
    /// [holds this back](Machine::holds_back).
    pub fn wants(&mut self, wanted: Wanted, now: Timestamp) {
        let wanted = self.followed(wanted);
        if self.wanted.as_ref() == Some(&wanted) {
            return;
        }
        let keys: BTreeSet<&SourceKey> = wanted.members.values().flat_map(|member| &member.sources).collect();
        self.resolutions.retain(|key, _| keys.contains(key));
        for key in keys {
            if !self.resolutions.contains_key(key) {
                self.resolutions.insert(key.clone(), Resolving::default());
            }
        }
        self.schedule();
        if self.wanted.as_ref().map(|before| &before.steps) != Some(&wanted.steps) {
            self.tally = Tally::new(wanted.steps.len());
            self.apps.values_mut().for_each(|app| app.share = None);
        }
        for (name, app) in &mut self.apps {
            if !wanted.members.contains_key(name)
                && let Some(member) = app.member.take()
            {
                app.left_from = member.step;
            }
        }
        for (name, member) in &wanted.members {
            let app = self.apps.entry(name.clone()).or_insert_with(|| App::new(now));
            app.member = Some(member.clone());
        }
        let content = |wanted: &Wanted| (wanted.set.clone(), wanted.steps.hash, wanted.generation);
        let same = self
            .wanted
            .as_ref()
            .is_some_and(|before| content(before) == content(&wanted) && before.members == wanted.members);
        self.wanted = Some(wanted);
        self.forget_absent();
        self.look_anew();
        // What people ask for is no reason to begin anew.
        if !same {
            self.unrest(now);
        }
    }

    /// A version of an Application was seen: by the watch, by a read, or as the answer to a write.
    pub fn saw(&mut self, live: Live) {
        let name = live.name.clone();
        let app = self.apps.entry(name.clone()).or_insert_with(|| App::new(Timestamp::UNIX_EPOCH));
        // Of one before it as well: watches may tell again what was.
        let is_old = match &app.live {
            Some(known) => known.version > live.version,
            None => app.last_seen >= live.version,
        };
        if is_old && holds(Rule::NewestVersion) {
            self.stale += 1;
            return;
        }
        if app.live.as_ref().is_some_and(|known| known.uid != live.uid) {
            self.names.remove(&app.id);
            // What the one of before counts for is taken back when it is judged.
            let (member, share) = (app.member.take(), app.share.take());
            *app = App { member, share, timer: app.timer, ..App::new(app.status_since) };
        }
        let reported = app.live.as_ref().map(|known| &known.reported);
        let strange = app.pin.as_ref().is_some_and(|pin| !pin.accepts(&live.reported));
        if strange && reported.is_some_and(|reported| *reported != live.reported) {
            // It may have seen a revision that we have not.
            for key in app.member.iter().flat_map(|member| &member.sources) {
                if let Some(resolving) = self.resolutions.get_mut(key) {
                    self.polls.remove(&(resolving.next(), key.clone()));
                    resolving.doubted = true;
                    self.polls.insert((resolving.next(), key.clone()));
                }
            }
        }
        app.id = Fingerprint::of([if holds(Rule::Uids) { &*live.uid } else { &*live.name }]);
        self.names.insert(app.id, name.clone());
        let landed = live.stamp.as_ref().map_or(0, |stamp| stamp.n);
        if app.in_flight.is_some_and(|n| landed >= n) {
            let wrote_spec = self
                .head
                .row(app.id)
                // A fence in the place of such a write brings no specification.
                .is_some_and(|row| !row.fence && row.intent.is_some_and(Intent::begins));
            let differs = app.pin.as_ref().is_some_and(|pin| pin.spec != live.spec);
            if wrote_spec && differs && app.adopted.is_none() {
                app.adopted = Some(live.spec);
            }
            app.in_flight = None;
        }
        if !holds(Rule::AdoptedOnce) {
            app.adopted = Some(live.spec);
        }
        if app.asked.as_mut().is_some_and(|asked| asked.sees(&live)) {
            // Asking helped: what is asked for next is asked for anew.
            app.asks = 0;
        }
        app.live = Some(live);
        self.dirty.insert(name);
    }

    /// An Application is gone.
    pub fn gone(&mut self, name: &str, uid: &str) {
        let Some(app) = self.apps.get_mut(name) else { return };
        let Some(live) = app.live.as_ref().filter(|live| *live.uid == *uid) else { return };
        let last_seen = live.version;
        self.names.remove(&app.id);
        let kept = App {
            member: app.member.take(),
            left_from: app.left_from,
            share: app.share.take(),
            timer: app.timer,
            last_seen,
            ..App::new(app.status_since)
        };
        *app = kept;
        for set in
            [&mut self.settling, &mut self.unsettled, &mut self.fenced, &mut self.joining, &mut self.healing]
        {
            set.remove(name);
        }
        self.dirty.insert(name.into());
    }

    /// A write was refused, or nobody knows what became of it. Show the Application as it is now before or after this;
    /// the write is decided on again.
    pub fn failed(&mut self, name: &str, n: u64) {
        self.unask(name);
        if let Some(app) = self.apps.get_mut(name)
            && app.in_flight == Some(n)
        {
            app.in_flight = None;
            self.dirty.insert(name.into());
        }
    }

    /// A revision was resolved, or could not be.
    pub fn resolved(&mut self, key: &SourceKey, outcome: Result<Resolution, String>, now: Timestamp) {
        let Some(resolving) = self.resolutions.get_mut(key) else { return };
        self.polls.remove(&(resolving.next(), key.clone()));
        resolving.at = Some(now);
        let doubtful = resolving.known.is_none() || resolving.doubted;
        resolving.doubted = false;
        let (mut changed, mut failed) = (false, false);
        match outcome {
            Ok(resolution) => {
                (resolving.error, resolving.failing_since) = (None, None);
                changed = resolving.known.as_ref() != Some(&resolution);
                self.unknown -= usize::from(resolving.known.is_none());
                resolving.known = Some(resolution);
            }
            Err(error) => {
                // Asked once where nothing is known; after that only when an Application reports something else.
                failed = doubtful && (resolving.error.is_none() || resolving.known.is_some());
                resolving.error = Some(error);
                resolving.failing_since = resolving.failing_since.or(Some(now));
            }
        }
        self.polls.insert((resolving.next(), key.clone()));
        if failed {
            self.dispute(key);
        }
        if changed {
            self.look_anew();
            self.unrest(now);
        }
    }

    /// Somebody says that revisions may be others by now: they are resolved anew.
    pub fn doubt_revisions(&mut self) {
        self.resolutions.values_mut().for_each(|resolving| resolving.doubted = true);
        self.schedule();
    }

    /// A consistent list shows these Applications and no others.
    pub fn listed(&mut self, version: u64, all: Vec<Live>) {
        let shown: BTreeSet<Arc<str>> = all.iter().map(|live| live.name.clone()).collect();
        let unseen = self.apps.iter().filter(|(name, _)| !shown.contains(*name));
        let unseen = unseen.filter_map(|(name, app)| Some((name, app.live.as_ref()?)));
        // Who came after the list was made is not in it.
        let unseen = unseen.filter(|(_, live)| live.version <= version);
        let unseen: Vec<(Arc<str>, Arc<str>)> =
            unseen.map(|(name, live)| (name.clone(), live.uid.clone())).collect();
        for (name, uid) in unseen {
            self.gone(&name, &uid);
        }
        all.into_iter().for_each(|live| self.saw(live));
        (self.list, self.strangers) = (Some(version), false);
    }

    /// A change of the head was stored.
    pub fn stored(&mut self, change: &Change) {
        // Who joins may join at a revision that is no longer the newest.
        if change.rows.iter().any(|row| self.head.row(row.id).is_none()) {
            self.difference = None;
        }
        self.head.apply(change);
        if change.anew {
            self.unrest = None;
            self.apps.values_mut().for_each(App::begin_anew);
            self.look_anew();
        }
        let run = change.run.is_some();
        for row in &change.rows {
            if let Some(name) = self.names.get(&row.id) {
                self.dirty.insert(name.clone());
            }
        }
        if run && (change.anew || self.gates.is_some()) {
            self.dirty.extend(self.apps.keys().cloned());
        }
    }

    /// Somebody else changed the head: this is what it is now.
    pub fn reload(&mut self, head: Option<Head>) {
        self.runs_after(self.head.run.seq);
        let before = self.head.run.seq;
        self.head = head.unwrap_or_default();
        if self.head.run.seq != before {
            // What was believed of one run is not of another.
            self.apps.values_mut().for_each(App::begin_anew);
        }
        self.list = None;
        let is_stranger = |row: &Row| row.slot && !self.names.contains_key(&row.id);
        self.strangers = self.head.rows().iter().any(is_stranger) && holds(Rule::SlotsAreKept);
        self.apps.values_mut().for_each(|app| app.in_flight = None);
        // Whoever changed it may have seen newer revisions than we: what is known here is not held against the run
        // before it was asked for anew.
        for (key, resolving) in &mut self.resolutions {
            if let Some(theirs) = self.head.revisions.get(key)
                && resolving.known.as_ref() != Some(theirs)
            {
                resolving.known = Some(theirs.clone());
                resolving.doubted = true;
            }
        }
        self.schedule();
        self.look_anew();
    }

    /// What to do next.
    pub fn decide(&mut self, now: Timestamp) -> Decision {
        let list = self.list.take();
        let Some(wanted) = self.wanted.take() else { return Decision::default() };
        let mut decision = self.decide_for(&wanted, list, now);
        decision.resolve = self.to_resolve(now);
        decision.wake = self.wake(&wanted, now);
        self.note_holds(&wanted, now);
        self.wanted = Some(wanted);
        decision
    }

    fn decide_for(&mut self, wanted: &Wanted, list: Option<u64>, now: Timestamp) -> Decision {
        self.judge_due(wanted, now);
        let paused = wanted.control.paused || self.head.run.paused;
        self.paused_since = paused.then(|| self.paused_since.unwrap_or(now));
        if let Some(change) = self.granted(wanted) {
            return Decision { change: Some(change), ..Decision::default() };
        }
        if self.is_behind_gates() {
            return Decision::default();
        }
        if let Some(change) = self.note_gates() {
            return Decision { change: Some(change), ..Decision::default() };
        }
        let superseded = self.is_superseded(wanted);
        match superseded {
            true if self.unrest.is_none() => self.unrest(now),
            false if self.is_calm(now) => self.unrest = None,
            _ => {}
        }
        // What is not known to be wanted is not begun; what was may be wrong by now.
        let held = paused || wanted.frozen.is_some();
        let stopped = held || superseded || self.head.run.aborted || self.is_outdated(wanted);
        // What was intended and has not landed is settled before anything else: made where the run goes on, and made
        // impossible where it does not.
        let settling = self.fences(stopped);
        if settling.is_some() {
            return Decision { change: settling, ..Decision::default() };
        }
        let writes = self.writes(stopped, now);
        if !writes.is_empty() {
            return Decision { writes, ..Decision::default() };
        }
        if !held && !self.disputed.is_empty() {
            let writes = self.ask_for_revisions(wanted, now);
            if !writes.is_empty() {
                return Decision { writes, ..Decision::default() };
            }
        }
        if superseded {
            // What a lost head intended is made impossible also where people hold all: nothing more is to start then.
            let held = held && (wanted.frozen.is_some() || !self.has_lost_head(wanted));
            let begins = !held && wanted.fuse.is_none() && self.is_resolved() && self.is_calm(now);
            return match (begins && self.unsettled.is_empty(), list) {
                (true, None) => Decision { list: true, ..Decision::default() },
                (true, Some(version)) => {
                    let change = Some(self.begin(wanted, version, now));
                    Decision { change, ..Decision::default() }
                }
                (false, _) => Decision::default(),
            };
        }
        if self.strangers {
            // Whoever changed the head has seen more Applications than we.
            return Decision { list: true, ..Decision::default() };
        }
        let mut change = Change::default();
        self.record(wanted, &mut change, now);
        if !stopped && wanted.fuse.is_none() {
            self.join(wanted, &mut change);
            self.close_early(&mut change);
            self.intend(wanted, &mut change, now);
            let may_open = self.may_open(wanted, &change, now);
            match list {
                Some(version) if may_open => self.open(wanted, version, &mut change, now),
                None if may_open && !holds(Rule::ConsistentList) => {
                    let versions =
                        self.apps.values().filter_map(|app| app.live.as_ref()).map(|live| live.version);
                    self.open(wanted, versions.max().unwrap_or_default(), &mut change, now);
                }
                None if may_open && change == Change::default() => {
                    return Decision { list: true, ..Decision::default() };
                }
                _ => {}
            }
            self.finish(wanted, &mut change, now);
        }
        Decision { change: Some(change).filter(|change| *change != Change::default()), ..Decision::default() }
    }

    /// Notes anew which revisions are not known, and when each is to be resolved.
    fn schedule(&mut self) {
        self.disputed.retain(|key| self.resolutions.contains_key(key));
        self.unknown = self.resolutions.values().filter(|resolving| resolving.known.is_none()).count();
        self.polls =
            self.resolutions.iter().map(|(key, resolving)| (resolving.next(), key.clone())).collect();
    }

    /// Everything may mean something else now.
    fn look_anew(&mut self) {
        self.difference = None;
        self.apps.values_mut().for_each(|app| app.pin = None);
        self.dirty.extend(self.apps.keys().cloned());
    }

    /// Forgets Applications that are neither wanted nor there.
    fn forget_absent(&mut self) {
        let absent = self.apps.iter().filter(|(_, app)| app.member.is_none() && app.live.is_none());
        let absent: Vec<Arc<str>> = absent.map(|(name, _)| name.clone()).collect();
        for name in absent {
            self.forget(&name);
        }
    }

    fn forget(&mut self, name: &Arc<str>) {
        let Some(app) = self.apps.remove(name) else { return };
        if let Some(share) = &app.share {
            self.tally.remove(name, share);
        }
        if let Some(timer) = app.timer {
            self.timers.remove(&(timer, name.clone()));
        }
        for set in [
            &mut self.settling,
            &mut self.unsettled,
            &mut self.fenced,
            &mut self.joining,
            &mut self.healing,
            &mut self.dirty,
        ] {
            set.remove(name);
        }
        self.names.remove(&app.id);
    }

    /// Something changed that a new run may be for. What the others' revisions are by now is asked too, so that what
    /// changed at the same moment goes in the same run.
    fn unrest(&mut self, now: Timestamp) {
        let first = self.unrest.map(|unrest| unrest.first);
        self.unrest = Some(Unrest { first: first.unwrap_or(now), last: now });
        if first.is_none() {
            let older = |resolving: &&mut Resolving| resolving.at.is_some_and(|at| at < now);
            self.resolutions.values_mut().filter(older).for_each(|resolving| resolving.doubted = true);
            self.schedule();
        }
    }

    fn calm_at(&self) -> Option<Timestamp> {
        let unrest = self.unrest?;
        let quiet = unrest.last.saturating_add(QUIET).unwrap_or(unrest.last);
        let enough = unrest.first.saturating_add(RESTLESS).unwrap_or(unrest.first);
        Some(quiet.min(enough))
    }

    fn is_calm(&self, now: Timestamp) -> bool {
        self.calm_at().is_none_or(|calm| now >= calm)
    }

    /// Whether every revision is known, and was asked for since something changed.
    fn is_resolved(&self) -> bool {
        let first = self.unrest.map_or(Timestamp::MIN, |unrest| unrest.first);
        let is_fresh = |resolving: &Resolving| resolving.at.is_some_and(|at| at >= first);
        self.unknown == 0 && self.resolutions.values().all(is_fresh)
    }

    /// Whether the run is not what is wanted, and a newer one is to begin.
    fn is_superseded(&mut self, wanted: &Wanted) -> bool {
        let run = &self.head.run;
        if run.seq == 0 || *run.set != *wanted.set {
            return true;
        }
        if self.is_outdated(wanted) {
            return false;
        }
        if run.strategy != wanted.steps.hash {
            return true;
        }
        let difference = match self.difference {
            Some(difference) => difference,
            None => self.differ(),
        };
        self.difference = Some(difference);
        difference.content || (difference.revision && !self.finishes(wanted) && holds(Rule::OneRevision))
    }

    /// Whether the set is known here as it was before the run: another leader has seen more.
    fn is_outdated(&self, wanted: &Wanted) -> bool {
        *self.head.run.set == *wanted.set && wanted.generation < self.head.run.generation
    }

    fn differ(&self) -> Difference {
        let mut difference = Difference::default();
        for app in self.apps.values() {
            let Some(member) = &app.member else { continue };
            let newest = |key: &SourceKey| self.resolutions.get(key)?.known.clone();
            let of_run = |key: &SourceKey| self.head.revisions.get(key).cloned();
            let Some(row) = self.head.row(app.id) else {
                // It has not come to be yet; what it is to be synced to may have moved on all the same.
                let (next, own) = (pin_of(member, newest), pin_of(member, of_run));
                difference.revision |=
                    matches!((next, own), (Some(next), Some(own)) if next.hash != own.hash);
                continue;
            };
            if pin_of(member, newest).is_none_or(|pin| pin.hash == row.pin) {
                continue;
            }
            match pin_of(member, of_run) {
                Some(pin) if pin.hash == row.pin => difference.revision = true,
                _ => difference.content = true,
            }
        }
        difference
    }

    /// What an Application is to be in this run.
    fn pin(&self, member: &Member) -> Option<Pin> {
        let known = |key: &SourceKey| {
            let resolving = || self.resolutions.get(key)?.known.clone();
            let of_run = self.head.revisions.get(key).cloned().filter(|_| holds(Rule::OneRevision));
            of_run.or_else(resolving)
        };
        pin_of(member, known)
    }

    /// What the set wants of an Application in this run, also of one that goes back to something else; none where that
    /// is not known.
    pub fn wanted_pin(&self, name: &str) -> Option<Pin> {
        let member = self.apps.get(name)?.member.as_ref()?;
        self.pin(&Member { back: None, ..member.clone() })
    }

    fn to_resolve(&self, now: Timestamp) -> Vec<SourceKey> {
        let due = self.polls.iter().take_while(|(at, _)| at.is_none_or(|at| now >= at));
        due.map(|(_, key)| key.clone()).collect()
    }

    fn wake(&self, wanted: &Wanted, now: Timestamp) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(at, _)| *at);
        // Whatever is due by now has been asked for.
        let poll = self.polls.iter().filter_map(|(at, _)| *at).find(|at| *at > now);
        let all = [timer, poll, self.calm_at(), self.soaked_at(wanted, &self.head.run)];
        all.into_iter().flatten().filter(|at| *at > now && *at < Timestamp::MAX).min()
    }
}

/// What an Application is to be, its revisions looked up.
fn pin_of(member: &Member, revision: impl Fn(&SourceKey) -> Option<Resolution>) -> Option<Pin> {
    let sources = member.sources.iter().map(revision).collect::<Option<Vec<_>>>()?;
    let pin = Pin::new(member.spec.unwrap_or_default(), sources);
    Some(match &member.back {
        Some(back) => pin.instead(back.spec, &back.revisions),
        None => pin,
    })
}

fn outcome(reason: Reason, message: impl Into<String>) -> Outcome {
    Outcome::Wait(Wait { reason, message: message.into(), failed: false, wake: None })
}

// === impl Resolving ===

impl Resolving {
    /// When it is to be asked; none is now.
    fn next(&self) -> Option<Timestamp> {
        let at = self.at?;
        let pause = match (&self.known, &self.error, self.doubted) {
            (None, ..) | (_, Some(_), _) => LOOK_AGAIN,
            (_, _, true) => DOUBT,
            _ => POLL,
        };
        Some(at.saturating_add(pause).unwrap_or(Timestamp::MAX))
    }
}

// === impl App ===

impl App {
    /// Another run begins: what was borne and believed in the one before counts no more.
    fn begin_anew(&mut self) {
        (self.adopted, self.asks, self.heals) = (None, 0, (0, None));
    }

    fn new(now: Timestamp) -> App {
        App {
            id: Fingerprint::default(),
            member: None,
            left_from: None,
            live: None,
            last_seen: 0,
            pin: None,
            in_flight: None,
            adopted: None,
            asked: None,
            asks: 0,
            heals: (0, None),
            outcome: outcome(Reason::Missing, "the Application is not there yet"),
            since: NEVER,
            named: None,
            status: Status::Waiting,
            status_since: now,
            status_version: 0,
            share: None,
            timer: None,
            heal: None,
        }
    }
}
