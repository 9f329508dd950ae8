//! The machine of a rollout: it is fed with what is seen, and tells what to do next.
//!
//! # How it is driven
//! The shell keeps one machine per set and repeats: feed what is new, then [`Machine::decide`], then do what it says,
//! in this order: resolve, list, store the change of the head (compare-and-swap), write. Nothing in
//! [`Decision::writes`] may be done while [`Decision::change`] is not stored; `decide` never gives writes whose intent
//! is not in the stored head. After each of these steps the machine is told the outcome and asked again. When a
//! decision asks for nothing, the pass is over until something is seen or [`Decision::wake`].

mod evaluate;
mod tally;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::blocker::{Blocker, Reason};
use crate::head::{Change, Done, Head, Intent, Opening, Row, Run};
use crate::live::Live;
use crate::pin::{Fingerprint, Pin, Resolution, SourceKey};
use crate::stamp::Stamp;
use crate::steps::Steps;
use evaluate::{Case, Outcome, Ready, Wait};
use tally::{Share, Tally};

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

/// What a set wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// UID of the set.
    pub set: Arc<str>,
    /// The steps.
    pub steps: Steps,
    /// The Applications by name.
    pub members: BTreeMap<Arc<str>, Member>,
    /// Why it is not known who belongs to the set, where it is not: membership then stays as it was.
    pub frozen: Option<Arc<str>>,
    /// Why Applications that left may not be deleted yet, where a mass deletion waits for approval.
    pub fuse: Option<Arc<str>>,
    /// Whether Applications that left stay, since the set's policy deletes none: then nobody waits for them to go.
    pub keeps_leavers: bool,
    /// What people ask for.
    pub control: Control,
}

/// One Application a set wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its step, counted from 0; none where no step holds it.
    pub step: Option<usize>,
    /// Of the wanted specification, made comparable as [`Live::spec`]; none where the live one is wanted, since the
    /// set's policy allows no update.
    pub spec: Option<Fingerprint>,
    /// The sources, in order.
    pub sources: Vec<SourceKey>,
    /// Whether drift is healed.
    pub self_heal: bool,
}

/// What people ask for, by annotations on the set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Control {
    /// Nothing more is written.
    pub paused: bool,
    /// A request to end the run, told from others by its text.
    pub abort: Option<Arc<str>>,
    /// A request to try again what failed, told from others by its text.
    pub retry: Option<Arc<str>>,
    /// Applications that count as done at this pin.
    pub skip: BTreeMap<Arc<str>, Fingerprint>,
    /// Whether a run is finished before a newer one begins.
    pub finish: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// Revisions to resolve anew; answer each with [`Machine::resolved`].
    pub resolve: Vec<SourceKey>,
    /// Whether a consistent list of the set's Applications is needed; answer with [`Machine::listed`].
    pub list: bool,
    /// What to change in the head; answer with [`Machine::stored`], or [`Machine::reload`] where it was changed by
    /// somebody else.
    pub change: Option<Change>,
    /// What to write; answer each with [`Machine::saw`] and the state the API answered with, or [`Machine::failed`].
    pub writes: Vec<Write>,
    /// When to ask again though nothing was seen.
    pub wake: Option<Timestamp>,
}

/// One write to an Application, under its UID and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// The version it was decided on.
    pub version: u64,
    /// What to write.
    pub what: Intent,
    /// The stamp that goes with it.
    pub stamp: Stamp,
    /// Whether the wanted specification is written too.
    pub spec: bool,
    /// Revisions of the operation, one per source.
    pub revisions: Vec<Arc<str>>,
    /// Value for `refresh-timestamp`, where a comparison is asked for.
    pub nonce: Option<Arc<str>>,
}

/// How far an Application is, in Argo CD's words and in ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Its step, counted from 0.
    pub step: Option<usize>,
    /// How far it is.
    pub status: Status,
    /// In words.
    pub message: String,
    /// The revisions it is to have.
    pub revisions: Vec<Arc<str>>,
    /// Version of the object that the last transition rests on.
    pub version: u64,
    /// When it came to this status.
    pub since: Timestamp,
    /// What it waits for.
    pub blocker: Option<Blocker>,
    /// Its pin.
    pub pin: Option<Fingerprint>,
}

/// Argo CD's four words for how far an Application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Its turn has not come.
    Waiting,
    /// Its turn has come; its operation is about to begin.
    Pending,
    /// It is under way.
    Progressing,
    /// It is done.
    Healthy,
}

/// Decides for one set.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    head: Head,
    wanted: Option<Wanted>,
    apps: BTreeMap<Arc<str>, App>,
    names: BTreeMap<Fingerprint, Arc<str>>,
    resolutions: BTreeMap<SourceKey, Resolving>,
    /// When to resolve which revision; those never asked for come first.
    polls: BTreeSet<(Option<Timestamp>, SourceKey)>,
    /// How many revisions are not known.
    unknown: usize,
    tally: Tally,
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
    /// What makes a new run necessary, and since when it has changed.
    unrest: Option<Unrest>,
    /// How often a version older than the one known was shown.
    stale: u64,
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
    /// When it was asked last.
    at: Option<Timestamp>,
    /// Whether something speaks for another answer by now.
    doubted: bool,
}

#[derive(Debug, Clone)]
struct App {
    id: Fingerprint,
    member: Option<Member>,
    /// The step it had before it left.
    left_from: Option<usize>,
    live: Option<Live>,
    pin: Option<Pin>,
    /// Number of the write that is being made.
    in_flight: Option<u64>,
    adopted: Option<Fingerprint>,
    /// Number of the operation whose success was seen, and whether that version did not fit.
    success: Option<(u64, bool)>,
    heals: (u32, Option<Timestamp>),
    outcome: Outcome,
    since: Timestamp,
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

    /// The head as it is stored.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// How often a version older than the one known was shown, and refused.
    pub fn stale_reads(&self) -> u64 {
        self.stale
    }

    /// The set wants this.
    pub fn wants(&mut self, wanted: Wanted, now: Timestamp) {
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
        self.unknown = self.resolutions.values().filter(|resolving| resolving.known.is_none()).count();
        self.polls =
            self.resolutions.iter().map(|(key, resolving)| (resolving.next(), key.clone())).collect();
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
        self.wanted = Some(wanted);
        self.forget_absent();
        self.look_anew();
        self.unrest(now);
    }

    /// A version of an Application was seen: by the watch, by a read, or as the answer to a write.
    pub fn saw(&mut self, live: Live) {
        let name = live.name.clone();
        let app = self.apps.entry(name.clone()).or_insert_with(|| App::new(Timestamp::UNIX_EPOCH));
        if let Some(known) = &app.live {
            if known.uid == live.uid && known.version > live.version {
                self.stale += 1;
                return;
            }
            if known.uid != live.uid {
                self.names.remove(&app.id);
                *app = App { member: app.member.take(), ..App::new(app.status_since) };
            }
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
        app.id = Fingerprint::of([&*live.uid]);
        self.names.insert(app.id, name.clone());
        let landed = live.stamp.as_ref().map_or(0, |stamp| stamp.n);
        if app.in_flight.is_some_and(|n| landed >= n) {
            let wrote_spec = self
                .head
                .row(app.id)
                .is_some_and(|row| matches!(row.intent, Some(Intent::Start | Intent::Spec)));
            let differs = app.pin.as_ref().is_some_and(|pin| pin.spec != live.spec);
            if wrote_spec && differs && app.adopted.is_none() {
                app.adopted = Some(live.spec);
            }
            app.in_flight = None;
        }
        app.live = Some(live);
        self.dirty.insert(name);
    }

    /// An Application is gone.
    pub fn gone(&mut self, name: &str, uid: &str) {
        let Some(app) = self.apps.get_mut(name) else { return };
        if app.live.as_ref().is_none_or(|live| *live.uid != *uid) {
            return;
        }
        self.names.remove(&app.id);
        let kept = App {
            member: app.member.take(),
            left_from: app.left_from,
            share: app.share.take(),
            timer: app.timer,
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
        resolving.doubted = false;
        let mut changed = false;
        match outcome {
            Ok(resolution) => {
                resolving.error = None;
                changed = resolving.known.as_ref() != Some(&resolution);
                self.unknown -= usize::from(resolving.known.is_none());
                resolving.known = Some(resolution);
            }
            Err(error) => resolving.error = Some(error),
        }
        self.polls.insert((resolving.next(), key.clone()));
        if changed {
            self.look_anew();
            self.unrest(now);
        }
    }

    /// Somebody says that revisions may be others by now: they are resolved anew.
    pub fn doubt_revisions(&mut self) {
        self.resolutions.values_mut().for_each(|resolving| resolving.doubted = true);
        self.polls =
            self.resolutions.iter().map(|(key, resolving)| (resolving.next(), key.clone())).collect();
    }

    /// A consistent list shows these Applications and no others.
    pub fn listed(&mut self, version: u64, all: Vec<Live>) {
        let shown: BTreeSet<Arc<str>> = all.iter().map(|live| live.name.clone()).collect();
        let unseen = self.apps.iter().filter(|(name, _)| !shown.contains(*name));
        let unseen: Vec<(Arc<str>, Arc<str>)> =
            unseen.filter_map(|(name, app)| Some((name.clone(), app.live.as_ref()?.uid.clone()))).collect();
        for (name, uid) in unseen {
            self.gone(&name, &uid);
        }
        all.into_iter().for_each(|live| self.saw(live));
        self.list = Some(version);
    }

    /// A change of the head was stored.
    pub fn stored(&mut self, change: &Change) {
        self.head.apply(change);
        if change.anew {
            self.unrest = None;
            self.apps.values_mut().for_each(|app| {
                (app.adopted, app.success, app.heals) = (None, None, (0, None));
            });
            self.look_anew();
        }
        let run = change.run.is_some();
        for row in &change.rows {
            if let Some(name) = self.names.get(&row.id) {
                self.dirty.insert(name.clone());
            }
        }
        if run && change.anew {
            self.dirty.extend(self.apps.keys().cloned());
        }
    }

    /// Somebody else changed the head: this is what it is now.
    pub fn reload(&mut self, head: Option<Head>) {
        self.head = head.unwrap_or_default();
        self.list = None;
        self.apps.values_mut().for_each(|app| app.in_flight = None);
        self.look_anew();
    }

    /// What to do next.
    pub fn decide(&mut self, now: Timestamp) -> Decision {
        let list = self.list.take();
        let Some(wanted) = self.wanted.take() else { return Decision::default() };
        let mut decision = self.decide_for(&wanted, list, now);
        decision.resolve = self.to_resolve(now);
        decision.wake = self.wake(&wanted, now);
        self.wanted = Some(wanted);
        decision
    }

    fn decide_for(&mut self, wanted: &Wanted, list: Option<u64>, now: Timestamp) -> Decision {
        self.judge_due(wanted, now);
        if let Some(change) = self.granted(wanted) {
            return Decision { change: Some(change), ..Decision::default() };
        }
        let superseded = self.is_superseded(wanted);
        if superseded && self.unrest.is_none() {
            self.unrest(now);
        }
        let paused = wanted.control.paused || self.head.run.paused;
        let stopped = paused || superseded || self.head.run.aborted;
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
        if superseded {
            let begins = !paused && wanted.fuse.is_none() && self.is_resolved() && self.is_calm(now);
            return match (begins && self.unsettled.is_empty(), list) {
                (true, None) => Decision { list: true, ..Decision::default() },
                (true, Some(version)) => {
                    let change = Some(self.begin(wanted, version, now));
                    Decision { change, ..Decision::default() }
                }
                (false, _) => Decision::default(),
            };
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
                None if may_open && change == Change::default() => {
                    return Decision { list: true, ..Decision::default() };
                }
                _ => {}
            }
            self.finish(wanted, &mut change, now);
        }
        Decision { change: Some(change).filter(|change| *change != Change::default()), ..Decision::default() }
    }

    // --- what is known -----------------------------------------------------------------------------------------

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

    fn unrest(&mut self, now: Timestamp) {
        let first = self.unrest.map_or(now, |unrest| unrest.first);
        self.unrest = Some(Unrest { first, last: now });
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

    fn is_resolved(&self) -> bool {
        self.unknown == 0
    }

    /// Whether the run is not what is wanted, and a newer one is to begin.
    fn is_superseded(&mut self, wanted: &Wanted) -> bool {
        let run = &self.head.run;
        if run.seq == 0 || *run.set != *wanted.set || run.strategy != wanted.steps.hash {
            return true;
        }
        let difference = match self.difference {
            Some(difference) => difference,
            None => self.differ(),
        };
        self.difference = Some(difference);
        let finishes = wanted.control.finish && self.head.run.finished.is_none() && !self.head.run.aborted;
        difference.content || (difference.revision && !finishes)
    }

    fn differ(&self) -> Difference {
        let mut difference = Difference::default();
        for app in self.apps.values() {
            let (Some(member), Some(row)) = (&app.member, self.head.row(app.id)) else { continue };
            let newest = |key: &SourceKey| self.resolutions.get(key)?.known.clone();
            let of_run = |key: &SourceKey| self.head.revisions.get(key).cloned();
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
            self.head.revisions.get(key).cloned().or_else(resolving)
        };
        pin_of(member, known)
    }

    fn to_resolve(&self, now: Timestamp) -> Vec<SourceKey> {
        let due = self.polls.iter().take_while(|(at, _)| at.is_none_or(|at| now >= at));
        due.map(|(_, key)| key.clone()).collect()
    }

    // --- judging -----------------------------------------------------------------------------------------------

    fn judge_due(&mut self, wanted: &Wanted, now: Timestamp) {
        while let Some((at, name)) = self.timers.first().cloned().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, name.clone()));
            if let Some(app) = self.apps.get_mut(&name) {
                app.timer = None;
            }
            self.dirty.insert(name);
        }
        while let Some(name) = self.dirty.pop_first() {
            self.judge(wanted, &name, now);
        }
    }

    fn judge(&mut self, wanted: &Wanted, name: &Arc<str>, now: Timestamp) {
        let Some(mut app) = self.apps.remove(name) else { return };
        if let Some(share) = app.share.take() {
            self.tally.remove(name, &share);
        }
        if let Some(timer) = app.timer.take() {
            self.timers.remove(&(timer, name.clone()));
        }
        for set in
            [&mut self.settling, &mut self.unsettled, &mut self.fenced, &mut self.joining, &mut self.healing]
        {
            set.remove(name);
        }
        if app.member.is_none() && (app.live.is_none() || wanted.keeps_leavers) {
            // It left and is gone, or nobody waits for it to go.
            if app.live.is_some() {
                app.outcome = outcome(Reason::Leaving, "it is no longer wanted and stays");
                self.apps.insert(name.clone(), app);
            } else {
                self.names.remove(&app.id);
            }
            return;
        }
        if app.pin.is_none() {
            app.pin = app.member.as_ref().and_then(|member| self.pin(member));
        }
        let row = app.live.is_some().then(|| self.head.row(app.id)).flatten();
        let step = app.member.as_ref().map_or(app.left_from.or(Some(0)), |member| member.step);
        let plan = step.and_then(|step| wanted.steps.get(step));
        let mut heal = None;
        let (mut judged, mut wake) = (outcome(Reason::Leaving, "it is no longer wanted"), None);
        let (mut armed, mut entered) = (true, false);
        match (&app.member, &app.live, &app.pin, row) {
            (None, ..) => {}
            (Some(_), None, ..) => judged = outcome(Reason::Missing, "the Application is not there yet"),
            (Some(member), _, None, _) => {
                judged = outcome(Reason::RevisionUnresolved, self.unresolved(member));
            }
            (Some(_), Some(_), Some(_), None) => {
                judged = outcome(Reason::WaitingForStep, "it joins the rollout");
                self.joining.insert(name.clone());
            }
            (Some(member), Some(live), Some(pin), Some(row)) => {
                let mut case = Case {
                    live,
                    row,
                    pin,
                    run: self.head.run.seq,
                    set: &wanted.set,
                    held: plan.is_some_and(|plan| plan.is_held()),
                    ordered: plan.is_some(),
                    self_heal: member.self_heal,
                    skipped: wanted.control.skip.get(name) == Some(&row.pin),
                    adopted: app.adopted,
                    unfit_at_success: false,
                    heals: app.heals,
                    since: app.since,
                    now,
                };
                if let Some(n) = case.shown_success()
                    && app.success.is_none_or(|(seen, _)| seen != n)
                {
                    app.success = Some((n, !case.fits()));
                }
                case.unfit_at_success = app.success.is_some_and(|(_, unfit)| unfit);
                judged = case.judge();
                if kind(&judged) != kind(&app.outcome) {
                    case.since = now;
                    judged = case.judge();
                }
                if !live.terminating && !case.is_settled() {
                    self.unsettled.insert(name.clone());
                }
                armed = !live.automatic && !case.is_arming();
                entered = case.has_entered();
                if let (Some(late), None) = (deadline(row, plan), row.done) {
                    match now >= late {
                        true => judged = case.late(judged),
                        false => wake = Some(late),
                    }
                }
                heal = match &judged {
                    Outcome::Regressed(_, _, mend) => mend.clone(),
                    _ if row.done.is_none() && plan.is_some() => case.heal_as_before(),
                    _ => None,
                };
            }
        }
        if kind(&judged) != kind(&app.outcome) {
            app.since = now;
        }
        let busy = app.live.as_ref().is_some_and(Live::is_busy);
        let (slot, done) = row.map_or((false, None), |row| (row.slot, row.done));
        if row.is_some_and(|row| row.fence) {
            self.fenced.insert(name.clone());
        }
        let is_settled = !self.unsettled.contains(name);
        let share = Share {
            step,
            undone: done.is_none() && !matches!(judged, Outcome::Done(_)),
            uses_slot: slot || (busy && !matches!(judged, Outcome::Done(_))),
            active: (slot && entered) || (busy && !matches!(judged, Outcome::Done(_))),
            regressed: matches!(judged, Outcome::Regressed(..)),
            failed: matches!(&judged, Outcome::Wait(wait) if wait.failed),
            tolerated: done == Some(Done::Tolerated),
            wants_slot: matches!(&judged, Outcome::Ready(ready) if ready.takes_slot()),
            has_slot: slot,
            wants_write: matches!(&judged, Outcome::Ready(ready) if !ready.takes_slot()),
            unarmed: !armed && app.member.is_some(),
        };
        let records = match &judged {
            Outcome::Done(_) => done.is_none() || (slot && is_settled && !busy),
            Outcome::Wait(wait) if wait.failed => plan.is_some_and(|plan| plan.max_failures.is_some()),
            _ => false,
        };
        if records && row.is_some() {
            self.settling.insert(name.clone());
        }
        self.tally.add(name, &share);
        app.share = Some(share);
        if let Some(ready) = &heal {
            wake = earlier(wake, ready.not_before);
            self.healing.insert(name.clone());
        }
        if let Outcome::Wait(wait) = &judged {
            wake = earlier(wake, wait.wake);
        }
        if let Some(wake) = wake.filter(|wake| *wake > now) {
            app.timer = Some(wake);
            self.timers.insert((wake, name.clone()));
        }
        let status = match &judged {
            Outcome::Done(_) => Status::Healthy,
            Outcome::Unsettled if slot => Status::Pending,
            _ if slot || busy => Status::Progressing,
            _ => Status::Waiting,
        };
        if status != app.status || app.status_version == 0 {
            app.status = status;
            app.status_since = now;
            app.status_version = app.live.as_ref().map_or(0, |live| live.version);
        }
        (app.outcome, app.heal) = (judged, heal);
        self.apps.insert(name.clone(), app);
    }

    fn unresolved(&self, member: &Member) -> String {
        let faulty = member.sources.iter().find_map(|key| {
            let resolving = self.resolutions.get(key)?;
            (resolving.known.is_none()).then_some((key, resolving.error.as_deref()))
        });
        match faulty {
            Some((key, Some(error))) => {
                format!("{} at {:?} cannot be resolved: {error}", key.repo, &*key.target)
            }
            Some((key, None)) => format!("{} at {:?} is being resolved", key.repo, &*key.target),
            None => "its revisions are being resolved".to_owned(),
        }
    }

    // --- acting ------------------------------------------------------------------------------------------------

    /// Grants what people ask for.
    fn granted(&self, wanted: &Wanted) -> Option<Change> {
        let (control, run) = (&wanted.control, &self.head.run);
        let aborts = control.abort.is_some() && control.abort != run.granted.abort;
        let retries = control.retry.is_some() && control.retry != run.granted.retry;
        if (!aborts && !retries) || run.seq == 0 {
            return None;
        }
        let mut run = run.clone();
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
                    Outcome::Wait(wait) => wait.failed || wait.reason == Reason::OutOfSyncAfterSync,
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
    fn fences(&self, stopped: bool) -> Option<Change> {
        let mut rows = Vec::new();
        for name in self.unsettled.iter().chain(&self.fenced) {
            let Some(app) = self.apps.get(name).filter(|app| app.in_flight.is_none()) else { continue };
            let (Some(live), Some(row)) = (&app.live, self.head.row(app.id)) else { continue };
            let landed = landed(live, &self.head.run.set);
            match row.fence {
                true if landed >= row.n => {
                    rows.push(Row { intent: None, fence: false, slot: false, ..row.clone() })
                }
                true if landed + 1 == row.n => rows.push(Row { n: landed, fence: false, ..row.clone() }),
                true => {}
                false if stopped && landed < row.n => {
                    rows.push(Row { n: row.n + 1, fence: true, ..row.clone() })
                }
                false => {}
            }
        }
        (!rows.is_empty()).then(|| Change { rows, ..Change::default() })
    }

    /// The writes whose intents are stored and that have not landed.
    fn writes(&mut self, only_fences: bool, now: Timestamp) -> Vec<Write> {
        let mut writes = Vec::new();
        for name in &self.unsettled {
            if writes.len() == BATCH {
                break;
            }
            let Some(app) = self.apps.get_mut(name).filter(|app| app.in_flight.is_none()) else { continue };
            let (Some(live), Some(pin), Some(row)) = (&app.live, &app.pin, self.head.row(app.id)) else {
                continue;
            };
            let intended = row.intent.filter(|_| !only_fences && pin.hash == row.pin);
            let what = if row.fence { Some(Intent::Fence) } else { intended };
            let Some(what) = what else { continue };
            // Neither a specification nor an operation is written while an operation waits or runs.
            let waits = matches!(what, Intent::Arm | Intent::Spec | Intent::Start | Intent::Heal);
            if waits && live.is_busy() {
                continue;
            }
            let as_before = what == Intent::Heal && row.done.is_none();
            let (stamped, revisions) = match what {
                Intent::Heal if as_before => {
                    let stamped = live.stamp.as_ref().map_or(row.pin, |stamp| stamp.pin);
                    (stamped, live.deployed.clone())
                }
                Intent::Start | Intent::Heal => (row.pin, pin.revisions()),
                _ => (row.pin, Vec::new()),
            };
            let differs = pin.spec != Fingerprint::default() && live.spec != pin.spec;
            writes.push(Write {
                name: name.clone(),
                uid: live.uid.clone(),
                version: live.version,
                what,
                stamp: Stamp {
                    set: self.head.run.set.clone(),
                    run: self.head.run.seq,
                    n: row.n,
                    pin: stamped,
                },
                spec: matches!(what, Intent::Start | Intent::Spec) && differs,
                revisions,
                nonce: what.asks_for_comparison().then(|| format!("{}-{}", self.head.run.seq, row.n).into()),
            });
            if what == Intent::Heal {
                app.heals = (app.heals.0 + 1, Some(now));
            }
            app.in_flight = Some(row.n);
        }
        writes
    }

    /// Begins the next run.
    fn begin(&self, wanted: &Wanted, version: u64, now: Timestamp) -> Change {
        let before = &self.head.run;
        let lives = self.apps.values().filter_map(|app| app.live.as_ref());
        let stamps = lives.filter_map(|live| live.stamp.as_ref()).filter(|stamp| *stamp.set == *wanted.set);
        let highest = stamps.map(|stamp| stamp.run).max().unwrap_or(0);
        let known: BTreeMap<SourceKey, Resolution> = self
            .resolutions
            .iter()
            .filter_map(|(key, resolving)| Some((key.clone(), resolving.known.clone()?)))
            .collect();
        let mut rows = Vec::new();
        for app in self.apps.values() {
            let (Some(member), Some(live)) = (&app.member, &app.live) else { continue };
            let Some(pin) = pin_of(member, |key| known.get(key).cloned()) else { continue };
            rows.push(self.fresh_row(wanted, app, live, &pin));
        }
        let same_set = *before.set == *wanted.set;
        let interrupted = same_set && before.seq > 0 && before.finished.is_none() && !before.aborted;
        let run = Run {
            set: wanted.set.clone(),
            seq: before.seq.max(highest) + 1,
            strategy: wanted.steps.hash,
            open: 0,
            floor: version,
            started: Some(now),
            finished: None,
            openings: Vec::new(),
            restarts: if interrupted { before.restarts + 1 } else { 0 },
            aborted: false,
            paused: before.paused && same_set,
            granted: before.granted.clone(),
        };
        Change { run: Some(run), revisions: Some(known), rows, anew: true }
    }

    /// A row for an Application at the beginning of its part in a run. A slot it holds stays its own.
    fn fresh_row(&self, wanted: &Wanted, app: &App, live: &Live, pin: &Pin) -> Row {
        let before = self.head.row(app.id);
        let stamped =
            live.stamp.as_ref().filter(|stamp| *stamp.set == *wanted.set).map_or(0, |stamp| stamp.n);
        let holds = before.is_some_and(|row| row.slot && row.done.is_none());
        Row {
            n: before.map_or(0, |row| row.n).max(stamped),
            slot: holds,
            since: before.filter(|_| holds).map_or(0, |row| row.since),
            ..Row::new(app.id, pin.hash)
        }
    }

    /// Records what came to be done, and gives slots back.
    fn record(&self, wanted: &Wanted, change: &mut Change, now: Timestamp) {
        let mut tolerated: BTreeMap<usize, usize> = BTreeMap::new();
        for name in &self.settling {
            let Some(app) = self.apps.get(name) else { continue };
            let Some(row) = self.head.row(app.id) else { continue };
            match &app.outcome {
                Outcome::Done(how) => {
                    let done = row.done.or(Some(*how));
                    change.rows.push(Row { done, slot: false, ..row.clone() });
                }
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
    fn run_of<'a>(&self, change: &'a mut Change) -> &'a mut Run {
        change.run.get_or_insert_with(|| self.head.run.clone())
    }

    /// Takes newcomers into the run.
    fn join(&self, wanted: &Wanted, change: &mut Change) {
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
    fn close_early(&self, change: &mut Change) {
        let undone = self.tally.steps.iter().position(|count| count.undone > 0);
        let Some(step) = undone else { return };
        let (open, finished) = (self.head.run.open, self.head.run.finished);
        if open > step + 1 || finished.is_some() {
            let run = self.run_of(change);
            run.open = open.min(step + 1);
            run.openings.truncate(run.open);
            run.finished = None;
        }
    }

    /// Intends the next writes.
    fn intend(&self, wanted: &Wanted, change: &mut Change, now: Timestamp) {
        let mut left = BATCH;
        let unarmed: Vec<&Arc<str>> = self.tally.unarmed.iter().collect();
        for name in unarmed {
            self.add_intent(name, false, change, &mut left, now, |intent| intent == Intent::Arm);
        }
        for name in &self.tally.outside.writing {
            self.add_intent(name, false, change, &mut left, now, |intent| intent == Intent::Spec);
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
        for (step, (count, plan)) in self.tally.steps.iter().zip(wanted.steps.iter()).enumerate() {
            let limit = plan.limit(count.total);
            let released = self.released(step, change);
            let (mut used, mut active) = (count.used - released, count.active.saturating_sub(released));
            if step < open && self.tally.is_reached(step) {
                for name in count.writing.iter().take(left) {
                    self.add_intent(name, false, change, &mut left, now, |_| true);
                }
                if !self.is_overwhelmed(step, wanted) {
                    for (is_new, name) in &count.wanting {
                        // Who holds a slot goes on in it, unless steps were changed or Applications moved so that more
                        // hold one than may.
                        let own = usize::from(self.is_active(name));
                        if left == 0 || (*is_new && used >= limit) || active - own >= limit {
                            break;
                        }
                        let added = self.add_intent(name, true, change, &mut left, now, |_| true);
                        used += usize::from(added && *is_new);
                        active += usize::from(added) * (1 - own);
                    }
                }
            } else {
                for name in &count.writing {
                    self.add_intent(name, false, change, &mut left, now, |intent| {
                        intent == Intent::Terminate
                    });
                }
            }
        }
        self.intend_heals(wanted, open, change, &mut left, now);
    }

    /// How many slots of a step the change gives back.
    fn released(&self, step: usize, change: &Change) -> usize {
        let released = change.rows.iter().filter(|row| {
            let app = self.names.get(&row.id).and_then(|name| self.apps.get(name));
            let here = app.and_then(|app| app.share.as_ref()).is_some_and(|share| share.step == Some(step));
            here && !row.slot && self.head.row(row.id).is_some_and(|before| before.slot)
        });
        released.count()
    }

    fn is_active(&self, name: &Arc<str>) -> bool {
        self.apps.get(name).and_then(|app| app.share.as_ref()).is_some_and(|share| share.active)
    }

    fn is_overwhelmed(&self, step: usize, wanted: &Wanted) -> bool {
        let (Some(plan), Some(count)) = (wanted.steps.get(step), self.tally.steps.get(step)) else {
            return false;
        };
        plan.max_failures.is_some_and(|share| count.failed + count.tolerated > share.of(count.total))
    }

    fn intend_heals(
        &self,
        wanted: &Wanted,
        open: usize,
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
            if turn
                || touched
                || plan.is_held()
                || *left == 0
                || (!row.slot && used >= plan.limit(count.total))
            {
                continue;
            }
            *left -= 1;
            let since = now.as_second();
            change.rows.push(Row {
                intent: Some(ready.intent),
                n: row.n + 1,
                slot: true,
                since,
                ..row.clone()
            });
        }
    }

    /// Adds what an Application is ready for to the change, where it is of the kind asked for.
    fn add_intent(
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
        let since = if slot && !row.slot { now.as_second() } else { row.since };
        let row =
            Row { intent: Some(ready.intent), n: row.n + 1, slot: row.slot || slot, since, ..row.clone() };
        change.rows.push(row);
        true
    }

    /// Whether all that is known speaks for opening the next step.
    fn may_open(&self, wanted: &Wanted, change: &Change, now: Timestamp) -> bool {
        let run = change.run.as_ref().unwrap_or(&self.head.run);
        (1..wanted.steps.len()).contains(&run.open)
            && self.joining.is_empty()
            && self.tally.is_reached(run.open)
            && self.tally.regressed() == 0
            && self.soaked_at(wanted, run).is_none_or(|end| now >= end)
    }

    /// When the last open step has been well for long enough; none where it need not be.
    fn soaked_at(&self, wanted: &Wanted, run: &Run) -> Option<Timestamp> {
        let step = run.open.checked_sub(1)?;
        let wait = SignedDuration::try_from(wanted.steps.get(step)?.wait?).ok()?;
        if self.tally.steps.get(step)?.total == 0 {
            return None;
        }
        let since = run.openings.get(step).and_then(|opening| opening.well_since);
        Some(since.and_then(|since| since.checked_add(wait).ok()).unwrap_or(Timestamp::MAX))
    }

    /// Opens the next step, and those after it that have nothing left to do.
    fn open(&self, wanted: &Wanted, version: u64, change: &mut Change, now: Timestamp) {
        loop {
            let run = self.run_of(change);
            run.open += 1;
            run.openings.push(Opening { version, at: Some(now), well_since: None });
            let open = run.open;
            let waits = wanted.steps.get(open - 1).is_some_and(|plan| plan.wait.is_some());
            let count = self.tally.steps.get(open - 1);
            let empty = count.is_none_or(|count| count.total == 0);
            let done = count.is_none_or(|count| count.undone == 0);
            if open >= wanted.steps.len() || !done || (waits && !empty) {
                return;
            }
        }
    }

    fn finish(&self, wanted: &Wanted, change: &mut Change, now: Timestamp) {
        let run = change.run.as_ref().unwrap_or(&self.head.run);
        let all_open = run.open >= wanted.steps.len() && (run.open > 0 || wanted.steps.is_empty());
        let done = self.tally.is_reached(wanted.steps.len()) && self.joining.is_empty();
        if all_open && done && run.finished.is_none() && run.seq > 0 {
            let run = self.run_of(change);
            run.finished = Some(now);
            run.restarts = 0;
        }
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
    Some(Pin::new(member.spec.unwrap_or_default(), sources))
}

fn outcome(reason: Reason, message: impl Into<String>) -> Outcome {
    Outcome::Wait(Wait { reason, message: message.into(), failed: false, wake: None })
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Number of the last write of a rollout of this set that landed on an Application.
fn landed(live: &Live, set: &str) -> u64 {
    live.stamp.as_ref().filter(|stamp| *stamp.set == *set).map_or(0, |stamp| stamp.n)
}

/// What an outcome is, without its words: it lasts as long as this is the same.
fn kind(outcome: &Outcome) -> (u8, Option<Reason>, Option<Intent>) {
    match outcome {
        Outcome::Done(_) => (0, None, None),
        Outcome::Regressed(reason, ..) => (1, Some(*reason), None),
        Outcome::Ready(ready) => (2, None, Some(ready.intent)),
        Outcome::Unsettled => (3, None, None),
        Outcome::Wait(wait) => (4, Some(wait.reason), None),
    }
}

/// When an Application that holds a slot has taken too long.
fn deadline(row: &Row, plan: Option<&crate::steps::Step>) -> Option<Timestamp> {
    let allowed = i64::try_from(plan?.deadline?.as_secs()).ok()?;
    Timestamp::from_second(row.since.checked_add(allowed)?).ok().filter(|_| row.slot && row.since > 0)
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
    fn new(now: Timestamp) -> App {
        App {
            id: Fingerprint::default(),
            member: None,
            left_from: None,
            live: None,
            pin: None,
            in_flight: None,
            adopted: None,
            success: None,
            heals: (0, None),
            outcome: outcome(Reason::Missing, "the Application is not there yet"),
            since: now,
            status: Status::Waiting,
            status_since: now,
            status_version: 0,
            share: None,
            timer: None,
            heal: None,
        }
    }
}
