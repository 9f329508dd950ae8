//! One string of a template.

use std::cell::OnceCell;

use baton_template::{Execution, Limits, MissingKey, SystemEntropy, Template, Value};
use jiff::Zoned;

use crate::Params;
use crate::engine::Engine;
use crate::error::{Place, RenderError, Subject};
use crate::limits::share;
use crate::tags::Tags;

/// The name Argo CD gives every template; templates may call themselves by it, and messages show it.
const NAME: &str = "base";

/// What the names of functions have in common that tell the time or work with it.
const TIMED: [&str; 5] = ["now", "ago", "date", "Date", "gen"];

/// How much of a template an error message shows, in bytes.
const SHOWN: usize = 160;

/// A compiled string.
#[derive(Debug)]
pub struct Text {
    subject: Subject,
    path: Box<str>,
    source: Box<str>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// Nothing to render.
    Plain,
    Tags(Tags),
    Go {
        template: Box<Template>,
        missing_key: MissingKey,
        /// It may ask for the time.
        timed: bool,
    },
}

/// Parameters in both forms the engines take, and what each string may use.
pub(crate) struct Scope<'p> {
    params: &'p Params,
    dot: Value,
    limits: Limits,
    /// The time all strings that are rendered together see; it is looked up when one of them asks for it.
    now: OnceCell<Zoned>,
}

// === impl Text ===

impl Text {
    /// Compiles a string of a generator, such as one of its `values`. The path is for error messages.
    ///
    /// # Errors
    /// When the text is no template of the language.
    pub fn compile(engine: &Engine, path: &str, text: &str) -> Result<Text, RenderError> {
        Text::compile_for(engine, Subject::Generator, path, text)
    }

    /// Renders the string.
    ///
    /// # Errors
    /// When an expression cannot be evaluated or a limit is reached.
    pub fn render(&self, params: &Params) -> Result<String, RenderError> {
        self.render_in(&Scope::new(params, 1))
    }

    pub(crate) fn compile_for(
        engine: &Engine,
        subject: Subject,
        path: &str,
        text: &str,
    ) -> Result<Text, RenderError> {
        let body = match engine {
            _ if !text.contains("{{") => Body::Plain,
            Engine::Fast => match Tags::compile(text) {
                Ok(tags) => tags.map_or(Body::Plain, Body::Tags),
                Err(unclosed) => {
                    let message = format!("invalid template: \"{{{{\" has no \"}}}}\": {}", shown(text));
                    let error = RenderError::new(subject, path, message);
                    return Err(error.at(Some(Place::of(text, unclosed.offset))));
                }
            },
            Engine::Go(missing_key) => match Template::parse(NAME, text) {
                Ok(template) => Body::Go {
                    template: Box::new(template),
                    missing_key: *missing_key,
                    timed: TIMED.iter().any(|name| text.contains(name)),
                },
                Err(error) => {
                    let complaint = error.to_string();
                    let told = Told::read(&complaint);
                    let message = format!("failed to parse template {}: {}", shown(text), told.message);
                    let place = told.line.map(|line| action_at_fault(text, line, &error));
                    return Err(RenderError::new(subject, path, message).at(place));
                }
            },
        };
        Ok(Text { subject, path: path.into(), source: text.into(), body })
    }

    pub(crate) fn render_in(&self, scope: &Scope<'_>) -> Result<String, RenderError> {
        match &self.body {
            Body::Plain => Ok(self.source.as_ref().to_owned()),
            Body::Tags(tags) => Ok(tags.render(scope.params)),
            Body::Go { template, missing_key, timed } => {
                let execution = Execution {
                    missing_key: *missing_key,
                    limits: scope.limits,
                    now: timed.then(|| scope.now.get_or_init(Zoned::now)),
                    entropy: Some(&SystemEntropy),
                };
                template.execute_in(&scope.dot, &execution).map_err(|error| {
                    let complaint = error.to_string();
                    let told = Told::read(&complaint);
                    let message =
                        format!("failed to execute go template {}: {}", shown(&self.source), told.message);
                    let place = told.line.map(|line| Place { line, column: told.column.unwrap_or(0) + 1 });
                    RenderError::new(self.subject, self.path.as_ref(), message).at(place)
                })
            }
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.body, Body::Plain)
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn subject(&self) -> Subject {
        self.subject
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

// === impl Scope ===

impl<'p> Scope<'p> {
    /// A scope for rendering `count` strings together.
    pub(crate) fn new(params: &'p Params, count: usize) -> Scope<'p> {
        Scope { params, dot: Value::Map(params.clone()), limits: share(count), now: OnceCell::new() }
    }
}

/// A message of the engine, taken apart: `template: name:line:column: message`, the column from 0.
struct Told<'m> {
    line: Option<usize>,
    column: Option<usize>,
    message: &'m str,
}

impl<'m> Told<'m> {
    fn read(text: &'m str) -> Told<'m> {
        let unplaced = Told { line: None, column: None, message: text };
        let Some(rest) = text.strip_prefix("template: ").and_then(|rest| rest.strip_prefix(NAME)) else {
            return unplaced;
        };
        let Some((line, after)) = rest.strip_prefix(':').and_then(number) else { return unplaced };
        match after.strip_prefix(':').and_then(number) {
            Some((column, after)) => {
                Told { line: Some(line), column: Some(column), message: after.trim_start_matches([':', ' ']) }
            }
            None => Told { line: Some(line), column: None, message: after.trim_start_matches([':', ' ']) },
        }
    }
}

fn number(text: &str) -> Option<(usize, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// Where the action starts that a parser complained about. Go tells the line only; the parser reads in order, so the
/// first action after which it complains the same is the one.
fn action_at_fault(text: &str, line: usize, complaint: &baton_template::ParseError) -> Place {
    let start = text.split_inclusive('\n').take(line - 1).map(str::len).sum::<usize>();
    let length = text[start..].find('\n').unwrap_or(text.len() - start);
    let opens = text[start..start + length].match_indices("{{").map(|(at, _)| start + at);
    // Each try parses the text anew, and a line may hold very many actions.
    let at = opens.take(64).find(|&open| {
        let end = text[open..].find("}}").map_or(text.len(), |close| open + close + 2);
        Template::parse(NAME, &text[..end]).is_err_and(|error| error == *complaint)
    });
    Place::of(text, at.unwrap_or(start))
}

/// The start of a template.
fn shown(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let end = (0..=SHOWN).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{}…", &text[..end])
}
