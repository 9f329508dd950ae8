//! A keyed work queue with client-go's semantics, deterministic under a seed.
//!
//! # Guarantees
//! - A key waits at most once, however often it is added: events coalesce.
//! - A key is never worked on by two workers. Added while it is worked on, it comes again when that work is done.
//! - Keys come in the order in which they became due.
//! - Of several delayed adds of a key the earliest wins.
//! - Retries of a key wait exponentially longer until it is forgotten.
//!
//! Time is tokio's, which tests pause.

mod metrics;
mod state;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use metrics::QueueMetrics;
use state::State;

/// How long a failing key waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub base: Duration,
    /// At most.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { base: Duration::from_millis(10), longest: Duration::from_secs(180) }
    }
}

/// A queue of keys. Clones share it.
#[derive(Debug)]
pub struct Queue<K: Ord + Clone> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K: Ord + Clone> {
    state: Mutex<State<K>>,
    changed: Notify,
    metrics: QueueMetrics,
}

/// A key that is being worked on; dropping it ends the work.
#[derive(Debug)]
pub struct Work<K: Ord + Clone> {
    key: K,
    began: Instant,
    shared: Arc<Shared<K>>,
}

// === impl Queue ===

impl<K: Ord + Clone> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Queue { shared: self.shared.clone() }
    }
}

impl<K: Ord + Clone + Hash> Queue<K> {
    /// An empty queue. The seed decides the jitter of retries.
    pub fn new(backoff: Backoff, seed: u64, metrics: QueueMetrics) -> Queue<K> {
        let state = Mutex::new(State::new(backoff, seed));
        Queue { shared: Arc::new(Shared { state, changed: Notify::new(), metrics }) }
    }

    /// Adds a key now.
    pub fn add(&self, key: K) {
        if self.shared.state.lock().add(key, Instant::now()) {
            self.shared.metrics.adds.inc();
        }
        self.shared.wake();
    }

    /// Adds a key after a delay; an earlier delayed add of it stands.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        self.shared.state.lock().add_at(key, Instant::now() + delay);
        self.shared.wake();
    }

    /// Adds a key after its backoff, which grows until [`Queue::forget`], and tells the delay.
    pub fn retry(&self, key: K) -> Duration {
        let now = Instant::now();
        let delay = self.shared.state.lock().retry(key, now);
        self.shared.metrics.retries.inc();
        self.shared.wake();
        delay
    }

    /// Ends the backoff of a key.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().forget(key);
    }

    /// The next due key, as soon as there is one; `None` once the queue is shut down.
    pub async fn next(&self) -> Option<Work<K>> {
        loop {
            let changed = self.shared.changed.notified();
            let now = Instant::now();
            let wake_at = {
                let mut state = self.shared.state.lock();
                if state.is_shut_down() {
                    return None;
                }
                let became_due = state.promote(now);
                self.shared.metrics.adds.inc_by(became_due);
                if let Some((key, waited)) = state.take(now) {
                    let more = state.depth() > 0;
                    drop(state);
                    self.shared.metrics.waited.observe(waited.as_secs_f64());
                    self.shared.metrics.set_depth(self.depth());
                    if more {
                        self.shared.changed.notify_one();
                    }
                    return Some(Work { key, began: now, shared: self.shared.clone() });
                }
                state.next_due()
            };
            match wake_at {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// How many keys are due and not yet worked on.
    pub fn depth(&self) -> usize {
        self.shared.state.lock().depth()
    }

    /// Whether nothing is due and nothing is worked on; delayed keys may wait.
    pub fn is_idle(&self) -> bool {
        self.shared.state.lock().is_idle(Instant::now())
    }

    /// Ends [`Queue::next`] for every worker; work under way goes on.
    pub fn shut_down(&self) {
        self.shared.state.lock().shut_down();
        self.shared.changed.notify_waiters();
        self.shared.changed.notify_one();
    }
}

// === impl Shared ===

impl<K: Ord + Clone> Shared<K> {
    fn wake(&self) {
        self.metrics.set_depth(self.state.lock().depth());
        self.changed.notify_one();
    }
}

// === impl Work ===

impl<K: Ord + Clone> Work<K> {
    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Ord + Clone> Drop for Work<K> {
    fn drop(&mut self) {
        self.shared.state.lock().done(&self.key, Instant::now());
        self.shared.metrics.worked.observe(self.began.elapsed().as_secs_f64());
        self.shared.wake();
    }
}
