//! Nodes, what happens on them, and how much of them may be used.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Row;
use super::selectors::or_none;
use crate::age::since;
use crate::lookup::{at, fields, flag, int, list, text};

pub(super) fn node(row: Row<'_>) -> Vec<Value> {
    let info = at(row.object, "status.nodeInfo").unwrap_or(&Value::Null);
    let known = |field: &str| match text(info, field) {
        "" => "<unknown>".to_owned(),
        text => text.to_owned(),
    };
    let mut kernel = known("kernelVersion");
    if !text(info, "architecture").is_empty() {
        kernel = format!("{kernel} ({})", text(info, "architecture"));
    }
    vec![
        row.name(),
        node_status(row.object).into(),
        or_none(roles(row.object)),
        row.age(),
        text(info, "kubeletVersion").into(),
        address(row.object, "InternalIP"),
        address(row.object, "ExternalIP"),
        known("osImage").into(),
        kernel.into(),
        known("containerRuntimeVersion").into(),
    ]
}

fn node_status(node: &Value) -> String {
    let ready = list(node, "status.conditions").iter().find(|condition| text(condition, "type") == "Ready");
    let status = match ready.map(|condition| text(condition, "status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    let disabled = if flag(node, "spec.unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{status}{disabled}")
}

fn roles(node: &Value) -> String {
    const PREFIX: &str = "node-role.kubernetes.io/";
    let roles: BTreeSet<&str> = fields(node, "metadata.labels")
        .into_iter()
        .flatten()
        .filter_map(|(label, value)| match label.strip_prefix(PREFIX) {
            Some(role) => Some(role),
            None if label == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address(node: &Value, kind: &str) -> Value {
    let found = list(node, "status.addresses").iter().find(|address| text(address, "type") == kind);
    or_none(found.map(|address| text(address, "address").to_owned()).unwrap_or_default())
}

pub(super) fn event(row: Row<'_>) -> Vec<Value> {
    let time = |path| at(row.object, path);
    let first = since(time("firstTimestamp").or(time("eventTime")), row.now);
    let (last, count) = match at(row.object, "series") {
        Some(series) => (since(at(series, "lastObservedTime"), row.now), int(series, "count").unwrap_or(0)),
        None => {
            let last = time("lastTimestamp").map_or_else(|| first.clone(), |last| since(Some(last), row.now));
            (last, row.int("count").max(1))
        }
    };
    let object = at(row.object, "involvedObject").unwrap_or(&Value::Null);
    let kind = text(object, "kind").to_lowercase();
    let target = match text(object, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.into(),
        row.text("type"),
        row.text("reason"),
        target.into(),
        text(object, "fieldPath").into(),
        source(row.object).into(),
        text(row.object, "message").trim().into(),
        first.into(),
        count.into(),
        row.name(),
    ]
}

fn source(event: &Value) -> String {
    let either = |first: &str, second: &str| match text(event, first) {
        "" => text(event, second).to_owned(),
        text => text.to_owned(),
    };
    let component = either("source.component", "reportingComponent");
    let instance = either("source.host", "reportingInstance");
    if instance.is_empty() { component } else { format!("{component}, {instance}") }
}

pub(super) fn quota(row: Row<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let written = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("0").to_owned();
    let hard: std::collections::BTreeMap<&String, &Value> =
        fields(row.object, "status.hard").into_iter().flatten().collect();
    let used = at(row.object, "status.used");
    for (name, hard) in hard {
        let used = written(used.and_then(|used| used.get(name)));
        let column = if name.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{name}: {used}/{}", written(Some(hard))));
    }
    vec![row.name(), requests.join(", ").into(), limits.join(", ").into(), row.age()]
}
