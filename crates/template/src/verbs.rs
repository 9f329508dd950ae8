//! What each of `Sprintf`'s verbs makes of a value.

use std::fmt::Write;

use crate::budget::MAX_DEPTH;
use crate::float;
use crate::quote;
use crate::value::Value;

/// Flags, width and precision of a directive.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spec {
    pub(crate) plus: bool,
    pub(crate) minus: bool,
    pub(crate) sharp: bool,
    pub(crate) space: bool,
    pub(crate) zero: bool,
    /// `%#v`: Go source instead of plain text.
    source: bool,
    pub(crate) width: Option<usize>,
    pub(crate) precision: Option<usize>,
}

/// Appends an argument as the verb has it.
///
/// # Errors
/// When that makes the text longer than `most` bytes, or the value is nested beyond reason.
pub(crate) fn argument(
    value: &Value,
    verb: char,
    mut spec: Spec,
    out: &mut String,
    most: usize,
) -> Result<(), String> {
    if verb == 'v' {
        spec.source = spec.sharp;
        spec.sharp = false;
        // `%+v` asks for field names, which no value here has, not for a sign.
        spec.plus = false;
    }
    match (value, verb) {
        (Value::Nil, 'T' | 'v') => pad("<nil>", spec, out),
        (Value::Nil, _) => write!(out, "%!{verb}(<nil>)").unwrap_or_default(),
        (_, 'T') => string(value.type_name(), 's', spec, out),
        _ => return Verb { verb, spec, most }.nested(value, out, 0),
    }
    Ok(())
}

struct Verb {
    verb: char,
    spec: Spec,
    most: usize,
}

impl Verb {
    fn nested(&self, value: &Value, out: &mut String, depth: usize) -> Result<(), String> {
        let Verb { verb, spec, most } = *self;
        if out.len() > most {
            return Err(format!("text is longer than {most} bytes"));
        }
        match value {
            Value::Nil if spec.source => out.push_str("interface {}(nil)"),
            Value::Nil => out.push_str("<nil>"),
            Value::Bool(flag) if matches!(verb, 'v' | 't') => {
                pad(if *flag { "true" } else { "false" }, spec, out)
            }
            Value::Bool(_) => bad_verb(value, verb, spec, out),
            Value::Int(int) | Value::Int64(int) => integer(*int, value, verb, spec, out),
            Value::Byte(byte) if spec.source => write!(out, "{byte:#x}").unwrap_or_default(),
            Value::Byte(byte) => integer(i64::from(*byte), value, verb, spec, out),
            Value::Float(number) => floating(*number, verb, spec, out),
            Value::Str(text) => string(text, verb, spec, out),
            // Only verbs for texts ask for the text of a number with a name.
            Value::Object(object) if matches!(verb, 'd' | 'b' | 'o' | 'O' | 'c' | 'U') => {
                match object.thing().integer() {
                    Some(number) => return self.nested(&Value::Int(number), out, depth),
                    None => string(&object.thing().shown(), verb, spec, out),
                }
            }
            Value::Object(object) => string(&object.thing().shown(), verb, spec, out),
            Value::List(_) | Value::Map(_) if depth >= MAX_DEPTH => {
                return Err(format!("value is nested deeper than {MAX_DEPTH}"));
            }
            Value::List(list) if spec.source && list.is_nil() => {
                out.push_str(value.type_name());
                out.push_str("(nil)");
            }
            Value::List(list) => {
                self.open(value, "", out);
                for (index, item) in list.items().iter().enumerate() {
                    self.separate(index, out);
                    self.nested(item, out, depth + 1)?;
                }
                self.close(out);
            }
            Value::Map(map) => {
                self.open(value, "map", out);
                for (index, (key, item)) in map.snapshot().iter().enumerate() {
                    self.separate(index, out);
                    string(key, verb, spec, out);
                    out.push(':');
                    self.nested(item, out, depth + 1)?;
                }
                self.close(out);
            }
        }
        Ok(())
    }

    fn open(&self, value: &Value, plain: &str, out: &mut String) {
        if self.spec.source {
            out.push_str(value.type_name());
            out.push('{');
        } else {
            out.push_str(plain);
            out.push('[');
        }
    }

    fn separate(&self, index: usize, out: &mut String) {
        match (index, self.spec.source) {
            (0, _) => {}
            (_, true) => out.push_str(", "),
            (_, false) => out.push(' '),
        }
    }

    fn close(&self, out: &mut String) {
        out.push(if self.spec.source { '}' } else { ']' });
    }
}

fn integer(number: i64, value: &Value, verb: char, spec: Spec, out: &mut String) {
    let magnitude = number.unsigned_abs();
    let digits = match verb {
        'v' | 'd' => magnitude.to_string(),
        'b' => format!("{magnitude:b}"),
        'o' | 'O' => format!("{magnitude:o}"),
        'x' => format!("{magnitude:x}"),
        'X' => format!("{magnitude:X}"),
        'c' => return pad(character(number).encode_utf8(&mut [0; 4]), spec, out),
        'q' => return pad(&quote::quoted_char(character(number), spec.plus), spec, out),
        'U' => return code_point(number, spec, out),
        _ => return bad_verb(value, verb, spec, out),
    };
    let unpadded = Spec { zero: false, ..spec };
    if spec.precision == Some(0) && number == 0 {
        return pad("", unpadded, out);
    }
    let sign = match (number < 0, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    };
    let least = match (spec.precision, spec.width) {
        (Some(precision), _) => precision,
        (None, Some(width)) if spec.zero && !spec.minus => width.saturating_sub(sign.len()),
        _ => 0,
    };
    let digits = format!("{digits:0>least$}");
    let prefix = match verb {
        'b' if spec.sharp => "0b",
        'o' if spec.sharp && !digits.starts_with('0') => "0",
        'O' if spec.sharp && !digits.starts_with('0') => "0o0",
        'O' => "0o",
        'x' if spec.sharp => "0x",
        'X' if spec.sharp => "0X",
        _ => "",
    };
    pad(&format!("{sign}{prefix}{digits}"), unpadded, out);
}

fn character(number: i64) -> char {
    u32::try_from(number).ok().and_then(char::from_u32).unwrap_or('\u{fffd}')
}

fn code_point(number: i64, spec: Spec, out: &mut String) {
    let least = spec.precision.unwrap_or(0).max(4);
    // A negative number is shown as the bits it has.
    let mut text = format!("U+{number:0least$X}");
    if spec.sharp
        && let Some(c) = u32::try_from(number).ok().and_then(char::from_u32)
        && quote::is_printable(c)
    {
        write!(text, " '{c}'").unwrap_or_default();
    }
    pad(&text, Spec { zero: false, ..spec }, out);
}

fn floating(number: f64, verb: char, spec: Spec, out: &mut String) {
    let precision = spec.precision;
    let text = match verb {
        'v' | 'g' => float::general(number, precision),
        'G' => float::general(number, precision).to_uppercase(),
        'e' => float::exponent(number, precision),
        'E' => float::exponent(number, precision).to_uppercase(),
        'f' | 'F' => float::fixed(number, precision),
        'x' => float::hexadecimal(number, precision),
        'X' => float::hexadecimal(number, precision).to_uppercase(),
        'b' => float::binary(number),
        _ => return bad_verb(&Value::Float(number), verb, spec, out),
    };
    if !number.is_finite() {
        return pad(&unusual(number, spec), Spec { zero: false, ..spec }, out);
    }
    let digits = text.strip_prefix('-').unwrap_or(&text);
    let digits =
        if spec.sharp && verb != 'b' { with_point(digits, verb, precision) } else { digits.to_owned() };
    let sign = match (number.is_sign_negative(), spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    };
    let zeros = match spec.width {
        Some(width) if spec.zero && !spec.minus => width.saturating_sub(sign.len() + digits.len()),
        _ => 0,
    };
    pad(&format!("{sign}{}{digits}", "0".repeat(zeros)), Spec { zero: false, ..spec }, out);
}

/// Infinities and what is no number. Go always signs the former.
fn unusual(number: f64, spec: Spec) -> String {
    let sign = match (number.is_nan(), number > 0.0) {
        (true, _) if spec.plus => "+",
        (true, _) if spec.space => " ",
        (true, _) => "",
        (false, true) if spec.space && !spec.plus => " ",
        (false, true) => "+",
        (false, false) => "-",
    };
    format!("{sign}{}", if number.is_nan() { "NaN" } else { "Inf" })
}

/// The sharp flag's form: with a point always, and for some verbs with zeros up to the precision.
fn with_point(digits: &str, verb: char, precision: Option<usize>) -> String {
    let exponent = if matches!(verb, 'x' | 'X') { ['p', 'P'] } else { ['e', 'E'] };
    let (mut number, tail) = match digits.find(exponent) {
        Some(at) => (digits[..at].to_owned(), &digits[at..]),
        None => (digits.to_owned(), ""),
    };
    let wanted = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let significant = number.chars().filter(|c| *c != '.').skip_while(|c| *c == '0').count();
    // A lone zero counts once, without a point only.
    let shown = if number == "0" { 1 } else { significant };
    if !number.contains('.') {
        number.push('.');
    }
    number.push_str(&"0".repeat(wanted.saturating_sub(shown)));
    number + tail
}

fn string(text: &str, verb: char, spec: Spec, out: &mut String) {
    let cut = match spec.precision.and_then(|precision| text.char_indices().nth(precision)) {
        Some((end, _)) => &text[..end],
        None => text,
    };
    match verb {
        'v' if spec.source => pad(&quote::quoted(cut), spec, out),
        'v' | 's' => pad(cut, spec, out),
        'q' if spec.sharp && quote::can_be_raw(cut) => pad(&format!("`{cut}`"), spec, out),
        'q' if spec.plus => pad(&quote::quoted_ascii(cut), spec, out),
        'q' => pad(&quote::quoted(cut), spec, out),
        'x' | 'X' => pad(&hexadecimal(text, verb, spec), spec, out),
        _ => bad_verb(&Value::from(text), verb, spec, out),
    }
}

fn hexadecimal(text: &str, verb: char, spec: Spec) -> String {
    let bytes = &text.as_bytes()[..spec.precision.unwrap_or(text.len()).min(text.len())];
    let mut hex = String::with_capacity(bytes.len() * 2);
    for (index, byte) in bytes.iter().enumerate() {
        hex.push_str(if spec.space && index > 0 { " " } else { "" });
        hex.push_str(if spec.sharp && (spec.space || index == 0) { "0x" } else { "" });
        write!(hex, "{byte:02x}").unwrap_or_default();
    }
    if verb == 'X' { hex.to_uppercase() } else { hex }
}

fn pad(text: &str, spec: Spec, out: &mut String) {
    let missing = spec.width.unwrap_or(0).saturating_sub(text.chars().count());
    let filler = if spec.zero && !spec.minus { "0" } else { " " };
    if !spec.minus {
        out.push_str(&filler.repeat(missing));
    }
    out.push_str(text);
    if spec.minus {
        out.push_str(&filler.repeat(missing));
    }
}

fn bad_verb(value: &Value, verb: char, spec: Spec, out: &mut String) {
    write!(out, "%!{verb}({}=", value.type_name()).unwrap_or_default();
    match value {
        Value::Bool(flag) => pad(if *flag { "true" } else { "false" }, spec, out),
        Value::Int(int) | Value::Int64(int) => integer(*int, value, 'v', spec, out),
        Value::Byte(byte) => integer(i64::from(*byte), value, 'v', spec, out),
        Value::Float(number) => floating(*number, 'v', spec, out),
        Value::Str(text) => string(text, 'v', spec, out),
        _ => {}
    }
    out.push(')');
}
