//! Joining two parameter sets.

use std::sync::Arc;

use baton_render::Params;
use baton_template::{List, Map, Value};

/// `over` laid onto `base`: maps are joined key by key, anything else of `over` replaces what `base` has, empty
/// values too. Neither is changed, and the result shares no map with them: templates may write into maps.
pub(crate) fn lay_over(base: &Params, over: &Params) -> Params {
    let joined = copy(base);
    for (key, value) in over.snapshot() {
        let value = match (joined.get(&key), &value) {
            (Some(Value::Map(below)), Value::Map(above)) => Value::Map(lay_over(&below, above)),
            _ => copy_value(&value),
        };
        joined.insert(key, value);
    }
    if is_text_map(base) && !over.is_empty() && !is_text_map(over) {
        // Go panics here: its map of texts can take no other value.
        return Map::new(joined.snapshot());
    }
    joined
}

/// Both sets as texts in one.
///
/// # Errors
/// A key that both have, with different values.
pub(crate) fn join_texts(left: &Params, right: &Params) -> Result<Params, String> {
    let joined = Map::new(texts(left));
    for (key, value) in texts(right) {
        if let Some(Value::Str(known)) = joined.get(&key)
            && let Value::Str(other) = &value
            && known != *other
        {
            return Err(format!("found duplicate key {key} with different value, a: {known} ,b: {other}"));
        }
        joined.insert(key, value);
    }
    Ok(joined)
}

/// The set with a map of its own at every level.
pub(crate) fn copy(params: &Params) -> Params {
    let entries = params.snapshot().into_iter().map(|(key, value)| (key, copy_value(&value)));
    if is_text_map(params) {
        let texts = entries.filter_map(|(key, value)| match value {
            Value::Str(text) => Some((key, text)),
            _ => None,
        });
        return Map::strings(texts);
    }
    Map::new(entries)
}

fn copy_value(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(copy(map)),
        Value::List(list)
            if list.items().iter().any(|item| matches!(item, Value::Map(_) | Value::List(_))) =>
        {
            Value::List(List::new(list.items().iter().map(copy_value)))
        }
        other => other.clone(),
    }
}

fn texts(params: &Params) -> impl Iterator<Item = (Arc<str>, Value)> {
    params.snapshot().into_iter().map(|(key, value)| match value {
        Value::Str(_) => (key, value),
        other => (key, Value::from(other.to_string())),
    })
}

fn is_text_map(map: &Map) -> bool {
    Value::Map(map.clone()).type_name() == "map[string]string"
}
