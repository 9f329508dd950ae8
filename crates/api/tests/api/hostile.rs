//! No JSON value makes reading panic, and what is read can be written and read again.

use baton_api::{AppProject, Application, ApplicationSet};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::schemas::fullest_object;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("2026-01-02T03:04:05Z")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,6}", inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    })
}

/// A full object with some values replaced: close enough to a real one to reach every reader.
fn damaged(kind: &'static str) -> impl Strategy<Value = Value> {
    let holes = prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..4);
    holes.prop_map(move |holes| {
        let mut object = fullest_object(kind);
        let mut places = Vec::new();
        pointers(&object, String::new(), &mut places);
        for (place, value) in holes {
            if let Some(hole) = object.pointer_mut(place.get(&places[..]).as_str()) {
                *hole = value;
            }
        }
        object
    })
}

fn pointers(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                pointers(value, format!("{at}/{name}"), places);
            }
        }
        Value::Array(elements) => {
            for (place, value) in elements.iter().enumerate() {
                pointers(value, format!("{at}/{place}"), places);
            }
        }
        _ => {}
    }
    places.push(at);
}

/// If the value can be read, writing it is a fixed point.
fn settles<T: Serialize + DeserializeOwned + PartialEq>(value: &Value) -> bool {
    let Ok(once) = T::deserialize(value) else { return true };
    let written = serde_json::to_value(&once).expect("what was read can be written");
    let again = T::deserialize(&written).expect("what was written can be read");
    serde_json::to_value(&again).expect("what was read can be written") == written
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_is_read_or_refused(value in any_json()) {
        prop_assert!(settles::<Application>(&value));
        prop_assert!(settles::<ApplicationSet>(&value));
        prop_assert!(settles::<AppProject>(&value));
    }

    #[test]
    fn a_damaged_application_is_read_or_refused(value in damaged("Application")) {
        prop_assert!(settles::<Application>(&value));
    }

    #[test]
    fn a_damaged_project_is_read_or_refused(value in damaged("AppProject")) {
        prop_assert!(settles::<AppProject>(&value));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_application_set_is_read_or_refused(value in damaged("ApplicationSet")) {
        prop_assert!(settles::<ApplicationSet>(&value));
    }
}
