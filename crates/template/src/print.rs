//! Go's default format for values.

use std::fmt::Write;

use crate::float;
use crate::value::Value;

/// Nesting printed before `...` stands for the rest. Values nest this deep only when someone tries to exhaust the
/// stack.
const MAX_DEPTH: usize = 200;

/// Appends the value as `%v` prints it.
pub(crate) fn plain(value: &Value, out: &mut String) {
    nested(value, out, 0);
}

fn nested(value: &Value, out: &mut String, depth: usize) {
    if depth > MAX_DEPTH {
        out.push_str("...");
        return;
    }
    match value {
        Value::Nil => out.push_str("<nil>"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => write!(out, "{value}").unwrap_or_default(),
        Value::Float(value) => out.push_str(&float::shortest(*value)),
        Value::Str(text) => out.push_str(text),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.items().iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                nested(item, out, depth + 1);
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
                nested(item, out, depth + 1);
            }
            out.push(']');
        }
    }
}

/// `Sprint`, or `Sprintln` without its newline: a blank between arguments, for the former only where neither is a
/// string.
pub(crate) fn spaced(args: &[Value], always: bool) -> String {
    let mut out = String::new();
    for (index, arg) in args.iter().enumerate() {
        let is_string = |value: &Value| matches!(value, Value::Str(_));
        if index > 0 && (always || !(is_string(arg) || is_string(&args[index - 1]))) {
            out.push(' ');
        }
        plain(arg, &mut out);
    }
    out
}
