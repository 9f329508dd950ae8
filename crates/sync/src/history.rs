//! What was deployed when, and the way back to it.

use baton_api::application::Application;
use baton_api::application_status::{OperationPhase, OperationState, RevisionHistory};
use baton_api::operation::{Operation, OperationInitiator, SyncOperation};
use baton_api::source::Source;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How many entries are kept where the spec says nothing.
pub const DEFAULT_LIMIT: usize = 10;

/// Why an Application cannot go back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RollbackError {
    /// Auto-sync would undo it.
    #[error("rollback cannot be initiated when auto-sync is enabled")]
    AutoSync,
    /// There is no such entry.
    #[error("application {name} does not have deployment with id {id}")]
    NoEntry {
        /// The Application.
        name: String,
        /// The entry asked for.
        id: i64,
    },
    /// The entry does not say what was deployed.
    #[error("history entry {id} of application {name} names no source")]
    NoSource {
        /// The Application.
        name: String,
        /// The entry asked for.
        id: i64,
    },
}

/// The history after an operation: one entry more where a full sync succeeded for real, `None` where it stays.
///
/// A dry run, a sync of chosen resources and one that did not succeed are no deployment.
pub fn after(
    application: &Application,
    state: &OperationState,
    now: Timestamp,
) -> Option<Vec<RevisionHistory>> {
    let sync = state.operation.sync.as_ref()?;
    let result = state.sync_result.as_ref()?;
    if state.phase != OperationPhase::Succeeded || sync.dry_run || !sync.resources.is_empty() {
        return None;
    }
    let mut history = application.status.history.clone();
    let mut entry = RevisionHistory {
        id: history.last().map_or(0, |last| last.id.saturating_add(1)),
        deployed_at: Some(Time(now)),
        deploy_started_at: state.started_at.clone(),
        initiated_by: state.operation.initiated_by.clone(),
        ..RevisionHistory::default()
    };
    if result.sources.is_empty() {
        entry.source = result.source.clone();
        entry.revision = result.revision.clone();
    } else {
        entry.sources = result.sources.clone();
        entry.revisions = result.revisions.clone();
    }
    history.push(entry);
    let limit = application.spec.revision_history_limit;
    let limit = limit.map_or(DEFAULT_LIMIT, |limit| usize::try_from(limit).unwrap_or(0));
    history.drain(..history.len().saturating_sub(limit));
    Some(history)
}

/// The operation that brings back what a history entry deployed.
///
/// # Errors
/// An Application that syncs by itself, and an entry that is not there or names no source.
pub fn rollback(
    application: &Application,
    id: i64,
    prune: bool,
    dry_run: bool,
    initiated_by: OperationInitiator,
) -> Result<Operation, RollbackError> {
    let name = || application.metadata.name.clone().unwrap_or_default();
    if application.spec.auto_syncs() {
        return Err(RollbackError::AutoSync);
    }
    let entry = application.status.history.iter().find(|entry| entry.id == id);
    let entry = entry.ok_or_else(|| RollbackError::NoEntry { name: name(), id })?;
    if entry.sources.is_empty() && entry.source == Source::default() {
        return Err(RollbackError::NoSource { name: name(), id });
    }
    let policy = application.spec.sync_policy.as_ref();
    let sync = SyncOperation {
        revision: entry.revision.clone(),
        revisions: entry.revisions.clone(),
        source: entry.sources.is_empty().then(|| entry.source.clone()),
        sources: entry.sources.clone(),
        prune,
        dry_run,
        sync_options: policy.map(|policy| policy.sync_options.clone()).unwrap_or_default(),
        ..SyncOperation::default()
    };
    Ok(Operation { sync: Some(sync), initiated_by, ..Operation::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn application(history: serde_json::Value) -> Application {
        serde_json::from_value(json!({"metadata": {"name": "web"}, "status": {"history": history}}))
            .expect("an Application")
    }

    fn state(operation: serde_json::Value) -> OperationState {
        serde_json::from_value(json!({
            "operation": operation,
            "phase": "Succeeded",
            "startedAt": "2026-01-01T00:00:00Z",
            "syncResult": {"revision": "abc", "source": {"repoURL": "r", "path": "p"}},
        }))
        .expect("a state")
    }

    fn now() -> Timestamp {
        "2026-01-01T00:01:00Z".parse().expect("a time")
    }

    #[test]
    fn a_full_sync_that_succeeded_is_recorded() {
        let operation = json!({"sync": {}, "initiatedBy": {"username": "jane"}});
        let history = after(&application(json!([{"id": 6, "deployedAt": null}])), &state(operation), now());
        let last = history.expect("an entry").pop().expect("an entry");
        assert_eq!((last.id, last.revision.as_str()), (7, "abc"));
        assert_eq!(last.initiated_by.username, "jane");
        assert_eq!(last.source.path, "p");
        assert_eq!(last.deployed_at, Some(Time(now())));
        let first = after(&application(json!([])), &state(json!({"sync": {}})), now()).expect("an entry");
        assert_eq!(first[0].id, 0);
    }

    #[test]
    fn what_is_no_deployment_is_not_recorded() {
        let app = application(json!([]));
        for operation in [
            json!({"sync": {"dryRun": true}}),
            json!({"sync": {"resources": [{"kind": "Pod", "name": "x"}]}}),
            json!({}),
        ] {
            assert_eq!(after(&app, &state(operation.clone()), now()), None, "{operation}");
        }
        let mut failed = state(json!({"sync": {}}));
        failed.phase = OperationPhase::Failed;
        assert_eq!(after(&app, &failed, now()), None);
    }

    #[test]
    fn the_oldest_entries_go() {
        let entries: Vec<_> = (0..12).map(|id| json!({"id": id, "deployedAt": null})).collect();
        for (limit, expected) in [(None, (3..=12).collect::<Vec<i64>>()), (Some(1), vec![12])] {
            let mut app = application(json!(entries));
            app.spec.revision_history_limit = limit;
            let history = after(&app, &state(json!({"sync": {}})), now()).expect("an entry");
            assert_eq!(history.iter().map(|entry| entry.id).collect::<Vec<_>>(), expected);
        }
        for none in [0, -3] {
            let mut app = application(json!(entries));
            app.spec.revision_history_limit = Some(none);
            assert_eq!(after(&app, &state(json!({"sync": {}})), now()), Some(Vec::new()));
        }
    }

    #[test]
    fn several_sources_are_recorded_as_such() {
        let mut state = state(json!({"sync": {}}));
        let result = state.sync_result.as_mut().expect("a result");
        result.sources = vec![Source::default(), Source::default()];
        result.revisions = vec!["a".into(), "b".into()];
        let entry = after(&application(json!([])), &state, now()).expect("an entry").remove(0);
        assert_eq!(entry.revisions, ["a", "b"]);
        assert_eq!((entry.sources.len(), entry.source), (2, Source::default()));
    }

    #[test]
    fn a_rollback_deploys_what_an_entry_says() {
        let mut app = application(json!([
            {"id": 3, "deployedAt": null, "revision": "abc", "source": {"repoURL": "r", "path": "p"}},
            {"id": 4, "deployedAt": null, "revision": "abc"},
        ]));
        let who = OperationInitiator { username: "jane".into(), automated: false };
        let operation = rollback(&app, 3, true, false, who.clone()).expect("an operation");
        let sync = operation.sync.expect("a sync");
        assert_eq!((sync.revision.as_str(), sync.prune), ("abc", true));
        assert_eq!(sync.source.expect("a source").path, "p");
        let error = |app: &Application, id| {
            rollback(app, id, false, false, who.clone()).expect_err("no rollback").to_string()
        };
        assert_eq!(error(&app, 9), "application web does not have deployment with id 9");
        assert_eq!(error(&app, 4), "history entry 4 of application web names no source");
        app.spec = serde_json::from_value(json!({"syncPolicy": {"automated": {}}})).expect("a spec");
        assert_eq!(error(&app, 3), "rollback cannot be initiated when auto-sync is enabled");
    }
}
