//! The calls themselves, without any transport: a typed request in, an answer or an error out. Each asks once whether the
//! caller may, and each that changes something is written down.

pub mod accounts;
pub mod actions;
pub mod applications;
pub mod approvals;
pub mod cluster_changes;
pub mod clusters;
pub mod creation;
pub mod deeds;
pub mod events;
pub mod extras;
pub mod filter;
pub mod following;
pub mod generation;
pub mod information;
pub mod logs;
pub mod operations;
pub mod project_changes;
mod project_faults;
pub mod projects;
pub mod reaching;
mod registering;
pub mod repositories;
pub mod resources;
pub mod revisions;
pub mod rollouts;
pub mod sessions;
pub mod sets;
pub(crate) mod sign_on;
pub mod trust;
pub mod watching;
pub mod windows;

use std::pin::Pin;

use futures::Stream;
use serde_json::Value;

use crate::error::Error;

/// Answers that come one after the other.
pub type Updates = Pin<Box<dyn Stream<Item = Result<Value, Error>> + Send>>;
