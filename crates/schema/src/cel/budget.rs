//! How much work the rules of one object may cause.

use std::sync::atomic::{AtomicI64, Ordering};

/// Work left, in units of one loop iteration or ten bytes of a built string.
#[derive(Debug)]
pub(super) struct Budget(AtomicI64);

/// Upstream permits a cost of ten million for an object, several units an iteration.
const UNITS: i64 = 1_000_000;

impl Default for Budget {
    fn default() -> Self {
        Budget(AtomicI64::new(UNITS))
    }
}

impl Budget {
    /// Takes from the budget; `false` when it does not suffice.
    pub(super) fn take(&self, units: usize) -> bool {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        // One thread evaluates the rules of an object: the atomic only satisfies the evaluator's bounds.
        self.0.fetch_sub(units.min(UNITS + 1), Ordering::Relaxed) >= units
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) < 0
    }
}
