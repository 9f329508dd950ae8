//! Driving the machine of each set: feeding it, and doing what it decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::application::ApplicationSpec;
use baton_api::names::application_set::REFRESH;
use baton_api::{ApplicationSet, names};
use baton_rollout::control;
use baton_rollout::head::{Change, Intent, Run};
use baton_rollout::machine::{Control, Machine, Member, Wanted, Write};
use baton_rollout::steps::Steps;
use baton_rules::{Rule, holds};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use super::MANAGER;
use super::board::{Board, Offer, Posted};
use super::desk::{Desk, asked};
use super::head::{Heads, StoreError};
use super::inbox::Inbox;
use super::label::selector;
use super::metrics::RolloutMetrics;
use super::phasing::requests;
use super::resolve::Resolver;
use super::sight::Sight;
use super::view;
use super::write::{self, Ground};
use crate::application_set::{Automation, is_guarded};
use crate::cache::{Held, Kept, Known, ObjectKey, Observed, Whole};
use crate::objects::{ApiError, Objects, Seen};
use crate::phases::{PhaseError, Phases, newest_run};
use crate::queue::Queue;
use crate::settings::Settings;

/// How often the machine is asked in one pass; what is left waits for the next.
const MOST_TURNS: usize = 500;
/// As many passes in a row must fail before people are told.
const TOLD_AFTER: u32 = 3;
/// Least number of Applications that are written at once.
const LEAST_AT_ONCE: usize = 10;

/// Why a pass is to be tried again soon.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error("cannot read the head of the rollout: {0}")]
    Head(#[source] ApiError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot list the Applications: {0}")]
    List(#[source] ApiError),
    #[error("cannot read Application {name:?}: {why}")]
    Read { name: Arc<str>, why: ApiError },
    #[error("cannot write Application {name:?}: {why}")]
    Write { name: Arc<str>, why: String },
    #[error("cannot read the ApplicationSet: {0}")]
    Set(#[source] ApiError),
    #[error("cannot update the status: {0}")]
    View(#[source] ApiError),
    #[error(transparent)]
    Phases(#[from] PhaseError),
    #[error("the rollout does not come to rest")]
    Restless,
}

/// Rolls sets out.
pub(crate) struct Reconciler {
    pub(crate) board: Arc<Board>,
    pub(crate) inbox: Inbox,
    pub(crate) queue: Queue<ObjectKey>,
    client: Client,
    pub(super) settings: Arc<Settings>,
    pub(super) known: Arc<Known>,
    heads: Heads,
    resolver: Resolver,
    pub(crate) phases: Phases,
    pub(super) metrics: RolloutMetrics,
    /// The generation side's queue.
    pub(super) generation: Queue<ObjectKey>,
    pub(super) desks: Mutex<BTreeMap<ObjectKey, Desk>>,
    /// Sets whose revisions somebody wants to be looked up at once.
    doubted: Mutex<BTreeSet<ObjectKey>>,
    /// How often in a row the pass over a set has failed, and since when.
    failures: Mutex<BTreeMap<ObjectKey, (u32, Timestamp)>>,
}

/// What a reconciler is made of.
pub(crate) struct Parts {
    pub(crate) board: Arc<Board>,
    pub(crate) queue: Queue<ObjectKey>,
    pub(crate) generation: Queue<ObjectKey>,
    pub(crate) client: Client,
    pub(crate) settings: Arc<Settings>,
    pub(crate) known: Arc<Known>,
    pub(crate) resolver: Resolver,
    pub(crate) phases: Phases,
    pub(crate) metrics: RolloutMetrics,
}

/// What became of a write.
enum Written {
    /// The Application as it is now.
    Answer(Value),
    /// It was not made, since somebody else was faster or a person holds the rollout.
    NotMade,
    /// It failed, or nobody knows.
    Failed(String),
}

/// What is left to do after a turn.
enum Turn {
    /// More, at once.
    More,
    /// Nothing until something happens, or until then.
    Rest(Option<Timestamp>),
}

impl Reconciler {
    pub(crate) fn new(parts: Parts) -> Reconciler {
        Reconciler {
            inbox: Inbox::new(parts.queue.clone()),
            heads: Heads::new(parts.client.clone()),
            board: parts.board,
            queue: parts.queue,
            client: parts.client,
            settings: parts.settings,
            known: parts.known,
            resolver: parts.resolver,
            phases: parts.phases,
            metrics: parts.metrics,
            generation: parts.generation,
            desks: Mutex::default(),
            doubted: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// One pass over a set. Tells when to look again, if at all.
    pub(crate) async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, PassError> {
        // News that still come in are no pass: what failed before has not been tried again.
        if matches!(self.board.read(key), Posted::Offer(_))
            && let Some(rest) = self.inbox.settles_in(key)
        {
            return Ok(Some(rest));
        }
        let outcome = self.pass(key).await;
        let Err(error) = &outcome else {
            self.failures.lock().remove(key);
            return outcome;
        };
        let (failures, since) = {
            let mut failures = self.failures.lock();
            let (count, since) = failures.entry(key.clone()).or_insert((0, self.settings.clock.now()));
            *count = count.saturating_add(1);
            (*count, *since)
        };
        // What goes by itself need not be told.
        if failures >= TOLD_AFTER {
            self.show_trouble(key, &error.to_string(), since).await;
        }
        outcome
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Option<Duration>, PassError> {
        if self.settings.dry_run {
            return Ok(None);
        }
        match self.board.read(key) {
            Posted::Nothing => {
                self.close(key);
                self.clear_view(key).await?;
                Ok(None)
            }
            Posted::Leaving => {
                self.close(key);
                self.let_go(key).await?;
                self.board.settled(key);
                self.generation.add(key.clone());
                self.clear_view(key).await?;
                Ok(None)
            }
            Posted::Offer(offer) => {
                let mut desk = match self.take_desk(key, &offer) {
                    Some(desk) => desk,
                    None => self.open(key).await?,
                };
                let outcome = self.drive(key, &mut desk).await;
                self.desks.lock().insert(key.clone(), desk);
                outcome
            }
        }
    }

    /// Whether nothing is under way that would wake a set by itself.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_idle() && !self.resolver.is_busy() && self.phases.under_way() == 0
    }

    /// A set changed: what people ask for may have, or something of a rollout may have to go.
    pub(crate) fn set_changed(&self, key: &ObjectKey, before: Option<&Held>, after: Option<&Held>) {
        let Some(Held::Whole(after)) = after else { return };
        let asks = match before {
            Some(Held::Whole(before)) => {
                control_of(before) != control_of(after)
                    || requests(before, None) != requests(after, None)
                    || before.status.phases != after.status.phases
            }
            _ => true,
        };
        let concerned =
            self.desks.lock().contains_key(key) || matches!(self.board.read(key), Posted::Offer(_));
        let refreshed =
            |held: &Held| held.metadata().annotations.as_ref().is_some_and(|all| all.contains_key(REFRESH));
        if concerned && refreshed(&Held::Whole(after.clone())) && !before.is_some_and(refreshed) {
            self.doubted.lock().insert(key.clone());
            self.queue.add(key.clone());
        }
        // What we write ourselves is known before it is heard of: this is somebody who has not heard that he was replaced.
        let usurped = matches!(before, Some(Held::Whole(before)) if view::tells_otherwise(before, after));
        if ((asks || usurped) && concerned) || (!concerned && view::has_remains(after)) {
            self.queue.add(key.clone());
        }
    }

    /// Windows of a project have changed.
    pub(crate) fn windows_changed(&self) {
        self.inbox.sets().into_iter().for_each(|set| self.queue.add(set));
    }

    fn take_desk(&self, key: &ObjectKey, offer: &Offer) -> Option<Desk> {
        let desk = self.desks.lock().remove(key)?;
        // A set of the same name made anew has a rollout of its own.
        desk.is_of(&offer.wanted.set).then_some(desk)
    }

    async fn open(&self, key: &ObjectKey) -> Result<Desk, PassError> {
        self.inbox.open(key);
        let (head, place) = self.heads.load(key).await.map_err(PassError::Head)?;
        let mut machine = Machine::new(head);
        // A view decides nothing, but what it shows has been.
        let set = self.set(key);
        if let Some(set) = &set {
            let shown = set.status.rollout.as_ref().and_then(|rollout| u64::try_from(rollout.run).ok());
            machine.runs_after(shown.unwrap_or(0).max(newest_run(set)));
        }
        let mut desk = Desk::new(machine, place);
        if let Some(set) = set {
            desk.phasing.go_back(self.phases.recall(key, &set).await?);
        }
        Ok(desk)
    }

    fn close(&self, key: &ObjectKey) {
        self.desks.lock().remove(key);
        self.inbox.close(key);
        self.resolver.forget(key);
        self.doubted.lock().remove(key);
        self.phases.forget(key);
        self.metrics.courses.forget(key);
    }

    async fn drive(&self, key: &ObjectKey, desk: &mut Desk) -> Result<Option<Duration>, PassError> {
        let outcome = self.turns(key, desk).await;
        // What could not be written is tried again by the next pass, so that nobody else has to wait for it.
        match (outcome, desk.give_back()) {
            (Ok(_), Some((name, why))) => Err(PassError::Write { name, why }),
            (outcome, _) => outcome,
        }
    }

    async fn turns(&self, key: &ObjectKey, desk: &mut Desk) -> Result<Option<Duration>, PassError> {
        for _ in 0..MOST_TURNS {
            let Posted::Offer(offer) = self.board.read(key) else {
                self.queue.add(key.clone());
                return Ok(None);
            };
            if !holds(Rule::ViewsBlockNothing)
                && let Err(error) = self.show(key, desk, &offer).await
            {
                desk.view.unwritten();
                return Err(PassError::View(error));
            }
            match self.turn(key, desk, &offer).await? {
                // What takes long is shown while it lasts.
                Turn::More if desk.view.is_due() => drop(self.shown(key, desk, &offer).await),
                Turn::More => {}
                Turn::Rest(wake) => {
                    let shown = self.shown(key, desk, &offer).await;
                    let now = self.settings.clock.now();
                    let wake = wake.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
                    // A moment more, so that what is due then is due.
                    let wake = wake.map(|delay| delay + Duration::from_millis(1));
                    return Ok(match (wake, shown) {
                        (Some(wake), Some(shown)) => Some(wake.min(shown)),
                        (wake, shown) => wake.or(shown),
                    });
                }
            }
        }
        Err(PassError::Restless)
    }

    /// Feeds the machine, asks it, and does the first thing it says.
    async fn turn(&self, key: &ObjectKey, desk: &mut Desk, offer: &Arc<Offer>) -> Result<Turn, PassError> {
        if desk.machine.head().run.paused && !self.control(key).paused {
            self.end_pause(key, desk).await?;
        }
        let now = self.settings.clock.now();
        let mut control = self.control(key);
        match &offer.phases {
            None => drop(desk.machine.gate(None)),
            Some(phased) => {
                let shut = phased.shut(offer);
                // To abort phases is to hold what they have a say in, and to end what is under way of it.
                control.abort = control.abort.filter(|_| !shut.free.is_empty());
                if !desk.machine.is_gated() {
                    desk.machine.gate(Some(shut));
                }
            }
        }
        let posted = offer;
        let offer = &desk.wish(offer, control, now);
        let windows = self.known.windows.lock().clone();
        desk.watch_windows(windows, now);
        let (news, gap) = self.inbox.take(key);
        desk.doubts_applications |= gap;
        let stale = desk.machine.stale_reads();
        desk.learn(news, offer);
        self.metrics.stale.inc_by(desk.machine.stale_reads() - stale);
        if desk.doubts_head {
            self.reload(key, desk).await?;
        }
        if desk.doubts_applications {
            self.list(key, desk, offer).await?;
        }
        if self.doubted.lock().remove(key) {
            desk.machine.doubt_revisions();
        }
        let now = self.settings.clock.now();
        for (source, outcome) in self.resolver.take(key) {
            desk.machine.resolved(&source, outcome, now);
        }
        let decision = desk.machine.decide(now);
        for source in decision.resolve {
            // Where all are put back, nobody follows what is wanted of them; that may change all the same.
            let asked = asked(offer, &source).or_else(|| asked(posted, &source));
            self.resolver.ask(key, source, asked);
        }
        if decision.list {
            self.list(key, desk, offer).await?;
            return Ok(Turn::More);
        }
        if let Some(change) = decision.change {
            self.store(key, desk, &change).await?;
            return Ok(Turn::More);
        }
        if !decision.writes.is_empty() {
            self.write(key, desk, offer, decision.writes).await?;
            return Ok(Turn::More);
        }
        let mut wake = None;
        if let Some(phased) = &offer.phases {
            let (more, until) = self.phase(key, desk, offer, phased).await?;
            if more {
                return Ok(Turn::More);
            }
            wake = until;
        }
        Ok(Turn::Rest(decision.wake.into_iter().chain(desk.windows_change_at()).chain(wake).min()))
    }

    pub(super) async fn list(
        &self,
        key: &ObjectKey,
        desk: &mut Desk,
        offer: &Offer,
    ) -> Result<(), PassError> {
        let (version, sights) = self.sights(key).await?;
        desk.list(version, &sights, offer);
        desk.doubts_applications = false;
        Ok(())
    }

    /// Every Application of the set as a consistent read shows it, and the version of that read.
    async fn sights(&self, key: &ObjectKey) -> Result<(u64, Vec<Box<Sight>>), PassError> {
        let mut sights = Vec::new();
        let each = |object: Value| {
            if let Ok(mut observed) = Observed::deserialize(&object)
                && observed.owner.as_deref() == Some(&*key.name)
            {
                sights.extend(observed.sight.take());
            }
        };
        let version =
            self.applications(key).each(Some(&selector(&key.name)), each).await.map_err(PassError::List)?;
        self.metrics.lists.inc();
        Ok((version.parse().unwrap_or(0), sights))
    }

    async fn store(&self, key: &ObjectKey, desk: &mut Desk, change: &Change) -> Result<(), PassError> {
        match self.heads.store(key, &mut desk.place, desk.machine.head(), change).await {
            Ok(()) => {
                self.metrics.heads.inc();
                desk.machine.stored(change);
                Ok(())
            }
            Err(StoreError::Changed) => {
                self.metrics.conflicts.inc();
                self.reload(key, desk).await
            }
            Err(error) => {
                // It may have been stored nevertheless.
                desk.doubts_head = true;
                Err(error.into())
            }
        }
    }

    async fn reload(&self, key: &ObjectKey, desk: &mut Desk) -> Result<(), PassError> {
        let (head, place) = self.heads.load(key).await.map_err(PassError::Head)?;
        desk.doubts_head = false;
        if !place.is_same(&desk.place) {
            desk.place = place;
            desk.machine.reload(head);
        }
        Ok(())
    }

    /// The head holds the rollout and the set, as it is known, does not. Either the annotation is on its way, or a person
    /// took it away: then the head lets go too, whoever wrote the pause there.
    async fn end_pause(&self, key: &ObjectKey, desk: &mut Desk) -> Result<(), PassError> {
        self.reload(key, desk).await?;
        if !desk.machine.head().run.paused {
            return Ok(());
        }
        if let Some(raw) = self.sets(key).get(&key.name).await.map_err(PassError::Set)? {
            self.learn_set(key, &raw);
        }
        if self.control(key).paused {
            return Ok(());
        }
        let run = Run { paused: false, ..desk.machine.head().run.clone() };
        self.store(key, desk, &Change { run: Some(run), ..Change::default() }).await
    }

    /// Makes writes whose intents are stored, and tells the machine what became of each.
    async fn write(
        &self,
        key: &ObjectKey,
        desk: &mut Desk,
        offer: &Offer,
        writes: Vec<Write>,
    ) -> Result<(), PassError> {
        let applications = self.applications(key);
        let patches: Vec<(Write, Result<Value, String>)> = writes
            .into_iter()
            .map(|write| {
                let patch = patch(key, desk, offer, &write);
                (write, patch)
            })
            .collect();
        let attempts = patches.into_iter().map(|(write, patch)| {
            let applications = &applications;
            async move {
                let written = match patch {
                    Ok(patch) => self.write_one(key, applications, &write, patch).await,
                    Err(why) => Written::Failed(why),
                };
                (write, written)
            }
        });
        let at_once = self.settings.concurrent_application_updates.max(LEAST_AT_ONCE);
        let results: Vec<(Write, Written)> = stream::iter(attempts).buffered(at_once).collect().await;
        // Of each write the machine is told what became of it, whatever became of another: what it believes to be under
        // way it neither makes again nor prevents.
        let mut first_error = Ok(());
        for (write, written) in results {
            match written {
                Written::Answer(answer) => {
                    self.metrics.writes.inc();
                    self.fold(key, desk, offer, &write, &answer);
                    let switches_off = matches!(write.what, Intent::Arm | Intent::Spec | Intent::Start);
                    if switches_off && still_syncs(&answer) {
                        // An API that does not know the switch drops it.
                        desk.automation = Automation::Removed;
                    }
                    continue;
                }
                Written::NotMade => {
                    self.metrics.conflicts.inc();
                    // Whoever was faster may lead by now: nothing is tried again before the head was read anew.
                    desk.doubts_head = true;
                }
                Written::Failed(why) => {
                    desk.hold_back(&write, why);
                    first_error = first_error.and(self.look(key, desk, offer, &write).await);
                    continue;
                }
            }
            first_error = first_error.and(self.look(key, desk, offer, &write).await);
            desk.machine.failed(&write.name, write.stamp.n);
        }
        first_error
    }

    async fn write_one(
        &self,
        key: &ObjectKey,
        applications: &Objects,
        write: &Write,
        patch: Value,
    ) -> Written {
        // A hold takes effect before the next write; a fence is what makes it true.
        if write.what != Intent::Fence && self.control(key).paused {
            return Written::NotMade;
        }
        let version = write.version.to_string();
        let seen = Seen { uid: &write.uid, version: Some(&*version).filter(|_| holds(Rule::NewestVersion)) };
        match applications.patch(&write.name, patch, seen).await {
            Ok(answer) => Written::Answer(answer),
            Err(error) if error.is_conflict() || error.is_not_found() => Written::NotMade,
            Err(error) => Written::Failed(error.to_string()),
        }
    }

    /// Shows the machine an Application as it is now.
    async fn look(
        &self,
        key: &ObjectKey,
        desk: &mut Desk,
        offer: &Offer,
        write: &Write,
    ) -> Result<(), PassError> {
        let failed = |why| PassError::Read { name: write.name.clone(), why };
        match self.applications(key).get(&write.name).await {
            Ok(Some(object)) => self.fold(key, desk, offer, write, &object),
            Ok(None) => desk.lose(&write.name, &write.uid),
            Err(why) => {
                // The machine still believes it to be under way; a list will tell.
                desk.machine.failed(&write.name, write.stamp.n);
                desk.doubts_applications = true;
                return Err(failed(why));
            }
        }
        Ok(())
    }

    /// Keeps what the API answered.
    fn fold(&self, key: &ObjectKey, desk: &mut Desk, offer: &Offer, write: &Write, answer: &Value) {
        let Ok(mut observed) = Observed::deserialize(answer) else {
            desk.doubts_applications = true;
            return;
        };
        let ours = observed.owner.as_deref() == Some(&*key.name);
        let sight = observed.sight.take();
        self.known.applications.lock().fold(observed);
        match sight.filter(|_| ours) {
            Some(sight) => {
                desk.see(&sight, offer);
            }
            None => desk.lose(&write.name, &write.uid),
        }
    }

    /// Makes impossible what a rollout that is given up intended, and takes its head away.
    async fn let_go(&self, key: &ObjectKey) -> Result<(), PassError> {
        let (head, place) = self.heads.load(key).await.map_err(PassError::Head)?;
        if let Some(head) = head {
            let (version, sights) = self.sights(key).await?;
            let member = Member {
                step: None,
                spec: None,
                sources: Vec::new(),
                self_heal: false,
                fault: None,
                back: None,
            };
            let members = sights.iter().map(|sight| (sight.name.clone(), member.clone())).collect();
            let control = Control { paused: true, ..Control::default() };
            let wanted = Wanted {
                set: head.run.set.clone(),
                generation: head.run.generation,
                steps: Steps::read(&[]).0,
                members,
                frozen: None,
                fuse: None,
                keeps_leavers: true,
                control,
            };
            let offer = Offer::empty(wanted);
            let mut desk = Desk::new(Machine::new(Some(head)), place);
            let now = self.settings.clock.now();
            desk.machine.wants(offer.wanted.clone(), now);
            desk.list(version, &sights, &offer);
            for turn in 0.. {
                if turn == MOST_TURNS {
                    return Err(PassError::Restless);
                }
                let decision = desk.machine.decide(self.settings.clock.now());
                if let Some(change) = decision.change {
                    self.heads.store(key, &mut desk.place, desk.machine.head(), &change).await?;
                    desk.machine.stored(&change);
                } else if !decision.writes.is_empty() {
                    self.write(key, &mut desk, &offer, decision.writes).await?;
                    if let Some((name, why)) = desk.give_back() {
                        return Err(PassError::Write { name, why });
                    }
                } else {
                    break;
                }
            }
        }
        let guards = self.set(key).is_some_and(|set| is_guarded(&set));
        self.heads.clear(key, guards).await.map_err(PassError::Head)
    }

    pub(super) fn set(&self, key: &ObjectKey) -> Option<Whole> {
        match self.known.sets.lock().get(key)? {
            Held::Whole(set) => Some(set),
            Held::Unreadable { .. } => None,
        }
    }

    /// What people ask for. A set that cannot be read is held.
    pub(super) fn control(&self, key: &ObjectKey) -> Control {
        match self.set(key) {
            Some(set) => control_of(&set),
            None => Control { paused: true, ..Control::default() },
        }
    }

    pub(super) fn learn_set(&self, key: &ObjectKey, raw: &Value) {
        self.known.sets.lock().learn_raw(key, raw);
    }

    fn applications(&self, key: &ObjectKey) -> Objects {
        self.objects(key, "applications")
    }

    pub(super) fn sets(&self, key: &ObjectKey) -> Objects {
        self.objects(key, "applicationsets")
    }

    fn objects(&self, key: &ObjectKey, plural: &str) -> Objects {
        Objects::new(self.client.clone(), names::API_VERSION, plural, &key.namespace, false)
            .managed_by(MANAGER)
    }
}

/// What people ask of the rollout of a set.
fn control_of(set: &ApplicationSet) -> Control {
    control::read(set.metadata.annotations.as_ref())
}

fn patch(key: &ObjectKey, desk: &Desk, offer: &Offer, write: &Write) -> Result<Value, String> {
    let Some(live) = desk.spec(&write.name, write.version) else {
        return Err("another version of it is known than was decided on".to_owned());
    };
    let fit = offer.wanted.members.get(&write.name).is_some_and(|member| member.spec.is_some());
    let ground = Ground {
        set: &key.name,
        live: &live,
        template: offer.templates.get(&write.name).filter(|_| fit || !write.spec).map(|template| &**template),
        ignored: &offer.ignored,
        automation: desk.automation,
    };
    write::patch(write, &ground).map_err(|error| error.to_string())
}

/// Whether an Application syncs by itself.
fn still_syncs(application: &Value) -> bool {
    ApplicationSpec::deserialize(&application["spec"]).is_ok_and(|spec| spec.auto_syncs())
}
