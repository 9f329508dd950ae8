//! Values as Go prints them, for messages whose text clients and people already know.

use std::fmt::Write;

use serde_json::Value;

/// Longest text shown; messages carry values whole upstream, but a message must not carry megabytes.
const LONGEST: usize = 4096;

/// `%v`: `map[a:1 b:[x y]]`.
pub(crate) fn plain(value: &Value) -> String {
    let mut text = String::new();
    write_plain(value, &mut text, 0);
    text
}

fn write_plain(value: &Value, out: &mut String, depth: usize) {
    if out.len() > LONGEST || depth > 64 {
        if !out.ends_with("...") {
            out.push_str("...");
        }
        return;
    }
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{number}");
        }
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                write_plain(item, out, depth + 1);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(b.0));
            out.push_str("map[");
            for (at, (name, field)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                out.push_str(name);
                out.push(':');
                write_plain(field, out, depth + 1);
            }
            out.push(']');
        }
    }
}

/// `%#v`: `map[string]interface {}{"a":1}`.
pub(crate) fn literal(value: &Value) -> String {
    let mut text = String::new();
    write_literal(value, &mut text, 0);
    text
}

fn write_literal(value: &Value, out: &mut String, depth: usize) {
    if out.len() > LONGEST || depth > 64 {
        if !out.ends_with("...") {
            out.push_str("...");
        }
        return;
    }
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_literal(item, out, depth + 1);
            }
            out.push('}');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(b.0));
            out.push_str("map[string]interface {}{");
            for (at, (name, field)) in sorted.into_iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(out, "{comma}{name:?}:");
                write_literal(field, out, depth + 1);
            }
            out.push('}');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

/// `%T` of a decoded JSON value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
