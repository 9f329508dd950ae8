//! One Application on its way: what its set and itself say of it.

use baton_api::Application;
use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_api::phase_status::{PhaseApplication, PhaseApplicationState};
use baton_rollout::blocker::Reason;
use baton_rollout::explain::ApplicationStanding;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::board::{Target, TargetState};

/// Letters of a revision that people read.
const SHORT: usize = 7;

/// Tells of an Application, by what the rollout and its phase say of it.
pub(super) fn target(
    application: &Application,
    standing: Option<&ApplicationStanding>,
    phase: Option<&PhaseApplication>,
) -> Target {
    let metadata = &application.metadata;
    let destination = &application.spec.destination;
    let status = &application.status;
    let cluster = if destination.name.is_empty() { &destination.server } else { &destination.name };
    let deleted = metadata.deletion_timestamp.as_ref();
    let state = match deleted {
        Some(_) => TargetState::Deleting,
        None => phase
            .and_then(by_phase)
            .or_else(|| standing.map(by_standing))
            .unwrap_or_else(|| alone(application)),
    };
    let has = current(application);
    let wanted = standing.and_then(|standing| standing.target_revisions.first().cloned());
    let wanted = wanted.filter(|wanted| !wanted.is_empty()).unwrap_or_else(|| status.sync.revision.clone());
    let (has, wanted) = (short(&has), short(&wanted));
    Target {
        name: metadata.name.clone().unwrap_or_default(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        cluster: cluster.clone(),
        health: word(status.health.status.as_str()),
        sync: word(status.sync.status.as_str()),
        since: since(application, standing, phase, deleted),
        from: if has == wanted { String::new() } else { has },
        to: wanted,
        message: message(application, standing, state),
        state,
    }
}

/// The short form of a revision; one that is no commit is told whole.
pub(super) fn short(revision: &str) -> String {
    let is_commit = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_commit { revision[..SHORT].to_owned() } else { revision.to_owned() }
}

/// How many approvals an Application waits for: one, for all that its operation would delete.
pub(super) fn awaits_approval(application: &Application) -> bool {
    application.status.resources.iter().any(|resource| resource.requires_deletion_approval)
}

fn by_phase(phase: &PhaseApplication) -> Option<TargetState> {
    use PhaseApplicationState as P;
    match phase.state {
        P::Held => Some(TargetState::Waiting),
        P::Updating | P::AwaitingApproval | P::RollingBack => Some(TargetState::Progressing),
        P::Healthy | P::Unchanged | P::RolledBack => Some(TargetState::Healthy),
        P::Failed | P::RollbackFailed => Some(TargetState::Failed),
        P::Other(_) => None,
    }
}

fn by_standing(standing: &ApplicationStanding) -> TargetState {
    const FAILURES: [Reason; 5] = [
        Reason::SyncFailed,
        Reason::TooManyFailures,
        Reason::InvalidApplication,
        Reason::SpecRewritten,
        Reason::Degraded,
    ];
    let first = standing.first.as_ref().map(|first| first.reason.as_str());
    match standing.status.as_str() {
        "Healthy" => TargetState::Healthy,
        _ if FAILURES.iter().any(|reason| Some(reason.as_str()) == first) => TargetState::Failed,
        "Pending" => TargetState::Pending,
        "Progressing" => TargetState::Progressing,
        _ => TargetState::Waiting,
    }
}

/// What an Application that nobody orders says of itself.
fn alone(application: &Application) -> TargetState {
    let status = &application.status;
    let phase = status.operation_state.as_ref().map(|state| &state.phase);
    let runs = application.operation.is_some() || phase == Some(&OperationPhase::Running);
    if runs {
        return TargetState::Progressing;
    }
    match (&status.health.status, &status.sync.status) {
        (HealthCode::Degraded, _) => TargetState::Failed,
        (_, SyncCode::OutOfSync) if matches!(phase, Some(OperationPhase::Failed | OperationPhase::Error)) => {
            TargetState::Failed
        }
        (HealthCode::Healthy | HealthCode::Suspended, SyncCode::Synced) => TargetState::Healthy,
        (HealthCode::Progressing, _) => TargetState::Progressing,
        (_, SyncCode::OutOfSync) => TargetState::Pending,
        _ => TargetState::Waiting,
    }
}

fn since(
    application: &Application,
    standing: Option<&ApplicationStanding>,
    phase: Option<&PhaseApplication>,
    deleted: Option<&Time>,
) -> Option<Timestamp> {
    let time = |time: &Time| time.0;
    let phase = phase.and_then(|phase| phase.since.as_ref()).map(time);
    let standing = standing.and_then(|standing| standing.since);
    let health = application.status.health.last_transition_time.as_ref().map(time);
    deleted.map(time).or(phase).or(standing).or(health)
}

fn current(application: &Application) -> String {
    let status = &application.status;
    let last = status.history.last();
    let revision = |one: &str, several: &[String]| match one {
        "" => several.first().cloned().unwrap_or_default(),
        one => one.to_owned(),
    };
    last.map(|last| revision(&last.revision, &last.revisions)).unwrap_or_default()
}

fn message(application: &Application, standing: Option<&ApplicationStanding>, state: TargetState) -> String {
    if state == TargetState::Healthy {
        return String::new();
    }
    let status = &application.status;
    let waits = standing.and_then(|standing| standing.first.as_ref()).map(|first| first.message.as_str());
    let told = standing.map(|standing| standing.message.as_str());
    let operation = status.operation_state.as_ref().filter(|state| state.phase != OperationPhase::Succeeded);
    let texts = [waits, told, operation.map(|state| state.message.as_str()), Some(&*status.health.message)];
    texts.into_iter().flatten().find(|text| !text.is_empty()).unwrap_or_default().to_owned()
}

fn word(text: &str) -> String {
    if text.is_empty() { "Unknown".to_owned() } else { text.to_owned() }
}
