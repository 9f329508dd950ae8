//! One compiled expression.

use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cel::common::ast::IdedExpr;
use cel::common::types::{CelBytes, CelString};
use cel::common::value::CowVal;
use cel::{Context, Env, ExecutionError, FunctionContext};

use super::budget::Budget;
use super::scan;
use crate::model::{Kind, Schema};

/// Longest expression that is read.
const LONGEST: usize = 64 * 1024;

/// The functions rules may call. It never changes after it is built.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(environment()));

fn environment() -> Env {
    let mut env = Env::stdlib();
    let added = env
        .add_extension(cel::extensions::strings)
        .and_then(|()| env.add_extension(cel::extensions::lists))
        .and_then(|()| env.add_extension(cel::extensions::math))
        .and_then(|()| env.add_extension(super::library::extension));
    // A clash of names would show in the first test that compiles a rule.
    debug_assert!(added.is_ok(), "the libraries name different functions: {added:?}");
    env
}

/// An expression ready to be evaluated.
#[derive(Debug)]
pub(super) struct Program {
    expression: IdedExpr,
    uses_old: bool,
    kind: Option<Kind>,
}

impl Program {
    /// Parses an expression over `self` and `oldSelf`, whose fields `schema` describes.
    pub(super) fn compile(text: &str, schema: &Schema, whole_resource: bool) -> Result<Program, String> {
        if text.len() > LONGEST {
            return Err(format!("compilation failed: expression is longer than {LONGEST} bytes"));
        }
        let parsed = ENVIRONMENT.compile(text).map_err(|error| format!("compilation failed: {error}"))?;
        let mut expression = parsed.expression().clone();
        let kind = scan::evident_kind(&expression.expr, schema);
        let uses_old = scan::check_and_meter(&mut expression, schema, whole_resource).map_err(|fault| {
            let at = parsed.source_info().offset_for(fault.node).map_or(0, |(start, _)| start as usize);
            format!("compilation failed: {}", located(text, at, &fault.message))
        })?;
        Ok(Program { expression, uses_old, kind })
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
        let mut context = Context::with_env(ENVIRONMENT.clone());
        context.add_variable_from_value("self", this.clone());
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", old.clone());
        }
        context.add_function(scan::METER, meter(budget.clone())).map_err(|error| error.to_string())?;
        cel::Value::resolve(&self.expression, &context).map_err(describe)
    }
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

type Function = Box<
    dyn for<'context, 'call> Fn(
            &mut FunctionContext<'context, 'call>,
        ) -> Result<CowVal<'context, 'call>, ExecutionError>
        + Send
        + Sync,
>;

/// Hands its argument through and charges the budget for its size.
fn meter(budget: Arc<Budget>) -> Function {
    Box::new(move |call| {
        let value = call.args.pop().ok_or_else(ExecutionError::missing_argument_or_target)?;
        let units = if let Some(text) = value.downcast_ref::<CelString>() {
            text.inner().len() / 10
        } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
            bytes.inner().len() / 10
        } else {
            value.as_sizer().map_or(0, |sizer| usize::try_from(*sizer.size().inner()).unwrap_or(0))
        };
        if budget.take(units + 1) {
            Ok(value)
        } else {
            Err(ExecutionError::function_error(
                scan::METER,
                "operation cancelled: actual cost limit exceeded",
            ))
        }
    })
}

/// The evaluator's errors in the words of the Go implementation where users meet them.
fn describe(error: ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::FunctionError { message, function } if function == scan::METER => message,
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
