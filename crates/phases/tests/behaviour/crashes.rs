//! Whatever happens in whatever order, and whoever dies where: the order is kept, and nothing that passed is repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::phase_status::{HookState, PhaseState};
use baton_hooks::Verdict;
use baton_phases::{Call, CallResult, Decision, Gate, Hold, Progress};
use proptest::prelude::*;

use crate::world::{World, broken, fleet, hook, hook_per_target, outcome, phase, seen};

const NAMES: [&str; 5] = ["dev-a", "dev-b", "prod-a", "prod-b", "test-a"];

/// Something that happens.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A decision whose status is stored.
    Tick,
    /// A decision whose status is not: its author dies before.
    Die,
    /// A decision whose status is stored, and whose author dies then.
    DieAfter,
    /// The calls are made to an end, this one first.
    Answer(u8, bool),
    /// An Application that may go does so.
    Go(u8),
    /// One that is under way comes to its end.
    Arrive(u8, bool),
    /// One that was done is no longer.
    Regress(u8),
    /// Time passes.
    Wait(u16),
    /// A person asks.
    Ask(u8),
    /// A pause begins or ends.
    Pause,
    /// Something new is to be rolled out.
    Supersede,
    /// An Application leaves, or comes back as a new one.
    Move(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Tick),
        2 => Just(Event::Die),
        2 => Just(Event::DieAfter),
        6 => (any::<u8>(), prop::bool::weighted(0.85)).prop_map(|(which, well)| Event::Answer(which, well)),
        5 => any::<u8>().prop_map(Event::Go),
        5 => (any::<u8>(), prop::bool::weighted(0.9)).prop_map(|(which, well)| Event::Arrive(which, well)),
        1 => any::<u8>().prop_map(Event::Regress),
        3 => (1u16..200).prop_map(Event::Wait),
        1 => (0u8..5).prop_map(Event::Ask),
        1 => Just(Event::Pause),
        1 => Just(Event::Supersede),
        1 => any::<u8>().prop_map(Event::Move),
    ]
}

/// Watches a world, by what is done and not by what the machine thinks.
struct Watch {
    world: World,
    /// Calls that succeeded and whose success is stored.
    passed: BTreeSet<(String, String)>,
    /// Applications that were let through, in this rollout.
    let_through: BTreeSet<Arc<str>>,
    requests: u32,
    rollouts: u32,
}

impl Watch {
    fn new(action: &str) -> Watch {
        let fields = |wait: &str| {
            format!(
                "onFailure: {{action: {action}}}\nwaitDuration: {wait}\npreHooks: [{}, {}]\nchecks: [{}]\npostHooks: [{}]",
                hook("ask", ", retry: {interval: 10s, deadline: 30s}"),
                hook_per_target("warn", ", failurePolicy: ignore"),
                hook_per_target("probe", ", timeout: 30s"),
                hook("tell", "")
            )
        };
        let phases = phase("dev", "dev", &fields("30s"))
            + &phase("prod", "prod", &fields("10s"))
            + &phase("test", "test", "");
        Watch {
            world: World::new(&phases, &NAMES),
            passed: BTreeSet::new(),
            let_through: BTreeSet::new(),
            requests: 0,
            rollouts: 1,
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick => self.decide(true),
            Event::Die => {
                self.decide(false);
                self.world.crash();
            }
            Event::DieAfter => {
                self.decide(true);
                self.world.crash();
            }
            Event::Answer(which, well) => {
                let calls: Vec<Call> = self.world.in_flight.values().cloned().collect();
                if let Some(call) = pick(&calls, which) {
                    self.world.in_flight.remove(&call.key);
                    let verdict = if well { Verdict::Success } else { broken() };
                    let outcome = outcome(self.world.now, &call.key, verdict);
                    self.world.results.push(CallResult { key: call.key.clone(), outcome });
                }
            }
            Event::Go(which) => self.go(which),
            Event::Arrive(which, well) => {
                let under_way = self.those(|progress| *progress == Progress::UnderWay);
                if let Some(name) = pick(&under_way, which) {
                    match well {
                        true => self.world.see(name, Progress::Done),
                        false => self.world.fail(name),
                    }
                }
            }
            Event::Regress(which) => {
                let done = self.those(Progress::is_done);
                if let Some(name) = pick(&done, which) {
                    self.world.see(name, Progress::Regressed("it is ill".into()));
                }
            }
            Event::Wait(seconds) => self.world.wait(Duration::from_secs(seconds.into())),
            Event::Ask(which) => {
                self.requests += 1;
                let (text, requests) = (Some(self.requests.to_string()), &mut self.world.requests);
                match which {
                    0 => requests.advance = text,
                    1 => requests.retry = text,
                    2 => requests.abort = text,
                    3 => requests.rollback = text,
                    _ => requests.rollback_all = text,
                }
            }
            Event::Pause => {
                self.world.hold = if self.world.hold == Hold::None { Hold::Paused } else { Hold::None };
            }
            Event::Supersede => {
                self.rollouts += 1;
                self.world.rollout = format!("{}-a-b", self.rollouts);
                for one in self.world.seen.values_mut() {
                    *one = seen(Progress::NotStarted);
                }
                self.let_through.clear();
            }
            Event::Move(which) => {
                let name = NAMES[usize::from(which) % NAMES.len()];
                self.let_through.remove(name);
                if self.world.seen.remove(name).is_none() {
                    self.world.seen.insert(name.into(), seen(Progress::NotStarted));
                }
                let there: Vec<&str> =
                    NAMES.into_iter().filter(|name| self.world.seen.contains_key(*name)).collect();
                self.world.targets = fleet(&there);
            }
        }
    }

    fn those(&self, fits: impl Fn(&Progress) -> bool) -> Vec<Arc<str>> {
        let all = self.world.seen.iter().filter(|(_, seen)| fits(&seen.progress));
        all.map(|(name, _)| name.clone()).collect()
    }

    /// Somebody who is let through by the newest decision, and only then, begins.
    fn go(&mut self, which: u8) {
        let decision = self.world.look();
        let open: Vec<(Arc<str>, Gate)> =
            decision.gates.into_iter().filter(|(_, gate)| gate.is_open()).collect();
        match pick(&open, which) {
            Some((name, Gate::Open { .. })) if self.world.seen[name].progress == Progress::NotStarted => {
                self.let_through.insert(name.clone());
                self.world.see(name, Progress::UnderWay);
            }
            Some((name, Gate::Back { pin })) => {
                let seen = self.world.seen.get_mut(name).expect("it is there");
                (seen.pin, seen.progress) = (pin.clone(), Progress::Done);
            }
            _ => {}
        }
    }

    fn decide(&mut self, stores: bool) {
        let before = self.world.stored.clone().filter(|stored| stored.rollout_id == self.world.rollout);
        let made = self.world.made.len();
        let paused = self.world.hold == Hold::Paused;
        let decision = if stores { self.world.tick() } else { self.world.act() };
        let new: Vec<Call> = self.world.made[made..].to_vec();
        self.judge_calls(&decision, &new, before.as_ref(), paused);
        self.judge_gates(&decision, before.as_ref());
        if stores {
            self.note_passed();
        }
    }

    /// A call is made only with its intent stored, never after its success was, and never more at once than may be.
    fn judge_calls(
        &self,
        decision: &Decision,
        new: &[Call],
        before: Option<&baton_api::phase_status::GeneratorPhases>,
        paused: bool,
    ) {
        assert!(!paused || new.is_empty(), "nothing is begun while a person holds it");
        for call in new {
            let stored = before.expect("a call rests on a status");
            let phase = &stored.phases[call.key.phase];
            let all = phase.pre_hooks.iter().chain(&phase.checks).chain(&phase.post_hooks);
            let mut intents = all.filter(|result| {
                *result.name == *call.name
                    && *result.target == *call.key.target
                    && result.state == HookState::Running
            });
            let intent = intents.next().expect("its intent is stored");
            assert_eq!(intent.attempt, i64::from(call.key.attempt));
            assert_eq!(intent.idempotency_key, call.idempotency_key);
            let once = (call.idempotency_key.clone(), call.key.target.to_string());
            assert!(!self.passed.contains(&once), "{call:?} had passed");
        }
        let mut keys: BTreeMap<&str, &Call> = BTreeMap::new();
        for call in self.world.in_flight.values() {
            let other = keys.insert(&call.idempotency_key, call);
            assert!(
                other.is_none_or(|other| other.key == call.key),
                "two attempts at once: {other:?} {call:?}"
            );
        }
        let hooks = decision.status.iter().flat_map(|status| &status.phases).map(|phase| {
            phase
                .pre_hooks
                .iter()
                .filter(|result| result.state == HookState::Running && result.through.is_empty())
                .count()
        });
        assert!(hooks.max().unwrap_or(0) <= 5);
    }

    /// Nobody who has not begun is let through but by a stored status that says all before it has ended, and well unless
    /// it is told to go on all the same.
    fn judge_gates(&self, decision: &Decision, before: Option<&baton_api::phase_status::GeneratorPhases>) {
        for (name, gate) in &decision.gates {
            let begun = self.let_through.contains(name);
            let Gate::Open { phase } = gate else { continue };
            let stored = before.expect("a gate rests on a status");
            assert_eq!(*phase, place(name), "everybody goes in their own phase");
            if begun {
                continue;
            }
            for (index, earlier) in stored.phases.iter().enumerate().take(*phase) {
                let action = earlier.failure.as_ref().map(|failure| failure.action.as_str());
                let passed_over = matches!(action, Some("continue" | "advance"));
                let nobody = !self.world.targets.iter().any(|target| place(&target.name) == index);
                let ended = earlier.state == PhaseState::Complete
                    || (earlier.state == PhaseState::Skipped && nobody)
                    || (earlier.state == PhaseState::Failed && passed_over)
                    || (earlier.state == PhaseState::Aborted && action == Some("advance"));
                assert!(ended, "{name} may go while phase {index} is {}", earlier.state);
                if earlier.state == PhaseState::Complete {
                    for list in [&earlier.pre_hooks, &earlier.checks, &earlier.post_hooks] {
                        let fine =
                            |state: &HookState| matches!(state, HookState::Succeeded | HookState::Ignored);
                        assert!(
                            list.iter().all(|result| fine(&result.state)),
                            "{name} may go before {list:?}"
                        );
                    }
                    assert!(earlier.wait_until.as_ref().is_none_or(|until| until.0 <= self.world.now));
                    let own = NAMES.iter().filter(|other| place(other) == index);
                    for other in own {
                        let seen = self.world.seen.get(*other);
                        let undone = seen.is_some_and(|seen| seen.progress == Progress::NotStarted);
                        assert!(!undone, "{name} may go before {other} has begun");
                    }
                }
            }
            let own = &stored.phases[*phase];
            let passed = |state: &HookState| matches!(state, HookState::Succeeded | HookState::Ignored);
            assert!(
                own.pre_hooks.iter().all(|result| passed(&result.state)),
                "{name} may go before its hooks"
            );
        }
    }

    /// What is stored as passed.
    fn note_passed(&mut self) {
        let Some(stored) = self.world.stored.as_ref() else { return };
        // A check is asked again of somebody who left and came back.
        for result in stored.phases.iter().flat_map(|phase| phase.pre_hooks.iter().chain(&phase.post_hooks)) {
            if result.state == HookState::Succeeded && !result.idempotency_key.is_empty() {
                self.passed.insert((result.idempotency_key.clone(), result.target.clone()));
            }
        }
    }
}

fn place(name: &str) -> usize {
    ["dev", "prod", "test"].iter().position(|env| name.starts_with(env)).expect("one of three")
}

fn pick<T>(all: &[T], which: u8) -> Option<&T> {
    (!all.is_empty()).then(|| &all[usize::from(which) % all.len()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn invariant_i5_holds_whatever_happens_and_whoever_dies(
        action in prop_oneof![Just("stop"), Just("rollback"), Just("continue"), Just("abort")],
        events in prop::collection::vec(event(), 1..160),
    ) {
        let mut watch = Watch::new(action);
        for event in events {
            watch.happen(event);
        }
    }

    #[test]
    fn with_nothing_new_there_is_nothing_to_write(
        action in prop_oneof![Just("stop"), Just("rollback"), Just("continue"), Just("abort")],
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut watch = Watch::new(action);
        for event in events {
            watch.happen(event);
        }
        watch.world.settle();
        let before = watch.world.stored.clone();
        let decision = watch.world.tick();
        prop_assert_eq!(&watch.world.stored, &before);
        let read = serde_json::to_value(&before).expect("JSON");
        let read: Option<baton_api::phase_status::GeneratorPhases> = serde_json::from_value(read).expect("a status");
        prop_assert_eq!(&read, &before, "what is stored is read as it was");
        let unfinished = before.as_ref().is_some_and(|status| status.current_phase < status.total_phases);
        let names_itself = !decision.waits.is_empty() && decision.waits.iter().all(|wait| !wait.message.is_empty());
        prop_assert!(!unfinished || names_itself, "it waits for something without saying so: {:?}", before);
    }
}

/// A world in which the Application of the only phase fails, or its call does, by what fails.
fn failing(action: &str, what: &str) -> World {
    let fields = format!(
        "onFailure: {{action: {action}}}\npreHooks: [{}]\nchecks: [{}]\npostHooks: [{}]",
        hook("pre", ""),
        hook("check", ", timeout: 5s"),
        hook("post", "")
    );
    let mut world =
        World::new(&(phase("dev", "dev", &fields) + &phase("test", "test", "")), &["dev-a", "test-a"]);
    world.settle();
    let stages = ["pre", "dev-a", "check", "post"];
    for stage in stages {
        let fails = stage == what;
        match stage {
            "dev-a" => {
                world.see("dev-a", Progress::UnderWay);
                world.settle();
                match fails {
                    true => world.fail("dev-a"),
                    false => world.see("dev-a", Progress::Done),
                }
                world.settle();
            }
            call if fails => world.break_down(call),
            call => world.pass(call),
        }
        if fails {
            break;
        }
    }
    world
}

#[test]
fn every_failure_leads_to_exactly_the_action_that_is_configured() {
    for what in ["pre", "dev-a", "check", "post"] {
        for action in ["stop", "rollback", "continue", "abort"] {
            let world = failing(action, what);
            let phase = world.phase(0);
            let done = phase.failure.as_ref().map(|failure| failure.action.as_str());
            let (expected, state) = match action {
                "rollback" if what == "pre" => ("stop", PhaseState::Failed),
                "rollback" => ("rollback", PhaseState::RollingBack),
                "abort" => ("abort", PhaseState::Aborted),
                action => (action, PhaseState::Failed),
            };
            assert_eq!((done, phase.state.clone()), (Some(expected), state), "{action} after {what}");
            let gates = world.look().gates;
            let back = matches!(gates["dev-a"], Gate::Back { .. });
            assert_eq!(back, action == "rollback" && what != "pre", "{action} after {what}");
            let goes_on = gates["test-a"].is_open();
            assert_eq!(goes_on, action == "continue", "{action} after {what}");
        }
    }
}

#[test]
fn dying_before_or_after_every_single_write_changes_nothing_of_the_course() {
    // The same course, with a death at each decision in turn: before its status is stored, or after.
    for (death, stored) in (0..40).flat_map(|death| [(death, false), (death, true)]) {
        let mut world = Watch::new("stop");
        for decision in 0..400 {
            let dies = decision == death;
            world.decide(!dies || stored);
            if dies {
                world.world.crash();
            }
            for call in world.world.in_flight.values().cloned().collect::<Vec<_>>() {
                world.world.in_flight.remove(&call.key);
                let outcome = outcome(world.world.now, &call.key, Verdict::Success);
                world.world.results.push(CallResult { key: call.key, outcome });
            }
            for name in NAMES {
                let open = world.world.open().contains(&name.to_owned());
                if open && world.world.seen[name].progress == Progress::NotStarted {
                    world.let_through.insert(name.into());
                    world.world.see(name, Progress::Done);
                }
            }
            world.world.wait(Duration::from_secs(5));
        }
        let status = world.world.status();
        assert_eq!(status.state, PhaseState::Complete, "{death} {stored}");
        let asked = world.world.times("ask");
        assert!((2..=3).contains(&asked), "twice, and once more where its result was lost: {asked}");
    }
}
