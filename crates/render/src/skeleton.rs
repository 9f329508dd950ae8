//! A JSON value in which only strings and keys that hold template text are compiled; the rest is copied.

use baton_template::MissingKey;
use serde_json::{Map, Number, Value};

use crate::Params;
use crate::engine::Engine;
use crate::error::{RenderError, Subject};
use crate::limits::{Budget, MAX_DEPTH, MAX_NODES};
use crate::path::{push_element, push_field};
use crate::text::{Scope, Text};

/// A compiled value.
#[derive(Debug)]
pub(crate) struct Skeleton {
    root: Node,
    /// How many strings and keys are rendered.
    texts: usize,
}

#[derive(Debug)]
pub(crate) enum Node {
    /// Nothing in it is rendered.
    Copy(Value),
    Text(Text),
    /// Rendered, unless a key is missing; then the template itself is the value.
    Deferred {
        text: Text,
        key: Box<str>,
    },
    List(Box<[Node]>),
    Map(Box<[Entry]>),
}

#[derive(Debug)]
pub(crate) struct Entry {
    key: Key,
    value: Node,
    /// Left out when the value renders to nothing, as the typed object leaves it out.
    omitted_when_empty: bool,
}

#[derive(Debug)]
enum Key {
    Plain(Box<str>),
    Text(Text),
}

/// Turns values into nodes.
pub(crate) struct Compiler {
    engine: Engine,
    subject: Subject,
    path: String,
    nodes: usize,
    texts: usize,
}

// === impl Compiler ===

impl Compiler {
    pub(crate) fn new(engine: &Engine, subject: Subject) -> Compiler {
        Compiler { engine: *engine, subject, path: String::new(), nodes: 0, texts: 0 }
    }

    pub(crate) fn finish(self, root: Node) -> Skeleton {
        Skeleton { root, texts: self.texts }
    }

    /// Compiles a value. `emptied` is the value as it is written when every template renders to nothing; without it
    /// nothing is left out.
    pub(crate) fn value(
        &mut self,
        value: &Value,
        emptied: Option<&Value>,
        depth: usize,
    ) -> Result<Node, RenderError> {
        self.count(depth)?;
        match value {
            Value::String(text) => {
                let text = self.text(text)?;
                Ok(if text.is_plain() { Node::Copy(Value::from(text.source())) } else { Node::Text(text) })
            }
            Value::Number(number) => Ok(Node::Copy(Value::Number(as_go_writes(number)))),
            Value::Array(items) => {
                let compile = |(index, item): (usize, &Value)| {
                    let emptied = emptied.and_then(|emptied| emptied.get(index));
                    self.in_element(index, |this| this.value(item, emptied, depth + 1))
                };
                Ok(list(items.iter().enumerate().map(compile).collect::<Result<_, _>>()?))
            }
            Value::Object(fields) => {
                let mut entries = Vec::with_capacity(fields.len());
                // A null says that there is no value.
                for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                    let below = emptied.and_then(|emptied| emptied.get(name));
                    let node = self.in_field(name, |this| this.value(value, below, depth + 1))?;
                    let omitted = matches!(node, Node::Text(_)) && emptied.is_some() && below.is_none();
                    entries.push(self.entry(name, node, omitted)?);
                }
                Ok(map(entries))
            }
            Value::Null | Value::Bool(_) => Ok(Node::Copy(value.clone())),
        }
    }

    /// Compiles the fields of an object one by one.
    pub(crate) fn fields(
        &mut self,
        fields: &Map<String, Value>,
        depth: usize,
        mut field: impl FnMut(&mut Compiler, &str, &Value) -> Result<Node, RenderError>,
    ) -> Result<Node, RenderError> {
        self.count(depth)?;
        let mut entries = Vec::with_capacity(fields.len());
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let node = self.in_field(name, |this| field(this, name, value))?;
            entries.push(self.entry(name, node, false)?);
        }
        Ok(map(entries))
    }

    /// Compiles a `values` map: entries that miss a key are left for the generator itself to render.
    pub(crate) fn deferred(
        &mut self,
        fields: &Map<String, Value>,
        depth: usize,
    ) -> Result<Node, RenderError> {
        self.count(depth)?;
        let mut entries = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            let node = match value {
                Value::String(text) => {
                    let engine = match self.engine {
                        Engine::Fast => Engine::Fast,
                        Engine::Go(_) => Engine::Go(MissingKey::Error),
                    };
                    let set = std::mem::replace(&mut self.engine, engine);
                    let text = self.in_field(name, |this| this.text(text));
                    self.engine = set;
                    Node::Deferred {
                        text: text.map_err(|error| unresolved(error, name))?,
                        key: name.as_str().into(),
                    }
                }
                other => Node::Copy(other.clone()),
            };
            let key = Key::Plain(name.as_str().into());
            entries.push(Entry { key, value: node, omitted_when_empty: false });
        }
        Ok(map(entries))
    }

    pub(crate) fn in_element<T>(&mut self, index: usize, work: impl FnOnce(&mut Compiler) -> T) -> T {
        self.below(|path| push_element(path, index), work)
    }

    fn in_field<T>(&mut self, name: &str, work: impl FnOnce(&mut Compiler) -> T) -> T {
        self.below(|path| push_field(path, name), work)
    }

    fn below<T>(&mut self, step: impl FnOnce(&mut String), work: impl FnOnce(&mut Compiler) -> T) -> T {
        let length = self.path.len();
        step(&mut self.path);
        let result = work(self);
        self.path.truncate(length);
        result
    }

    fn entry(&mut self, name: &str, value: Node, omitted_when_empty: bool) -> Result<Entry, RenderError> {
        let text = self.text(name)?;
        let key = if text.is_plain() { Key::Plain(name.into()) } else { Key::Text(text) };
        Ok(Entry { key, value, omitted_when_empty })
    }

    fn text(&mut self, text: &str) -> Result<Text, RenderError> {
        let text = Text::compile_for(&self.engine, self.subject, &self.path, text)?;
        self.texts += usize::from(!text.is_plain());
        Ok(text)
    }

    fn count(&mut self, depth: usize) -> Result<(), RenderError> {
        self.nodes += 1;
        let trouble = if depth > MAX_DEPTH {
            format!("values are nested more than {MAX_DEPTH} deep")
        } else if self.nodes > MAX_NODES {
            format!("there are more than {MAX_NODES} values")
        } else {
            return Ok(());
        };
        Err(RenderError::new(self.subject, self.path.as_str(), trouble))
    }
}

// === impl Skeleton ===

impl Skeleton {
    /// Renders the value. Of two keys that render alike, the later in the order of the templates wins.
    pub(crate) fn render(&self, params: &Params, budget: &mut Budget) -> Result<Value, RenderError> {
        self.root.render(&Scope::new(params, self.texts), budget)
    }
}

impl Node {
    fn render(&self, scope: &Scope<'_>, budget: &mut Budget) -> Result<Value, RenderError> {
        match self {
            Node::Copy(value) => Ok(value.clone()),
            Node::Text(text) => Ok(Value::String(rendered(text, scope, budget)?)),
            Node::Deferred { text, key } => match rendered(text, scope, budget) {
                Ok(value) => Ok(Value::String(value)),
                Err(error) if error.is_missing_key() => Ok(Value::from(text.source())),
                Err(error) => Err(unresolved(error, key)),
            },
            Node::List(items) => {
                let items = items.iter().map(|item| item.render(scope, budget));
                Ok(Value::Array(items.collect::<Result<_, _>>()?))
            }
            Node::Map(entries) => {
                let mut fields = Map::new();
                for entry in entries {
                    let value = entry.value.render(scope, budget)?;
                    let key = match &entry.key {
                        Key::Plain(key) => key.as_ref().to_owned(),
                        Key::Text(text) => rendered(text, scope, budget)?,
                    };
                    if !(entry.omitted_when_empty && value.as_str() == Some("")) {
                        fields.insert(key, value);
                    }
                }
                Ok(Value::Object(fields))
            }
        }
    }

    fn is_copy(&self) -> bool {
        matches!(self, Node::Copy(_))
    }

    fn into_copy(self) -> Value {
        match self {
            Node::Copy(value) => value,
            _ => Value::Null,
        }
    }
}

/// The error of an entry of `values`, in Argo CD's words.
fn unresolved(error: RenderError, key: &str) -> RenderError {
    error.while_doing(&format!("failed to pre-resolve Values key {key:?}"))
}

fn rendered(text: &Text, scope: &Scope<'_>, budget: &mut Budget) -> Result<String, RenderError> {
    let rendered = text.render_in(scope)?;
    budget.take(rendered.len(), text.subject(), text.path())?;
    Ok(rendered)
}

fn list(items: Vec<Node>) -> Node {
    if items.iter().all(Node::is_copy) {
        return Node::Copy(Value::Array(items.into_iter().map(Node::into_copy).collect()));
    }
    Node::List(items.into())
}

fn map(entries: Vec<Entry>) -> Node {
    if entries.iter().all(|entry| entry.value.is_copy() && matches!(entry.key, Key::Plain(_))) {
        let fields = entries.into_iter().filter_map(|entry| match entry.key {
            Key::Plain(key) => Some((String::from(key), entry.value.into_copy())),
            Key::Text(_) => None,
        });
        return Node::Copy(Value::Object(fields.collect()));
    }
    Node::Map(entries.into())
}

/// A number as Go writes it: `1.0` is `1`.
fn as_go_writes(number: &Number) -> Number {
    // Whole numbers up to here are exact in both forms.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => {
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}
