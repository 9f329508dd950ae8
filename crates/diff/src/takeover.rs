//! Fields that client-side applies own, taken over by server-side apply.
//!
//! A field that was written by a client-side apply stays owned by that writer's `Update` entry: server-side apply never
//! removes it, whatever the source says. Moving the entry into ours first makes the next apply remove what the source
//! no longer states.

use baton_api::names::FIELD_MANAGER;
use baton_api::object::Object as _;
use serde_json::{Value, json};

use crate::fields::{DEEPEST, Entry, entries};

/// Field managers whose updates are taken over: kubectl's client-side apply, that of Argo CD, and the API server's own
/// name for what was there before the first apply.
pub const TAKEN_OVER: [&str; 3] = ["kubectl-client-side-apply", FIELD_MANAGER, "before-first-apply"];

/// The JSON patch that moves what these managers own by updates into our `Apply` entry; `None` where they own nothing.
///
/// It fails where the object has changed since. Entries of another API version than ours are left alone: their paths
/// mean other fields.
pub fn takeover(live: &Value, managers: &[&str]) -> Option<Value> {
    let version = entries(live).find(|entry| entry.is_ours()).map(Entry::api_version);
    let is_taken = |entry: &Entry<'_>| is_taken(*entry, managers);
    let newest =
        entries(live).filter(is_taken).max_by_key(|entry| entry.json()["time"].as_str().unwrap_or_default());
    let version = version.or(newest.map(Entry::api_version))?;

    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    for entry in entries(live) {
        if entry.is_ours() || (is_taken(&entry) && entry.api_version() == version) {
            taken.push(entry);
        } else {
            kept.push(entry.json().clone());
        }
    }
    if !taken.iter().any(|entry| entry.is_update()) {
        return None;
    }
    let fields = joined(taken.iter().copied());
    let time = taken.iter().filter_map(|entry| entry.json()["time"].as_str()).max();
    let mut ours = json!({"manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": version,
        "fieldsType": "FieldsV1", "fieldsV1": fields});
    if let Some(time) = time {
        ours["time"] = json!(time);
    }
    kept.insert(0, ours);
    Some(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": kept},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()},
    ]))
}

/// Whether fields of an object are still to be taken over.
pub(crate) fn is_due(live: &Value) -> bool {
    entries(live).any(|entry| is_taken(entry, &TAKEN_OVER))
}

pub(crate) fn is_taken(entry: Entry<'_>, managers: &[&str]) -> bool {
    entry.is_update() && entry.is_main() && managers.contains(&entry.manager())
}

/// What several entries own, as `fieldsV1`.
pub(crate) fn joined<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Value {
    entries.fold(json!({}), |all, entry| union(&all, &entry.json()["fieldsV1"], 0))
}

fn union(one: &Value, other: &Value, depth: usize) -> Value {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one.clone() };
    // An empty set at the root owns nothing; below it, an empty one owns the field it stands at.
    if depth > 0 && (one.is_empty() || other.is_empty()) {
        let mut all = if one.is_empty() { other.clone() } else { one.clone() };
        if !all.is_empty() {
            all.insert(".".to_owned(), json!({}));
        }
        return Value::Object(all);
    }
    if depth > DEEPEST {
        return Value::Object(one.clone());
    }
    let mut all = one.clone();
    for (part, below) in other {
        let joined = all.get(part).map_or_else(|| below.clone(), |known| union(known, below, depth + 1));
        all.insert(part.clone(), joined);
    }
    Value::Object(all)
}
