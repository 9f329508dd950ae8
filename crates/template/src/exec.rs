//! Templates put to work on data: statements.

mod calls;
mod operands;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use crate::MissingKey;
use crate::ast::{Branch, Expr, Operand, Pipe, Stmt, Tree};
use crate::budget::Budget;
use crate::execution::Execution;
use crate::print;
use crate::quote::quoted;
use crate::value::{Items, Value};

/// A template that could not be executed; the text names template, line, column and the expression at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ExecError {
    text: String,
    place: Option<(usize, usize)>,
}

type Result<T> = std::result::Result<T, Box<ExecError>>;

impl ExecError {
    /// Line and column of the expression at fault, both from 1, where there is one. For whoever may not show the text:
    /// it can hold values of the data.
    pub fn place(&self) -> Option<(usize, usize)> {
        self.place
    }
}

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
    if let [Stmt::Text(text)] = root.body.as_slice()
        && text.len() <= execution.limits.output
    {
        return Ok(text.as_ref().to_owned());
    }
    let dot = Held::plain(data.clone()).flattened();
    let mut exec = Exec {
        trees,
        source,
        root: &root.name,
        tree: root,
        execution,
        missing_key: execution.missing_key,
        budget: Budget::new(execution.limits),
        out: String::with_capacity(source.len()),
        dollar: dot.clone(),
        variables: Vec::new(),
        stack: Vec::new(),
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
    /// What the template was given as its dot.
    dollar: Held,
    variables: Vec<(&'a str, Held)>,
    /// Arguments of the calls under way.
    stack: Vec<Value>,
    depth: usize,
    at: At<'a>,
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
                if let Some(printed) = self.text_of_field(pipe, dot) {
                    printed?;
                    return Ok(Flow::Next);
                }
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

    /// Prints what is nearly always asked for, a text somewhere in the dot, without taking it out.
    fn text_of_field(&mut self, pipe: &'a Pipe, dot: &Held) -> Option<Result<()>> {
        let [command] = pipe.commands.as_slice() else { return None };
        let [operand] = command.operands.as_slice() else { return None };
        let (Expr::Field(names), Some(Value::Map(map))) = (&operand.expr, &dot.value) else { return None };
        if !pipe.variables.is_empty() {
            return None;
        }
        map.at(names, |value, _| match value {
            Value::Str(text) => {
                self.at = At::Operand(operand);
                Some(self.step().and_then(|()| self.write(text)))
            }
            _ => None,
        })?
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
                self.budget.copies(map.len()).map_err(|error| self.fail(error))?;
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
        let variables = std::mem::take(&mut self.variables);
        let dollar = std::mem::replace(&mut self.dollar, dot.clone());
        let caller = std::mem::replace(&mut self.tree, tree);
        self.list(&tree.body, &dot)?;
        self.tree = caller;
        self.variables = variables;
        self.dollar = dollar;
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
            None if name == "$" => self.dollar = value,
            None => return Err(self.fail(format_args!("undefined variable: {name}"))),
        }
        Ok(())
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
                let text = format!("template: {}: {message}", self.root);
                return Box::new(ExecError { text, place: None });
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
        let text =
            format!("template: {}:{line}:{column}: executing {name} at <{context}>: {message}", self.root);
        Box::new(ExecError { text, place: Some((line, column + 1)) })
    }
}
