//! The queue's state as a plain value: what a method does is decided by its arguments and the seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use super::Backoff;

/// Beyond this the exponential is at its limit for any base.
const MOST_DOUBLINGS: u32 = 40;

#[derive(Debug)]
pub(super) struct State<K: Ord> {
    /// Keys in the order they became due, with the time they did.
    ready: VecDeque<(K, Instant)>,
    /// Keys in `ready`, and keys to be put there when their work is done.
    dirty: BTreeSet<K>,
    working: BTreeSet<K>,
    /// When each delayed key is due.
    due: BTreeMap<K, Instant>,
    /// The same, by time.
    timers: BTreeSet<(Instant, K)>,
    failures: BTreeMap<K, u32>,
    backoff: Backoff,
    seed: u64,
    shut_down: bool,
}

impl<K: Ord + Clone> State<K> {
    pub(super) fn new(backoff: Backoff, seed: u64) -> State<K> {
        State {
            ready: VecDeque::new(),
            dirty: BTreeSet::new(),
            working: BTreeSet::new(),
            due: BTreeMap::new(),
            timers: BTreeSet::new(),
            failures: BTreeMap::new(),
            backoff,
            seed,
            shut_down: false,
        }
    }

    /// Whether the key was not waiting yet.
    pub(super) fn add(&mut self, key: K, now: Instant) -> bool {
        if self.shut_down || !self.dirty.insert(key.clone()) {
            return false;
        }
        if !self.working.contains(&key) {
            self.ready.push_back((key, now));
        }
        true
    }

    pub(super) fn add_at(&mut self, key: K, at: Instant) {
        if self.shut_down {
            return;
        }
        if let Some(earlier) = self.due.get(&key).copied() {
            if earlier <= at {
                return;
            }
            self.timers.remove(&(earlier, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.timers.insert((at, key));
    }

    pub(super) fn retry(&mut self, key: K, now: Instant) -> Duration
    where
        K: Hash,
    {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let doublings = (*failures).min(MOST_DOUBLINGS);
        *failures = failures.saturating_add(1);
        let grown = self.backoff.base.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX));
        let grown = grown.min(self.backoff.longest);
        // Up to a tenth more, so that keys that failed together do not come back together. It depends on the key and not
        // on which of them failed first, which threads decide.
        let mut hasher = DefaultHasher::new();
        (self.seed, &key, doublings).hash(&mut hasher);
        let delay = grown + grown.mul_f64((hasher.finish() % 1024) as f64 / 10_240.0);
        self.add_at(key, now + delay);
        delay
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Makes delayed keys ready whose time has come, and tells how many were not waiting yet.
    pub(super) fn promote(&mut self, now: Instant) -> u64 {
        let mut added = 0;
        while let Some((at, key)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            self.due.remove(&key);
            added += u64::from(self.add(key, at));
        }
        added
    }

    /// The first ready key and how long it waited.
    pub(super) fn take(&mut self, now: Instant) -> Option<(K, Duration)> {
        let (key, since) = self.ready.pop_front()?;
        self.dirty.remove(&key);
        self.working.insert(key.clone());
        Some((key, now.saturating_duration_since(since)))
    }

    pub(super) fn done(&mut self, key: &K, now: Instant) {
        self.working.remove(key);
        if self.dirty.contains(key) {
            self.ready.push_back((key.clone(), now));
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    pub(super) fn depth(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.ready.is_empty() && self.working.is_empty() && self.next_due().is_none_or(|at| at > now)
    }

    pub(super) fn shut_down(&mut self) {
        self.shut_down = true;
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down
    }
}
