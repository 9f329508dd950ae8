//! One compiled expression.

use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cel::common::ast::IdedExpr;
use cel::{Context, Env, ExecutionError};

use super::budget::Budget;
use super::{meter, scan, stack};
use crate::model::{Kind, Schema};

/// Longest expression that is read.
const LONGEST: usize = 16 * 1024;

/// Deepest nesting of brackets that is read.
const MOST_BRACKETS: usize = 64;

/// Up to this depth an expression is evaluated on the caller's stack.
const SHALLOW: usize = 20;

/// The functions rules may call. It never changes after it is built.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(environment()));

fn environment() -> Env {
    let mut env = Env::stdlib();
    let added = env
        .add_extension(cel::extensions::strings)
        .and_then(|()| env.add_extension(cel::extensions::lists))
        .and_then(|()| env.add_extension(super::library::extension));
    // A clash of names would show in the first test that compiles a rule.
    assert!(added.is_ok(), "the libraries name different functions: {added:?}");
    env
}

/// An expression ready to be evaluated.
#[derive(Debug)]
pub(super) struct Program {
    expression: IdedExpr,
    uses_old: bool,
    deep: bool,
    kind: Option<Kind>,
}

impl Program {
    /// Parses an expression over `self` and `oldSelf`, whose fields `schema` describes.
    pub(super) fn compile(text: &str, schema: &Schema, whole_resource: bool) -> Result<Program, String> {
        if text.len() > LONGEST {
            return Err(format!("compilation failed: expression is longer than {LONGEST} bytes"));
        }
        if brackets(text) > MOST_BRACKETS {
            return Err("compilation failed: expression is nested too deeply".to_owned());
        }
        let compiled = stack::on_large_stack(|| Self::parse(text, schema, whole_resource));
        compiled.unwrap_or_else(|| Err("compilation failed: the parser gave up".to_owned()))
    }

    fn parse(text: &str, schema: &Schema, whole_resource: bool) -> Result<Program, String> {
        let parsed = ENVIRONMENT.compile(text).map_err(|error| format!("compilation failed: {error}"))?;
        let mut expression = parsed.expression().clone();
        let kind = scan::evident_kind(&expression.expr, schema);
        let found = scan::check_and_meter(&mut expression, schema, whole_resource).map_err(|fault| {
            let at = parsed.source_info().offset_for(fault.node).map_or(0, |(start, _)| start as usize);
            format!("compilation failed: {}", located(text, at, &fault.message))
        })?;
        Ok(Program { expression, uses_old: found.uses_old, deep: found.depth > SHALLOW, kind })
    }

    /// Whether the value may be of this type, as far as that shows without evaluating.
    pub(super) fn may_be(&self, kind: Kind) -> bool {
        self.kind.is_none_or(|evident| evident == kind)
    }

    pub(super) fn uses_old_self(&self) -> bool {
        self.uses_old
    }

    /// Evaluates with `self` and, where there is one, `oldSelf` bound.
    pub(super) fn evaluate(
        &self,
        budget: &Arc<Budget>,
        this: &cel::Value,
        old: Option<&cel::Value>,
    ) -> Result<cel::Value, String> {
        let evaluated = if self.deep {
            stack::on_large_stack(|| self.resolve(budget, this, old))
        } else {
            stack::contained(|| self.resolve(budget, this, old))
        };
        evaluated.unwrap_or_else(|| Err("internal error".to_owned()))
    }

    fn resolve(
        &self,
        budget: &Arc<Budget>,
        this: &cel::Value,
        old: Option<&cel::Value>,
    ) -> Result<cel::Value, String> {
        let mut context = Context::with_env(ENVIRONMENT.clone());
        context.add_variable_from_value("self", this.clone());
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", old.clone());
        }
        meter::install(&mut context, budget).map_err(|error| error.to_string())?;
        cel::Value::resolve(&self.expression, &context).map_err(describe)
    }
}

/// The deepest nesting of brackets, those in string literals included.
fn brackets(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A message with the line it is about and a mark under the place, `at` characters into the text.
fn located(text: &str, at: usize, message: &str) -> String {
    let before: String = text.chars().take(at).collect();
    let line = before.matches('\n').count();
    let column = before.chars().rev().take_while(|&character| character != '\n').count();
    let source = text.lines().nth(line).unwrap_or_default();
    let mark = ".".repeat(column);
    format!("ERROR: <input>:{}:{}: {message}\n | {source}\n | {mark}^", line + 1, column + 1)
}

/// The evaluator's errors in the words of the Go implementation where users meet them.
fn describe(error: ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::FunctionError { function, .. }
            if matches!(function.as_str(), "int" | "uint" | "double") =>
        {
            format!("type conversion error from 'string' to '{function}'")
        }
        ExecutionError::FunctionError { message, .. } => message,
        ExecutionError::NoSuchOverload(_) => "no such overload".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::IndexOutOfBounds(cel::Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        other => {
            // Messages quote whole values; an object does not belong in one.
            const MOST: usize = 256;
            other.to_string().chars().take(MOST).collect()
        }
    }
}

/// RFC 3339 text as a CEL timestamp.
pub(super) fn timestamp(text: &str) -> Option<cel::Value> {
    convert("timestamp", text)
}

/// Go duration text as a CEL duration.
pub(super) fn duration(text: &str) -> Option<cel::Value> {
    convert("duration", text)
}

/// Base64 text as CEL bytes.
pub(super) fn bytes(text: &str) -> Option<cel::Value> {
    BASE64_STANDARD.decode(text).ok().map(|bytes| cel::Value::Bytes(Arc::new(bytes)))
}

/// The evaluator's own conversion, so that a field and a literal of the same text are equal.
fn convert(function: &str, text: &str) -> Option<cel::Value> {
    let call = ENVIRONMENT.compile(&format!("{function}(self)")).ok()?;
    let mut context = Context::with_env(ENVIRONMENT.clone());
    context.add_variable_from_value("self", text);
    call.execute(&context).ok()
}
