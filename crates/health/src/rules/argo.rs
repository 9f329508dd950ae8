//! Argo's kinds: Workflows, and the Applications and ApplicationSets that an Application may itself deploy.

use baton_api::{application_status::HealthCode, health::Health};
use serde_json::Value;

use super::{condition, degraded, healthy, holds, progressing, text, unknown};

pub(super) fn workflow(object: &Value) -> Health {
    let message = text(&object["status"]["message"]);
    match text(&object["status"]["phase"]) {
        "" | "Pending" | "Running" => progressing(message),
        "Succeeded" => healthy(message),
        "Failed" | "Error" => degraded(message),
        _ => unknown(message),
    }
}

/// An Application has the health its controller wrote, so that a wave of Applications is waited for.
pub(super) fn application(object: &Value) -> Health {
    reported(object).unwrap_or_else(|| progressing("Waiting for the status to be reported"))
}

/// An ApplicationSet is broken when it could not be generated or applied, and on its way while it rolls out.
pub(super) fn application_set(object: &Value) -> Health {
    let message = |it: &Value| text(&it["message"]).to_owned();
    if let Some(error) = condition(object, "ErrorOccurred").filter(|it| holds(it)) {
        return degraded(message(error));
    }
    let current = condition(object, "ResourcesUpToDate");
    if let Some(stale) = current.filter(|it| text(&it["status"]) == "False") {
        return degraded(message(stale));
    }
    if let Some(rollout) = condition(object, "RolloutProgressing").filter(|it| holds(it)) {
        return progressing(message(rollout));
    }
    if let Some(health) = reported(object) {
        return health;
    }
    match current.filter(|it| holds(it)) {
        Some(current) => healthy(message(current)),
        None => progressing("Waiting for the status to be reported"),
    }
}

/// `status.health`, where it is written.
fn reported(object: &Value) -> Option<Health> {
    let health = &object["status"]["health"];
    let code = HealthCode::from(text(&health["status"]).to_owned());
    let known = !matches!(code, HealthCode::Other(_));
    known.then(|| Health::new(code, text(&health["message"])))
}
