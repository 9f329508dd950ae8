//! What Argo CD knows of Kubernetes' own kinds, in its words.
//!
//! Fields that are absent or of another type read as zero or empty, as a typed reading of a valid object would.

mod argo;
mod autoscaling;
mod job;
mod network;
mod pod;
mod storage;
mod workloads;

use baton_api::{application_status::HealthCode, health::Health, object::Object};
use serde_json::Value;

use crate::HealthError;

/// The health of an object of a known kind.
pub(crate) fn assess(object: &Value) -> Result<Option<Health>, HealthError> {
    let health = match (object.group(), object.kind()) {
        ("apps", "Deployment") => workloads::deployment(only(object, &["v1"], "Deployment")?),
        ("apps", "StatefulSet") => workloads::stateful_set(only(object, &["v1"], "StatefulSet")?),
        ("apps", "DaemonSet") => workloads::daemon_set(only(object, &["v1"], "DaemonSet")?),
        ("apps", "ReplicaSet") => workloads::replica_set(only(object, &["v1"], "ReplicaSet")?),
        ("", "Pod") => pod::pod(only(object, &["v1"], "Pod")?),
        ("", "Service") => network::service(only(object, &["v1"], "Service")?),
        ("", "PersistentVolumeClaim") => storage::claim(only(object, &["v1"], "PersistentVolumeClaim")?),
        ("batch", "Job") => job::job(only(object, &["v1"], "Job")?),
        ("networking.k8s.io" | "extensions", "Ingress") => network::ingress(object),
        ("apiregistration.k8s.io", "APIService") => {
            network::api_service(only(object, &["v1", "v1beta1"], "APIService")?)
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            autoscaling::autoscaler(only(object, &["v1", "v2"], "HPA")?)?
        }
        ("argoproj.io", "Workflow") => argo::workflow(object),
        ("argoproj.io", "Application") => argo::application(object),
        ("argoproj.io", "ApplicationSet") => argo::application_set(object),
        _ => return Ok(None),
    };
    Ok(Some(health))
}

/// Refuses versions whose fields mean something else.
fn only<'a>(object: &'a Value, versions: &[&str], name: &'static str) -> Result<&'a Value, HealthError> {
    if versions.contains(&object.version()) {
        return Ok(object);
    }
    Err(HealthError::UnsupportedVersion {
        name,
        group_version: format!("{}/{}", object.group(), object.version()),
        kind: object.kind().to_owned(),
    })
}

fn healthy(message: impl Into<String>) -> Health {
    Health::new(HealthCode::Healthy, message)
}

fn progressing(message: impl Into<String>) -> Health {
    Health::new(HealthCode::Progressing, message)
}

fn degraded(message: impl Into<String>) -> Health {
    Health::new(HealthCode::Degraded, message)
}

fn suspended(message: impl Into<String>) -> Health {
    Health::new(HealthCode::Suspended, message)
}

fn unknown(message: impl Into<String>) -> Health {
    Health::new(HealthCode::Unknown, message)
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// `status.conditions`.
fn conditions(object: &Value) -> &[Value] {
    list(&object["status"]["conditions"])
}

/// The first condition of a type.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    conditions(object).iter().find(|condition| text(&condition["type"]) == kind)
}

fn holds(condition: &Value) -> bool {
    text(&condition["status"]) == "True"
}
