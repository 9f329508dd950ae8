//! What is told of every attempt: one Event of the set, and one line in the log.
//!
//! Neither holds more than outcomes do, which are without headers, bodies, arguments, paths of URLs and declared secrets.
//! What a receiver answered or a command printed stands in the log alone, and only where the attempt did not succeed: it
//! is for whoever runs the controller, and nobody else has to see it.

use baton_api::ApplicationSet;
use baton_api::names::API_VERSION;
use baton_hooks::{Outcome, Role, Verdict};
use k8s_openapi::api::core::v1::ObjectReference;

use super::caller::Prepared;
use crate::events::Recorder;

/// Longest message of an Event, as Kubernetes has it.
const LONGEST: usize = 1024;

/// So much of what a receiver answered, or a command printed, is told.
const EXCERPT: usize = 300;

/// Tells of attempts.
#[derive(Clone)]
pub(super) struct Audit {
    pub(super) recorder: Option<Recorder>,
}

/// An attempt, as far as it is told of.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    about: ObjectReference,
    call: baton_phases::Call,
    outline: String,
}

// === impl Attempt ===

impl Attempt {
    pub(super) fn new(set: &ApplicationSet, prepared: &Prepared) -> Attempt {
        let metadata = &set.metadata;
        let about = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some("ApplicationSet".to_owned()),
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            ..ObjectReference::default()
        };
        Attempt { about, call: prepared.call.clone(), outline: prepared.what.outline() }
    }
}

// === impl Audit ===

impl Audit {
    /// Tells what came of an attempt.
    pub(super) fn ended(&self, attempt: &Attempt, outcome: &Outcome) {
        self.tell(attempt, &outcome.result, Some(outcome));
    }

    /// Tells that an attempt was ended because nobody waits for it any more.
    pub(super) fn cancelled(&self, attempt: &Attempt) {
        self.tell(attempt, &Verdict::Cancelled, None);
    }

    fn tell(&self, attempt: &Attempt, verdict: &Verdict, outcome: Option<&Outcome>) {
        let (call, about) = (&attempt.call, &attempt.about);
        let key = &call.key;
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
        let mut message = format!(
            "{what} {:?} of phase {:?}{of}, attempt {} ({}{code}{took}): {verdict}",
            call.name, call.phase, key.attempt, attempt.outline
        );
        message.truncate(message.floor_char_boundary(LONGEST));
        match verdict {
            Verdict::Success | Verdict::Cancelled => {
                recorder.normal(about, reason(key.role, verdict), message)
            }
            _ => recorder.warning(about, reason(key.role, verdict), message),
        }
    }
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
