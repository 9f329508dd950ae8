//! What holds for any schema, any object and any configuration.

use std::sync::Arc;

use baton_schema::apply::{ApplyError, Writer, apply, track_update};
use baton_schema::{Additional, Kind, ListKind, Reader, Schema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NAMES: [&str; 5] = ["a", "b", "c", "name", "spec"];

/// Schemas over a few names, with every kind of list and map.
fn schemas() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "integer" })),
        Just(json!({ "x-kubernetes-int-or-string": true })),
        Just(json!({ "x-kubernetes-preserve-unknown-fields": true })),
        Just(json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })),
        Just(json!({ "type": "string", "nullable": true, "default": "d" })),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        let fields = prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), inner.clone(), 0..4);
        prop_oneof![
            (fields.clone(), any::<bool>()).prop_map(|(fields, atomic)| {
                let kind = if atomic { "atomic" } else { "granular" };
                json!({ "type": "object", "properties": fields, "x-kubernetes-map-type": kind })
            }),
            inner.clone().prop_map(|values| json!({ "type": "object", "additionalProperties": values })),
            inner.prop_map(|items| json!({ "type": "array", "items": items })),
            Just(json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } })),
            fields.prop_map(|fields| json!({
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "b"],
                "items": { "type": "object", "properties": fields }
            })),
        ]
    })
}

/// Any JSON, mostly over the names the schemas know.
fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3i64).prop_map(Value::from),
        Just(json!(1.5)),
        prop::sample::select(vec!["", "x", "y", "$patch", "<&>"]).prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), inner, 0..4)
                .prop_map(|fields| json!(fields)),
        ]
    })
}

fn read(document: &Value) -> Arc<Schema> {
    let whole = json!({ "type": "object", "properties": { "spec": document } });
    Reader::standalone().read(&whole).expect("generated schemas are readable")
}

fn object(spec: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "T", "metadata": { "name": "x", "uid": "u" }, "spec": spec })
}

fn writer(manager: &str) -> Writer<'_> {
    Writer { manager, api_version: "v1", time: "2026-01-01T00:00:00Z", ..Writer::default() }
}

/// Grows a value of the schema out of dice.
fn grow(schema: &Schema, dice: &mut impl Iterator<Item = u8>) -> Value {
    let mut roll = |sides: u8| dice.next().unwrap_or(0) % sides;
    if schema.nullable && roll(4) == 0 {
        return Value::Null;
    }
    match schema.kind {
        Some(Kind::String) => json!(["x", "y", "<&>"][usize::from(roll(3))]),
        Some(Kind::Object) if schema.preserve_unknown => match roll(3) {
            0 => json!({}),
            1 => json!({ "a": { "b": roll(2) } }),
            _ => json!({ "a": roll(2), "c": [roll(2)] }),
        },
        Some(Kind::Object) => {
            let mut fields = Map::new();
            for name in NAMES {
                let field = match (schema.properties.get(name), &schema.additional) {
                    (Some(known), _) => known,
                    (None, Additional::Typed(values)) => values,
                    _ => continue,
                };
                if !dice.next().unwrap_or(0).is_multiple_of(3) {
                    fields.insert(name.to_owned(), grow(field, dice));
                }
            }
            Value::Object(fields)
        }
        Some(Kind::Array) => {
            let Some(item) = &schema.items else { return json!([]) };
            let length = roll(4);
            let mut items: Vec<Value> = Vec::new();
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..length {
                let mut value = grow(item, dice);
                let identity = match &schema.list {
                    ListKind::Atomic => items.len().to_string(),
                    ListKind::Set => value.to_string(),
                    ListKind::Map(_) => {
                        let Some(name) = item.properties.get("name") else { continue };
                        if value.get("name").is_none() {
                            value["name"] = grow(name, dice);
                        }
                        let second =
                            value.get("b").or(item.properties.get("b").and_then(|b| b.default.as_ref()));
                        format!("{} {}", value["name"], second.unwrap_or(&Value::Null))
                    }
                };
                if seen.insert(identity) {
                    items.push(value);
                }
            }
            Value::Array(items)
        }
        _ => json!(roll(2)),
    }
}

/// A schema with three objects that fit it.
fn cases() -> impl Strategy<Value = (Arc<Schema>, Vec<Value>)> {
    let fields = prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), schemas(), 2..6);
    (fields, prop::collection::vec(prop::collection::vec(any::<u8>(), 150), 3)).prop_map(|(fields, dice)| {
        let schema = read(&json!({ "type": "object", "properties": fields }));
        let spec = schema.properties["spec"].clone();
        let objects = dice.into_iter().map(|dice| object(&grow(&spec, &mut dice.into_iter()))).collect();
        (schema, objects)
    })
}

/// A live object two managers have written.
fn live(schema: &Schema, objects: &[Value]) -> Value {
    let mut live = objects[0].clone();
    track_update(schema, None, &mut live, &writer("creator"));
    match apply(schema, Some(&live), &objects[1], &writer("other"), true) {
        Ok(object) => object,
        Err(ApplyError::Invalid(_)) => live,
        Err(error) => panic!("forced applies do not conflict: {error}"),
    }
}

/// Whether everything in the configuration is in the object; lists only by their elements.
fn holds(object: &Value, config: &Value) -> bool {
    match (object, config) {
        (Value::Object(object), Value::Object(config)) => config.iter().all(|(name, value)| {
            // Null says nothing about what is inside.
            value.is_null() || object.get(name).is_some_and(|found| holds(found, value))
        }),
        (Value::Array(object), Value::Array(config)) => {
            config.iter().all(|item| object.iter().any(|found| holds(found, item)))
        }
        (object, config) => object == config,
    }
}

/// Whether the manager's fields reach into everything the configuration sets.
fn owns(fields: &Map<String, Value>, config: &Map<String, Value>) -> bool {
    config.iter().all(|(name, value)| {
        let Some(Value::Object(below)) = fields.get(&format!("f:{name}")) else {
            return !has_something_to_own(value);
        };
        match value {
            Value::Object(value) if !below.is_empty() => owns(below, value),
            _ => true,
        }
    })
}

/// An empty keyed list has nothing to own, nor has what holds nothing else.
fn has_something_to_own(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields.is_empty() || fields.values().any(has_something_to_own),
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(document in schemas(), a in values(), b in values(), c in values(), force in any::<bool>()) {
        let schema = read(&document);
        for live in [a.clone(), object(&a)] {
            let mut after = object(&b);
            track_update(&schema, Some(&live), &mut after, &writer("u"));
            track_update(&schema, None, &mut b.clone(), &writer("u"));
            for config in [c.clone(), object(&c)] {
                let _ = apply(&schema, Some(&after), &config, &writer("m"), force);
                let _ = apply(&schema, Some(&live), &config, &writer("kubectl"), force);
            }
        }
    }

    #[test]
    fn nothing_panics_on_any_managed_fields(document in schemas(), a in values(), fields in values()) {
        let schema = read(&document);
        let mut before = object(&a);
        before["metadata"]["managedFields"] = json!([{
            "manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields
        }]);
        let mut after = before.clone();
        track_update(&schema, Some(&before), &mut after, &writer("u"));
        let _ = apply(&schema, Some(&before), &object(&a), &writer("m"), true);
    }

    #[test]
    fn applying_twice_is_applying_once((schema, objects) in cases()) {
        let live = live(&schema, &objects);
        if let Ok(once) = apply(&schema, Some(&live), &objects[2], &writer("me"), true) {
            let later = Writer { time: "2027-01-01T00:00:00Z", ..writer("me") };
            let twice = apply(&schema, Some(&once), &objects[2], &later, false);
            prop_assert_eq!(twice, Ok(once));
        }
    }

    #[test]
    fn force_always_succeeds_and_the_configuration_is_in_the_object_and_owned((schema, objects) in cases()) {
        let live = live(&schema, &objects);
        match apply(&schema, Some(&live), &objects[2], &writer("me"), true) {
            Ok(object) => {
                prop_assert!(holds(&object["spec"], &objects[2]["spec"]), "{} lacks {}", object, objects[2]);
                let entries = object["metadata"]["managedFields"].as_array().expect("somebody owns something");
                let mine = entries.iter().find(|entry| entry["manager"] == "me");
                let mine = mine.and_then(|entry| entry["fieldsV1"]["f:spec"].as_object());
                if let (Some(mine), Some(spec)) = (mine, objects[2]["spec"].as_object()) {
                    prop_assert!(mine.is_empty() || owns(mine, spec), "{:?} does not own {:?}", mine, spec);
                }
            }
            Err(error) => prop_assert!(matches!(error, ApplyError::Invalid(_)), "{error}"),
        }
    }

    #[test]
    fn bookkeeping_survives_being_read_and_written((schema, objects) in cases()) {
        let live = live(&schema, &objects);
        let mut again = live.clone();
        track_update(&schema, Some(&live), &mut again, &writer("idle"));
        prop_assert_eq!(again, live);
    }

    #[test]
    fn an_update_owns_no_more_than_what_it_changed((schema, objects) in cases()) {
        let live = live(&schema, &objects);
        let mut after = live.clone();
        after["metadata"]["labels"] = json!({ "new": "label" });
        track_update(&schema, Some(&live), &mut after, &writer("labeller"));
        let entries = after["metadata"]["managedFields"].as_array().expect("entries");
        let mine = entries.iter().find(|entry| entry["manager"] == "labeller").expect("an entry");
        prop_assert_eq!(&mine["fieldsV1"], &json!({ "f:metadata": { "f:labels": { ".": {}, "f:new": {} } } }));
    }
}
