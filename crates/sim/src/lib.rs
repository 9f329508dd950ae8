//! The real controllers in a made-up world: virtual time, faults, and a judge of the history.
//!
//! Everything that happens in a world is drawn from its seed, so that a seed that fails can be run again. See
//! [`run::seed`], and [`given::Given`] for a world around somebody's own set.

mod action;
pub mod checker;
pub mod course;
pub mod dice;
mod fleet;
pub mod foreign;
#[cfg(test)]
mod found;
pub mod given;
mod journal;
mod people;
mod receiver;
mod repository;
pub mod run;
mod scenario;
mod sequencer;
pub mod tally;
mod timeline;
mod wire;
mod world;
