//! How often a password may be guessed.
//!
//! Every account has a counter of its own, which nothing can push out. Names that are no account share a table of fixed
//! size: they are refused as accounts are, so that nobody learns which names exist, and noise costs no memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// How many failures are let pass.
pub(crate) const MOST: usize = 5;
/// In which time.
pub(crate) const WINDOW: SignedDuration = SignedDuration::from_secs(300);
/// Places for names that are no account.
const STRANGERS: usize = 4096;

/// Counts attempts to sign in.
pub(crate) struct Attempts {
    hash: RandomState,
    counts: Mutex<Counts>,
}

struct Counts {
    accounts: HashMap<String, Vec<Timestamp>>,
    strangers: Vec<Vec<Timestamp>>,
}

/// Too many failures: when the next attempt is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Locked(pub(crate) Timestamp);

// === impl Attempts ===

impl Default for Attempts {
    fn default() -> Attempts {
        let counts = Counts { accounts: HashMap::new(), strangers: vec![Vec::new(); STRANGERS] };
        Attempts { hash: RandomState::new(), counts: Mutex::new(counts) }
    }
}

impl Attempts {
    /// Counts an attempt before it is judged, so that many at once are no way around.
    ///
    /// # Errors
    /// There were too many.
    pub(crate) fn begin(&self, name: &str, is_account: bool, now: Timestamp) -> Result<(), Locked> {
        let mut counts = self.counts.lock();
        let failures = self.place(&mut counts, name, is_account);
        failures.retain(|at| now.duration_since(*at) < WINDOW);
        if failures.len() >= MOST {
            let first = failures.first().copied().unwrap_or(now);
            return Err(Locked(first.saturating_add(WINDOW).unwrap_or(Timestamp::MAX)));
        }
        failures.push(now);
        Ok(())
    }

    /// The attempt was a success: what was counted for the account is forgotten.
    pub(crate) fn succeed(&self, account: &str) {
        self.counts.lock().accounts.remove(account);
    }

    fn place<'c>(&self, counts: &'c mut Counts, name: &str, is_account: bool) -> &'c mut Vec<Timestamp> {
        match is_account {
            true => counts.accounts.entry(name.to_owned()).or_default(),
            false => &mut counts.strangers[self.hash.hash_one(name) as usize % STRANGERS],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a second")
    }

    #[test]
    fn the_sixth_guess_in_five_minutes_is_not_looked_at() {
        for is_account in [true, false] {
            let attempts = Attempts::default();
            for second in 0..5 {
                assert_eq!(attempts.begin("name", is_account, at(second)), Ok(()));
            }
            assert_eq!(attempts.begin("name", is_account, at(5)), Err(Locked(at(300))));
            assert_eq!(attempts.begin("name", is_account, at(299)), Err(Locked(at(300))));
            assert_eq!(attempts.begin("name", is_account, at(300)), Ok(()));
            assert_eq!(attempts.begin("name", is_account, at(300)), Err(Locked(at(301))));
        }
    }

    #[test]
    fn success_forgets_and_noise_does_not() {
        let attempts = Attempts::default();
        for _ in 0..4 {
            attempts.begin("admin", true, at(0)).expect("room");
        }
        for number in 0..100_000 {
            let _ = attempts.begin(&format!("noise-{number}"), false, at(1));
        }
        assert_eq!(attempts.begin("admin", true, at(2)), Ok(()));
        assert!(attempts.begin("admin", true, at(2)).is_err(), "noise pushed nothing out");
        attempts.succeed("admin");
        assert_eq!(attempts.begin("admin", true, at(3)), Ok(()));
    }
}
