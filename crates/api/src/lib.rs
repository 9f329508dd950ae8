//! Application, ApplicationSet and AppProject (`argoproj.io/v1alpha1`): their types, the names they use, their CRDs, and
//! a way to change objects without losing what this version does not know.
//!
//! Types follow Go's reading of JSON: an absent field, `null` and the zero value are one and the same unless the field
//! is an `Option`. No I/O, no clock.

mod wire;

pub mod application;
pub mod application_set;
pub mod application_status;
pub mod conditions;
pub mod crd;
pub mod edit;
pub mod generators;
pub mod health;
pub mod names;
pub mod object;
pub mod operation;
pub mod phase_status;
pub mod phases;
pub mod project;
pub mod pull_request;
pub mod rollout_status;
pub mod scm;
pub mod source;
pub mod strategy;
mod structural;
pub mod verbs;

pub use application::{Application, ApplicationSpec};
pub use application_set::{ApplicationSet, ApplicationSetSpec};
pub use crd::crds;
pub use project::{AppProject, AppProjectSpec};
