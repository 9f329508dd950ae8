//! From nodes to JSON: merges, aliases within a budget, keys as text.

use serde_json::{Map, Number, Value};

use super::compose::{Document, Id, Kind, Place};
use super::resolve::{self, Typed};
use super::{Duplicate, Error, MAX_DEPTH, MOST_DUPLICATES};

/// Most text that aliases may repeat. Go shares strings where JSON values own theirs.
const MOST_ALIASED_BYTES: usize = 64 << 20;

pub(super) fn build(document: &Document) -> Result<(Value, Vec<Duplicate>), Error> {
    let mut builder = Builder::new(document);
    let value = builder.value(document.root)?;
    Ok((value, builder.duplicates))
}

/// A plain key as JSON's text; none for an alias or what cannot be a key.
pub(super) fn key_text(document: &Document, id: Id) -> Option<String> {
    match &document.nodes[id].kind {
        Kind::Scalar(scalar) => match resolve::resolve(scalar).ok()? {
            Typed::Timestamp => Some(scalar.text.clone()),
            typed => key_of(typed).map(|(text, _)| text),
        },
        _ => None,
    }
}

/// A key as JSON's text, and as Go would show it; none for what cannot be a key.
fn key_of(typed: Typed) -> Option<(String, String)> {
    let bare = |text: String| Some((text.clone(), text));
    match typed {
        Typed::Text(text) => {
            let shown = format!("{text:?}");
            Some((text, shown))
        }
        Typed::Bool(bool) => bare(bool.to_string()),
        Typed::Int(int) => bare(int.to_string()),
        Typed::Float(float) => bare(float_key(float)),
        Typed::Uint(_) | Typed::Null | Typed::Timestamp => None,
    }
}

struct Builder<'a> {
    document: &'a Document,
    duplicates: Vec<Duplicate>,
    /// Targets of the aliases being expanded.
    expanding: Vec<bool>,
    alias_depth: usize,
    depth: usize,
    nodes: usize,
    aliased_nodes: usize,
    aliased_bytes: usize,
}

impl<'a> Builder<'a> {
    fn new(document: &'a Document) -> Builder<'a> {
        Builder {
            document,
            duplicates: Vec::new(),
            expanding: vec![false; document.nodes.len()],
            alias_depth: 0,
            depth: 0,
            nodes: 0,
            aliased_nodes: 0,
            aliased_bytes: 0,
        }
    }

    fn value(&mut self, id: Id) -> Result<Value, Error> {
        self.count(id)?;
        let node = &self.document.nodes[id];
        match &node.kind {
            Kind::Scalar(_) => {
                let typed = self.scalar(id)?;
                json(typed).map_err(|message| node.place.error(message))
            }
            Kind::Sequence(items) => self.nested(id, |builder| {
                items.iter().map(|item| builder.value(*item)).collect::<Result<_, _>>().map(Value::Array)
            }),
            Kind::Mapping(_) => {
                let mut map = Map::new();
                self.mapping(id, &mut map)?;
                Ok(Value::Object(map))
            }
            Kind::Alias { target, .. } => self.expanded(id, |builder| builder.value(*target)),
        }
    }

    /// Writes the entries of a mapping over those the map has.
    fn mapping(&mut self, id: Id, map: &mut Map<String, Value>) -> Result<(), Error> {
        let Kind::Mapping(entries) = &self.document.nodes[id].kind else {
            return Err(self.place(id).error("map merge requires map or sequence of maps as the value"));
        };
        self.nested(id, |builder| {
            for &(key, value) in entries {
                if builder.is_merge(key) {
                    builder.merge(value, map)?;
                    continue;
                }
                let (name, shown) = builder.key(key)?;
                let line = builder.place(value).line;
                let value = builder.value(value)?;
                if map.insert(name, value).is_some() && builder.duplicates.len() < MOST_DUPLICATES {
                    builder.duplicates.push(Duplicate { line, key: shown });
                }
            }
            Ok(())
        })
    }

    fn is_merge(&self, key: Id) -> bool {
        matches!(&self.document.nodes[key].kind, Kind::Scalar(scalar) if resolve::is_merge(scalar))
    }

    fn merge(&mut self, id: Id, map: &mut Map<String, Value>) -> Result<(), Error> {
        match &self.document.nodes[id].kind {
            Kind::Sequence(items) => {
                // Earlier maps win, so they are written last.
                for item in items.iter().rev() {
                    self.merge_one(*item, map)?;
                }
                Ok(())
            }
            _ => self.merge_one(id, map),
        }
    }

    fn merge_one(&mut self, id: Id, map: &mut Map<String, Value>) -> Result<(), Error> {
        self.count(id)?;
        match &self.document.nodes[id].kind {
            Kind::Alias { target, .. } => self.expanded(id, |builder| {
                builder.count(*target)?;
                builder.mapping(*target, map)
            }),
            _ => self.mapping(id, map),
        }
    }

    /// A key as JSON's text, and as Go would show it.
    fn key(&mut self, id: Id) -> Result<(String, String), Error> {
        self.count(id)?;
        let place = self.place(id);
        let typed = match &self.document.nodes[id].kind {
            Kind::Scalar(_) => self.scalar(id)?,
            Kind::Alias { target, .. } => {
                return self.expanded(id, |builder| builder.key(*target));
            }
            Kind::Sequence(_) | Kind::Mapping(_) => {
                return Err(place.error("invalid map key: a list or a map"));
            }
        };
        let kind = if matches!(typed, Typed::Uint(_)) { "uint64" } else { "null" };
        key_of(typed).ok_or_else(|| place.error(format!("unsupported map key of type: {kind}")))
    }

    fn scalar(&self, id: Id) -> Result<Typed, Error> {
        let node = &self.document.nodes[id];
        let Kind::Scalar(scalar) = &node.kind else {
            return Err(node.place.error("expected a scalar"));
        };
        match resolve::resolve(scalar) {
            Ok(Typed::Timestamp) => Ok(Typed::Text(scalar.text.clone())),
            Ok(typed) => Ok(typed),
            Err(message) => Err(node.place.error(message)),
        }
    }

    fn place(&self, id: Id) -> Place {
        self.document.nodes[id].place
    }

    fn nested<T>(&mut self, id: Id, inner: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= MAX_DEPTH {
            return Err(self.place(id).error(format!("exceeded max depth of {MAX_DEPTH}")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn expanded<T>(&mut self, id: Id, inner: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let Kind::Alias { anchor, target } = &self.document.nodes[id].kind else { return inner(self) };
        if self.expanding[*target] {
            return Err(self.place(id).error(format!("anchor '{anchor}' value contains itself")));
        }
        self.expanding[*target] = true;
        self.alias_depth += 1;
        let result = inner(self);
        self.alias_depth -= 1;
        self.expanding[*target] = false;
        result
    }

    /// Counts a node against the alias budget, which shrinks from 99 % of small documents to 10 % of large ones: a
    /// few hundred thousand aliased nodes in any case.
    fn count(&mut self, id: Id) -> Result<(), Error> {
        const SMALL: f64 = 400_000.0;
        const LARGE: f64 = 4_000_000.0;
        self.nodes += 1;
        if self.alias_depth == 0 {
            return Ok(());
        }
        self.aliased_nodes += 1;
        if let Kind::Scalar(scalar) = &self.document.nodes[id].kind {
            self.aliased_bytes += scalar.text.len();
        }
        let all = self.nodes as f64;
        let allowed = 0.99 - 0.89 * ((all - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
        let excessive =
            self.aliased_nodes > 100 && self.nodes > 1000 && self.aliased_nodes as f64 / all > allowed;
        if excessive || self.aliased_bytes > MOST_ALIASED_BYTES {
            return Err(self.place(id).error("document contains excessive aliasing"));
        }
        Ok(())
    }
}

fn json(typed: Typed) -> Result<Value, String> {
    Ok(match typed {
        Typed::Null | Typed::Timestamp => Value::Null,
        Typed::Bool(bool) => Value::Bool(bool),
        Typed::Int(int) => int.into(),
        Typed::Uint(uint) => uint.into(),
        Typed::Text(text) => Value::String(text),
        Typed::Float(float) => match Number::from_f64(float) {
            Some(number) => Value::Number(integral(float).unwrap_or(number)),
            None => return Err(format!("json: unsupported value: {float}")),
        },
    })
}

/// A float that Go's JSON prints without a fraction comes back as an integer: its shortest digits, filled with zeros.
fn integral(float: f64) -> Option<Number> {
    if float.fract() != 0.0 || float.abs() >= 1e20 || (float == 0.0 && float.is_sign_negative()) {
        return None;
    }
    let digits = float.to_string();
    digits.parse::<i64>().map(Number::from).or_else(|_| digits.parse::<u64>().map(Number::from)).ok()
}

/// A float key as Go's `%g` prints it after rounding to 32 bits.
fn float_key(float: f64) -> String {
    let float = float as f32;
    if float.is_nan() {
        return ".nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}
