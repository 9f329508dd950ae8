//! Values seen as a whole: compared, copied, searched.

use std::collections::{HashMap, HashSet};

use crate::budget::{Budget, MAX_DEPTH};
use crate::value::{Items, List, Map, Value};

/// Whether two values are of the same types and hold the same, all the way down (Go's `reflect.DeepEqual`).
///
/// # Errors
/// Values that cost more to compare than is left, or are nested beyond reason.
pub(crate) fn equal(left: &Value, right: &Value, budget: &mut Budget) -> Result<bool, String> {
    equal_at(left, right, budget, 0)
}

fn equal_at(left: &Value, right: &Value, budget: &mut Budget, depth: usize) -> Result<bool, String> {
    Ok(match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Int64(left), Value::Int64(right)) => left == right,
        (Value::Byte(left), Value::Byte(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Str(left), Value::Str(right)) => left == right,
        (Value::Object(left), Value::Object(right)) => left.thing().equals(right),
        (Value::List(left), Value::List(right)) => return equal_lists(left, right, budget, depth),
        (Value::Map(left), Value::Map(right)) => return equal_maps(left, right, budget, depth),
        _ => false,
    })
}

fn equal_lists(left: &List, right: &List, budget: &mut Budget, depth: usize) -> Result<bool, String> {
    let same_type = left.holds() == right.holds() && left.is_nil() == right.is_nil();
    if !same_type || left.items().len() != right.items().len() {
        return Ok(false);
    }
    if left.address() == right.address() {
        return Ok(true);
    }
    Budget::depth(depth)?;
    budget.values(left.items().len())?;
    for (left, right) in left.items().iter().zip(right.items()) {
        if !equal_at(left, right, budget, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(left: &Map, right: &Map, budget: &mut Budget, depth: usize) -> Result<bool, String> {
    if left.strings != right.strings || left.len() != right.len() {
        return Ok(false);
    }
    if left.address() == right.address() {
        return Ok(true);
    }
    Budget::depth(depth)?;
    budget.values(left.len())?;
    for ((left_key, left), (right_key, right)) in left.snapshot().iter().zip(&right.snapshot()) {
        if left_key != right_key || !equal_at(left, right, budget, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The value with every list and map in it made anew.
///
/// # Errors
/// Values that cost more to copy than is left, or are nested beyond reason.
pub(crate) fn copy(value: &Value, budget: &mut Budget) -> Result<Value, String> {
    copy_at(value, budget, 0)
}

fn copy_at(value: &Value, budget: &mut Budget, depth: usize) -> Result<Value, String> {
    Budget::depth(depth)?;
    Ok(match value {
        Value::List(list) if list.is_nil() => value.clone(),
        Value::List(list) => {
            budget.values(list.items().len())?;
            let items: Result<Vec<Value>, String> =
                list.items().iter().map(|item| copy_at(item, budget, depth + 1)).collect();
            Value::List(List::of(list.holds(), items?.into()))
        }
        Value::Map(map) => {
            budget.values(map.len())?;
            let copy = map.empty_like();
            for (key, item) in map.snapshot() {
                copy.insert(key, copy_at(&item, budget, depth + 1)?);
            }
            Value::Map(copy)
        }
        other => other.clone(),
    })
}

/// The map with every list and map in it made anew, parts that are shared once only. What is nested beyond reason is
/// not copied but shared with the original.
pub(crate) fn detached(map: &Map) -> Map {
    let copy = detached_at(&Value::Map(map.clone()), &mut HashMap::new(), 0);
    if let Value::Map(copy) = copy { copy } else { map.empty_like() }
}

fn detached_at(value: &Value, made: &mut HashMap<usize, Value>, depth: usize) -> Value {
    let address = match value {
        Value::List(list) => list.address(),
        Value::Map(map) => map.address(),
        _ => return value.clone(),
    };
    if depth > MAX_DEPTH {
        return value.clone();
    }
    if let Some(copy) = made.get(&address) {
        return copy.clone();
    }
    let copy = match value {
        Value::List(list) if !list.is_nil() && matches!(list.holds(), Items::Any | Items::Lists) => {
            let items = list.items().iter().map(|item| detached_at(item, made, depth + 1));
            Value::List(List::of(list.holds(), items.collect()))
        }
        Value::Map(map) => {
            let copy = map.empty_like();
            for (key, item) in map.snapshot() {
                copy.insert(key, detached_at(&item, made, depth + 1));
            }
            Value::Map(copy)
        }
        other => other.clone(),
    };
    made.insert(address, copy.clone());
    copy
}

/// Sets a key of a map.
///
/// # Errors
/// A value that holds the map: in Go it would be there for ever, and could not be printed. Values that cost more to
/// search than is left.
pub(crate) fn insert(map: &Map, key: &str, value: Value, budget: &mut Budget) -> Result<(), String> {
    if holds(&value, map, budget)? {
        return Err(format!("a map cannot be put inside itself (key {key:?})"));
    }
    budget.values(1)?;
    map.insert(key, value);
    Ok(())
}

/// Whether a map is the value itself or anywhere inside. Values share parts freely, so each is looked at once.
fn holds(value: &Value, sought: &Map, budget: &mut Budget) -> Result<bool, String> {
    let mut seen = HashSet::new();
    let mut pending = vec![value.clone()];
    while let Some(value) = pending.pop() {
        match &value {
            Value::Map(map) if map.address() == sought.address() => return Ok(true),
            Value::Map(map) if !map.strings && seen.insert(map.address()) => {
                budget.values(map.len())?;
                pending.extend(map.snapshot().into_iter().map(|(_, value)| value));
            }
            Value::List(list) if seen.insert(list.address()) => {
                budget.values(list.items().len())?;
                pending.extend(list.items().iter().cloned());
            }
            _ => {}
        }
    }
    Ok(false)
}
