//! The table of messages.
//!
//! `messages.txt` has one block per message: its name, then one line per field: number, JSON name (`>` for a message whose
//! fields stand in the outer object), type. `[]` before a type is a list, `{}` a map by string; `?` after it means that Go
//! leaves a zero value out of the JSON. Types: `s` text, `y` bytes, `i` integer, `b` flag, `d` float, `T` time, `U` time with
//! microseconds, `Q` quantity, `I` int-or-string, `R` raw JSON, `A`/`B`/`C` a JSON schema or a list of them / a flag / a list
//! of names, otherwise the name of a message.

use std::collections::HashMap;
use std::sync::OnceLock;

const TABLE: &str = include_str!("messages.txt");

/// A message's fields by number.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) fields: Vec<Field>,
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// JSON name; `None` where the message's fields stand in the outer object.
    pub(super) name: Option<&'static str>,
    pub(super) shape: Shape,
    pub(super) content: Content,
    /// Whether a zero value is left out.
    pub(super) omit_zero: bool,
}

/// How often a field's content stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    Map,
    /// A map by string whose values are lists, each in a message of its own.
    MapOfLists,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Text,
    Bytes,
    Integer,
    Flag,
    Float,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    Raw,
    SchemaOrArray,
    SchemaOrFlag,
    SchemaOrNames,
    /// A message, by its place in the table.
    Message(usize),
}

/// All messages, read once.
pub(super) struct Tables {
    messages: Vec<Message>,
    names: HashMap<&'static str, usize>,
}

impl Tables {
    pub(super) fn get() -> &'static Tables {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES.get_or_init(read)
    }

    pub(super) fn find(&self, name: &str) -> Option<&Message> {
        self.messages.get(*self.names.get(name)?)
    }

    pub(super) fn message(&self, place: usize) -> &Message {
        &self.messages[place]
    }
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.number == number)
    }
}

fn read() -> Tables {
    let names: HashMap<&str, usize> = TABLE
        .lines()
        .filter(|line| !line.starts_with(' '))
        .enumerate()
        .map(|(place, name)| (name, place))
        .collect();
    let mut messages: Vec<Message> = Vec::with_capacity(names.len());
    for line in TABLE.lines() {
        match line.strip_prefix(' ') {
            None => messages.push(Message::default()),
            Some(line) => {
                let field = read_field(line, &names).expect("a test reads every line of the table");
                messages.last_mut().expect("the table starts with a name").fields.push(field);
            }
        }
    }
    Tables { messages, names }
}

fn read_field(line: &'static str, names: &HashMap<&str, usize>) -> Option<Field> {
    let mut words = line.split(' ');
    let (number, name, kind) = (words.next()?, words.next()?, words.next()?);
    let (kind, omit_zero) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
    let (shape, kind) = if let Some(kind) = kind.strip_prefix("{}[]") {
        (Shape::MapOfLists, kind)
    } else if let Some(kind) = kind.strip_prefix("{}") {
        (Shape::Map, kind)
    } else if let Some(kind) = kind.strip_prefix("[]") {
        (Shape::List, kind)
    } else {
        (Shape::One, kind)
    };
    let content = match kind {
        "s" => Content::Text,
        "y" => Content::Bytes,
        "i" => Content::Integer,
        "b" => Content::Flag,
        "d" => Content::Float,
        "T" => Content::Time,
        "U" => Content::MicroTime,
        "Q" => Content::Quantity,
        "I" => Content::IntOrString,
        "R" => Content::Raw,
        "A" => Content::SchemaOrArray,
        "B" => Content::SchemaOrFlag,
        "C" => Content::SchemaOrNames,
        name => Content::Message(*names.get(name)?),
    };
    let name = (name != ">").then_some(name);
    Some(Field { number: number.parse().ok()?, name, shape, content, omit_zero })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_every_served_kind_is_there() {
        let tables = Tables::get();
        assert!(tables.messages.len() > 300);
        for kind in crate::all() {
            assert!(
                super::super::json::message_of(&kind.api_version(), kind.kind).is_some(),
                "{}",
                kind.kind
            );
        }
    }

    /// What protobuf calls a field, the schema of its kind must know too.
    #[test]
    fn names_of_fields_are_those_of_the_schema() {
        fn check(path: &str, message: &Message, schema: &baton_schema::Schema, depth: usize) {
            if depth > 12 || schema.preserve_unknown {
                return;
            }
            for field in &message.fields {
                let Content::Message(place) = field.content else {
                    if let Some(name) = field.name {
                        assert!(schema.properties.contains_key(name), "{path}.{name}");
                    }
                    continue;
                };
                let inner = Tables::get().message(place);
                let Some(name) = field.name else {
                    check(path, inner, schema, depth + 1);
                    continue;
                };
                let child = schema.properties.get(name).unwrap_or_else(|| panic!("{path}.{name}"));
                let child = match (&child.items, &child.additional) {
                    (Some(items), _) => items,
                    (_, baton_schema::Additional::Typed(values)) => values,
                    _ => child,
                };
                check(&format!("{path}.{name}"), inner, child, depth + 1);
            }
        }
        for kind in crate::all() {
            let message = super::super::json::message_of(&kind.api_version(), kind.kind).expect("listed");
            check(kind.kind, message, &kind.schema(), 0);
        }
    }
}
