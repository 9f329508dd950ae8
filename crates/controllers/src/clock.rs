//! Where controllers take the date from.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The date: the machine's, or one that moves with tokio's clock, which tests pause.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A fixed date that moves with tokio's clock.
    Virtual {
        /// The date at `start`.
        epoch: Timestamp,
        /// When the clock was made.
        start: Instant,
    },
}

impl Clock {
    /// A clock that follows tokio's, starting at `epoch`. Call it inside a runtime.
    pub fn starting_at(epoch: Timestamp) -> Clock {
        Clock::Virtual { epoch, start: Instant::now() }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System => Timestamp::now(),
            Clock::Virtual { epoch, start } => {
                let elapsed = SignedDuration::try_from(start.elapsed()).unwrap_or(SignedDuration::MAX);
                epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Now in whole seconds, as Kubernetes writes times.
    pub fn now_in_seconds(&self) -> Timestamp {
        let now = self.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }
}
