//! Ordered rollouts: both controllers over an embedded API, with real git, under a paused clock.
//!
//! All of it runs three times: on an API that keeps every field, and by `shape` in processes of their own on Argo CD's
//! definitions, with and without the right to write ConfigMaps.

mod api;
mod approval;
mod charts;
mod endings;
#[path = "../appset/faults.rs"]
#[allow(dead_code, reason = "not every test that shares this file fails requests")]
mod faults;
mod handover;
mod heads;
mod matrix;
mod measured;
mod mishaps;
mod order;
mod ownership;
mod phases;
mod policies;
mod receiver;
mod scenarios;
mod scene;
mod shape;
mod switches;
mod telling;
mod upstream;
