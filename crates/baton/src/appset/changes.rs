//! What becomes of an Application: the difference between the wanted one and the one that is there, in fields.

use baton_api::Application;
use baton_api::application::ApplicationSpec;
use baton_api::application_status::{ApplicationStatus, SyncCode};
use baton_api::names::{DEFAULT_PROJECT, baton};
use baton_controllers::IgnoreRules;
use baton_rollout::plan::Change;
use serde_json::Value;

/// What becomes of `live` where `wanted` is to take its place. `ignored` are the fields that the set leaves alone,
/// `update` says whether its policy lets an Application be changed at all.
///
/// # Errors
/// If one of them is no Application.
pub(super) fn change(
    wanted: &Value,
    live: &Value,
    ignored: &IgnoreRules,
    update: bool,
) -> Result<Change, String> {
    let wanted: Application = read(wanted, ignored)?;
    let live: Application = read(live, ignored)?;
    if update {
        let (before, after) = (comparable(&live.spec), comparable(&wanted.spec));
        let mut fields = Vec::new();
        differing("", &before, &after, &mut fields);
        if !fields.is_empty() {
            return Ok(match fields.iter().all(|field| field.ends_with("targetRevision")) {
                true => Change::Revision { from: targets(&live.spec), to: targets(&wanted.spec) },
                false => Change::Spec { fields },
            });
        }
    }
    if live.status.sync.status == SyncCode::OutOfSync {
        let (from, to) = (deployed(&live.status), reported(&live.status));
        return Ok(if from == to { Change::Drift } else { Change::Revision { from, to } });
    }
    let fields = if update { metadata(&live, &wanted) } else { Vec::new() };
    Ok(if fields.is_empty() { Change::Unchanged } else { Change::Metadata { fields } })
}

fn read(object: &Value, ignored: &IgnoreRules) -> Result<Application, String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let mut reduced = object.clone();
    ignored.apply(name, &mut reduced);
    serde_json::from_value(reduced).map_err(|error| format!("Application {name:?} cannot be read: {error}"))
}

/// A specification without differences that have no meaning, and without automatic sync, which an order switches off.
fn comparable(spec: &ApplicationSpec) -> Value {
    let mut spec = spec.clone();
    if spec.project.is_empty() {
        spec.project = DEFAULT_PROJECT.to_owned();
    }
    if let Some(policy) = &mut spec.sync_policy {
        policy.automated = None;
    }
    spec.sync_policy.take_if(|policy| *policy == Default::default());
    serde_json::to_value(&spec).unwrap_or_default()
}

/// The paths of fields that differ, as `source.helm.values`.
fn differing(path: &str, before: &Value, after: &Value, fields: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let side =
                    |fields: &serde_json::Map<String, Value>| fields.get(key).cloned().unwrap_or_default();
                differing(&below, &side(old), &side(new), fields);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                differing(&format!("{path}[{at}]"), old, new, fields);
            }
        }
        (old, new) if old != new => fields.push(path.to_owned()),
        _ => {}
    }
}

/// Labels, annotations and finalizers that are written. What people added to the live one is left alone here, since
/// only some of it goes.
fn metadata(live: &Application, wanted: &Application) -> Vec<String> {
    let mut fields = Vec::new();
    for (kind, old, new) in [
        ("labels", &live.metadata.labels, &wanted.metadata.labels),
        ("annotations", &live.metadata.annotations, &wanted.metadata.annotations),
    ] {
        for (key, value) in new.iter().flatten().filter(|(key, _)| !key.starts_with(baton::PREFIX)) {
            if old.as_ref().and_then(|old| old.get(key)) != Some(value) {
                fields.push(format!("{kind}.{key}"));
            }
        }
    }
    let has = live.metadata.finalizers.as_deref().unwrap_or_default();
    if wanted.metadata.finalizers.iter().flatten().any(|finalizer| !has.contains(finalizer)) {
        fields.push("finalizers".to_owned());
    }
    fields
}

fn targets(spec: &ApplicationSpec) -> Vec<String> {
    let head = |target: &str| if target.is_empty() { "HEAD".to_owned() } else { target.to_owned() };
    spec.effective_sources().iter().map(|source| head(&source.target_revision)).collect()
}

/// Revisions of the last sync that is remembered.
fn deployed(status: &ApplicationStatus) -> Vec<String> {
    let last = status.history.last();
    last.map(|last| either(&last.revisions, &last.revision)).unwrap_or_default()
}

fn reported(status: &ApplicationStatus) -> Vec<String> {
    either(&status.sync.revisions, &status.sync.revision)
}

/// Those of several sources, or that of one.
fn either(several: &[String], one: &str) -> Vec<String> {
    match several.is_empty() {
        true => vec![short(one)],
        false => several.iter().map(|revision| short(revision)).collect(),
    }
}

/// A commit as people read it; anything else as it is.
pub(super) fn short(revision: &str) -> String {
    let commit = revision.len() >= 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if commit { revision[..7].to_owned() } else { revision.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn application(spec: Value, status: Value) -> Value {
        let mut whole = json!({
            "metadata": {"name": "web", "labels": {"env": "dev"}},
            "spec": {"destination": {"name": "dev"}, "project": "default",
                     "source": {"repoURL": "https://git.example.com/web.git", "targetRevision": "main", "path": "web"}},
            "status": status,
        });
        json_patch(&mut whole["spec"], spec);
        whole
    }

    fn json_patch(into: &mut Value, from: Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => from
                .into_iter()
                .for_each(|(key, value)| json_patch(into.entry(key).or_insert(Value::Null), value)),
            (into, from) => *into = from,
        }
    }

    #[test]
    fn a_change_is_told_by_what_it_is_about() {
        let none = IgnoreRules::default();
        let old = application(json!({}), json!({}));
        let commit = |letter: &str| letter.repeat(40);
        let behind = json!({
            "sync": {"status": "OutOfSync", "revision": commit("b")}, "history": [{"revision": commit("a")}],
        });
        let drifted = json!({
            "sync": {"status": "OutOfSync", "revision": commit("a")}, "history": [{"revision": commit("a")}],
        });
        let fields = |all: &[&str]| all.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
        let revision = |from: &str, to: &str| Change::Revision { from: fields(&[from]), to: fields(&[to]) };
        for (wanted, live, expected) in [
            (json!({}), old.clone(), Change::Unchanged),
            (json!({"project": ""}), old.clone(), Change::Unchanged),
            (json!({"syncPolicy": {"automated": {"prune": true}}}), old.clone(), Change::Unchanged),
            (json!({"source": {"targetRevision": "v2"}}), old.clone(), revision("main", "v2")),
            (
                json!({"source": {"targetRevision": "v2", "path": "x", "helm": {"values": "a: 1"}}}),
                old.clone(),
                Change::Spec { fields: fields(&["source.helm", "source.path", "source.targetRevision"]) },
            ),
            (json!({}), application(json!({}), behind), revision("aaaaaaa", "bbbbbbb")),
            (json!({}), application(json!({}), drifted), Change::Drift),
        ] {
            let wanted = application(wanted, json!({}));
            assert_eq!(change(&wanted, &live, &none, true), Ok(expected), "{wanted}");
        }
        let mut relabelled = old.clone();
        relabelled["metadata"]["labels"]["env"] = json!("prod");
        assert_eq!(
            change(&relabelled, &old, &none, true),
            Ok(Change::Metadata { fields: fields(&["labels.env"]) })
        );
        assert_eq!(change(&relabelled, &old, &none, false), Ok(Change::Unchanged), "a policy forbids it");
        assert!(change(&json!({"spec": 1}), &old, &none, true).is_err());
        let rules = serde_json::from_value::<Vec<_>>(json!([{"jsonPointers": ["/spec/source/path"]}]));
        let ignored = IgnoreRules::read(&rules.expect("rules")).expect("rules");
        let moved = application(json!({"source": {"path": "elsewhere"}}), json!({}));
        assert_eq!(change(&moved, &old, &ignored, true), Ok(Change::Unchanged), "the set leaves it alone");
    }
}
