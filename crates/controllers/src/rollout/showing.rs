//! Writing what people may see of a rollout. It decides nothing, and what cannot be written holds nothing up.

use std::time::Duration;

use baton_api::application_set::ApplicationSetCondition;
use baton_api::conditions::application_set::{INVALID_PHASE_CONFIG, ROLLOUT_PROGRESSING};
use jiff::Timestamp;
use serde_json::Value;

use super::board::Offer;
use super::desk::Desk;
use super::reconcile::{PassError, Reconciler};
use super::view;
use crate::application_set::rolls;
use crate::cache::{ObjectKey, Whole};
use crate::objects::{ApiError, Seen};

/// How often it is written anew because the set changed meanwhile.
const VIEW_ATTEMPTS: usize = 3;

impl Reconciler {
    /// Writes what people may see, if it is time. Tells when it will be. That it cannot be written holds nothing up.
    pub(super) async fn shown(&self, key: &ObjectKey, desk: &mut Desk, offer: &Offer) -> Option<Duration> {
        self.show(key, desk, offer).await.unwrap_or_else(|error| {
            tracing::warn!(application_set = %key, %error, "the status does not show the rollout as it is");
            Some(desk.view.refused())
        })
    }

    pub(super) async fn show(
        &self,
        key: &ObjectKey,
        desk: &mut Desk,
        offer: &Offer,
    ) -> Result<Option<Duration>, ApiError> {
        if let Some(rest) = desk.view.rests() {
            return Ok(Some(rest));
        }
        for _ in 0..VIEW_ATTEMPTS {
            let Some(set) = self.set(key) else { return Ok(None) };
            if set.metadata.uid.as_deref() != Some(&*offer.wanted.set) {
                return Ok(None);
            }
            let now = self.settings.clock.now_in_seconds();
            let shown = view::shown(&desk.machine, &set, offer.generation, &desk.phasing.notices, now);
            let plan = desk.view.plan(&shown, &set, now);
            let Some(patch) = plan.patch else { return Ok(plan.wait) };
            if !self.write_view(key, &set, patch).await? {
                desk.view.unwritten();
                continue;
            }
            self.metrics.views.inc();
            if let Some(set) = self.set(key) {
                desk.view.written(&shown, &set);
            }
            return Ok(plan.wait);
        }
        Ok(Some(Duration::from_secs(1)))
    }

    /// Tells in the status what keeps the rollout from going on.
    pub(super) async fn show_trouble(&self, key: &ObjectKey, error: &str, since: Timestamp) {
        let Some(set) = self.set(key).filter(|set| rolls(set, &self.settings)) else { return };
        let sent = self.desks.lock().get(key).and_then(|desk| desk.view.sent().cloned());
        let now = self.settings.clock.now_in_seconds();
        let Some(patch) = view::troubled(&set, sent.as_ref(), error, since, now) else { return };
        if let Err(error) = self.write_view(key, &set, patch).await {
            tracing::warn!(application_set = %key, %error, "the status does not show what is wrong");
        }
    }

    /// Patches the status of a set. False if the set has changed meanwhile, which is then known.
    async fn write_view(&self, key: &ObjectKey, set: &Whole, patch: Value) -> Result<bool, ApiError> {
        let seen = Seen {
            uid: set.metadata.uid.as_deref().unwrap_or_default(),
            version: set.metadata.resource_version.as_deref(),
        };
        match self.sets(key).patch_status(&key.name, patch, seen).await {
            Ok(answer) => {
                self.known.sets.lock().fold_raw(key, &answer);
                self.told(key, set);
                let verdicts = verdicts(&set.status.conditions);
                if self.set(key).is_some_and(|set| self::verdicts(&set.status.conditions) != verdicts) {
                    // The health of the set follows from it, and is not ours to write.
                    self.generation.add(key.clone());
                }
                Ok(true)
            }
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) if error.is_conflict() => {
                if let Some(raw) = self.sets(key).get(&key.name).await? {
                    self.learn_set(key, &raw);
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Measures what has ended with what was just written, and traces it where somebody wants to know.
    fn told(&self, key: &ObjectKey, before: &Whole) {
        let Some(after) = self.set(key) else { return };
        let (now, traces) = (self.settings.clock.now_in_seconds(), &self.settings.traces);
        self.metrics.courses.observe(key, before, &after, now);
        if traces.are_wanted() {
            traces.send(baton_traces::run::ended(before, &after, now));
        }
    }

    /// Takes what is left of a rollout out of the status of a set that has none.
    pub(super) async fn clear_view(&self, key: &ObjectKey) -> Result<(), PassError> {
        for _ in 0..VIEW_ATTEMPTS {
            let Some(set) = self.set(key) else { return Ok(()) };
            let goes = set.metadata.deletion_timestamp.is_some();
            if goes || rolls(&set, &self.settings) || !view::has_remains(&set) {
                return Ok(());
            }
            if self.write_view(key, &set, view::cleared(&set)).await.map_err(PassError::View)? {
                return Ok(());
            }
        }
        Err(PassError::Restless)
    }
}

/// What the conditions say about the rollout.
fn verdicts(conditions: &[ApplicationSetCondition]) -> [Option<(&str, &str)>; 2] {
    [ROLLOUT_PROGRESSING, INVALID_PHASE_CONFIG].map(|kind| {
        let condition = conditions.iter().find(|condition| condition.kind == kind)?;
        Some((condition.status.as_str(), condition.message.as_str()))
    })
}
