//! Lives of operations, with others writing to the Application between any two steps and crashes at any write.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::Application;
use baton_api::application_status::{OperationPhase, OperationState};
use baton_sync::operation::{self, OperationSettings, Step, Write};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

/// Choices, from the number of a test case.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// An Application in an API server, and what was seen of it.
struct World {
    dice: Dice,
    now: Timestamp,
    stored: Application,
    version: u64,
    requests: u64,
    /// Whether nobody else writes any more and nothing crashes.
    quiet: bool,
    settings: OperationSettings,
    /// Starts of operations somebody asked to terminate.
    terminated: BTreeSet<Timestamp>,
    /// The request of each operation, by its start.
    begun: BTreeMap<Timestamp, String>,
    /// When the waiting operation may be tried again, and its count of retries.
    due: Option<(Timestamp, i64)>,
}

fn started(state: &OperationState) -> Timestamp {
    state.started_at.as_ref().expect("every operation has a start").0
}

fn revision(operation: &baton_api::operation::Operation) -> String {
    operation.sync.as_ref().map(|sync| sync.revision.clone()).unwrap_or_default()
}

impl World {
    fn new(seed: u64) -> World {
        let app = json!({"metadata": {"name": "web"}, "spec": {"source": {"repoURL": "r", "path": "p"},
            "revisionHistoryLimit": 1000}});
        World {
            dice: Dice(seed | 1),
            now: "2026-01-01T12:00:00Z".parse().expect("a time"),
            stored: serde_json::from_value(app).expect("an Application"),
            version: 0,
            requests: 0,
            quiet: false,
            settings: OperationSettings::default(),
            terminated: BTreeSet::new(),
            begun: BTreeMap::new(),
            due: None,
        }
    }

    /// Somebody else writes: a request, its withdrawal, another in its place, a termination, or something unrelated.
    fn others(&mut self) {
        if self.quiet {
            return;
        }
        match self.dice.roll(8) {
            0 | 1 if self.stored.operation.is_none() => self.ask(),
            2 if self.dice.roll(4) == 0 && self.stored.operation.is_some() => self.ask(),
            3 if self.dice.roll(4) == 0 => self.stored.operation = None,
            4 => {
                if let Ok(state) = operation::termination(&self.stored) {
                    self.terminated.insert(started(&state));
                    self.stored.status.operation_state = Some(state);
                }
            }
            5 => {}
            _ => return,
        }
        self.version += 1;
    }

    fn ask(&mut self) {
        self.requests += 1;
        let retry = json!({"limit": self.dice.roll(3), "backoff": {"duration": "7"}});
        let operation = json!({"sync": {"revision": format!("r{}", self.requests)}, "retry": retry});
        self.stored.operation = serde_json::from_value(operation).ok();
    }

    /// One pass of the controller.
    fn controller(&mut self) {
        let (read, version) = (self.stored.clone(), self.version);
        let (mut state, changed) = match operation::step(&read, &self.settings, self.now) {
            Step::None | Step::Wait { .. } => return,
            Step::End(write) => {
                self.write(version, *write);
                return;
            }
            Step::Run { state, changed } => (*state, changed),
        };
        let mut version = version;
        if changed {
            let first = Write { state: state.clone(), completion: None, look_again: None };
            if !self.write(version, first) {
                return;
            }
            version = self.version;
            // What was written is what the pass goes on with.
            state = self.stored.status.operation_state.clone().expect("it was written");
        }
        if !self.quiet && self.dice.roll(6) == 0 {
            return;
        }
        self.others();
        let request = operation::request(&read, &state).expect("one revision for one source");
        let resolved = request.revisions.clone();
        operation::pin(&mut state, &request, &resolved);
        let write = match self.dice.roll(4) {
            _ if state.phase == OperationPhase::Terminating => {
                operation::ended(&read, state, OperationPhase::Failed, "Operation terminated", self.now)
            }
            0 => operation::ended(&read, state, OperationPhase::Succeeded, "done", self.now),
            1 => operation::ended(&read, state, OperationPhase::Failed, "it broke", self.now),
            _ => operation::goes_on(state, "waiting", &self.settings, self.now),
        };
        self.write(version, write);
    }

    /// Writes onto the version that was read, or what is left to be written where that has changed.
    fn write(&mut self, version: u64, write: Write) -> bool {
        if !self.quiet && self.dice.roll(8) == 0 {
            return false;
        }
        let write = match version == self.version {
            true => Some(write),
            false => operation::rebase(&self.stored, write),
        };
        let Some(write) = write else { return false };
        self.judge(&write);
        let before = self.stored.operation.clone();
        write.apply(&mut self.stored);
        if let (Some(before), None) = (before, &self.stored.operation) {
            let served = &self.stored.status.operation_state.as_ref().expect("it was written").operation;
            assert_eq!(revision(&before), revision(served), "a request is lost");
        }
        self.version += 1;
        true
    }

    fn judge(&mut self, write: &Write) {
        let (state, start) = (&write.state, started(&write.state));
        let asked = revision(&state.operation);
        let first = self.begun.entry(start).or_insert_with(|| asked.clone());
        assert_eq!(*first, asked, "two operations began in the same second");
        let latest = *self.begun.keys().next_back().expect("one began");
        assert_eq!(start, latest, "an operation is written after a later one began");
        assert!(state.retry_count <= state.operation.retry.limit);
        if self.terminated.contains(&start) {
            assert_ne!(state.phase, OperationPhase::Running, "a termination is lost");
        }
        if let Some((due, retries)) = self.due
            && state.retry_count == retries
            && state.phase == OperationPhase::Running
            && state.finished_at.is_none()
        {
            assert!(self.now >= due, "an attempt begins before the time that was shown");
        }
        let waits = state.phase == OperationPhase::Running && state.finished_at.is_some();
        self.due = waits.then(|| (write.look_again.expect("a retry has its time"), state.retry_count));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_request_and_no_termination_is_lost_and_everything_ends(seed in any::<u64>()) {
        let mut world = World::new(seed);
        for _ in 0..200 {
            world.now = world.now.saturating_add(SignedDuration::from_millis(world.dice.roll(4_000) as i64)).expect("a time");
            world.others();
            world.controller();
        }
        world.quiet = true;
        for _ in 0..100 {
            world.now = world.now.saturating_add(SignedDuration::from_secs(20)).expect("a time");
            world.controller();
        }
        prop_assert_eq!(&world.stored.operation, &None);
        let state = world.stored.status.operation_state.as_ref();
        prop_assert!(state.is_none_or(|state| state.phase.is_completed()));
        let history = &world.stored.status.history;
        prop_assert!(history.windows(2).all(|pair| pair[0].id + 1 == pair[1].id));
        let starts: BTreeSet<_> =
            history.iter().map(|entry| entry.deploy_started_at.as_ref().expect("a start").0).collect();
        prop_assert_eq!(starts.len(), history.len());
    }
}
