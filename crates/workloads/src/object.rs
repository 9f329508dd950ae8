//! Reading untyped Kubernetes objects. Every reader answers for any JSON: a missing or mistyped field reads
//! as absent, so that a rule never has to fail on what a user stored.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::time::Duration;

pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

pub(crate) fn int(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).as_i64()
}

/// A count: absent reads as zero, and no count is negative.
pub(crate) fn count(value: &Value, path: &[&str]) -> i64 {
    int(value, path).unwrap_or(0).max(0)
}

pub(crate) fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).as_bool().unwrap_or(false)
}

pub(crate) fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The object at `path`, copied so that it can be changed; empty where there is none.
pub(crate) fn map(value: &Value, path: &[&str]) -> Map<String, Value> {
    at(value, path).as_object().cloned().unwrap_or_default()
}

pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |inner, key| &inner[*key])
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"])
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

pub(crate) fn generation(object: &Value) -> i64 {
    count(object, &["metadata", "generation"])
}

pub(crate) fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    text(object, &["metadata", "labels", key])
}

pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    text(object, &["metadata", "annotations", key])
}

pub(crate) fn deleting(object: &Value) -> bool {
    !text(object, &["metadata", "deletionTimestamp"]).is_empty()
}

pub(crate) fn created(object: &Value) -> Option<Timestamp> {
    time(object, &["metadata", "creationTimestamp"])
}

pub(crate) fn time(value: &Value, path: &[&str]) -> Option<Timestamp> {
    text(value, path).parse().ok()
}

/// The owner reference marked as controller.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    items(object, &["metadata", "ownerReferences"]).iter().find(|owner| flag(owner, &["controller"]))
}

pub(crate) fn controlled_by(object: &Value, owner: &Value) -> bool {
    controller(object).is_some_and(|reference| !uid(owner).is_empty() && reference["uid"] == uid(owner))
}

pub(crate) fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name(owner),
        "uid": uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The form in which the API records times: whole seconds, UTC.
pub(crate) fn stamp(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// `start + length`, or the end of time where that overflows.
pub(crate) fn after(start: Timestamp, length: Duration) -> Timestamp {
    SignedDuration::try_from(length)
        .ok()
        .and_then(|length| start.checked_add(length).ok())
        .unwrap_or(Timestamp::MAX)
}

pub(crate) fn seconds(length: i64) -> Duration {
    Duration::from_secs(u64::try_from(length).unwrap_or(0))
}

/// The earlier of two optional wake-ups.
pub(crate) fn sooner(left: Option<Timestamp>, right: Option<Timestamp>) -> Option<Timestamp> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}

/// Sets a counter the way Go's `omitempty` shows it: zero is absent.
pub(crate) fn put_count(status: &mut Map<String, Value>, key: &str, value: i64) {
    if value > 0 {
        status.insert(key.to_owned(), value.into());
    } else {
        status.remove(key);
    }
}

/// An `IntOrString` against a total; percentages round up or down as asked, bad values read as `None`.
pub(crate) fn portion(value: &Value, total: i64, round_up: bool) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number.max(0));
    }
    let percent: i64 =
        value.as_str()?.strip_suffix('%')?.parse().ok().filter(|p| (0..=100_000).contains(p))?;
    let product = total.max(0).saturating_mul(percent);
    Some(if round_up { product.saturating_add(99) / 100 } else { product / 100 })
}
