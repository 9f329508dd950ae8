//! Services: the one place that sends.
//!
//! # Guarantees
//! - A delivery ends within [`TIMEOUT`]; then nothing of it is left: no connection, no task.
//! - At most [`MOST_READ`] bytes of an answer are read.
//! - Certificates are verified unless the configuration says otherwise.
//! - Every attempt carries the delivery's id: `Idempotency-Key` over HTTP, `Message-ID` in an e-mail, metadata of a
//!   message in Slack.
//! - No text of a failure holds a URL's path, a header, a body or a credential.

mod call;
mod email;
mod slack;
mod smtp;
mod teams;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use baton_hooks::{Connector, Redactor, Secret};
use futures::future::BoxFuture;

use crate::config::{ServiceConfig, ServiceKind};
use crate::outbox::{Entry, Wait};

/// How long one delivery may take, all in all.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of an answer that are read.
pub const MOST_READ: usize = 256 << 10;

/// Makes deliveries.
pub trait Post: Send + Sync {
    /// Makes one attempt at a delivery.
    fn deliver<'a>(
        &'a self,
        service: &'a ServiceConfig,
        entry: &'a Entry,
        doubt: Doubt,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Whether a delivery to the service of this name can be begun now. Where it cannot, nothing is tried: what is
    /// queued stays as it is, and is looked at again a little later.
    fn has_room(&self, _service: &str) -> bool {
        true
    }
}

/// Whether an earlier attempt may have arrived without anybody knowing. Where the service can be asked, it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// There was none.
    None,
    /// There may have been one.
    MayHaveArrived,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What went wrong.
    pub message: String,
    /// When to try again.
    pub wait: Wait,
}

/// Makes deliveries over the network. Where they may go is the connector's word: services are configured by the
/// operator, so it is usually one that admits every address.
#[derive(Debug, Clone)]
pub struct Carrier {
    connector: Arc<Connector>,
}

// === impl Failure ===

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), wait: Wait::Usual }
    }

    /// One that only a change of the configuration, or of the receiver, can help.
    pub(crate) fn lasting(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), wait: Wait::Longest }
    }
}

// === impl Carrier ===

impl Carrier {
    /// A carrier that goes where the connector goes.
    pub fn new(connector: Arc<Connector>) -> Carrier {
        Carrier { connector }
    }

    async fn attempt(&self, service: &ServiceConfig, entry: &Entry, doubt: Doubt) -> Result<(), Failure> {
        match &service.kind {
            ServiceKind::Webhook(config) => webhook::deliver(&self.connector, config, entry).await,
            ServiceKind::Slack(config) => slack::deliver(&self.connector, config, entry, doubt).await,
            ServiceKind::Email(config) => email::deliver(&self.connector, config, entry).await,
            ServiceKind::Teams(config) => teams::deliver(&self.connector, config, entry).await,
        }
    }
}

impl Post for Carrier {
    fn deliver<'a>(
        &'a self,
        service: &'a ServiceConfig,
        entry: &'a Entry,
        doubt: Doubt,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let attempt = tokio::time::timeout(TIMEOUT, self.attempt(service, entry, doubt));
            let result =
                attempt.await.unwrap_or_else(|_| Err(Failure::new(format!("took longer than {TIMEOUT:?}"))));
            // The last look before a text leaves: messages quote receivers, libraries and the system.
            result
                .map_err(|failure| Failure { message: redactor(service).redact(&failure.message), ..failure })
        })
    }
}

/// Knows what a service is configured with that nobody may see.
fn redactor(service: &ServiceConfig) -> Redactor {
    let secrets: Vec<&Secret> = match &service.kind {
        ServiceKind::Webhook(config) => {
            let auth = config.basic_auth.iter().flat_map(|(user, password)| [user, password]);
            auth.chain(config.headers.iter().map(|(_, value)| value)).chain([&config.url]).collect()
        }
        ServiceKind::Slack(config) => vec![&config.token],
        ServiceKind::Email(config) => {
            config.credentials.iter().flat_map(|(user, password)| [user, password]).collect()
        }
        ServiceKind::Teams(config) => config.urls.values().collect(),
    };
    Redactor::new(secrets.into_iter().map(Secret::expose))
}
