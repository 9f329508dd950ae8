//! Maps: made, changed, read.

use super::{Outcome, fixed, metered, str_of, variadic};
use crate::budget::Budget;
use crate::deep;
use crate::function::Param::{Any, Map as Dict, Str};
use crate::function::{Context, Function};
use crate::print;
use crate::value::{List, Map, Value};

pub(super) static FUNCTIONS: &[Function] = &[
    metered("dict", &[], Some(Any), dict),
    fixed("get", &[Dict, Str], |args| {
        Ok(map_of(&args[0]).get(str_of(&args[1])).unwrap_or_else(|| Value::from("")))
    }),
    metered("set", &[Dict, Str, Any], None, |context, args| {
        let Value::Map(map) = &args[0] else {
            return Err("assignment to entry in nil map".to_owned());
        };
        deep::insert(map, str_of(&args[1]), args[2].clone(), context.budget)?;
        Ok(args[0].clone())
    }),
    fixed("unset", &[Dict, Str], |args| {
        let map = map_of(&args[0]);
        map.remove(str_of(&args[1]));
        Ok(Value::Map(map))
    }),
    fixed("hasKey", &[Dict, Str], |args| Ok(Value::Bool(map_of(&args[0]).get(str_of(&args[1])).is_some()))),
    metered("keys", &[], Some(Dict), |context, args| {
        context.budget.copies(args.iter().map(length).sum())?;
        let keys = args.iter().flat_map(|arg| map_of(arg).snapshot()).map(|(key, _)| key);
        Ok(Value::List(List::strings(keys)))
    }),
    metered("values", &[Dict], None, |context, args| {
        context.budget.copies(length(&args[0]))?;
        Ok(Value::List(List::new(map_of(&args[0]).snapshot().into_iter().map(|(_, value)| value))))
    }),
    variadic("pluck", &[Str], Dict, |args| {
        let key = str_of(&args[0]);
        Ok(Value::List(List::new(args[1..].iter().filter_map(|arg| map_of(arg).get(key)))))
    }),
    metered("pick", &[Dict], Some(Str), |context, args| chosen(args, true, context.budget)),
    metered("omit", &[Dict], Some(Str), |context, args| chosen(args, false, context.budget)),
    variadic("dig", &[], Any, dig),
    metered("merge", &[Dict], Some(Dict), |context, args| merged(args, false, context)),
    metered("mustMerge", &[Dict], Some(Dict), |context, args| merged(args, false, context)),
    metered("mergeOverwrite", &[Dict], Some(Dict), |context, args| merged(args, true, context)),
    metered("mustMergeOverwrite", &[Dict], Some(Dict), |context, args| merged(args, true, context)),
    metered("deepCopy", &[Any], None, deep_copy),
    metered("mustDeepCopy", &[Any], None, deep_copy),
];

/// The map of an argument the engine has checked to be one, or nil.
fn map_of(value: &Value) -> Map {
    if let Value::Map(map) = value { map.clone() } else { Map::new([]) }
}

/// Keys and values in turn; a last key alone gets an empty text.
fn dict(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    context.budget.values(args.len())?;
    let map = Map::new([]);
    for pair in args.chunks(2) {
        let value = pair.get(1).cloned().unwrap_or_else(|| "".into());
        map.insert(print::text(&pair[0], context.budget)?, value);
    }
    Ok(Value::Map(map))
}

/// The entries a map has, or has not, under the names after it.
fn chosen(args: &[Value], wanted: bool, budget: &mut Budget) -> Outcome {
    let (map, names) = (map_of(&args[0]), &args[1..]);
    budget.values(map.len().saturating_mul(names.len() + 1))?;
    let named = |key: &str| names.iter().any(|name| str_of(name) == key);
    Ok(Value::Map(Map::new(map.snapshot().into_iter().filter(|(key, _)| named(key) == wanted))))
}

fn length(map: &Value) -> usize {
    if let Value::Map(map) = map { map.len() } else { 0 }
}

/// `dig key… default map`.
fn dig(args: &[Value]) -> Outcome {
    let [path @ .., default, map] = args else {
        return Err("dig needs at least three arguments".to_owned());
    };
    if path.is_empty() {
        return Err("dig needs at least three arguments".to_owned());
    }
    let mut value = map.clone();
    for key in path {
        let Value::Map(map @ Map { strings: false, .. }) = &value else {
            return Err(conversion(&value, "map[string]interface {}"));
        };
        let Value::Str(key) = key else {
            return Err(conversion(key, "string"));
        };
        match map.get(key) {
            Some(found) => value = found,
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}

/// Go's complaint about a value of another type than a function asserts.
pub(super) fn conversion(value: &Value, wanted: &str) -> String {
    let found = if matches!(value, Value::Nil) { "nil" } else { value.type_name() };
    format!("interface conversion: interface {{}} is {found}, not {wanted}")
}

fn deep_copy(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    if matches!(args[0], Value::Nil) {
        return Err("cannot copy a missing value".to_owned());
    }
    deep::copy(&args[0], context.budget)
}

/// Puts what the first map lacks, or with `overwrites` what the others have, into the first map.
fn merged(args: &[Value], overwrites: bool, context: &mut Context<'_>) -> Outcome {
    let target = map_of(&args[0]);
    for source in &args[1..] {
        merge(&target, &map_of(source), overwrites, context.budget, 0)?;
    }
    Ok(Value::Map(target))
}

fn merge(
    target: &Map,
    source: &Map,
    overwrites: bool,
    budget: &mut Budget,
    depth: usize,
) -> Result<(), String> {
    Budget::depth(depth)?;
    budget.values(source.len())?;
    for (key, new) in source.snapshot() {
        let old = target.get(&key);
        if let (Value::Map(new), Some(Value::Map(old))) = (&new, &old) {
            merge(old, new, overwrites, budget, depth + 1)?;
            if !old.is_empty() {
                continue;
            }
        }
        // Nil is nothing to fill a gap with, but something to overwrite with.
        let fills = !matches!(new, Value::Nil) && !old.is_some_and(|old| old.truth());
        if !overwrites && !fills {
            continue;
        }
        if target.strings && !source.strings {
            return Err("cannot put any value into map[string]string".to_owned());
        }
        deep::insert(target, &key, new, budget)?;
    }
    Ok(())
}
