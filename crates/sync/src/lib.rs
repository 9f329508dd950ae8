//! What a sync does next, and what an Application's state means: decisions without I/O.
//!
//! Time and observations are arguments; what is to be done goes out as values ([`action`]).

pub mod action;
pub mod auto_sync;
pub mod conditions;
pub mod history;
pub mod normalize;
pub mod operation;
pub mod project;
pub mod refresh;
pub mod retry;
pub mod self_heal;
pub mod windows;
