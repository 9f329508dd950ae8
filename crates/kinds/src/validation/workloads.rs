//! Controllers of Pods, and what scales and guards them.

use serde_json::{Map, Value};

use super::checks::{
    Errors, count_or_percent, forbidden, immutable, invalid, is_nothing, not_negative, one_of, present,
    required,
};
use super::selectors::{selector, selects_template};
use super::{cron, pods};
use crate::lookup::{at, fields, flag, int, list, remove, text};

const TEMPLATE: &str = "spec.template";
const NOTHING: &Value = &Value::Null;

pub(super) fn deployment(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    let counts = ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
    not_negative(errors, spec, "spec", &counts);
    selects_template(errors, object, "deployment");
    pods::template(errors, object, TEMPLATE, &[]);
    no_deadline(errors, spec);
    let (deadline, ready) = (int(spec, "progressDeadlineSeconds"), int(spec, "minReadySeconds").unwrap_or(0));
    if let Some(deadline) = deadline.filter(|deadline| *deadline <= ready) {
        invalid(errors, "spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds");
    }
    let strategy = at(spec, "strategy").unwrap_or(NOTHING);
    let path = "spec.strategy";
    match text(strategy, "type") {
        "Recreate" if at(strategy, "rollingUpdate").is_some() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            forbidden(errors, &format!("{path}.rollingUpdate"), detail);
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_deployment(errors, at(strategy, "rollingUpdate").unwrap_or(NOTHING)),
        _ => errors.push(baton_schema::FieldError::not_supported(
            path,
            strategy.clone(),
            &["Recreate", "RollingUpdate"],
        )),
    }
    if let Some(old) = old {
        immutable(errors, object, old, "spec.selector");
    }
}

fn rolling_deployment(errors: &mut Errors, rolling: &Value) {
    let path = "spec.strategy.rollingUpdate";
    let (unavailable, surge) = (at(rolling, "maxUnavailable"), at(rolling, "maxSurge"));
    count_or_percent(errors, &format!("{path}.maxUnavailable"), unavailable);
    // More than 100 % of extra Pods is a lot, but allowed.
    if surge.and_then(Value::as_str).and_then(super::checks::percent).is_none() {
        count_or_percent(errors, &format!("{path}.maxSurge"), surge);
    }
    if is_nothing(unavailable) && is_nothing(surge) {
        let value = unavailable.cloned().unwrap_or_default();
        invalid(errors, &format!("{path}.maxUnavailable"), value, "may not be 0 when `maxSurge` is 0");
    }
}

fn no_deadline(errors: &mut Errors, spec: &Value) {
    if at(spec, "template.spec.activeDeadlineSeconds").is_some() {
        let path = "spec.template.spec.activeDeadlineSeconds";
        forbidden(errors, path, "activeDeadlineSeconds in ReplicaSet is not Supported");
    }
}

pub(super) fn replica_set(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    not_negative(errors, spec, "spec", &["replicas", "minReadySeconds"]);
    // The word is Kubernetes' own.
    selects_template(errors, object, "deployment");
    pods::template(errors, object, TEMPLATE, &[]);
    no_deadline(errors, spec);
    if let Some(old) = old {
        immutable(errors, object, old, "spec.selector");
    }
}

pub(super) fn replication_controller(errors: &mut Errors, object: &Value) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    not_negative(errors, spec, "spec", &["replicas", "minReadySeconds"]);
    let selected = fields(spec, "selector").filter(|selector| !selector.is_empty());
    if selected.is_none() {
        required(errors, "spec.selector", "");
    }
    if at(spec, "template").is_none() {
        return required(errors, TEMPLATE, "");
    }
    let empty = Map::new();
    let labels = fields(spec, "template.metadata.labels").unwrap_or(&empty);
    if selected.into_iter().flatten().any(|(key, value)| labels.get(key) != Some(value)) {
        let detail = "`selector` does not match template `labels`";
        invalid(errors, "spec.template.metadata.labels", Value::Object(labels.clone()), detail);
    }
    pods::template(errors, object, TEMPLATE, &[]);
}

pub(super) fn stateful_set(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        invalid(errors, "spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let strategy = at(spec, "updateStrategy").unwrap_or(NOTHING);
    let path = "spec.updateStrategy";
    let rolling = at(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "RollingUpdate" => {
            let rolling = rolling.unwrap_or(NOTHING);
            not_negative(errors, rolling, &format!("{path}.rollingUpdate"), &["partition"]);
        }
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                invalid(errors, &format!("{path}.rollingUpdate"), rolling.clone(), detail);
            }
        }
        _ => invalid(errors, path, strategy.clone(), "must be 'RollingUpdate' or 'OnDelete'"),
    }
    not_negative(errors, spec, "spec", &["replicas", "minReadySeconds", "revisionHistoryLimit"]);
    selects_template(errors, object, "statefulset");
    let claims: Vec<&str> =
        list(spec, "volumeClaimTemplates").iter().map(|claim| text(claim, "metadata.name")).collect();
    pods::template(errors, object, TEMPLATE, &claims);
    if let Some(old) = old {
        stateful_set_update(errors, spec, at(old, "spec").unwrap_or(NOTHING));
    }
}

fn stateful_set_update(errors: &mut Errors, spec: &Value, old: &Value) {
    let fixed = |spec: &Value| {
        let mut spec = spec.clone();
        for field in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            remove(&mut spec, field);
        }
        spec
    };
    if fixed(spec) != fixed(old) {
        forbidden(
            errors,
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

pub(super) fn daemon_set(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    selects_template(errors, object, if at(spec, "selector").is_some() { "daemonset" } else { "" });
    pods::template(errors, object, TEMPLATE, &[]);
    not_negative(errors, spec, "spec", &["minReadySeconds", "revisionHistoryLimit"]);
    let strategy = at(spec, "updateStrategy").unwrap_or(NOTHING);
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let path = "spec.updateStrategy.rollingUpdate";
            let rolling = at(strategy, "rollingUpdate").unwrap_or(NOTHING);
            let (unavailable, surge) = (at(rolling, "maxUnavailable"), at(rolling, "maxSurge"));
            count_or_percent(errors, &format!("{path}.maxUnavailable"), unavailable);
            count_or_percent(errors, &format!("{path}.maxSurge"), surge);
            if is_nothing(unavailable) && is_nothing(surge) {
                required(errors, &format!("{path}.maxUnavailable"), "cannot be 0 when maxSurge is 0");
            } else if !is_nothing(unavailable) && !is_nothing(surge) && surge.is_some() {
                let value = surge.cloned().unwrap_or_default();
                invalid(
                    errors,
                    &format!("{path}.maxSurge"),
                    value,
                    "may not be set when maxUnavailable is non-zero",
                );
            }
        }
        _ => errors.push(baton_schema::FieldError::not_supported(
            "spec.updateStrategy",
            strategy.clone(),
            &["RollingUpdate", "OnDelete"],
        )),
    }
    if let Some(old) = old {
        immutable(errors, object, old, "spec.selector");
    }
}

pub(super) fn revision(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    if let Some(number) = int(object, "revision").filter(|number| *number < 0) {
        invalid(errors, "revision", number, "must be greater than or equal to 0");
    }
    if at(object, "data").is_none() {
        required(errors, "data", "data is mandatory");
    }
    if let Some(old) = old {
        immutable(errors, object, old, "data");
    }
}

pub(super) fn job(errors: &mut Errors, object: &Value, old: Option<&Value>) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    job_spec(errors, object, spec, "spec");
    if flag(spec, "manualSelector") || at(spec, "selector").is_some() {
        selects_template(errors, object, "job");
    }
    let Some(old) = old else { return };
    for field in ["spec.completions", "spec.selector", "spec.completionMode", "spec.podFailurePolicy"] {
        // An indexed Job may grow and shrink as long as both counts do.
        let elastic = field == "spec.completions"
            && text(spec, "completionMode") == "Indexed"
            && at(spec, "completions") == at(spec, "parallelism");
        if !elastic {
            immutable(errors, object, old, field);
        }
    }
    // Where the Pods go may change while none has started.
    let waiting = flag(old, "spec.suspend") && at(old, "status.startTime").is_none();
    if !waiting {
        immutable(errors, object, old, TEMPLATE);
    }
}

fn job_spec(errors: &mut Errors, object: &Value, spec: &Value, path: &str) {
    let counts =
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    not_negative(errors, spec, path, &counts);
    one_of(
        errors,
        &format!("{path}.completionMode"),
        text(spec, "completionMode"),
        &["NonIndexed", "Indexed"],
    );
    let template = format!("{path}.template");
    let policies = &["Always", "OnFailure", "Never"];
    pods::template_with(errors, object, &template, policies, &[]);
    if matches!(text(spec, "template.spec.restartPolicy"), "" | "Always") {
        required(errors, &format!("{template}.spec.restartPolicy"), "valid values: \"OnFailure\", \"Never\"");
    }
}

pub(super) fn cron_job(errors: &mut Errors, object: &Value) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        required(errors, "spec.schedule", "");
    } else if let Err(wrong) = cron::check(schedule) {
        invalid(errors, "spec.schedule", schedule, wrong);
    }
    if let Some(zone) = at(spec, "timeZone").and_then(Value::as_str) {
        cron::check_zone(errors, "spec.timeZone", zone);
    }
    let counts = ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    not_negative(errors, spec, "spec", &counts);
    let policies = &["Allow", "Forbid", "Replace"];
    one_of(errors, "spec.concurrencyPolicy", text(spec, "concurrencyPolicy"), policies);
    let job = at(spec, "jobTemplate.spec").unwrap_or(NOTHING);
    job_spec(errors, object, job, "spec.jobTemplate.spec");
}

pub(super) fn autoscaler(errors: &mut Errors, object: &Value) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    let (least, most) = (int(spec, "minReplicas"), int(spec, "maxReplicas").unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        invalid(errors, "spec.minReplicas", least, "must be greater than or equal to 1");
    }
    if most < 1 {
        required(errors, "spec.maxReplicas", "must be set and greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        invalid(errors, "spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
    }
    let target = at(spec, "scaleTargetRef").unwrap_or(NOTHING);
    for field in ["kind", "name"] {
        present(errors, target, "spec.scaleTargetRef", field);
    }
    for (place, metric) in list(spec, "metrics").iter().enumerate() {
        let path = format!("spec.metrics[{place}]");
        let source = match text(metric, "type") {
            "" => {
                required(errors, &format!("{path}.type"), "must specify a metric source type");
                continue;
            }
            "ContainerResource" => "containerResource",
            "External" => "external",
            "Object" => "object",
            "Pods" => "pods",
            "Resource" => "resource",
            other => {
                let known = &["ContainerResource", "External", "Object", "Pods", "Resource"];
                one_of(errors, &format!("{path}.type"), other, known);
                continue;
            }
        };
        if at(metric, source).is_none() {
            let detail = "must populate information for the given metric source";
            required(errors, &format!("{path}.{source}"), detail);
        }
    }
    if least == Some(0)
        && !list(spec, "metrics").iter().any(|metric| matches!(text(metric, "type"), "Object" | "External"))
    {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        forbidden(errors, "spec.metrics", detail);
    }
}

pub(super) fn disruption_budget(errors: &mut Errors, object: &Value) {
    let spec = at(object, "spec").unwrap_or(NOTHING);
    let (least, most) = (at(spec, "minAvailable"), at(spec, "maxUnavailable"));
    if least.is_some() && most.is_some() {
        invalid(errors, "spec", spec.clone(), "minAvailable and maxUnavailable cannot be both set");
    }
    count_or_percent(errors, "spec.minAvailable", least);
    count_or_percent(errors, "spec.maxUnavailable", most);
    let policies = &["AlwaysAllow", "IfHealthyBudget"];
    let policy = text(spec, "unhealthyPodEvictionPolicy");
    one_of(errors, "spec.unhealthyPodEvictionPolicy", policy, policies);
    if let Some(known) = at(spec, "selector") {
        selector(errors, "spec.selector", known);
    }
}
