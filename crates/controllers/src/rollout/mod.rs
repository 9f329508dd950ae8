//! Ordered rollouts: the shell around the machine of `baton-rollout`.
//!
//! The generation side posts on a [`Board`] what a set wants; watches drop what they see into an inbox; the reconciler
//! here, with a queue and a field manager of its own, feeds the machine and does what it decides. Under RollingSync it
//! is the only one that writes specifications and operations of the set's Applications, and the only one that writes
//! `status.applicationStatus`, `status.rollout` and the condition `RolloutProgressing`.

mod board;
mod courses;
mod desk;
mod head;
mod inbox;
mod label;
mod metrics;
mod phasing;
mod reconcile;
mod resolve;
mod showing;
mod sight;
mod view;
mod windows;
mod write;

pub(crate) use board::{Admission, Board, Offer, Phased, Template, Typed};
pub(crate) use courses::register_standing;
pub(crate) use head::has_room;
pub(crate) use label::label_value;
pub(crate) use metrics::RolloutMetrics;
pub(crate) use reconcile::{Parts, Reconciler};
pub(crate) use resolve::Resolver;
pub(crate) use sight::{RawStatus, Sight};
pub(crate) use view::listable;

/// Field manager of every write of a rollout.
pub(crate) const MANAGER: &str = "baton-rollout";
