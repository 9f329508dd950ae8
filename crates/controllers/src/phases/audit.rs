//! What is told of every attempt, and of every answer to a person: one Event of the set, and one line in the log.
//!
//! Neither holds more than outcomes do, which are without headers, bodies, arguments, paths of URLs and declared secrets.
//! What a receiver answered or a command printed stands in the log alone, and only where the attempt did not succeed: it
//! is for whoever runs the controller, and nobody else has to see it.

use baton_api::ApplicationSet;
use baton_api::names::{API_VERSION, baton as names};
use baton_hooks::{Outcome, Role, Verdict};
use baton_phases::{Answer, Ask};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;

use super::caller::Prepared;
use super::metrics::CallMetrics;
use crate::events::Recorder;

/// Longest message of an Event, as Kubernetes has it.
const LONGEST: usize = 1024;

/// So much of what a receiver answered, or a command printed, is told.
const EXCERPT: usize = 300;

/// Tells of attempts.
#[derive(Clone)]
pub(super) struct Audit {
    pub(super) recorder: Option<Recorder>,
    pub(super) calls: CallMetrics,
}

/// An attempt, as far as it is told of.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    about: ObjectReference,
    call: baton_phases::Call,
    outline: String,
}

/// An answer to a person, as far as it is told of.
pub(super) struct Asked<'a> {
    pub(super) generator: usize,
    pub(super) rollout: &'a str,
    pub(super) answer: &'a Answer,
}

// === impl Attempt ===

impl Attempt {
    pub(super) fn new(set: &ApplicationSet, prepared: &Prepared, now: Timestamp) -> Attempt {
        let about = reference(set);
        Attempt { about, call: prepared.call.clone(), outline: prepared.outline(now) }
    }
}

// === impl Audit ===

impl Audit {
    /// Tells what came of an attempt.
    pub(super) fn ended(&self, attempt: &Attempt, outcome: &Outcome) {
        self.calls.took(role(attempt.call.key.role), outcome.duration);
        self.tell(attempt, &outcome.result, Some(outcome));
    }

    /// Tells that an attempt was ended because nobody waits for it any more.
    pub(super) fn cancelled(&self, attempt: &Attempt) {
        self.tell(attempt, &Verdict::Cancelled, None);
    }

    /// Tells what became of what a person asked for. `manager` is who wrote it, as far as the API tells.
    pub(super) fn answered(&self, set: &ApplicationSet, asked: &Asked<'_>, manager: Option<&str>) {
        let Asked { generator, rollout, answer } = asked;
        let about = reference(set);
        let (request, refused) = (answer.ask.as_str(), answer.refused.as_deref());
        tracing::info!(
            target: "baton::audit",
            namespace = about.namespace.as_deref(),
            application_set = about.name.as_deref(),
            rollout,
            generator,
            request,
            text = %answer.text,
            manager,
            result = if refused.is_some() { "Refused" } else { "Granted" },
            message = refused.unwrap_or_default(),
        );
        let Some(recorder) = &self.recorder else { return };
        let by = manager.map(|manager| format!(" by {manager}")).unwrap_or_default();
        let begin = format!("{request} of generator {generator}, asked for{by} as {:?}", answer.text);
        let (granted_as, refused_as) = answered_as(answer.ask);
        match refused {
            None => recorder.normal(&about, granted_as, shortened(format!("{begin}: granted"))),
            Some(why) => recorder.warning(&about, refused_as, shortened(format!("{begin}: refused: {why}"))),
        }
    }

    fn tell(&self, attempt: &Attempt, verdict: &Verdict, outcome: Option<&Outcome>) {
        let (call, about) = (&attempt.call, &attempt.about);
        let key = &call.key;
        self.calls.count(role(key.role), verdict.as_str());
        let code = outcome.and_then(|outcome| outcome.code);
        let milliseconds =
            outcome.map(|outcome| u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX));
        let output =
            outcome.filter(|outcome| outcome.result != Verdict::Success && !outcome.output.is_empty());
        let output = output.map(|outcome| excerpt(&outcome.output));
        tracing::info!(
            target: "baton::audit",
            namespace = about.namespace.as_deref(),
            application_set = about.name.as_deref(),
            rollout = %key.rollout,
            generator = key.generator,
            phase = %call.phase,
            role = role(key.role),
            name = %call.name,
            target_application = %key.target,
            attempt = key.attempt,
            idempotency_key = %call.idempotency_key,
            input = %attempt.outline,
            result = verdict.as_str(),
            message = %verdict,
            code,
            milliseconds,
            output,
        );
        let Some(recorder) = &self.recorder else { return };
        let what = if key.role == Role::Check { "check" } else { "hook" };
        let of = match &*key.target {
            "" => String::new(),
            target => format!(" for {target}"),
        };
        let code = code.map(|code| format!(", status {code}")).unwrap_or_default();
        let took = milliseconds.map(|took| format!(", {took} ms")).unwrap_or_default();
        let message = format!(
            "{what} {:?} of phase {:?}{of}, attempt {} ({}{code}{took}): {verdict}",
            call.name, call.phase, key.attempt, attempt.outline
        );
        let message = shortened(message);
        match verdict {
            Verdict::Success | Verdict::Cancelled => {
                recorder.normal(about, reason(key.role, verdict), message)
            }
            _ => recorder.warning(about, reason(key.role, verdict), message),
        }
    }
}

/// The set, as Events name what they are about.
fn reference(set: &ApplicationSet) -> ObjectReference {
    let metadata = &set.metadata;
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some("ApplicationSet".to_owned()),
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// Who wrote the annotation that asks for something, as the set tells in its `managedFields`.
pub(super) fn manager_of(raw: &Value, ask: Ask) -> Option<&str> {
    let field = format!("f:{}", annotation(ask));
    let entries = raw["metadata"]["managedFields"].as_array()?;
    let owns = |entry: &&Value| !entry["fieldsV1"]["f:metadata"]["f:annotations"][&field].is_null();
    entries.iter().find(owns)?["manager"].as_str()
}

/// The annotation that asks for something.
fn annotation(ask: Ask) -> &'static str {
    match ask {
        Ask::Abort => names::ABORT,
        Ask::RollbackAll => names::ROLLBACK_ALL,
        Ask::Rollback => names::ROLLBACK,
        Ask::Retry => names::RETRY,
        Ask::Advance => names::ADVANCE,
    }
}

/// The reasons of Events that tell of answers: granted, and refused.
fn answered_as(ask: Ask) -> (&'static str, &'static str) {
    match ask {
        Ask::Abort => ("AbortGranted", "AbortRefused"),
        Ask::RollbackAll => ("RollbackAllGranted", "RollbackAllRefused"),
        Ask::Rollback => ("RollbackGranted", "RollbackRefused"),
        Ask::Retry => ("RetryGranted", "RetryRefused"),
        Ask::Advance => ("AdvanceGranted", "AdvanceRefused"),
    }
}

fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(LONGEST));
    message
}

/// The end, which is where programs say what went wrong.
fn excerpt(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(EXCERPT))..]
}

fn role(role: Role) -> &'static str {
    match role {
        Role::PreHook => "preHook",
        Role::PostHook => "postHook",
        Role::Check => "check",
    }
}

fn reason(role: Role, verdict: &Verdict) -> &'static str {
    match (role == Role::Check, verdict) {
        (false, Verdict::Success) => "HookSucceeded",
        (false, Verdict::Failure(_)) => "HookFailed",
        (false, Verdict::Timeout { .. }) => "HookTimedOut",
        (false, Verdict::Cancelled) => "HookCancelled",
        (false, Verdict::Refused(_)) => "HookRefused",
        (true, Verdict::Success) => "CheckSucceeded",
        (true, Verdict::Failure(_)) => "CheckFailed",
        (true, Verdict::Timeout { .. }) => "CheckTimedOut",
        (true, Verdict::Cancelled) => "CheckCancelled",
        (true, Verdict::Refused(_)) => "CheckRefused",
    }
}
