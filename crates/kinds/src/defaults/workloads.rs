//! Controllers of Pods, and what scales them.

use serde_json::{Value, json};

use super::{amount, pods, storage};
use crate::lookup::{at, at_mut, ensure, fields, fill, fill_zero, has_entries, list_mut, set, text};

const HISTORY: i64 = 10;

pub(super) fn deployment(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", HISTORY);
        fill(spec, "progressDeadlineSeconds", 600);
        if let Some(strategy) = ensure(spec, "strategy") {
            fill(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = ensure(strategy, "rollingUpdate")
            {
                fill(rolling, "maxUnavailable", "25%");
                fill(rolling, "maxSurge", "25%");
            }
        }
    }
    pods::template(object, "spec.template");
}

pub(super) fn replica_set(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "replicas", 1);
    }
    pods::template(object, "spec.template");
}

pub(super) fn replication_controller(object: &mut Value) {
    let labels = fields(object, "spec.template.metadata.labels").filter(|labels| !labels.is_empty()).cloned();
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "replicas", 1);
    }
    if let Some(labels) = labels
        && !has_entries(object, "spec.selector")
        && let Some(spec) = ensure(object, "spec")
    {
        set(spec, "selector", labels);
    }
    label_like_template(object);
    pods::template(object, "spec.template");
}

/// An object without labels takes those of its Pods.
fn label_like_template(object: &mut Value) {
    let labels = fields(object, "spec.template.metadata.labels").filter(|labels| !labels.is_empty()).cloned();
    if let Some(labels) = labels
        && !has_entries(object, "metadata.labels")
        && let Some(metadata) = ensure(object, "metadata")
    {
        set(metadata, "labels", labels);
    }
}

pub(super) fn stateful_set(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", HISTORY);
        fill(spec, "podManagementPolicy", "OrderedReady");
        if let Some(strategy) = ensure(spec, "updateStrategy") {
            fill(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = ensure(strategy, "rollingUpdate")
            {
                fill(rolling, "partition", 0);
            }
        }
        if let Some(retention) = ensure(spec, "persistentVolumeClaimRetentionPolicy") {
            fill(retention, "whenDeleted", "Retain");
            fill(retention, "whenScaled", "Retain");
        }
        for claim in list_mut(spec, "volumeClaimTemplates") {
            set(claim, "apiVersion", "v1");
            set(claim, "kind", "PersistentVolumeClaim");
            ensure(claim, "metadata");
            storage::claim(claim);
            if let Some(status) = ensure(claim, "status") {
                fill(status, "phase", "Pending");
            }
        }
    }
    pods::template(object, "spec.template");
}

pub(super) fn daemon_set(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "revisionHistoryLimit", HISTORY);
        if let Some(strategy) = ensure(spec, "updateStrategy") {
            fill(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = ensure(strategy, "rollingUpdate")
            {
                fill(rolling, "maxUnavailable", 1);
                fill(rolling, "maxSurge", 0);
            }
        }
    }
    pods::template(object, "spec.template");
}

pub(super) fn job(object: &mut Value) {
    label_like_template(object);
    if let Some(spec) = ensure(object, "spec") {
        // A work queue states only its parallelism; one that states nothing runs once.
        if at(spec, "completions").is_none() && at(spec, "parallelism").is_none() {
            set(spec, "completions", 1);
        }
        fill(spec, "parallelism", 1);
        let per_index = at(spec, "backoffLimitPerIndex").is_some();
        fill(spec, "backoffLimit", if per_index { i64::from(i32::MAX) } else { 6 });
        fill(spec, "completionMode", "NonIndexed");
        fill(spec, "suspend", false);
        fill(spec, "manualSelector", false);
        let policy = if at(spec, "podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
        fill(spec, "podReplacementPolicy", policy);
        failure_policy(spec);
    }
    pods::template(object, "spec.template");
}

fn failure_policy(spec: &mut Value) {
    for rule in list_mut(spec, "podFailurePolicy.rules") {
        for pattern in list_mut(rule, "onPodConditions") {
            fill(pattern, "status", "True");
        }
    }
}

pub(super) fn cron_job(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "concurrencyPolicy", "Allow");
        fill(spec, "suspend", false);
        fill(spec, "successfulJobsHistoryLimit", 3);
        fill(spec, "failedJobsHistoryLimit", 1);
        if let Some(template) = ensure(spec, "jobTemplate") {
            ensure(template, "metadata");
            if let Some(job) = ensure(template, "spec") {
                failure_policy(job);
            }
        }
    }
    pods::template(object, "spec.jobTemplate.spec.template");
}

pub(super) fn autoscaler(object: &mut Value) {
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if at(spec, "metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        set(
            spec,
            "metrics",
            json!([{
                "resource": {"name": "cpu", "target": {"averageUtilization": 80, "type": "Utilization"}},
                "type": "Resource",
            }]),
        );
    }
    for metric in list_mut(spec, "metrics") {
        for source in ["resource", "containerResource", "pods", "object", "external"] {
            for name in ["averageValue", "value"] {
                if let Some(value) = at_mut(metric, &format!("{source}.target.{name}")) {
                    amount(value);
                }
            }
        }
    }
    if let Some(behavior) = at_mut(spec, "behavior") {
        scaling_rules(behavior);
    }
}

fn scaling_rules(behavior: &mut Value) {
    if let Some(up) = ensure(behavior, "scaleUp") {
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        fill(
            up,
            "policies",
            json!([
                {"periodSeconds": 15, "type": "Pods", "value": 4},
                {"periodSeconds": 15, "type": "Percent", "value": 100},
            ]),
        );
    }
    if let Some(down) = ensure(behavior, "scaleDown") {
        fill(down, "selectPolicy", "Max");
        fill(down, "policies", json!([{"periodSeconds": 15, "type": "Percent", "value": 100}]));
    }
    for rules in ["scaleUp", "scaleDown"] {
        for policy in list_mut(behavior, &format!("{rules}.policies")) {
            fill_zero(policy, "periodSeconds", 15);
        }
    }
}
