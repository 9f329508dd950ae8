//! What a rollout reads of one version of an Application, and what it makes of it.
//!
//! A [`Sight`] is read as the object comes by, when it is not known yet by which set's rules it is judged; it is gone as
//! soon as a [`Live`] was made of it.

use std::sync::Arc;

use baton_api::application::ApplicationSpec;
use baton_api::application_status::{
    ApplicationCondition, HealthCode, HealthStatus, OperationPhase, SyncCode, SyncStatus,
};
use baton_api::conditions::application as kind;
use baton_api::names::{application, baton};
use baton_api::operation::{Operation, SyncOperation};
use baton_rollout::live::{self, Live};
use baton_rollout::pin::Fingerprint;
use baton_rollout::stamp::Stamp;
use baton_sync::normalize;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use serde_json::Value;

use crate::application_set::{IgnoreRules, comparable};
use crate::cache::version;

/// How Argo CD's words begin when a sync waits for a person.
const AWAITS_APPROVAL: &str = "waiting for pruning confirmation";

/// One version of an Application, as far as an order may depend on it.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
    pub(crate) version: u64,
    pub(crate) spec: Value,
    terminating: bool,
    stamp: Option<Stamp>,
    refresh: bool,
    nonce: Option<Arc<str>>,
    heals_in_order: bool,
    status: RawStatus,
    operation: Option<Operation>,
}

/// The parts of an Application's status that decide something.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RawStatus {
    sync: Option<SyncStatus>,
    health: Option<HealthStatus>,
    operation_state: Option<RawState>,
    conditions: Option<Vec<ApplicationCondition>>,
    history: Option<Vec<RawHistory>>,
    resources: Option<Vec<RawResource>>,
    reconciled_at: Option<Time>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawState {
    operation: Option<Operation>,
    phase: Option<OperationPhase>,
    message: Option<String>,
    sync_result: Option<RawRevisions>,
    finished_at: Option<Time>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawRevisions {
    revision: Option<String>,
    revisions: Option<Vec<String>>,
}

type RawHistory = RawRevisions;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawResource {
    status: Option<SyncCode>,
    hook: Option<bool>,
    requires_pruning: Option<bool>,
    requires_deletion_approval: Option<bool>,
}

// === impl RawStatus ===

impl RawStatus {
    /// Whether it is synced, how it is, and how far its operation is.
    pub(crate) fn verdicts(&self) -> (SyncCode, HealthCode, Option<OperationPhase>) {
        let sync = self.sync.as_ref().map(|sync| sync.status.clone()).unwrap_or_default();
        let health = self.health.as_ref().map(|health| health.status.clone()).unwrap_or_default();
        let phase = self.operation_state.as_ref().map(|state| state.phase.clone().unwrap_or_default());
        (sync, health, phase)
    }

    fn resources(&self) -> impl Iterator<Item = &RawResource> {
        self.resources.iter().flatten()
    }

    /// Whether something differs, and everything that does is only to be pruned.
    fn prune_only(&self) -> bool {
        let mut differing = self
            .resources()
            .filter(|resource| resource.status == Some(SyncCode::OutOfSync) && resource.hook != Some(true));
        let pruned = |resource: &RawResource| resource.requires_pruning == Some(true);
        differing.next().is_some_and(pruned) && differing.all(pruned)
    }

    fn conditions(&self, wanted: &[&str]) -> Option<&ApplicationCondition> {
        let mut all = self.conditions.iter().flatten();
        all.find(|condition| wanted.contains(&condition.kind.as_str()))
    }
}

// === impl RawRevisions ===

impl RawRevisions {
    fn read(&self) -> Vec<Arc<str>> {
        revisions(self.revisions.as_deref().unwrap_or_default(), self.revision.as_deref().unwrap_or_default())
    }
}

// === impl Sight ===

impl Sight {
    /// Takes what counts out of an Application.
    pub(crate) fn new(
        metadata: &ObjectMeta,
        spec: Value,
        status: RawStatus,
        operation: Option<Operation>,
    ) -> Sight {
        let annotation = |name: &str| metadata.annotations.as_ref().and_then(|all| all.get(name));
        Sight {
            name: metadata.name.as_deref().unwrap_or_default().into(),
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            version: version(metadata),
            terminating: metadata.deletion_timestamp.is_some(),
            stamp: annotation(baton::PIN).and_then(|text| text.parse().ok()),
            refresh: annotation(application::REFRESH).is_some(),
            nonce: annotation(application::REFRESH_TIMESTAMP).map(|text| text.as_str().into()),
            heals_in_order: annotation(baton::HEAL).is_some_and(|value| value == "ordered"),
            spec,
            status,
            operation,
        }
    }

    /// What it says, judged by the rules of its set. Whether windows are closed is not in it.
    pub(crate) fn live(&self, ignored: &IgnoreRules) -> Live {
        let spec = ApplicationSpec::deserialize(&self.spec).ok();
        let sync = self.status.sync.as_ref();
        let (code, health, _) = self.status.verdicts();
        let compared = spec.as_ref().zip(sync).is_some_and(|(spec, sync)| {
            normalize::compared_to(spec, &normalize::sources(spec)) == sync.compared_to
        });
        let errors = [kind::INVALID_SPEC_ERROR, kind::COMPARISON_ERROR, kind::UNKNOWN_ERROR];
        let error = self.status.conditions(&errors);
        let print = spec.as_ref().and_then(|spec| comparable(&self.name, spec, ignored).ok());
        Live {
            name: self.name.clone(),
            uid: self.uid.clone(),
            version: self.version,
            terminating: self.terminating,
            stamp: self.stamp.clone(),
            // What cannot be read is like nothing that is wanted.
            spec: print.unwrap_or_else(|| Fingerprint::of(["unreadable", &self.spec.to_string()])),
            automatic: spec.as_ref().is_none_or(ApplicationSpec::auto_syncs),
            compared,
            sync: code,
            prune_only: self.status.prune_only(),
            health,
            reported: sync.map(|sync| revisions(&sync.revisions, &sync.revision)).unwrap_or_default(),
            error: error.map(|found| (found.kind.as_str().into(), found.message.as_str().into())),
            operation: self.operation.as_ref().map(stamp_of),
            last: self.status.operation_state.as_ref().map(|state| self.last(state)),
            deployed: self.status.history.iter().flatten().last().map(RawRevisions::read).unwrap_or_default(),
            refresh: self.refresh,
            nonce: self.nonce.clone(),
            reconciled: self.status.reconciled_at.as_ref().map(|time| time.0.as_second()),
            closed: None,
            heals_in_order: self.heals_in_order,
        }
    }

    fn last(&self, state: &RawState) -> live::Operation {
        let phase = state.phase.clone().unwrap_or_default();
        let message = state.message.as_deref().unwrap_or_default();
        let runs = !phase.is_completed();
        let awaited = self.status.resources().any(|one| one.requires_deletion_approval == Some(true))
            || self.status.conditions(&[kind::DELETION_APPROVAL_REQUIRED_INFO]).is_some()
            || message.starts_with(AWAITS_APPROVAL);
        let finished = state.finished_at.as_ref().map(|time| time.0.as_second());
        let sync = state.operation.as_ref().and_then(|operation| operation.sync.as_ref());
        live::Operation {
            stamp: state.operation.as_ref().and_then(stamp_of),
            full: sync.is_some_and(is_full),
            revisions: state.sync_result.as_ref().map(RawRevisions::read).unwrap_or_default(),
            finished: finished.filter(|_| !runs),
            // An operation that ended and still runs waits for its next attempt.
            retrying: runs && finished.is_some(),
            awaits_approval: runs && awaited,
            message: message.into(),
            phase,
        }
    }
}

/// Whether a sync is of everything and for real.
fn is_full(sync: &SyncOperation) -> bool {
    sync.resources.is_empty() && sync.manifests.is_empty() && !sync.dry_run
}

fn stamp_of(operation: &Operation) -> Option<Stamp> {
    let note = operation.info.iter().find(|info| info.name == baton::PIN)?;
    note.value.parse().ok()
}

fn revisions(several: &[String], one: &str) -> Vec<Arc<str>> {
    match several {
        [] if one.is_empty() => Vec::new(),
        [] => vec![one.into()],
        several => several.iter().map(|revision| revision.as_str().into()).collect(),
    }
}
