//! JSON as Go writes it, and reads it with [`json_text`].

use std::fmt::Write;

use super::{Outcome, json_text, metered, str_of};
use crate::budget::Budget;
use crate::float;
use crate::function::Function;
use crate::function::Param::{Any, Str};
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    metered("toJson", &[Any], None, |context, args| {
        unless_unwritable(written(&args[0], PLAIN, context.budget))
    }),
    metered("mustToJson", &[Any], None, |context, args| written(&args[0], PLAIN, context.budget)?),
    metered("toPrettyJson", &[Any], None, |context, args| {
        unless_unwritable(written(&args[0], PRETTY, context.budget))
    }),
    metered("mustToPrettyJson", &[Any], None, |context, args| written(&args[0], PRETTY, context.budget)?),
    metered("toRawJson", &[Any], None, |context, args| written(&args[0], RAW, context.budget)?),
    metered("mustToRawJson", &[Any], None, |context, args| written(&args[0], RAW, context.budget)?),
    metered("fromJson", &[Str], None, |context, args| {
        let read = json_text::read(str_of(&args[0]), context.budget)?;
        Ok(read.map(|read| read.value).unwrap_or_default())
    }),
    metered("mustFromJson", &[Str], None, |context, args| {
        let read = json_text::read(str_of(&args[0]), context.budget)??;
        read.misfit.map_or(Ok(read.value), Err)
    }),
];

const PLAIN: Style = Style { escapes_html: true, pretty: false };
const PRETTY: Style = Style { escapes_html: true, pretty: true };
const RAW: Style = Style { escapes_html: false, pretty: false };

#[derive(Clone, Copy)]
struct Style {
    escapes_html: bool,
    pretty: bool,
}

/// The text; inside, what JSON cannot hold; outside, what costs too much.
fn written(value: &Value, style: Style, budget: &mut Budget) -> Result<Outcome, String> {
    let most = budget.limits().output;
    let mut writer = Writer { style, out: String::new(), most, budget };
    let outcome = writer.value(value, 0);
    writer.budget.bytes(writer.out.len())?;
    match outcome {
        Ok(()) => Ok(Ok(writer.out.into())),
        Err(Refused::Unwritable(message)) => Ok(Err(message)),
        Err(Refused::TooMuch(message)) => Err(message),
    }
}

/// Empty where JSON cannot hold the value, as sprig has it.
fn unless_unwritable(outcome: Result<Outcome, String>) -> Outcome {
    Ok(outcome?.unwrap_or_else(|_| "".into()))
}

enum Refused {
    Unwritable(String),
    TooMuch(String),
}

struct Writer<'b> {
    style: Style,
    out: String,
    most: usize,
    budget: &'b mut Budget,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Refused> {
        if self.out.len() > self.most {
            return Err(Refused::TooMuch(format!("text is longer than {} bytes", self.most)));
        }
        Budget::depth(depth).map_err(Refused::TooMuch)?;
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::Bool(flag) => self.out.push_str(if *flag { "true" } else { "false" }),
            Value::Int(int) | Value::Int64(int) => write!(self.out, "{int}").unwrap_or_default(),
            Value::Byte(byte) => write!(self.out, "{byte}").unwrap_or_default(),
            Value::Float(float) if !float.is_finite() => {
                let shown = float::shortest(*float);
                return Err(Refused::Unwritable(format!("json: unsupported value: {shown}")));
            }
            Value::Float(float) => self.out.push_str(&number(*float)),
            Value::Str(text) => text_into(text, self.style.escapes_html, &mut self.out),
            Value::Object(object) => self.out.push_str(&object.thing().json().map_err(Refused::Unwritable)?),
            Value::List(list) if list.is_nil() => self.out.push_str("null"),
            Value::List(list) if list.items().is_empty() => self.out.push_str("[]"),
            Value::Map(map) if map.is_empty() => self.out.push_str("{}"),
            Value::List(list) => {
                self.budget.copies(list.items().len()).map_err(Refused::TooMuch)?;
                self.out.push('[');
                for (index, item) in list.items().iter().enumerate() {
                    self.separate(index, depth + 1);
                    self.value(item, depth + 1)?;
                }
                self.new_line(depth);
                self.out.push(']');
            }
            Value::Map(map) => {
                self.budget.copies(map.len()).map_err(Refused::TooMuch)?;
                self.out.push('{');
                for (index, (key, item)) in map.snapshot().iter().enumerate() {
                    self.separate(index, depth + 1);
                    text_into(key, self.style.escapes_html, &mut self.out);
                    self.out.push_str(if self.style.pretty { ": " } else { ":" });
                    self.value(item, depth + 1)?;
                }
                self.new_line(depth);
                self.out.push('}');
            }
        }
        Ok(())
    }

    fn separate(&mut self, index: usize, depth: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.new_line(depth);
    }

    fn new_line(&mut self, depth: usize) {
        if self.style.pretty {
            self.out.push('\n');
            self.out.push_str(&"  ".repeat(depth));
        }
    }
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

fn text_into(text: &str, escapes_html: bool, out: &mut String) {
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
