//! What can happen next in a world, and the search through all that follows.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_api::strategy::RolloutStep;
use baton_rollout::blocker::Reason;
use baton_rollout::head::Intent;
use baton_rollout::steps::Steps;
use serde_json::json;
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::judge::{Broken, Judge};
use crate::leader::{self, Driver, Leader, Pace};
use crate::world::{App, Content, Faults, World, time};

/// Time passes by itself only to what comes within so many milliseconds: what is asked for every three minutes anyway
/// is nothing to wait for.
const NEAR: u64 = 125_000;
/// A world in which time has passed so often without an end will have none.
const RESTLESS: usize = 60;

/// What is searched, and how far.
#[derive(Clone)]
pub(crate) struct Setup {
    /// The step of each Application.
    pub(crate) apps: &'static [usize],
    /// How many of each step may be under way; none is all.
    pub(crate) limits: &'static [Option<u32>],
    /// What is wanted, one after another. All Applications have the first when the search begins.
    pub(crate) plan: &'static [Content],
    /// How each leader keeps up. All but the first wait until one is not up.
    pub(crate) leaders: &'static [Pace],
    pub(crate) faults: Faults,
    /// How many versions of an Application a leader can be behind and still hear of each.
    pub(crate) lag: usize,
    /// Whether versions may be skipped in what a leader hears.
    pub(crate) skips: bool,
    /// Whether a leader also hears of versions that it knows already by an answer or a list.
    pub(crate) echoes: bool,
    /// Whether a comparison is written later than it is made.
    pub(crate) slow_reports: bool,
    /// Whether workloads become ready later than their operation ends.
    pub(crate) slow_health: bool,
    /// Whether leaders stand still only between record and write, instead of anywhere.
    pub(crate) stops_before_writes: bool,
    /// Whether the search begins with Applications just made that sync by themselves.
    pub(crate) fresh: bool,
    /// Blockers that a rollout may end with.
    pub(crate) ends: &'static [Reason],
    /// Whether every write must be intended by the stored head; else only harm counts.
    pub(crate) strict: bool,
    pub(crate) driver: Driver,
    pub(crate) tally: Arc<Tally>,
}

/// What was met on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    Start,
    Refresh,
    Fence,
    Refused,
    LostSwap,
    Superseded,
    OldNews,
    Stray,
    Wipe,
    Crash,
    Silence,
    Failure,
    Heal,
    Arm,
    Stop,
    Loss,
}

impl Met {
    const ALL: [Met; 16] = [
        Met::Start,
        Met::Refresh,
        Met::Fence,
        Met::Refused,
        Met::LostSwap,
        Met::Superseded,
        Met::OldNews,
        Met::Stray,
        Met::Wipe,
        Met::Crash,
        Met::Silence,
        Met::Failure,
        Met::Heal,
        Met::Arm,
        Met::Stop,
        Met::Loss,
    ];
}

#[derive(Default)]
pub(crate) struct Tally([AtomicU64; Met::ALL.len()]);

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A leader makes a request.
    Turn(usize),
    /// The same, and the answer is lost.
    Unanswered(usize),
    /// A leader hears of the next version of an Application.
    Hear(usize, usize),
    /// A leader hears of the newest version of an Application, and of none before it.
    Skip(usize, usize),
    /// A leader hears what is wanted by now.
    Learn(usize),
    Stop(usize),
    GoOn(usize),
    Crash(usize),
    Restart(usize),
    /// A request of a leader that is no more reaches the API.
    Stray(usize),
    Begin(usize),
    Finish(usize),
    Fail(usize),
    Ready(usize),
    Compare(usize),
    Report(usize),
    /// A request for a comparison goes, and no answer comes.
    Lose(usize),
    Wipe(usize),
    Drift(usize),
    /// Something else is wanted.
    Change,
    /// Time passes until somebody wants to be woken.
    Tick,
}

/// What a search found.
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) depth: usize,
    /// Rules that were broken, and how.
    pub(crate) broken: Vec<(&'static str, String)>,
}

// === impl Setup ===

impl Setup {
    pub(crate) fn steps(&self) -> Steps {
        let step = |limit: &Option<u32>| -> RolloutStep {
            serde_json::from_value(json!({ "maxUpdate": limit })).expect("a step")
        };
        Steps::read(&self.limits.iter().map(step).collect::<Vec<_>>()).0
    }

    pub(crate) fn met(&self, what: Met) {
        self.tally.0[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn met_write(&self, what: Intent) {
        match what {
            Intent::Start => self.met(Met::Start),
            Intent::Refresh | Intent::HardRefresh => self.met(Met::Refresh),
            Intent::Fence => self.met(Met::Fence),
            Intent::Heal => self.met(Met::Heal),
            Intent::Arm => self.met(Met::Arm),
            Intent::Spec | Intent::Terminate => {}
        }
    }

    /// How often this was met.
    pub(crate) fn count(&self, what: Met) -> u64 {
        self.tally.0[what as usize].load(Ordering::Relaxed)
    }

    /// Searches everything that can happen, or until a rule is broken: this one, or any.
    pub(crate) fn search(&self, rule: Option<&'static str>) -> Found {
        let end = rule.map_or(HasDiscoveries::AnyFailures, |rule| HasDiscoveries::AllOf([rule].into()));
        let checker = self.clone().checker().finish_when(end).spawn_bfs().join();
        let broken = checker.discoveries().into_iter().map(|(rule, path)| {
            let steps = path.into_vec().into_iter().map(|(world, action)| match action {
                Some(action) => format!("{}\n  {action:?}\n", world.account()),
                None => world.account(),
            });
            (rule, steps.collect::<String>())
        });
        Found { states: checker.unique_state_count(), depth: checker.max_depth(), broken: broken.collect() }
    }

    /// The world before anything happens.
    fn beginning(&self) -> World {
        let apps = self.apps.iter().enumerate();
        let mut world = World {
            now: 0,
            apps: apps.map(|(number, step)| App::new(number, *step, self.fresh)).collect(),
            long_ago: Vec::new(),
            newest: self.plan[0],
            changes: 0,
            head: None,
            leaders: Vec::new(),
            stray: Vec::new(),
            left: Faults::default(),
            ticks: 0,
            judge: Judge::default(),
        };
        let first = Leader::start(&mut world, self);
        world.leaders.push(first);
        world.leaders.resize(self.leaders.len(), Leader::default());
        // Some time later everything has been compared once more.
        for pause in [0, 10_000].into_iter().filter(|_| !self.fresh) {
            world.now += pause;
            while let Some(action) = self.must(&world).first() {
                world = self.after(&world, *action);
            }
        }
        assert!(self.fresh || world.is_complete(), "the first rollout ends: {}", world.account());
        let long_ago = world.apps.iter().map(|app| app.version.clone()).collect();
        World { left: self.faults, ticks: 0, long_ago, judge: Judge::default(), ..world }
    }

    /// What happens sooner or later.
    fn must(&self, world: &World) -> Vec<Action> {
        let mut actions = Vec::new();
        let nobody = !world.leaders.iter().any(Leader::is_up);
        for (number, leader) in world.leaders.iter().enumerate() {
            if !leader.is_up() {
                let up = if leader.is_alive() { Action::GoOn(number) } else { Action::Restart(number) };
                actions.extend(nobody.then_some(up));
                continue;
            }
            actions.extend(leader.is_busy().then_some(Action::Turn(number)));
            if !leader.requests.is_empty() {
                continue;
            }
            for (app, news) in leader.news.iter().enumerate() {
                actions.extend((!news.is_empty()).then_some(Action::Hear(number, app)));
                actions.extend((self.skips && news.len() > 1).then_some(Action::Skip(number, app)));
            }
            actions.extend((leader.heard < world.changes).then_some(Action::Learn(number)));
        }
        if self.hurries(world) {
            let hears = |action: &&Action| match action {
                Action::Hear(number, _) | Action::Learn(number) => self.leaders[*number] == Pace::Prompt,
                _ => false,
            };
            return match actions.iter().find(hears) {
                Some(hears) => vec![*hears],
                None => actions.into_iter().filter(|action| matches!(action, Action::Turn(_))).collect(),
            };
        }
        for (number, app) in world.apps.iter().enumerate() {
            actions.extend(app.can_begin().then_some(Action::Begin(number)));
            actions.extend(app.can_finish().then_some(Action::Finish(number)));
            actions.extend((!app.ready && app.cluster.commit > 0).then_some(Action::Ready(number)));
            actions.extend(app.can_compare(world.newest, world.now).then_some(Action::Compare(number)));
            actions.extend(app.can_report().then_some(Action::Report(number)));
        }
        if actions.is_empty() && !world.is_complete() && self.next_wake(world).is_some() {
            actions.push(Action::Tick);
        }
        actions
    }

    /// What may happen, or not.
    fn may(&self, world: &World) -> Vec<Action> {
        let (mut actions, left) = (Vec::new(), &world.left);
        actions.extend((world.changes + 1 < self.plan.len()).then_some(Action::Change));
        for (number, leader) in world.leaders.iter().enumerate() {
            if leader.is_up() {
                let anywhere = !self.stops_before_writes;
                let stops = left.stops > 0 && (anywhere || !leader.about_to_write(world, self).is_empty());
                actions.extend(stops.then_some(Action::Stop(number)));
                actions.extend((left.crashes > 0).then_some(Action::Crash(number)));
                actions.extend((left.silences > 0 && leader.is_busy()).then_some(Action::Unanswered(number)));
            } else if leader.is_alive() {
                actions.push(Action::GoOn(number));
            } else if !world.leaders[0].is_up() {
                actions.push(Action::Restart(number));
            }
        }
        if self.hurries(world) {
            return actions;
        }
        actions.extend((0..world.stray.len()).map(Action::Stray));
        for (number, app) in world.apps.iter().enumerate() {
            actions.extend((left.wipes > 0 && app.can_wipe()).then_some(Action::Wipe(number)));
            actions.extend((left.losses > 0 && app.can_lose()).then_some(Action::Lose(number)));
            actions.extend((left.failures > 0 && app.can_finish()).then_some(Action::Fail(number)));
            actions.extend((left.drifts > 0 && app.ready).then_some(Action::Drift(number)));
        }
        actions.extend((left.delays > 0 && self.next_wake(world).is_some()).then_some(Action::Tick));
        actions
    }

    /// Whether a leader goes before everything but other leaders.
    fn hurries(&self, world: &World) -> bool {
        world.leaders.iter().zip(self.leaders).any(|(leader, pace)| {
            let hears = leader.news.iter().any(|news| !news.is_empty()) || leader.heard < world.changes;
            match pace {
                Pace::Free => false,
                Pace::Eager => leader.is_busy(),
                Pace::Prompt => leader.is_busy() || (leader.is_up() && hears),
            }
        })
    }

    /// When the first leader wants to be woken.
    fn next_wake(&self, world: &World) -> Option<u64> {
        world.leaders.iter().filter_map(Leader::wake).filter(|at| *at <= world.now + NEAR).min()
    }

    fn after(&self, world: &World, action: Action) -> World {
        let mut next = world.clone();
        let mut told = None;
        match action {
            Action::Turn(number) => leader::turn(&mut next, self, number, true),
            Action::Unanswered(number) => {
                next.left.silences -= 1;
                leader::turn(&mut next, self, number, false);
            }
            Action::Hear(number, app) => leader::hear(&mut next, self, number, app, false),
            Action::Skip(number, app) => leader::hear(&mut next, self, number, app, true),
            Action::Learn(number) => leader::learn(&mut next, self, number),
            Action::Stop(number) => {
                self.met(Met::Stop);
                next.left.stops -= 1;
                next.leaders[number].stop();
            }
            Action::GoOn(number) => next.leaders[number].go_on(world.now),
            Action::Crash(number) => {
                self.met(Met::Crash);
                next.left.crashes -= 1;
                next.stray.extend(world.leaders[number].about_to_write(world, self));
                next.leaders[number] = Leader::default();
            }
            Action::Restart(number) => {
                let leader = Leader::start(&mut next, self);
                next.leaders[number] = leader;
            }
            Action::Stray(at) => {
                self.met(Met::Stray);
                let request = next.stray.remove(at);
                let _ = leader::receive(&mut next, self, request, None);
            }
            Action::Begin(app) => {
                next.apps[app].begin();
                told = Some(app);
            }
            Action::Finish(app) => {
                next.apps[app].finish(world.now, true, self.slow_health);
                told = Some(app);
            }
            Action::Fail(app) => {
                self.met(Met::Failure);
                next.left.failures -= 1;
                next.apps[app].finish(world.now, false, self.slow_health);
                told = Some(app);
            }
            Action::Ready(app) => next.apps[app].ready = true,
            Action::Compare(app) => {
                next.apps[app].compare(world.newest, world.now);
                if !self.slow_reports {
                    next.apps[app].report();
                    told = Some(app);
                }
            }
            Action::Report(app) => {
                next.apps[app].report();
                told = Some(app);
            }
            Action::Lose(app) => {
                self.met(Met::Loss);
                next.left.losses -= 1;
                next.apps[app].lose();
                told = Some(app);
            }
            Action::Wipe(app) => {
                self.met(Met::Wipe);
                next.left.wipes -= 1;
                next.apps[app].wipe();
                told = Some(app);
            }
            Action::Drift(app) => {
                next.left.drifts -= 1;
                next.apps[app].cluster.template = u8::MAX;
            }
            Action::Change => {
                next.changes += 1;
                next.newest = self.plan[next.changes];
            }
            Action::Tick => {
                // What passes by itself is no delay.
                if self.must(world) != [Action::Tick] {
                    next.left.delays -= 1;
                }
                next.ticks += 1;
                next.pass(self.next_wake(world).unwrap_or(world.now));
            }
        }
        if let Some(app) = told {
            next.announce(app, None, self);
        }
        Judge::look(&mut next);
        next
    }

    /// Whether nothing more will happen by itself.
    fn is_over(&self, world: &World) -> bool {
        self.must(world).is_empty()
    }

    /// Whether it is known what the rollout waits for.
    fn is_named(&self, world: &World) -> bool {
        let machines = || world.leaders.iter().filter_map(Leader::machine);
        machines().all(|machine| {
            let blockers = machine.blockers(time(world.now));
            blockers.iter().any(|blocker| self.ends.contains(&blocker.reason))
        })
    }
}

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.beginning()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.judge.broken.is_some() || world.ticks > RESTLESS {
            return;
        }
        actions.extend(self.must(world));
        actions.extend(self.may(world));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        Some(self.after(world, action))
    }

    fn properties(&self) -> Vec<Property<Setup>> {
        vec![
            Property::always("Order", |_, world: &World| world.judge.broken != Some(Broken::Order)),
            Property::always("Slots", |_, world: &World| world.judge.broken != Some(Broken::Slots)),
            Property::always("Busy", |_, world: &World| world.judge.broken != Some(Broken::Busy)),
            Property::always("Unintended", |_, world: &World| world.judge.broken != Some(Broken::Unintended)),
            Property::always("Twice", |_, world: &World| world.judge.broken != Some(Broken::Twice)),
            Property::always("Again", |_, world: &World| world.judge.broken != Some(Broken::Again)),
            Property::always("Needless", |_, world: &World| world.judge.broken != Some(Broken::Needless)),
            Property::always("Stuck", |setup: &Setup, world: &World| {
                let judged = world.judge.broken.is_some();
                judged || !setup.is_over(world) || world.is_complete() || setup.is_named(world)
            }),
            Property::always("Restless", |_, world: &World| world.ticks <= RESTLESS),
        ]
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for name in Met::ALL {
            let count = self.0[name as usize].load(Ordering::Relaxed);
            if count > 0 {
                map.entry(&name, &count);
            }
        }
        map.finish()
    }
}
