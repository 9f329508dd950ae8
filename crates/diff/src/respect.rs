//! `RespectIgnoreDifferences=true`: a target that leaves alone what does not count.

use std::collections::BTreeMap;

use baton_grammar::jq::{Step, remove};
use serde_json::{Map, Value};

use crate::fields::{Fields, Part, entries};
use crate::items::{Identity, Items};
use crate::rules::Rules;
use crate::takeover::joined;

/// The prepared target with the live values of all that does not count, except for the status.
///
/// A field that is not there is left out of the target; one that only the live object has is added, so that neither
/// replacing the object nor dropping the field from what we own removes it. Fields of trusted managers take their live
/// values where the target states them.
pub fn respect(target: &Value, live: &Value, rules: &Rules) -> Value {
    let concerning = rules.concerning(live);
    // Whoever owns an item of a list tells what identifies it.
    let shape =
        Fields::of_object(&joined(entries(live))).map(|fields| Shape::of(&fields)).unwrap_or_default();
    let mut result = target.clone();
    // Later elements of a list go first, so that the places of earlier ones stay what they are.
    for path in concerning.paths(target).iter().rev() {
        match counterpart(&shape, target, live, path) {
            Some(value) => put(&mut result, path, value.clone()),
            None => remove(&mut result, path),
        }
    }
    for path in concerning.paths(live) {
        add(&shape, &mut result, live, &path);
    }
    for entry in entries(live).filter(|entry| concerning.trusts(entry.manager())) {
        give_way(&entry.fields().unwrap_or_default(), &mut result, live);
    }
    result
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

/// What a path of the target leads to in the live object.
fn counterpart<'a>(shape: &Shape, target: &Value, live: &'a Value, path: &[Step]) -> Option<&'a Value> {
    let nothing = Shape::default();
    let (mut here, mut there, mut shape) = (target, live, shape);
    for step in path {
        match step {
            Step::Field(name) => {
                here = here.as_object()?.get(name)?;
                there = there.as_object()?.get(name)?;
                shape = shape.field(name).unwrap_or(&nothing);
            }
            Step::Element(index) => {
                let (from, to) = (here.as_array()?, there.as_array()?);
                let place = same_item(shape.identity.as_ref(), from, *index, to)?;
                here = from.get(*index)?;
                there = to.get(place)?;
                shape = shape.item(there).unwrap_or(&nothing);
            }
        }
    }
    Some(there)
}

/// Adds to an object what a path of the live object leads to, where the object lacks it.
fn add(shape: &Shape, object: &mut Value, live: &Value, path: &[Step]) {
    let Some((last, parents)) = path.split_last() else { return };
    let nothing = Shape::default();
    let (mut here, mut there, mut shape) = (object, live, shape);
    for step in parents {
        let next = match (step, here, there) {
            (Step::Field(name), Value::Object(here), Value::Object(there)) => {
                let Some(below) = there.get(name) else { return };
                let empty =
                    if below.is_array() { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
                Some((here.entry(name.clone()).or_insert(empty), below, shape.field(name)))
            }
            (Step::Element(index), Value::Array(here), Value::Array(there)) => {
                let place = same_item(shape.identity.as_ref(), there, *index, here);
                let both = place.and_then(|place| here.get_mut(place)).zip(there.get(*index));
                both.map(|(here, there)| (here, there, shape.item(there)))
            }
            _ => None,
        };
        let Some((place, below, fields)) = next else { return };
        (here, there, shape) = (place, below, fields.unwrap_or(&nothing));
    }
    match (last, here, there) {
        (Step::Field(name), Value::Object(here), Value::Object(there)) => {
            if let (false, Some(value)) = (here.contains_key(name), there.get(name)) {
                here.insert(name.clone(), value.clone());
            }
        }
        (Step::Element(index), Value::Array(here), Value::Array(there)) => {
            if let (None, Some(value)) =
                (same_item(shape.identity.as_ref(), there, *index, here), there.get(*index))
            {
                here.push(value.clone());
            }
        }
        _ => {}
    }
}

/// Where an item of one list stands in another: told by its keys, else by its name, else by the same place in a list as
/// long. The same place is looked at first, so that lists that are alike take no search.
fn same_item(identity: Option<&Identity>, from: &[Value], index: usize, to: &[Value]) -> Option<usize> {
    let item = from.get(index)?;
    let is_same = |other: &Value| match identity {
        Some(Identity::Value) => other == item,
        Some(Identity::Keys(names)) => has_keys_of(names, item, other),
        None => other.get("name") == item.get("name"),
    };
    if identity.is_none() && item.get("name").is_none() {
        return (from.len() == to.len()).then_some(index);
    }
    if to.get(index).is_some_and(is_same) {
        return Some(index);
    }
    let mut found = to.iter().enumerate().filter(|(_, other)| is_same(other));
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Some(place),
        _ => None,
    }
}

/// Whether two items have the same keys, as far as both state them: a target may leave one to its default.
fn has_keys_of(names: &[String], one: &Value, other: &Value) -> bool {
    let mut stated = names.iter().filter_map(|name| one.get(name).zip(other.get(name))).peekable();
    stated.peek().is_some() && stated.all(|(one, other)| one == other)
}

/// What identifies the items of an object's lists.
#[derive(Debug, Default)]
struct Shape {
    identity: Option<Identity>,
    fields: BTreeMap<String, Shape>,
    items: BTreeMap<String, Shape>,
}

impl Shape {
    fn of(fields: &Fields) -> Shape {
        let mut shape = Shape { identity: Identity::of(&fields.parts), ..Shape::default() };
        for (part, below) in &fields.parts {
            match (part, &shape.identity) {
                (Part::Field(name), _) => drop(shape.fields.insert(name.clone(), Shape::of(below))),
                (_, Some(identity)) => drop(shape.items.insert(identity.of_part(part), Shape::of(below))),
                _ => {}
            }
        }
        shape
    }

    fn field(&self, name: &str) -> Option<&Shape> {
        self.fields.get(name)
    }

    fn item(&self, item: &Value) -> Option<&Shape> {
        self.items.get(&self.identity.as_ref()?.of_item(item))
    }
}

/// Gives stated fields that are in the set their live values.
fn give_way(fields: &Fields, target: &mut Value, live: &Value) {
    if fields.is_leaf() {
        *target = live.clone();
        return;
    }
    match (target, live) {
        (Value::Object(target), Value::Object(live)) => {
            for (name, below) in fields.named().unwrap_or_default() {
                if let (Some(target), Some(live)) = (target.get_mut(name), live.get(name)) {
                    give_way(below, target, live);
                }
            }
        }
        (Value::Array(target), Value::Array(live)) => {
            let Some(identity) = Identity::of(&fields.parts) else { return };
            let items = Items::new(live, &identity);
            for (part, below) in &fields.parts {
                let &[found] = items.places(&identity.of_part(part)) else { continue };
                if let Some(place) = same_item(Some(&identity), live, found, target) {
                    give_way(below, &mut target[place], &live[found]);
                }
            }
        }
        _ => {}
    }
}
