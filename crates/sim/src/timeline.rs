//! What happened in a world, as a person reads it.

use jiff::Timestamp;
use serde_json::Value;

use crate::checker::{Change, Entry, HookCall};
use crate::course::About;

/// One line for everything worth one, in order.
pub(crate) fn tell(
    entries: &[Entry],
    notes: &[(Timestamp, About, String)],
    calls: &[HookCall],
) -> Vec<String> {
    let mut lines: Vec<(Timestamp, String)> =
        notes.iter().map(|(at, _, note)| (*at, format!("--- {note}"))).collect();
    for call in calls {
        let named = format!("hook     {} of phase {} [{:.8}]", call.name, call.phase + 1, call.key);
        lines.push((call.at, format!("{named} is called")));
        lines.extend(call.passed.map(|at| (at, format!("{named} has passed"))));
    }
    let mut last = std::collections::BTreeMap::new();
    for entry in entries {
        let words = words(entry);
        let key = (entry.cluster.clone(), entry.resource.clone(), entry.name.clone());
        // The same words again tell nothing.
        if !words.is_empty() && last.insert(key, words.clone()).as_ref() != Some(&words) {
            let kind = entry.resource.split('.').next().unwrap_or_default();
            lines.push((entry.at, format!("{:8} {kind} {} {words}", entry.cluster, entry.name)));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(at, line)| format!("{} {line}", at.strftime("%H:%M:%S%.3f"))).collect()
}

fn words(entry: &Entry) -> String {
    if entry.change == Change::Deleted {
        return "is gone".to_owned();
    }
    let object = &entry.object;
    let going = if object["metadata"]["deletionTimestamp"].is_null() { "" } else { "GOING " };
    let words = match &*entry.resource {
        "applications.argoproj.io" => application(object),
        "applicationsets.argoproj.io" => set(object),
        "deployments.apps" => {
            let image = text(object, "/spec/template/spec/containers/0/image");
            let ready = object.pointer("/status/availableReplicas").and_then(Value::as_i64).unwrap_or(0);
            format!("{} ready {ready}", image.rsplit(':').next().unwrap_or_default())
        }
        "configmaps" if entry.name.ends_with(".baton-rollout") => head(object),
        "configmaps" => text(object, "/data/shown").to_owned(),
        _ => String::new(),
    };
    format!("{going}{words}")
}

fn application(app: &Value) -> String {
    let annotation = |name: &str| app["metadata"]["annotations"][name].as_str().unwrap_or_default();
    let stamp = annotation("baton.dev/pin");
    let stamp: Vec<&str> = stamp.split('/').skip(1).collect();
    let operation = match app["operation"].is_null() {
        true => String::new(),
        false => format!(" OPERATION {:.7}", text(app, "/operation/sync/revision")),
    };
    let refresh = if annotation("argocd.argoproj.io/refresh").is_empty() { "" } else { " refresh?" };
    let waits = match text(app, "/status/operationState/phase") {
        "Succeeded" => "",
        _ => text(app, "/status/operationState/message"),
    };
    let owners = app.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owners: String =
        owners.into_iter().flatten().filter_map(|owner| text(owner, "/kind").chars().next()).collect();
    format!(
        "{} {} {} {:.7} {} op={} [{}]{operation}{refresh} {owners} {waits}",
        text(app, "/metadata/labels/tier"),
        text(app, "/spec/source/path"),
        text(app, "/status/sync/status"),
        text(app, "/status/sync/revision"),
        text(app, "/status/health/status"),
        text(app, "/status/operationState/phase"),
        stamp.join("/"),
    )
}

fn set(set: &Value) -> String {
    let rollout = &set["status"]["rollout"];
    let blockers = rollout["blockers"].as_array().into_iter().flatten();
    let blockers: Vec<String> = blockers
        .map(|blocker| format!("{}({})", text(blocker, "/reason"), text(blocker, "/object")))
        .collect();
    let errors = set.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors
        .filter(|condition| {
            text(condition, "/type") == "ErrorOccurred" && text(condition, "/status") == "True"
        })
        .map(|condition| text(condition, "/message"))
        .collect();
    let deletion = match &rollout["deletion"] {
        Value::Null => String::new(),
        deletion => format!(" {} {deletion}", text(set, "/spec/strategy/deletionOrder")),
    };
    let (run, state, step) = (&rollout["run"], &rollout["state"], &rollout["step"]);
    format!("run {run} {state} step {step} {blockers:?} {errors:?}{deletion}{}", phases(set))
}

/// What is told of phases: each with its state, what was done about its failure, and its Applications.
fn phases(set: &Value) -> String {
    let generators = set.pointer("/status/phases").and_then(Value::as_array).into_iter().flatten();
    let phase = |phase: &Value| {
        let entries = phase["applications"].as_array().into_iter().flatten();
        let entries: Vec<String> =
            entries.map(|entry| format!("{}:{}", text(entry, "/name"), text(entry, "/state"))).collect();
        let failure = match text(phase, "/failure/reason") {
            "" => String::new(),
            reason => format!(" {reason} -> {}", text(phase, "/failure/action")),
        };
        format!("{} {}{failure} ({})", text(phase, "/name"), text(phase, "/state"), entries.join(" "))
    };
    let generator = |generator: &Value| {
        let phases: Vec<String> = generator["phases"].as_array().into_iter().flatten().map(phase).collect();
        format!(
            " PHASES {:.12} {}: {}",
            text(generator, "/rolloutID"),
            generator["currentPhase"],
            phases.join(", ")
        )
    };
    generators.map(generator).collect()
}

fn head(head: &Value) -> String {
    let run: Value = serde_json::from_str(text(head, "/data/run")).unwrap_or(Value::Null);
    let rows: Vec<&str> = text(head, "/data/apps.00000").lines().collect();
    let rows: Vec<String> =
        rows.iter().map(|row| row.split(' ').skip(2).take(2).collect::<Vec<_>>().join(":")).collect();
    format!("head seq {} open {} {}", run["seq"], run["open"], rows.join(" "))
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
