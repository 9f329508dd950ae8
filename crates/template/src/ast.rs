//! Compiled templates, and how error messages show their parts.

use std::fmt;
use std::sync::Arc;

use crate::function::Function;
use crate::value::Value;

/// The body of one named template.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) name: Arc<str>,
    pub(crate) body: Vec<Stmt>,
}

#[derive(Debug)]
pub(crate) enum Stmt {
    Text(Arc<str>),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { pos: usize, name: Arc<str>, pipe: Option<Pipe> },
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Stmt>,
    pub(crate) otherwise: Vec<Stmt>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: usize,
    pub(crate) assigns: bool,
    pub(crate) variables: Vec<Arc<str>>,
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    /// Never empty.
    pub(crate) operands: Vec<Operand>,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) pos: usize,
    pub(crate) expr: Expr,
}

#[derive(Debug)]
pub(crate) enum Expr {
    Dot,
    Nil,
    Bool(bool),
    /// The literal as written, and what it stands for.
    Str(String, Value),
    Number(Number),
    Field(Vec<Arc<str>>),
    Variable(Arc<str>, Vec<Arc<str>>),
    Chain(Box<Operand>, Vec<Arc<str>>),
    Function(&'static Function),
    Pipe(Pipe),
}

/// A number literal: what it is as an integer and as a float, where it is.
#[derive(Debug)]
pub(crate) struct Number {
    pub(crate) text: String,
    pub(crate) int: Option<i64>,
    pub(crate) float: Option<f64>,
    /// Written with a point or an exponent, so a float where nothing else is asked for.
    pub(crate) prefers_float: bool,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.expr {
            Expr::Dot => f.write_str("."),
            Expr::Nil => f.write_str("nil"),
            Expr::Bool(value) => write!(f, "{value}"),
            Expr::Str(literal, _) => f.write_str(literal),
            Expr::Number(number) => f.write_str(&number.text),
            Expr::Field(names) => write_fields(f, names),
            Expr::Variable(name, names) => {
                f.write_str(name)?;
                write_fields(f, names)
            }
            Expr::Chain(inner, names) => {
                write!(f, "{inner}")?;
                write_fields(f, names)
            }
            Expr::Function(function) => f.write_str(function.name),
            Expr::Pipe(pipe) => write!(f, "({pipe})"),
        }
    }
}

fn write_fields(f: &mut fmt::Formatter<'_>, names: &[Arc<str>]) -> fmt::Result {
    names.iter().try_for_each(|name| write!(f, ".{name}"))
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            let sign = if self.assigns { "=" } else { ":=" };
            write!(f, "{} {sign} ", self.variables.join(", "))?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            if index > 0 {
                f.write_str(" | ")?;
            }
            for (index, operand) in command.operands.iter().enumerate() {
                if index > 0 {
                    f.write_str(" ")?;
                }
                write!(f, "{operand}")?;
            }
        }
        Ok(())
    }
}
