//! What a sync does next, and what an Application's state means: decisions without I/O.
//!
//! Time and observations are arguments; what is to be done goes out as values ([`action`]).

pub mod action;
pub mod app_health;
pub mod approval;
pub mod auto_sync;
pub mod conditions;
pub mod deletion;
pub mod engine;
pub mod history;
pub mod hooks;
pub mod kind_order;
pub mod normalize;
pub mod observation;
pub mod operation;
pub mod options;
pub mod order;
mod plan;
pub mod project;
pub mod refresh;
mod request;
pub mod resource_status;
pub mod retry;
pub mod self_heal;
pub mod targets;
pub mod task;
pub mod tracking;
pub mod wave;
pub mod windows;

pub use engine::{Engine, Next};
pub use observation::{EngineSettings, GateScope, Observation};
pub use targets::Pair;
