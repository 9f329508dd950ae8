//! A controller in the world: its news come late, and it may crash or sleep between two steps.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use baton_rollout::head::{Change, Head, Intent, Run};
use baton_rollout::live::Live;
use baton_rollout::machine::{Decision, Machine, Write};
use baton_rollout::pin::{Fingerprint, Resolution};

use crate::world::{LATEST, World, key, print, rev, time};

enum News {
    Seen(Box<Live>),
    Gone(Arc<str>),
}

/// A controller: a machine, what it has not heard yet, and what it is about to write.
pub(crate) struct Controller {
    pub(crate) machine: Machine,
    pub(crate) head: u64,
    news: VecDeque<(u64, News)>,
    uids: BTreeMap<Arc<str>, Arc<str>>,
    pending: VecDeque<Write>,
    known: BTreeMap<Arc<str>, u64>,
    pub(crate) asleep_until: u64,
    lag: u64,
}

impl Controller {
    pub(crate) fn start(world: &mut World) -> Controller {
        let (version, head) = match &world.head {
            Some((version, texts)) => (*version, Head::read(texts).ok()),
            None => (0, None),
        };
        let mut machine = Machine::new(head);
        machine.wants(world.wanted(), time(world.now));
        let lag = world.dice.below(LATEST);
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

    /// Whether the next thing it does is to start an operation whose intent is stored.
    pub(crate) fn is_about_to_start(&self) -> bool {
        self.pending.front().is_some_and(|write| write.what == Intent::Start)
    }

    /// Hears of what changed, late and in order.
    pub(crate) fn listen(&mut self, world: &World) {
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
    pub(crate) fn act(&mut self, world: &mut World) {
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
        let run = &self.machine.head().run;
        let decision = match run.paused && !world.wanted().control.paused {
            // The set was read anew, and asks for no pause.
            true => {
                let run = Run { paused: false, ..run.clone() };
                let change = Change { run: Some(run), ..Change::default() };
                Decision { change: Some(change), ..Decision::default() }
            }
            false => self.machine.decide(now),
        };
        let asks_for_nothing = Decision { wake: decision.wake, ..Decision::default() };
        if decision == asks_for_nothing && self.machine.head().run.finished.is_none() {
            let blockers = self.machine.blockers(now);
            assert!(!blockers.is_empty(), "nothing happens, and nothing is named: {:#?}", world.tail());
        }
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
