//! Base64 and JSON.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

use super::{Outcome, fixed, str_of};
use crate::float;
use crate::function::Function;
use crate::function::Param::{Any, Str};
use crate::value::Value;

/// Nesting written as JSON; what is read stays under 128.
const MAX_DEPTH: usize = 200;

/// Reads what Go reads: bits left over at the end are ignored.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("b64enc", &[Str], |args| Ok(STANDARD.encode(str_of(&args[0])).into())),
    fixed("b64dec", &[Str], |args| Ok(decoded(str_of(&args[0])).into())),
    fixed("toJson", &[Any], |args| Ok(json(&args[0], true).unwrap_or_else(|_| "".into()))),
    fixed("mustToJson", &[Any], |args| json(&args[0], true)),
    fixed("toRawJson", &[Any], |args| json(&args[0], false)),
    fixed("mustToRawJson", &[Any], |args| json(&args[0], false)),
    fixed("fromJson", &[Str], |args| {
        let parsed = serde_json::from_str::<serde_json::Value>(str_of(&args[0]));
        Ok(parsed.map(|json| Value::from(&json)).unwrap_or_default())
    }),
];

/// The text encoded; for one that is no base64, the complaint takes its place, as sprig has it.
fn decoded(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let offset = match LENIENT.decode(&text) {
        Ok(bytes) => return String::from_utf8_lossy(&bytes).into_owned(),
        // Good padding with more text after it: the text is at fault, not the padding.
        Err(base64::DecodeError::InvalidByte(offset, b'=')) if offset % 4 >= 2 && padded(&text, offset) => {
            offset / 4 * 4 + 4
        }
        Err(base64::DecodeError::InvalidByte(offset, _)) => offset,
        Err(_) if text.ends_with('=') => text.len(),
        Err(_) => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {offset}")
}

/// Whether the group of four the offset lies in ends with padding from there on.
fn padded(text: &str, offset: usize) -> bool {
    text.as_bytes()
        .get(offset..offset / 4 * 4 + 4)
        .is_some_and(|group| group.iter().all(|byte| *byte == b'='))
}

fn json(value: &Value, escapes_html: bool) -> Outcome {
    let mut out = String::new();
    write_json(value, escapes_html, &mut out, 0)?;
    Ok(out.into())
}

fn write_json(value: &Value, escapes_html: bool, out: &mut String, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("value is nested too deep".to_owned());
    }
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(int) => write!(out, "{int}").unwrap_or_default(),
        Value::Float(float) if !float.is_finite() => {
            return Err(format!("json: unsupported value: {}", float::shortest(*float)));
        }
        Value::Float(float) => out.push_str(&number(*float)),
        Value::Str(text) => write_text(text, escapes_html, out),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.items().iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_json(item, escapes_html, out, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (index, (key, item)) in map.snapshot().iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_text(key, escapes_html, out);
                out.push(':');
                write_json(item, escapes_html, out, depth + 1)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// A number as Go writes it in JSON: with an exponent below 1e-6 and from 1e21 on only.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = float::shortest(value);
        return text.replace("e-0", "e-");
    }
    format!("{value}")
}

fn write_text(text: &str, escapes_html: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' if escapes_html => write!(out, "\\u{:04x}", c as u32).unwrap_or_default(),
            '\u{2028}' | '\u{2029}' => write!(out, "\\u{:04x}", c as u32).unwrap_or_default(),
            c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out.push('"');
}
