//! What the user reads of an operation, in Argo CD's words.

use std::collections::BTreeSet;

use baton_api::object::ResourceKey;

use crate::task::Task;

pub(super) const BUSY: &str = "one or more tasks are running";
pub(super) const ALL_RUN: &str = "successfully synced (all tasks run)";
pub(super) const NO_MORE: &str = "successfully synced (no more tasks)";
pub(super) const CHECK_FAILED: &str = "one or more objects failed to apply (dry run)";
pub(super) const NAMESPACE_FAILED: &str = "the namespace failed to apply";
pub(super) const APPLY_FAILED: &str = "one or more objects failed to apply";
pub(super) const UNSUCCESSFUL: &str = "one or more synchronization tasks completed unsuccessfully";
pub(super) const SYNC_FAIL_FAILED: &str = "one or more SyncFail hooks failed";
pub(super) const TERMINATED: &str = "Operation terminated";
pub(super) const TERMINATED_BADLY: &str = "Operation termination had errors";

pub(super) fn not_valid(reasons: &BTreeSet<String>) -> String {
    let reasons: Vec<&str> = reasons.iter().map(String::as_str).filter(|reason| !reason.is_empty()).collect();
    match reasons.is_empty() {
        true => "one or more synchronization tasks are not valid".to_owned(),
        false => format!("one or more synchronization tasks are not valid: {}", reasons.join("; ")),
    }
}

/// A message with the different messages of the tasks that led to it.
pub(super) fn with_reasons<'t>(message: &str, tasks: impl Iterator<Item = &'t Task>) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for task in tasks {
        if !reasons.contains(&task.message.as_str()) {
            reasons.push(&task.message);
        }
    }
    if reasons.is_empty() { message.to_owned() } else { format!("{message}, reason: {}", reasons.join(",")) }
}

/// What is waited for: health or completion, or the end of a deletion. Hooks are named first.
pub(super) fn waiting(tasks: &[&Task], for_deletion: bool) -> String {
    let hook = tasks.iter().find(|task| task.is_hook());
    let Some(first) = hook.or(tasks.first()) else { return String::new() };
    let what = match (for_deletion, hook.is_some()) {
        (true, true) => "deletion of hook",
        (true, false) => "deletion of",
        (false, true) => "completion of hook",
        (false, false) => "healthy state of",
    };
    let named = format!("waiting for {what} {}", first.named());
    let kind = if tasks.iter().all(|task| task.is_hook()) { "hooks" } else { "resources" };
    match tasks.len() {
        1 => named,
        count => format!("{named} and {} more {kind}", count - 1),
    }
}

/// An error of the API, with what may help where its words do not.
pub(super) fn with_hint(error: &str, task: &Task) -> String {
    if error.contains("the server could not find the requested resource") {
        return not_served(task);
    }
    if error.contains("metadata.annotations: Too long") {
        return format!(
            "{error}. The object is too large for client-side apply, which keeps a copy of it in an annotation; \
             ServerSideApply=true needs none."
        );
    }
    error.to_owned()
}

/// That the kind of a task is not served.
pub(crate) fn not_served(task: &Task) -> String {
    let ResourceKey { group, kind, name, .. } = &task.key;
    format!(
        "The Kubernetes API could not find {group}/{kind} for requested resource {}/{name}. Make sure the \"{kind}\" CRD is \
         installed on the destination cluster.",
        task.namespace
    )
}

pub(super) fn missing(task: &Task) -> String {
    format!("Resource {} is missing, it might have been deleted", task.named())
}
