//! The world as it is: Applications in the API, what their clusters have, the stored head, and the leaders that see
//! all that late.

use std::fmt::{Debug, Write as _};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_rollout::head::{Head, Intent};
use baton_rollout::live::{Live, Operation};
use baton_rollout::machine::Write;
use baton_rollout::pin::{Fingerprint, Pin, Resolution, SourceKey};
use baton_rollout::stamp::Stamp;
use jiff::{SignedDuration, Timestamp};

use crate::judge::Judge;
use crate::leader::{Leader, Request};
use crate::search::Setup;

pub(crate) const SET: &str = "set-uid";

/// What the set wants, or an Application has: a template and a commit, each by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    pub(crate) template: u8,
    pub(crate) commit: u8,
}

/// One state of the world.
#[derive(Clone)]
pub(crate) struct World {
    /// In milliseconds.
    pub(crate) now: u64,
    pub(crate) apps: Vec<App>,
    /// The Applications as they were when the search began.
    pub(crate) long_ago: Vec<Arc<Version>>,
    /// What the branch and the template of the set are by now.
    pub(crate) newest: Content,
    /// How many of the planned changes have been made.
    pub(crate) changes: usize,
    pub(crate) head: Option<Arc<Stored>>,
    pub(crate) leaders: Vec<Leader>,
    /// Requests of leaders that are no more: each may reach the API at any time, or never.
    pub(crate) stray: Vec<Request>,
    /// How often each kind of trouble may still come.
    pub(crate) left: Faults,
    /// How often time has passed.
    pub(crate) ticks: usize,
    pub(crate) judge: Judge,
}

/// The head as it is stored.
pub(crate) struct Stored {
    pub(crate) head: Head,
    print: u64,
}

/// How often each kind of trouble comes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Faults {
    /// A leader loses its memory; requests it was about to make may still be on their way.
    pub(crate) crashes: u8,
    /// A leader stands still for a while, wherever it is.
    pub(crate) stops: u8,
    /// The completion of an operation is written a second time, and takes away what was asked for meanwhile.
    pub(crate) wipes: u8,
    /// An operation fails.
    pub(crate) failures: u8,
    /// A request takes effect and its answer is lost.
    pub(crate) silences: u8,
    /// A request for a comparison is taken away, and what was found is not written.
    pub(crate) losses: u8,
    /// Somebody changes what a cluster has.
    pub(crate) drifts: u8,
    /// Time passes though there is something to do.
    pub(crate) delays: u8,
}

/// One Application in the API, with what its cluster really has.
#[derive(Clone, Hash)]
pub(crate) struct App {
    pub(crate) version: Arc<Version>,
    pub(crate) step: usize,
    /// The template its specification is of.
    pub(crate) spec: u8,
    /// The template of the specification that was compared last.
    compared: u8,
    /// The commit that `.operation` is to sync.
    operation: Option<u8>,
    pub(crate) cluster: Content,
    pub(crate) ready: bool,
    /// A comparison that was made and is not written yet.
    comparison: Option<Comparison>,
    /// Whether the end of the last operation may be written once more.
    repeats: bool,
}

/// One version of an Application. Two are the same if they say the same.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) live: Live,
    print: u64,
}

/// What the Application controller found when it compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Comparison {
    spec: u8,
    commit: u8,
    synced: bool,
    health: u8,
    began: i64,
    nonce: Option<Arc<str>>,
    automatic: bool,
}

/// What became of a write.
pub(crate) enum Written {
    /// It is the Application's newest version.
    Landed,
    /// Another version is there than the one it was decided on.
    Refused,
}

/// Of everything that a value tells of itself.
pub(crate) fn print_of(value: &impl Debug) -> u64 {
    let mut text = String::with_capacity(8192);
    let _ = write!(text, "{value:?}");
    // What a machine only shows to people, and how often it refused news, makes no difference to what follows.
    let end = text.rfind(", stale: ").unwrap_or(text.len());
    let mut hasher = DefaultHasher::new();
    let mut parts = text[..end].split("status_since: ");
    parts.next().hash(&mut hasher);
    for part in parts {
        part[part.find(", share: ").unwrap_or(0)..].hash(&mut hasher);
    }
    hasher.finish()
}

pub(crate) fn rev(commit: u8) -> Arc<str> {
    format!("commit-{commit}").into()
}

pub(crate) fn print(template: u8) -> Fingerprint {
    Fingerprint::of([format!("spec {template}")])
}

pub(crate) fn key() -> SourceKey {
    SourceKey { repo: "repo".into(), target: "main".into(), chart: "".into(), tag_prefix: "".into() }
}

pub(crate) fn time(now: u64) -> Timestamp {
    Timestamp::from_second(1_700_000_000).expect("a time") + SignedDuration::from_millis(now as i64)
}

fn seconds(now: u64) -> i64 {
    time(now).as_second()
}

pub(crate) fn name(app: usize) -> Arc<str> {
    format!("app-{app}").into()
}

// === impl Content ===

impl Content {
    pub(crate) fn pin(self) -> Fingerprint {
        Pin::new(print(self.template), vec![Resolution::exact(rev(self.commit))]).hash
    }
}

// === impl Version ===

impl Version {
    fn new(live: Live) -> Arc<Version> {
        Arc::new(Version { print: print_of(&live), live })
    }
}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.print);
    }
}

// === impl Stored ===

impl Stored {
    pub(crate) fn new(head: Head) -> Arc<Stored> {
        Arc::new(Stored { print: print_of(&head), head })
    }
}

// === impl App ===

impl App {
    /// An Application that was just made and has never been compared.
    pub(crate) fn new(number: usize, step: usize, automatic: bool) -> App {
        let live = Live {
            name: name(number),
            uid: format!("uid-{number}").into(),
            version: 1,
            terminating: false,
            stamp: None,
            spec: print(1),
            automatic,
            compared: false,
            sync: SyncCode::Unknown,
            prune_only: false,
            health: HealthCode::Missing,
            ailing: None,
            reported: Vec::new(),
            error: None,
            operation: None,
            last: None,
            deployed: Vec::new(),
            refresh: false,
            nonce: None,
            answered: false,
            reconciled: None,
            closed: None,
            heals_in_order: false,
        };
        App {
            version: Version::new(live),
            step,
            spec: 1,
            compared: 0,
            operation: None,
            cluster: Content { template: 0, commit: 0 },
            ready: false,
            comparison: None,
            repeats: false,
        }
    }

    pub(crate) fn live(&self) -> &Live {
        &self.version.live
    }

    /// Whether its cluster has this and nothing is under way.
    pub(crate) fn is_at(&self, content: Content) -> bool {
        self.cluster == content && self.ready && !self.live().is_busy()
    }

    /// Whether its cluster has what this write would sync.
    pub(crate) fn has(&self, write: &Write) -> bool {
        let revision = write.revisions.first();
        self.cluster.template == self.spec && revision == Some(&rev(self.cluster.commit))
    }

    fn change(&mut self, edit: impl FnOnce(&mut Live)) {
        let mut live = self.version.live.clone();
        edit(&mut live);
        // Numbers of its own: versions of different Applications are never compared, and in which order these were
        // written makes no difference to what follows.
        live.version += 1;
        live.spec = print(self.spec);
        live.compared = self.compared == self.spec;
        self.version = Version::new(live);
    }

    fn is_running(&self) -> bool {
        self.live().last.as_ref().is_some_and(Operation::is_running)
    }

    pub(crate) fn can_begin(&self) -> bool {
        self.operation.is_some() && !self.is_running()
    }

    pub(crate) fn begin(&mut self) {
        let Some(commit) = self.operation else { return };
        self.repeats = false;
        self.change(|live| {
            live.last = Some(Operation {
                phase: OperationPhase::Running,
                stamp: live.operation.clone().flatten(),
                full: true,
                revisions: vec![rev(commit)],
                finished: None,
                retrying: false,
                awaits_approval: false,
                message: "running".into(),
            });
        });
    }

    pub(crate) fn can_finish(&self) -> bool {
        self.operation.is_some() && self.is_running()
    }

    /// The operation ends. Its workloads take their time to become ready, or do not.
    pub(crate) fn finish(&mut self, now: u64, well: bool, slow: bool) {
        let Some(commit) = self.operation.take() else { return };
        let content = Content { template: self.spec, commit };
        if well {
            self.ready = if self.cluster == content { self.ready } else { !slow };
            self.cluster = content;
        }
        self.repeats = true;
        self.change(|live| {
            live.operation = None;
            if let Some(last) = &mut live.last {
                last.phase = if well { OperationPhase::Succeeded } else { OperationPhase::Failed };
                last.finished = Some(seconds(now));
            }
            if well {
                live.deployed = vec![rev(commit)];
            }
        });
    }

    /// Whether the end of the last operation, written once more, would take away what was asked for meanwhile.
    pub(crate) fn can_wipe(&self) -> bool {
        self.repeats && self.operation.is_some() && !self.is_running()
    }

    pub(crate) fn wipe(&mut self) {
        (self.operation, self.repeats) = (None, false);
        self.change(|live| live.operation = None);
    }

    fn found(&self, newest: Content, now: u64) -> Comparison {
        let wanted = Content { template: self.spec, commit: newest.commit };
        Comparison {
            spec: self.spec,
            commit: newest.commit,
            synced: self.cluster == wanted,
            health: match self.cluster.commit {
                0 => 0,
                _ => 1 + u8::from(self.ready),
            },
            began: seconds(now),
            nonce: self.live().nonce.clone().filter(|_| self.live().refresh),
            automatic: self.live().automatic,
        }
    }

    /// Whether the Application controller has a reason to compare: it was asked to, it would find something else than it
    /// told, or an operation has ended since.
    pub(crate) fn can_compare(&self, newest: Content, now: u64) -> bool {
        if self.comparison.is_some() {
            return false;
        }
        let (live, found) = (self.live(), self.found(newest, now));
        let ended = live.last.as_ref().and_then(|last| last.finished);
        let since = ended.is_some_and(|ended| live.reconciled.is_none_or(|began| began <= ended));
        live.refresh
            || live.reported != [rev(found.commit)]
            || live.sync != sync_code(found.synced)
            || live.health != health_code(found.health)
            || self.compared != self.spec
            || (since && live.reconciled != Some(found.began))
            || (live.automatic && !found.synced && !live.is_busy())
    }

    pub(crate) fn compare(&mut self, newest: Content, now: u64) {
        self.comparison = Some(self.found(newest, now));
    }

    /// A request is taken away though what was found could not be written.
    pub(crate) fn lose(&mut self) {
        self.comparison = None;
        self.change(|live| (live.refresh, live.nonce) = (false, None));
    }

    pub(crate) fn can_lose(&self) -> bool {
        self.live().refresh
    }

    pub(crate) fn can_report(&self) -> bool {
        self.comparison.is_some()
    }

    /// What was found is written, whatever has become of the Application meanwhile.
    pub(crate) fn report(&mut self) {
        let Some(found) = self.comparison.take() else { return };
        self.compared = found.spec;
        // It syncs by itself as its specification was when it was compared.
        let syncs = found.automatic && !found.synced && !self.live().is_busy();
        if syncs {
            self.operation = Some(found.commit);
        }
        self.change(|live| {
            live.reported = vec![rev(found.commit)];
            live.sync = sync_code(found.synced);
            live.health = health_code(found.health);
            live.reconciled = Some(found.began);
            if live.refresh && live.nonce == found.nonce {
                (live.refresh, live.nonce, live.answered) = (false, None, true);
            }
            if syncs {
                live.operation = Some(None);
            }
        });
    }

    /// One write of a leader, as the API takes it: under the version it was decided on, unless that is not told.
    pub(crate) fn write(&mut self, write: &Write, template: u8, blindly: bool) -> Written {
        if self.live().version != write.version && !blindly {
            return Written::Refused;
        }
        if write.spec {
            self.spec = template;
        }
        let starts = matches!(write.what, Intent::Start | Intent::Heal);
        if starts {
            let commit = write.revisions.first().and_then(|revision| revision.strip_prefix("commit-"));
            self.operation = commit.and_then(|commit| commit.parse().ok());
        }
        self.change(|live| {
            live.stamp = Some(write.stamp.clone());
            if write.what == Intent::Arm {
                live.automatic = false;
            }
            if let Some(nonce) = &write.nonce {
                (live.refresh, live.nonce, live.answered) = (true, Some(nonce.clone()), false);
            }
            if starts {
                live.operation = Some(Some(write.stamp.clone()));
            }
        });
        Written::Landed
    }
}

fn sync_code(synced: bool) -> SyncCode {
    if synced { SyncCode::Synced } else { SyncCode::OutOfSync }
}

fn health_code(health: u8) -> HealthCode {
    match health {
        0 => HealthCode::Missing,
        1 => HealthCode::Progressing,
        _ => HealthCode::Healthy,
    }
}

// === impl World ===

impl World {
    /// What the run as it is stored is for.
    pub(crate) fn target(&self) -> Option<Content> {
        let row = self.head.as_ref()?.head.rows().first()?;
        let contents = (1..=3).flat_map(|template| (1..=3).map(move |commit| Content { template, commit }));
        contents.into_iter().find(|content| content.pin() == row.pin)
    }

    /// Whether the rollout has ended, and every Application has what is wanted by now.
    pub(crate) fn is_complete(&self) -> bool {
        let finished = self.head.as_ref().is_some_and(|stored| stored.head.run.finished.is_some());
        finished && self.apps.iter().all(|app| app.is_at(self.newest))
    }

    /// An Application has a new version: every leader hears of it some time, except whoever was answered with it.
    pub(crate) fn announce(&mut self, app: usize, answered: Option<usize>, setup: &Setup) {
        let version = self.apps[app].version.clone();
        for (number, leader) in self.leaders.iter_mut().enumerate() {
            if answered != Some(number) {
                leader.expect(app, version.clone(), setup.lag);
            }
        }
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, until: u64) {
        self.now = until;
        self.leaders.iter_mut().for_each(|leader| leader.rouse(until));
    }

    /// A short account, for people who read how a property came to be broken.
    pub(crate) fn account(&self) -> String {
        let mut text = format!("{:>6} ms", self.now);
        match &self.head {
            Some(stored) => {
                let (head, run) = (&stored.head, &stored.head.run);
                let end = if run.finished.is_some() { " ended" } else { "" };
                let _ = write!(text, " | run {} open {}{end} for {:?}:", run.seq, run.open, self.target());
                for row in head.rows() {
                    let _ = write!(
                        text,
                        " {}{}{}{}",
                        row.intent.map_or("-".to_owned(), |intent| format!("{intent:?}")),
                        row.n,
                        if row.slot { "+" } else { "" },
                        row.done.map_or(String::new(), |done| format!("={done:?}")),
                    );
                    text.push_str(if row.fence { "!" } else { "" });
                }
            }
            None => text.push_str(" | no head"),
        }
        for app in &self.apps {
            let live = app.live();
            let stamp = |stamp: &Stamp| format!("{}.{}", stamp.run, stamp.n);
            let last = live.last.as_ref().map(|last| last.phase.as_str().to_owned());
            let _ = write!(
                text,
                " | v{} {} op {:?} last {} {:?}@{:?} {:?}{} has {}/{}{}",
                live.version,
                live.stamp.as_ref().map_or("-".to_owned(), stamp),
                app.operation,
                last.unwrap_or_default(),
                live.sync,
                live.reported.first(),
                live.health,
                if live.refresh { " refresh" } else { "" },
                app.cluster.template,
                app.cluster.commit,
                if app.ready { "" } else { " unready" },
            );
        }
        text
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.now.hash(state);
        self.apps.hash(state);
        self.newest.hash(state);
        self.changes.hash(state);
        self.leaders.hash(state);
        self.left.hash(state);
        self.judge.hash(state);
        self.stray.hash(state);
        self.head.as_ref().map(|stored| stored.print).hash(state);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &World) -> bool {
        let print = |world: &World| {
            let mut hasher = DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        };
        print(self) == print(other)
    }
}
