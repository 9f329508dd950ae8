//! What a function a template can call looks like.

use jiff::Zoned;

use crate::budget::Budget;
use crate::execution::Execution;
use crate::value::{Items, Value};

/// A function: its name, what it takes, and what it does.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Param],
    /// The type of any further arguments.
    pub(crate) variadic: Option<Param>,
    pub(crate) body: Body,
}

/// What a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Param {
    Any,
    Str,
    Int,
    #[allow(dead_code, reason = "for methods of times and versions")]
    Int64,
    /// Go's `uint32`, of which a template has literals only.
    Uint32,
    Float,
    Bool,
    /// A map to any values; nil where there is no value.
    Map,
    /// A list of any values; nil where there is no value.
    List,
    /// An object of the type Go calls so.
    Object(&'static str),
}

impl Param {
    /// Go's name of the type.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Param::Any => "interface {}",
            Param::Str => "string",
            Param::Int => "int",
            Param::Int64 => "int64",
            Param::Uint32 => "uint32",
            Param::Float => "float64",
            Param::Bool => "bool",
            Param::Map => "map[string]interface {}",
            Param::List => "[]interface {}",
            Param::Object(name) => name,
        }
    }

    /// The type as Go names it where a literal does not fit.
    pub(crate) fn literal_name(self) -> &'static str {
        match self {
            Param::Int | Param::Int64 => "integer",
            Param::Uint32 => "unsigned integer",
            Param::Float => "float",
            other => other.type_name(),
        }
    }

    /// Whether the value may be passed.
    pub(crate) fn admits(self, value: &Value) -> bool {
        match self {
            Param::Any => true,
            Param::Str => matches!(value, Value::Str(_)),
            Param::Int => matches!(value, Value::Int(_)),
            Param::Int64 => matches!(value, Value::Int64(_)),
            Param::Uint32 => false,
            Param::Float => matches!(value, Value::Float(_)),
            Param::Bool => matches!(value, Value::Bool(_)),
            Param::Map => matches!(value, Value::Map(map) if !map.strings),
            Param::List => matches!(value, Value::List(list) if list.holds() == Items::Any),
            Param::Object(name) => {
                matches!(value, Value::Object(object) if object.thing().type_name() == name)
            }
        }
    }

    /// Whether a literal could be what is wanted at all.
    pub(crate) fn takes_literals(self) -> bool {
        !matches!(self, Param::Map | Param::List | Param::Object(_))
    }

    /// Whether nil may be passed.
    pub(crate) fn admits_nil(self) -> bool {
        match self {
            Param::Any | Param::Map | Param::List => true,
            Param::Object(name) => name.starts_with('*'),
            _ => false,
        }
    }
}

/// How a function is evaluated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    /// `and`: the first false argument, the rest unevaluated.
    And,
    /// `or`: the first true argument, the rest unevaluated.
    Or,
    /// `call`: calls a value that is a function.
    CallValue,
    /// A function whose work the length of its arguments and result tells; what is returned in the error is its own
    /// complaint.
    Call(fn(&[Value]) -> Result<Value, String>),
    /// Any other function.
    With(fn(&mut Context<'_>, &[Value]) -> Result<Value, String>),
}

/// What a function may use besides its arguments.
pub(crate) struct Context<'a> {
    pub(crate) budget: &'a mut Budget,
    pub(crate) execution: &'a Execution<'a>,
}

impl Context<'_> {
    /// The time it is.
    pub(crate) fn now(&self) -> Result<&Zoned, String> {
        self.execution.now.ok_or_else(|| "there is no clock here".to_owned())
    }

    /// Fills bytes that nobody can foretell.
    pub(crate) fn fill(&self, bytes: &mut [u8]) -> Result<(), String> {
        self.execution.entropy.ok_or_else(|| "there is no randomness here".to_owned())?.fill(bytes)
    }
}
