//! Lays an applied configuration over the live object, and takes fields out of an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::compare::is_hollow;
use super::element::Element;
use super::set::Set;
use super::typed::{Shape, Type};

/// The live object with the configuration's fields set.
pub(crate) fn merge(ty: Type<'_>, live: &Value, config: &Value) -> Value {
    let shape = ty.shape(config);
    if config.is_null() && !is_hollow(live) && !matches!(ty.shape(live), Shape::Leaf) {
        // Null claims the field but has nothing to say about what is inside.
        return live.clone();
    }
    if !shape.alike(&ty.shape(live)) {
        return config.clone();
    }
    match (shape, live, config) {
        (Shape::Map, Value::Object(live), Value::Object(config)) => {
            let mut merged = Map::new();
            for (name, value) in live {
                let value = match config.get(name) {
                    Some(config) => merge(ty.field(name).ty, value, config),
                    None => value.clone(),
                };
                merged.insert(name.clone(), value);
            }
            for (name, value) in config {
                if !live.contains_key(name) {
                    merged.insert(name.clone(), value.clone());
                }
            }
            Value::Object(merged)
        }
        (Shape::Set | Shape::List(_), Value::Array(live), Value::Array(config)) => {
            if live.is_empty() && config.is_empty() {
                return Value::Array(Vec::new());
            }
            Value::Array(merge_lists(ty, shape, live, config))
        }
        _ => config.clone(),
    }
}

/// One list in the configuration's order, in which elements only the server has keep their place between neighbours.
fn merge_lists(ty: Type<'_>, shape: Shape<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let identify = |items: &[Value]| -> Vec<Option<Element>> {
        items.iter().map(|item| ty.element(shape, item).ok()).collect()
    };
    let (live_keys, config_keys) = (identify(live), identify(config));
    let in_config: BTreeMap<&Element, ()> = config_keys.iter().flatten().map(|key| (key, ())).collect();
    // Where each element stands; elements that share a key cannot be told apart, so none is merged.
    let mut in_live: BTreeMap<&Element, Option<usize>> = BTreeMap::new();
    for (place, key) in live_keys.iter().enumerate() {
        if let Some(key) = key {
            in_live.entry(key).and_modify(|only| *only = None).or_insert(Some(place));
        }
    }
    let next_shared = next_shared(&config_keys, &in_live);
    let shared = |key: &Option<Element>| key.as_ref().is_some_and(|key| in_config.contains_key(key));

    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    let mut at = 0;
    for (place, (item, key)) in config.iter().zip(&config_keys).enumerate() {
        let known = key.as_ref().and_then(|key| in_live.get(key));
        while at < live.len() {
            if !shared(&live_keys[at]) {
                merged.push(live[at].clone());
            } else if live_keys[at] == *key {
                at += 1;
                break;
            } else if known.is_none() && live_keys[at].as_ref() == next_shared[place] {
                break;
            }
            at += 1;
        }
        merged.push(match known.copied().flatten().and_then(|place| live.get(place)) {
            Some(old) => merge(ty.item(), old, item),
            None => item.clone(),
        });
    }
    let rest = live.iter().zip(&live_keys).skip(at).filter(|(_, key)| !shared(key));
    merged.extend(rest.map(|(item, _)| item.clone()));
    merged
}

/// For each place in the configuration, the first element from there on that the server has too.
fn next_shared<'k>(
    config_keys: &'k [Option<Element>],
    in_live: &BTreeMap<&Element, Option<usize>>,
) -> Vec<Option<&'k Element>> {
    let mut next = None;
    let mut all: Vec<_> = config_keys
        .iter()
        .rev()
        .map(|key| {
            next = key.as_ref().filter(|key| in_live.contains_key(key)).or(next);
            next
        })
        .collect();
    all.reverse();
    all
}

/// The object without the given paths. What is owned as one goes only as a whole. A field that loses all it held but
/// is not itself to go is left `null`.
pub(crate) fn remove(ty: Type<'_>, value: &Value, doomed: &Set) -> Value {
    remove_inside(ty, value, doomed).unwrap_or_else(|| Value::Object(Map::new()))
}

/// `None` if nothing is left.
fn remove_inside(ty: Type<'_>, value: &Value, doomed: &Set) -> Option<Value> {
    match (ty.shape(value), value) {
        (Shape::Map, Value::Object(fields)) => {
            let mut left = Map::new();
            for (name, value) in fields {
                let value = match doomed.field(name) {
                    Some(node) if node.member => continue,
                    Some(node) => {
                        remove_inside(ty.field(name).ty, value, &node.children).unwrap_or(Value::Null)
                    }
                    None => value.clone(),
                };
                left.insert(name.clone(), value);
            }
            (!left.is_empty()).then_some(Value::Object(left))
        }
        (shape @ (Shape::Set | Shape::List(_)), Value::Array(items)) => {
            let mut left = Vec::with_capacity(items.len());
            for item in items {
                let node = ty.element(shape, item).ok().and_then(|element| doomed.get(&element));
                match node {
                    Some(node) if node.member => {}
                    Some(node) => left.extend(remove_inside(ty.item(), item, &node.children)),
                    None => left.push(item.clone()),
                }
            }
            (!left.is_empty()).then_some(Value::Array(left))
        }
        // Paths below something owned as one are left from a time when it was not.
        (_, Value::Object(_) | Value::Array(_)) => None,
        _ => Some(value.clone()),
    }
}

/// Drops fields that became `null` for having lost all they held, unless their schema lets them be `null`.
pub(crate) fn drop_hollowed(ty: Type<'_>, before: &Value, after: &mut Value) {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return };
    after.retain(|name, value| {
        !value.is_null() || before.get(name).is_some_and(Value::is_null) || ty.field(name).ty.admits_null()
    });
    for (name, value) in after {
        if let Some(before) = before.get(name) {
            drop_hollowed(ty.field(name).ty, before, value);
        }
    }
}
