//! Server-side apply: several managers write one object in turns.

use std::collections::BTreeSet;

use baton_schema::apply::{ApplyError, Writer, apply as lay, track_update};
use baton_schema::{Schema, type_errors};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::templates::{self, OBJECTS};
use crate::values;

const MANAGERS: [&str; 4] = ["kubectl", "helm", "argocd", "éditeur"];

/// Whatever the managers write, the bookkeeping stays readable, a repeated apply changes nothing, force wins, and a
/// manager that applies nothing owns nothing.
pub fn apply(bytes: &[u8]) {
    let mut dice = Dice::new(bytes);
    let template = dice.pick(&OBJECTS).clone();
    let text = |name: &str| template[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let Some(schema) = templates::schema(api_version, kind) else { return };

    let mut live: Option<Value> = None;
    for _ in 0..8 {
        let mut object = templates::object(&mut dice, api_version, kind);
        for _ in 0..dice.below(3) {
            values::damage(&mut dice, &mut object);
        }
        let manager = *dice.pick(&MANAGERS);
        let writer = Writer { manager, api_version, time: "2026-01-01T00:00:00Z", ..Writer::default() };
        let next = match dice.one_in(3) {
            true => updated(&schema, live.as_ref(), object, &writer),
            false => applied(&schema, live.as_ref(), &object, &writer, dice.one_in(2)),
        };
        if let Some(next) = next {
            check_bookkeeping(&schema, &next);
            live = Some(next);
        }
        if dice.is_empty() {
            break;
        }
    }
}

/// An update as the API server makes one: only of what decodes, with the uid of the stored object.
fn updated(schema: &Schema, live: Option<&Value>, mut object: Value, writer: &Writer<'_>) -> Option<Value> {
    if !object["metadata"].is_object() || type_errors(schema, &object).is_some() {
        return None;
    }
    object["metadata"]["uid"] = json!("u");
    track_update(schema, live, &mut object, writer);
    Some(object)
}

fn applied(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Option<Value> {
    let outcome = match lay(schema, live, config, writer, force) {
        Ok(outcome) => outcome,
        Err(ApplyError::Conflicts(conflicts)) => {
            assert!(!force, "force does not conflict: {conflicts:?}");
            assert!(!conflicts.is_empty());
            return None;
        }
        Err(_) => return None,
    };
    if entries(&outcome).next().is_none() {
        return Some(outcome); // The next apply takes it for an object from before there was any bookkeeping.
    }
    let later = Writer { time: "2027-01-01T00:00:00Z", ..*writer };
    let again = |object: &Value| lay(schema, Some(object), config, &later, false);
    let second = match again(&outcome) {
        Ok(second) => second,
        Err(error) => panic!("applied again: {error}: {config}"),
    };
    // An empty list that replaces a full one goes with its elements, and comes back when applied again. That is so on
    // a real server, too; it is settled then.
    assert!(second == outcome || has_hollow(config), "applied again: {config}: {outcome} became {second}");
    assert_eq!(again(&second).as_ref(), Ok(&second), "applied a third time: {config}");

    let nothing = json!({
        "apiVersion": config["apiVersion"], "kind": config["kind"], "metadata": { "name": config["metadata"]["name"] },
    });
    if let Ok(bare) = lay(schema, Some(&outcome), &nothing, &later, true) {
        let mine =
            entries(&bare).find(|entry| entry["manager"] == writer.manager && entry["operation"] == "Apply");
        assert_eq!(mine, None, "who applies nothing owns nothing");
    }
    Some(outcome)
}

fn check_bookkeeping(schema: &Schema, object: &Value) {
    let mut seen = BTreeSet::new();
    for entry in entries(object) {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        assert!(matches!(text("operation").as_str(), "Apply" | "Update"), "{entry}");
        assert_eq!(entry["fieldsType"], "FieldsV1");
        assert!(entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()), "{entry}");
        let identity = [text("manager"), text("operation"), text("apiVersion"), text("subresource")];
        assert!(seen.insert(identity), "two entries of one manager: {object}");
    }
    let again: Value = serde_json::from_str(&object.to_string()).expect("what was written is JSON");
    assert_eq!(&again, object);
    let mut idle = object.clone();
    let writer =
        Writer { manager: "idle", api_version: "v1", time: "2028-01-01T00:00:00Z", ..Writer::default() };
    track_update(schema, Some(object), &mut idle, &writer);
    assert_eq!(&idle, object, "a write that changes nothing");
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["managedFields"].as_array().into_iter().flatten()
}

/// Whether there is null, or a list or an object with nothing in it.
fn has_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty() || items.iter().any(has_hollow),
        Value::Object(fields) => fields.is_empty() || fields.values().any(has_hollow),
        _ => false,
    }
}
