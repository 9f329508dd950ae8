//! Calls of functions and methods, and what may be passed to them.

use super::{At, Exec, Held, Result};
use crate::ast::{Expr, Number, Operand};
use crate::budget::Budget;
use crate::callable::Callable;
use crate::function::{Body, Context, Function, Param};
use crate::value::Value;

/// The arguments of a call: written ones after the first operand, and the one a pipeline hands on.
pub(super) struct Args<'a, 'v> {
    pub(super) call: &'a [Operand],
    pub(super) dot: &'v Held,
    pub(super) last: Option<&'v Held>,
}

impl Args<'_, '_> {
    pub(super) fn count(&self) -> usize {
        self.call.len().saturating_sub(1) + usize::from(self.last.is_some())
    }

    pub(super) fn given(&self) -> bool {
        self.count() > 0
    }
}

impl<'a> Exec<'a> {
    pub(super) fn call(
        &mut self,
        function: &'static Function,
        call: &'a [Operand],
        dot: &Held,
        last: Option<Held>,
    ) -> Result<Held> {
        self.step()?;
        self.at = At::Operand(&call[0]);
        let args = Args { call, dot, last: last.as_ref() };
        self.check_count(function, &args)?;
        match function.body {
            Body::And => return self.first_with_truth(&call[1..], false, dot, last),
            Body::Or => return self.first_with_truth(&call[1..], true, dot, last),
            Body::CallValue => return self.call_of_value(call, dot, last),
            Body::Call(_) | Body::With(_) => {}
        }
        let start = self.stack.len();
        self.arguments(function, &args)?;
        self.apply(function, At::Call(call), start)
    }

    pub(super) fn method(
        &mut self,
        receiver: &Held,
        method: &'static Function,
        args: &Args<'a, '_>,
    ) -> Result<Held> {
        self.step()?;
        let at = args.call.first().map_or(self.at, At::Operand);
        self.check_count(method, args)?;
        let start = self.stack.len();
        self.stack.push(receiver.value.clone().unwrap_or_default());
        self.arguments(method, args)?;
        self.apply(method, at, start)
    }

    fn check_count(&mut self, function: &Function, args: &Args<'a, '_>) -> Result<()> {
        let name = function.name;
        let (want, got) = (function.params.len(), args.count());
        if function.variadic.is_some() && got < want {
            // Go forgets the argument the pipeline hands on, here only.
            let got = args.call.len().saturating_sub(1);
            return Err(
                self.fail(format_args!("wrong number of args for {name}: want at least {want} got {got}"))
            );
        }
        if function.variadic.is_none() && got != want {
            return Err(self.fail(format_args!("wrong number of args for {name}: want {want} got {got}")));
        }
        Ok(())
    }

    /// Evaluates the arguments, onto the stack.
    fn arguments(&mut self, function: &Function, args: &Args<'a, '_>) -> Result<()> {
        let written = args.call.get(1..).unwrap_or_default();
        for (index, arg) in written.iter().enumerate() {
            let value = self.argument(arg, param(function, index), args.dot)?;
            self.stack.push(value);
        }
        if let Some(last) = args.last {
            let value = self.fitting(last.clone(), param(function, written.len()))?;
            self.stack.push(value);
        }
        Ok(())
    }

    /// Calls with the arguments from a place of the stack on.
    fn apply(&mut self, function: &'static Function, at: At<'a>, start: usize) -> Result<Held> {
        let values = &self.stack[start..];
        let outcome = pay(&mut self.budget, values).and_then(|()| {
            let value = match function.body {
                Body::Call(body) => body(values)?,
                Body::With(body) => {
                    body(&mut Context { budget: &mut self.budget, execution: self.execution }, values)?
                }
                Body::And | Body::Or | Body::CallValue => Value::Nil,
            };
            self.budget.bytes(size(&value))?;
            Ok(value)
        });
        self.stack.truncate(start);
        outcome.map(Held::plain).map_err(|error| {
            self.at = at;
            self.fail(format_args!("error calling {}: {error}", function.name))
        })
    }

    /// `call`: only what the caller of the template has put there is a function.
    fn call_of_value(&mut self, call: &'a [Operand], dot: &Held, last: Option<Held>) -> Result<Held> {
        let (callee, shown) = match call.get(1) {
            Some(callee) => (self.operand(callee, dot)?, callee.to_string()),
            None => (last.clone().unwrap_or(Held::NONE), String::new()),
        };
        if let Some(Value::Object(object)) = &callee.value
            && let Some(callable) = object.downcast::<Callable>()
        {
            let last = if call.len() > 1 { last } else { None };
            return self.called(callable, call, dot, last);
        }
        self.at = At::Call(call);
        match callee.value {
            None | Some(Value::Nil) => Err(self.fail("error calling call: call of nil")),
            Some(value) => Err(self.fail(format_args!(
                "error calling call: non-function {shown} of type {}",
                value.type_name()
            ))),
        }
    }

    fn called(
        &mut self,
        callable: &Callable,
        call: &'a [Operand],
        dot: &Held,
        last: Option<Held>,
    ) -> Result<Held> {
        let mut values = Vec::new();
        for arg in call.get(2..).unwrap_or_default() {
            values.push(self.operand(arg, dot)?.value.unwrap_or_default());
        }
        values.extend(last.map(|last| last.value.unwrap_or_default()));
        self.at = At::Call(call);
        let outcome = pay(&mut self.budget, &values).and_then(|()| {
            let value = callable.call(&values)?;
            self.budget.bytes(size(&value))?;
            Ok(value)
        });
        outcome.map(Held::plain).map_err(|error| self.fail(format_args!("error calling call: {error}")))
    }

    fn first_with_truth(
        &mut self,
        args: &'a [Operand],
        truth: bool,
        dot: &Held,
        last: Option<Held>,
    ) -> Result<Held> {
        let mut value = Held::NONE;
        for arg in args {
            value = self.operand(arg, dot)?;
            if value.truth() == truth {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn argument(&mut self, arg: &'a Operand, param: Param, dot: &Held) -> Result<Value> {
        self.at = At::Operand(arg);
        let literal = match (&arg.expr, param) {
            (_, Param::Any) => None,
            (Expr::Nil, param) if param.admits_nil() => return Ok(Value::Nil),
            (Expr::Nil, _) => {
                return Err(self.fail(format_args!("cannot assign nil to {}", param.type_name())));
            }
            (Expr::Bool(_) | Expr::Number(_) | Expr::Str(..), param) if !param.takes_literals() => {
                let wanted = param.type_name();
                return Err(self.fail(format_args!("can't handle {arg} for arg of type {wanted}")));
            }
            (Expr::Number(Number { int: Some(int), .. }), Param::Int) => return Ok(Value::Int(*int)),
            (Expr::Number(Number { int: Some(int), .. }), Param::Int64) => return Ok(Value::Int64(*int)),
            (Expr::Number(Number { int: Some(int), .. }), Param::Uint32) if *int >= 0 => {
                return Ok(Value::Int64(*int));
            }
            (Expr::Number(Number { float: Some(float), .. }), Param::Float) => {
                return Ok(Value::Float(*float));
            }
            (Expr::Bool(value), _) => Some(Value::Bool(*value)),
            // Neither an integer nor a float in the parameter's sense: nothing that fits.
            (Expr::Number(_), _) => Some(Value::Nil),
            (Expr::Str(_, value), _) => Some(value.clone()),
            _ => None,
        };
        if literal.is_some_and(|value| !param.admits(&value)) {
            return Err(self.fail(format_args!("expected {}; found {arg}", param.literal_name())));
        }
        let value = self.operand(arg, dot)?;
        self.fitting(value, param)
    }

    fn fitting(&mut self, held: Held, param: Param) -> Result<Value> {
        let wanted = param.type_name();
        match held.value {
            Some(value) if param.admits(&value) => Ok(value),
            None if param.admits_nil() => Ok(Value::Nil),
            None => Err(self.fail(format_args!("invalid value; expected {wanted}"))),
            Some(value) => {
                Err(self
                    .fail(format_args!("wrong type for value; expected {wanted}; got {}", value.type_name())))
            }
        }
    }
}

/// Pays for reading the arguments.
fn pay(budget: &mut Budget, values: &[Value]) -> std::result::Result<(), String> {
    let taken = values.iter().map(size).sum::<usize>();
    let most = budget.limits().output;
    if taken > most {
        return Err(format!("arguments are longer than {most} bytes"));
    }
    budget.bytes(taken)
}

fn param(function: &Function, index: usize) -> Param {
    function.params.get(index).copied().or(function.variadic).unwrap_or(Param::Any)
}

/// The bytes of a text a function reads or makes. What it does with lists and maps it pays for itself: many only hand
/// them on.
fn size(value: &Value) -> usize {
    if let Value::Str(text) = value { text.len() } else { 0 }
}
