//! One life of a controller, from its start to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

/// One life of a controller.
pub(crate) struct Life {
    pub(super) name: String,
    alive: AtomicBool,
    writes: AtomicU64,
    recorded: AtomicU64,
    starts: AtomicU64,
    calls: AtomicU64,
    reads: AtomicU64,
    doom: Option<Doom>,
    struck: Notify,
    frozen: watch::Sender<bool>,
}

/// When and how a controller is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Doom {
    pub(crate) moment: Moment,
    pub(crate) blow: Blow,
}

/// At which of its writes or calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The nth of all.
    Write(u64),
    /// The nth write to an Application that the head of a rollout was changed for.
    Recorded(u64),
    /// The nth of those that start something.
    Started(u64),
    /// The nth call of a hook or a check.
    Call(u64),
    /// The nth read.
    Read(u64),
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    /// It dies before the write or call took effect.
    Before,
    /// It dies after the write or call took effect.
    After,
    /// It stands still for so long before the write, then goes on.
    Freeze(Duration),
}

impl Life {
    pub(crate) fn new(name: String, doom: Option<Doom>) -> Arc<Life> {
        Arc::new(Life {
            name,
            alive: AtomicBool::new(true),
            writes: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            doom,
            struck: Notify::new(),
            frozen: watch::Sender::new(false),
        })
    }

    /// Waits until the controller is struck.
    pub(crate) async fn struck(&self) {
        self.struck.notified().await;
    }

    /// Nothing of this life reaches a cluster any more.
    pub(crate) fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
        self.struck.notify_one();
    }

    pub(crate) fn is_over(&self) -> bool {
        !self.alive.load(Ordering::Relaxed)
    }

    /// Notes a write, and tells whether a blow falls at it.
    pub(super) fn blow(&self, is_recorded: bool, is_start: bool) -> Option<Blow> {
        let write = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let recorded = self.recorded.fetch_add(u64::from(is_recorded), Ordering::Relaxed) + 1;
        let started = self.starts.fetch_add(u64::from(is_start), Ordering::Relaxed) + 1;
        let doom = self.doom?;
        let falls = match doom.moment {
            Moment::Write(number) => number == write,
            Moment::Recorded(number) => is_recorded && number == recorded,
            Moment::Started(number) => is_start && number == started,
            Moment::Call(_) | Moment::Read(_) => false,
        };
        falls.then_some(doom.blow)
    }

    /// Notes a call, and tells whether a blow falls at it.
    pub(crate) fn blow_at_call(&self) -> Option<Blow> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let doom = self.doom?;
        (doom.moment == Moment::Call(call)).then_some(doom.blow)
    }

    /// Notes a read, and tells whether a blow falls at it.
    pub(super) fn blow_at_read(&self) -> bool {
        let read = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
        self.doom.is_some_and(|doom| doom.moment == Moment::Read(read))
    }

    /// Stands still for a while: no request goes out and no answer comes in.
    pub(super) fn freeze(self: &Arc<Life>, nap: Duration) {
        self.frozen.send_replace(true);
        self.struck.notify_one();
        let life = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(nap).await;
            life.frozen.send_replace(false);
        });
    }

    /// Waits while it stands still.
    pub(crate) async fn moves(&self) {
        // The sender lives in `self`, so the channel cannot close while waiting.
        let _ = self.frozen.subscribe().wait_for(|frozen| !frozen).await;
    }
}
