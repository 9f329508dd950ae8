//! Go templates: compiled once, executed often.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use crate::ast::Tree;
use crate::exec::{self, ExecError};
use crate::execution::Execution;
use crate::parse::{self, ParseError};
use crate::value::Value;

/// A compiled template.
///
/// # Guarantees
/// Execution never panics, and ends within the [`Limits`] given.
#[derive(Debug)]
pub struct Template {
    name: Arc<str>,
    source: Arc<str>,
    trees: BTreeMap<Arc<str>, Tree>,
}

/// What a map gives for a key it does not have: the `missingkey` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingKey {
    /// No value, printed as `<no value>`.
    #[default]
    Default,
    /// The zero value of what the map holds.
    Zero,
    /// An error.
    Error,
}

/// An option text that Go would panic on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unrecognized option: {0}")]
pub struct UnknownOption(String);

impl FromStr for MissingKey {
    type Err = UnknownOption;

    /// Reads an option as written in `goTemplateOptions`.
    fn from_str(option: &str) -> Result<MissingKey, UnknownOption> {
        match option {
            "missingkey=default" | "missingkey=invalid" => Ok(MissingKey::Default),
            "missingkey=zero" => Ok(MissingKey::Zero),
            "missingkey=error" => Ok(MissingKey::Error),
            _ => Err(UnknownOption(option.to_owned())),
        }
    }
}

/// What one execution may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Statements, pipelines, calls and rounds of loops; calls on long values count more.
    pub steps: u64,
    /// Bytes of output, and of the arguments of a call.
    pub output: usize,
    /// Templates, blocks and parentheses inside each other; each takes some of the caller's stack.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 1_000_000, output: 4 << 20, depth: 200 }
    }
}

impl Template {
    /// Compiles a text. The name is the one error messages show.
    ///
    /// # Errors
    /// With Go's message, when the text is no template or calls a function that does not exist.
    pub fn parse(name: &str, text: &str) -> Result<Template, ParseError> {
        let trees = parse::parse(name, text)?;
        Ok(Template { name: name.into(), source: text.into(), trees })
    }

    /// The body that is executed; none when the text defines nothing under its own name.
    pub(crate) fn root(&self) -> Option<&Tree> {
        self.trees.get(&self.name)
    }

    /// The bodies of this template and of those it defines, by name.
    pub(crate) fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.trees.values()
    }

    /// Executes the template with `data` as its dot, without clock and randomness.
    ///
    /// # Errors
    /// With Go's message, when an expression cannot be evaluated or a limit is reached.
    pub fn execute(
        &self,
        data: &Value,
        missing_key: MissingKey,
        limits: Limits,
    ) -> Result<String, ExecError> {
        self.execute_in(data, &Execution { missing_key, limits, ..Execution::default() })
    }

    /// Executes the template with `data` as its dot and with what it may know of the world.
    ///
    /// # Errors
    /// With Go's message, when an expression cannot be evaluated or a limit is reached.
    pub fn execute_in(&self, data: &Value, execution: &Execution<'_>) -> Result<String, ExecError> {
        match self.root() {
            Some(root) => exec::execute(&self.trees, root, &self.source, data, execution),
            None => Ok(String::new()),
        }
    }
}
