//! Parameters of ApplicationSets: list, clusters, git, matrix, merge, pull requests and the rest.
//!
//! [`Generators::generate`] turns the generators of a set into groups of parameter sets, each with the template it is
//! to be rendered with. What lies outside is asked for through three doors only: a [`World`] (the Kubernetes API, a
//! cache of it, or files), git repositories (`baton-source`) and source code hosts (`baton-scm`); plugins are called
//! over HTTP.
//!
//! # Guarantees
//! All or nothing: an error of any generator, or of anything it reads, fails the whole. Nothing is ever left out
//! because it could not be read, so no Application is deleted for it.
//!
//! The result depends on what was read only: clusters are in the order of their names, merged sets in the order of
//! their keys. Within one call a revision is resolved once and cluster Secrets are listed once.
//!
//! Credentials never become parameters: of a cluster Secret only name, server, project, labels and annotations are
//! read, and not the annotation in which kubectl keeps a copy of the whole Secret.

mod budget;
mod clusters;
mod combine;
mod decision;
mod error;
#[cfg(test)]
mod faults;
mod flat;
mod generate;
mod git;
mod hosts;
mod kind;
mod list;
mod matrix;
mod merge;
pub mod offline;
mod outside;
mod pass;
mod plugin;
mod reads;
mod requeue;
mod selector;
mod settings;
mod slug;
mod values;
mod world;

pub use error::GeneratorError;
pub use flat::flatten;
pub use generate::{Generated, Generators, Group};
pub use kind::kinds;
pub use reads::Reads;
pub use settings::{Limits, Settings};
pub use world::{ClusterSecret, ResourceChoice, SecretData, World, demands_signatures};
