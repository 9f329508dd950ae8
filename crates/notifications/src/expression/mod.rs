//! Expressions of triggers: the part of expr-lang that `when` and `oncePer` are written in.
//!
//! An expression is read once ([`Expression::parse`]) and evaluated often ([`Expression::evaluate`]). It sees the
//! variables it is given and the time, and nothing else; there are no loops but over what a value holds.
//!
//! # What is read
//! - Literals: numbers, texts in any of the three quotes, `true`, `false`, `nil`, lists, maps.
//! - `and or not && || !`, `== != < <= > >=`, `in`, `matches`, `contains`, `startsWith`, `endsWith` (each of the last
//!   five also after `not`), `+ - * / %`, `..`, `??`, `a ? b : c`.
//! - `a.b`, `a?.b`, `a["b"]`, `a[0]`, `a[-1]`.
//! - `any all none one filter map count find` over a list with a predicate, in which `#` is the element and `.x` a
//!   field of it; braces around it may be left out.
//! - `len first last keys values upper lower trim split join replace string int float abs now duration`.
//! - `time.Now()`, `time.Parse(text)`, units such as `time.Minute`; methods of times and durations; `strings.ToUpper`,
//!   `strings.ToLower`, `strings.ReplaceAll`; `repo.RepoURLToHTTPS`, `repo.FullNameByRepoURL`, `repo.QueryEscape`.
//!
//! # What is nil
//! As for Go's expr: a variable or a key that is not there is nil; a field of nil is an error; after `?.` on nil the
//! rest of the chain is nil; `x in nil`, and `matches` and its like with nil, are false.
//!
//! # Guarantees
//! No text makes reading or evaluating panic, recurse deeper than a bound, or run past its steps; memory is paid for in
//! steps too.

mod evaluate;
mod functions;
mod methods;
mod parse;
mod token;
mod value;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value as Json;

pub(crate) use functions::{full_name_by_repo_url, query_escape, repo_url_to_https};
use parse::Node;
pub use value::{Library, Value};

/// Longest expression that is read, in bytes.
const LONGEST: usize = 16 << 10;

/// An expression, ready to be evaluated.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    root: Node,
}

/// The variables of an evaluation, by name.
pub type Variables<'a> = BTreeMap<&'a str, &'a Json>;

/// An expression that cannot be read, with a line that points at the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {why}\n  {excerpt}\n  {pointer}")]
pub struct SyntaxError {
    /// Where, in characters from 1.
    pub column: usize,
    /// What is wrong.
    pub why: String,
    excerpt: String,
    pointer: String,
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {why}")]
pub struct EvaluationError {
    /// Where, in characters from 1.
    pub column: usize,
    /// What is wrong.
    pub why: String,
}

// === impl Expression ===

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is no expression, or none of the part that is read here.
    pub fn parse(text: &str) -> Result<Expression, SyntaxError> {
        if text.len() > LONGEST {
            return Err(SyntaxError::new(text, 0, format!("the expression is longer than {LONGEST} bytes")));
        }
        match parse::parse(text) {
            Ok(root) => Ok(Expression { text: text.to_owned(), root }),
            Err(fault) => Err(SyntaxError::new(text, fault.at, fault.why)),
        }
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its value, with these variables at this time.
    ///
    /// # Errors
    /// A field of nil, an operation on what it is not for, or too many steps.
    pub fn evaluate<'a>(
        &self,
        variables: &Variables<'a>,
        now: Timestamp,
    ) -> Result<Value<'a>, EvaluationError> {
        evaluate::evaluate(&self.root, variables, now)
            .map_err(|fault| EvaluationError { column: fault.at + 1, why: fault.why })
    }

    /// Whether it is true. Anything but a boolean is not.
    ///
    /// # Errors
    /// As for [`Expression::evaluate`].
    pub fn holds(&self, variables: &Variables<'_>, now: Timestamp) -> Result<bool, EvaluationError> {
        Ok(matches!(self.evaluate(variables, now)?, Value::Bool(true)))
    }

    /// The variables it mentions.
    pub fn mentions(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.root.collect_names(&mut names);
        names
    }
}

// === impl SyntaxError ===

impl SyntaxError {
    /// Characters shown on either side of the place.
    const AROUND: usize = 36;

    fn new(text: &str, at: usize, why: String) -> SyntaxError {
        let visible = |char: char| if char.is_control() { ' ' } else { char };
        let start = at.saturating_sub(SyntaxError::AROUND);
        let excerpt: String = text.chars().skip(start).take(2 * SyntaxError::AROUND).map(visible).collect();
        let pointer = format!("{}^", " ".repeat(at - start));
        SyntaxError { column: at + 1, why, excerpt, pointer }
    }
}
