//! One pass over an object: a look at what the caches show, and if there is something to do, the pass itself on what the
//! API has.

use std::sync::Arc;
use std::time::Duration;

use baton_notifications::{
    About, Config, Ledger, NotStored, Notified, Outbox, Passed, Progress, State, Subject, decide,
    outbox_name, pass,
};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::announce::Announcer;
use super::keeper::{ReadError, Shelf};
use super::known::Known;
use super::metrics::Metrics;
use super::post::Turnstile;
use super::settings::NotificationSettings;

/// Makes passes.
pub(super) struct Reconciler {
    pub(super) client: Client,
    pub(super) settings: Arc<NotificationSettings>,
    pub(super) known: Arc<Known>,
    pub(super) post: Turnstile,
    pub(super) ledger: Ledger,
    pub(super) announcer: Announcer,
    pub(super) metrics: Metrics,
}

/// Why a pass did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the outbox {0}: {1}")]
    Outbox(String, String),
    #[error(transparent)]
    NotStored(#[from] NotStored),
}

// === impl Reconciler ===

impl Reconciler {
    /// Makes one pass, and tells when to look again. Where nothing is to be done, no request is made.
    pub(super) async fn reconcile(&self, about: &About) -> Result<Option<Duration>, PassError> {
        let ended = self.step(about).await;
        if let Err(PassError::Outbox(..) | PassError::Read(ReadError::Unreadable(..) | ReadError::Foreign(_))) =
            &ended
            && let Err(error) = &ended
        {
            self.announcer.problems(about, &[error.to_string()]);
        }
        ended
    }

    async fn step(&self, about: &About) -> Result<Option<Duration>, PassError> {
        let now = self.settings.clock.now();
        let config = self.known.config();
        let held = self.known.subject(about);
        let name = outbox_name(about);
        let stored = self.known.outbox(&name);
        let is_told = held.as_ref().is_some_and(|held| self.known.is_told(held));
        if stored.is_none() && !is_told {
            self.announcer.forget(about);
            return Ok(None);
        }
        let outbox = match stored.as_deref() {
            None => Outbox::default(),
            Some(Ok(outbox)) => outbox.clone(),
            Some(Err(why)) => return Err(PassError::Outbox(name, why.clone())),
        };
        let seen = match &held {
            None => Some(None),
            Some(held) => held.text.as_ref().map(|text| serde_json::from_str::<Value>(text).ok()),
        };
        if let Some(object) = seen
            && let Some(wake) = self.nothing_to_do(about, object.as_ref(), &config, outbox, now)
        {
            return Ok(self.until(wake));
        }
        let passed = self.pass(about, held.is_some(), &config, now).await?;
        Ok(self.until(passed.wake))
    }

    /// Looks at what the caches show. When to look again, if nothing is to be done.
    fn nothing_to_do(
        &self,
        about: &About,
        object: Option<&Value>,
        config: &Config,
        outbox: Outbox,
        now: Timestamp,
    ) -> Option<Option<Timestamp>> {
        let is_at_rest = outbox.entries().iter().all(|entry| entry.progress == Progress::Queued)
            && outbox.next_at().is_none_or(|at| at > now);
        if !is_at_rest {
            return None;
        }
        let notified = object.map(Notified::of).unwrap_or_default();
        let state = State { notified, outbox };
        let project = object.and_then(|object| self.known.project_of(about.kind, object));
        let subject = object.map(|object| Subject { kind: about.kind, object, project: project.as_deref() });
        let decision = decide(subject.as_ref(), config, &state, now);
        if decision.state != state {
            return None;
        }
        self.metrics.count_evaluations(&decision.evaluated);
        if object.is_some() {
            self.announcer.problems(about, &decision.complaints);
        }
        Some([decision.wake, state.outbox.next_at()].into_iter().flatten().min())
    }

    async fn pass(
        &self,
        about: &About,
        is_known: bool,
        config: &Config,
        now: Timestamp,
    ) -> Result<Passed, PassError> {
        let (shelf, read) = Shelf::read(&self.client, &self.settings.namespace, about).await?;
        // Of an object that is not known, for where it lives or since when, nothing new is told.
        let object = read.object.filter(|_| is_known);
        let project = object.as_ref().and_then(|object| self.known.project_of(about.kind, object));
        let subject =
            object.as_ref().map(|object| Subject { kind: about.kind, object, project: project.as_deref() });
        let passing = pass(subject.as_ref(), config, read.state, &shelf, &self.post, &self.ledger, now);
        let passed = passing.await?;
        self.metrics.count_evaluations(&passed.evaluated);
        self.metrics.count_attempts(&passed.attempts, config);
        self.announcer.problems(about, &passed.complaints);
        self.announcer.attempts(about, &passed.attempts);
        Ok(passed)
    }

    fn until(&self, wake: Option<Timestamp>) -> Option<Duration> {
        let left = wake?.duration_since(self.settings.clock.now());
        Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
    }
}
