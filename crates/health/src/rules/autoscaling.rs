//! HorizontalPodAutoscalers.

use baton_api::{health::Health, object::Object};
use serde_json::Value;

use super::{conditions, degraded, healthy, holds, list, progressing, text};
use crate::HealthError;

/// Where version 1 keeps its conditions, as JSON.
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Reasons for which an autoscaler does not scale, by the condition they stand in.
const FAILURES: [(&str, &str); 8] = [
    ("AbleToScale", "FailedGetScale"),
    ("AbleToScale", "FailedUpdateScale"),
    ("ScalingActive", "FailedGetResourceMetric"),
    ("ScalingActive", "FailedGetObjectMetric"),
    ("ScalingActive", "FailedGetPodsMetric"),
    ("ScalingActive", "FailedGetExternalMetric"),
    ("ScalingActive", "FailedComputeMetricsReplicas"),
    ("ScalingActive", "InvalidSelector"),
];

pub(super) fn autoscaler(object: &Value) -> Result<Health, HealthError> {
    if object.version() == "v2" {
        return Ok(of_conditions(conditions(object)));
    }
    let Some(annotation) = object.annotation(CONDITIONS) else {
        return Ok(of_conditions(&[]));
    };
    let conditions: Value =
        serde_json::from_str(annotation).map_err(|error| HealthError::Annotation(error.to_string()))?;
    Ok(of_conditions(list(&conditions)))
}

fn of_conditions(conditions: &[Value]) -> Health {
    if let Some(failed) = conditions.iter().find(|it| failed(it)) {
        return degraded(text(&failed["message"]));
    }
    let scales = |it: &&Value| matches!(text(&it["type"]), "AbleToScale" | "ScalingLimited") && holds(it);
    match conditions.iter().find(scales) {
        Some(condition) => healthy(text(&condition["message"])),
        None => progressing("Waiting to Autoscale"),
    }
}

fn failed(condition: &Value) -> bool {
    FAILURES.contains(&(text(&condition["type"]), text(&condition["reason"])))
}
