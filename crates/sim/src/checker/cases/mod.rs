//! Histories written by hand: for each invariant one that keeps it and some that break it.

mod approval;
mod budget;
mod deletion;
mod failures;
mod gated;
mod held;
mod hooks;
mod order;
mod passed;
mod phased;
mod progress;
mod rollback;
mod story;
