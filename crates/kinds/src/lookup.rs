//! Reading and filling fields of JSON objects of unknown shape. Nothing here panics, whatever the value looks like.

use serde_json::{Map, Value};

/// The value at a dotted path through objects; `null` counts as absent.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// The string at a path, or nothing.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a path.
pub(crate) fn int(value: &Value, path: &str) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// Whether the path holds `true`.
pub(crate) fn flag(value: &Value, path: &str) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The elements at a path, or none.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The fields of the object at a path.
pub(crate) fn fields<'a>(value: &'a Value, path: &str) -> Option<&'a Map<String, Value>> {
    at(value, path).and_then(Value::as_object)
}

/// An annotation's value, or nothing. Its name has dots, so it is no path.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    at(object, "metadata.annotations")
        .and_then(|all| all.get(name))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether the map at a path exists and has an entry.
pub(crate) fn has_entries(value: &Value, path: &str) -> bool {
    fields(value, path).is_some_and(|fields| !fields.is_empty())
}

/// The value at a dotted path, for change.
pub(crate) fn at_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(value, |value, key| value.get_mut(key)).filter(|value| !value.is_null())
}

/// The elements at a path, for change.
pub(crate) fn list_mut<'a>(value: &'a mut Value, path: &str) -> impl Iterator<Item = &'a mut Value> {
    at_mut(value, path).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The object under a key, made where it is absent; `None` where something else stands there.
pub(crate) fn ensure<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let child = value.as_object_mut()?.entry(key).or_insert(Value::Null);
    if child.is_null() {
        *child = Value::Object(Map::new());
    }
    child.is_object().then_some(child)
}

/// Sets a field that is absent, `null` or an empty string.
pub(crate) fn fill(value: &mut Value, key: &str, default: impl Into<Value>) {
    let Some(fields) = value.as_object_mut() else { return };
    let field = fields.entry(key).or_insert(Value::Null);
    if field.is_null() || field.as_str() == Some("") {
        *field = default.into();
    }
}

/// Sets a field that is absent, `null`, an empty string or zero: for numbers that Kubernetes holds without a pointer.
pub(crate) fn fill_zero(value: &mut Value, key: &str, default: impl Into<Value>) {
    let Some(fields) = value.as_object_mut() else { return };
    if fields.get(key).and_then(Value::as_i64) == Some(0) {
        fields.remove(key);
    }
    fill(value, key, default);
}

/// Removes a field of an object.
pub(crate) fn remove(value: &mut Value, key: &str) -> Option<Value> {
    value.as_object_mut()?.remove(key)
}

/// Sets a field of an object.
pub(crate) fn set(value: &mut Value, key: &str, to: impl Into<Value>) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(key.to_owned(), to.into());
    }
}
