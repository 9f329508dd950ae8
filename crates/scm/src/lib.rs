//! Repositories, branches and pull requests of source code hosts.
//!
//! [`Hosts`] answers what the scmProvider and pullRequest generators ask. An answer is whole or it is an
//! error: a page that fails, a body that ends early, a list that does not end and a rate limit all fail the
//! call, because what is missing from an answer is deleted by those who act on it.
//!
//! Nothing here knows the cluster: Secrets and ConfigMaps come through [`Lookup`].

mod azure;
mod bitbucket_cloud;
mod bitbucket_server;
mod doors;
mod error;
mod filters;
mod gitea;
mod github;
mod github_app;
mod gitlab;
mod hosts;
mod http;
mod lookup;
mod metrics;
mod names;
mod provider;
mod secret;
mod settings;

pub use error::{Kind, ScmError};
pub use github_app::GithubApp;
pub use hosts::Hosts;
pub use lookup::{Lookup, SecretObject};
pub use metrics::{DURATION_BUCKETS, Durations, GithubCalls, RateLimit};
pub use provider::{PullRequest, Repository};
pub use secret::Secret;
pub use settings::{Proxy, Settings};
