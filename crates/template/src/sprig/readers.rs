//! Parts of lists and maps. Nothing here makes a value larger or deeper than those it is given.

use super::{Outcome, fixed, str_of, variadic};
use crate::function::Function;
use crate::function::Param::{Any, Map as Dict, Str};
use crate::value::{List, Map, Value};

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("first", &[Any], |args| items("find first", &args[0]).map(|items| one(items.first()))),
    fixed("last", &[Any], |args| items("find last", &args[0]).map(|items| one(items.last()))),
    fixed("rest", &[Any], |args| Ok(list(items("find rest", &args[0])?.iter().skip(1)))),
    fixed("initial", &[Any], |args| {
        let items = items("find initial", &args[0])?;
        Ok(list(items.iter().take(items.len().saturating_sub(1))))
    }),
    fixed("reverse", &[Any], |args| Ok(list(items("find reverse", &args[0])?.iter().rev()))),
    fixed("compact", &[Any], |args| Ok(list(items("compact", &args[0])?.iter().filter(|item| item.truth())))),
    fixed("sortAlpha", &[Any], |args| Ok(sort_alpha(&args[0]))),
    fixed("get", &[Dict, Str], |args| {
        Ok(map_of(&args[0]).get(str_of(&args[1])).unwrap_or_else(|| Value::from("")))
    }),
    fixed("hasKey", &[Dict, Str], |args| Ok(Value::Bool(map_of(&args[0]).get(str_of(&args[1])).is_some()))),
    variadic("keys", &[], Dict, |args| {
        let keys = args.iter().flat_map(|arg| map_of(arg).snapshot()).map(|(key, _)| key);
        Ok(Value::List(List::strings(keys)))
    }),
    fixed("values", &[Dict], |args| {
        Ok(Value::List(List::new(map_of(&args[0]).snapshot().into_iter().map(|(_, value)| value))))
    }),
    variadic("pluck", &[Str], Dict, |args| {
        let key = str_of(&args[0]);
        Ok(Value::List(List::new(args[1..].iter().filter_map(|arg| map_of(arg).get(key)))))
    }),
    variadic("pick", &[Dict], Str, |args| Ok(chosen(&args[0], &args[1..], true))),
    variadic("omit", &[Dict], Str, |args| Ok(chosen(&args[0], &args[1..], false))),
    variadic("dig", &[], Any, dig),
];

fn items<'a>(what: &str, value: &'a Value) -> Result<&'a [Value], String> {
    let kind = match value {
        Value::List(list) => return Ok(list.items()),
        Value::Nil => return Err(format!("Cannot {what} on a missing value")),
        Value::Map(_) => "map",
        other => other.type_name(),
    };
    Err(format!("Cannot {what} on type {kind}"))
}

fn one(item: Option<&Value>) -> Value {
    item.cloned().unwrap_or_default()
}

fn list<'a>(items: impl Iterator<Item = &'a Value>) -> Value {
    Value::List(List::new(items.cloned()))
}

fn sort_alpha(value: &Value) -> Value {
    let Value::List(list) = value else {
        return Value::List(List::strings([value.to_string()]));
    };
    let present = list.items().iter().filter(|item| !matches!(item, Value::Nil));
    let mut texts: Vec<String> = present.map(Value::to_string).collect();
    texts.sort_unstable();
    Value::List(List::strings(texts))
}

/// The map of an argument the engine has checked to be one.
fn map_of(value: &Value) -> Map {
    if let Value::Map(map) = value { map.clone() } else { Map::new([]) }
}

fn chosen(map: &Value, names: &[Value], wanted: bool) -> Value {
    let named = |key: &str| names.iter().any(|name| str_of(name) == key);
    Value::Map(Map::new(map_of(map).snapshot().into_iter().filter(|(key, _)| named(key) == wanted)))
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

fn conversion(value: &Value, wanted: &str) -> String {
    let found = if matches!(value, Value::Nil) { "nil" } else { value.type_name() };
    format!("interface conversion: interface {{}} is {found}, not {wanted}")
}
