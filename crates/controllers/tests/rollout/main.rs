//! Ordered rollouts: both controllers over an embedded API, with real git, under a paused clock.

mod approval;
#[path = "../appset/faults.rs"]
#[allow(dead_code, reason = "not every test that shares this file fails requests")]
mod faults;
mod matrix;
mod mishaps;
mod order;
mod ownership;
mod policies;
mod scenarios;
mod scene;
mod switches;
mod telling;
