//! What is to be compared and operated on, and when: each Application by one at a time of either kind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How thoroughly something is compared; see the module above.
pub(super) type Level = u8;

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    moved: Notify,
}

#[derive(Default)]
struct State {
    /// When to look at which Application, and at what level where somebody asked for one.
    comparisons: BTreeMap<String, (Instant, Option<Level>)>,
    operations: BTreeMap<String, Instant>,
    comparing: BTreeSet<String>,
    operating: BTreeSet<String>,
}

impl Queue {
    /// Looks at an Application after a while: at a level, or as what it says asks for.
    pub(super) fn look(&self, name: &str, level: Option<Level>, wait: Duration) {
        let due = Instant::now() + wait;
        let mut state = self.state.lock();
        let entry = state.comparisons.entry(name.to_owned()).or_insert((due, None));
        *entry = (entry.0.min(due), entry.1.max(level));
        drop(state);
        self.moved.notify_one();
    }

    /// Sees to the operation of an Application.
    pub(super) fn operate(&self, name: &str, wait: Duration) {
        let due = Instant::now() + wait;
        self.state.lock().operations.insert(name.to_owned(), due);
        self.moved.notify_one();
    }

    /// What is due, and nobody is busy with.
    pub(super) fn due(&self) -> (Vec<(String, Option<Level>)>, Vec<String>) {
        let now = Instant::now();
        let state = &mut *self.state.lock();
        let comparisons = state
            .comparisons
            .extract_if(.., |name, (due, _)| *due <= now && !state.comparing.contains(name))
            .map(|(name, (_, level))| (name, level))
            .collect::<Vec<_>>();
        let operations = state
            .operations
            .extract_if(.., |name, due| *due <= now && !state.operating.contains(name))
            .map(|(name, _)| name)
            .collect::<Vec<_>>();
        state.comparing.extend(comparisons.iter().map(|(name, _)| name.clone()));
        state.operating.extend(operations.iter().cloned());
        (comparisons, operations)
    }

    pub(super) fn compared(&self, name: &str) {
        self.state.lock().comparing.remove(name);
        self.moved.notify_one();
    }

    pub(super) fn operated(&self, name: &str) {
        self.state.lock().operating.remove(name);
        self.moved.notify_one();
    }

    /// Waits until something may be due.
    pub(super) async fn changed(&self) {
        let next = {
            let state = self.state.lock();
            let comparisons = state.comparisons.iter().filter(|(name, _)| !state.comparing.contains(*name));
            let operations = state.operations.iter().filter(|(name, _)| !state.operating.contains(*name));
            comparisons.map(|(_, (due, _))| *due).chain(operations.map(|(_, due)| *due)).min()
        };
        tokio::select! {
            biased;
            () = self.moved.notified() => {}
            () = until(next) => {}
        }
    }
}

async fn until(next: Option<Instant>) {
    match next {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
