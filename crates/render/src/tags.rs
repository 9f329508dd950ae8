//! `{{param}}` substitution, split once and filled in often.

use baton_template::{Map, Value};

/// A text with tags, cut up.
#[derive(Debug)]
pub(crate) struct Tags {
    /// Text and the tag that follows it.
    parts: Box<[Part]>,
    rest: Box<str>,
}

#[derive(Debug)]
struct Part {
    before: Box<str>,
    /// The tag as written, braces included.
    tag: Box<str>,
    key: Box<str>,
}

/// A tag was opened and never closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unclosed {
    pub(crate) offset: usize,
}

impl Tags {
    /// Cuts a text up; `None` if it holds no tag and so stands for itself. The rules are those of
    /// [`baton_template::params::substitute`].
    pub(crate) fn compile(text: &str) -> Result<Option<Tags>, Unclosed> {
        if !text.split('\n').any(has_tag) {
            return Ok(None);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let after = &rest[start + 2..];
            let Some(length) = after.find("}}") else {
                return Err(Unclosed { offset: text.len() - rest.len() + start });
            };
            parts.push(Part {
                before: rest[..start].into(),
                tag: rest[start..start + length + 4].into(),
                key: after[..length].trim().into(),
            });
            rest = &after[length + 2..];
        }
        Ok(Some(Tags { parts: parts.into(), rest: rest.into() }))
    }

    pub(crate) fn render(&self, params: &Map) -> String {
        let mut out = String::new();
        for part in &self.parts {
            out.push_str(&part.before);
            match params.get(&part.key) {
                Some(Value::Str(value)) if !part.key.is_empty() => out.push_str(&value),
                _ => out.push_str(&part.tag),
            }
        }
        out.push_str(&self.rest);
        out
    }
}

fn has_tag(line: &str) -> bool {
    line.find("{{").is_some_and(|start| line[start + 2..].contains("}}"))
}
