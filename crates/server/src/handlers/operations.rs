//! Operations of Applications, which the controller carries out: syncs, rollbacks, and their end.

use baton_api::Application;
use baton_api::application::{Info, RetryStrategy};
use baton_api::application_status::OperationPhase;
use baton_api::operation::{
    Operation, OperationInitiator, SyncOperation, SyncOperationResource, SyncStrategy, SyncStrategyApply,
};
use baton_sync::windows;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::applications::{ATTEMPTS, Found, Named, busy, deed};
use crate::error::{Code, Error};
use crate::objects::{APPLICATIONS, text};
use crate::server::{Context, Server, plain};

/// A request to sync.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncRequest {
    /// To this revision instead of the one the Application names.
    pub revision: String,
    /// To these, one per source.
    pub revisions: Option<Vec<String>>,
    /// Which sources the revisions are of, counted from 1.
    pub source_positions: Option<Vec<i64>>,
    /// Only show what would happen.
    pub dry_run: bool,
    /// Delete what is no longer in the source.
    pub prune: bool,
    /// Whether hooks run.
    pub strategy: Option<SyncStrategy>,
    /// Only these resources.
    pub resources: Option<Vec<SyncOperationResource>>,
    /// Manifests instead of a source.
    pub manifests: Option<Vec<String>>,
    /// Notes.
    pub infos: Option<Vec<Info>>,
    /// Retries after failure.
    pub retry_strategy: Option<RetryStrategy>,
    /// Options of this sync instead of the Application's.
    pub sync_options: Option<SyncOptions>,
    /// Namespace of the Application, as in the query.
    pub app_namespace: String,
    /// Its project, as in the query.
    pub project: String,
}

/// Options of a sync.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyncOptions {
    /// The options.
    pub items: Option<Vec<String>>,
}

/// A request to go back.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RollbackRequest {
    /// To this entry of the history; to the one before the last where none is named.
    pub id: Option<i64>,
    /// Only show what would happen.
    pub dry_run: bool,
    /// Delete what was not there then.
    pub prune: bool,
    /// Namespace of the Application, as in the query.
    pub app_namespace: String,
    /// Its project, as in the query.
    pub project: String,
}

impl Server {
    /// Starts a sync.
    ///
    /// # Errors
    /// The caller may not, a window is closed, or something else runs.
    pub async fn sync(&self, context: &Context, at: &Named, request: SyncRequest) -> Result<Value, Error> {
        let manifests = request.manifests.as_ref().is_some_and(|manifests| !manifests.is_empty());
        self.start(context, at, "sync", "sync", |server, found| {
            if manifests {
                server.demand(context, "applications", "override", &found.object)?;
            }
            let project = context.configuration.projects.get(found.typed.spec.project.as_str());
            let windows = project.map(|project| project.spec.sync_windows.as_slice()).unwrap_or_default();
            let verdict = windows::judge_operation(windows, &found.typed, false, None, server.now());
            if !verdict.allowed {
                let why = verdict.error.unwrap_or_else(|| "blocked by sync window".to_owned());
                return Err(Error::new(Code::PermissionDenied, format!("cannot sync: {why}")));
            }
            operation(&found.typed, &request, &context.caller.username)
        })
        .await
    }

    /// Starts a sync of what was deployed before.
    ///
    /// # Errors
    /// The caller may not, or there is nothing to go back to.
    pub async fn rollback(
        &self,
        context: &Context,
        at: &Named,
        request: RollbackRequest,
    ) -> Result<Value, Error> {
        self.start(context, at, "rollback", "sync", |_, found| {
            back(&found.typed, &request, &context.caller.username)
        })
        .await
    }

    /// Ends the operation that runs.
    ///
    /// # Errors
    /// The caller may not, or none runs.
    pub async fn terminate(&self, context: &Context, at: &Named) -> Result<Value, Error> {
        for _ in 0..ATTEMPTS {
            let found = self.find(context, at, "sync").await?;
            let phase = found.typed.status.operation_state.as_ref().map(|state| &state.phase);
            if found.typed.operation.is_none() || phase.is_none_or(OperationPhase::is_completed) {
                return Err(Error::invalid("Unable to terminate operation. No operation is in progress"));
            }
            let result = self.end_operation(&found.raw).await;
            if matches!(&result, Err(error) if error.code == Code::Aborted) {
                continue;
            }
            return self.audited(context, deed("terminate", "OperationTerminated", &found), result).await;
        }
        Err(busy(&at.name))
    }

    pub(crate) async fn end_operation(&self, raw: &Value) -> Result<Value, Error> {
        let patch = json!({
            "metadata": {"resourceVersion": text(raw, "/metadata/resourceVersion")},
            "status": {"operationState": {"phase": OperationPhase::Terminating.as_str()}},
        });
        let applications = self.objects(APPLICATIONS, text(raw, "/metadata/namespace"));
        applications.merge(text(raw, "/metadata/name"), &patch).await.map(|_| json!({}))
    }

    async fn start(
        &self,
        context: &Context,
        at: &Named,
        verb: &'static str,
        right: &str,
        operation: impl Fn(&Server, &Found) -> Result<Operation, Error>,
    ) -> Result<Value, Error> {
        for _ in 0..ATTEMPTS {
            let found = self.find(context, at, right).await?;
            let record = deed(verb, "OperationStarted", &found);
            let result = self.begin(&found, operation(self, &found)).await;
            if matches!(&result, Err(error) if error.code == Code::Aborted) {
                continue;
            }
            return self.audited(context, record, result.map(plain)).await;
        }
        Err(busy(&at.name))
    }

    /// Writes an operation into an Application that has none.
    async fn begin(&self, found: &Found, operation: Result<Operation, Error>) -> Result<Value, Error> {
        if found.typed.metadata.deletion_timestamp.is_some() {
            return Err(Error::precondition("application is deleting"));
        }
        let operation = operation?;
        if found.typed.operation.is_some() {
            return Err(Error::precondition("another operation is already in progress"));
        }
        // The state of an operation before must not be taken for this one's.
        let patch = json!({
            "metadata": {"resourceVersion": text(&found.raw, "/metadata/resourceVersion")},
            "operation": operation,
            "status": {"operationState": Value::Null},
        });
        let applications = self.objects(APPLICATIONS, text(&found.raw, "/metadata/namespace"));
        applications.merge(text(&found.raw, "/metadata/name"), &patch).await
    }
}

fn operation(application: &Application, request: &SyncRequest, username: &str) -> Result<Operation, Error> {
    let sources = application.spec.sources.len();
    let given = request.revisions.clone().unwrap_or_default();
    let revisions = match (sources, request.source_positions.as_deref().unwrap_or_default()) {
        (0, _) => Vec::new(),
        (sources, []) if !given.is_empty() && given.len() != sources => {
            return Err(Error::invalid(format!(
                "the Application has {sources} sources: give a revision for each"
            )));
        }
        (_, []) => given,
        (_, positions) if positions.len() != given.len() => {
            return Err(Error::invalid("give as many revisions as sourcePositions"));
        }
        (sources, positions) => {
            let mut all: Vec<String> =
                application.spec.sources.iter().map(|source| source.target_revision.clone()).collect();
            for (position, revision) in positions.iter().zip(given) {
                let place = usize::try_from(*position).ok().and_then(|place| place.checked_sub(1));
                let place = place.filter(|place| *place < sources);
                let place = place.ok_or_else(|| Error::invalid(format!("there is no source {position}")))?;
                all[place] = revision;
            }
            all
        }
    };
    let target = application.spec.source.as_ref().map_or("", |source| source.target_revision.as_str());
    if application.spec.auto_syncs() && !request.dry_run {
        let other = |asked: &str, set: &str| !asked.is_empty() && asked != set;
        if sources == 0 && other(&request.revision, target) {
            let message = format!("Cannot sync to {}: auto-sync currently set to {target}", request.revision);
            return Err(Error::precondition(message));
        }
        let specs = application.spec.sources.iter();
        if revisions.iter().zip(specs).any(|(asked, source)| other(asked, &source.target_revision)) {
            return Err(Error::precondition("Cannot sync to other revisions: auto-sync is on"));
        }
    }
    let policy = application.spec.sync_policy.as_ref();
    let own = policy.map(|policy| policy.sync_options.clone()).unwrap_or_default();
    let sync = SyncOperation {
        revision: if sources == 0 { request.revision.clone() } else { String::new() },
        revisions,
        prune: request.prune,
        dry_run: request.dry_run,
        sync_strategy: request.strategy.clone(),
        resources: request.resources.clone().unwrap_or_default(),
        manifests: request.manifests.clone().unwrap_or_default(),
        sync_options: request.sync_options.clone().and_then(|options| options.items).unwrap_or(own),
        ..SyncOperation::default()
    };
    let retry = request.retry_strategy.clone().or_else(|| policy.and_then(|policy| policy.retry.clone()));
    Ok(Operation {
        sync: Some(sync),
        initiated_by: OperationInitiator { username: username.to_owned(), automated: false },
        info: request.infos.clone().unwrap_or_default(),
        retry: retry.unwrap_or_default(),
    })
}

fn back(application: &Application, request: &RollbackRequest, username: &str) -> Result<Operation, Error> {
    if application.spec.auto_syncs() {
        return Err(Error::precondition("rollback cannot be initiated when auto-sync is enabled"));
    }
    let history = &application.status.history;
    let entry = match request.id {
        None => history.iter().rev().nth(1),
        Some(id) => history.iter().find(|entry| entry.id == id),
    };
    let entry = entry.ok_or_else(|| match request.id {
        None => Error::invalid("there is no deployment before the last to go back to"),
        Some(id) => Error::invalid(format!("application does not have deployment with id {id}")),
    })?;
    let options = application.spec.sync_policy.as_ref().map(|policy| policy.sync_options.clone());
    let sync = SyncOperation {
        revision: entry.revision.clone(),
        revisions: entry.revisions.clone(),
        prune: request.prune,
        dry_run: request.dry_run,
        sync_strategy: Some(SyncStrategy { apply: Some(SyncStrategyApply::default()), hook: None }),
        source: entry.sources.is_empty().then(|| entry.source.clone()),
        sources: entry.sources.clone(),
        sync_options: options.unwrap_or_default(),
        ..SyncOperation::default()
    };
    Ok(Operation {
        sync: Some(sync),
        initiated_by: OperationInitiator { username: username.to_owned(), automated: false },
        ..Operation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(spec: Value) -> Application {
        serde_json::from_value(json!({"spec": spec})).expect("an Application")
    }

    #[test]
    fn a_sync_says_what_was_asked_for() {
        let spec = json!({"source": {"repoURL": "r", "targetRevision": "main"}, "syncPolicy": {"syncOptions": ["A=b"]}});
        let request = SyncRequest { revision: "v1".to_owned(), prune: true, ..SyncRequest::default() };
        let asked = operation(&application(spec), &request, "alice").expect("an operation");
        let sync = asked.sync.expect("a sync");
        assert_eq!(
            (sync.revision.as_str(), sync.prune, sync.sync_options),
            ("v1", true, vec!["A=b".to_owned()])
        );
        assert_eq!(asked.initiated_by.username, "alice");
    }

    #[test]
    fn another_revision_is_not_synced_while_auto_sync_would_take_it_back() {
        let spec = json!({"source": {"targetRevision": "main"}, "syncPolicy": {"automated": {}}});
        let to = |revision: &str| {
            let request = SyncRequest { revision: revision.to_owned(), ..SyncRequest::default() };
            operation(&application(spec.clone()), &request, "").map(drop)
        };
        assert_eq!(to("main"), Ok(()));
        assert!(to("v1").is_err_and(|error| error.code == Code::FailedPrecondition));
    }

    #[test]
    fn what_is_gone_back_to_is_named_by_its_number_which_may_be_0() {
        let mut deployed = application(json!({"source": {"targetRevision": "main"}}));
        let entry =
            |id: i64| json!({"id": id, "revision": format!("c{id}"), "deployedAt": "2026-01-01T00:00:00Z"});
        deployed.status.history =
            serde_json::from_value(json!([entry(0), entry(1), entry(2)])).expect("a history");
        let to = |application: &Application, id: Option<i64>| {
            let request = RollbackRequest { id, ..RollbackRequest::default() };
            back(application, &request, "").map(|asked| asked.sync.unwrap_or_default().revision)
        };
        assert_eq!(to(&deployed, Some(0)), Ok("c0".to_owned()));
        assert_eq!(to(&deployed, Some(2)), Ok("c2".to_owned()));
        assert_eq!(to(&deployed, None), Ok("c1".to_owned()), "the one before the last");
        assert!(to(&deployed, Some(3)).is_err());
        deployed.status.history.truncate(1);
        assert_eq!(to(&deployed, Some(0)), Ok("c0".to_owned()));
        assert!(to(&deployed, None).is_err());
    }

    #[test]
    fn revisions_are_given_by_their_sources() {
        let spec = json!({"sources": [{"targetRevision": "a"}, {"targetRevision": "b"}]});
        let with = |revisions: &[&str], positions: &[i64]| {
            let request = SyncRequest {
                revisions: Some(revisions.iter().map(|text| (*text).to_owned()).collect()),
                source_positions: Some(positions.to_vec()),
                ..SyncRequest::default()
            };
            operation(&application(spec.clone()), &request, "")
                .map(|asked| asked.sync.unwrap_or_default().revisions)
        };
        assert_eq!(with(&["x"], &[2]), Ok(vec!["a".to_owned(), "x".to_owned()]));
        assert_eq!(with(&["x", "y"], &[]), Ok(vec!["x".to_owned(), "y".to_owned()]));
        assert!(with(&["x"], &[3]).is_err() && with(&["x"], &[0]).is_err() && with(&["x"], &[-1]).is_err());
        assert!(with(&["x"], &[]).is_err() && with(&["x", "y"], &[1]).is_err());
    }
}
