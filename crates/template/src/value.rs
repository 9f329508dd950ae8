//! Values as Go's templates see them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::print;

/// A value a template works on.
///
/// Cloning is cheap: strings, lists and maps are shared. Maps are shared *mutably*, as Go's are.
#[derive(Clone, Default)]
pub enum Value {
    /// A nil interface: JSON's `null`.
    #[default]
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating point number; every number of a JSON document is one.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// A list.
    List(List),
    /// A map with string keys.
    Map(Map),
}

/// A list: Go's `[]interface {}`, or `[]string` when [`List::strings`] made it.
#[derive(Clone)]
pub struct List {
    pub(crate) items: Arc<[Value]>,
    pub(crate) strings: bool,
}

/// A map: Go's `map[string]interface {}`, or `map[string]string` when [`Map::strings`] made it.
///
/// Clones share their entries. Iteration is in key order.
#[derive(Clone)]
pub struct Map {
    pub(crate) entries: Arc<RwLock<BTreeMap<Arc<str>, Value>>>,
    pub(crate) strings: bool,
}

impl Value {
    /// Go's name of the value's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Nil => "interface {}",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float64",
            Value::Str(_) => "string",
            Value::List(list) if list.strings => "[]string",
            Value::List(_) => "[]interface {}",
            Value::Map(map) if map.strings => "map[string]string",
            Value::Map(_) => "map[string]interface {}",
        }
    }

    /// What an `if` makes of the value: zero, empty and nil are false.
    pub fn truth(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(list) => !list.items.is_empty(),
            Value::Map(map) => !map.is_empty(),
        }
    }
}

impl List {
    /// A list of any values.
    pub fn new(items: impl IntoIterator<Item = Value>) -> List {
        List { items: items.into_iter().collect(), strings: false }
    }

    /// A list known to hold strings only.
    pub fn strings<S: Into<Arc<str>>>(items: impl IntoIterator<Item = S>) -> List {
        List { items: items.into_iter().map(|item| Value::Str(item.into())).collect(), strings: true }
    }

    /// The items in order.
    pub fn items(&self) -> &[Value] {
        &self.items
    }
}

impl Map {
    /// A map to any values.
    pub fn new(entries: impl IntoIterator<Item = (Arc<str>, Value)>) -> Map {
        Map { entries: Arc::new(RwLock::new(entries.into_iter().collect())), strings: false }
    }

    /// A map known to hold strings only, such as a label set.
    pub fn strings<K: Into<Arc<str>>, V: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, V)>) -> Map {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), Value::Str(value.into())));
        Map { strings: true, ..Map::new(entries) }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.entries.read_recursive().get(key).cloned()
    }

    /// Sets a key for every holder of the map.
    pub fn insert(&self, key: impl Into<Arc<str>>, value: Value) {
        self.entries.write().insert(key.into(), value);
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.read_recursive().len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.read_recursive().is_empty()
    }

    /// What a missing key reads as where Go makes up a zero value.
    pub(crate) fn zero(&self) -> Value {
        if self.strings { Value::from("") } else { Value::Nil }
    }

    /// The entries as they are now, in key order.
    pub fn snapshot(&self) -> Vec<(Arc<str>, Value)> {
        self.entries.read_recursive().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Value {
        match json {
            serde_json::Value::Null => Value::Nil,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(text) => Value::from(text.as_str()),
            serde_json::Value::Array(items) => Value::List(List::new(items.iter().map(Value::from))),
            serde_json::Value::Object(entries) => Value::Map(Map::new(
                entries.iter().map(|(key, value)| (Arc::from(key.as_str()), Value::from(value))),
            )),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Str(text.into())
    }
}

/// Prints as Go's `%v` does; nil is `<nil>`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        print::plain(self, &mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", self.type_name())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
        for (json, expected) in [
            (json!(null), "<nil>"),
            (json!(true), "true"),
            (json!(999_999), "999999"),
            (json!(1_000_000), "1e+06"),
            (json!(9_007_199_254_740_993_i64), "9.007199254740992e+15"),
            (json!(20.5), "20.5"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(-2), "-2"),
            (json!({"b": [1, "x", null], "a": {"z": false}}), "map[a:map[z:false] b:[1 x <nil>]]"),
            (json!([]), "[]"),
        ] {
            assert_eq!(Value::from(&json).to_string(), expected);
        }
    }

    #[test]
    fn clones_of_a_map_share_its_entries() {
        let map = Map::new([]);
        let other = map.clone();
        other.insert("a", Value::Int(1));
        assert_eq!(Value::Map(map).to_string(), "map[a:1]");
    }
}
