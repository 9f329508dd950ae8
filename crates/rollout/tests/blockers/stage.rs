//! A small stage for the machine: an API that counts versions, a repository with one branch, and an Application
//! controller that does its work within seconds, unless a test puts it into another mood.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_rollout::blocker::{Blocker, Reason};
use baton_rollout::control;
use baton_rollout::head::{Change, Intent, Run};
use baton_rollout::live::{Live, Operation};
use baton_rollout::machine::{Control, Machine, Member, Wanted, Write};
use baton_rollout::pin::{Fingerprint, Resolution, SourceKey};
use baton_rollout::stamp::Stamp;
use baton_rollout::steps::Steps;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::fresh::created;

pub(crate) const REPOSITORY: &str = "https://git.example.com/r.git";
/// How many turns a machine may take until it rests.
const TURNS: usize = 100;

/// What the Application controller makes of an Application.
#[derive(Clone, Copy)]
pub(crate) enum Mood {
    /// It compares and syncs.
    Well,
    /// It does not look at it at all.
    Idle,
    /// It begins operations and does not end them.
    NeverEnds,
    /// Operations fail with this message.
    Fails(&'static str),
    /// Operations wait for a person to approve a deletion.
    AwaitsApproval,
    /// It forgets `.operation` while that runs.
    Orphans,
    /// Operations prune nothing, though something is to be pruned.
    KeepsPrunings,
    /// It reports something else than is the case.
    Reports(fn(&mut Live)),
    /// Somebody changes every specification that is written.
    Rewritten,
}

struct Thing {
    live: Live,
    mood: Mood,
    /// The specification of the last comparison.
    compared: Fingerprint,
    /// Revision and stamp of `.operation`.
    operation: Option<(Arc<str>, Option<Stamp>)>,
    /// What the cluster has: specification and revision.
    cluster: Option<(Fingerprint, Arc<str>)>,
    unpruned: bool,
}

/// A machine and its world.
pub(crate) struct Stage {
    pub(crate) now: Timestamp,
    pub(crate) wanted: Wanted,
    /// What people wrote on the set.
    pub(crate) annotations: BTreeMap<String, String>,
    /// What the branch is, or why nobody can tell.
    pub(crate) branch: Result<String, String>,
    pub(crate) machine: Machine,
    /// What the Application controller reports for a revision, where that is not the revision itself.
    pub(crate) alias: Option<fn(&str) -> String>,
    /// Starts that came before an earlier step was where it is to be.
    pub(crate) disorder: Vec<String>,
    things: BTreeMap<Arc<str>, Thing>,
    version: u64,
    commits: u64,
    templates: u64,
    writes: usize,
}

pub(crate) fn key() -> SourceKey {
    SourceKey { repo: REPOSITORY.into(), target: "main".into(), chart: "".into(), tag_prefix: "".into() }
}

fn template(number: u64) -> Fingerprint {
    Fingerprint::of([format!("template {number}")])
}

fn member(step: usize, spec: Fingerprint) -> Member {
    Member {
        step: Some(step),
        spec: Some(spec),
        sources: vec![key()],
        self_heal: false,
        fault: None,
        back: None,
    }
}

impl Stage {
    /// Applications in the steps that are told by their numbers, all just created.
    pub(crate) fn new(steps: Value, members: &[(&str, usize)]) -> Stage {
        let now = Timestamp::from_second(1_700_000_000).expect("a time");
        let wanted = Wanted {
            set: "set-uid".into(),
            generation: 1,
            steps: read(steps),
            members: members
                .iter()
                .map(|(name, step)| ((*name).into(), member(*step, template(1))))
                .collect(),
            frozen: None,
            fuse: None,
            keeps_leavers: false,
            control: Control::default(),
        };
        let mut stage = Stage {
            now,
            wanted,
            annotations: BTreeMap::new(),
            branch: Ok("commit-1".to_owned()),
            machine: Machine::new(None),
            alias: None,
            disorder: Vec::new(),
            things: BTreeMap::new(),
            version: 100,
            commits: 1,
            templates: 1,
            writes: 0,
        };
        members.iter().for_each(|(name, _)| stage.create(name));
        stage
    }

    /// The same after everything was rolled out.
    pub(crate) fn settled(steps: Value, members: &[(&str, usize)]) -> Stage {
        let mut stage = Stage::new(steps, members);
        stage.until("the first run to end", Stage::is_over);
        stage
    }

    /// Lets an Application appear.
    pub(crate) fn create(&mut self, name: &str) {
        let live = created(name, &format!("uid-{name}"), 0, template(self.templates));
        let compared = Fingerprint::default();
        let thing =
            Thing { live, mood: Mood::Well, compared, operation: None, cluster: None, unpruned: false };
        self.things.insert(name.into(), thing);
        self.show(name);
    }

    /// Takes an Application away.
    pub(crate) fn remove(&mut self, name: &str) {
        let thing = self.things.remove(name).expect("an Application");
        self.machine.gone(name, &thing.live.uid);
    }

    pub(crate) fn mood(&mut self, name: &str, mood: Mood) {
        let thing = self.thing(name);
        thing.mood = mood;
        thing.unpruned = matches!(mood, Mood::KeepsPrunings);
    }

    /// The cause of all trouble is mended.
    pub(crate) fn mend(&mut self) {
        self.things.values_mut().for_each(|thing| thing.mood = Mood::Well);
    }

    /// Changes something of an Application that the Application controller does not.
    pub(crate) fn edit(&mut self, name: &str, change: impl Fn(&mut Live)) {
        change(&mut self.thing(name).live);
        self.show(name);
    }

    /// Somebody changes the cluster of an Application.
    pub(crate) fn drift(&mut self, name: &str) {
        self.thing(name).cluster = Some((Fingerprint::default(), "by hand".into()));
    }

    pub(crate) fn commit(&mut self) {
        self.commits += 1;
        self.release(&format!("commit-{}", self.commits));
    }

    /// What is asked for is this from now on.
    pub(crate) fn release(&mut self, revision: &str) {
        self.branch = Ok(revision.to_owned());
        self.machine.doubt_revisions();
    }

    pub(crate) fn change_template(&mut self) {
        self.templates += 1;
        self.want_spec(template(self.templates));
    }

    /// The field that somebody changes is ignored from now on, wherever it is.
    pub(crate) fn ignore_the_field(&mut self) {
        let without = Fingerprint::of(["the template without the field"]);
        self.want_spec(without);
        let names: Vec<Arc<str>> = self.things.keys().cloned().collect();
        names.iter().for_each(|name| self.edit(name, |live| live.spec = without));
    }

    fn want_spec(&mut self, spec: Fingerprint) {
        self.wanted.members.values_mut().for_each(|member| member.spec = Some(spec));
        self.wanted.generation += 1;
    }

    pub(crate) fn change_steps(&mut self, steps: Value) {
        self.wanted.steps = read(steps);
        self.wanted.generation += 1;
    }

    /// Writes an annotation on the set, or takes it away.
    pub(crate) fn annotate(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => drop(self.annotations.insert(name.to_owned(), value.to_owned())),
            None => drop(self.annotations.remove(name)),
        }
    }

    /// Syncs an Application by hand, with prune, at what the branch is.
    pub(crate) fn sync_by_hand(&mut self, name: &str) {
        let revision: Arc<str> = self.branch.as_deref().expect("a revision").into();
        let thing = self.thing(name);
        assert!(thing.operation.is_none(), "the API refuses a second operation");
        // As a person's client does, so that the state of before is not taken for this one's.
        thing.live.last = None;
        (thing.operation, thing.unpruned) = (Some((revision, None)), false);
        self.show(name);
    }

    /// The pin that the run has for an Application.
    pub(crate) fn pin(&self, name: &str) -> Fingerprint {
        let id = Fingerprint::of([&*self.things[name].live.uid]);
        self.machine.head().row(id).expect("a row").pin
    }

    /// What is waited for.
    pub(crate) fn blockers(&self) -> Vec<Blocker> {
        self.machine.blockers(self.now)
    }

    pub(crate) fn blocker(&self, reason: Reason, object: &str) -> Option<Blocker> {
        self.blockers().into_iter().find(|one| one.reason == reason && &*one.object == object)
    }

    /// How often anything was written.
    pub(crate) fn writes(&self) -> usize {
        self.writes
    }

    /// Whether the run is over, everything is where it is to be, and nothing is waited for.
    pub(crate) fn is_over(&self) -> bool {
        let there = |thing: &Thing| {
            let skipped = self.wanted.control.skip.contains_key(&thing.live.name);
            let target = self.branch.as_deref().ok();
            let revision = thing.cluster.as_ref().map(|(_, revision)| &**revision);
            skipped || (revision.is_some() && revision == target)
        };
        self.machine.head().run.finished.is_some()
            && self.blockers().is_empty()
            && self.things.values().all(there)
    }

    pub(crate) fn until(&mut self, what: &str, hoped: impl Fn(&Stage) -> bool) {
        for _ in 0..3600 {
            if hoped(self) {
                return;
            }
            self.tick();
        }
        panic!("in vain: {what}\n{:#?}\n{:#?}", self.blockers(), self.machine.head().run);
    }

    /// Lets so many seconds pass.
    pub(crate) fn pass(&mut self, seconds: usize) {
        (0..seconds).for_each(|_| self.tick());
    }

    /// Lets a second pass.
    fn tick(&mut self) {
        self.now += SignedDuration::from_secs(1);
        let before = (self.version, self.writes);
        let names: Vec<Arc<str>> = self.things.keys().cloned().collect();
        names.iter().for_each(|name| self.control_application(name));
        self.roll_out();
        let moved = before != (self.version, self.writes);
        let run = &self.machine.head().run;
        assert!(
            run.finished.is_some() || moved || !self.blockers().is_empty(),
            "nothing happens, and nothing is named: {run:#?}"
        );
    }

    /// The machine goes on until it asks for nothing more.
    fn roll_out(&mut self) {
        for _ in 0..TURNS {
            self.wanted.control = control::read(Some(&self.annotations));
            self.machine.wants(self.wanted.clone(), self.now);
            let run = &self.machine.head().run;
            if run.paused && !self.wanted.control.paused {
                // The set was read anew, and asks for no pause.
                let run = Run { paused: false, ..run.clone() };
                self.machine.stored(&Change { run: Some(run), ..Change::default() });
            }
            let decision = self.machine.decide(self.now);
            for key in &decision.resolve {
                self.machine.resolved(key, self.resolution(), self.now);
            }
            if decision.list {
                let all = self.things.values().map(|thing| thing.live.clone()).collect();
                self.machine.listed(self.version, all);
            } else if let Some(change) = &decision.change {
                self.writes += 1;
                self.machine.stored(change);
            } else if !decision.writes.is_empty() {
                decision.writes.iter().for_each(|write| self.write(write));
            } else if decision.resolve.is_empty() {
                return;
            }
        }
        panic!("the machine does not come to rest: {:#?}", self.blockers());
    }

    fn resolution(&self) -> Result<Resolution, String> {
        let mut resolution = Resolution::exact(self.branch.clone()?);
        let alias = self.alias.map(|alias| alias(&resolution.sync));
        resolution.accept.extend(alias.map(Arc::from));
        Ok(resolution)
    }

    /// Notes who of the earlier steps is not where the one that starts is to be.
    fn judge_start(&mut self, write: &Write) {
        let target = |name: &Arc<str>| Some((self.wanted.members[name].spec?, write.revisions[0].clone()));
        let own = self.wanted.members[&write.name].step;
        let earlier = self.wanted.members.iter().filter(|(_, member)| member.step < own);
        let late = earlier.filter(|(name, _)| self.things[*name].cluster != target(name));
        let late: Vec<String> =
            late.map(|(name, _)| format!("{} starts before {name}", write.name)).collect();
        self.disorder.extend(late);
    }

    /// One write of the rollout.
    fn write(&mut self, write: &Write) {
        self.writes += 1;
        if write.what == Intent::Start {
            self.judge_start(write);
        }
        let (spec, version) = (self.wanted.members.get(&write.name).and_then(|one| one.spec), self.version);
        let thing = self.thing(&write.name);
        assert_eq!((&thing.live.uid, thing.live.version), (&write.uid, write.version));
        let live = &mut thing.live;
        live.stamp = Some(write.stamp.clone());
        if write.spec {
            live.spec = match thing.mood {
                Mood::Rewritten => Fingerprint::of([format!("rewritten {version}")]),
                _ => spec.expect("a specification"),
            };
        }
        if write.what == Intent::Arm {
            live.automatic = false;
        }
        if let Some(nonce) = &write.nonce {
            (live.refresh, live.nonce, live.answered) = (true, Some(nonce.clone()), false);
        }
        if matches!(write.what, Intent::Start | Intent::Heal) {
            thing.operation = Some((write.revisions[0].clone(), Some(write.stamp.clone())));
        }
        if write.what == Intent::Terminate {
            thing.live.last.as_mut().expect("an operation").phase = OperationPhase::Terminating;
        }
        self.show(&write.name);
    }

    /// What the Application controller does in a second.
    fn control_application(&mut self, name: &str) {
        let (now, alias) = (self.now.as_second(), self.alias);
        let branch = self.branch.clone().ok().map(Arc::<str>::from);
        let thing = self.thing(name);
        let before = thing.live.clone();
        match (thing.mood, thing.operation.is_some()) {
            (Mood::Idle, _) => return,
            (_, true) => thing.operate(now),
            (_, false) => thing.compare(now, branch, alias),
        }
        if thing.live != before || thing.live.operation.is_some() != thing.operation.is_some() {
            self.show(name);
        }
    }

    /// A new version of an Application, which the machine sees.
    fn show(&mut self, name: &str) {
        self.version += 1;
        let version = self.version;
        let thing = self.thing(name);
        thing.live.version = version;
        thing.live.compared = thing.compared == thing.live.spec;
        thing.live.operation = thing.operation.as_ref().map(|(_, stamp)| stamp.clone());
        let live = thing.live.clone();
        self.machine.saw(live);
    }

    fn thing(&mut self, name: &str) -> &mut Thing {
        self.things.get_mut(name).expect("an Application")
    }
}

impl Thing {
    fn operate(&mut self, now: i64) {
        let Some((revision, stamp)) = self.operation.clone() else { return };
        let running = self.live.last.as_ref().is_some_and(Operation::is_running);
        if !running {
            let awaits = matches!(self.mood, Mood::AwaitsApproval);
            self.live.last = Some(Operation {
                phase: OperationPhase::Running,
                stamp,
                full: true,
                revisions: vec![revision],
                finished: None,
                retrying: false,
                awaits_approval: awaits,
                message: if awaits { "waiting for pruning confirmation: v1/Secret" } else { "running" }
                    .into(),
            });
            return;
        }
        let last = self.live.last.as_mut().expect("an operation runs");
        match self.mood {
            Mood::NeverEnds | Mood::AwaitsApproval if last.phase == OperationPhase::Running => return,
            // The status says that it runs, and nobody carries it out any more.
            Mood::Orphans => return self.operation = None,
            Mood::Fails(why) => (last.phase, last.message) = (OperationPhase::Failed, why.into()),
            _ if last.phase == OperationPhase::Terminating => last.phase = OperationPhase::Failed,
            _ => {
                last.phase = OperationPhase::Succeeded;
                self.live.deployed = vec![revision.clone()];
                self.cluster = Some((self.live.spec, revision));
                if !matches!(self.mood, Mood::KeepsPrunings) {
                    self.unpruned = false;
                }
            }
        }
        (last.finished, last.awaits_approval) = (Some(now), false);
        self.operation = None;
    }

    /// A comparison: it is written where it tells something new, or was asked for.
    fn compare(&mut self, now: i64, branch: Option<Arc<str>>, alias: Option<fn(&str) -> String>) {
        let orphaned = self.live.last.as_ref().is_some_and(Operation::is_running);
        let Some(branch) = branch.filter(|_| !orphaned) else { return };
        let before = self.live.clone();
        let live = &mut self.live;
        let same = self.cluster.as_ref() == Some(&(live.spec, branch.clone())) && !self.unpruned;
        live.sync = if same { SyncCode::Synced } else { SyncCode::OutOfSync };
        live.prune_only = self.unpruned;
        live.health = if self.cluster.is_some() { HealthCode::Healthy } else { HealthCode::Missing };
        let reported = alias.map_or(branch.clone(), |alias| alias(&branch).into());
        (live.error, live.ailing, live.reported) = (None, None, vec![reported]);
        (live.refresh, live.nonce, live.answered) = (false, None, true);
        self.compared = live.spec;
        if let Mood::Reports(report) = self.mood {
            report(live);
        }
        if *live != before || !live.compared {
            live.reconciled = Some(now);
        }
        // Also of when it compared it may tell something else.
        if let Mood::Reports(report) = self.mood {
            report(live);
        }
    }
}

fn read(steps: Value) -> Steps {
    let steps: Vec<_> = serde_json::from_value(steps).expect("steps");
    Steps::read(&steps).0
}

/// Three Applications: two in the first of two steps, one in the second.
pub(crate) const FLEET: [(&str, usize); 3] = [("a", 0), ("b", 0), ("c", 1)];

/// Two steps that all may enter at once.
pub(crate) fn plain() -> Value {
    json!([{}, {}])
}
