//! The work queue against a model that knows nothing of time, and its behaviour in time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use baton_controllers::queue::{Backoff, Queue, QueueMetrics, Work};
use futures::FutureExt;
use proptest::prelude::*;

const BACKOFF: Backoff = Backoff { base: Duration::from_millis(10), longest: Duration::from_secs(1) };

fn queue() -> Queue<u8> {
    Queue::new(BACKOFF, 1, QueueMetrics::default())
}

/// What a test does with a queue.
#[derive(Debug, Clone)]
enum Act {
    Add(u8),
    AddAfter(u8, u64),
    Take,
    /// Ends the oldest work.
    Finish,
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..4_u8).prop_map(Act::Add),
        (0..4_u8, 0..50_u64).prop_map(|(key, delay)| Act::AddAfter(key, delay)),
        Just(Act::Take),
        Just(Act::Finish),
        (0..30_u64).prop_map(Act::Wait),
    ]
}

/// client-go's rules, told again as simply as possible.
#[derive(Default)]
struct Model {
    now: u64,
    ready: VecDeque<u8>,
    again: BTreeSet<u8>,
    working: BTreeSet<u8>,
    due: BTreeMap<u8, u64>,
}

impl Model {
    fn add(&mut self, key: u8) {
        if self.working.contains(&key) {
            self.again.insert(key);
        } else if !self.ready.contains(&key) {
            self.ready.push_back(key);
        }
    }

    fn add_after(&mut self, key: u8, delay: u64) {
        if delay == 0 {
            return self.add(key);
        }
        let at = self.due.entry(key).or_insert(u64::MAX);
        *at = (*at).min(self.now + delay);
    }

    /// Delayed keys become ready in the order of their time, then of the keys.
    fn promote(&mut self) {
        let mut due: Vec<(u64, u8)> = self.due.iter().map(|(key, at)| (*at, *key)).collect();
        due.retain(|(at, _)| *at <= self.now);
        due.sort_unstable();
        for (_, key) in due {
            self.due.remove(&key);
            self.add(key);
        }
    }

    fn take(&mut self) -> Option<u8> {
        self.promote();
        let key = self.ready.pop_front()?;
        self.working.insert(key);
        Some(key)
    }

    fn finish(&mut self, key: u8) {
        self.working.remove(&key);
        if self.again.remove(&key) {
            self.ready.push_back(key);
        }
    }
}

proptest! {
    #[test]
    fn the_queue_does_what_the_model_does(acts in prop::collection::vec(act(), 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        runtime.block_on(async {
            let (queue, mut model) = (queue(), Model::default());
            let mut works: VecDeque<Work<u8>> = VecDeque::new();
            for act in acts {
                match act {
                    Act::Add(key) => {
                        queue.add(key);
                        model.add(key);
                    }
                    Act::AddAfter(key, delay) => {
                        queue.add_after(key, Duration::from_millis(delay));
                        model.add_after(key, delay);
                    }
                    Act::Take => {
                        let taken = queue.next().now_or_never().flatten();
                        prop_assert_eq!(taken.as_ref().map(|work| *work.key()), model.take());
                        works.extend(taken);
                    }
                    Act::Finish => {
                        if let Some(work) = works.pop_front() {
                            model.finish(*work.key());
                        }
                    }
                    Act::Wait(time) => {
                        tokio::time::advance(Duration::from_millis(time)).await;
                        model.now += time;
                    }
                }
            }
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn retries_wait_ever_longer_until_the_key_is_forgotten() {
    let queue = queue();
    let mut delays = Vec::new();
    for _ in 0..9 {
        delays.push(queue.retry(1));
        drop(queue.next().await);
    }
    for (number, delay) in delays.iter().enumerate() {
        let least = (BACKOFF.base * 2_u32.pow(number as u32)).min(BACKOFF.longest);
        assert!(*delay >= least && *delay <= least.mul_f64(1.1), "retry {number} waits {delay:?}");
    }
    queue.forget(&1);
    assert!(queue.retry(1) < Duration::from_millis(12));
}

#[tokio::test(start_paused = true)]
async fn workers_share_the_keys_and_never_one() {
    let queue: Queue<u8> = queue();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..3 {
        let (queue, sender) = (queue.clone(), sender.clone());
        tokio::spawn(async move {
            while let Some(work) = queue.next().await {
                let _ = sender.send((*work.key(), true));
                tokio::time::sleep(Duration::from_millis(5)).await;
                let _ = sender.send((*work.key(), false));
            }
        });
    }
    drop(sender);
    for round in 0..20 {
        (0..5).for_each(|key| queue.add(key));
        tokio::time::sleep(Duration::from_millis(round % 7)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(queue.is_idle());
    queue.shut_down();
    let mut working = BTreeSet::new();
    let mut most = 0;
    while let Some((key, begins)) = receiver.recv().await {
        let fits = if begins { working.insert(key) } else { working.remove(&key) };
        assert!(fits, "key {key} is worked on twice at once");
        most = most.max(working.len());
    }
    assert_eq!(most, 3, "three workers work at once");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_is_woken_in_time() {
    let queue = queue();
    queue.add_after(1, Duration::from_secs(5));
    queue.add_after(1, Duration::from_secs(2));
    queue.add_after(1, Duration::from_secs(9));
    let begin = tokio::time::Instant::now();
    let work = queue.next().await.expect("a key");
    assert_eq!((*work.key(), begin.elapsed().as_secs()), (1, 2));
    drop(work);
    let idle = queue.clone();
    let waiting = tokio::spawn(async move { idle.next().await.map(|work| *work.key()) });
    tokio::time::sleep(Duration::from_secs(60)).await;
    queue.shut_down();
    assert_eq!(waiting.await.expect("ends"), None, "the later delayed adds counted as one");
}

#[test]
fn equal_seeds_wait_equally() {
    let delays = |seed| {
        let queue: Queue<u8> = Queue::new(BACKOFF, seed, QueueMetrics::default());
        (0..20_u8).map(|key| queue.retry(key)).collect::<Vec<_>>()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _inside = runtime.enter();
    assert_eq!(delays(7), delays(7));
    assert_ne!(delays(7), delays(8));
}
