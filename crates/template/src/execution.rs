//! What an execution is given besides the template and its data.

use jiff::Zoned;
use parking_lot::Mutex;
use rand::rngs::{OsRng, StdRng};
use rand::{RngCore, SeedableRng, TryRngCore};

use crate::{Limits, MissingKey};

/// How a template is executed, and what it may know of the world.
///
/// The default knows nothing of it: functions that ask for the time or for randomness then fail.
#[derive(Clone, Copy, Default)]
pub struct Execution<'a> {
    /// What a map gives for a key it does not have.
    pub missing_key: MissingKey,
    /// What the execution may use.
    pub limits: Limits,
    /// The time `now` tells. Its zone is the one times are told and read in unless another is named; UTC where there
    /// is no clock.
    pub now: Option<&'a Zoned>,
    /// Where random texts, salts and keys come from.
    pub entropy: Option<&'a dyn Entropy>,
}

/// A source of random bytes.
pub trait Entropy: Sync {
    /// Fills the bytes.
    ///
    /// # Errors
    /// When there are none to be had, with the reason.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), String>;
}

/// The operating system's randomness: for secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), String> {
        OsRng.try_fill_bytes(bytes).map_err(|error| error.to_string())
    }
}

/// The same bytes for the same seed: for tests and for runs that are to be repeated.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<StdRng>);

impl SeededEntropy {
    /// A source that starts at a seed.
    pub fn new(seed: u64) -> SeededEntropy {
        SeededEntropy(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), String> {
        self.0.lock().fill_bytes(bytes);
        Ok(())
    }
}
