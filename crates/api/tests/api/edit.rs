//! An edit changes what was changed and leaves alone what this version does not know.

use std::collections::HashSet;

use baton_api::edit::{EditError, difference, edit};
use baton_api::operation::{Operation, SyncOperation};
use baton_api::source::Source;
use baton_api::{Application, ApplicationSet};
use baton_schema::patch::merge;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schemas::{document, fullest_object};

fn application() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": { "name": "a", "annotations": { "k": "v" } },
        "spec": {
            "project": "default",
            "destination": { "server": "s", "futureZone": "z" },
            "sources": [
                { "repoURL": "one", "path": "p", "future": 1 },
                { "repoURL": "two", "path": "q", "helm": { "valueFiles": ["v"], "future": 2 } },
            ],
            "syncPolicy": { "automated": { "prune": true, "future": true } },
            "futureField": { "x": [] },
        },
    })
}

fn change(raw: &Value, change: impl FnOnce(&mut Application)) -> Option<Value> {
    edit(raw, change).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn no_change_is_no_patch() {
    assert_eq!(change(&application(), |_| {}), None);
}

#[test]
fn a_patch_holds_only_what_changed() {
    let patch = change(&application(), |app| {
        app.spec.project = "team".into();
        app.metadata.annotations.get_or_insert_default().insert("baton.dev/pin".into(), "p".into());
        let sync = SyncOperation { revision: "abc".into(), ..Default::default() };
        app.operation = Some(Operation { sync: Some(sync), ..Default::default() });
    });
    let expected = json!({
        "metadata": { "annotations": { "baton.dev/pin": "p" } },
        "spec": { "project": "team" },
        "operation": { "sync": { "revision": "abc" } },
    });
    assert_eq!(patch, Some(expected));
}

#[test]
fn what_is_removed_goes_whole() {
    let patch = change(&application(), |app| {
        app.metadata.annotations.get_or_insert_default().remove("k");
        app.spec.sync_policy.get_or_insert_default().automated = None;
    });
    let expected = json!({
        "metadata": { "annotations": { "k": null } },
        "spec": { "syncPolicy": { "automated": null } },
    });
    assert_eq!(patch, Some(expected));
}

#[test]
fn a_changed_element_keeps_its_unknown_fields() {
    let raw = application();
    let patch = change(&raw, |app| app.spec.sources[1].target_revision = "v2".into()).unwrap_or_default();
    let after = merge(&raw, &patch);
    let expected = json!([
        { "repoURL": "one", "path": "p", "future": 1 },
        { "repoURL": "two", "path": "q", "targetRevision": "v2", "helm": { "valueFiles": ["v"], "future": 2 } },
    ]);
    assert_eq!(after["spec"]["sources"], expected);
}

#[test]
fn elements_keep_their_unknown_fields_when_they_move() {
    let raw = application();
    let patch = change(&raw, |app| {
        app.spec.sources.insert(0, Source { repo_url: "zero".into(), ..Default::default() });
        app.spec.sources.swap(1, 2);
        app.spec.sources[1].target_revision = "v2".into();
    });
    let after = merge(&raw, &patch.unwrap_or_default());
    let expected = json!([
        { "repoURL": "zero" },
        { "repoURL": "two", "path": "q", "targetRevision": "v2", "helm": { "valueFiles": ["v"], "future": 2 } },
        { "repoURL": "one", "path": "p", "future": 1 },
    ]);
    assert_eq!(after["spec"]["sources"], expected);
}

#[test]
fn a_removed_element_takes_only_its_own_unknown_fields() {
    let raw = application();
    let patch = change(&raw, |app| drop(app.spec.sources.remove(0)));
    let after = merge(&raw, &patch.unwrap_or_default());
    assert_eq!(after["spec"]["sources"], json!([raw["spec"]["sources"][1]]));
}

#[test]
fn elements_without_a_key_are_matched_by_place() {
    let raw = json!({
        "metadata": {},
        "spec": {
            "generators": [],
            "template": {},
            "strategy": { "rollingSync": { "steps": [
                { "maxUpdate": 1, "future": "first" },
                { "maxUpdate": 2, "future": "second" },
            ] } },
        },
    });
    let patch = edit(&raw, |set: &mut ApplicationSet| {
        if let Some(rolling) = set.spec.strategy.as_mut().and_then(|strategy| strategy.rolling_sync.as_mut())
        {
            rolling.steps[1].wait_duration = Some("5m".into());
        }
    });
    let expected = json!({ "spec": { "strategy": { "rollingSync": { "steps": [
        { "maxUpdate": 1, "future": "first" },
        { "maxUpdate": 2, "waitDuration": "5m", "future": "second" },
    ] } } } });
    assert_eq!(patch.unwrap_or_else(|error| panic!("{error}")), Some(expected));
}

#[test]
fn what_is_not_an_application_is_refused() {
    let result = edit(&json!({ "spec": "none" }), |_: &mut Application| {});
    assert!(matches!(result, Err(EditError::Read(_))), "{result:?}");
}

/// Puts a field no version knows into some of the objects whose fields the schema lists; into others any field is known.
fn sprinkle(
    value: &mut Value,
    schema: &Value,
    places: &mut impl Iterator<Item = bool>,
    path: &str,
    sprinkled: &mut Vec<Value>,
) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields.iter_mut() {
                let schema = schema["properties"].get(name).unwrap_or(&Value::Null);
                sprinkle(inner, schema, places, &format!("{path}/{name}"), sprinkled);
            }
            if schema["properties"].is_object() && places.next() == Some(true) {
                let unknown = json!({ "at": path });
                fields.insert("unknownToUs".into(), unknown.clone());
                sprinkled.push(unknown);
            }
        }
        Value::Array(elements) => {
            for (at, inner) in elements.iter_mut().enumerate() {
                sprinkle(inner, &schema["items"], places, &format!("{path}/{at}"), sprinkled);
            }
        }
        _ => {}
    }
}

/// Gives every list of objects a second element that differs from the first.
fn double_lists(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(double_lists),
        Value::Array(elements) => {
            elements.iter_mut().for_each(double_lists);
            if let Some(first) = elements.first().filter(|first| first.is_object()) {
                let mut second = first.clone();
                reword(&mut second);
                elements.push(second);
            }
        }
        _ => {}
    }
}

fn reword(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(reword),
        Value::Array(elements) => elements.iter_mut().for_each(reword),
        Value::String(text) if text.starts_with("text") => text.push_str("-2"),
        Value::Number(_) => *value = json!(8),
        _ => {}
    }
}

fn edits() -> Vec<fn(&mut Application)> {
    vec![
        |app| app.spec.project = "other".into(),
        |app| app.spec.destination.namespace = "moved".into(),
        |app| app.spec.sources.push(Source { repo_url: "new".into(), ..Default::default() }),
        |app| app.spec.sources.insert(0, Source { repo_url: "new".into(), ..Default::default() }),
        |app| app.spec.sources.reverse(),
        |app| app.status.history.reverse(),
        |app| app.status.resources.rotate_left(1),
        |app| app.spec.sources.iter_mut().for_each(|source| source.target_revision = "v2".into()),
        |app| app.status.resources.iter_mut().for_each(|resource| resource.sync_wave += 1),
        |app| app.status.conditions.iter_mut().for_each(|condition| condition.message.push('!')),
        |app| app.status.sync.revision = "abc".into(),
        |app| app.status.sync.compared_to.sources.iter_mut().for_each(|source| source.chart.clear()),
        |app| {
            let labels = app.metadata.labels.get_or_insert_default();
            labels.insert("baton.dev/x".into(), "y".into());
        },
        |app| {
            for source in &mut app.spec.sources {
                let parameters = source.helm.iter_mut().flat_map(|helm| &mut helm.parameters);
                parameters.for_each(|parameter| parameter.value = "changed".into());
            }
        },
        |app| {
            let state = app.status.operation_state.get_or_insert_default();
            state.retry_count += 1;
            state.message = "again".into();
        },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_unknown_field_stays(
        pattern in any::<u64>(),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let mut raw = fullest_object("Application");
        double_lists(&mut raw);
        let mut sprinkled = Vec::new();
        let mut places = (0..).map(|place: u32| pattern.rotate_right(place) & 1 == 1);
        sprinkle(&mut raw, document("Application"), &mut places, "", &mut sprinkled);
        let edits = edits();
        let chosen: Vec<fn(&mut Application)> = chosen.iter().map(|index| *index.get(&edits)).collect();

        let mut wanted: Application = serde_json::from_value(raw.clone()).expect("a full object is read");
        chosen.iter().for_each(|edit| edit(&mut wanted));
        let patch = edit(&raw, |app: &mut Application| chosen.iter().for_each(|edit| edit(app)));
        let after = merge(&raw, &patch.expect("a full object can be edited").unwrap_or(json!({})));

        let kept: HashSet<String> = unknown_values(&after).iter().map(Value::to_string).collect();
        for unknown in &sprinkled {
            prop_assert!(kept.contains(&unknown.to_string()), "the field beside {unknown} is lost");
        }
        let seen: Application = serde_json::from_value(after).expect("a patched object is read");
        prop_assert!(seen == wanted, "the edit did not take effect");
    }
}

fn unknown_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(fields) => {
            let here = fields.get("unknownToUs").cloned();
            here.into_iter().chain(fields.values().flat_map(unknown_values)).collect()
        }
        Value::Array(elements) => elements.iter().flat_map(unknown_values).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_patch_between_two_objects_holds_only_what_differs() {
    let before = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
    let after = json!({"a": 1, "b": {"c": 4}, "e": [1, 2], "f": "new"});
    assert_eq!(difference(&before, &after), json!({"b": {"c": 4, "d": null}, "e": [1, 2], "f": "new"}));
    assert_eq!(difference(&before, &before), json!({}));
}
