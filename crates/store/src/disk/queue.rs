//! Writes that wait for the writer thread.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::CommitError;
use crate::record::Record;
use crate::write::Write;

/// Writes that may wait or be under way at once; further writers wait to be let in.
const MAX_WAITING: usize = 1024;

/// One write and whom to tell about it.
pub(super) struct Job {
    pub(super) write: Write,
    pub(super) reply: Reply,
}

type Outcome = Result<Arc<Record>, CommitError>;

/// The obligation to answer one writer.
pub(super) struct Reply {
    reply: oneshot::Sender<Outcome>,
    /// Makes room for another writer when this one has been answered.
    _place: OwnedSemaphorePermit,
}

impl Reply {
    pub(super) fn send(self, outcome: Outcome) {
        // A writer that has stopped waiting needs no answer.
        let _ = self.reply.send(outcome);
    }
}

/// A bounded queue between asynchronous writers and one thread.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            filled: Condvar::new(),
            places: Arc::new(Semaphore::new(MAX_WAITING)),
        }
    }
}

impl Queue {
    /// Adds a write and returns where its outcome will arrive; `None` if the queue is closed.
    pub(super) async fn push(&self, write: Write) -> Option<oneshot::Receiver<Outcome>> {
        let place = self.places.clone().acquire_owned().await.ok()?;
        let (reply, outcome) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return None;
        }
        waiting.jobs.push_back(Job { write, reply: Reply { reply, _place: place } });
        drop(waiting);
        self.filled.notify_one();
        Some(outcome)
    }

    /// Waits for writes and takes up to `limit` of them; empty once the queue is closed and drained.
    pub(super) fn take(&self, limit: usize) -> Vec<Job> {
        let mut waiting = self.waiting.lock();
        while waiting.jobs.is_empty() && !waiting.closed {
            self.filled.wait(&mut waiting);
        }
        let count = waiting.jobs.len().min(limit);
        waiting.jobs.drain(..count).collect()
    }

    /// Lets no further write in.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.places.close();
        self.filled.notify_all();
    }

    /// Closes the queue and drops what waits in it, which tells the writers.
    pub(super) fn abandon(&self) {
        self.close();
        self.waiting.lock().jobs.clear();
    }
}

#[cfg(test)]
impl Queue {
    pub(super) fn len(&self) -> usize {
        self.waiting.lock().jobs.len()
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("jobs", &self.jobs.len()).field("closed", &self.closed).finish()
    }
}
