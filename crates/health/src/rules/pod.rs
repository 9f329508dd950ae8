//! Pods.

use baton_api::{health::Health, names::resource, object::Object};
use serde_json::Value;

use super::{condition, degraded, healthy, holds, list, number, progressing, text, unknown};

pub(super) fn pod(object: &Value) -> Health {
    let status = &object["status"];
    let policy = text(&object["spec"]["restartPolicy"]);
    let asked = object.annotation(resource::IGNORE_RESTART_POLICY) == Some("true");
    // A hook's pod whose image cannot be pulled yet may still run: failing the hook now would let it run after the
    // sync has ended.
    let lasting = policy == "Always" || asked && !is_hook(object);
    let containers = list(&status["containerStatuses"]);
    if lasting {
        let stuck: Vec<&str> = containers.iter().filter_map(stuck).collect();
        if !stuck.is_empty() {
            return degraded(stuck.join(", "));
        }
    }
    let message = text(&status["message"]);
    match text(&status["phase"]) {
        "Pending" => progressing(message),
        "Succeeded" => healthy(message),
        "Failed" if !message.is_empty() => degraded(message),
        "Failed" => {
            let all = list(&status["initContainerStatuses"]).iter().chain(containers);
            degraded(all.map(failure).find(|failure| !failure.is_empty()).unwrap_or_default())
        }
        "Running" if lasting && condition(object, "Ready").is_some_and(holds) => healthy(message),
        "Running" if lasting && containers.iter().any(|it| it["lastState"]["terminated"].is_object()) => {
            degraded(message)
        }
        "Running" if lasting || matches!(policy, "OnFailure" | "Never") => progressing(message),
        _ => unknown(message),
    }
}

/// What a container that cannot start says.
fn stuck(container: &Value) -> Option<&str> {
    let waiting = &container["state"]["waiting"];
    let reason = text(&waiting["reason"]);
    let stuck = reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff");
    stuck.then(|| text(&waiting["message"]))
}

/// Why a container ended; empty if it did not, or ended well.
fn failure(container: &Value) -> String {
    let terminated = &container["state"]["terminated"];
    let message = text(&terminated["message"]);
    if !message.is_empty() {
        return message.to_owned();
    }
    if text(&terminated["reason"]) == "OOMKilled" {
        return "OOMKilled".to_owned();
    }
    match number(&terminated["exitCode"]) {
        0 => String::new(),
        code => format!("container {:?} failed with exit code {code}", text(&container["name"])),
    }
}

fn is_hook(object: &Value) -> bool {
    match object.annotation(resource::HOOK) {
        // Skipped objects are no hooks; Skip beside a real type does nothing.
        Some(types) => {
            let known = ["PreSync", "Sync", "PostSync", "SyncFail", "Skip"];
            let mut types = types.split(',').map(str::trim).filter(|it| known.contains(it));
            !(types.next() == Some("Skip") && types.next().is_none())
        }
        None => object.annotation(resource::HELM_HOOK).is_some_and(|hook| hook != "crd-install"),
    }
}
