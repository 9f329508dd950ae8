//! Values of expressions.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use baton_grammar::duration::Duration;
use baton_template as template;
use jiff::Timestamp;
use serde_json::Value as Json;

/// A value. What comes from a variable is borrowed from it.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// Nothing.
    Nil,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A list or a map of a variable.
    Part(&'a Json),
    /// A list made on the way.
    List(Arc<[Value<'a>]>),
    /// A map made on the way.
    Map(Arc<BTreeMap<String, Value<'a>>>),
    /// A time.
    Time(Timestamp),
    /// A span of time.
    Span(Duration),
    /// A bundle of functions: `time`, `strings` or `repo`.
    Library(Library),
}

/// A bundle of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Times.
    Time,
    /// Texts.
    Strings,
    /// Repositories.
    Repo,
}

/// What a list holds, one after the other.
pub(super) enum Items<'v, 'a> {
    Json(std::slice::Iter<'a, Json>),
    Made(std::slice::Iter<'v, Value<'a>>),
}

// === impl Value ===

impl<'a> Value<'a> {
    /// A value of a variable.
    pub fn of(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Nil,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(number) => Value::Int(number),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(Cow::Borrowed(text)),
            Json::Array(_) | Json::Object(_) => Value::Part(json),
        }
    }

    /// What kind of value it is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a text",
            Value::Part(Json::Array(_)) | Value::List(_) => "a list",
            Value::Part(_) | Value::Map(_) => "a map",
            Value::Time(_) => "a time",
            Value::Span(_) => "a duration",
            Value::Library(_) => "a bundle of functions",
        }
    }

    pub(super) fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// How many items a list, entries a map or characters a text has.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Value::Text(text) => Some(text.chars().count()),
            Value::Part(Json::Array(items)) => Some(items.len()),
            Value::Part(Json::Object(entries)) => Some(entries.len()),
            Value::List(items) => Some(items.len()),
            Value::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Option<Items<'_, 'a>> {
        match self {
            Value::Part(Json::Array(items)) => Some(Items::Json(items.iter())),
            Value::List(items) => Some(Items::Made(items.iter())),
            _ => None,
        }
    }

    /// The entry of a map; nil if there is none. None if it is no map.
    pub(super) fn entry(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Value::Part(Json::Object(entries)) => Some(entries.get(key).map_or(Value::Nil, Value::of)),
            Value::Map(entries) => Some(entries.get(key).cloned().unwrap_or(Value::Nil)),
            _ => None,
        }
    }

    /// Whether a map has the key. None if it is no map.
    pub(super) fn has(&self, key: &str) -> Option<bool> {
        match self {
            Value::Part(Json::Object(entries)) => Some(entries.contains_key(key)),
            Value::Map(entries) => Some(entries.contains_key(key)),
            _ => None,
        }
    }

    /// The keys of a map, in order. None if it is no map.
    pub(super) fn keys(&self) -> Option<Vec<String>> {
        match self {
            Value::Part(Json::Object(entries)) => Some(entries.keys().cloned().collect()),
            Value::Map(entries) => Some(entries.keys().cloned().collect()),
            _ => None,
        }
    }

    /// As a number with a fraction, if it is a number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Which comes first, of two that can be ordered.
    pub(super) fn order(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
            (Value::Text(left), Value::Text(right)) => Some(left.as_ref().cmp(right.as_ref())),
            (Value::Time(left), Value::Time(right)) => Some(left.cmp(right)),
            (Value::Span(left), Value::Span(right)) => Some(left.cmp(right)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    /// As templates know it, for printing as Go prints it.
    fn to_template(&self) -> template::Value {
        match self {
            Value::Nil => template::Value::Nil,
            Value::Bool(value) => template::Value::Bool(*value),
            Value::Int(number) => template::Value::Int(*number),
            Value::Float(number) => template::Value::Float(*number),
            Value::Text(text) => template::Value::from(text.as_ref()),
            Value::Part(json) => crate::variables::value_of(json),
            Value::List(items) => {
                template::Value::List(template::List::new(items.iter().map(Value::to_template)))
            }
            Value::Map(entries) => {
                let entries =
                    entries.iter().map(|(key, value)| (Arc::from(key.as_str()), value.to_template()));
                template::Value::Map(template::Map::new(entries))
            }
            Value::Time(time) => {
                template::Value::from(time.strftime("%Y-%m-%d %H:%M:%S%.f +0000 UTC").to_string())
            }
            Value::Span(span) => template::Value::from(span.to_string()),
            Value::Library(_) => template::Value::Nil,
        }
    }
}

/// Numbers are equal by what they are, lists and maps by what they hold; what differs in kind is not equal.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Text(left), Value::Text(right)) => left == right,
            (Value::Time(left), Value::Time(right)) => left == right,
            (Value::Span(left), Value::Span(right)) => left == right,
            (Value::Library(left), Value::Library(right)) => left == right,
            _ => {
                if let (Some(left), Some(right)) = (self.number(), other.number()) {
                    return left == right;
                }
                if let (Some(left), Some(right)) = (self.items(), other.items()) {
                    return self.length() == other.length()
                        && left.zip(right).all(|(left, right)| left == right);
                }
                let (Some(left), Some(right)) = (self.keys(), other.keys()) else { return false };
                left == right && left.iter().all(|key| self.entry(key) == other.entry(key))
            }
        }
    }
}

/// Prints as Go's `%v` does; nil is `<nil>`.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            other => other.to_template().fmt(f),
        }
    }
}

// === impl Items ===

impl<'a> Iterator for Items<'_, 'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        match self {
            Items::Json(items) => items.next().map(Value::of),
            Items::Made(items) => items.next().cloned(),
        }
    }
}
