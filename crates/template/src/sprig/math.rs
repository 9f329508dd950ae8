//! Numbers, and numbers made of anything.

use super::decimal::Decimal;
use super::{Outcome, fixed, int_of, metered, str_of, variadic};
use crate::budget::Budget;
use crate::float;
use crate::function::Function;
use crate::function::Param::{Any, Float, Int, Str};
use crate::print;
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("int", &[Any], |args| Ok(Value::Int(integer(&args[0])))),
    fixed("int64", &[Any], |args| Ok(Value::Int64(integer(&args[0])))),
    fixed("float64", &[Any], |args| Ok(Value::Float(floating(&args[0])))),
    fixed("atoi", &[Str], |args| Ok(Value::Int(saturating(str_of(&args[0]))))),
    metered("toDecimal", &[Any], None, |context, args| {
        Ok(Value::Int64(i64::from_str_radix(&print::text(&args[0], context.budget)?, 8).unwrap_or(0)))
    }),
    fixed("add1", &[Any], |args| Ok(Value::Int64(integer(&args[0]).wrapping_add(1)))),
    variadic("add", &[], Any, |args| Ok(Value::Int64(args.iter().map(integer).fold(0, i64::wrapping_add)))),
    fixed("sub", &[Any, Any], |args| Ok(Value::Int64(integer(&args[0]).wrapping_sub(integer(&args[1]))))),
    variadic("mul", &[Any], Any, |args| {
        Ok(Value::Int64(args.iter().map(integer).fold(1, i64::wrapping_mul)))
    }),
    fixed("div", &[Any, Any], |args| divided(&args[0], &args[1], i64::wrapping_div)),
    fixed("mod", &[Any, Any], |args| divided(&args[0], &args[1], i64::wrapping_rem)),
    variadic("max", &[Any], Any, |args| Ok(Value::Int64(args.iter().map(integer).max().unwrap_or(0)))),
    variadic("biggest", &[Any], Any, |args| Ok(Value::Int64(args.iter().map(integer).max().unwrap_or(0)))),
    variadic("min", &[Any], Any, |args| Ok(Value::Int64(args.iter().map(integer).min().unwrap_or(0)))),
    variadic("maxf", &[Any], Any, |args| Ok(extreme(args, |a, b| a > b || (a == b && a.is_sign_positive())))),
    variadic("minf", &[Any], Any, |args| Ok(extreme(args, |a, b| a < b || (a == b && a.is_sign_negative())))),
    fixed("ceil", &[Any], |args| Ok(Value::Float(floating(&args[0]).ceil()))),
    fixed("floor", &[Any], |args| Ok(Value::Float(floating(&args[0]).floor()))),
    variadic("round", &[Any, Int], Float, |args| Ok(round(&args[0], int_of(&args[1]), args.get(2)))),
    metered("add1f", &[Any], None, |context, args| {
        folded(&args[0], &[Value::Int(1)], context.budget, |a, b| Ok(a.plus(b)))
    }),
    metered("addf", &[], Some(Any), |context, args| {
        folded(&Value::Nil, args, context.budget, |a, b| Ok(a.plus(b)))
    }),
    metered("subf", &[Any], Some(Any), |context, args| {
        folded(&args[0], &args[1..], context.budget, |a, b| Ok(a.minus(b)))
    }),
    metered("mulf", &[Any], Some(Any), |context, args| {
        folded(&args[0], &args[1..], context.budget, |a, b| Ok(a.times(b)))
    }),
    metered("divf", &[Any], Some(Any), |context, args| {
        folded(&args[0], &args[1..], context.budget, Decimal::over)
    }),
];

fn divided(left: &Value, right: &Value, operation: fn(i64, i64) -> i64) -> Outcome {
    match integer(right) {
        0 => Err("runtime error: integer divide by zero".to_owned()),
        right => Ok(Value::Int64(operation(integer(left), right))),
    }
}

/// The largest or smallest; what is no number wins always.
fn extreme(args: &[Value], better: fn(f64, f64) -> bool) -> Value {
    let numbers = args.iter().map(floating);
    let best = numbers.reduce(|a, b| if a.is_nan() || (!b.is_nan() && better(a, b)) { a } else { b });
    Value::Float(best.unwrap_or(0.0))
}

/// Rounded to a number of decimals, up from `on` (a half unless told otherwise).
fn round(value: &Value, places: i64, on: Option<&Value>) -> Value {
    let on = if let Some(Value::Float(on)) = on { *on } else { 0.5 };
    let power = 10f64.powf(places as f64);
    let digit = power * floating(value);
    let rounded = if digit.fract() >= on { digit.ceil() } else { digit.floor() };
    Value::Float(rounded / power)
}

fn folded(
    first: &Value,
    others: &[Value],
    budget: &mut Budget,
    operation: fn(&Decimal, &Decimal) -> Result<Decimal, String>,
) -> Outcome {
    let mut result = Decimal::new(floating(first))?;
    for other in others {
        result = operation(&result, &Decimal::new(floating(other))?)?;
        budget.bytes(result.size())?;
    }
    Ok(Value::Float(result.float()))
}

/// What a value is as a whole number; zero if it is none.
pub(super) fn integer(value: &Value) -> i64 {
    match value {
        Value::Bool(flag) => i64::from(*flag),
        Value::Float(float) => truncated(*float),
        Value::Str(text) => integer_of_text(text),
        other => other.as_integer().unwrap_or(0),
    }
}

/// What is out of range becomes the smallest number, as on the machines Argo CD runs on.
fn truncated(value: f64) -> i64 {
    if (i64::MIN as f64..-(i64::MIN as f64)).contains(&value) { value as i64 } else { i64::MIN }
}

/// Decimal, or `0x`, `0o`, `0b` and octal with a leading zero; `12.0` is a whole number too.
fn integer_of_text(text: &str) -> i64 {
    let text = match text.rsplit_once('.') {
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
    if digits.starts_with(['+', '-']) || !float::underscores_separate(digits, lower.len() > digits.len()) {
        return 0;
    }
    i64::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), radix).unwrap_or(0)
}

/// A decimal number; one that does not fit is the nearest that does.
fn saturating(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        match (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()), text.starts_with('-')) {
            (true, true) => i64::MIN,
            (true, false) => i64::MAX,
            (false, _) => 0,
        }
    })
}

/// What a value is as a number; zero if it is none.
fn floating(value: &Value) -> f64 {
    match value {
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Float(float) => *float,
        Value::Str(text) => float::parse(text).unwrap_or(0.0),
        other => other.as_integer().unwrap_or(0) as f64,
    }
}
