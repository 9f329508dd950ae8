//! What is wrong with a template, and where.

use std::fmt;

use baton_api::conditions::reason;

/// What was being rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The template of Applications.
    Template,
    /// The patch of Applications (`templatePatch`).
    Patch,
    /// A generator, or the `values` it adds.
    Generator,
    /// Options of the template language.
    Options,
}

/// A template that cannot be compiled or rendered.
///
/// The text names what was rendered, the field, line and column inside that field's text, and the engine's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderError {
    subject: Subject,
    path: String,
    place: Option<Place>,
    message: String,
}

/// Line and column inside a text, both from 1; the column counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

// === impl RenderError ===

impl RenderError {
    pub(crate) fn new(subject: Subject, path: impl Into<String>, message: impl Into<String>) -> RenderError {
        RenderError { subject, path: path.into(), place: None, message: message.into() }
    }

    pub(crate) fn at(self, place: Option<Place>) -> RenderError {
        RenderError { place, ..self }
    }

    pub(crate) fn while_doing(self, what: &str) -> RenderError {
        RenderError { message: format!("{what}: {}", self.message), ..self }
    }

    /// What was being rendered.
    pub fn subject(&self) -> Subject {
        self.subject
    }

    /// The field that holds the template, such as `spec.source.helm.parameters[2].value`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Line and column inside the field's text, from 1, where the engine told.
    pub fn place(&self) -> Option<(usize, usize)> {
        self.place.map(|place| (place.line, place.column))
    }

    /// The reason a condition states for it.
    pub fn reason(&self) -> &'static str {
        match self.subject {
            Subject::Generator => reason::APPLICATION_PARAMS_GENERATION_ERROR,
            Subject::Template | Subject::Patch | Subject::Options => reason::RENDER_TEMPLATE_PARAMS_ERROR,
        }
    }

    /// Whether the only trouble is a key the parameters do not have.
    pub(crate) fn is_missing_key(&self) -> bool {
        self.message.contains("map has no entry for key") || self.message.contains("can't evaluate field")
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.subject {
            Subject::Template => "template",
            Subject::Patch | Subject::Options => "",
            Subject::Generator => "generator",
        };
        f.write_str(subject)?;
        if !subject.is_empty() && !self.path.is_empty() {
            f.write_str(" ")?;
        }
        f.write_str(&self.path)?;
        if let Some(Place { line, column }) = self.place {
            write!(f, ", line {line}, column {column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for RenderError {}

// === impl Place ===

impl Place {
    /// The place of a byte of a text.
    pub(crate) fn of(text: &str, offset: usize) -> Place {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        Place { line, column: before.len() - start + 1 }
    }
}
