//! Whether an Application is synced without being asked for.

use std::time::Duration;

use baton_api::application::{Application, AutomatedSync, RetryStrategy};
use baton_api::application_status::{OperationPhase, ResourceStatus, SyncCode, SyncStatus};
use baton_api::operation::{Operation, OperationInitiator, SyncOperation, SyncOperationResource};
use jiff::Timestamp;

use crate::conditions::{Finding, SYNC_ERROR};
use crate::normalize::{has_several_sources, sources};
use crate::retry::AUTOMATIC_LIMIT;
use crate::self_heal::SelfHealSettings;
use crate::windows::Verdict;

/// What a decision on automatic sync is made of, all of one comparison.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// The Application as it was read before the comparison.
    pub application: &'a Application,
    /// What the comparison found.
    pub sync: &'a SyncStatus,
    /// What it found of each resource.
    pub resources: &'a [ResourceStatus],
    /// Whether the project's windows allow an automatic sync.
    pub windows: &'a Verdict<'a>,
    /// Whether revisions other than the synced ones may render something else. False where the paths that count are
    /// known and did not change.
    pub revisions_may_differ: bool,
    /// Pauses of self-heal.
    pub self_heal: &'a SelfHealSettings,
    /// The time.
    pub now: Timestamp,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The operation to write, where one is to start: only onto the version of the Application that was read.
    pub start: Option<Box<Operation>>,
    /// Why, for the log; where one starts, the text of the event.
    pub reason: String,
    /// What the decision is worth as conditions of its type; `None` leaves those there are.
    pub conditions: Option<Vec<Finding>>,
    /// When to compare again with the latest revisions, if nothing else happens.
    pub look_again: Option<Duration>,
}

/// Decides, in Argo CD's order.
pub fn decide(observation: &Observation<'_>) -> Decision {
    if !observation.windows.allowed {
        let opens = observation.windows.changes_at;
        let wait = opens.and_then(|opens| Duration::try_from(opens.duration_since(observation.now)).ok());
        return Decision { conditions: None, look_again: wait, ..skip("sync prevented by sync window") };
    }
    let application = observation.application;
    let policy = application.spec.sync_policy.as_ref();
    let automated = policy.and_then(|policy| policy.automated.as_ref());
    let Some(automated) = automated.filter(|automated| automated.enabled != Some(false)) else {
        return skip("automatic sync is off");
    };
    let last = application.status.operation_state.as_ref();
    let running = last.is_some_and(|last| !last.phase.is_completed());
    if application.operation.is_some() || running {
        return skip("another operation is in progress");
    }
    if application.metadata.deletion_timestamp.is_some() {
        return skip("deletion in progress");
    }
    if observation.sync.status != SyncCode::OutOfSync {
        return skip(&format!("application status is {}", observation.sync.status));
    }
    let prune = automated.prune == Some(true);
    let needs_apply = |row: &ResourceStatus| row.status != SyncCode::Synced && !row.requires_pruning;
    if !prune && !observation.resources.iter().any(needs_apply) {
        return skip("need to prune extra resources only but automated prune is disabled");
    }
    let mut operation = operation(observation, prune);
    let desired = desired_revisions(observation);
    if let Some(attempt) = last_attempt(observation, &desired) {
        match heal(observation, automated, &attempt, &desired) {
            Ok((attempts, resources)) => {
                let sync = operation.sync.get_or_insert_default();
                (sync.self_heal_attempts_count, sync.resources) = (attempts, resources);
            }
            Err(decision) => return decision,
        }
    }
    if prune
        && automated.allow_empty != Some(true)
        && observation.resources.iter().all(|row| row.requires_pruning)
    {
        let desired = listed(&desired);
        let message = format!("Skipping sync attempt to {desired}: auto-sync will wipe out all resources");
        return refuse(message);
    }
    Decision {
        reason: format!("Initiated automated sync to '{}'", desired.join(", ")),
        start: Some(Box::new(operation)),
        conditions: Some(Vec::new()),
        look_again: None,
    }
}

/// The last operation, where it was for the same revisions and sources.
struct Attempt {
    revisions: Vec<String>,
    phase: OperationPhase,
    message: String,
}

fn last_attempt(observation: &Observation<'_>, desired: &[String]) -> Option<Attempt> {
    let application = observation.application;
    let state = application.status.operation_state.as_ref()?;
    let attempt = |revisions: Vec<String>| Attempt {
        revisions,
        phase: state.phase.clone(),
        message: state.message.clone(),
    };
    let Some(result) = &state.sync_result else {
        // It ended before anything was rendered, and its retries are used up: trying again would not end.
        return Some(attempt(Vec::new()));
    };
    let several = has_several_sources(&application.spec);
    let revisions = if several { result.revisions.clone() } else { vec![result.revision.clone()] };
    if observation.revisions_may_differ && revisions != desired {
        return None;
    }
    let same_sources = if several {
        application.spec.sources == result.sources
    } else {
        sources(&application.spec).first() == Some(&result.source)
    };
    same_sources.then(|| attempt(revisions))
}

/// Whether drift is repaired now: the count of attempts and the resources of the sync, or else what to do instead.
fn heal(
    observation: &Observation<'_>,
    automated: &AutomatedSync,
    attempt: &Attempt,
    desired: &[String],
) -> Result<(i64, Vec<SyncOperationResource>), Decision> {
    if attempt.phase != OperationPhase::Succeeded {
        let (revisions, message) = (listed(&attempt.revisions), &attempt.message);
        return Err(refuse(format!("Failed last sync attempt to {revisions}: {message}")));
    }
    if automated.self_heal != Some(true) {
        return Err(skip(&format!("most recent sync already to {}", listed(desired))));
    }
    let last = observation.application.status.operation_state.as_ref();
    let sync = last.and_then(|last| last.operation.sync.as_ref());
    let attempts = sync.map_or(0, |sync| sync.self_heal_attempts_count);
    let ended = last.and_then(|last| last.finished_at.as_ref()).map(|time| time.0);
    let remaining = observation.self_heal.remaining(attempts, ended, observation.now);
    if !remaining.is_zero() {
        let reason = format!("already attempted sync to {}, waiting to heal", listed(&attempt.revisions));
        return Err(Decision { look_again: Some(remaining), ..skip(&reason) });
    }
    // Rows without a status are hooks and the like, which no self-heal touches.
    let drifted =
        observation.resources.iter().filter(|row| row.status != SyncCode::Synced && !row.status.is_unset());
    let resources = drifted.map(|row| SyncOperationResource {
        kind: row.kind.clone(),
        name: row.name.clone(),
        group: row.group.clone(),
        namespace: String::new(),
    });
    Ok((attempts.saturating_add(1), resources.collect()))
}

fn operation(observation: &Observation<'_>, prune: bool) -> Operation {
    let spec = &observation.application.spec;
    let policy = spec.sync_policy.as_ref();
    let several = has_several_sources(spec);
    let sync = SyncOperation {
        revision: observation.sync.revision.clone(),
        revisions: observation.sync.revisions.clone(),
        prune,
        source: if several { None } else { sources(spec).first().cloned() },
        sources: if several { spec.sources.clone() } else { Vec::new() },
        sync_options: policy.map(|policy| policy.sync_options.clone()).unwrap_or_default(),
        ..SyncOperation::default()
    };
    let default = || RetryStrategy { limit: AUTOMATIC_LIMIT, ..RetryStrategy::default() };
    Operation {
        sync: Some(sync),
        initiated_by: OperationInitiator { username: String::new(), automated: true },
        info: Vec::new(),
        retry: policy.and_then(|policy| policy.retry.clone()).unwrap_or_else(default),
    }
}

fn desired_revisions(observation: &Observation<'_>) -> Vec<String> {
    match has_several_sources(&observation.application.spec) {
        true => observation.sync.revisions.clone(),
        false => vec![observation.sync.revision.clone()],
    }
}

/// A list as Go prints it.
fn listed(revisions: &[String]) -> String {
    format!("[{}]", revisions.join(" "))
}

fn skip(reason: &str) -> Decision {
    Decision {
        start: None,
        reason: format!("Skipping auto-sync: {reason}"),
        conditions: Some(Vec::new()),
        look_again: None,
    }
}

fn refuse(message: String) -> Decision {
    Decision {
        start: None,
        conditions: Some(vec![Finding::new(SYNC_ERROR, message.clone())]),
        reason: message,
        look_again: None,
    }
}

#[cfg(test)]
mod tests;
