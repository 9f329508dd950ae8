//! The machine against a small world: an API with versions, an Application controller that compares late and works at
//! its own pace, news that arrive late, controllers that crash or sleep between two steps. What is judged is what
//! happened in that world, not what the machine believes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_api::strategy::RolloutStep;
use baton_rollout::blocker::Reason;
use baton_rollout::head::{Head, Intent};
use baton_rollout::live::{Live, Operation};
use baton_rollout::machine::{Control, Machine, Member, Wanted, Write};
use baton_rollout::pin::{Fingerprint, Resolution, SourceKey};
use baton_rollout::stamp::Stamp;
use baton_rollout::steps::Steps;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

const SET: &str = "set-uid";
const STORIES: u64 = 200;

/// SplitMix64: the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// One Application in the API, with what its cluster really has.
#[derive(Clone)]
struct Thing {
    live: Live,
    step: Option<usize>,
    /// What the specification is, beside its fingerprint.
    spec: u64,
    /// The specification of the last comparison.
    compared_spec: u64,
    /// `.operation`: revision and stamp.
    operation: Option<(Arc<str>, Option<Stamp>)>,
    /// When the Application controller goes on with the operation.
    works_at: u64,
    /// When it compares by itself.
    compares_at: u64,
    /// What the cluster has: specification, revision, and since when it is ready.
    deployed: Option<(u64, Arc<str>)>,
    ready_at: u64,
    /// When the Application controller writes once more that the operation is over, whatever is there by then.
    wipes_at: u64,
    /// When it is gone, having left the set.
    gone_at: Option<u64>,
}

struct World {
    dice: Dice,
    now: u64,
    version: u64,
    things: BTreeMap<Arc<str>, Thing>,
    /// The revision the branch has, and the one the template has.
    branch: u64,
    template: u64,
    steps: Vec<RolloutStep>,
    /// The steps that the present run was begun with.
    run_steps: Vec<RolloutStep>,
    control: Control,
    /// Why generators fail, while they do.
    frozen: Option<Arc<str>>,
    /// Whether the repository can be asked; else the Applications are.
    resolvable: bool,
    /// Whether it takes longer for one to become ready than until the next commit.
    slow: bool,
    /// Whether operations may fail or be lost.
    faulty: bool,
    head: Option<(u64, BTreeMap<String, String>)>,
    /// What each Application is to be in the present run, and who has been so.
    run: BTreeMap<Arc<str>, (u64, Arc<str>)>,
    arrived: BTreeSet<Arc<str>>,
    started: BTreeSet<Arc<str>>,
    /// Who holds a slot though the sync failed: it keeps others out, not another of its kind.
    failed: BTreeSet<Arc<str>>,
    /// The step each had when the head was last changed: what was intended then was intended for it.
    places: BTreeMap<Arc<str>, Option<usize>>,
    starts: usize,
    writes: usize,
    trace: Vec<String>,
}

fn rev(number: u64) -> Arc<str> {
    format!("commit-{number}").into()
}

fn print(spec: u64) -> Fingerprint {
    Fingerprint::of([format!("spec {spec}")])
}

fn key() -> SourceKey {
    SourceKey { repo: "repo".into(), target: "main".into(), chart: "".into(), tag_prefix: "".into() }
}

fn time(now: u64) -> Timestamp {
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
    fn new(seed: u64) -> World {
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

    fn create(&mut self, number: u64, automatic: bool) {
        let step = self.dice.below(self.steps.len() as u64) as usize;
        self.version += 1;
        let name: Arc<str> = format!("app-{number}").into();
        let live = Live {
            name: name.clone(),
            uid: format!("uid-{number}-{}", self.version).into(),
            version: self.version,
            terminating: false,
            stamp: None,
            spec: print(self.template),
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
            reconciled: None,
            closed: None,
            heals_in_order: false,
        };
        let compares_at = self.now + self.dice.below(5000);
        let thing = Thing {
            live,
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
        self.things.insert(name, thing);
    }

    fn wanted(&self) -> Wanted {
        let member = |thing: &Thing| Member {
            step: thing.step,
            spec: Some(print(self.template)),
            sources: vec![key()],
            self_heal: true,
            fault: None,
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

    fn staying(&self) -> impl Iterator<Item = (&Arc<str>, &Thing)> {
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
    fn live_on(&mut self) {
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
        (thing.live.refresh, thing.live.nonce) = (false, None);
        if thing.live.automatic && !same && thing.operation.is_none() {
            thing.operation = Some((rev(self.branch), None));
        }
        self.changed(name);
    }

    /// One write of a controller, as the API takes it.
    fn write(&mut self, write: &Write) -> Result<Live, Option<Box<Live>>> {
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
            (thing.live.refresh, thing.live.nonce) = (true, Some(nonce.clone()));
        }
        if starts {
            thing.operation = Some((write.revisions[0].clone(), Some(write.stamp.clone())));
            thing.works_at = 0;
        }
        self.changed(&write.name);
        Ok(self.things[&write.name].live.clone())
    }

    /// What happened last.
    fn tail(&self) -> &[String] {
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
            let gone = !self.things.contains_key(name);
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
    fn swap(&mut self, seen: u64, texts: BTreeMap<String, Option<String>>) -> bool {
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

enum News {
    Seen(Box<Live>),
    Gone(Arc<str>),
}

/// A controller: a machine, what it has not heard yet, and what it is about to write.
struct Controller {
    machine: Machine,
    head: u64,
    news: VecDeque<(u64, News)>,
    uids: BTreeMap<Arc<str>, Arc<str>>,
    pending: VecDeque<Write>,
    known: BTreeMap<Arc<str>, u64>,
    asleep_until: u64,
    lag: u64,
}

impl Controller {
    fn start(world: &mut World) -> Controller {
        let (version, head) = match &world.head {
            Some((version, texts)) => (*version, Head::read(texts).ok()),
            None => (0, None),
        };
        let mut machine = Machine::new(head);
        machine.wants(world.wanted(), time(world.now));
        let lag = world.dice.below(3000);
        let known = world.things.iter().map(|(name, thing)| (name.clone(), thing.live.version)).collect();
        world.things.values().for_each(|thing| machine.saw(thing.live.clone()));
        let uids = world.things.iter().map(|(name, thing)| (name.clone(), thing.live.uid.clone())).collect();
        Controller {
            uids,
            machine,
            head: version,
            news: VecDeque::new(),
            pending: VecDeque::new(),
            known,
            asleep_until: 0,
            lag,
        }
    }

    /// Hears of what changed, late and in order.
    fn listen(&mut self, world: &World) {
        let gone: Vec<Arc<str>> =
            self.known.keys().filter(|name| !world.things.contains_key(*name)).cloned().collect();
        for name in gone {
            self.known.remove(&name);
            self.news.push_back((world.now + self.lag, News::Gone(name)));
        }
        for (name, thing) in &world.things {
            if self.known.get(name) != Some(&thing.live.version) {
                self.known.insert(name.clone(), thing.live.version);
                self.news.push_back((world.now + self.lag, News::Seen(Box::new(thing.live.clone()))));
            }
        }
        while self.news.front().is_some_and(|(at, _)| *at <= world.now) {
            match self.news.pop_front() {
                Some((_, News::Seen(live))) => {
                    self.uids.insert(live.name.clone(), live.uid.clone());
                    self.machine.saw(*live);
                }
                Some((_, News::Gone(name))) => {
                    let uid = self.uids.remove(&name).unwrap_or_default();
                    self.machine.gone(&name, &uid);
                }
                None => {}
            }
        }
    }

    /// Does one thing.
    fn act(&mut self, world: &mut World) {
        let now = time(world.now);
        if let Some(write) = self.pending.pop_front() {
            match world.write(&write) {
                Ok(live) => self.machine.saw(live),
                Err(live) => {
                    if let Some(live) = live {
                        self.machine.saw(*live);
                    }
                    // A refused write is tried again only after a look at the head.
                    if let Some((version, texts)) =
                        world.head.clone().filter(|(version, _)| *version != self.head)
                    {
                        self.head = version;
                        self.machine.reload(Head::read(&texts).ok());
                    }
                    self.machine.failed(&write.name, write.stamp.n);
                }
            }
            return;
        }
        self.machine.wants(world.wanted(), now);
        let decision = self.machine.decide(now);
        for key in decision.resolve {
            let answer = match world.resolvable {
                true => Ok(Resolution::exact(rev(world.branch))),
                false => Err("nobody can tell".to_owned()),
            };
            self.machine.resolved(&key, answer, now);
        }
        if decision.list {
            let all = world.things.values().map(|thing| thing.live.clone()).collect();
            self.machine.listed(world.version, all);
        }
        if let Some(change) = decision.change {
            let texts = self.machine.head().texts_of(&change);
            match world.swap(self.head, texts) {
                true => {
                    self.head += 1;
                    if change.anew {
                        let revision =
                            change.revisions.as_ref().and_then(|all| all.get(&key())).expect("a revision");
                        let target = (world.template, revision.sync.clone());
                        world.run = world.staying().map(|(name, _)| (name.clone(), target.clone())).collect();
                        world.run_steps.clone_from(&world.steps);
                        world.arrived.clear();
                        world.trace.push(format!("{} run for {target:?}", world.now));
                        world.started.clear();
                        world.failed.clear();
                    }
                    let target = world.run.values().next().cloned();
                    for (name, thing) in &world.things {
                        let joins =
                            change.rows.iter().any(|row| row.id == Fingerprint::of([&*thing.live.uid]));
                        if let Some((_, revision)) = target.clone().filter(|_| joins) {
                            // Who joins a run that is to be finished is what it was made.
                            let followed = self.machine.following().and_then(|one| one.members.get(name));
                            let newest = followed.is_some_and(|one| one.spec == Some(print(world.template)));
                            let spec = if newest { world.template } else { thing.spec };
                            world.run.entry(name.clone()).or_insert((spec, revision));
                        }
                    }
                    self.machine.stored(&change);
                }
                false => {
                    let (version, texts) = world.head.clone().expect("a head");
                    self.head = version;
                    self.machine.reload(Head::read(&texts).ok());
                }
            }
        }
        self.pending.extend(decision.writes);
    }
}

/// Runs one seed: trouble first, then calm; the rollout must come to its end and then be quiet.
fn story(seed: u64) -> (usize, usize) {
    let mut world = World::new(seed);
    world.resolvable = !seed.is_multiple_of(4);
    let mut controllers = vec![Controller::start(&mut world)];
    let trouble = 60_000 + world.dice.below(120_000);
    let (mut commits, mut created) = (1, 100);
    while world.now < trouble {
        world.now += 50 + world.dice.below(150);
        world.live_on();
        match world.dice.below(1000) {
            0..=3 => {
                world.branch += 1;
                commits += 1;
            }
            4..=5 => world.template += 1,
            6..=9 => {
                let at = world.dice.below(controllers.len() as u64) as usize;
                controllers[at] = Controller::start(&mut world);
            }
            10..=12 => {
                let at = world.dice.below(controllers.len() as u64) as usize;
                controllers[at].asleep_until = world.now + world.dice.below(20_000);
            }
            13 if controllers.len() < 2 => {
                let another = Controller::start(&mut world);
                controllers.push(another);
            }
            18 => {
                world.create(created, false);
                created += 1;
            }
            19..=20 => {
                let names: Vec<Arc<str>> = world.things.keys().cloned().collect();
                let name = &names[world.dice.below(names.len() as u64) as usize];
                let at = world.now + world.dice.below(20_000);
                let thing = world.things.get_mut(name).expect("an Application");
                if names.len() > 2 && thing.gone_at.is_none() {
                    world.trace.push(format!("{} {name} leaves until {at}", world.now));
                    thing.gone_at = Some(at);
                }
            }
            21..=22 => {
                let names: Vec<Arc<str>> = world.things.keys().cloned().collect();
                let name = &names[world.dice.below(names.len() as u64) as usize];
                let thing = world.things.get_mut(name).expect("an Application");
                if let Some((spec, _)) = thing.deployed {
                    world.trace.push(format!("{} {name} drifts", world.now));
                    thing.deployed = Some((spec, "drifted".into()));
                    thing.compares_at = world.now;
                }
            }
            25 => {
                let at = world.dice.below(world.steps.len() as u64) as usize;
                let limit = json!(1 + world.dice.below(3));
                world.steps[at].max_update = serde_json::from_value(limit).expect("a number");
                world.template += 1;
                // Who joins while other steps wait for the end of a run is in none of that run's.
                world.control.finish = false;
            }
            26 => world.control.abort = Some(world.now.to_string().into()),
            23..=24 => world.control.retry = Some(world.now.to_string().into()),
            27 => {
                world.frozen = match world.frozen {
                    None => Some("a generator fails".into()),
                    Some(_) => None,
                };
            }
            28 => world.control.finish = !world.control.finish,
            14..=15 => world.control.paused = !world.control.paused,
            16..=17 => {
                let names: Vec<Arc<str>> = world.things.keys().cloned().collect();
                let name = &names[world.dice.below(names.len() as u64) as usize];
                let step = world.dice.below(world.steps.len() as u64) as usize;
                world.trace.push(format!("{} {name} moves to step {step}", world.now));
                world.things.get_mut(name).expect("an Application").step = Some(step);
            }
            _ => {}
        }
        for controller in &mut controllers {
            if controller.asleep_until <= world.now {
                controller.listen(&world);
                controller.act(&mut world);
            }
        }
    }
    world.control.paused = false;
    world.frozen = None;
    world.faulty = false;
    let end = world.now + 1_200_000;
    let mut calm_since = None;
    while world.now < end {
        world.now += 100;
        world.live_on();
        if world.now % 30_000 < 100 && calm_since.is_none() {
            // Somebody looks after what failed.
            world.control.retry = Some(world.now.to_string().into());
        }
        for controller in &mut controllers {
            controller.listen(&world);
            controller.act(&mut world);
        }
        let finished = controllers[0].machine.head().run.finished.is_some();
        let target = (world.template, rev(world.branch));
        let all = world.staying().all(|(_, thing)| thing.deployed.as_ref() == Some(&target));
        match calm_since {
            None if finished && all => calm_since = Some((world.now, world.writes)),
            Some((since, writes)) if world.now > since + 5000 && world.now < since + 5200 => {
                calm_since = Some((since, world.writes.max(writes)));
            }
            Some((since, writes)) if world.now > since + 300_000 => {
                assert_eq!(
                    world.writes, writes,
                    "seed {seed}: writes though nothing changed: {:#?}",
                    world.trace
                );
                return (world.starts, commits);
            }
            _ => {}
        }
    }
    let blockers: Vec<String> = controllers[0]
        .machine
        .blockers(time(world.now))
        .into_iter()
        .map(|blocker| {
            let thing = world.things.get(&blocker.object);
            let row = thing
                .and_then(|thing| controllers[0].machine.head().row(Fingerprint::of([&*thing.live.uid])));
            format!(
                "{:?} {} {}: {row:?} {:?}",
                blocker.reason,
                blocker.object,
                blocker.message,
                thing.map(|thing| &thing.live)
            )
        })
        .collect();
    panic!("seed {seed}: the rollout does not end: {blockers:#?}\n{:#?}", world.tail());
}

/// A commit every minute for half an hour while somebody joins or leaves every ten seconds: the last step is done now
/// and then, or it is said that the rollout starves.
#[test]
fn a_rollout_that_is_never_left_alone_ends_or_says_that_it_starves() {
    for slow in [false, true] {
        let mut world = World::new(7);
        (world.faulty, world.slow) = (false, slow);
        let mut controller = Controller::start(&mut world);
        let (mut created, mut finished, mut starved, mut last) = (100, 0, 0, 0);
        while world.now < 1_800_000 {
            let before = world.now;
            world.now += 100;
            world.live_on();
            let passed = |every: u64| before / every != world.now / every;
            if passed(60_000) {
                world.branch += 1;
            }
            if passed(10_000) {
                let newest: Arc<str> = format!("app-{}", created - 1).into();
                match world.things.get_mut(&newest).filter(|thing| thing.gone_at.is_none()) {
                    Some(thing) => thing.gone_at = Some(world.now + 3000),
                    None => {
                        world.create(created, false);
                        created += 1;
                    }
                }
            }
            controller.listen(&world);
            controller.act(&mut world);
            let run = &controller.machine.head().run;
            if run.finished.is_some() && run.seq > last {
                last = run.seq;
                finished += 1;
            }
            let blockers = controller.machine.blockers(time(world.now));
            starved += usize::from(blockers.iter().any(|blocker| blocker.reason == Reason::Starved));
        }
        println!(
            "slow: {slow}; {finished} runs ended, starving was named {starved} times, {} starts",
            world.starts
        );
        assert!(finished > 0 || starved > 0, "{:#?}", world.tail());
        assert!(slow || finished > 0, "no run ended: {:#?}", world.tail());
    }
}

/// Changes the template, or the steps too, at many moments of a run that is to be finished: it ends with what it was begun
/// for, and the next run brings the rest.
#[test]
fn a_run_that_is_to_be_finished_ends_before_a_newer_template_enters() {
    for moment in 0..40 {
        let mut world = World::new(moment);
        (world.faulty, world.control.finish) = (false, true);
        let mut controller = Controller::start(&mut world);
        let mut step = |world: &mut World| {
            world.now += 100;
            world.live_on();
            controller.listen(world);
            controller.act(world);
            (controller.machine.head().run.clone(), controller.machine.holds_back())
        };
        while step(&mut world).0.seq == 0 {}
        (0..moment * 5).for_each(|_| drop(step(&mut world)));
        let (begun, _) = step(&mut world);
        let under_way = begun.finished.is_none();
        world.template += 1;
        if moment % 3 == 0 {
            // The branch moves on as well: the Applications report another revision than the run's.
            world.branch += 1;
            world.steps[0].max_update = serde_json::from_value(json!(1)).expect("a number");
        }
        if moment % 3 == 1 {
            world.create(200, false);
        }
        let (end, mut held) = (world.now + 1_200_000, false);
        loop {
            let (run, holds_back) = step(&mut world);
            let ended = run.seq > begun.seq || run.finished.is_some();
            let joined = |name: &Arc<str>| &**name == "app-200";
            let mut target = world.run.iter().filter(|(name, _)| !joined(name));
            assert!(ended || !under_way || target.all(|(_, (template, _))| *template == 1));
            held |= holds_back;
            if run.seq > begun.seq && run.finished.is_some() {
                assert_eq!(held, under_way, "moment {moment}");
                assert_eq!(
                    (run.seq, run.restarts),
                    (begun.seq + 1, 0),
                    "moment {moment}: {:#?}",
                    world.tail()
                );
                break;
            }
            assert!(world.now < end, "moment {moment}: it does not end: {:#?}", world.tail());
        }
        let target = (world.template, rev(world.branch));
        assert!(world.staying().all(|(_, thing)| thing.deployed.as_ref() == Some(&target)));
    }
}

#[test]
fn a_lost_head_does_not_give_the_number_of_a_run_twice() {
    let mut world = World::new(3);
    world.faulty = false;
    let mut controller = Controller::start(&mut world);
    let run = |controller: &mut Controller, world: &mut World, until: u64| {
        while world.now < until {
            world.now += 100;
            world.live_on();
            controller.listen(world);
            controller.act(world);
        }
        controller.machine.head().run.clone()
    };
    let first = run(&mut controller, &mut world, 600_000);
    assert!(first.finished.is_some());
    // Nothing is to be synced, so the next run leaves no mark on any Application.
    controller.machine.reload(None);
    (world.head, controller.head) = (None, 0);
    let second = run(&mut controller, &mut world, 700_000);
    assert!(second.seq > first.seq && second.finished.is_some());
    for by_itself in [true, false] {
        world.head = None;
        if by_itself {
            controller.machine.reload(None);
            controller.head = 0;
        } else {
            controller = Controller::start(&mut world);
            controller.machine.runs_after(second.seq + 1);
        }
        let until = world.now + 100_000;
        let next = run(&mut controller, &mut world, until);
        assert_eq!(next.seq, second.seq + if by_itself { 1 } else { 2 });
    }
}

#[test]
fn the_moment_of_a_pause_is_told_until_it_ends() {
    let mut world = World::new(5);
    let mut controller = Controller::start(&mut world);
    let mut paused_at = |world: &mut World, paused: bool| {
        world.control.paused = paused;
        for _ in 0..50 {
            world.now += 100;
            controller.act(world);
        }
        controller.machine.status(time(world.now)).paused_at.map(|at| at.0)
    };
    assert_eq!(paused_at(&mut world, false), None);
    let since = Some(time(world.now + 100));
    assert_eq!(paused_at(&mut world, true), since);
    assert_eq!(paused_at(&mut world, true), since, "it lasts");
    assert_eq!(paused_at(&mut world, false), None);
    assert!(paused_at(&mut world, true) > since, "another pause");
}

/// Freezes the set at many moments of a rollout, with a new commit and without: from then on nothing is started.
#[test]
fn nothing_is_started_while_it_is_not_known_what_the_set_wants() {
    for moment in 0..20 {
        let mut world = World::new(moment);
        world.faulty = false;
        let mut controller = Controller::start(&mut world);
        let mut live = |world: &mut World, until: u64| {
            while world.now < until {
                world.now += 100;
                world.live_on();
                controller.listen(world);
                controller.act(world);
            }
            let blockers = controller.machine.blockers(time(world.now));
            (controller.machine.head().run.clone(), blockers)
        };
        live(&mut world, moment * 1000);
        world.frozen = Some("a generator fails".into());
        let frozen_at = world.now;
        // What the controller was about to write when it heard of it is written still.
        live(&mut world, frozen_at + 300);
        let (starts, branch) = (world.starts, world.branch);
        world.branch += moment % 2;
        let (_, blockers) = live(&mut world, frozen_at + 600_000);
        assert_eq!(world.starts, starts, "moment {moment}: {:#?}", world.tail());
        let named = blockers.first().map(|blocker| (blocker.reason, blocker.message.as_str()));
        assert_eq!(named, Some((Reason::GeneratorError, "a generator fails")));
        world.frozen = None;
        let end = world.now + 1_200_000;
        let (run, _) = live(&mut world, end);
        assert!(run.finished.is_some(), "moment {moment}: {:#?}", world.tail());
        let target = (world.template, rev(branch + moment % 2));
        assert!(world.staying().all(|(_, thing)| thing.deployed.as_ref() == Some(&target)));
    }
}

#[test]
fn no_order_is_broken_and_every_rollout_ends() {
    let (mut starts, mut commits) = (0, 0);
    for seed in 0..STORIES {
        let result = std::panic::catch_unwind(|| story(seed));
        let Ok((more_starts, more_commits)) = result else { panic!("seed {seed}") };
        starts += more_starts;
        commits += more_commits;
    }
    println!("{STORIES} stories, {commits} commits, {starts} starts, no order broken");
    assert!(starts as u64 > STORIES && commits as u64 > STORIES);
}
