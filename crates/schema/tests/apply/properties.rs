//! What holds for any schema, any object and any configuration.

use std::sync::Arc;

use baton_schema::apply::{ApplyError, Writer, apply, track_update};
use baton_schema::{Reader, Schema};
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

/// A value of the schema made from any value: what does not fit is left out.
fn fitted(schema: &Schema, value: &Value) -> Value {
    use baton_schema::{Additional, Kind, ListKind};
    let empty = match (schema.kind, schema.int_or_string) {
        (_, true) => json!(1),
        (Some(Kind::Object), _) => json!({}),
        (Some(Kind::Array), _) => json!([]),
        (Some(Kind::String), _) => json!("x"),
        (Some(_), _) => json!(1),
        (None, _) => return value.clone(),
    };
    match (schema.kind, value) {
        (Some(Kind::Object), Value::Object(fields)) => {
            let field = |name: &String| match (schema.properties.get(name), &schema.additional) {
                (Some(known), _) => Some(known.clone()),
                (None, Additional::Typed(values)) => Some(values.clone()),
                _ => None,
            };
            let open = schema.preserve_unknown;
            let kept = fields.iter().filter_map(|(name, value)| match field(name) {
                Some(schema) => Some((name.clone(), fitted(&schema, value))),
                None => open.then(|| (name.clone(), value.clone())),
            });
            Value::Object(kept.collect())
        }
        (Some(Kind::Array), Value::Array(items)) => {
            let Some(item) = &schema.items else { return empty };
            let mut fit: Vec<Value> = Vec::new();
            let mut seen = std::collections::BTreeSet::new();
            for value in items {
                let mut value = fitted(item, value);
                let identity = match &schema.list {
                    ListKind::Atomic => fit.len().to_string(),
                    ListKind::Set => value.to_string(),
                    ListKind::Map(_) => {
                        // A key must have one, and it may be of any type the schema gives it.
                        let name = item
                            .properties
                            .get("name")
                            .map_or(json!("x"), |name| fitted(name, &value["name"]));
                        if !item.properties.contains_key("name") || !value.is_object() {
                            continue;
                        }
                        value["name"] = name;
                        format!(
                            "{} {}",
                            value["name"],
                            value.get("b").or(default_of(item, "b")).unwrap_or(&Value::Null)
                        )
                    }
                };
                if seen.insert(identity) {
                    fit.push(value);
                }
            }
            Value::Array(fit)
        }
        (Some(Kind::String), Value::String(_)) | (Some(Kind::Integer), Value::Number(_)) => value.clone(),
        _ => empty,
    }
}

fn default_of<'s>(schema: &'s Schema, name: &str) -> Option<&'s Value> {
    schema.properties.get(name)?.default.as_ref()
}

/// A configuration that fits, over whatever else is in the pot.
fn cases() -> impl Strategy<Value = (Arc<Schema>, Vec<Value>)> {
    (schemas(), prop::collection::vec(values(), 3)).prop_map(|(document, values)| {
        let schema = read(&document);
        let spec = schema.properties["spec"].clone();
        (schema, values.iter().map(|value| object(&fitted(&spec, value))).collect())
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
            // An empty keyed list has nothing to own.
            return value.as_array().is_some_and(Vec::is_empty);
        };
        match value {
            Value::Object(value) if !below.is_empty() => owns(below, value),
            _ => true,
        }
    })
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
