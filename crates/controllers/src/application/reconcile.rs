//! One pass over one Application: its operation, its deletion, its comparison.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_clusters::{Cluster, Clusters};
use baton_manifests::Manifests;
use baton_sync::refresh::{self, Level, Refresh, RefreshSettings};
use baton_sync::tracking::instance_name;
use futures::FutureExt;
use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;

use super::announce::Announcer;
use super::asks::Asks;
use super::known::Known;
use super::memory::Memory;
use super::metrics::Metrics;
use super::settings::{ApplicationSettings, Timing};
use super::write::{Writer, is_doubtful, is_known};
use crate::cache::ObjectKey;
use crate::objects::ApiError;

/// What passes are made with.
pub(super) struct Parts {
    pub(super) client: Client,
    pub(super) settings: Arc<ApplicationSettings>,
    pub(super) known: Arc<Known>,
    pub(super) asks: Arc<Asks>,
    pub(super) clusters: Clusters,
    pub(super) manifests: Manifests,
    pub(super) announcer: Announcer,
    pub(super) metrics: Metrics,
}

/// Makes passes.
pub(super) struct Reconciler {
    pub(super) settings: Arc<ApplicationSettings>,
    pub(super) known: Arc<Known>,
    pub(super) asks: Arc<Asks>,
    pub(super) clusters: Clusters,
    pub(super) manifests: Manifests,
    pub(super) announcer: Announcer,
    pub(super) metrics: Metrics,
    pub(super) writer: Writer,
    memories: Mutex<BTreeMap<ObjectKey, Arc<Mutex<Memory>>>>,
}

/// What kept a pass from its end; it is worth another try.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    #[error("the Application could not be read: {0}")]
    Read(#[source] ApiError),
    #[error("the Application could not be written: {0}")]
    Write(#[source] ApiError),
}

impl PassError {
    /// Whether somebody else was faster, which is nothing to worry about.
    pub(super) fn is_overtaken(&self) -> bool {
        matches!(self, PassError::Write(error) if error.is_conflict())
    }
}

/// What a part of a pass leaves behind.
pub(super) struct Left {
    /// The Application as it is now; none if it is gone.
    pub(super) application: Option<Arc<Application>>,
    /// When to look again although nothing happened.
    pub(super) look_again: Option<Duration>,
}

impl Reconciler {
    pub(super) fn new(parts: Parts) -> Reconciler {
        let Parts { client, settings, known, asks, clusters, manifests, announcer, metrics } = parts;
        let writer = Writer::new(client, known.clone());
        let memories = Mutex::default();
        Reconciler { settings, known, asks, clusters, manifests, announcer, metrics, writer, memories }
    }

    /// Makes one pass and tells when it wants the next.
    pub(super) async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, PassError> {
        if !is_known(&self.known, key) {
            return Ok(None);
        }
        let mut application = match is_doubtful(&self.known, key) {
            true => self.writer.read(key).await.map_err(PassError::Read)?,
            false => self.known.application(key),
        };
        if application.as_deref().is_some_and(|application| self.is_skipped(application)) {
            return Ok(None);
        }
        let mut look_again = None;
        if application.as_deref().is_some_and(is_operating) {
            let left = self.operate(key).boxed().await?;
            (application, look_again) = (left.application, sooner(look_again, left.look_again));
        }
        let is_going = |application: &Application| application.metadata.deletion_timestamp.is_some();
        if application.as_deref().is_some_and(is_going) {
            let left = self.delete(key).boxed().await?;
            (application, look_again) = (left.application, sooner(look_again, left.look_again));
        }
        let Some(application) = application else { return Ok(None) };
        let operating = is_operating(&application);
        let left = self.refresh_if_needed(key, application).await?;
        // What this pass has begun is gone on with by the next: its own writes wake nobody.
        let begun = !operating && left.application.as_deref().is_some_and(is_operating);
        Ok(sooner(sooner(look_again, left.look_again), begun.then_some(Duration::ZERO)))
    }

    async fn refresh_if_needed(
        &self,
        key: &ObjectKey,
        application: Arc<Application>,
    ) -> Result<Left, PassError> {
        let asked = self.asks.take(key);
        let now = self.now();
        let periods = periods(&self.known.config().timing);
        let memory = self.memory(key);
        let needed = {
            let memory = memory.lock();
            let seen = as_compared(&application, &memory);
            let hard = refresh::hard_due(&seen, memory.compared_hard, &periods).is_some_and(|due| due <= now);
            let needed = refresh::needed(&seen, asked, &periods, now);
            needed.map(|needed| match hard {
                true => Refresh { level: needed.level.max(Level::Latest), hard: true, ..needed },
                false => needed,
            })
        };
        let mut left = Left { application: Some(application.clone()), look_again: None };
        let tried = needed.is_some();
        if let Some(needed) = needed {
            tracing::debug!(application = %key, reason = needed.reason, level = ?needed.level, "comparing");
            left = match self.refresh(key, &application, &needed).boxed().await {
                Ok(left) => left,
                Err(error) => {
                    // What was asked for has not been answered.
                    self.asks.keep(key, needed.level);
                    return Err(error);
                }
            };
        }
        if let Some(application) = &left.application {
            let now = self.now();
            // A comparison that was just tried and is still due has failed; when it is tried again was said.
            let due = refresh::due(&as_compared(application, &memory.lock()), &periods);
            let due = due.filter(|due| !tried || *due > now);
            left.look_again = sooner(left.look_again, due.map(|due| until(due, now)));
        }
        Ok(left)
    }

    /// An Application is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.memories.lock().remove(key);
        let instance = self.instance(key);
        for cluster in self.clusters.all() {
            cluster.forget(&instance);
        }
    }

    pub(super) fn memory(&self, key: &ObjectKey) -> Arc<Mutex<Memory>> {
        self.memories.lock().entry(key.clone()).or_default().clone()
    }

    /// The Application, as it is written on objects.
    pub(super) fn instance(&self, key: &ObjectKey) -> String {
        instance_name(&key.namespace, &key.name, &self.settings.namespace)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// Whether the Application, or everything of its cluster, is to be left alone.
    fn is_skipped(&self, application: &Application) -> bool {
        let of_cluster = |cluster: Arc<Cluster>| cluster.access().skip_reconcile;
        refresh::is_skipped(application)
            || self.clusters.resolve(&application.spec.destination).is_ok_and(of_cluster)
    }
}

/// Whether an operation is asked for or has not ended.
fn is_operating(application: &Application) -> bool {
    let state = application.status.operation_state.as_ref();
    application.operation.is_some() || state.is_some_and(|state| !state.phase.is_completed())
}

/// The Application with the time of its last comparison. That time is not written to the API each time, for it would
/// be the only thing to write.
fn as_compared(application: &Application, memory: &Memory) -> Application {
    let mut application = application.clone();
    if let Some(compared) = memory.compared {
        application.status.reconciled_at =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(compared));
    }
    application
}

fn periods(timing: &Timing) -> RefreshSettings {
    RefreshSettings { soft: timing.reconciliation, hard: timing.hard_reconciliation, jitter: timing.jitter }
}

/// The sooner of two times to look again.
pub(super) fn sooner(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// How long until then; a moment at least, so that no rounding makes a circle.
pub(super) fn until(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default().max(Duration::from_millis(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_somebody_was_faster_with_is_nothing_to_worry_about() {
        let refused = |code: u16, reason: &str| ApiError::Refused {
            code,
            reason: reason.to_owned(),
            message: String::new(),
        };
        assert!(PassError::Write(refused(409, "Conflict")).is_overtaken());
        for worth_telling in [
            PassError::Write(refused(409, "AlreadyExists")),
            PassError::Write(refused(403, "Forbidden")),
            PassError::Write(ApiError::NoAnswer(String::new())),
            PassError::Read(refused(409, "Conflict")),
        ] {
            assert!(!worth_telling.is_overtaken(), "{worth_telling:?}");
        }
    }
}
