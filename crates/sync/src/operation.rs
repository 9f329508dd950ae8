//! The life of an operation around the passes of the engine: begin, wait, retry, terminate, time out, end.
//!
//! One pass: [`step`] says whether there is anything to run and with which state. Then [`hold`] asks the sync windows,
//! [`request`] says what to render, [`pin`] records what it resolved to, and [`refusal`] looks at what the comparison
//! found. What the engine then says goes through [`ended`] or [`goes_on`]. Each [`Write`] belongs onto the version of
//! the Application that was read; where that has changed, [`rebase`] says what is left to be written.

use std::time::Duration;

use baton_api::application::Application;
use baton_api::application_status::{
    ApplicationCondition, OperationPhase, OperationState, RevisionHistory, SyncOperationResult,
};
use baton_api::names::application::DELETION_APPROVED;
use baton_api::operation::Operation;
use baton_api::project::SyncWindow;
use baton_api::source::Source;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::approval;
use crate::conditions::{self, STOPS_OPERATION};
use crate::history;
use crate::normalize::{has_several_sources, sources};
use crate::refresh::Level;
use crate::retry;
use crate::windows;

/// How operations are minded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationSettings {
    /// How long one may run before it is terminated.
    pub timeout: Option<Duration>,
    /// Longest time until a running one is looked at again.
    pub backstop: Duration,
}

impl Default for OperationSettings {
    fn default() -> OperationSettings {
        OperationSettings { timeout: None, backstop: Duration::from_secs(30) }
    }
}

/// What a pass over an operation begins with.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing is asked for and nothing runs.
    None,
    /// Run a pass with this state.
    Run {
        /// The state.
        state: Box<OperationState>,
        /// Whether it is to be written first.
        changed: bool,
    },
    /// It failed and waits to be tried again.
    Wait {
        /// Until when.
        until: Timestamp,
    },
    /// It ends without running.
    End(Box<Write>),
}

/// What to write of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The operation's state.
    pub state: OperationState,
    /// What goes with it if it ended.
    pub completion: Option<Completion>,
    /// When to look again if nothing else happens.
    pub look_again: Option<Timestamp>,
}

/// What goes with the end of an operation, in the same write.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Whether `.operation` is cleared. One that was put in its place meanwhile stays, and runs next.
    pub clears_operation: bool,
    /// The new history, where there is one.
    pub history: Option<Vec<RevisionHistory>>,
    /// The comparison to make next.
    pub refresh: Option<Level>,
    /// Text of the event `OperationCompleted`.
    pub event: String,
}

/// What an operation renders.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The sources.
    pub sources: Vec<Source>,
    /// The revision of each; empty is what its `targetRevision` resolves to.
    pub revisions: Vec<String>,
    /// Whether revisions are reported as a list.
    pub several: bool,
}

/// Why an operation cannot be terminated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Unable to terminate operation. No operation is in progress")]
pub struct NothingRuns;

const TERMINATING: &str = "operation is terminating";
const TIMED_OUT: &str = "operation is terminating due to timeout";
const WITHDRAWN: &str = "operation is terminating because it was withdrawn";
const BLOCKED: &str = "Sync operation blocked by sync window";

/// What to do about the operation of an Application.
pub fn step(application: &Application, settings: &OperationSettings, now: Timestamp) -> Step {
    let state = application.status.operation_state.as_ref();
    match (state.filter(|state| !state.phase.is_completed()), &application.operation) {
        (Some(state), operation) => resume(state, operation.is_some(), application, settings, now),
        (None, Some(operation)) => begin(application, operation, now),
        (None, None) => Step::None,
    }
}

fn begin(application: &Application, operation: &Operation, now: Timestamp) -> Step {
    let state = OperationState {
        operation: operation.clone(),
        phase: OperationPhase::Running,
        started_at: Some(Time(start_time(application, now))),
        ..OperationState::default()
    };
    let refused = if operation.sync.is_none() {
        Some("Invalid operation request: no operation specified")
    } else if application.metadata.deletion_timestamp.is_some() {
        Some("Invalid operation request: the application is being deleted")
    } else {
        None
    };
    match refused {
        Some(message) => {
            let state = OperationState { phase: OperationPhase::Error, message: message.to_owned(), ..state };
            Step::End(Box::new(complete(application, state, now)))
        }
        None => Step::Run { state: Box::new(state), changed: true },
    }
}

/// When an operation begins. Hooks and approvals know operations by it, to the second, so no two share one, and none begins in
/// a second in which the one before went on or an approval was given: that approval was not meant for it.
fn start_time(application: &Application, now: Timestamp) -> Timestamp {
    let status = &application.status;
    let state = status.operation_state.as_ref();
    let last = state.and_then(|state| state.started_at.as_ref()).map(|time| time.0);
    let ended = state.and_then(|state| state.finished_at.as_ref()).map(|time| time.0);
    let deployed =
        status.history.last().and_then(|entry| entry.deploy_started_at.as_ref()).map(|time| time.0);
    let annotations = application.metadata.annotations.as_ref();
    let approved = annotations.and_then(|all| all.get(DELETION_APPROVED)?.parse::<Timestamp>().ok());
    // One that lies further ahead is taken back before it can hold for anything.
    let approved = approved.filter(|_| !approval::is_ahead(application, now));
    let earlier = [last, ended, deployed, approved].into_iter().flatten().map(|time| time.as_second());
    // A clock that went back far must not push every start into the future.
    let taken = earlier.filter(|earlier| (0..60).contains(&(earlier - now.as_second()))).max();
    let second = taken.map_or(now.as_second(), |taken| taken + 1);
    Timestamp::from_second(second).unwrap_or(now)
}

fn resume(
    state: &OperationState,
    asked_for: bool,
    application: &Application,
    settings: &OperationSettings,
    now: Timestamp,
) -> Step {
    let terminate = |message: &str| Step::Run {
        state: Box::new(OperationState {
            phase: OperationPhase::Terminating,
            message: message.to_owned(),
            ..state.clone()
        }),
        changed: true,
    };
    if state.phase == OperationPhase::Terminating {
        return Step::Run { state: Box::new(state.clone()), changed: false };
    }
    if !asked_for {
        return terminate(WITHDRAWN);
    }
    if times_out(state, settings).is_some_and(|end| end <= now) {
        return terminate(TIMED_OUT);
    }
    let Some(failed) = &state.finished_at else {
        return Step::Run { state: Box::new(state.clone()), changed: false };
    };
    match retry::due(&state.operation.retry, failed.0, state.retry_count.saturating_sub(1)) {
        Ok(due) if due > now => {
            Step::Wait { until: times_out(state, settings).map_or(due, |timeout| due.min(timeout)) }
        }
        Ok(_) => Step::Run { state: Box::new(retried(state)), changed: true },
        Err(error) => {
            let state =
                OperationState { phase: OperationPhase::Error, message: error.to_string(), ..state.clone() };
            Step::End(Box::new(complete(application, state, now)))
        }
    }
}

/// When an operation has run too long.
fn times_out(state: &OperationState, settings: &OperationSettings) -> Option<Timestamp> {
    let timeout = SignedDuration::try_from(settings.timeout?).unwrap_or(SignedDuration::MAX);
    Some(state.started_at.as_ref()?.0.saturating_add(timeout).unwrap_or(Timestamp::MAX))
}

/// The state in which the next attempt begins. It stays the same operation: `startedAt` and with it approvals hold.
fn retried(state: &OperationState) -> OperationState {
    let mut state = state.clone();
    let mut latest = "";
    if state.operation.retry.refresh
        && let Some(sync) = &mut state.operation.sync
    {
        latest = " with latest revisions";
        sync.revision.clear();
        sync.revisions.clear();
    }
    state.message = format!("Retrying operation{latest}. Attempt #{}", state.retry_count);
    state.finished_at = None;
    state.sync_result = None;
    state
}

/// Whether the sync windows stop this pass: then what to write, and when to look again. Termination is never stopped.
/// (Argo CD stops it too, so that nothing can end a sync while a window is closed.)
pub fn hold(
    application: &Application,
    state: &OperationState,
    windows: &[SyncWindow],
    settings: &OperationSettings,
    now: Timestamp,
) -> Option<Write> {
    if state.phase == OperationPhase::Terminating {
        return None;
    }
    let automated = state.operation.initiated_by.automated;
    let started = state.started_at.as_ref().map(|time| time.0);
    let verdict = windows::judge_operation(windows, application, automated, started, now);
    if verdict.allowed {
        return None;
    }
    let message = match verdict.error {
        Some(error) => format!("{BLOCKED}: {error}"),
        None => BLOCKED.to_owned(),
    };
    let state = OperationState { message, ..state.clone() };
    let look_again = [verdict.changes_at, times_out(&state, settings)].into_iter().flatten().min();
    Some(Write { state, completion: None, look_again })
}

/// What a pass renders: what the first pass resolved, else what the operation asks for, else what the spec says.
///
/// # Errors
/// Revisions that do not fit the sources: guessing could deploy what nobody asked for.
pub fn request(application: &Application, state: &OperationState) -> Result<Request, String> {
    if let Some(result) = &state.sync_result {
        return Ok(match result.sources.is_empty() {
            true => Request {
                sources: vec![result.source.clone()],
                revisions: vec![result.revision.clone()],
                several: false,
            },
            false => Request {
                sources: result.sources.clone(),
                revisions: result.revisions.clone(),
                several: true,
            },
        });
    }
    let sync = state.operation.sync.as_ref().ok_or("Invalid operation request: no operation specified")?;
    let (sources, several) = if !sync.sources.is_empty() {
        (sync.sources.clone(), true)
    } else if let Some(source) = &sync.source {
        (vec![source.clone()], false)
    } else {
        (sources(&application.spec).into_owned(), has_several_sources(&application.spec))
    };
    let given: Vec<String> = match (sync.revisions.is_empty(), sync.revision.is_empty()) {
        (false, _) => sync.revisions.clone(),
        (true, false) => vec![sync.revision.clone()],
        (true, true) => vec![String::new(); sources.len()],
    };
    // One source may be told its revision in either field, but both must say the same.
    let contradicts = !several && !sync.revision.is_empty() && given != [sync.revision.as_str()];
    if given.len() != sources.len() || contradicts {
        let (revisions, count) = (given.len(), sources.len());
        return Err(format!(
            "Invalid operation request: {revisions} revisions are given for {count} sources; give one for each"
        ));
    }
    Ok(Request { sources, revisions: given, several })
}

/// Records what a request resolved to, so that every later pass syncs the same.
pub fn pin(state: &mut OperationState, request: &Request, resolved: &[String]) {
    let result = state.sync_result.get_or_insert_with(SyncOperationResult::default);
    // With a list of sources Argo CD fills in the first one here as well.
    result.source = request.sources.first().cloned().unwrap_or_default();
    if request.several {
        result.sources = request.sources.clone();
        result.revisions = resolved.to_vec();
        result.revision = String::new();
    } else {
        result.sources = Vec::new();
        result.revisions = Vec::new();
        result.revision = resolved.first().cloned().unwrap_or_default();
    }
}

/// Why an operation cannot run at all, by what was found just now: phase and message.
pub fn refusal(found: &[ApplicationCondition]) -> Option<(OperationPhase, String)> {
    let words = conditions::in_words(conditions::of_types(found, &STOPS_OPERATION));
    (!words.is_empty()).then_some((OperationPhase::Error, words))
}

/// What to write after a pass that did not end the operation.
pub fn goes_on(
    mut state: OperationState,
    message: &str,
    settings: &OperationSettings,
    now: Timestamp,
) -> Write {
    // While it terminates the message says why.
    if state.phase != OperationPhase::Terminating {
        state.message = message.to_owned();
    }
    let backstop = SignedDuration::try_from(settings.backstop).unwrap_or(SignedDuration::MAX);
    let backstop = now.saturating_add(backstop).unwrap_or(Timestamp::MAX);
    let timeout = times_out(&state, settings).filter(|_| state.phase != OperationPhase::Terminating);
    let look_again = timeout.map_or(backstop, |timeout| timeout.min(backstop));
    Write { state, completion: None, look_again: Some(look_again) }
}

/// What to write after a pass that ended: the end of the operation, or the wait for the next attempt.
///
/// `state` is the state the pass ran with, together with its results.
pub fn ended(
    application: &Application,
    mut state: OperationState,
    phase: OperationPhase,
    message: &str,
    now: Timestamp,
) -> Write {
    let terminated = state.phase == OperationPhase::Terminating;
    let cause = std::mem::replace(&mut state.message, message.to_owned());
    state.phase = phase;
    // What never came to be rendered was still an attempt at what was asked for: another revision is another attempt.
    if state.sync_result.is_none()
        && let Ok(asked) = request(application, &state)
    {
        pin(&mut state, &asked, &asked.revisions);
    }
    if state.phase == OperationPhase::Succeeded {
        return complete(application, state, now);
    }
    let deleting = application.metadata.deletion_timestamp.is_some();
    if !terminated && retry::allowed(&state.operation.retry, state.retry_count) {
        if deleting {
            state.message.push_str(" (not retried: the application is being deleted)");
            return complete(application, state, now);
        }
        // Times are kept to the second; what is shown is what will happen.
        let failed = Timestamp::from_second(now.as_second()).unwrap_or(now);
        match retry::due(&state.operation.retry, failed, state.retry_count) {
            Ok(due) => {
                state.phase = OperationPhase::Running;
                state.finished_at = Some(Time(failed));
                state.retry_count = state.retry_count.saturating_add(1);
                let (number, clock) = (state.retry_count, kitchen(due));
                state.message.push_str(&format!(". Retrying attempt #{number} at {clock}."));
                return Write { state, completion: None, look_again: Some(due) };
            }
            Err(error) => {
                state.phase = OperationPhase::Error;
                state.message.push_str(&format!(" (failed to retry: {error})"));
                return complete(application, state, now);
            }
        }
    }
    if terminated && cause == TIMED_OUT {
        state.message.push_str(", triggered by controller sync timeout");
    }
    if terminated && cause == WITHDRAWN {
        state.message.push_str(", triggered by the removal of .operation");
    }
    if state.retry_count > 0 {
        state.message.push_str(&format!(" (retried {} times).", state.retry_count));
    }
    complete(application, state, now)
}

fn complete(application: &Application, mut state: OperationState, now: Timestamp) -> Write {
    // A start may have been put off to a second of its own; nothing ends before it began.
    let began = state.started_at.as_ref().map_or(now, |time| time.0);
    state.finished_at = Some(Time(now.max(began)));
    let sync = state.operation.sync.as_ref();
    let for_real = sync.is_some_and(|sync| !sync.dry_run);
    let refresh = match state.operation.initiated_by.automated {
        true => Level::Latest,
        false => Level::Resolve,
    };
    let completion = Completion {
        clears_operation: application.operation.as_ref().is_some_and(|asked| is_request_of(&state, asked)),
        history: history::after(application, &state, now),
        refresh: for_real.then_some(refresh),
        event: event(&state),
    };
    Write { state, completion: Some(completion), look_again: None }
}

/// Whether an operation is the one a state came from. A retry may have dropped its revisions.
fn is_request_of(state: &OperationState, asked: &Operation) -> bool {
    if state.operation == *asked {
        return true;
    }
    let mut asked = asked.clone();
    if let Some(sync) = asked.sync.as_mut().filter(|_| asked.retry.refresh && state.retry_count > 0) {
        sync.revision.clear();
        sync.revisions.clear();
    }
    state.operation == asked
}

fn event(state: &OperationState) -> String {
    let sync = state.operation.sync.as_ref();
    let partial = sync.is_some_and(|sync| !sync.resources.is_empty());
    let mut text = if partial { "Partial sync operation" } else { "Sync operation" }.to_owned();
    if let Some(result) = &state.sync_result {
        let several = result.revisions.join(", ");
        text.push_str(&format!(" to {}{several}", result.revision));
    }
    match state.phase {
        OperationPhase::Succeeded => text.push_str(" succeeded"),
        _ => text.push_str(&format!(" failed: {}", state.message)),
    }
    text
}

/// A time of day as Go's `time.Kitchen` shows it, in UTC.
fn kitchen(time: Timestamp) -> String {
    strtime::format("%-I:%M%p", &time.to_zoned(TimeZone::UTC)).unwrap_or_else(|_| time.to_string())
}

/// What is left to be written once the Application is found changed; none where it is another operation's by now.
///
/// A termination asked for meanwhile is not lost, nor an operation put in the place of the one that ended.
pub fn rebase(fresh: &Application, mut write: Write) -> Option<Write> {
    let current = fresh.status.operation_state.as_ref();
    let asked = fresh.operation.as_ref().is_some_and(|asked| is_request_of(&write.state, asked));
    let still_ours = match current {
        Some(current) if current.phase.is_completed() => asked && began_with(current, &write),
        Some(current) => current.started_at == write.state.started_at,
        None => asked,
    };
    if !still_ours {
        return None;
    }
    let terminating = current.is_some_and(|current| current.phase == OperationPhase::Terminating);
    if terminating && write.completion.is_none() && write.state.phase == OperationPhase::Running {
        write.state.phase = OperationPhase::Terminating;
        write.state.message = TERMINATING.to_owned();
    }
    if let Some(completion) = &mut write.completion {
        completion.clears_operation = asked;
        if completion.history.is_some() {
            let ended = write.state.finished_at.as_ref().map(|time| time.0);
            completion.history = ended.and_then(|ended| history::after(fresh, &write.state, ended));
        }
    }
    Some(write)
}

/// Whether a write begins an operation after the one that is there.
fn began_with(current: &OperationState, write: &Write) -> bool {
    let began = |state: &OperationState| state.started_at.as_ref().map(|time| time.0);
    began(&write.state) > began(current)
}

/// The state that asks a running operation to terminate.
///
/// # Errors
/// Nothing runs.
pub fn termination(application: &Application) -> Result<OperationState, NothingRuns> {
    let state = application.status.operation_state.as_ref();
    let running = state.filter(|state| !state.phase.is_completed() && application.operation.is_some());
    let state = running.ok_or(NothingRuns)?;
    Ok(OperationState { phase: OperationPhase::Terminating, ..state.clone() })
}

// === impl Write ===

impl Write {
    /// The Application as it is after the write.
    pub fn apply(&self, application: &mut Application) {
        application.status.operation_state = Some(self.state.clone());
        if let Some(completion) = &self.completion {
            if completion.clears_operation {
                application.operation = None;
            }
            if let Some(history) = &completion.history {
                application.status.history.clone_from(history);
            }
        }
    }
}

#[cfg(test)]
mod tests;
