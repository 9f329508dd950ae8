//! Time and identity: the two things the server cannot derive from a request.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::Instant;

/// Where the server takes the time from.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A fixed date that moves with tokio's clock, which tests pause and advance.
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

    /// Now as `metadata.creationTimestamp` is written: whole seconds.
    pub fn stamp(&self) -> String {
        stamp(self.now())
    }
}

/// A time in whole seconds, RFC 3339.
pub(crate) fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Makes uids and the random part of generated names; with a seed, always the same ones.
#[derive(Debug)]
pub(crate) struct Identities(Mutex<StdRng>);

impl Identities {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Identities(Mutex::new(match seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::from_os_rng(),
        }))
    }

    pub(crate) fn uid(&self) -> String {
        uuid::Builder::from_random_bytes(self.0.lock().random()).into_uuid().to_string()
    }

    /// Five characters without vowels and look-alikes, as Kubernetes appends to `generateName`.
    pub(crate) fn suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut random = self.0.lock();
        (0..5).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])).collect()
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.0.lock().random_range(0..bound.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_identities() {
        let (a, b) = (Identities::new(Some(7)), Identities::new(Some(7)));
        assert_eq!((a.uid(), a.suffix()), (b.uid(), b.suffix()));
        assert_ne!(a.uid(), a.uid());
    }

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_moves_with_tokio() {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().expect("a date"));
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        assert_eq!(clock.stamp(), "2026-01-01T00:01:01Z");
    }
}
