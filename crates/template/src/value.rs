//! Values as Go's templates see them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::deep;
use crate::object::Object;
use crate::print;

/// Names looked up in one go.
const LONGEST_PATH: usize = 32;

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
    /// An integer: Go's `int`.
    Int(i64),
    /// An integer of 64 bits by name: Go's `int64`, which sprig's arithmetic returns.
    Int64(i64),
    /// A byte of a string: Go's `uint8`.
    Byte(u8),
    /// A floating point number; every number of a JSON document is one.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// A list.
    List(List),
    /// A map with string keys.
    Map(Map),
    /// A value of a type of its own, such as a time.
    Object(Object),
}

/// A list: Go's `[]interface {}`, or `[]string` when [`List::strings`] made it.
#[derive(Clone)]
pub struct List {
    items: Arc<[Value]>,
    of: Items,
    /// Go's nil slice: empty, but `null` in JSON.
    is_nil: bool,
}

/// What a list is known to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Items {
    /// Anything.
    Any,
    /// Strings.
    Str,
    /// Integers.
    Int,
    /// Lists of anything.
    Lists,
}

/// A map: Go's `map[string]interface {}`, or `map[string]string` when [`Map::strings`] made it.
///
/// Clones share their entries. Iteration is in key order.
#[derive(Clone)]
pub struct Map {
    entries: Arc<RwLock<BTreeMap<Arc<str>, Value>>>,
    pub(crate) strings: bool,
}

impl Value {
    /// Go's name of the value's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Nil => "interface {}",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Byte(_) => "uint8",
            Value::Float(_) => "float64",
            Value::Str(_) => "string",
            Value::List(list) => match list.of {
                Items::Any => "[]interface {}",
                Items::Str => "[]string",
                Items::Int => "[]int",
                Items::Lists => "[][]interface {}",
            },
            Value::Map(map) if map.strings => "map[string]string",
            Value::Map(_) => "map[string]interface {}",
            Value::Object(object) => object.thing().type_name(),
        }
    }

    /// Go's name of the kind of type the value has; `invalid` for nil.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Value::Nil => "invalid",
            Value::List(_) => "slice",
            Value::Map(_) => "map",
            Value::Object(object) => object.thing().kind_name(),
            other => other.type_name(),
        }
    }

    /// What an `if` makes of the value: zero, empty and nil are false.
    pub fn truth(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(value) => *value,
            Value::Int(value) | Value::Int64(value) => *value != 0,
            Value::Byte(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(list) => !list.items.is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Object(object) => object.thing().truth(),
        }
    }

    /// The number an integer of any size is.
    pub(crate) fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Int(value) | Value::Int64(value) => Some(*value),
            Value::Byte(value) => Some(i64::from(*value)),
            Value::Object(object) => object.thing().integer(),
            _ => None,
        }
    }

    /// A smaller number of the same type as this one.
    pub(crate) fn like(&self, number: i64) -> Value {
        match self {
            Value::Int64(_) => Value::Int64(number),
            Value::Byte(_) => Value::Byte(u8::try_from(number).unwrap_or(u8::MAX)),
            _ => Value::Int(number),
        }
    }

    fn is_container(&self) -> bool {
        matches!(self, Value::List(_) | Value::Map(_))
    }
}

impl List {
    /// A list of any values.
    pub fn new(items: impl IntoIterator<Item = Value>) -> List {
        List::of(Items::Any, items.into_iter().collect())
    }

    /// A list known to hold strings only.
    pub fn strings<S: Into<Arc<str>>>(items: impl IntoIterator<Item = S>) -> List {
        List::of(Items::Str, items.into_iter().map(|item| Value::Str(item.into())).collect())
    }

    /// A list of what the caller knows to be of one type.
    pub(crate) fn of(of: Items, items: Arc<[Value]>) -> List {
        List { items, of, is_nil: false }
    }

    /// No list at all, where Go's type is that of a list nevertheless.
    pub(crate) fn nil(of: Items) -> List {
        List { items: Arc::new([]), of, is_nil: true }
    }

    /// The items in order.
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// What the list is known to hold.
    pub(crate) fn holds(&self) -> Items {
        self.of
    }

    pub(crate) fn is_nil(&self) -> bool {
        self.is_nil
    }

    /// Tells lists apart that are not clones of each other.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.items).addr()
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
        let entries = Arc::new(RwLock::new(entries.collect()));
        Map { entries, strings: true }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.entries.read_recursive().get(key).cloned()
    }

    /// Looks at the value under a path of names, if there are maps with these keys all the way; tells also whether it
    /// lies where anything could.
    pub(crate) fn at<T>(&self, names: &[Arc<str>], look: impl FnOnce(&Value, bool) -> T) -> Option<T> {
        let (name, rest) = names.split_first()?;
        // Every level takes some stack, and a lock.
        if rest.len() >= LONGEST_PATH {
            return None;
        }
        let entries = self.entries.read_recursive();
        match entries.get(name.as_ref())? {
            value if rest.is_empty() => Some(look(value, !self.strings)),
            Value::Map(inner) => inner.at(rest, look),
            _ => None,
        }
    }

    /// Sets a key for every holder of the map.
    ///
    /// # Caveats
    /// The value must not hold the map itself, however deep inside: such a map is never freed.
    pub fn insert(&self, key: impl Into<Arc<str>>, value: Value) {
        let replaced = self.entries.write().insert(key.into(), value);
        // After the lock is gone: what is replaced may be large.
        drop(replaced);
    }

    /// Takes a key out for every holder of the map.
    pub fn remove(&self, key: &str) -> Option<Value> {
        self.entries.write().remove(key)
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

    /// A copy that shares no list or map with this one: templates can change maps, and what they change in the copy
    /// stays there.
    #[must_use]
    pub fn detached(&self) -> Map {
        deep::detached(self)
    }

    /// A new map of the same type.
    pub(crate) fn empty_like(&self) -> Map {
        Map { entries: Arc::default(), strings: self.strings }
    }

    /// Tells maps apart that are not clones of each other.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.entries).addr()
    }
}

/// Values nest as deep as a template cares to build them, so what is inside is taken out before it is dropped: the
/// compiler's way would need stack for every level.
impl Drop for List {
    fn drop(&mut self) {
        if Arc::strong_count(&self.items) == 1 {
            let mut pending = Vec::new();
            self.give_up(&mut pending);
            dismantle(pending);
        }
    }
}

/// As for [`List`].
impl Drop for Map {
    fn drop(&mut self) {
        if Arc::strong_count(&self.entries) == 1 {
            let mut pending = Vec::new();
            self.give_up(&mut pending);
            dismantle(pending);
        }
    }
}

fn dismantle(mut pending: Vec<Value>) {
    while let Some(mut value) = pending.pop() {
        match &mut value {
            Value::List(list) => list.give_up(&mut pending),
            Value::Map(map) => map.give_up(&mut pending),
            _ => {}
        }
    }
}

impl List {
    /// Moves out what would nest, if nobody else holds the list.
    fn give_up(&mut self, pending: &mut Vec<Value>) {
        if let Some(items) = Arc::get_mut(&mut self.items) {
            pending.extend(items.iter_mut().filter(|item| item.is_container()).map(std::mem::take));
        }
    }
}

impl Map {
    /// Moves out what would nest, if nobody else holds the map.
    fn give_up(&mut self, pending: &mut Vec<Value>) {
        if let Some(entries) = Arc::get_mut(&mut self.entries) {
            let values = entries.get_mut().values_mut();
            pending.extend(values.filter(|value| value.is_container()).map(std::mem::take));
        }
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

/// Prints as Go's `%v` does; nil is `<nil>`. What is beyond all reason, in length or depth, ends in `...`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print::shown(self))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Object(object) => object.fmt(f),
            other => write!(f, "{}({other})", other.type_name()),
        }
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
    fn a_detached_map_shares_nothing() {
        let Value::Map(map) = Value::from(&json!({"a": {"b": 1}, "l": [{"c": 2}]})) else {
            panic!("an object is a map");
        };
        let copy = map.detached();
        if let Some(Value::Map(inner)) = map.get("a") {
            inner.insert("b", Value::Int(5));
        }
        map.insert("x", Value::Nil);
        assert_eq!(Value::Map(copy).to_string(), "map[a:map[b:1] l:[map[c:2]]]");
    }

    #[test]
    fn clones_of_a_map_share_its_entries() {
        let map = Map::new([]);
        let other = map.clone();
        other.insert("a", Value::Int(1));
        assert_eq!(Value::Map(map).to_string(), "map[a:1]");
    }
}
