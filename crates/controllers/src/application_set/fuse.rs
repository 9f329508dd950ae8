//! Applications that generators no longer give: whether they may go, and in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::names::baton::{DELETION_APPROVED, DELETION_FUSE};
use baton_api::rollout_status::DeletionStatus;
use baton_rollout::deletion::Order;
use baton_rollout::fuse::{self, Approval, Fuse};
use jiff::Timestamp;
use serde_json::json;

use super::conditions::Standing;
use super::destinations::Destinations;
use super::execute::Executor;
use super::teardown::Teardown;
use super::{Memory, PassError, Reconciler, first, order, seen};
use crate::cache::{ObjectKey, Record, Whole};

/// Where nobody says otherwise, more than half of the Applications are a mass.
const USUAL: Fuse = Fuse::Share(50);

/// What came of making the Applications what they should be.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) standing: Standing,
    /// How far an ordered deletion is.
    pub(crate) deletion: Option<DeletionStatus>,
    pub(crate) wake: Option<Duration>,
    /// Whether Applications that no generator gives are still there.
    pub(crate) leaving: bool,
    /// Whether the set itself was written, and the pass has to be made again.
    pub(crate) interrupted: bool,
}

/// Applications that generators no longer give.
pub(crate) struct Leavers<'a> {
    /// The names they do give.
    pub(crate) wanted: &'a BTreeSet<&'a str>,
    pub(crate) owned: &'a BTreeMap<Arc<str>, Arc<Record>>,
    /// Those of which nothing was deleted yet.
    pub(crate) names: &'a [Arc<str>],
    pub(crate) destinations: &'a Destinations,
}

/// Keeps the progress of a deletion from being written more often than people can read.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Option<(Timestamp, DeletionStatus)>);

impl Reconciler {
    /// Deletes what generators no longer give, as far as the fuse and the order let it go now.
    pub(super) async fn drop_leavers(
        &self,
        executor: &Executor<'_>,
        set: &ApplicationSet,
        memory: &mut Memory,
        leavers: Leavers<'_>,
    ) -> Result<Outcome, String> {
        let order = match order::deletion(set) {
            Ok(order) => order,
            Err(invalid) => {
                let standing = Standing { invalid: Some(invalid.advice()), ..Standing::default() };
                return Ok(Outcome { standing, ..Outcome::default() });
            }
        };
        match self.judged(executor.set, set, &leavers) {
            fuse::Verdict::Free | fuse::Verdict::Begun => memory.fuse_told = None,
            fuse::Verdict::Accepted => {
                let kept = fuse::kept_fingerprint(leavers.wanted.iter().copied());
                self.note_approval(executor.set, set, Some(Approval::Begun(kept))).await?;
                return Ok(Outcome { interrupted: true, ..Outcome::default() });
            }
            fuse::Verdict::Holds => return Ok(self.hold_leavers(executor.set, set, memory, &leavers)),
        }
        if order == Order::AllAtOnce {
            memory.teardown = Teardown::default();
            first(executor.delete(leavers.names, leavers.owned, leavers.destinations).await)?;
            return Ok(Outcome::default());
        }
        // One that is wanted again while it is being deleted has its turn until it is gone.
        let going = |name: &str, deleting: bool| deleting || !leavers.wanted.contains(name);
        if leavers.owned.keys().all(|name| leavers.wanted.contains(&**name)) {
            memory.teardown = Teardown::default();
            return Ok(Outcome::default());
        }
        let report = self
            .tear_down(executor, &mut memory.teardown, &order, Some(&going), leavers.destinations)
            .await
            .map_err(|error| error.to_string())?;
        for stuck in &report.stuck {
            self.warn(set, "ApplicationStuck", stuck.clone());
        }
        if report.done {
            memory.teardown = Teardown::default();
            return Ok(Outcome::default());
        }
        let standing = Standing { deleting: Some(report.condition), ..Standing::default() };
        Ok(Outcome { standing, deletion: Some(report.status), wake: report.wake, ..Outcome::default() })
    }

    /// Takes back an approval that was used.
    pub(super) async fn spend_approval(
        &self,
        key: &ObjectKey,
        set: Whole,
        leaving: bool,
    ) -> Result<Whole, PassError> {
        if leaving || !matches!(approval(&set), Some(Approval::Begun(_))) {
            return Ok(set);
        }
        self.note_approval(key, &set, None).await.map_err(PassError::Applications)?;
        match self.known.sets.lock().get(key) {
            Some(crate::cache::Held::Whole(now)) if now.metadata.uid == set.metadata.uid => Ok(now),
            _ => Err(PassError::Changed),
        }
    }

    fn judged(&self, key: &ObjectKey, set: &ApplicationSet, leavers: &Leavers<'_>) -> fuse::Verdict {
        let fuse = self.fuse_of(key, set);
        let kept = leavers.wanted.iter().copied();
        fuse::verdict(fuse, leavers.owned.len(), &leavers.doomed(), kept, approval(set))
    }

    fn hold_leavers(
        &self,
        key: &ObjectKey,
        set: &ApplicationSet,
        memory: &mut Memory,
        leavers: &Leavers<'_>,
    ) -> Outcome {
        let doomed = leavers.doomed();
        let message = fuse::message(&key.name, leavers.owned.len(), &doomed);
        let print = fuse::fingerprint(&doomed);
        if memory.fuse_told != Some(print) {
            self.warn(set, "DeletionHeld", message.clone());
        }
        memory.fuse_told = Some(print);
        let standing = Standing { held: Some(message), ..Standing::default() };
        Outcome { standing, ..Outcome::default() }
    }

    fn fuse_of(&self, key: &ObjectKey, set: &ApplicationSet) -> Fuse {
        let Some(text) = annotation(set, DELETION_FUSE) else {
            return match fuse::follows_hosts_only(&set.spec) {
                true => Fuse::Off,
                false => self.settings.deletion_fuse,
            };
        };
        text.parse().unwrap_or_else(|error| {
            tracing::warn!(application_set = %key, "annotation {DELETION_FUSE}: {error}");
            // Whoever wrote it wanted one.
            if self.settings.deletion_fuse == Fuse::Off { USUAL } else { self.settings.deletion_fuse }
        })
    }

    async fn note_approval(
        &self,
        key: &ObjectKey,
        set: &ApplicationSet,
        approval: Option<Approval>,
    ) -> Result<(), String> {
        let value = approval.map(|approval| approval.to_string());
        let patch = json!({"metadata": {"annotations": {DELETION_APPROVED: value}}});
        match self.sets(key).patch(&key.name, patch, seen(set)).await {
            Ok(answer) => {
                self.fold_set(key, &answer);
                Ok(())
            }
            Err(error) => Err(self.doubting(key, error, PassError::Update).to_string()),
        }
    }
}

fn annotation<'a>(set: &'a ApplicationSet, name: &str) -> Option<&'a str> {
    set.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn approval(set: &ApplicationSet) -> Option<Approval> {
    annotation(set, DELETION_APPROVED)?.parse().ok()
}

// === impl Leavers ===

impl Leavers<'_> {
    /// Name and uid of each that would be deleted.
    fn doomed(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let uid = |name: &Arc<str>| Some(Arc::from(&*self.owned.get(name)?.uid));
        self.names.iter().filter_map(|name| Some((name.clone(), uid(name)?))).collect()
    }
}

// === impl Outcome ===

impl Outcome {
    /// What the status is to say of an ordered deletion. A rollout writes that part of the status itself.
    pub(crate) fn shown_deletion(&self, rolls: bool) -> Option<Option<&DeletionStatus>> {
        (!rolls).then_some(self.deletion.as_ref())
    }
}

// === impl Throttle ===

impl Throttle {
    /// Whether this is worth a write now: what people wait for at once, the rest once a second. What was written is
    /// remembered here, because the API may not keep it.
    pub(crate) fn may(&mut self, status: &DeletionStatus, now: Timestamp) -> bool {
        let worth = self.0.as_ref().is_none_or(|(last, known)| {
            let news =
                (known.step, &known.blockers, &known.order) != (status.step, &status.blockers, &status.order);
            news || (known != status && now.duration_since(*last).as_secs() >= 1)
        });
        if worth {
            self.0 = Some((now, status.clone()));
        }
        worth
    }
}
