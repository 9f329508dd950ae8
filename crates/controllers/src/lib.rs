//! Reconcilers: what watches and writes Kubernetes.

mod application;
mod application_set;
mod cache;
pub mod client;
mod clock;
mod controller;
pub mod digest;
mod environment;
mod events;
mod guarded;
mod leader;
mod leading;
mod metrics;
mod namespaces;
mod notifications;
mod objects;
mod phases;
pub mod queue;
mod rollout;
mod settings;
pub mod webhook;

pub use application::{ApplicationController, ApplicationSettings, Timing};
pub use application_set::{IgnoreError, IgnoreRules};
pub use baton_rollout::fuse::Fuse;
pub use cache::ObjectKey;
pub use clock::Clock;
pub use controller::{Controller, PassFailed, RunError, run};
pub use environment::switch;
pub use leader::LeaseTimes;
pub use metrics::{SharedRegistry, observability};
pub use namespaces::{AllowedNamespaces, PatternError};
pub use notifications::{NotificationController, NotificationSettings};
pub use phases::{Caller, HookCaller, Prepared, What};
pub use settings::{HookSettings, Policy, Settings, SettingsError};
