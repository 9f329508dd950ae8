//! Member clusters: connections, live state and writes.
//!
//! [`Clusters`] knows which there are; a [`Cluster`] shows its objects as its watches see them ([`Cluster::managed`],
//! [`Cluster::get`], [`Cluster::tree`]) and does to it what a sync decided ([`Cluster::perform`]).
//!
//! # Guarantees
//! - What one cluster does, or fails to do, is felt by its own Applications only.
//! - No state is shown that is older than an own completed write.
//! - Every request is bounded in time and in the size of its answer.
//! - No secret is printed or told in an error.

mod access;
mod catalog;
mod children;
mod cluster;
mod clusters;
mod connect;
mod destinations;
mod error;
mod exclusions;
mod exec;
mod gone;
mod jitter;
mod keeper;
mod live;
mod page;
mod paths;
mod perform;
mod requests;
mod settings;
mod shared;
mod sweep;
mod watch;

pub use access::{BrokenCluster, ClusterAccess, ClusterConfig, ExecConfig, TlsConfig};
pub use cluster::Cluster;
pub use clusters::Clusters;
pub use connect::{Connect, OverNetwork};
pub use destinations::Destinations;
pub use error::{ClusterError, PredictError};
pub use exclusions::Exclusions;
pub use live::Node;
pub use settings::{HealthOf, InstanceOf, Settings};
pub use shared::{Changed, ChangedKind, Connection};
