//! Room for the recursion of the parser and the evaluator.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The generated parser takes some hundred kilobytes a level in an unoptimised build. Only what is touched is ever
/// backed by memory.
const LARGE: usize = 256 << 20;

/// Runs work that recurses deeply; `None` when it panicked or no thread could be had.
pub(super) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("cel".to_owned()).stack_size(LARGE);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// Runs shallow work in place; `None` when it panicked. The evaluator is not ours, and no rule may end the server.
pub(super) fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
