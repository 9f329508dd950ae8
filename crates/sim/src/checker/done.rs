//! Whether an Application is what it is to be, by its own words and by the truth of its member.

use jiff::Timestamp;
use serde_json::Value;

use super::history::{History, Version};
use super::sources::{Accepted, accepts, revisions, short, sources};
use super::starts::stamp_of;
use super::wanted::APPS;
use super::{Case, Git, Shown, is_null, text};

/// Whether, between a time and a place in the history, an Application was done at a specification and commits.
pub(super) fn was_done(
    case: &Case<'_>,
    history: &History<'_>,
    (name, spec, accepted): (&str, &Value, &Accepted<'_>),
    (from, before): (Timestamp, usize),
) -> Result<(), String> {
    let states = history.states(("control", APPS, name), from, before);
    let newest = states.first().map(|version| why_not(case.git, &version.entry.object, spec, accepted));
    let mut untrue = None;
    for version in &states {
        if why_not(case.git, &version.entry.object, spec, accepted).is_none() {
            match truth(case, history, spec, version) {
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

/// Whether an Application failed between a time and a place. What a rollout began and somebody cut down counts too.
pub(super) fn has_failed(history: &History<'_>, name: &str, from: Timestamp, before: usize) -> bool {
    let states = history.states(("control", APPS, name), from, before);
    states.iter().any(|version| {
        let app = &version.entry.object;
        let operation = &app["status"]["operationState"]["operation"];
        matches!(text(app, "/status/operationState/phase"), "Failed" | "Error")
            || text(app, "/status/health/status") == "Degraded"
            || (stamp_of(operation).is_some() && !is_null(operation, "/sync/resources"))
    })
}

/// What keeps an Application from being done at a specification and commits, by its own words.
pub(super) fn why_not(git: &Git, app: &Value, spec: &Value, accepted: &Accepted<'_>) -> Option<String> {
    let sync = &app["status"]["sync"];
    let phase = text(app, "/status/operationState/phase");
    let checks = [
        (is_null(app, "/metadata/deletionTimestamp"), "it is being deleted".to_owned()),
        (comparable(&app["spec"]) == comparable(spec), "its specification is another".to_owned()),
        (
            same_source(&sync["comparedTo"], spec),
            format!("it was compared to {}", compared_to(&sync["comparedTo"])),
        ),
        (text(sync, "/status") == "Synced", format!("it is {}", text(sync, "/status"))),
        (accepts(accepted, &git.commits(sync)), format!("it is at {}", short(&revisions(sync)))),
        (
            text(app, "/status/health/status") == "Healthy",
            format!("it is {}", text(app, "/status/health/status")),
        ),
        (is_null(app, "/operation"), "an operation waits".to_owned()),
        (!matches!(phase, "Running" | "Terminating"), format!("its operation is {phase}")),
    ];
    checks.into_iter().find(|(good, _)| !good).map(|(_, why)| why)
}

/// A specification without automatic sync, without what says nothing, and without what a webhook adds.
pub(super) fn comparable(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("info");
    }
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
    // What says nothing is told as an empty source by some.
    let source =
        |object: &Value| if is_empty(&object["source"]) { Value::Null } else { object["source"].clone() };
    (source(compared) == source(spec) || !spec["sources"].is_null())
        && compared["sources"] == spec["sources"]
        && compared["destination"] == spec["destination"]
}

fn compared_to(compared: &Value) -> String {
    sources(compared).iter().map(|source| source.directory).collect::<Vec<_>>().join(", ")
}

/// Whether the member had the content, and it was ready, shortly before an Application said so.
fn truth(case: &Case<'_>, history: &History<'_>, spec: &Value, said: &Version<'_>) -> Result<(), String> {
    let server = text(spec, "/destination/server");
    let member = case.members.get(server).ok_or_else(|| format!("{server} is no member"))?;
    let from = said.entry.at - case.slack;
    // What was written at the same moment may stand after it.
    let same = history.entries[said.place..].iter().take_while(|entry| entry.at <= said.entry.at).count();
    let before = said.place + same;
    let ever = |resource: &str, name: &str, holds: &dyn Fn(&Value) -> bool| {
        history.states((member, resource, name), from, before).iter().any(|v| holds(&v.entry.object))
    };
    let reported = case.git.commits(&said.entry.object["status"]["sync"]);
    for (source, commit) in sources(spec).iter().zip(reported) {
        let directory = source.directory;
        let Some(shown) = case.git.contents.get(commit).and_then(|files| files.get(directory)) else {
            return Err(format!("git has no {directory} at {commit:.7}"));
        };
        let Shown { object, text: words, workload } = shown;
        if !ever("configmaps", object, &|map| text(map, "/data/shown") == words) {
            return Err(format!("{member} does not show {words}"));
        }
        let image = format!("example.com/app:{words}");
        let ready = |deployment: &Value| {
            text(deployment, "/spec/template/spec/containers/0/image") == image && is_ready(deployment)
        };
        if *workload && !ever("deployments.apps", object, &ready) {
            return Err(format!("no pod of {words} is ready in {member}"));
        }
    }
    Ok(())
}

fn is_ready(deployment: &Value) -> bool {
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    number("/status/observedGeneration") == number("/metadata/generation")
        && number("/status/updatedReplicas") >= 1
        && number("/status/availableReplicas") >= 1
        && number("/status/replicas") == number("/status/updatedReplicas")
}
