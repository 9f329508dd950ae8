//! Choices between values, and the error a template raises itself.

use super::{fixed, str_of, variadic};
use crate::function::Function;
use crate::function::Param::{Any, Bool, Str};
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    variadic("default", &[Any], Any, |args| {
        let given = args.get(1).filter(|given| given.truth());
        Ok(given.unwrap_or(&args[0]).clone())
    }),
    fixed("empty", &[Any], |args| Ok(Value::Bool(!args[0].truth()))),
    variadic("coalesce", &[], Any, |args| {
        Ok(args.iter().find(|arg| arg.truth()).cloned().unwrap_or_default())
    }),
    variadic("all", &[], Any, |args| Ok(Value::Bool(args.iter().all(Value::truth)))),
    variadic("any", &[], Any, |args| Ok(Value::Bool(args.iter().any(Value::truth)))),
    fixed("ternary", &[Any, Any, Bool], |args| Ok(args[usize::from(!args[2].truth())].clone())),
    fixed("fail", &[Str], |args| Err(str_of(&args[0]).to_owned())),
];
