//! The world: an API with versions, an Application controller that compares late and works at its own pace, and the
//! clusters as they really are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_api::strategy::RolloutStep;
use baton_rollout::head::{Head, Intent};
use baton_rollout::live::{Live, Operation};
use baton_rollout::machine::{Control, Member, Wanted, Write};
use baton_rollout::pin::{Fingerprint, SourceKey};
use baton_rollout::stamp::Stamp;
use baton_rollout::steps::Steps;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::dice::Dice;
use crate::fresh::created;

const SET: &str = "set-uid";

/// How late news may be.
pub(crate) const LATEST: u64 = 3000;

/// One Application in the API, with what its cluster really has.
#[derive(Clone)]
pub(crate) struct Thing {
    pub(crate) live: Live,
    /// When it was made.
    pub(crate) born: u64,
    pub(crate) step: Option<usize>,
    /// What the specification is, beside its fingerprint.
    pub(crate) spec: u64,
    /// The specification of the last comparison.
    pub(crate) compared_spec: u64,
    /// `.operation`: revision and stamp.
    pub(crate) operation: Option<(Arc<str>, Option<Stamp>)>,
    /// When the Application controller goes on with the operation.
    pub(crate) works_at: u64,
    /// When it compares by itself.
    pub(crate) compares_at: u64,
    /// What the cluster has: specification, revision, and since when it is ready.
    pub(crate) deployed: Option<(u64, Arc<str>)>,
    pub(crate) ready_at: u64,
    /// When the Application controller writes once more that the operation is over, whatever is there by then.
    pub(crate) wipes_at: u64,
    /// When it is gone, having left the set.
    pub(crate) gone_at: Option<u64>,
}

pub(crate) struct World {
    pub(crate) dice: Dice,
    pub(crate) now: u64,
    pub(crate) version: u64,
    pub(crate) things: BTreeMap<Arc<str>, Thing>,
    /// The revision the branch has, and the one the template has.
    pub(crate) branch: u64,
    pub(crate) template: u64,
    pub(crate) steps: Vec<RolloutStep>,
    /// The steps that the present run was begun with.
    pub(crate) run_steps: Vec<RolloutStep>,
    pub(crate) control: Control,
    /// Why generators fail, while they do.
    pub(crate) frozen: Option<Arc<str>>,
    /// Whether the repository can be asked; else the Applications are.
    pub(crate) resolvable: bool,
    /// Whether it takes longer for one to become ready than until the next commit.
    pub(crate) slow: bool,
    /// Whether operations may fail or be lost.
    pub(crate) faulty: bool,
    pub(crate) head: Option<(u64, BTreeMap<String, String>)>,
    /// What each Application is to be in the present run, and who has been so.
    pub(crate) run: BTreeMap<Arc<str>, (u64, Arc<str>)>,
    pub(crate) arrived: BTreeSet<Arc<str>>,
    pub(crate) started: BTreeSet<Arc<str>>,
    /// Who holds a slot though the sync failed: it keeps others out, not another of its kind.
    pub(crate) failed: BTreeSet<Arc<str>>,
    /// The step each had when the head was last changed: what was intended then was intended for it.
    pub(crate) places: BTreeMap<Arc<str>, Option<usize>>,
    pub(crate) starts: usize,
    pub(crate) writes: usize,
    pub(crate) trace: Vec<String>,
}

pub(crate) fn rev(number: u64) -> Arc<str> {
    format!("commit-{number}").into()
}

pub(crate) fn print(spec: u64) -> Fingerprint {
    Fingerprint::of([format!("spec {spec}")])
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

/// Whether an operation of a rollout waits or runs: nobody else's is our fault.
fn is_ours(live: &Live) -> bool {
    let running = live.last.as_ref().filter(|last| last.is_running());
    live.operation.as_ref().is_some_and(Option::is_some) || running.is_some_and(|last| last.stamp.is_some())
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut dice = Dice(seed);
        let steps = 2 + dice.below(3) as usize;
        let limits = [json!(null), json!(1), json!("50%"), json!(2)];
        let steps: Vec<RolloutStep> = (0..steps)
            .map(|step| {
                let limit = &limits[dice.below(4) as usize];
                let value = json!({
                    "matchExpressions": [{"key": "step", "operator": "In", "values": [step.to_string()]}], "maxUpdate": limit,
                });
                serde_json::from_value(value).expect("a step")
            })
            .collect();
        let mut world = World {
            dice,
            now: 0,
            version: 100,
            things: BTreeMap::new(),
            branch: 1,
            template: 1,
            run_steps: steps.clone(),
            steps,
            control: Control::default(),
            frozen: None,
            resolvable: true,
            slow: false,
            faulty: true,
            head: None,
            run: BTreeMap::new(),
            arrived: BTreeSet::new(),
            started: BTreeSet::new(),
            failed: BTreeSet::new(),
            places: BTreeMap::new(),
            starts: 0,
            writes: 0,
            trace: Vec::new(),
        };
        for number in 0..3 + world.dice.below(6) {
            let automatic = world.dice.chance(30);
            world.create(number, automatic);
        }
        world
    }

    pub(crate) fn create(&mut self, number: u64, automatic: bool) {
        let step = self.dice.below(self.steps.len() as u64) as usize;
        self.version += 1;
        let name: Arc<str> = format!("app-{number}").into();
        let uid = format!("uid-{number}-{}", self.version);
        let live = Live { automatic, ..created(&name, &uid, self.version, print(self.template)) };
        let compares_at = self.now + self.dice.below(5000);
        let thing = Thing {
            live,
            born: self.now,
            step: Some(step),
            spec: self.template,
            compared_spec: 0,
            operation: None,
            works_at: 0,
            compares_at,
            deployed: None,
            ready_at: 0,
            wipes_at: 0,
            gone_at: None,
        };
        // What was before under this name is nobody's business any more.
        self.started.remove(&name);
        self.arrived.remove(&name);
        self.things.insert(name, thing);
    }

    pub(crate) fn wanted(&self) -> Wanted {
        let member = |thing: &Thing| Member {
            step: thing.step,
            spec: Some(print(self.template)),
            sources: vec![key()],
            self_heal: true,
            fault: None,
            back: None,
        };
        Wanted {
            set: SET.into(),
            generation: self.template as i64,
            steps: Steps::read(&self.steps).0,
            members: self.staying().map(|(name, thing)| (name.clone(), member(thing))).collect(),
            frozen: self.frozen.clone(),
            fuse: None,
            keeps_leavers: false,
            control: self.control.clone(),
        }
    }

    pub(crate) fn staying(&self) -> impl Iterator<Item = (&Arc<str>, &Thing)> {
        self.things.iter().filter(|(_, thing)| thing.gone_at.is_none())
    }

    fn changed(&mut self, name: &str) {
        self.version += 1;
        let thing = self.things.get_mut(name).expect("an Application");
        thing.live.version = self.version;
        thing.live.compared = thing.compared_spec == thing.spec;
        thing.live.operation = thing.operation.as_ref().map(|(_, stamp)| stamp.clone());
    }

    /// What the Application controller and the clusters do by themselves.
    pub(crate) fn live_on(&mut self) {
        let now = self.now;
        self.things.retain(|_, thing| thing.gone_at.is_none_or(|at| at > now));
        let names: Vec<Arc<str>> = self.things.keys().cloned().collect();
        for name in names {
            self.operate(&name);
            self.compare(&name);
            let thing = &self.things[&name];
            if let Some(target) = self.run.get(&name)
                && thing.deployed.as_ref() == Some(target)
                && thing.ready_at <= self.now
                && !thing.live.is_busy()
            {
                self.arrived.insert(name);
            }
        }
    }

    fn operate(&mut self, name: &Arc<str>) {
        let now = self.now;
        let pace = 200 + self.dice.below(4000);
        let ready_in = if self.slow { 70_000 } else { self.dice.below(6000) };
        let (sync_fails, quick) = (self.faulty && self.dice.chance(10), self.dice.chance(20));
        let wipe = if self.faulty && self.dice.chance(20) { now + self.dice.below(3000) } else { 0 };
        let thing = self.things.get_mut(name).expect("an Application");
        let running = thing.live.last.as_ref().is_some_and(|last| last.is_running());
        if thing.wipes_at != 0 && thing.wipes_at <= now {
            thing.wipes_at = 0;
            if thing.operation.is_some() && !running {
                thing.operation = None;
                thing.works_at = 0;
                self.trace.push(format!("{now} the operation of {name} is wiped"));
                // It never ran.
                self.started.remove(name);
                self.changed(name);
                return;
            }
        }
        let Some((revision, stamp)) = thing.operation.clone() else { return };
        if thing.works_at == 0 {
            thing.works_at = now + pace;
        }
        if thing.works_at > now {
            return;
        }
        if !running {
            thing.live.last = Some(Operation {
                phase: OperationPhase::Running,
                stamp,
                full: true,
                revisions: vec![revision],
                finished: None,
                retrying: false,
                awaits_approval: false,
                message: "running".into(),
            });
            thing.works_at = now + pace;
        } else {
            let spec = thing.spec;
            let last = thing.live.last.as_mut().expect("an operation");
            last.phase = if sync_fails { OperationPhase::Failed } else { OperationPhase::Succeeded };
            last.finished = Some(seconds(now));
            if sync_fails {
                self.failed.insert(name.clone());
            } else {
                thing.live.deployed = last.revisions.clone();
                thing.deployed = Some((spec, revision));
                thing.ready_at = now + if quick { 0 } else { ready_in };
            }
            thing.operation = None;
            thing.wipes_at = wipe;
            thing.works_at = 0;
            thing.compares_at = now + pace;
        }
        self.changed(name);
    }

    fn compare(&mut self, name: &Arc<str>) {
        let (now, next) = (self.now, 1000 + self.dice.below(60_000));
        let branch = rev(self.branch);
        let thing = self.things.get_mut(name).expect("an Application");
        let unready = thing.ready_at > now && thing.live.health == HealthCode::Healthy;
        let became_ready = thing.ready_at <= now && thing.live.health == HealthCode::Progressing;
        if thing.live.refresh {
            thing.compares_at = thing.compares_at.min(now + 300);
        }
        if thing.compares_at > now && !unready && !became_ready {
            return;
        }
        thing.compares_at = now + next;
        thing.compared_spec = thing.spec;
        thing.live.reported = vec![branch.clone()];
        let same = thing.deployed.as_ref() == Some(&(thing.spec, branch));
        thing.live.sync = if same { SyncCode::Synced } else { SyncCode::OutOfSync };
        thing.live.health = match &thing.deployed {
            None => HealthCode::Missing,
            Some(_) if thing.ready_at > now => HealthCode::Progressing,
            Some(_) => HealthCode::Healthy,
        };
        thing.live.reconciled = Some(seconds(now));
        (thing.live.refresh, thing.live.nonce, thing.live.answered) = (false, None, true);
        if thing.live.automatic && !same && thing.operation.is_none() {
            thing.operation = Some((rev(self.branch), None));
        }
        self.changed(name);
    }

    /// One write of a controller, as the API takes it.
    pub(crate) fn write(&mut self, write: &Write) -> Result<Live, Option<Box<Live>>> {
        let Some(thing) = self.things.get(&write.name) else { return Err(None) };
        if thing.live.uid != write.uid || thing.live.version != write.version {
            return Err(Some(Box::new(thing.live.clone())));
        }
        self.writes += 1;
        self.trace.push(format!(
            "{} {} {:?} n={} run={}",
            self.now, write.name, write.what, write.stamp.n, write.stamp.run
        ));
        let starts = matches!(write.what, Intent::Start | Intent::Heal);
        if starts || write.spec || write.what == Intent::Arm {
            assert!(
                !thing.live.is_busy(),
                "{} is written while an operation runs: {:#?}",
                write.name,
                self.trace
            );
        }
        let template = self.template_of_run(&write.name);
        if write.what == Intent::Start {
            self.judge_start(write);
        }
        let thing = self.things.get_mut(&write.name).expect("an Application");
        thing.live.stamp = Some(write.stamp.clone());
        if write.spec {
            thing.spec = template;
            thing.live.spec = print(template);
        }
        if write.what == Intent::Arm {
            thing.live.automatic = false;
        }
        if let Some(nonce) = &write.nonce {
            (thing.live.refresh, thing.live.nonce, thing.live.answered) = (true, Some(nonce.clone()), false);
        }
        if starts {
            thing.operation = Some((write.revisions[0].clone(), Some(write.stamp.clone())));
            thing.works_at = 0;
        }
        self.changed(&write.name);
        Ok(self.things[&write.name].live.clone())
    }

    /// What happened last.
    pub(crate) fn tail(&self) -> &[String] {
        &self.trace[self.trace.len().saturating_sub(30)..]
    }

    fn template_of_run(&self, name: &Arc<str>) -> u64 {
        self.run.get(name).map_or(self.template, |(spec, _)| *spec)
    }

    /// I1 and I2, at a write that starts a sync.
    fn judge_start(&mut self, write: &Write) {
        self.starts += 1;
        let place = self.places.get(&write.name).copied();
        let step = place.unwrap_or(self.things[&write.name].step).expect("a step");
        for (name, place) in self.places.iter().filter(|(name, _)| self.run.contains_key(*name)) {
            // Of one that was made just now nobody has heard yet.
            let known = |thing: &Thing| thing.born == 0 || thing.born + LATEST < self.now;
            let gone = !self.things.get(name).is_some_and(known);
            let earlier = place.is_some_and(|other| other < step);
            assert!(
                !earlier || gone || self.arrived.contains(name),
                "{} of step {step} starts before {name} of step {:?} has arrived: {:#?}",
                write.name,
                place,
                self.tail()
            );
        }
        let mates = || self.things.iter().filter(|(name, _)| self.places.get(*name) == Some(&Some(step)));
        let again = self.started.contains(&write.name);
        let unfinished = |name: &Arc<str>| {
            let ended = again && self.failed.contains(name);
            self.started.contains(name) && !self.arrived.contains(name) && !ended
        };
        let under_way = mates()
            .filter(|(name, thing)| **name != write.name && (is_ours(&thing.live) || unfinished(name)));
        let total = self.places.values().filter(|place| **place == Some(step)).count();
        let steps = if self.control.finish { &self.run_steps } else { &self.steps };
        let limit = Steps::read(steps).0.get(step).expect("a step").limit(total);
        let names: Vec<&Arc<str>> = under_way.map(|(name, _)| name).collect();
        let count = names.len() + 1;
        assert!(
            count <= limit,
            "{names:?} of step {step} are under way beside {}, {limit} may be: {:#?}",
            write.name,
            self.tail()
        );
        self.started.insert(write.name.clone());
        self.failed.remove(&write.name);
    }

    /// A compare-and-swap of the head.
    pub(crate) fn swap(&mut self, seen: u64, texts: BTreeMap<String, Option<String>>) -> bool {
        let (version, stored) = self.head.get_or_insert_with(|| (0, BTreeMap::new()));
        if *version != seen {
            return false;
        }
        for (key, text) in texts {
            match text {
                Some(text) => drop(stored.insert(key, text)),
                None => drop(stored.remove(&key)),
            }
        }
        *version += 1;
        let head = Head::read(stored).expect("a head");
        self.places = self.staying().map(|(name, thing)| (name.clone(), thing.step)).collect();
        let text = format!(
            "{} head: run {} open {} finished {:?}",
            self.now, head.run.seq, head.run.open, head.run.finished
        );
        self.trace.push(text);
        true
    }
}
