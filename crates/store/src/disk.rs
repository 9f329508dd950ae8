//! Durability: every write is in the file before anyone can see it.
//!
//! Memory stays the truth for reading; the file holds each live object and the revision counter, nothing
//! else. One thread writes. It takes all writes that wait, checks them in order, makes them durable in one
//! transaction, and only then publishes and acknowledges them, so the cost of a sync is shared by all
//! writers that wait for it.

mod codec;
mod file;
mod queue;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::error::{CommitError, OpenError};
use crate::options::Options;
use crate::record::Record;
use crate::state::State;
use crate::write::Write;
use file::ObjectFile;
use queue::Queue;
use writer::Writer;

/// The way to a store's writer thread. Dropping it closes the file.
#[derive(Debug)]
pub(crate) struct Disk {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Disk {
    pub(crate) fn open(dir: &Path, options: Options) -> Result<(Arc<Mutex<State>>, Self), OpenError> {
        let (file, contents) = ObjectFile::open(dir)?;
        let state = Arc::new(Mutex::new(State::new(options, contents.revision, contents.records)));
        let disk = Self::start(file, state.clone())
            .map_err(|source| OpenError::Io { path: dir.to_owned(), source })?;
        Ok((state, disk))
    }

    fn start(file: ObjectFile, state: Arc<Mutex<State>>) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let writer = Writer::new(file, state, queue.clone());
        let thread = std::thread::Builder::new().name("store-writer".into()).spawn(move || writer.run())?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) async fn commit(&self, write: Write) -> Result<Arc<Record>, CommitError> {
        let reply = self.queue.push(write).await.ok_or(CommitError::Closed)?;
        reply.await.unwrap_or(Err(CommitError::Closed))
    }

    /// Completes the writes that wait, refuses further ones, and releases the file.
    pub(crate) fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's writer thread had panicked");
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
