//! What a function a template can call looks like.

use crate::value::Value;

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
    Bool,
    /// A map to any values; a nil one where there is no value.
    Map,
}

impl Param {
    /// Go's name of the type.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Param::Any => "interface {}",
            Param::Str => "string",
            Param::Int => "int",
            Param::Bool => "bool",
            Param::Map => "map[string]interface {}",
        }
    }

    /// Whether the value may be passed.
    pub(crate) fn admits(self, value: &Value) -> bool {
        match self {
            Param::Any => true,
            Param::Str => matches!(value, Value::Str(_)),
            Param::Int => matches!(value, Value::Int(_)),
            Param::Bool => matches!(value, Value::Bool(_)),
            Param::Map => matches!(value, Value::Map(map) if !map.strings),
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
    /// `call`: an error for every value there is.
    CallValue,
    /// Everything else; what is returned in the error is the function's own complaint.
    Call(fn(&[Value]) -> Result<Value, String>),
}
