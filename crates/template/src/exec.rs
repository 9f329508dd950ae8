//! Templates put to work on data.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use crate::MissingKey;
use crate::ast::{Branch, Command, Expr, Number, Operand, Pipe, Stmt, Tree};
use crate::budget::Budget;
use crate::execution::Execution;
use crate::function::{Body, Context, Function, Param};
use crate::object::Member;
use crate::print;
use crate::quote::quoted;
use crate::value::{Items, Value};

/// A template that could not be executed; the text names template, line, column and the expression at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExecError(String);

type Result<T> = std::result::Result<T, Box<ExecError>>;

/// A value in flight: `None` where Go has no value at all, as for a key that is missing.
#[derive(Clone)]
struct Held {
    value: Option<Value>,
    /// It was read out of a slot that could hold anything, which Go's messages then name as its type.
    boxed: bool,
}

/// How a list of statements ended.
#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The part being evaluated, for error messages.
#[derive(Clone, Copy)]
enum At<'a> {
    Nothing,
    Pipe(&'a Pipe),
    Operand(&'a Operand),
    /// A call with its arguments.
    Call(&'a [Operand]),
    Template(usize, &'a str, Option<&'a Pipe>),
}

pub(crate) fn execute(
    trees: &BTreeMap<Arc<str>, Tree>,
    root: &Tree,
    source: &str,
    data: &Value,
    execution: &Execution<'_>,
) -> std::result::Result<String, ExecError> {
    let dot = Held::plain(data.clone()).flattened();
    let mut exec = Exec {
        trees,
        source,
        root: &root.name,
        tree: root,
        execution,
        missing_key: execution.missing_key,
        budget: Budget::new(execution.limits),
        out: String::new(),
        variables: vec![("$", dot.clone())],
        depth: 0,
        at: At::Nothing,
    };
    exec.list(&root.body, &dot).map_err(|error| *error)?;
    Ok(exec.out)
}

struct Exec<'a> {
    trees: &'a BTreeMap<Arc<str>, Tree>,
    source: &'a str,
    root: &'a str,
    tree: &'a Tree,
    execution: &'a Execution<'a>,
    missing_key: MissingKey,
    budget: Budget,
    out: String,
    variables: Vec<(&'a str, Held)>,
    depth: usize,
    at: At<'a>,
}

/// The arguments of a call: written ones after the first operand, and the one a pipeline hands on.
struct Args<'a, 'v> {
    call: &'a [Operand],
    dot: &'v Held,
    last: Option<&'v Held>,
}

impl Args<'_, '_> {
    fn count(&self) -> usize {
        self.call.len().saturating_sub(1) + usize::from(self.last.is_some())
    }

    fn given(&self) -> bool {
        self.count() > 0
    }
}

impl Held {
    const NONE: Held = Held { value: None, boxed: false };

    fn plain(value: Value) -> Held {
        Held { value: Some(value), boxed: false }
    }

    /// What is left after a pipeline: the value itself, and nil is no value.
    fn flattened(self) -> Held {
        match self.value {
            Some(Value::Nil) => Held::NONE,
            value => Held { value, boxed: false },
        }
    }

    fn truth(&self) -> bool {
        self.value.as_ref().is_some_and(Value::truth)
    }

    fn type_name(&self) -> &'static str {
        match &self.value {
            Some(value) if !self.boxed => value.type_name(),
            _ => "interface {}",
        }
    }
}

impl<'a> Exec<'a> {
    fn list(&mut self, list: &'a [Stmt], dot: &Held) -> Result<Flow> {
        for stmt in list {
            let flow = self.stmt(stmt, dot)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &'a Stmt, dot: &Held) -> Result<Flow> {
        self.step()?;
        match stmt {
            Stmt::Text(text) => self.write(text)?,
            Stmt::Action(pipe) => {
                let value = self.pipe(pipe, dot)?;
                if pipe.variables.is_empty() {
                    self.print(&value)?;
                }
            }
            Stmt::If(branch) => return self.branch(branch, dot, false),
            Stmt::With(branch) => return self.branch(branch, dot, true),
            Stmt::Range(branch) => return self.range(branch, dot),
            Stmt::Template { pos, name, pipe } => self.template(*pos, name, pipe.as_ref(), dot)?,
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, held: &Held) -> Result<()> {
        match &held.value {
            None => self.write("<no value>"),
            Some(Value::Str(text)) => self.write(text),
            Some(value) => {
                let most = self.budget.limits().output;
                print::plain(value, &mut self.out, most).map_err(|error| self.fail(error))
            }
        }
    }

    fn branch(&mut self, branch: &'a Branch, dot: &Held, rebinds: bool) -> Result<Flow> {
        let mark = self.variables.len();
        let value = self.pipe(&branch.pipe, dot)?;
        self.enter()?;
        let flow = if value.truth() {
            self.list(&branch.body, if rebinds { &value } else { dot })?
        } else {
            self.list(&branch.otherwise, dot)?
        };
        self.depth -= 1;
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, branch: &'a Branch, dot: &Held) -> Result<Flow> {
        let outer = self.variables.len();
        let value = self.pipe(&branch.pipe, dot)?;
        self.enter()?;
        let mut flow = Flow::Next;
        let mut ran = false;
        match &value.value {
            None => {}
            Some(Value::List(list)) => {
                for (index, item) in list.items().iter().enumerate() {
                    ran = true;
                    let item = Held { value: Some(item.clone()), boxed: list.holds() == Items::Any };
                    if !self.iteration(branch, Value::Int(index as i64), item)? {
                        break;
                    }
                }
            }
            Some(Value::Map(map)) => {
                for (key, item) in map.snapshot() {
                    ran = true;
                    let item = Held { value: Some(item), boxed: !map.strings };
                    if !self.iteration(branch, Value::Str(key), item)? {
                        break;
                    }
                }
            }
            Some(number @ (Value::Int(_) | Value::Int64(_) | Value::Byte(_))) => {
                if branch.pipe.variables.len() > 1 {
                    return Err(
                        self.fail(format_args!("can't use {number} to iterate over more than one variable"))
                    );
                }
                for index in 0..number.as_integer().unwrap_or(0) {
                    ran = true;
                    let item = number.like(index);
                    if !self.iteration(branch, item.clone(), Held::plain(item))? {
                        break;
                    }
                }
            }
            Some(other) => return Err(self.fail(format_args!("range can't iterate over {other}"))),
        }
        if !ran {
            flow = self.list(&branch.otherwise, dot)?;
        }
        self.depth -= 1;
        self.variables.truncate(outer);
        Ok(flow)
    }

    /// Runs the body once; false ends the loop.
    fn iteration(&mut self, branch: &'a Branch, index: Value, item: Held) -> Result<bool> {
        self.step()?;
        let pipe = &branch.pipe;
        let mark = self.variables.len();
        let slots = match pipe.variables.as_slice() {
            [] => vec![],
            [only] => vec![(only, item.clone())],
            [first, second, ..] => vec![(first, Held::plain(index)), (second, item.clone())],
        };
        let declared = mark - slots.len().min(mark);
        for (offset, (name, value)) in slots.into_iter().enumerate() {
            if pipe.assigns {
                self.assign(name, value)?;
            } else if let Some(slot) = self.variables.get_mut(declared + offset) {
                slot.1 = value;
            }
        }
        let flow = self.list(&branch.body, &item)?;
        self.variables.truncate(mark);
        Ok(flow != Flow::Break)
    }

    fn template(&mut self, pos: usize, name: &'a str, pipe: Option<&'a Pipe>, dot: &Held) -> Result<()> {
        self.at = At::Template(pos, name, pipe);
        let Some(tree) = self.trees.get(name) else {
            return Err(self.fail(format_args!("template {} not defined", quoted(name))));
        };
        self.enter()?;
        let dot = match pipe {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => Held::NONE,
        };
        let variables = std::mem::replace(&mut self.variables, vec![("$", dot.clone())]);
        let caller = std::mem::replace(&mut self.tree, tree);
        self.list(&tree.body, &dot)?;
        self.tree = caller;
        self.variables = variables;
        self.depth -= 1;
        Ok(())
    }

    fn pipe(&mut self, pipe: &'a Pipe, dot: &Held) -> Result<Held> {
        self.step()?;
        self.at = At::Pipe(pipe);
        self.enter()?;
        let mut value: Option<Held> = None;
        for command in &pipe.commands {
            value = Some(self.command(command, dot, value)?.flattened());
        }
        self.depth -= 1;
        let value = value.unwrap_or(Held::NONE);
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, value.clone())?;
            } else {
                self.variables.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    fn assign(&mut self, name: &str, value: Held) -> Result<()> {
        match self.variables.iter_mut().rev().find(|(known, _)| *known == name) {
            Some(slot) => slot.1 = value,
            None => return Err(self.fail(format_args!("undefined variable: {name}"))),
        }
        Ok(())
    }

    fn command(&mut self, command: &'a Command, dot: &Held, last: Option<Held>) -> Result<Held> {
        let operands = command.operands.as_slice();
        let first = &operands[0];
        let args = Args { call: operands, dot, last: last.as_ref() };
        match &first.expr {
            Expr::Function(function) => return self.call(function, operands, dot, last),
            Expr::Field(names) => {
                self.at = At::Operand(first);
                return self.fields(dot.clone(), names, &args);
            }
            Expr::Variable(name, names) if !names.is_empty() => {
                self.at = At::Operand(first);
                let value = self.variable(name);
                return self.fields(value, names, &args);
            }
            Expr::Chain(inner, names) => {
                self.at = At::Operand(first);
                let value = self.chained(inner, dot)?;
                return self.fields(value, names, &args);
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
    fn operand(&mut self, operand: &'a Operand, dot: &Held) -> Result<Held> {
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
            Expr::Field(names) => self.fields(dot.clone(), names, &none)?,
            Expr::Variable(name, names) => {
                let value = self.variable(name);
                self.fields(value, names, &none)?
            }
            Expr::Chain(inner, names) => {
                let value = self.chained(inner, dot)?;
                self.fields(value, names, &none)?
            }
            Expr::Function(function) => self.call(function, std::slice::from_ref(operand), dot, None)?,
            Expr::Pipe(pipe) => self.pipe(pipe, dot)?,
        })
    }

    fn variable(&self, name: &str) -> Held {
        // The parser lets no unknown variable through.
        self.variables
            .iter()
            .rev()
            .find(|(known, _)| *known == name)
            .map_or(Held::NONE, |(_, value)| value.clone())
    }

    fn fields(&mut self, mut value: Held, names: &[Arc<str>], args: &Args<'a, '_>) -> Result<Held> {
        let Some((last, inner)) = names.split_last() else {
            return Ok(value);
        };
        for name in inner {
            let none = Args { call: args.call.get(..1).unwrap_or_default(), dot: args.dot, last: None };
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

    fn method(&mut self, receiver: &Held, method: &'static Function, args: &Args<'a, '_>) -> Result<Held> {
        self.step()?;
        let at = args.call.first().map_or(self.at, At::Operand);
        self.check_count(method, args)?;
        let mut values = vec![receiver.value.clone().unwrap_or_default()];
        self.arguments(method, args, &mut values)?;
        self.apply(method, at, &values)
    }

    fn call(
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
        let mut values = Vec::with_capacity(args.count());
        self.arguments(function, &args, &mut values)?;
        self.apply(function, At::Call(call), &values)
    }

    fn check_count(&mut self, function: &Function, args: &Args<'a, '_>) -> Result<()> {
        let name = function.name;
        let (want, got) = (function.params.len(), args.count());
        if function.variadic.is_some() && got < want {
            return Err(
                self.fail(format_args!("wrong number of args for {name}: want at least {want} got {got}"))
            );
        }
        if function.variadic.is_none() && got != want {
            return Err(self.fail(format_args!("wrong number of args for {name}: want {want} got {got}")));
        }
        Ok(())
    }

    fn arguments(&mut self, function: &Function, args: &Args<'a, '_>, values: &mut Vec<Value>) -> Result<()> {
        let written = args.call.get(1..).unwrap_or_default();
        for (index, arg) in written.iter().enumerate() {
            values.push(self.argument(arg, param(function, index), args.dot)?);
        }
        if let Some(last) = args.last {
            values.push(self.fitting(last.clone(), param(function, written.len()))?);
        }
        Ok(())
    }

    fn apply(&mut self, function: &'static Function, at: At<'a>, values: &[Value]) -> Result<Held> {
        let outcome = self.paid(values).and_then(|()| {
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
        outcome.map(Held::plain).map_err(|error| {
            self.at = at;
            self.fail(format_args!("error calling {}: {error}", function.name))
        })
    }

    /// Pays for reading the arguments.
    fn paid(&mut self, values: &[Value]) -> std::result::Result<(), String> {
        let taken = values.iter().map(size).sum::<usize>();
        let most = self.budget.limits().output;
        if taken > most {
            return Err(format!("arguments are longer than {most} bytes"));
        }
        self.budget.bytes(taken)
    }

    /// `call`: nothing a template can hold is a function, so this only says so.
    fn call_of_value(&mut self, call: &'a [Operand], dot: &Held, last: Option<Held>) -> Result<Held> {
        let (callee, shown) = match call.get(1) {
            Some(callee) => (self.operand(callee, dot)?, callee.to_string()),
            None => (last.unwrap_or(Held::NONE), String::new()),
        };
        self.at = At::Call(call);
        match callee.value {
            None | Some(Value::Nil) => Err(self.fail("error calling call: call of nil")),
            Some(value) => Err(self.fail(format_args!(
                "error calling call: non-function {shown} of type {}",
                value.type_name()
            ))),
        }
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

    fn write(&mut self, text: &str) -> Result<()> {
        let most = self.budget.limits().output;
        if self.out.len() + text.len() > most {
            return Err(self.fail(format_args!("output is longer than {most} bytes")));
        }
        self.out.push_str(text);
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        self.budget.step().map_err(|error| self.fail(error))
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        let most = self.budget.limits().depth;
        if self.depth > most {
            return Err(self.fail(format_args!("exceeded maximum template depth ({most})")));
        }
        Ok(())
    }

    fn fail(&self, message: impl Display) -> Box<ExecError> {
        let (pos, context) = match self.at {
            At::Nothing => {
                return Box::new(ExecError(format!("template: {}: {message}", self.root)));
            }
            At::Pipe(pipe) => (pipe.pos, pipe.to_string()),
            At::Operand(operand) => (operand.pos, operand.to_string()),
            At::Call(call) => {
                let parts: Vec<String> = call.iter().map(Operand::to_string).collect();
                (call[0].pos, parts.join(" "))
            }
            At::Template(pos, name, None) => (pos, format!("{{{{template {}}}}}", quoted(name))),
            At::Template(pos, name, Some(pipe)) => (pos, format!("{{{{template {} {pipe}}}}}", quoted(name))),
        };
        let before = &self.source[..pos];
        let line = before.matches('\n').count() + 1;
        let column = before.rfind('\n').map_or(pos, |newline| pos - newline - 1);
        let name = quoted(&self.tree.name);
        Box::new(ExecError(format!(
            "template: {}:{line}:{column}: executing {name} at <{context}>: {message}",
            self.root
        )))
    }
}

fn constant(number: &Number) -> Option<Value> {
    if number.prefers_float { number.float.map(Value::Float) } else { number.int.map(Value::Int) }
}

fn param(function: &Function, index: usize) -> Param {
    function.params.get(index).copied().or(function.variadic).unwrap_or(Param::Any)
}

/// Roughly the bytes a function reads or makes.
fn size(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::List(list) => list.items().len() * 32,
        Value::Map(map) => map.len() * 64,
        _ => 0,
    }
}
