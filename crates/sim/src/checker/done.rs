//! Whether an Application is what it is to be, by its own words and by the truth of its member.

use jiff::Timestamp;
use serde_json::Value;

use super::history::{History, Version};
use super::wanted::APPS;
use super::{Case, is_null, text};

/// Whether, between a time and a place in the history, an Application was done at a specification and a revision.
pub(super) fn was_done(
    case: &Case<'_>,
    history: &History<'_>,
    (name, spec, revision): (&str, &Value, &str),
    (from, before): (Timestamp, usize),
) -> Result<(), String> {
    let states = history.states(("control", APPS, name), from, before);
    let newest = states.first().map(|version| why_not(&version.entry.object, spec, revision));
    let mut untrue = None;
    for version in &states {
        if why_not(&version.entry.object, spec, revision).is_none() {
            match truth(case, history, name, (spec, revision), version) {
                Ok(()) => return Ok(()),
                Err(why) => untrue = Some(why),
            }
        }
    }
    Err(match (untrue, newest) {
        (Some(untrue), _) => format!("it says it is, but {untrue}"),
        (None, Some(Some(why))) => why,
        _ => "it is not there".to_owned(),
    })
}

/// What keeps an Application from being done at a specification and a revision, by its own words.
pub(super) fn why_not(app: &Value, spec: &Value, revision: &str) -> Option<String> {
    let sync = &app["status"]["sync"];
    let phase = text(app, "/status/operationState/phase");
    let checks = [
        (is_null(app, "/metadata/deletionTimestamp"), "it is being deleted".to_owned()),
        (comparable(&app["spec"]) == comparable(spec), "its specification is another".to_owned()),
        (
            same_source(&sync["comparedTo"], spec),
            format!("it was compared to {}", sync["comparedTo"]["source"]["path"]),
        ),
        (text(sync, "/status") == "Synced", format!("it is {}", text(sync, "/status"))),
        (text(sync, "/revision") == revision, format!("it is at {:.7}", text(sync, "/revision"))),
        (
            text(app, "/status/health/status") == "Healthy",
            format!("it is {}", text(app, "/status/health/status")),
        ),
        (is_null(app, "/operation"), "an operation waits".to_owned()),
        (!matches!(phase, "Running" | "Terminating"), format!("its operation is {phase}")),
    ];
    checks.into_iter().find(|(good, _)| !good).map(|(_, why)| why)
}

/// A specification without automatic sync and without what says nothing.
pub(super) fn comparable(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(policy) = spec["syncPolicy"].as_object_mut() {
        policy.remove("automated");
        policy.retain(|_, value| !is_empty(value));
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !is_empty(value));
    }
    spec
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn same_source(compared: &Value, spec: &Value) -> bool {
    compared["source"] == spec["source"] && compared["destination"] == spec["destination"]
}

/// Whether the member had the content, and it was ready, shortly before an Application said so.
fn truth(
    case: &Case<'_>,
    history: &History<'_>,
    name: &str,
    (spec, revision): (&Value, &str),
    said: &Version<'_>,
) -> Result<(), String> {
    let directory = text(spec, "/source/path");
    let Some(shown) = case.git.contents.get(revision).and_then(|files| files.get(directory)) else {
        return Err(format!("git has no {directory} at {revision:.7}"));
    };
    let server = text(spec, "/destination/server");
    let member = case.members.get(server).ok_or_else(|| format!("{server} is no member"))?;
    let from = said.entry.at - case.slack;
    // What was written at the same moment may stand after it.
    let same = history.entries[said.place..].iter().take_while(|entry| entry.at <= said.entry.at).count();
    let before = said.place + same;
    let ever = |resource: &str, holds: &dyn Fn(&Value) -> bool| {
        history.states((member, resource, name), from, before).iter().any(|v| holds(&v.entry.object))
    };
    if !ever("configmaps", &|map| text(map, "/data/shown") == shown) {
        return Err(format!("{member} does not show {shown}"));
    }
    let image = format!("example.com/app:{shown}");
    let ready = |deployment: &Value| {
        text(deployment, "/spec/template/spec/containers/0/image") == image && is_ready(deployment)
    };
    match ever("deployments.apps", &ready) {
        true => Ok(()),
        false => Err(format!("no pod of {shown} is ready in {member}")),
    }
}

fn is_ready(deployment: &Value) -> bool {
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    number("/status/observedGeneration") == number("/metadata/generation")
        && number("/status/updatedReplicas") >= 1
        && number("/status/availableReplicas") >= 1
        && number("/status/replicas") == number("/status/updatedReplicas")
}
