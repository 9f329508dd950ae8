//! Go's default format for values.

use std::fmt::Write;

use crate::budget::{Budget, MAX_DEPTH};
use crate::float;
use crate::value::Value;

/// What is shown of a value where nothing else bounds it.
const MAX_SHOWN: usize = 8 << 20;

/// The value as `%v` prints it.
///
/// # Errors
/// Text that costs more than is left.
pub(crate) fn text(value: &Value, budget: &mut Budget) -> Result<String, String> {
    let mut out = String::new();
    plain(value, &mut out, budget.limits().output)?;
    budget.bytes(out.len())?;
    Ok(out)
}

/// The value as `%v` prints it, for messages; `...` stands for what is beyond all reason.
pub(crate) fn shown(value: &Value) -> String {
    let mut out = String::new();
    if plain(value, &mut out, MAX_SHOWN).is_err() {
        out.push_str("...");
    }
    out
}

/// Appends the value as `%v` prints it.
///
/// # Errors
/// When that makes the text longer than `most` bytes. A value that holds another one twice, and that again, prints
/// longer than anything, so this is checked on the way.
pub(crate) fn plain(value: &Value, out: &mut String, most: usize) -> Result<(), String> {
    nested(value, out, most, 0)
}

fn nested(value: &Value, out: &mut String, most: usize, depth: usize) -> Result<(), String> {
    match value {
        Value::Nil => out.push_str("<nil>"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) | Value::Int64(value) => write!(out, "{value}").unwrap_or_default(),
        Value::Byte(value) => write!(out, "{value}").unwrap_or_default(),
        Value::Float(value) => out.push_str(&float::shortest(*value)),
        Value::Str(text) if text.len() <= most => out.push_str(text),
        Value::Str(_) => return Err(too_long(most)),
        Value::Object(object) => out.push_str(&object.thing().shown()),
        Value::List(_) | Value::Map(_) if depth >= MAX_DEPTH => {
            return Err(format!("value is nested deeper than {MAX_DEPTH}"));
        }
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.items().iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                nested(item, out, most, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push_str("map[");
            for (index, (key, item)) in map.snapshot().iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                nested(item, out, most, depth + 1)?;
            }
            out.push(']');
        }
    }
    if out.len() > most { Err(too_long(most)) } else { Ok(()) }
}

fn too_long(most: usize) -> String {
    format!("text is longer than {most} bytes")
}

/// `Sprint`, or `Sprintln` without its newline: a blank between arguments, for the former only where neither is a
/// string.
///
/// # Errors
/// Text that costs more than is left.
pub(crate) fn spaced(args: &[Value], always: bool, budget: &mut Budget) -> Result<String, String> {
    let mut out = String::new();
    for (index, arg) in args.iter().enumerate() {
        let is_string = |value: &Value| matches!(value, Value::Str(_));
        if index > 0 && (always || !(is_string(arg) || is_string(&args[index - 1]))) {
            out.push(' ');
        }
        plain(arg, &mut out, budget.limits().output)?;
    }
    budget.bytes(out.len())?;
    Ok(out)
}
