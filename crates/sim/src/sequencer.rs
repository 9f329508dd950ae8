//! One request at a time, each at a moment of its own.
//!
//! Git runs on other threads and answers when the machine lets it. Virtual time does not pass meanwhile, so a request
//! that takes effect at a moment of its own finds everything before it done, whatever thread was faster: the order of
//! requests depends on the seed alone. Requests that are the same in every way are let through together: which of them
//! came first is left to the machine's threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// The least time between two requests, and the grain of tokio's clock.
const GRAIN: Duration = Duration::from_millis(1);

/// Lets requests through, one kind after the other. Clones share the queue.
#[derive(Clone, Default)]
pub(crate) struct Sequencer(Arc<Queue>);

/// Requests that come together.
type Turns = Vec<oneshot::Sender<()>>;

#[derive(Default)]
struct Queue {
    waiting: Mutex<BTreeMap<(Instant, u64), Turns>>,
    arrived: Notify,
}

impl Sequencer {
    /// Waits for a turn after `delay`; of those due at once the lower `rank` comes first, and equals come together.
    pub(crate) async fn turn(&self, delay: Duration, rank: u64) {
        let (send, granted) = oneshot::channel();
        self.0.waiting.lock().entry((Instant::now() + delay, rank)).or_default().push(send);
        self.0.arrived.notify_one();
        // The sequencer goes only with the world.
        let _ = granted.await;
    }

    /// Grants turns for ever.
    pub(crate) async fn run(self) {
        loop {
            let first = self.0.waiting.lock().first_key_value().map(|(key, _)| key.0);
            let Some(due) = first else {
                self.0.arrived.notified().await;
                continue;
            };
            if Instant::now() < due {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(due) => {}
                    () = self.0.arrived.notified() => {}
                }
                continue;
            }
            let next = self.0.waiting.lock().pop_first();
            let granted = next.into_iter().flat_map(|(_, all)| all).filter_map(|send| send.send(()).ok());
            if granted.count() > 0 {
                tokio::time::sleep(GRAIN).await;
            }
        }
    }
}
