//! How many hooks and checks are under way at once, and whose turn it is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::limits::Limits;

/// Lets so many hooks and so many checks through at once, fairly across sets.
///
/// # Guarantees
/// Never more than the limit hold a [`Pass`]. A place that becomes free goes to the set that holds the fewest, and
/// among those to the one that waits longest; within a set in the order of asking. So a set with a thousand calls
/// delays another's only call by one call, not by a thousand.
#[derive(Debug, Clone)]
pub struct Gate {
    hooks: Arc<Lane>,
    checks: Arc<Lane>,
}

/// A place at the [`Gate`], given back when dropped.
#[derive(Debug)]
pub struct Pass {
    lane: Arc<Lane>,
    set: Arc<str>,
}

#[derive(Debug)]
struct Lane {
    places: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    holding: BTreeMap<Arc<str>, usize>,
    /// Who waits, in the order of asking, by set.
    waiting: BTreeMap<Arc<str>, VecDeque<Waiter>>,
    asked: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    /// The pass itself is sent: a place given to somebody who has gone comes back when the message is dropped.
    give: oneshot::Sender<Pass>,
}

// === impl Gate ===

impl Gate {
    /// A gate with the limits' places.
    pub fn new(limits: &Limits) -> Gate {
        let lane = |places: usize| Arc::new(Lane { places: places.max(1), state: Mutex::default() });
        let limits = limits.clone().within_maxima();
        Gate { hooks: lane(limits.hooks), checks: lane(limits.checks) }
    }

    /// Waits for a place for a hook of a set (`namespace/name`).
    pub async fn hook(&self, set: &str) -> Pass {
        enter(&self.hooks, set).await
    }

    /// Waits for a place for a check of a set (`namespace/name`).
    pub async fn check(&self, set: &str) -> Pass {
        enter(&self.checks, set).await
    }

    /// How many hooks and how many checks are under way.
    pub fn under_way(&self) -> (usize, usize) {
        (self.hooks.state.lock().taken, self.checks.state.lock().taken)
    }
}

async fn enter(lane: &Arc<Lane>, set: &str) -> Pass {
    let set: Arc<str> = set.into();
    loop {
        let given = {
            let mut state = lane.state.lock();
            if state.taken < lane.places {
                return state.take(lane, set);
            }
            let (give, given) = oneshot::channel();
            state.asked += 1;
            let waiter = Waiter { number: state.asked, give };
            state.waiting.entry(set.clone()).or_default().push_back(waiter);
            given
        };
        // The sender lives in the lane, which lives as long as this call: an error cannot be, and asking again is
        // right.
        if let Ok(pass) = given.await {
            return pass;
        }
    }
}

// === impl State ===

impl State {
    fn take(&mut self, lane: &Arc<Lane>, set: Arc<str>) -> Pass {
        self.taken += 1;
        *self.holding.entry(set.clone()).or_default() += 1;
        Pass { lane: lane.clone(), set }
    }

    fn give_back(&mut self, set: &Arc<str>) {
        self.taken -= 1;
        if let Some(held) = self.holding.get_mut(set) {
            *held -= 1;
            if *held == 0 {
                self.holding.remove(set);
            }
        }
    }

    /// Whose turn it is.
    fn next(&mut self) -> Option<(Arc<str>, Waiter)> {
        let turn = |(set, queue): &(&Arc<str>, &VecDeque<Waiter>)| {
            (self.holding.get(*set).copied().unwrap_or(0), queue.front().map(|waiter| waiter.number))
        };
        let set = self.waiting.iter().min_by_key(turn)?.0.clone();
        let queue = self.waiting.get_mut(&set)?;
        let waiter = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&set);
        }
        Some((set, waiter?))
    }
}

// === impl Pass ===

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.lane.state.lock();
        state.give_back(&self.set);
        while let Some((set, waiter)) = state.next() {
            // Who has gone is passed over here, so that a gone crowd does not nest one drop in another.
            if waiter.give.is_closed() {
                continue;
            }
            let pass = state.take(&self.lane, set);
            // The lock must be gone before a pass that nobody took is dropped.
            drop(state);
            let _ = waiter.give.send(pass);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(hooks: usize) -> Gate {
        Gate::new(&Limits { hooks, ..Limits::default() })
    }

    /// What a waiter has at once; from then on it stands in the queue.
    async fn at_once(future: &mut (impl Future<Output = Pass> + Unpin)) -> Option<Pass> {
        tokio::select! {
            biased;
            pass = future => Some(pass),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn never_more_than_the_limit_and_hooks_do_not_take_the_places_of_checks() {
        let gate = gate(50);
        let mut held = Vec::new();
        for number in 0..5 {
            held.push(gate.hook(&format!("argocd/set-{number}")).await);
        }
        for _ in 0..10 {
            held.push(gate.check("argocd/set").await);
        }
        assert_eq!(gate.under_way(), (5, 10));
        let mut sixth = Box::pin(gate.hook("argocd/late"));
        assert!(at_once(&mut sixth).await.is_none());
        held.remove(0);
        let _sixth = at_once(&mut sixth).await.expect("the free place is its");
        assert_eq!(gate.under_way(), (5, 10));
    }

    #[tokio::test]
    async fn a_set_with_many_calls_delays_another_by_one() {
        let gate = gate(2);
        let (first, second) = (gate.hook("a/storm").await, gate.hook("a/storm").await);
        let mut storm: Vec<_> = (0..20).map(|_| Box::pin(gate.hook("a/storm"))).collect();
        for waiter in &mut storm {
            assert!(at_once(waiter).await.is_none());
        }
        let mut other = Box::pin(gate.hook("b/quiet"));
        assert!(at_once(&mut other).await.is_none());
        drop(first);
        let _other = at_once(&mut other).await.expect("it holds none, so it is its turn");
        assert_eq!(gate.under_way(), (2, 0));
        drop(second);
        let mut done = 0;
        for mut waiter in storm {
            drop(at_once(&mut waiter).await.expect("each makes room for the next"));
            done += 1;
        }
        assert_eq!((done, gate.under_way()), (20, (1, 0)));
    }

    #[tokio::test]
    async fn who_stops_waiting_takes_no_place() {
        let gate = gate(1);
        let held = gate.hook("a/a").await;
        let mut gone: Vec<_> = (0..3).map(|_| Box::pin(gate.hook("a/a"))).collect();
        for waiter in &mut gone {
            assert!(at_once(waiter).await.is_none());
        }
        let mut stays = Box::pin(gate.hook("b/b"));
        assert!(at_once(&mut stays).await.is_none());
        // One is handed the pass and goes before it looks.
        drop(held);
        drop(gone);
        let pass = at_once(&mut stays).await.expect("the others are gone");
        assert_eq!(gate.under_way(), (1, 0));
        drop(pass);
        assert_eq!(gate.under_way(), (0, 0));
    }
}
