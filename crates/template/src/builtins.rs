//! The functions every Go template has, but for `slice`, which sprig has in another way.

use std::fmt::Write;

use crate::budget::Budget;
use crate::function::Param::{Any, Str};
use crate::function::{Body, Context, Function, Param};
use crate::print;
use crate::printf;
use crate::sprig;
use crate::value::Value;

type Outcome = Result<Value, String>;

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().chain(sprig::all()).find(|function| function.name == name)
}

/// The names of all functions a template can call.
pub fn functions() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().chain(sprig::all()).map(|function| function.name)
}

const fn entry(
    name: &'static str,
    params: &'static [Param],
    variadic: Option<Param>,
    body: fn(&[Value]) -> Outcome,
) -> Function {
    Function { name, params, variadic, body: Body::Call(body) }
}

const fn printing(
    name: &'static str,
    params: &'static [Param],
    body: fn(&mut Context<'_>, &[Value]) -> Outcome,
) -> Function {
    Function { name, params, variadic: Some(Any), body: Body::With(body) }
}

static FUNCTIONS: [Function; 18] = [
    Function { name: "and", params: &[Any], variadic: Some(Any), body: Body::And },
    Function { name: "or", params: &[Any], variadic: Some(Any), body: Body::Or },
    Function { name: "call", params: &[Any], variadic: Some(Any), body: Body::CallValue },
    entry("not", &[Any], None, |args| Ok(Value::Bool(!args[0].truth()))),
    entry("len", &[Any], None, |args| length(&args[0])),
    entry("index", &[Any], Some(Any), |args| index(&args[0], &args[1..])),
    printing("print", &[], |context, args| Ok(print::spaced(args, false, context.budget)?.into())),
    printing("println", &[], |context, args| Ok((print::spaced(args, true, context.budget)? + "\n").into())),
    printing("printf", &[Str], |context, args| {
        let Value::Str(format) = &args[0] else { return Ok(Value::Nil) };
        printf::format(format, &args[1..], context.budget).map(Value::from)
    }),
    printing("html", &[], |context, args| Ok(html(&text(args, context.budget)?).into())),
    printing("js", &[], |context, args| Ok(js(&text(args, context.budget)?).into())),
    printing("urlquery", &[], |context, args| Ok(urlquery(&text(args, context.budget)?).into())),
    entry("eq", &[Any], Some(Any), |args| equal_to_any(&args[0], &args[1..])),
    entry("ne", &[Any, Any], None, |args| Ok(Value::Bool(!equal(&args[0], &args[1])?))),
    entry("lt", &[Any, Any], None, |args| Ok(Value::Bool(less(&args[0], &args[1])?))),
    entry("le", &[Any, Any], None, |args| Ok(Value::Bool(less_or_equal(&args[0], &args[1])?))),
    entry("gt", &[Any, Any], None, |args| Ok(Value::Bool(!less_or_equal(&args[0], &args[1])?))),
    entry("ge", &[Any, Any], None, |args| Ok(Value::Bool(!less(&args[0], &args[1])?))),
];

fn text(args: &[Value], budget: &mut Budget) -> Result<String, String> {
    let args: Vec<Value> = args
        .iter()
        .map(|arg| if matches!(arg, Value::Nil) { Value::from("<no value>") } else { arg.clone() })
        .collect();
    print::spaced(&args, false, budget)
}

fn length(value: &Value) -> Outcome {
    let length = match value {
        Value::Nil => return Err("len of nil pointer".to_owned()),
        Value::Str(text) => text.len(),
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.len(),
        other => return Err(format!("len of type {}", other.type_name())),
    };
    Ok(Value::Int(length as i64))
}

fn index(value: &Value, keys: &[Value]) -> Outcome {
    if matches!(value, Value::Nil) {
        return Err("index of untyped nil".to_owned());
    }
    let mut value = value.clone();
    for key in keys {
        value = match &value {
            Value::Nil => return Err("index of nil pointer".to_owned()),
            Value::Str(text) => {
                let at = position(key, text.len())?;
                let byte = text.as_bytes().get(at);
                Value::Byte(*byte.ok_or("reflect: string index out of range")?)
            }
            Value::List(list) => {
                let at = position(key, list.items().len())?;
                list.items().get(at).cloned().ok_or("reflect: slice index out of range")?
            }
            Value::Map(map) => match key {
                Value::Str(key) => map.get(key).unwrap_or_else(|| map.zero()),
                Value::Nil => return Err("value is nil; should be of type string".to_owned()),
                other => return Err(format!("value has type {}; should be string", other.type_name())),
            },
            other => return Err(format!("can't index item of type {}", other.type_name())),
        };
    }
    Ok(value)
}

/// An index up to and including the length, as a slice's end may be.
fn position(key: &Value, length: usize) -> Result<usize, String> {
    let at = match key {
        Value::Int(at) | Value::Int64(at) => *at,
        Value::Byte(at) => i64::from(*at),
        Value::Nil => return Err("cannot index slice/array with nil".to_owned()),
        other => return Err(format!("cannot index slice/array with type {}", other.type_name())),
    };
    usize::try_from(at).ok().filter(|at| *at <= length).ok_or_else(|| format!("index out of range: {at}"))
}

fn equal_to_any(value: &Value, others: &[Value]) -> Outcome {
    if others.is_empty() {
        return Err("missing argument for comparison".to_owned());
    }
    for other in others {
        if equal(value, other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn equal(left: &Value, right: &Value) -> Result<bool, String> {
    if let (Some(left), Some(right)) = (left.as_integer(), right.as_integer()) {
        return Ok(left == right);
    }
    match (left, right) {
        (Value::Nil, _) | (_, Value::Nil) => Ok(is_nil(left) && is_nil(right)),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::Float(left), Value::Float(right)) => Ok(left == right),
        (Value::Str(left), Value::Str(right)) => Ok(left == right),
        (Value::Object(left), Value::Object(right)) => Ok(left.thing().equals(right)),
        (Value::List(_) | Value::Map(_), Value::List(_) | Value::Map(_)) => {
            if is_nil(left) || is_nil(right) {
                return Ok(is_nil(left) && is_nil(right));
            }
            let (left_type, right_type) = (left.type_name(), right.type_name());
            if left.kind_name() != right.kind_name() {
                let left = printf::as_text(left);
                return Err(format!("non-comparable types {left}: {left_type}, {right_type}: {right}"));
            }
            Err(format!("non-comparable type {}: {right_type}", printf::as_text(right)))
        }
        _ => Err(incompatible(left, right)),
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil(),
        _ => false,
    }
}

fn incompatible(left: &Value, right: &Value) -> String {
    format!("incompatible types for comparison: {} and {}", left.type_name(), right.type_name())
}

fn less(left: &Value, right: &Value) -> Result<bool, String> {
    if let (Some(left), Some(right)) = (left.as_integer(), right.as_integer()) {
        return Ok(left < right);
    }
    for side in [left, right] {
        if matches!(side, Value::Nil | Value::List(_) | Value::Map(_) | Value::Object(_)) {
            return Err("invalid type for comparison".to_owned());
        }
    }
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => Ok(left < right),
        (Value::Str(left), Value::Str(right)) => Ok(left < right),
        (Value::Bool(_), Value::Bool(_)) => Err("invalid type for comparison".to_owned()),
        _ => Err(incompatible(left, right)),
    }
}

fn less_or_equal(left: &Value, right: &Value) -> Result<bool, String> {
    Ok(less(left, right)? || equal(left, right)?)
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

fn js(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '\'' | '"' => {
                out.push('\\');
                out.push(c);
            }
            '<' | '>' | '&' | '=' => write!(out, "\\u{:04X}", c as u32).unwrap_or_default(),
            c if c.is_control() => write!(out, "\\u{:04X}", c as u32).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out
}

fn urlquery(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
            b' ' => out.push('+'),
            _ => write!(out, "%{byte:02X}").unwrap_or_default(),
        }
    }
    out
}
