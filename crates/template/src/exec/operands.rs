//! Operands: literals, variables, fields.

use std::sync::Arc;

use super::calls::Args;
use super::{At, Exec, Held, Result};
use crate::MissingKey;
use crate::ast::{Command, Expr, Number, Operand};
use crate::object::Member;
use crate::quote::quoted;
use crate::value::Value;

impl<'a> Exec<'a> {
    pub(super) fn command(&mut self, command: &'a Command, dot: &Held, last: Option<Held>) -> Result<Held> {
        let operands = command.operands.as_slice();
        let first = &operands[0];
        let args = Args { call: operands, dot, last: last.as_ref() };
        match &first.expr {
            Expr::Function(function) => return self.call(function, operands, dot, last),
            Expr::Field(names) => {
                self.at = At::Operand(first);
                return self.fields(dot, names, &args);
            }
            Expr::Variable(name, names) if !names.is_empty() => {
                self.at = At::Operand(first);
                let value = self.variable(name)?;
                return self.fields(&value, names, &args);
            }
            Expr::Chain(inner, names) => {
                self.at = At::Operand(first);
                let value = self.chained(inner, dot)?;
                return self.fields(&value, names, &args);
            }
            _ => {}
        }
        if let Expr::Pipe(pipe) = &first.expr {
            if args.given() {
                return Err(self.fail(format_args!("can't give argument to non-function {pipe}")));
            }
            return self.pipe(pipe, dot);
        }
        self.at = At::Operand(first);
        if args.given() {
            return Err(self.fail(format_args!("can't give argument to non-function {first}")));
        }
        match &first.expr {
            Expr::Nil => Err(self.fail("nil is not a command")),
            _ => self.operand(first, dot),
        }
    }

    fn chained(&mut self, inner: &'a Operand, dot: &Held) -> Result<Held> {
        if let Expr::Nil = inner.expr {
            return Err(self.fail("indirection through explicit nil in chain"));
        }
        self.operand(inner, dot)
    }

    /// An operand by itself, where nothing is known about the type wanted.
    pub(super) fn operand(&mut self, operand: &'a Operand, dot: &Held) -> Result<Held> {
        self.at = At::Operand(operand);
        let none = Args { call: std::slice::from_ref(operand), dot, last: None };
        Ok(match &operand.expr {
            Expr::Dot => dot.clone(),
            Expr::Nil => Held::NONE,
            Expr::Bool(value) => Held::plain(Value::Bool(*value)),
            Expr::Str(_, value) => Held::plain(value.clone()),
            Expr::Number(number) => match constant(number) {
                Some(value) => Held::plain(value),
                None => return Err(self.fail(format_args!("{} overflows int", number.text))),
            },
            Expr::Field(names) => self.fields(dot, names, &none)?,
            Expr::Variable(name, names) => {
                let value = self.variable(name)?;
                self.fields(&value, names, &none)?
            }
            Expr::Chain(inner, names) => {
                let value = self.chained(inner, dot)?;
                self.fields(&value, names, &none)?
            }
            Expr::Function(function) => self.call(function, std::slice::from_ref(operand), dot, None)?,
            Expr::Pipe(pipe) => self.pipe(pipe, dot)?,
        })
    }

    fn variable(&self, name: &str) -> Result<Held> {
        match self.variables.iter().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => Ok(value.clone()),
            None if name == "$" => Ok(self.dollar.clone()),
            None => Err(self.fail(format_args!("undefined variable: {name}"))),
        }
    }

    /// The value under a path of names. Maps all the way, each with its key, is what there is nearly always.
    fn fields(&mut self, value: &Held, names: &[Arc<str>], args: &Args<'a, '_>) -> Result<Held> {
        if let Some(Value::Map(map)) = &value.value
            && !args.given()
            && let Some(found) = map.at(names, |value, boxed| Held { value: Some(value.clone()), boxed })
        {
            return Ok(found);
        }
        let Some((last, inner)) = names.split_last() else {
            return Ok(value.clone());
        };
        let none = Args { call: args.call.get(..1).unwrap_or_default(), dot: args.dot, last: None };
        let mut value = value.clone();
        for name in inner {
            value = self.field(value, name, &none)?;
        }
        self.field(value, last, args)
    }

    fn field(&mut self, receiver: Held, name: &str, args: &Args<'a, '_>) -> Result<Held> {
        let map = match &receiver.value {
            None if self.missing_key == MissingKey::Error => {
                return Err(self.fail(format_args!("nil data; no entry for key {}", quoted(name))));
            }
            None => return Ok(Held::NONE),
            Some(Value::Nil) => {
                return Err(self.fail(format_args!("nil pointer evaluating interface {{}}.{name}")));
            }
            Some(Value::Map(map)) => map,
            Some(Value::Object(object)) => match object.thing().member(name) {
                Some(Member::Method(method)) => return self.method(&receiver, method, args),
                Some(Member::Field(_)) if args.given() => {
                    return Err(
                        self.fail(format_args!("{name} has arguments but cannot be invoked as function"))
                    );
                }
                Some(Member::Field(value)) => return Ok(Held::plain(value)),
                None => {
                    let type_name = receiver.type_name();
                    return Err(self.fail(format_args!("can't evaluate field {name} in type {type_name}")));
                }
            },
            Some(_) => {
                let type_name = receiver.type_name();
                return Err(self.fail(format_args!("can't evaluate field {name} in type {type_name}")));
            }
        };
        if args.given() {
            return Err(self.fail(format_args!("{name} is not a method but has arguments")));
        }
        let boxed = !map.strings;
        match (map.get(name), self.missing_key) {
            (Some(value), _) => Ok(Held { value: Some(value), boxed }),
            (None, MissingKey::Error) => {
                Err(self.fail(format_args!("map has no entry for key {}", quoted(name))))
            }
            (None, MissingKey::Zero) => Ok(Held { value: Some(map.zero()), boxed }),
            (None, MissingKey::Default) => Ok(Held::NONE),
        }
    }
}

fn constant(number: &Number) -> Option<Value> {
    if number.prefers_float { number.float.map(Value::Float) } else { number.int.map(Value::Int) }
}
