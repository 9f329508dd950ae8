//! Changes by field managers that are trusted: theirs do not count where they differ.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::items::Identity;

/// Takes out of both objects what is in the set and differs between them.
pub(crate) fn forgive(fields: &Fields, live: &mut Value, predicted: &mut Value) {
    match (live, predicted) {
        (Value::Object(live), Value::Object(predicted)) => forgive_fields(fields, live, predicted),
        (Value::Array(live), Value::Array(predicted)) => forgive_items(fields, live, predicted),
        _ => {}
    }
}

fn forgive_fields(fields: &Fields, live: &mut Map<String, Value>, predicted: &mut Map<String, Value>) {
    for (name, below) in fields.named().unwrap_or_default() {
        match (live.get_mut(name), predicted.get_mut(name)) {
            (Some(found), Some(wanted)) if below.is_leaf() && found != wanted => {
                live.remove(name);
                predicted.remove(name);
            }
            (Some(found), Some(wanted)) => forgive(below, found, wanted),
            (Some(_), None) if below.itself => drop(live.remove(name)),
            _ => {}
        }
    }
}

fn forgive_items(fields: &Fields, live: &mut Vec<Value>, predicted: &mut [Value]) {
    let Some(identity) = Identity::of(&fields.parts) else { return };
    let place = |list: &[Value]| -> BTreeMap<String, usize> {
        list.iter().enumerate().map(|(place, item)| (identity.of_item(item), place)).collect()
    };
    let (found, wanted) = (place(live), place(predicted));
    let mut gone = HashSet::new();
    for (part, below) in &fields.parts {
        let id = identity.of_part(part);
        match (found.get(&id), wanted.get(&id)) {
            (Some(found), Some(wanted)) => forgive(below, &mut live[*found], &mut predicted[*wanted]),
            (Some(found), None) if below.itself => drop(gone.insert(*found)),
            _ => {}
        }
    }
    let mut place = 0;
    live.retain(|_| {
        place += 1;
        !gone.contains(&(place - 1))
    });
}
