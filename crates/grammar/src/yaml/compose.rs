//! From parser events to a tree of nodes, aliases still unexpanded.

use std::collections::HashMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{Encoding, Event, EventData, Mark, Parser, ScalarStyle};

use super::{Error, MAX_BYTES, MAX_DEPTH};

/// Most work spent on nesting, as the sum of the nodes' depths: the parser looks at every open collection for every
/// token.
const MOST_WORK: usize = 100_000_000;

/// A node's place in its [`Document`].
pub(super) type Id = usize;

/// Where a node begins, from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Place {
    pub(super) fn error(self, message: impl Into<String>) -> Error {
        Error { line: self.line, column: self.column, message: message.into() }
    }
}

impl From<Mark> for Place {
    fn from(mark: Mark) -> Place {
        Place { line: mark.line + 1, column: mark.column + 1 }
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar(Scalar),
    Sequence(Vec<Id>),
    /// Keys and values.
    Mapping(Vec<(Id, Id)>),
    Alias {
        anchor: String,
        target: Id,
    },
}

#[derive(Debug)]
pub(super) struct Scalar {
    /// Empty when none is written.
    pub(super) tag: String,
    pub(super) text: String,
    /// Whether the text decides the type: plain, or tagged with a lone `!`.
    pub(super) implicit: bool,
}

#[derive(Debug)]
pub(super) struct Document {
    pub(super) nodes: Vec<Node>,
    pub(super) root: Id,
}

/// The text with a line break after it: the parser does not expect the end of the text inside a block scalar.
type Input<'a> = std::io::Chain<&'a [u8], &'static [u8]>;

pub(super) struct Composer<'a> {
    parser: Parser<Input<'a>>,
    text: &'a str,
    started: bool,
    /// Where the last event ended.
    reached: Place,
}

impl<'a> Composer<'a> {
    pub(super) fn new(text: &'a str) -> Result<Composer<'a>, Error> {
        let start = Place { line: 1, column: 1 };
        if text.len() > MAX_BYTES {
            return Err(start.error(format!("longer than {MAX_BYTES} bytes")));
        }
        let mut parser = Parser::new();
        // The text is known to be UTF-8: its first bytes must not be taken for another encoding.
        parser.set_encoding(Encoding::Utf8);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let added: &[u8] = if lacks_break(text) { b"\n" } else { b"" };
        parser.set_input(text.as_bytes().chain(added));
        Ok(Composer { parser, text, started: false, reached: start })
    }

    /// The next document, or none at the end of the stream.
    pub(super) fn next_document(&mut self) -> Result<Option<Document>, Error> {
        if !self.started {
            self.event()?;
            self.started = true;
        }
        let start = self.event()?;
        match start.data {
            EventData::DocumentStart { version_directive, .. } => {
                if version_directive.is_some_and(|version| (version.major, version.minor) != (1, 1)) {
                    return Err(Place::from(start.start_mark).error("found incompatible YAML document"));
                }
            }
            _ => return Ok(None),
        }
        let mut document = Document { nodes: Vec::new(), root: 0 };
        document.root = self.tree(&mut document.nodes)?;
        // The end event looks at what follows the document, so that trailing text is noticed.
        self.event()?;
        Ok(Some(document))
    }

    fn tree(&mut self, nodes: &mut Vec<Node>) -> Result<Id, Error> {
        let mut anchors = HashMap::new();
        let mut open: Vec<Open> = Vec::new();
        let mut work = 0;
        loop {
            let event = self.event()?;
            let place = Place::from(event.start_mark);
            if open.len() > MAX_DEPTH {
                return Err(place.error(format!("exceeded max depth of {MAX_DEPTH}")));
            }
            work += open.len();
            if work > MOST_WORK {
                return Err(place.error("too many deeply nested nodes"));
            }
            let id = nodes.len();
            let anchor = match event.data {
                EventData::Scalar { anchor, tag, mut value, plain_implicit, style, .. } => {
                    let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                    if block && event.end_mark.index > self.text.len() as u64 {
                        take_added_break(self.text, &mut value);
                    }
                    let scalar =
                        Scalar { tag: tag.unwrap_or_default(), text: value, implicit: plain_implicit };
                    nodes.push(Node { place, kind: Kind::Scalar(scalar) });
                    anchor
                }
                EventData::Alias { anchor } => {
                    let Some(&target) = anchors.get(&anchor) else {
                        return Err(place.error(format!("unknown anchor '{anchor}' referenced")));
                    };
                    nodes.push(Node { place, kind: Kind::Alias { anchor, target } });
                    None
                }
                EventData::SequenceStart { anchor, .. } => {
                    nodes.push(Node { place, kind: Kind::Sequence(Vec::new()) });
                    open.push(Open { id, key: None });
                    anchor
                }
                EventData::MappingStart { anchor, .. } => {
                    nodes.push(Node { place, kind: Kind::Mapping(Vec::new()) });
                    open.push(Open { id, key: None });
                    anchor
                }
                EventData::SequenceEnd | EventData::MappingEnd => {
                    let Some(ended) = open.pop() else {
                        return Err(place.error("a collection ends that never began"));
                    };
                    if open.is_empty() {
                        return Ok(ended.id);
                    }
                    continue;
                }
                _ => return Err(place.error("the document ends inside a value")),
            };
            if let Some(anchor) = anchor {
                anchors.insert(anchor, id);
            }
            let is_open = open.last().is_some_and(|last| last.id == id);
            let parent = if is_open { open.len().checked_sub(2) } else { open.len().checked_sub(1) };
            match parent {
                Some(parent) => attach(nodes, &mut open[parent], id),
                None if is_open => {}
                None => return Ok(id),
            }
        }
    }

    fn event(&mut self) -> Result<Event, Error> {
        // The parser panics on a tag right before a comma (`[!a, b]`): to the reader that is a syntax error.
        let parsed = catch_unwind(AssertUnwindSafe(|| self.parser.parse()));
        let Ok(parsed) = parsed else {
            return Err(self.reached.error("a tag without a value"));
        };
        if let Ok(event) = &parsed {
            self.reached = event.end_mark.into();
        }
        parsed.map_err(|error| {
            let place = error.problem_mark().map_or(self.reached, Place::from);
            let message = match error.context() {
                Some(context) => format!("{context}: {}", error.problem()),
                None => error.problem().to_owned(),
            };
            place.error(message)
        })
    }
}

fn lacks_break(text: &str) -> bool {
    !text.is_empty() && !text.ends_with(['\n', '\r'])
}

/// Takes back what the added line break did to a block scalar at the end of the text.
fn take_added_break(text: &str, value: &mut String) {
    let Some(without) = value.strip_suffix('\n') else { return };
    let last_line = |text: &str| text.rsplit(['\n', '\r']).next().unwrap_or_default().to_owned();
    // A blank last line is either no part of the scalar or, beyond its indentation, whitespace in it.
    let blank = |line: &str| line.chars().all(|char| char == ' ' || char == '\t');
    if !blank(&last_line(text)) || blank(&last_line(without)) {
        value.pop();
    }
}

/// A collection whose end has not come, and its key that waits for a value.
struct Open {
    id: Id,
    key: Option<Id>,
}

fn attach(nodes: &mut [Node], parent: &mut Open, child: Id) {
    match &mut nodes[parent.id].kind {
        Kind::Sequence(items) => items.push(child),
        Kind::Mapping(entries) => match parent.key.take() {
            Some(key) => entries.push((key, child)),
            None => parent.key = Some(child),
        },
        Kind::Scalar(_) | Kind::Alias { .. } => {}
    }
}
