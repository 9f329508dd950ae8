//! What an operation of the API is: its method and path, what it takes, what it answers.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::route::Route;

/// How an operation is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A parameter of the query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: Kind,
}

/// What a parameter of the query may be. Whatever it is, a value of another kind is read as none or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// Several, each in a pair of its own.
    Texts,
    Flag,
    Number,
    /// One of these.
    Words(&'static [&'static str]),
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Text,
    /// Line by line, for as long as somebody listens.
    Stream,
    /// A picture.
    Picture,
    /// A browser is sent elsewhere.
    Elsewhere,
}

/// The schema of a body, with what it needs put among those of the document.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// One operation of the API.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) route: Route,
    pub(super) verb: Verb,
    /// Segments in braces are parameters; one that ends in `...` takes the rest of the path.
    pub(super) path: &'static str,
    /// In a sentence.
    pub(super) about: &'static str,
    pub(super) query: &'static [Parameter],
    pub(super) body: Option<Shape>,
    pub(super) answer: Shape,
    pub(super) form: Form,
    /// Whether everybody may ask, signed in or not.
    pub(super) open: bool,
}

/// What stands in the places of a path that are parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names(Vec<(&'static str, String)>);

// === impl Verb ===

impl Verb {
    pub(super) const ALL: [Verb; 5] = [Verb::Get, Verb::Post, Verb::Put, Verb::Patch, Verb::Delete];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
        }
    }
}

// === impl Operation ===

impl Operation {
    const fn new(verb: Verb, path: &'static str, route: Route, about: &'static str) -> Operation {
        let (query, body, answer) = (&[] as &[Parameter], None, any as Shape);
        Operation { route, verb, path, about, query, body, answer, form: Form::Json, open: false }
    }

    pub(super) const fn get(path: &'static str, route: Route, about: &'static str) -> Operation {
        Operation::new(Verb::Get, path, route, about)
    }

    pub(super) const fn post(path: &'static str, route: Route, about: &'static str) -> Operation {
        Operation::new(Verb::Post, path, route, about)
    }

    pub(super) const fn put(path: &'static str, route: Route, about: &'static str) -> Operation {
        Operation::new(Verb::Put, path, route, about)
    }

    pub(super) const fn patch(path: &'static str, route: Route, about: &'static str) -> Operation {
        Operation::new(Verb::Patch, path, route, about)
    }

    pub(super) const fn delete(path: &'static str, route: Route, about: &'static str) -> Operation {
        Operation::new(Verb::Delete, path, route, about)
    }

    /// With these parameters of the query.
    pub(super) const fn query(self, query: &'static [Parameter]) -> Operation {
        Operation { query, ..self }
    }

    /// With a body.
    pub(super) const fn takes(self, body: Shape) -> Operation {
        Operation { body: Some(body), ..self }
    }

    pub(super) const fn answers(self, answer: Shape) -> Operation {
        Operation { answer, ..self }
    }

    /// Whose answer is no JSON.
    pub(super) const fn text(self) -> Operation {
        Operation { form: Form::Text, ..self }
    }

    /// Whose answer is a picture.
    pub(super) const fn picture(self) -> Operation {
        Operation { form: Form::Picture, ..self }
    }

    /// Whose answer has no end.
    pub(super) const fn stream(self) -> Operation {
        Operation { form: Form::Stream, ..self }
    }

    /// Which sends a browser elsewhere.
    pub(super) const fn elsewhere(self) -> Operation {
        Operation { form: Form::Elsewhere, ..self }
    }

    /// Which everybody may ask for.
    pub(super) const fn open(self) -> Operation {
        Operation { open: true, ..self }
    }

    /// What it does, in a word, and to which kind of object; nothing where it changes nothing or everybody
    /// may ask for it.
    pub(super) fn changes(&self) -> Option<(&'static str, &'static str)> {
        let mut parts = self.path.trim_start_matches("/api/v1/").split('/');
        let kind = match parts.next() {
            Some("applications") => "Application",
            Some("applicationsets") => "ApplicationSet",
            Some("projects") => "AppProject",
            Some("clusters" | "repositories" | "repocreds" | "write-repositories" | "write-repocreds") => {
                "Secret"
            }
            _ => "",
        };
        let last = parts.next_back().filter(|part| name_in(part).is_none());
        let verb = match (self.verb, last) {
            (Verb::Get, _) => return None,
            _ if self.open => return None,
            (Verb::Post, None) => "create",
            (Verb::Post, Some(word)) => word,
            (Verb::Put, _) => "update",
            (Verb::Patch, _) => "patch",
            (Verb::Delete, _) => "delete",
        };
        Some((verb, kind))
    }

    /// The parameters of the path.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(name_in).map(|name| name.trim_end_matches("..."))
    }

    /// What stands in the places of the path's parameters, if a path is one of this operation. An empty segment is no
    /// name.
    pub(super) fn matches(&self, segments: &[&str]) -> Option<Names> {
        let mut names = Vec::new();
        let mut rest = segments.iter();
        for part in self.path.trim_start_matches('/').split('/') {
            match name_in(part) {
                Some(name) if name.ends_with("...") => {
                    let left: Vec<&str> = rest.by_ref().copied().collect();
                    if left.iter().any(|segment| segment.is_empty()) {
                        return None;
                    }
                    names.push((name.trim_end_matches("..."), left.join("/")));
                }
                Some(name) => {
                    names.push((name, rest.next().filter(|segment| !segment.is_empty())?.to_string()))
                }
                None => {
                    rest.next().filter(|segment| **segment == part)?;
                }
            }
        }
        rest.next().is_none().then_some(Names(names))
    }
}

/// The name of a parameter that stands for a segment.
fn name_in(part: &'static str) -> Option<&'static str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

// === impl Names ===

impl Names {
    /// What stands for the first parameter, which names what the path is about; empty where it has none.
    pub(crate) fn first(&self) -> &str {
        self.0.first().map(|(_, text)| text.as_str()).unwrap_or_default()
    }

    /// What stands for a parameter; empty where the path has none of that name.
    pub(crate) fn text(&self, name: &str) -> &str {
        debug_assert!(self.0.iter().any(|(known, _)| *known == name), "the path has no {name}");
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str()).unwrap_or_default()
    }
}

/// The schema of a type.
pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A list of what a type is.
pub(super) fn list<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let item = generator.subschema_for::<T>();
    schemars::json_schema!({"type": "object", "properties": {"items": {"type": ["array", "null"], "items": item}}})
}

/// Any object.
pub(super) fn any(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "object"})
}
