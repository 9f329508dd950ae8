//! Strategic merge patch: a merge patch whose lists merge by key, as the schema says.
//!
//! Directives steer the merge and are never stored: `$patch` (`replace`, `delete`, `merge`), `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::gotext;
use crate::model::{Additional, Schema};
use crate::patch::PatchError;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Deepest nesting that is merged; below it the patch replaces.
const DEEPEST: usize = 120;

type Fields = Map<String, Value>;

/// Applies a strategic merge patch to an object of the given schema.
///
/// Fields the schema does not know merge like a plain merge patch.
///
/// # Errors
/// A patch or document that is not an object, malformed directives, and list elements without their merge key.
pub fn merge(schema: &Schema, doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let malformed = || PatchError::Malformed("invalid JSON document".into());
    let patch = patch.as_object().ok_or_else(malformed)?;
    let doc = match doc {
        Value::Null => Fields::new(),
        Value::Object(fields) => fields.clone(),
        _ => return Err(malformed()),
    };
    Ok(Value::Object(merge_fields(Some(schema), doc, patch, 0)?))
}

fn merge_fields(
    schema: Option<&Schema>,
    doc: Fields,
    patch: &Fields,
    depth: usize,
) -> Result<Fields, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return whole_map(directive, patch);
    }
    let mut result = doc;
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        retain_keys(&mut result, patch, keys)?;
    }
    let ordered = merge_ordered_lists(schema, &mut result, patch, depth)?;
    for (name, change) in patch {
        if name == RETAIN_KEYS || under(name, ELEMENT_ORDER) || ordered.contains(&name.as_str()) {
            continue;
        }
        if under(name, DELETE_FROM_LIST) {
            delete_from_list(&mut result, named(name, DELETE_FROM_LIST)?, change)?;
            continue;
        }
        merge_field(schema, &mut result, name, change, depth)?;
    }
    Ok(result)
}

fn merge_field(
    schema: Option<&Schema>,
    result: &mut Fields,
    name: &str,
    change: &Value,
    depth: usize,
) -> Result<(), PatchError> {
    if change.is_null() {
        result.remove(name);
        return Ok(());
    }
    let child = schema.and_then(|schema| field(schema, name));
    let merged = match (result.get_mut(name), change) {
        (Some(Value::Object(old)), Value::Object(change)) if depth < DEEPEST => {
            Value::Object(merge_fields(child, std::mem::take(old), change, depth + 1)?)
        }
        (Some(Value::Array(old)), Value::Array(change)) => match child {
            Some(child) if child.patch.merge && depth < DEEPEST => {
                Value::Array(merge_list(child, std::mem::take(old), change, depth + 1)?)
            }
            _ => Value::Array(clean_list(change, Marked::Stays)),
        },
        _ => match cleaned(change, Marked::Goes) {
            Some(value) => value,
            None => {
                result.remove(name);
                return Ok(());
            }
        },
    };
    result.insert(name.to_owned(), merged);
    Ok(())
}

/// `$patch` in an object speaks for the object as a whole.
fn whole_map(directive: &Value, patch: &Fields) -> Result<Fields, PatchError> {
    match directive.as_str() {
        Some("replace") => Ok(clean_fields(patch, Marked::Stays)),
        Some("delete") => Ok(Fields::new()),
        _ => Err(unknown_directive(directive, patch)),
    }
}

fn unknown_directive(directive: &Value, patch: &Fields) -> PatchError {
    PatchError::Unmergeable(format!(
        "unknown patch type: {} in map: {}",
        gotext::plain(directive),
        gotext::plain(&Value::Object(patch.clone()))
    ))
}

fn retain_keys(result: &mut Fields, patch: &Fields, keys: &Value) -> Result<(), PatchError> {
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".into());
    let keys = keys.as_array().ok_or_else(malformed)?;
    let kept = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let stray = patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !kept(name));
    if stray {
        return Err(malformed());
    }
    result.retain(|name, _| kept(name));
    Ok(())
}

fn delete_from_list(result: &mut Fields, name: &str, doomed: &Value) -> Result<(), PatchError> {
    match (result.get_mut(name), doomed) {
        (Some(Value::Array(items)), Value::Array(doomed)) => {
            if element_type(items, doomed)? {
                return Err(PatchError::Unmergeable(
                    "only scalars can be deleted from a list by value".into(),
                ));
            }
            let doomed: HashSet<String> = doomed.iter().map(Value::to_string).collect();
            items.retain(|item| !doomed.contains(&item.to_string()));
        }
        (_, Value::Null) => {
            result.remove(name);
        }
        _ => {}
    }
    Ok(())
}

/// Merges every list that comes with a `$setElementOrder`, and names those done.
fn merge_ordered_lists<'p>(
    schema: Option<&Schema>,
    result: &mut Fields,
    patch: &'p Fields,
    depth: usize,
) -> Result<Vec<&'p str>, PatchError> {
    let mut done = Vec::new();
    for (directive, order) in patch.iter().filter(|(name, _)| under(name, ELEMENT_ORDER)) {
        let name = named(directive, ELEMENT_ORDER)?;
        let order = order.as_array().ok_or_else(|| wrong_type("[]interface {}", order))?;
        let old = as_list(result.get(name))?;
        let change = as_list(patch.get(name))?;
        let child = schema.and_then(|schema| field(schema, name));
        let key = child.and_then(|child| child.patch.merge_key.as_deref());
        if let Some(change) = change {
            check_order(change, order, key)?;
        }
        let merged = match (old, change) {
            (None, None) => continue,
            (Some(old), None) => old.clone(),
            (None, Some(change)) => clean_list(change, Marked::Goes),
            (Some(old), Some(change)) => match child {
                Some(child) if child.patch.merge && depth < DEEPEST => {
                    merge_list(child, old.clone(), change, depth + 1)?
                }
                _ => clean_list(change, Marked::Stays),
            },
        };
        let server = old.cloned().unwrap_or_default();
        result.insert(name.to_owned(), Value::Array(arrange(merged, order, &server, key)?));
        done.push(name);
    }
    Ok(done)
}

/// The elements of the patch must stand in the order the directive states.
fn check_order(change: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    for item in change.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let identity = identity(item, key)?;
        loop {
            match wanted.next() {
                Some(next) if self::identity(next, key)? == identity => break,
                Some(_) => {}
                None => {
                    let shown = |items: &[Value]| gotext::plain(&Value::Array(items.to_vec()));
                    return Err(PatchError::Unmergeable(format!(
                        "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
                        shown(change),
                        shown(order)
                    )));
                }
            }
        }
    }
    Ok(())
}

fn merge_list(
    schema: &Schema,
    old: Vec<Value>,
    change: &[Value],
    depth: usize,
) -> Result<Vec<Value>, PatchError> {
    if old.is_empty() && change.is_empty() {
        return Ok(old);
    }
    let objects = element_type(&old, change)?;
    if !objects {
        let mut seen = HashSet::new();
        let both = old.iter().chain(change).filter(|item| seen.insert(item.to_string()));
        let merged: Vec<Value> = both.cloned().collect();
        return arrange(merged, change, &old, None);
    }
    let Some(key) = schema.patch.merge_key.as_deref() else {
        return Err(PatchError::Unmergeable("cannot merge lists without merge key".into()));
    };
    let server = old.clone();
    let (mut merged, plain) = obey_element_directives(old, change, key)?;
    let item_schema = schema.items.as_deref();
    let mut places = Places::new(&merged, Some(key));
    for item in &plain {
        let fields = item.as_object().ok_or_else(|| not_a_map(item))?;
        let wanted = identity(item, Some(key))?.to_string();
        match places.0.get(&wanted).and_then(|&place| merged.get_mut(place)) {
            Some(slot) => {
                let old = slot.as_object_mut().map(std::mem::take).unwrap_or_default();
                *slot = Value::Object(merge_fields(item_schema, old, fields, depth + 1)?);
            }
            None => {
                places.0.insert(wanted, merged.len());
                merged.extend(cleaned(item, Marked::Stays));
            }
        }
    }
    arrange(merged, &plain, &server, Some(key))
}

/// Takes out what `$patch` elements delete; returns what is left and the elements that merge.
fn obey_element_directives(
    old: Vec<Value>,
    change: &[Value],
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut left = old;
    let mut plain = Vec::with_capacity(change.len());
    let mut doomed = HashSet::new();
    let mut replace = false;
    for item in change {
        let fields = item.as_object().ok_or_else(|| not_a_map(item))?;
        match fields.get(DIRECTIVE) {
            None => plain.push(item.clone()),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    doomed.insert(identity(item, Some(key))?.to_string());
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    return Err(PatchError::Unmergeable(
                        "merging lists cannot yet be specified in the patch".into(),
                    ));
                }
                _ => return Err(unknown_directive(directive, fields)),
            },
        }
    }
    if replace {
        return Ok((clean_list(&plain, Marked::Stays), Vec::new()));
    }
    left.retain(|old| old.get(key).is_none_or(|identity| !doomed.contains(&identity.to_string())));
    Ok((left, plain))
}

/// Orders a merged list: elements the patch names in the patch's order, the server's own woven in where they stood.
fn arrange(
    merged: Vec<Value>,
    order: &[Value],
    server: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    if key.is_some() {
        for item in merged.iter().chain(order) {
            identity(item, key)?;
        }
    }
    let (order, server) = (Places::new(order, key), Places::new(server, key));
    let (mut from_patch, from_server): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| order.of(item, key).is_some());
    from_patch.sort_by_cached_key(|item| order.of(item, key));

    let mut arranged = Vec::with_capacity(from_patch.len() + from_server.len());
    let mut from_patch = from_patch.into_iter().peekable();
    for item in from_server {
        let place = server.of(&item, key);
        while let Some(next) = from_patch.peek() {
            // An element new to the server has no place there, so it goes before whatever comes next.
            let before = match (place, server.of(next, key)) {
                (Some(place), Some(next)) => next < place,
                _ => true,
            };
            if !before {
                break;
            }
            arranged.extend(from_patch.next());
        }
        arranged.push(item);
    }
    arranged.extend(from_patch);
    Ok(arranged)
}

/// Where each element of a list first stands, by what tells it apart; lists are too long to be searched each time.
struct Places(HashMap<String, usize>);

impl Places {
    fn new(items: &[Value], key: Option<&str>) -> Self {
        let mut places = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            if let Ok(identity) = identity(item, key) {
                places.entry(identity.to_string()).or_insert(place);
            }
        }
        Places(places)
    }

    fn of(&self, item: &Value, key: Option<&str>) -> Option<usize> {
        self.0.get(&identity(item, key).ok()?.to_string()).copied()
    }
}

/// Whether the elements are objects; lists must not mix types nor nest.
fn element_type(old: &[Value], change: &[Value]) -> Result<bool, PatchError> {
    let mut all = old.iter().chain(change);
    let Some(first) = all.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::Rejected("lists of lists are not supported".into()));
    }
    if all.any(|other| !same_type(first, other)) {
        return Err(PatchError::Unmergeable(format!(
            "list element types are not identical: [{} {}]",
            gotext::plain(&Value::Array(old.to_vec())),
            gotext::plain(&Value::Array(change.to_vec()))
        )));
    }
    Ok(first.is_object())
}

fn same_type(a: &Value, b: &Value) -> bool {
    gotext::type_name(a) == gotext::type_name(b)
}

/// What tells an element from its neighbours.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> Result<&'v Value, PatchError> {
    let Some(key) = key else { return Ok(item) };
    let fields = item.as_object().ok_or_else(|| not_a_map(item))?;
    fields.get(key).ok_or_else(|| {
        PatchError::Unmergeable(format!(
            "map: {} does not contain declared merge key: {key}",
            gotext::plain(item)
        ))
    })
}

fn not_a_map(item: &Value) -> PatchError {
    wrong_type("map[string]interface {}", item)
}

fn wrong_type(expected: &str, actual: &Value) -> PatchError {
    PatchError::Unmergeable(format!("expected a {expected}, but received a {}", gotext::type_name(actual)))
}

fn as_list(value: Option<&Value>) -> Result<Option<&Vec<Value>>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_type("[]interface {}", other)),
    }
}

fn under(name: &str, prefix: &str) -> bool {
    name.starts_with(prefix)
}

/// The field a directive such as `$setElementOrder/containers` is about.
fn named<'n>(name: &'n str, prefix: &str) -> Result<&'n str, PatchError> {
    name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or_else(|| {
        PatchError::Malformed(match prefix {
            ELEMENT_ORDER => "invalid patch format of setElementOrder list".into(),
            _ => "invalid patch format of primitive list".into(),
        })
    })
}

fn is_directive(name: &str) -> bool {
    name == DIRECTIVE || name == RETAIN_KEYS || under(name, DELETE_FROM_LIST) || under(name, ELEMENT_ORDER)
}

/// What becomes of an object inside a taken-over value that has a `$patch` of its own.
#[derive(Clone, Copy, PartialEq)]
enum Marked {
    /// It speaks of something that is not there, so it goes.
    Goes,
    /// It stays, without the directive.
    Stays,
}

/// The value without anything that was only meant to steer the merge, nulls included; `None` if it goes altogether.
fn cleaned(value: &Value, marked: Marked) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            if marked == Marked::Goes && fields.contains_key(DIRECTIVE) {
                return None;
            }
            Some(Value::Object(clean_fields(fields, marked)))
        }
        Value::Array(items) => Some(Value::Array(clean_list(items, marked))),
        scalar => Some(scalar.clone()),
    }
}

fn clean_fields(fields: &Fields, marked: Marked) -> Fields {
    let kept = fields.iter().filter(|(name, value)| !is_directive(name) && !value.is_null());
    kept.filter_map(|(name, value)| Some((name.clone(), cleaned(value, marked)?))).collect()
}

fn clean_list(items: &[Value], marked: Marked) -> Vec<Value> {
    items.iter().filter_map(|item| cleaned(item, marked)).collect()
}

fn field<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    match (schema.properties.get(name), &schema.additional) {
        (Some(known), _) => Some(known),
        (None, Additional::Typed(values)) => Some(values),
        _ => None,
    }
}
