//! Who is to be looked at, and how closely: asks for one Application coalesce to the closest look.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_sync::refresh::Level;
use parking_lot::Mutex;

use crate::cache::ObjectKey;
use crate::queue::Queue;

/// The queue of Applications, and the level each is asked to be compared at.
pub(super) struct Asks {
    pub(super) queue: Queue<ObjectKey>,
    levels: Mutex<BTreeMap<ObjectKey, Level>>,
}

impl Asks {
    pub(super) fn new(queue: Queue<ObjectKey>) -> Asks {
        Asks { queue, levels: Mutex::default() }
    }

    /// Asks for a pass that compares at this level or more, soon.
    pub(super) fn compare(&self, key: &ObjectKey, level: Level, delay: Duration) {
        self.keep(key, level);
        self.queue.add_after(key.clone(), delay);
    }

    /// Asks for a pass that compares only if it finds a reason to.
    pub(super) fn wake(&self, key: &ObjectKey) {
        self.queue.add(key.clone());
    }

    /// Notes a level for the next pass, whenever it comes.
    pub(super) fn keep(&self, key: &ObjectKey, level: Level) {
        let mut levels = self.levels.lock();
        let known = levels.entry(key.clone()).or_insert(level);
        *known = (*known).max(level);
    }

    /// The level asked for, which the pass under way answers.
    pub(super) fn take(&self, key: &ObjectKey) -> Option<Level> {
        self.levels.lock().remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Backoff, QueueMetrics};

    #[tokio::test(start_paused = true)]
    async fn asks_for_one_application_become_one_pass_at_the_closest_level() {
        let asks = Asks::new(Queue::new(Backoff::default(), 0, QueueMetrics::default()));
        let key = ObjectKey::new("argocd", "web");
        asks.compare(&key, Level::Recent, Duration::from_secs(1));
        asks.compare(&key, Level::Resolve, Duration::from_secs(5));
        asks.compare(&key, Level::Tree, Duration::from_secs(9));
        let begin = tokio::time::Instant::now();
        let work = asks.queue.next().await.expect("work");
        assert_eq!((work.key(), begin.elapsed()), (&key, Duration::from_secs(1)));
        assert_eq!(asks.take(&key), Some(Level::Resolve));
        assert_eq!(asks.take(&key), None, "it has been answered");
    }
}
