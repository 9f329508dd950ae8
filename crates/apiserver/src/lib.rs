//! An embedded Kubernetes-compatible API: for try-out and tests, never for production state.
//!
//! It speaks the wire protocol that `kubectl`, kube-rs and client-go speak, behind TLS on a port ([`serve`]) or in
//! process as a tower service ([`Cluster::service`]). Every write is linearised in one revision history
//! ([`Cluster::store`]), which tests read as the truth.

mod auth;
mod authorization;
mod catalog;
mod clock;
mod cluster;
mod collections;
mod decode;
mod definitions;
mod delete;
mod discovery;
mod evictions;
mod failure;
mod housekeeping;
mod logs;
mod object;
mod objects;
mod openapi;
mod read;
mod request;
mod rest;
mod reviews;
mod seed;
mod serve;
mod service;
mod service_ips;
mod table;
mod tokens;
mod watch;
mod write;

pub use auth::{Secret, User};
pub use authorization::Authorization;
pub use baton_store as store;
pub use baton_workloads::Settings as WorkloadSettings;
pub use clock::Clock;
pub use cluster::{Cluster, OpenError, Options};
pub use rest::Body;
pub use seed::Rejected;
pub use serve::{Credentials, ServeError, Server, serve, serve_with, write_private};
pub use service::ClusterService;
