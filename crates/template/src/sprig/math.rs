//! Whole numbers, and numbers made of anything.

use super::{Outcome, fixed, str_of, variadic};
use crate::function::Function;
use crate::function::Param::{Any, Str};
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("int", &[Any], |args| Ok(Value::Int(integer(&args[0])))),
    fixed("int64", &[Any], |args| Ok(Value::Int(integer(&args[0])))),
    fixed("float64", &[Any], |args| Ok(Value::Float(float(&args[0])))),
    fixed("atoi", &[Str], |args| Ok(Value::Int(str_of(&args[0]).parse().unwrap_or(0)))),
    fixed("add1", &[Any], |args| Ok(Value::Int(integer(&args[0]).wrapping_add(1)))),
    variadic("add", &[], Any, |args| Ok(Value::Int(args.iter().map(integer).fold(0, i64::wrapping_add)))),
    fixed("sub", &[Any, Any], |args| Ok(Value::Int(integer(&args[0]).wrapping_sub(integer(&args[1]))))),
    variadic("mul", &[Any], Any, |args| Ok(Value::Int(args.iter().map(integer).fold(1, i64::wrapping_mul)))),
    fixed("div", &[Any, Any], |args| divided(&args[0], &args[1], i64::wrapping_div)),
    fixed("mod", &[Any, Any], |args| divided(&args[0], &args[1], i64::wrapping_rem)),
    variadic("max", &[Any], Any, |args| Ok(Value::Int(args.iter().map(integer).max().unwrap_or(0)))),
    variadic("biggest", &[Any], Any, |args| Ok(Value::Int(args.iter().map(integer).max().unwrap_or(0)))),
    variadic("min", &[Any], Any, |args| Ok(Value::Int(args.iter().map(integer).min().unwrap_or(0)))),
    fixed("ceil", &[Any], |args| Ok(Value::Float(float(&args[0]).ceil()))),
    fixed("floor", &[Any], |args| Ok(Value::Float(float(&args[0]).floor()))),
];

fn divided(left: &Value, right: &Value, operation: fn(i64, i64) -> i64) -> Outcome {
    match integer(right) {
        0 => Err("runtime error: integer divide by zero".to_owned()),
        right => Ok(Value::Int(operation(integer(left), right))),
    }
}

/// What a value is as a whole number; zero if it is none.
fn integer(value: &Value) -> i64 {
    match value {
        Value::Bool(flag) => i64::from(*flag),
        Value::Int(int) => *int,
        Value::Float(float) => *float as i64,
        Value::Str(text) => integer_of_text(text),
        _ => 0,
    }
}

/// Decimal, or `0x`, `0o`, `0b` and octal with a leading zero; `12.0` is a whole number too.
fn integer_of_text(text: &str) -> i64 {
    let text = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
        _ => text,
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0o") => (&lower[2..], 8),
        Some("0b") => (&lower[2..], 2),
        _ if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    if digits.starts_with(['+', '-']) {
        return 0;
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).unwrap_or(0)
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Int(int) => *int as f64,
        Value::Float(float) => *float,
        Value::Str(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    }
}
