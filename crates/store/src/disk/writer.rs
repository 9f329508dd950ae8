//! The one thread that changes a store on disk.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::file::ObjectFile;
use super::queue::{Job, Queue, Reply};
use crate::error::{CommitError, StorageError};
use crate::event::{Change, Event};
use crate::record::{Key, Record};
use crate::state::{State, Wakes};

/// Writes per transaction. Bounds how long the first writer of a batch waits and how much is in memory twice.
const MAX_BATCH: usize = 256;

/// What the objects touched by a batch will be; `None` for those it deletes.
pub(super) type Overlay = HashMap<Key, Option<Arc<Record>>>;

pub(super) struct Writer {
    file: ObjectFile,
    state: Arc<Mutex<State>>,
    queue: Arc<Queue>,
    /// Set once writing has failed. What the file then holds is unknown, so going on could acknowledge
    /// writes that contradict it.
    failed: Option<StorageError>,
}

impl Writer {
    pub(super) fn new(file: ObjectFile, state: Arc<Mutex<State>>, queue: Arc<Queue>) -> Self {
        Self { file, state, queue, failed: None }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        loop {
            let jobs = self.queue.take(MAX_BATCH);
            if jobs.is_empty() {
                return;
            }
            self.write(jobs);
        }
    }

    fn write(&mut self, jobs: Vec<Job>) {
        if let Some(error) = &self.failed {
            return refuse(jobs.into_iter().map(|job| job.reply), error);
        }
        let batch = self.plan(jobs);
        if batch.overlay.is_empty() {
            return batch.publish(&self.state);
        }
        match self.file.write(batch.revision, &batch.overlay) {
            Ok(()) => batch.publish(&self.state),
            Err(error) => {
                tracing::error!(%error, "the store stops taking writes");
                refuse(batch.answers.into_iter().map(|(reply, _)| reply), &error);
                self.failed = Some(error);
            }
        }
    }

    fn plan(&self, jobs: Vec<Job>) -> Batch {
        // Nothing changes between this lock and publishing: this thread makes all changes.
        let state = self.state.lock();
        let mut batch = Batch {
            revision: state.revision(),
            overlay: Overlay::new(),
            answers: Vec::with_capacity(jobs.len()),
        };
        for Job { write, reply } in jobs {
            let current = match batch.overlay.get(&write.key) {
                Some(changed) => changed.as_ref(),
                None => state.get(&write.key),
            };
            let planned = state.plan(write, current, batch.revision + 1);
            if let Ok(event) = &planned {
                batch.revision = event.revision;
                let left = (event.change != Change::Deleted).then(|| event.record.clone());
                batch.overlay.insert(event.record.key.clone(), left);
            }
            batch.answers.push((reply, planned));
        }
        batch
    }
}

impl Drop for Writer {
    /// However the thread ends, nobody must wait for it in vain.
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

/// Writes that become durable together.
struct Batch {
    /// The revision of the last write.
    revision: u64,
    overlay: Overlay,
    /// In order of arrival. Conflicts are answered with the rest: the state they report may be part of
    /// this batch and must not be seen before it is durable.
    answers: Vec<(Reply, Result<Event, CommitError>)>,
}

impl Batch {
    fn publish(self, state: &Mutex<State>) {
        let mut wakes = Wakes::default();
        let mut state = state.lock();
        let outcomes: Vec<_> = self
            .answers
            .into_iter()
            .map(|(reply, planned)| (reply, planned.map(|event| state.apply(event, &mut wakes))))
            .collect();
        drop(state);
        wakes.wake();
        for (reply, outcome) in outcomes {
            reply.send(outcome);
        }
    }
}

fn refuse(replies: impl Iterator<Item = Reply>, error: &StorageError) {
    for reply in replies {
        reply.send(Err(CommitError::Storage(error.clone())));
    }
}
