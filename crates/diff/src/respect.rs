//! `RespectIgnoreDifferences=true`: a target that leaves alone what does not count.

use baton_grammar::jq::{Step, remove};
use serde_json::{Map, Value};

use crate::fields::{Fields, entries};
use crate::items::Identity;
use crate::rules::Rules;

/// The target with the live values of all that does not count, except for the status.
///
/// A field that is not there is left out of the target; one that only the live object has is added, so that neither
/// replacing the object nor dropping the field from what we own removes it. Fields of trusted managers take their live
/// values where the target states them.
pub fn respect(target: &Value, live: &Value, rules: &Rules) -> Value {
    let concerning = rules.concerning(live);
    let mut result = target.clone();
    // Later elements of a list go first, so that the places of earlier ones stay what they are.
    for path in concerning.paths(target).iter().rev() {
        match find(&result, path).and_then(|_| counterpart(target, live, path)) {
            Some(value) => put(&mut result, path, value.clone()),
            None => remove(&mut result, path),
        }
    }
    for path in concerning.paths(live) {
        add(&mut result, live, &path);
    }
    for entry in entries(live).filter(|entry| concerning.trusts(entry.manager())) {
        yield_to(&entry.fields().unwrap_or_default(), &mut result, live);
    }
    result
}

fn find<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(object, |place, step| match step {
        Step::Field(name) => place.as_object()?.get(name),
        Step::Element(index) => place.as_array()?.get(*index),
    })
}

fn put(object: &mut Value, path: &[Step], value: Value) {
    let place = path.iter().try_fold(object, |place, step| match step {
        Step::Field(name) => place.as_object_mut()?.get_mut(name),
        Step::Element(index) => place.as_array_mut()?.get_mut(*index),
    });
    if let Some(place) = place {
        *place = value;
    }
}

/// What a path of one object leads to in another.
fn counterpart<'a>(from: &Value, to: &'a Value, path: &[Step]) -> Option<&'a Value> {
    let (mut here, mut there) = (from, to);
    for step in path {
        match step {
            Step::Field(name) => {
                here = here.as_object()?.get(name)?;
                there = there.as_object()?.get(name)?;
            }
            Step::Element(index) => {
                let (from, to) = (here.as_array()?, there.as_array()?);
                here = from.get(*index)?;
                there = to.get(same_item(from, *index, to)?)?;
            }
        }
    }
    Some(there)
}

/// Where the item of one list stands in another: by its name or key, or in the same place of a list as long.
fn same_item(from: &[Value], index: usize, to: &[Value]) -> Option<usize> {
    let item = from.get(index)?;
    for key in ["name", "key", "mountPath", "containerPort", "port", "ip", "type", "uid"] {
        if let Some(id) = item.get(key) {
            let mut found = to.iter().enumerate().filter(|(_, other)| other.get(key) == Some(id));
            return match (found.next(), found.next()) {
                (Some((place, _)), None) => Some(place),
                _ => None,
            };
        }
    }
    if item.is_object() || item.is_array() {
        return (from.len() == to.len()).then_some(index);
    }
    to.iter().position(|other| other == item).or((from.len() == to.len()).then_some(index))
}

/// Adds to an object what a path of the live object leads to, where the object lacks it.
fn add(object: &mut Value, live: &Value, path: &[Step]) {
    let Some((last, parents)) = path.split_last() else { return };
    let (mut here, mut there) = (object, live);
    for step in parents {
        let next = match (step, here, there) {
            (Step::Field(name), Value::Object(here), Value::Object(there)) => {
                let Some(below) = there.get(name) else { return };
                let empty =
                    if below.is_array() { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
                Some((here.entry(name.clone()).or_insert(empty), below))
            }
            (Step::Element(index), Value::Array(here), Value::Array(there)) => {
                let place = same_item(there, *index, here);
                place.and_then(|place| here.get_mut(place)).zip(there.get(*index))
            }
            _ => None,
        };
        let Some((place, below)) = next else { return };
        (here, there) = (place, below);
    }
    match (last, here, there) {
        (Step::Field(name), Value::Object(here), Value::Object(there)) => {
            if let (false, Some(value)) = (here.contains_key(name), there.get(name)) {
                here.insert(name.clone(), value.clone());
            }
        }
        (Step::Element(index), Value::Array(here), Value::Array(there)) => {
            if let (None, Some(value)) = (same_item(there, *index, here), there.get(*index)) {
                here.push(value.clone());
            }
        }
        _ => {}
    }
}

/// Gives stated fields that are in the set their live values.
fn yield_to(fields: &Fields, target: &mut Value, live: &Value) {
    if fields.is_leaf() {
        *target = live.clone();
        return;
    }
    match (target, live) {
        (Value::Object(target), Value::Object(live)) => {
            for (name, below) in fields.named().unwrap_or_default() {
                if let (Some(target), Some(live)) = (target.get_mut(name), live.get(name)) {
                    yield_to(below, target, live);
                }
            }
        }
        (Value::Array(target), Value::Array(live)) => {
            let Some(identity) = Identity::of(&fields.parts) else { return };
            for (part, below) in &fields.parts {
                let id = identity.of_part(part);
                let found = live.iter().position(|item| identity.of_item(item) == id);
                let place = found.and_then(|found| Some((same_item(live, found, target)?, found)));
                if let Some((place, found)) = place {
                    yield_to(below, &mut target[place], &live[found]);
                }
            }
        }
        _ => {}
    }
}
