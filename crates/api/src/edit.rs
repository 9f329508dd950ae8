//! Changing an object through its typed view without losing fields the view does not know.
//!
//! A typed object that is read, changed and written whole drops every field of a newer version. So changes are sent as
//! a JSON merge patch (RFC 7386) that holds only what differs between the typed views before and after.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Why an object could not be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The object does not have the shape of the type.
    #[error("object cannot be read as the expected kind")]
    Read(#[source] serde_json::Error),
    /// The changed view cannot be expressed as JSON.
    #[error("changed object cannot be written as JSON")]
    Write(#[source] serde_json::Error),
}

/// Applies a change to the typed view of `raw` and returns the merge patch that makes it, or `None` if nothing changed.
///
/// # Guarantees
/// Whatever `change` leaves alone is not in the patch. Applying the patch to `raw` keeps every unknown field of every
/// object that is still there afterwards, also inside lists: elements are matched by equality, then by their natural
/// key (such as `name`; a source whose path changes is still told by its repository), then by place.
///
/// # Caveats
/// Removing an object, or setting it to its zero value where that is not written, removes it whole. A merge patch cannot
/// set a field to `null` in an object, so a `null` newly put into free-form values is left out.
///
/// # Errors
/// If `raw` cannot be read as `T`, or the changed view cannot be written.
pub fn edit<T>(raw: &Value, change: impl FnOnce(&mut T)) -> Result<Option<Value>, EditError>
where
    T: Serialize + DeserializeOwned,
{
    let mut view = T::deserialize(raw).map_err(EditError::Read)?;
    let before = serde_json::to_value(&view).map_err(EditError::Write)?;
    change(&mut view);
    let after = serde_json::to_value(&view).map_err(EditError::Write)?;
    Ok(patch(Some(raw), &before, &after))
}

/// The merge patch that carries the difference of two typed views over to `raw`, or `None` if they are equal.
///
/// `before` must be the typed view of `raw`, written as JSON.
pub fn patch_between(raw: &Value, before: &Value, after: &Value) -> Option<Value> {
    patch(Some(raw), before, after)
}

/// The JSON merge patch that makes one object into another, for objects that are seen whole: lists are replaced. It is
/// empty where both are the same.
pub fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for (name, value) in new {
        match old.get(name) {
            Some(same) if same == value => {}
            Some(old) => drop(patch.insert(name.clone(), difference(old, value))),
            None => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Value::Object(patch)
}

/// Applies a JSON merge patch to an element of a list, whose parent can only be replaced whole.
fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            apply(fields.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

fn patch(raw: Option<&Value>, before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let changes = field_changes(raw, before, after);
            (!changes.is_empty()).then_some(Value::Object(changes))
        }
        (Value::Array(before), Value::Array(after)) => {
            let raw = raw.and_then(Value::as_array).filter(|raw| raw.len() == before.len());
            Some(Value::Array(graft(raw.map_or(&[], Vec::as_slice), before, after)))
        }
        _ => Some(after.clone()),
    }
}

fn field_changes(
    raw: Option<&Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let mut changes: Map<String, Value> = removed.map(|name| (name.clone(), Value::Null)).collect();
    for (name, new) in after {
        let raw = raw.and_then(|raw| raw.get(name));
        let change = match before.get(name) {
            Some(old) => patch(raw, old, new),
            None => Some(new.clone()),
        };
        if let Some(change) = change {
            changes.insert(name.clone(), change);
        }
    }
    changes
}

/// The new list, each element that was there before laid over its raw form.
fn graft(raw: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let origins = align(before, after);
    let element = |(new, origin): (&Value, Option<usize>)| {
        let Some((raw, old)) = origin.and_then(|at| Some((raw.get(at)?, &before[at]))) else {
            return new.clone();
        };
        let mut grafted = raw.clone();
        if let Some(change) = patch(Some(raw), old, new) {
            apply(&mut grafted, &change);
        }
        grafted
    };
    after.iter().zip(origins).map(element).collect()
}

/// For each new element the place of the old one it comes from; no old element is used twice.
fn align(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut origins: Vec<Option<usize>> = vec![None; after.len()];
    let mut used = vec![false; before.len()];
    for (at, new) in after.iter().enumerate() {
        if before.get(at) == Some(new) {
            origins[at] = Some(at);
            used[at] = true;
        }
    }
    match_by(before, after, &mut origins, &mut used, |element| Some(element.to_string()));
    match_by(before, after, &mut origins, &mut used, natural_key);
    match_by(before, after, &mut origins, &mut used, |element| Some(element.get("repoURL")?.to_string()));
    for at in 0..before.len().min(after.len()) {
        let anonymous = natural_key(&before[at]).is_none() && natural_key(&after[at]).is_none();
        if origins[at].is_none() && !used[at] && anonymous {
            origins[at] = Some(at);
            used[at] = true;
        }
    }
    origins
}

fn match_by(
    before: &[Value],
    after: &[Value],
    origins: &mut [Option<usize>],
    used: &mut [bool],
    key: impl Fn(&Value) -> Option<String>,
) {
    let mut places: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (at, old) in before.iter().enumerate().filter(|(at, _)| !used[*at]) {
        if let Some(key) = key(old) {
            places.entry(key).or_default().push_back(at);
        }
    }
    for (new, origin) in after.iter().zip(origins).filter(|(_, origin)| origin.is_none()) {
        let place = key(new).and_then(|key| places.get_mut(&key)?.pop_front());
        if let Some(at) = place {
            *origin = Some(at);
            used[at] = true;
        }
    }
}

/// What tells an element of a list from its neighbours, if anything does.
fn natural_key(element: &Value) -> Option<String> {
    // The field that must be there, and all that count.
    const IDENTITIES: [(&str, &[&str]); 7] = [
        ("repoURL", &["repoURL", "path", "chart", "ref", "name"]),
        ("kind", &["group", "kind", "namespace", "name"]),
        ("application", &["application"]),
        ("name", &["name"]),
        ("id", &["id"]),
        ("type", &["type"]),
        ("key", &["key"]),
    ];
    let fields = element.as_object()?;
    let (needed, identity) = IDENTITIES.iter().find(|(needed, _)| fields.contains_key(*needed))?;
    let parts: Vec<Option<&Value>> = identity.iter().map(|name| fields.get(*name)).collect();
    serde_json::to_string(&(needed, parts)).ok()
}
