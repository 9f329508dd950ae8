//! What one execution may still use.

use crate::Limits;

/// Text a step pays for; about what a plain step costs.
const BYTES_PER_STEP: u64 = 256;

/// Memory a value in a list or a map takes, with its share of the container.
const BYTES_PER_VALUE: usize = 128;

/// Memory another reference to such a value takes.
const BYTES_PER_COPY: usize = 32;

/// Nesting of values that are walked: printed, compared, copied, written. Only values built to exhaust the stack
/// are deeper.
pub(crate) const MAX_DEPTH: usize = 200;

/// The steps left. Every piece of work pays before or while it is done, so steps bound time and memory both.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    left: u64,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Budget {
        Budget { limits, left: limits.steps }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The steps left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Pays a step.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), String> {
        self.pay(1)
    }

    /// Pays for text read or written.
    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Result<(), String> {
        self.pay(count as u64 / BYTES_PER_STEP)
    }

    /// Pays for values put into a further list as they are, or only passed by.
    pub(crate) fn copies(&mut self, count: usize) -> Result<(), String> {
        self.pay(1 + count.saturating_mul(BYTES_PER_COPY) as u64 / BYTES_PER_STEP)
    }

    /// Pays for values made or looked at.
    pub(crate) fn values(&mut self, count: usize) -> Result<(), String> {
        self.pay(1 + count.saturating_mul(BYTES_PER_VALUE) as u64 / BYTES_PER_STEP)
    }

    /// Pays so many steps.
    #[inline]
    pub(crate) fn pay(&mut self, steps: u64) -> Result<(), String> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(self.exhausted())
            }
        }
    }

    #[cold]
    fn exhausted(&self) -> String {
        format!("took more than {} steps", self.limits.steps)
    }

    /// Refuses a level of nesting no honest value has.
    pub(crate) fn depth(depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("value is nested deeper than {MAX_DEPTH}"));
        }
        Ok(())
    }
}
