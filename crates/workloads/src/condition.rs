//! Status conditions: the list that every kind keeps under `status.conditions`.

use crate::object::{items, stamp, text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// What a condition should say; times are filled in by [`set`].
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

pub(crate) fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, &["status", "conditions"]).iter().find(|condition| condition["type"] == kind)
}

pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Adds or changes one condition. `lastTransitionTime` moves only when the status does; an identical
/// condition is left as it is. Empty reason and message are left out, as Go's `omitempty` does.
pub(crate) fn set(status: &mut Map<String, Value>, wanted: &Condition, now: Timestamp) {
    let mut list = list(status);
    let place = list.iter().position(|condition| condition["type"] == wanted.kind);
    let before = place.map(|index| &list[index]);
    let since = before
        .filter(|condition| condition["status"] == wanted.status)
        .map(|condition| text(condition, &["lastTransitionTime"]))
        .filter(|since| !since.is_empty())
        .map_or_else(|| stamp(now), str::to_owned);
    let mut entry = before.and_then(Value::as_object).cloned().unwrap_or_default();
    entry.insert("type".into(), wanted.kind.into());
    entry.insert("status".into(), wanted.status.into());
    entry.insert("lastTransitionTime".into(), since.into());
    for (key, value) in [("reason", wanted.reason), ("message", wanted.message)] {
        if value.is_empty() {
            entry.remove(key);
        } else {
            entry.insert(key.into(), value.into());
        }
    }
    match place {
        Some(index) => list[index] = Value::Object(entry),
        None => list.push(Value::Object(entry)),
    }
    status.insert("conditions".into(), Value::Array(list));
}

/// Like [`set`], and keeps `lastUpdateTime`, which moves whenever the condition says something new or
/// `refresh` asks for it.
pub(crate) fn set_with_update_time(
    status: &mut Map<String, Value>,
    wanted: &Condition,
    refresh: bool,
    now: Timestamp,
) {
    let before = list(status).into_iter().find(|condition| condition["type"] == wanted.kind);
    let same = before.is_some_and(|condition| {
        condition["status"] == wanted.status
            && condition["reason"] == wanted.reason
            && !text(&condition, &["lastUpdateTime"]).is_empty()
    });
    set(status, wanted, now);
    if same && !refresh {
        return;
    }
    let mut list = list(status);
    for condition in list.iter_mut().filter(|condition| condition["type"] == wanted.kind) {
        if let Some(entry) = condition.as_object_mut() {
            entry.insert("lastUpdateTime".into(), json!(stamp(now)));
        }
    }
    status.insert("conditions".into(), Value::Array(list));
}

pub(crate) fn remove(status: &mut Map<String, Value>, kind: &str) {
    let mut list = list(status);
    let length = list.len();
    list.retain(|condition| condition["type"] != kind);
    if list.is_empty() {
        status.remove("conditions");
    } else if list.len() != length {
        status.insert("conditions".into(), Value::Array(list));
    }
}

fn list(status: &Map<String, Value>) -> Vec<Value> {
    status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default()
}
