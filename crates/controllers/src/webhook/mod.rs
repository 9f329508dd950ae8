//! Webhooks of source code hosts: what they say ([`parse`]), whom it concerns ([`Event::touches`]), and the endpoint
//! that takes them in ([`webhooks`]).
//!
//! GitHub, GitLab, Azure DevOps, Bitbucket Cloud and Server, Gitea and Gogs are understood. A host whose secret is set
//! must prove that it knows it; one whose secret is not set is believed, as in Argo CD: all a webhook can do is make an
//! ApplicationSet look again.

mod event;
mod payload;
mod secrets;
mod server;
mod signature;
mod touches;
mod url;

pub use event::{Event, Provider, PullRequest, Push, PushedRef, WebhookError, parse};
pub use secrets::WebhookSecrets;
pub use server::{Candidate, Deployed, Refresh, Settings, Work, webhooks};
pub use url::RepositoryUrl;
