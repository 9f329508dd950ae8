//! One step of a field path, as `FieldsV1` writes it: `f:name`, `k:{"name":"x"}`, `v:"x"`, `i:0`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

/// One step of a field path.
#[derive(Debug, Clone)]
pub(crate) enum Element {
    /// A field of an object, held as it is written (`f:` and its name) so that encoding need not copy it.
    Field(String),
    /// An element of a list of objects, by its key fields in the order of their names.
    Key(Vec<(String, Value)>),
    /// An element of a list of scalars, by its value.
    Value(Value),
    /// An element of a list, by its place.
    Index(i64),
}

/// A path element that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// An element of a kind from the future: skipped.
    Unknown,
    /// Text that is no path element.
    Malformed(String),
}

impl Element {
    /// The step to a field.
    pub(crate) fn field(name: &str) -> Element {
        let mut text = String::with_capacity(name.len() + 2);
        text.push_str("f:");
        text.push_str(name);
        Element::Field(text)
    }

    /// The field's name, if this is a step to a field.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Element::Field(text) => text.get(2..),
            _ => None,
        }
    }

    /// Orders this element against the step to a field without building it.
    pub(crate) fn cmp_field(&self, name: &str) -> Ordering {
        match self.name() {
            Some(own) => own.cmp(name),
            None => Ordering::Greater,
        }
    }

    /// Reads an element from a key of `FieldsV1`.
    pub(crate) fn read(text: &str) -> Result<Element, Unreadable> {
        let malformed = |why: &str| Unreadable::Malformed(format!("{why}: {text}"));
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err(malformed("key must be 2 characters long"));
        };
        match kind {
            "f:" => Ok(Element::Field(text.to_owned())),
            "k:" => match serde_json::from_str(rest) {
                Ok(Value::Object(fields)) => {
                    let mut keys: Vec<_> = fields.into_iter().collect();
                    keys.sort_by(|a, b| a.0.cmp(&b.0));
                    Ok(Element::Key(keys))
                }
                _ => Err(malformed("key is not an object")),
            },
            "v:" => {
                serde_json::from_str(rest).map(Element::Value).map_err(|_| malformed("value is not JSON"))
            }
            "i:" => rest.parse().map(Element::Index).map_err(|_| malformed("index is not a number")),
            _ if kind.ends_with(':') => Err(Unreadable::Unknown),
            _ => Err(malformed("missing colon")),
        }
    }

    /// The element as a key of `FieldsV1`.
    pub(crate) fn written(self) -> String {
        match self {
            Element::Field(text) => text,
            Element::Key(keys) => {
                let mut text = String::from("k:{");
                for (at, (name, value)) in keys.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    write_text(name, &mut text);
                    text.push(':');
                    write_json(value, &mut text);
                }
                text.push('}');
                text
            }
            Element::Value(value) => {
                let mut text = String::from("v:");
                write_json(&value, &mut text);
                text
            }
            Element::Index(at) => format!("i:{at}"),
        }
    }
}

/// Upstream's encoder escapes what HTML could misread; so must these keys, for they are compared as text.
fn write_text(text: &str, out: &mut String) {
    let simple = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
    if text.bytes().all(simple) {
        out.push('"');
        out.push_str(text);
        out.push('"');
        return;
    }
    let quoted = Value::String(text.to_owned()).to_string();
    if !quoted.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return out.push_str(&quoted);
    }
    for letter in quoted.chars() {
        match letter {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_text(text, out),
        Value::Number(number) if number.is_f64() => out.push_str(&float(number.as_f64().unwrap_or_default())),
        other => out.push_str(&other.to_string()),
    }
}

/// Floats as Go writes them in JSON: whole ones without a point, exponents only for the very large and very small.
fn float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        return if size >= 1e21 { text.replace('e', "e+") } else { text };
    }
    format!("{number}")
}

impl fmt::Display for Element {
    /// As conflict messages and field errors show it: `.name`, `[name="x"]`, `[="x"]`, `[0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(_) => write!(f, ".{}", self.name().unwrap_or_default()),
            Element::Key(keys) => {
                f.write_str("[")?;
                for (at, (name, value)) in keys.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Element::Value(value) => write!(f, "[={value}]"),
            Element::Index(at) => write!(f, "[{at}]"),
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Element::Field(a), Element::Field(b)) => a.cmp(b),
            (Element::Key(a), Element::Key(b)) => compare_keys(a, b),
            (Element::Value(a), Element::Value(b)) => compare(a, b),
            (Element::Index(a), Element::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl Element {
    fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

fn compare_keys(a: &[(String, Value)], b: &[(String, Value)]) -> Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| a.0.cmp(&b.0).then_with(|| compare(&a.1, &b.1)));
    pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// A total order over JSON values in which `1` and `1.0` are the same.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let differing = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            differing.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let (mut a, mut b): (Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect());
            a.sort_by(|x, y| x.0.cmp(y.0));
            b.sort_by(|x, y| x.0.cmp(y.0));
            let pairs = a.iter().zip(&b).map(|(a, b)| a.0.cmp(b.0).then_with(|| compare(a.1, b.1)));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64()) {
        return a.cmp(&b);
    }
    // Every JSON number has a finite value as f64, so the two are always comparable.
    let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Whether two values are the same to server-side apply: as JSON, but `1` equals `1.0`.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| same(value, other)))
        }
        (a, b) => a == b,
    }
}
