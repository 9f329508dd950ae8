//! Controllers of Pods, and what scales and guards them.

use serde_json::Value;

use super::Row;
use super::pods::containers;
use super::selectors::{labels, or_none, selector};
use crate::age::{human_age, moment};
use crate::lookup::{at, int, list, text};

const TEMPLATE: &str = "spec.template.spec.containers";

pub(super) fn deployment(row: Row<'_>) -> Vec<Value> {
    let (names, images) = containers(row.object, TEMPLATE);
    vec![
        row.name(),
        format!("{}/{}", row.int("status.readyReplicas"), row.int("spec.replicas")).into(),
        row.int("status.updatedReplicas").into(),
        row.int("status.availableReplicas").into(),
        row.age(),
        names,
        images,
        selector(row.object, "spec.selector"),
    ]
}

pub(super) fn replica_set(row: Row<'_>) -> Vec<Value> {
    let (names, images) = containers(row.object, TEMPLATE);
    // A ReplicationController's selector is a plain map.
    let plain = text(row.object, "kind") == "ReplicationController";
    vec![
        row.name(),
        row.int("spec.replicas").into(),
        row.int("status.replicas").into(),
        row.int("status.readyReplicas").into(),
        row.age(),
        names,
        images,
        if plain { labels(row.object, "spec.selector") } else { selector(row.object, "spec.selector") },
    ]
}

pub(super) fn stateful_set(row: Row<'_>) -> Vec<Value> {
    let (names, images) = containers(row.object, TEMPLATE);
    let ready = format!("{}/{}", row.int("status.readyReplicas"), row.int("spec.replicas"));
    vec![row.name(), ready.into(), row.age(), names, images]
}

pub(super) fn daemon_set(row: Row<'_>) -> Vec<Value> {
    let (names, images) = containers(row.object, TEMPLATE);
    vec![
        row.name(),
        row.int("status.desiredNumberScheduled").into(),
        row.int("status.currentNumberScheduled").into(),
        row.int("status.numberReady").into(),
        row.int("status.updatedNumberScheduled").into(),
        row.int("status.numberAvailable").into(),
        labels(row.object, "spec.template.spec.nodeSelector"),
        row.age(),
        names,
        images,
        selector(row.object, "spec.selector"),
    ]
}

pub(super) fn revision(row: Row<'_>) -> Vec<Value> {
    let owners = list(row.object, "metadata.ownerReferences");
    let owner = owners.iter().find(|owner| at(owner, "controller") == Some(&Value::Bool(true)));
    let controller = owner.map(|owner| {
        let kind = text(owner, "kind").to_lowercase();
        match text(owner, "apiVersion").split_once('/') {
            Some((group, _)) => format!("{kind}.{group}/{}", text(owner, "name")),
            None => format!("{kind}/{}", text(owner, "name")),
        }
    });
    vec![row.name(), or_none(controller.unwrap_or_default()), row.int("revision").into(), row.age()]
}

pub(super) fn job(row: Row<'_>) -> Vec<Value> {
    let (names, images) = containers(row.object, TEMPLATE);
    let succeeded = row.int("status.succeeded");
    let completions = match (int(row.object, "spec.completions"), row.int("spec.parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, 2..) => format!("{succeeded}/1 of {}", row.int("spec.parallelism")),
        (None, _) => format!("{succeeded}/1"),
    };
    let time = |path| at(row.object, path).and_then(moment);
    let duration = match (time("status.startTime"), time("status.completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => human_age(start, end.unwrap_or(row.now)),
    };
    vec![
        row.name(),
        job_status(row).into(),
        completions.into(),
        duration.into(),
        row.age(),
        names,
        images,
        selector(row.object, "spec.selector"),
    ]
}

fn job_status(row: Row<'_>) -> &'static str {
    let holds = |name: &str| {
        list(row.object, "status.conditions")
            .iter()
            .any(|condition| text(condition, "type") == name && text(condition, "status") == "True")
    };
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if row.deleted() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

pub(super) fn cron_job(row: Row<'_>) -> Vec<Value> {
    let (names, images) = containers(row.object, "spec.jobTemplate.spec.template.spec.containers");
    let suspended = match at(row.object, "spec.suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = match at(row.object, "status.lastScheduleTime") {
        Some(_) => row.since("status.lastScheduleTime"),
        None => "<none>".into(),
    };
    vec![
        row.name(),
        row.text("spec.schedule"),
        row.text_or("spec.timeZone", "<none>"),
        suspended.into(),
        row.length("status.active").into(),
        last,
        row.age(),
        names,
        images,
        selector(row.object, "spec.jobTemplate.spec.selector"),
    ]
}

pub(super) fn disruption_budget(row: Row<'_>) -> Vec<Value> {
    let amount = |path| match at(row.object, path) {
        Some(Value::String(text)) => text.clone().into(),
        Some(Value::Number(number)) => number.to_string().into(),
        _ => Value::from("N/A"),
    };
    vec![
        row.name(),
        amount("spec.minAvailable"),
        amount("spec.maxUnavailable"),
        row.int("status.disruptionsAllowed").into(),
        row.age(),
    ]
}

pub(super) fn autoscaler(row: Row<'_>) -> Vec<Value> {
    let target = at(row.object, "spec.scaleTargetRef").unwrap_or(&Value::Null);
    let least = int(row.object, "spec.minReplicas").map_or("<unset>".to_owned(), |least| least.to_string());
    vec![
        row.name(),
        format!("{}/{}", text(target, "kind"), text(target, "name")).into(),
        metrics(row.object).into(),
        least.into(),
        row.int("spec.maxReplicas").into(),
        row.int("status.currentReplicas").into(),
        row.age(),
    ]
}

fn metrics(object: &Value) -> String {
    const MOST: usize = 2;
    let wanted = list(object, "spec.metrics");
    let measured = list(object, "status.currentMetrics");
    if wanted.is_empty() {
        return "<none>".to_owned();
    }
    let all: Vec<String> = wanted
        .iter()
        .enumerate()
        .map(|(place, metric)| one_metric(metric, measured.get(place).unwrap_or(&Value::Null)))
        .collect();
    let shown = all.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if all.len() > MOST { format!("{shown} + {} more...", all.len() - MOST) } else { shown }
}

fn one_metric(wanted: &Value, measured: &Value) -> String {
    let kind = text(wanted, "type");
    let source = match kind {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |field: &str| at(wanted, &format!("{source}.target.{field}"));
    let current = |field: &str| at(measured, &format!("{source}.current.{field}"));
    let written = |value: Option<&Value>, absent: &str| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => absent.to_owned(),
    };
    let percent = |value: Option<&Value>, absent: &str| match value.and_then(Value::as_i64) {
        Some(number) => format!("{number}%"),
        None => absent.to_owned(),
    };
    let average = || {
        format!("{}/{}", written(current("averageValue"), "<unknown>"), written(target("averageValue"), "0"))
    };
    match kind {
        "Resource" | "ContainerResource" => {
            let name = text(wanted, &format!("{source}.name"));
            if target("averageValue").is_some() {
                return format!("{name}: {}", average());
            }
            let (now, goal) = (current("averageUtilization"), target("averageUtilization"));
            format!("{name}: {}/{}", percent(now, "<unknown>"), percent(goal, "<auto>"))
        }
        "Pods" => average(),
        _ if target("averageValue").is_some() => format!("{} (avg)", average()),
        _ => format!("{}/{}", written(current("value"), "<unknown>"), written(target("value"), "0")),
    }
}
