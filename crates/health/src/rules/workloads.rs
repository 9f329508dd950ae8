//! Deployments, StatefulSets, DaemonSets and ReplicaSets.

use baton_api::{health::Health, object::Object};
use serde_json::Value;

use super::{condition, degraded, healthy, holds, number, progressing, suspended, text};

pub(super) fn deployment(object: &Value) -> Health {
    let status = &object["status"];
    if object["spec"]["paused"] == true {
        return suspended("Deployment is paused");
    }
    if generation(object) > number(&status["observedGeneration"]) {
        return progressing(
            "Waiting for rollout to finish: observed deployment generation less than desired generation",
        );
    }
    if condition(object, "Progressing").is_some_and(|it| text(&it["reason"]) == "ProgressDeadlineExceeded") {
        return degraded(format!("Deployment {:?} exceeded its progress deadline", object.name()));
    }
    let updated = number(&status["updatedReplicas"]);
    let all = number(&status["replicas"]);
    let available = number(&status["availableReplicas"]);
    if let Some(wanted) = object["spec"]["replicas"].as_i64().filter(|wanted| updated < *wanted) {
        return progressing(format!(
            "Waiting for rollout to finish: {updated} out of {wanted} new replicas have been updated..."
        ));
    }
    if all > updated {
        return progressing(format!(
            "Waiting for rollout to finish: {} old replicas are pending termination...",
            all.saturating_sub(updated)
        ));
    }
    if available < updated {
        return progressing(format!(
            "Waiting for rollout to finish: {available} of {updated} updated replicas are available..."
        ));
    }
    healthy("")
}

pub(super) fn stateful_set(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let observed = number(&status["observedGeneration"]);
    if observed == 0 || generation(object) > observed {
        return progressing("Waiting for statefulset spec update to be observed...");
    }
    let replicas = spec["replicas"].as_i64();
    let ready = number(&status["readyReplicas"]);
    if let Some(wanted) = replicas.filter(|wanted| ready < *wanted) {
        return progressing(format!("Waiting for {} pods to be ready...", wanted.saturating_sub(ready)));
    }
    let updated = number(&status["updatedReplicas"]);
    let strategy = &spec["updateStrategy"];
    let (kind, rolling) = (text(&strategy["type"]), &strategy["rollingUpdate"]);
    if kind == "RollingUpdate" && rolling.is_object() {
        let partitioned =
            replicas.zip(rolling["partition"].as_i64()).map(|(all, kept)| all.saturating_sub(kept));
        if let Some(wanted) = partitioned.filter(|wanted| updated < *wanted) {
            return progressing(format!(
                "Waiting for partitioned roll out to finish: {updated} out of {wanted} new pods have been updated..."
            ));
        }
        return healthy(format!("partitioned roll out complete: {updated} new pods have been updated..."));
    }
    if kind == "OnDelete" {
        return healthy(format!("statefulset has {ready} ready pods"));
    }
    let (current, update) = (text(&status["currentRevision"]), text(&status["updateRevision"]));
    if update != current {
        return progressing(format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {update}..."
        ));
    }
    healthy(format!(
        "statefulset rolling update complete {} pods at revision {current}...",
        number(&status["currentReplicas"])
    ))
}

pub(super) fn daemon_set(object: &Value) -> Health {
    let status = &object["status"];
    if generation(object) > number(&status["observedGeneration"]) {
        return progressing(
            "Waiting for rollout to finish: observed daemon set generation less than desired generation",
        );
    }
    let updated = number(&status["updatedNumberScheduled"]);
    let desired = number(&status["desiredNumberScheduled"]);
    let available = number(&status["numberAvailable"]);
    if text(&object["spec"]["updateStrategy"]["type"]) == "OnDelete" {
        return healthy(format!("daemon set {updated} out of {desired} new pods have been updated"));
    }
    let name = object.name();
    if updated < desired {
        return progressing(format!(
            "Waiting for daemon set {name:?} rollout to finish: {updated} out of {desired} new pods have been updated..."
        ));
    }
    if available < desired {
        return progressing(format!(
            "Waiting for daemon set {name:?} rollout to finish: {available} of {desired} updated pods are available..."
        ));
    }
    healthy("")
}

pub(super) fn replica_set(object: &Value) -> Health {
    let status = &object["status"];
    if generation(object) > number(&status["observedGeneration"]) {
        return progressing(
            "Waiting for rollout to finish: observed replica set generation less than desired generation",
        );
    }
    if let Some(failure) = condition(object, "ReplicaFailure").filter(|it| holds(it)) {
        return degraded(text(&failure["message"]));
    }
    let available = number(&status["availableReplicas"]);
    if let Some(wanted) = object["spec"]["replicas"].as_i64().filter(|wanted| available < *wanted) {
        return progressing(format!(
            "Waiting for rollout to finish: {available} out of {wanted} new replicas are available..."
        ));
    }
    healthy("")
}

fn generation(object: &Value) -> i64 {
    number(&object["metadata"]["generation"])
}
