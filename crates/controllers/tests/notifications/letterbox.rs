//! A post in memory: what was sent, and what is refused.

use std::collections::VecDeque;
use std::time::Duration;

use baton_notifications::{Doubt, Entry, Failure, Part, Post, ServiceConfig, Wait};
use futures::future::BoxFuture;
use parking_lot::Mutex;

/// One attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) id: String,
    pub(crate) to: String,
    pub(crate) text: String,
    pub(crate) arrived: bool,
}

/// Takes letters.
#[derive(Default)]
pub(crate) struct Letterbox {
    attempts: Mutex<Vec<Letter>>,
    refusals: Mutex<VecDeque<String>>,
    /// A service that takes so long, and then fails.
    slow: Option<(&'static str, Duration)>,
    /// How long every letter takes.
    takes: Duration,
}

impl Letterbox {
    /// Every letter takes so long.
    pub(crate) fn taking(takes: Duration) -> Letterbox {
        Letterbox { takes, ..Letterbox::default() }
    }

    /// Letters to this service take so long, and then fail.
    pub(crate) fn hanging(service: &'static str, takes: Duration) -> Letterbox {
        Letterbox { slow: Some((service, takes)), ..Letterbox::default() }
    }

    /// Refuses the next letters with these words.
    pub(crate) fn refuse(&self, words: &[&str]) {
        self.refusals.lock().extend(words.iter().map(|text| (*text).to_owned()));
    }

    /// All attempts, in their order.
    pub(crate) fn attempts(&self) -> Vec<Letter> {
        self.attempts.lock().clone()
    }

    /// What has arrived, as `service:recipient text`.
    pub(crate) fn arrived(&self) -> Vec<String> {
        let letters = self.attempts();
        letters.iter().filter(|one| one.arrived).map(|one| format!("{} {}", one.to, one.text)).collect()
    }
}

impl Post for Letterbox {
    fn deliver<'a>(
        &'a self,
        _: &'a ServiceConfig,
        entry: &'a Entry,
        _: Doubt,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let failed = |message: &str| Failure { message: message.to_owned(), wait: Wait::Usual };
            if let Some((_, takes)) = self.slow.filter(|(service, _)| *service == entry.service) {
                tokio::time::sleep(takes).await;
                return Err(failed("it took too long"));
            }
            let refusal = self.refusals.lock().pop_front();
            self.attempts.lock().push(Letter {
                id: entry.id.to_string(),
                to: format!("{}:{}", entry.service, entry.recipient),
                text: entry.message.first(&[Part::WebhookBody, Part::Message]).to_owned(),
                arrived: refusal.is_none(),
            });
            // The receiver has it; its answer is on its way.
            tokio::time::sleep(self.takes).await;
            refusal.map_or(Ok(()), |words| Err(failed(&words)))
        })
    }
}
