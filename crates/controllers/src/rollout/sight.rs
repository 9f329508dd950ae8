//! What a rollout reads of one version of an Application, and what it makes of it.
//!
//! A [`Sight`] is read as the object comes by, when it is not known yet by which set's rules it is judged; it is gone as
//! soon as a [`Live`] was made of it.

use std::sync::Arc;

use baton_api::application::ApplicationSpec;
use baton_api::application_status::{
    ApplicationCondition, HealthCode, HealthStatus, OperationPhase, ResultCode, SyncCode, SyncStatus,
};
use baton_api::conditions::application as kind;
use baton_api::names::{application, baton};
use baton_api::operation::{Operation, SyncOperation};
use baton_rollout::live::{self, Live};
use baton_rollout::pin::Fingerprint;
use baton_rollout::stamp::Stamp;
use baton_rollout::trouble;
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
    /// The request whose answer is known to be in its status.
    compared: Option<Arc<str>>,
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
    sync_result: Option<RawResult>,
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
#[serde(default)]
struct RawResult {
    revision: Option<String>,
    revisions: Option<Vec<String>>,
    resources: Option<Vec<RawOutcome>>,
}

/// What an operation did to one resource.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawOutcome {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    status: Option<ResultCode>,
    hook_phase: Option<OperationPhase>,
    message: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawResource {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    health: Option<HealthStatus>,
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

    /// Which resource makes it unhealthy.
    fn ailing(&self) -> Option<String> {
        let whole = self.health.as_ref()?;
        let resources = self.resources().filter_map(|one| {
            let health = one.health.as_ref()?;
            Some((&health.status, named((&one.kind, &one.namespace, &one.name), &health.message)))
        });
        trouble::of_health((&whole.status, &whole.message), resources)
    }

    /// The condition of the first of these kinds that there is.
    fn conditions(&self, wanted: &[&str]) -> Option<&ApplicationCondition> {
        let of = |kind: &&str| self.conditions.iter().flatten().find(|condition| condition.kind == **kind);
        wanted.iter().find_map(of)
    }
}

// === impl RawRevisions ===

impl RawRevisions {
    fn read(&self) -> Vec<Arc<str>> {
        revisions(self.revisions.as_deref().unwrap_or_default(), self.revision.as_deref().unwrap_or_default())
    }
}

// === impl RawResult ===

impl RawResult {
    fn read(&self) -> Vec<Arc<str>> {
        revisions(self.revisions.as_deref().unwrap_or_default(), self.revision.as_deref().unwrap_or_default())
    }
}

// === impl RawState ===

impl RawState {
    /// What is said of it, with the resource that failed.
    fn said(&self) -> String {
        let outcomes = self.sync_result.iter().flat_map(|result| result.resources.iter().flatten());
        let failed = outcomes.filter(|one| one.has_failed()).map(|one| {
            let message = one.message.as_deref().unwrap_or_default();
            named((&one.kind, &one.namespace, &one.name), message)
        });
        trouble::of_operation(self.message.as_deref().unwrap_or_default(), failed)
    }
}

// === impl RawOutcome ===

impl RawOutcome {
    fn has_failed(&self) -> bool {
        self.status == Some(ResultCode::SyncFailed)
            || matches!(self.hook_phase, Some(OperationPhase::Failed | OperationPhase::Error))
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
            compared: annotation(baton::COMPARED).map(|text| text.as_str().into()),
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
        let stamp = self.mark();
        let asked = stamp.as_ref().map(Stamp::nonce);
        let print = spec.as_ref().and_then(|spec| comparable(&self.name, spec, ignored).ok());
        Live {
            name: self.name.clone(),
            uid: self.uid.clone(),
            version: self.version,
            terminating: self.terminating,
            answered: asked.is_some_and(|asked| self.compared.as_deref() == Some(&asked)),
            stamp,
            // What cannot be read is like nothing that is wanted.
            spec: print.unwrap_or_else(|| Fingerprint::of(["unreadable", &self.spec.to_string()])),
            automatic: spec.as_ref().is_none_or(ApplicationSpec::auto_syncs),
            compared,
            sync: code,
            prune_only: self.status.prune_only(),
            health,
            ailing: self.status.ailing().map(Into::into),
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

    /// The mark of the last write of a rollout. A controller that does not know it may have taken it away; the one that
    /// an operation was begun with is left then, and tells that this write has landed.
    fn mark(&self) -> Option<Stamp> {
        let begun = self.status.operation_state.as_ref().and_then(|state| state.operation.as_ref());
        let of_operations = [self.operation.as_ref(), begun].into_iter().flatten().find_map(stamp_of);
        self.stamp.clone().or(of_operations)
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
            revisions: state.sync_result.as_ref().map(RawResult::read).unwrap_or_default(),
            finished: finished.filter(|_| !runs),
            // An operation that ended and still runs waits for its next attempt.
            retrying: runs && finished.is_some(),
            awaits_approval: runs && awaited,
            message: state.said().into(),
            phase,
        }
    }
}

/// A resource, by kind, namespace and name, and what is said of it.
fn named<'a>(
    (kind, namespace, name): (&'a Option<String>, &'a Option<String>, &'a Option<String>),
    message: &'a str,
) -> trouble::Resource<'a> {
    let text = |part: &'a Option<String>| part.as_deref().unwrap_or_default();
    trouble::Resource { kind: text(kind), namespace: text(namespace), name: text(name), message }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mark_that_was_taken_away_is_read_off_the_operation_it_came_with() {
        let mark = |run: u64| Stamp { set: "uid".into(), run, n: 7, pin: Fingerprint::of(["pin"]) };
        let operation = |run: u64| json!({"info": [{"name": baton::PIN, "value": mark(run).to_string()}]});
        let status = json!({"operationState": {"phase": "Running", "operation": operation(1)}});
        let seen = |annotated: Option<Stamp>, operation: Option<Value>| {
            let annotations = annotated.map(|mark| [(baton::PIN.to_owned(), mark.to_string())].into());
            let metadata = ObjectMeta { annotations, ..ObjectMeta::default() };
            let status = serde_json::from_value(status.clone()).expect("a status");
            let operation =
                operation.map(|operation| serde_json::from_value(operation).expect("an operation"));
            Sight::new(&metadata, json!({}), status, operation).live(&IgnoreRules::default()).stamp
        };
        assert_eq!(seen(Some(mark(3)), Some(operation(2))), Some(mark(3)));
        assert_eq!(seen(None, Some(operation(2))), Some(mark(2)), "what is to be begun is newer");
        assert_eq!(seen(None, None), Some(mark(1)));
    }

    #[test]
    fn what_is_wrong_names_the_resource_and_what_it_says() {
        let object = |kind: &str, name: &str, more: Value| {
            let mut object = json!({"version": "v1", "kind": kind, "namespace": "web", "name": name});
            object.as_object_mut().zip(more.as_object()).into_iter().for_each(|(object, more)| {
                object.extend(more.clone());
            });
            object
        };
        let status = json!({
            "health": {"status": "Progressing", "message": "Caused by apps/Deployment:web/b"},
            "resources": [
                object("Service", "a", json!({"status": "Synced", "health": {"status": "Healthy"}})),
                object("Deployment", "b", json!({"health": {"status": "Progressing", "message": "1 of 2 are up"}})),
            ],
            "operationState": {"phase": "Running", "message": "one or more objects failed to apply", "syncResult": {
                "revision": "c0ffee", "resources": [
                    object("Service", "a", json!({"status": "Synced", "message": "created"})),
                    object("Deployment", "b", json!({"status": "SyncFailed", "message": "is forbidden"})),
                ],
            }},
        });
        let status: RawStatus = serde_json::from_value(status).expect("a status");
        let live = Sight::new(&ObjectMeta::default(), json!({}), status, None).live(&IgnoreRules::default());
        assert_eq!(live.ailing.as_deref(), Some("Deployment web/b: 1 of 2 are up"));
        let last = live.last.expect("an operation");
        assert_eq!(&*last.message, "Deployment web/b: is forbidden (one or more objects failed to apply)");
        assert_eq!(last.revisions, ["c0ffee".into()]);
    }
}
