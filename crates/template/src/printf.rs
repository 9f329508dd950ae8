//! Go's `Sprintf`.

use std::fmt::Write;

use crate::float;
use crate::print;
use crate::quote::{quoted, quoted_char};
use crate::value::Value;

/// Widths and precisions Go accepts; a larger one is reported in the output.
const MAX_WIDTH: usize = 1_000_000;
/// Output of one call; only a format written to exhaust memory needs more.
const MAX_OUTPUT: usize = 8 << 20;
const MAX_DEPTH: usize = 200;

#[derive(Clone, Copy, Default)]
struct Spec {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// Formats as Go does, mistakes included: they show up in the text (`%!d(string=x)`).
///
/// # Errors
/// Explicit argument indexes (`%[1]d`), and output beyond all reason.
pub(crate) fn format(format: &str, args: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut args = args.iter();
    let mut rest = format;
    while let Some(start) = rest.find('%') {
        out.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        let mut spec = Spec::default();
        rest = flags(rest, &mut spec);
        rest = number(rest, &mut args, &mut spec, false, &mut out);
        if let Some(after) = rest.strip_prefix('.') {
            spec.precision = Some(0);
            rest = number(after, &mut args, &mut spec, true, &mut out);
        }
        if rest.starts_with('[') {
            return Err("explicit argument indexes are not supported".to_owned());
        }
        let Some(verb) = rest.chars().next() else {
            out.push_str("%!(NOVERB)");
            break;
        };
        rest = &rest[verb.len_utf8()..];
        if verb == '%' {
            out.push('%');
        } else if let Some(arg) = args.next() {
            verb_of(arg, verb, spec, &mut out);
        } else {
            write!(out, "%!{verb}(MISSING)").unwrap_or_default();
        }
        if out.len() > MAX_OUTPUT {
            return Err(format!("output is longer than {MAX_OUTPUT} bytes"));
        }
    }
    out.push_str(rest);
    let extra: Vec<String> = args.map(typed).collect();
    if !extra.is_empty() {
        write!(out, "%!(EXTRA {})", extra.join(", ")).unwrap_or_default();
    }
    Ok(out)
}

fn flags<'a>(mut rest: &'a str, spec: &mut Spec) -> &'a str {
    while let Some(flag) = rest.chars().next() {
        match flag {
            '+' => spec.plus = true,
            '-' => spec.minus = true,
            '#' => spec.sharp = true,
            ' ' => spec.space = true,
            '0' => spec.zero = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    rest
}

fn number<'a>(
    rest: &'a str,
    args: &mut std::slice::Iter<'_, Value>,
    spec: &mut Spec,
    is_precision: bool,
    out: &mut String,
) -> &'a str {
    let (found, after) = if let Some(after) = rest.strip_prefix('*') {
        let found = match args.next() {
            Some(Value::Int(value)) if value.unsigned_abs() <= MAX_WIDTH as u64 => {
                if *value < 0 && is_precision {
                    spec.precision = None;
                    return after;
                }
                spec.minus |= *value < 0;
                Some(value.unsigned_abs() as usize)
            }
            _ => {
                out.push_str(if is_precision { "%!(BADPREC)" } else { "%!(BADWIDTH)" });
                if is_precision {
                    spec.precision = None;
                }
                None
            }
        };
        (found, after)
    } else {
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        (rest[..length].parse().ok().filter(|value| *value <= MAX_WIDTH), &rest[length..])
    };
    match found {
        Some(value) if is_precision => spec.precision = Some(value),
        Some(value) => spec.width = Some(value),
        None => {}
    }
    after
}

fn verb_of(value: &Value, verb: char, mut spec: Spec, out: &mut String) {
    // `%+v` asks for field names, which no value here has, not for a sign.
    spec.plus &= verb != 'v';
    match verb {
        'T' => {
            let name = if matches!(value, Value::Nil) { "<nil>" } else { value.type_name() };
            pad(name, spec, out);
        }
        'v' if matches!(value, Value::Nil) => pad("<nil>", spec, out),
        _ if matches!(value, Value::Nil) => write!(out, "%!{verb}(<nil>)").unwrap_or_default(),
        'v' if spec.sharp => pad(&syntax(value, 0), spec, out),
        _ => nested(value, verb, spec, out, 0),
    }
}

fn nested(value: &Value, verb: char, spec: Spec, out: &mut String, depth: usize) {
    if depth > MAX_DEPTH || out.len() > MAX_OUTPUT {
        out.push_str("...");
        return;
    }
    match value {
        Value::Nil => pad("<nil>", spec, out),
        Value::Bool(flag) if matches!(verb, 'v' | 't') => {
            pad(if *flag { "true" } else { "false" }, spec, out)
        }
        Value::Int(int) => integer(*int, verb, spec, out),
        Value::Float(value) => floating(*value, verb, spec, out),
        Value::Str(text) => string(text, verb, spec, out),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.items().iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                nested(item, verb, spec, out, depth + 1);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push_str("map[");
            for (index, (key, item)) in map.snapshot().iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                string(key, verb, spec, out);
                out.push(':');
                nested(item, verb, spec, out, depth + 1);
            }
            out.push(']');
        }
        _ => bad_verb(value, verb, spec, out),
    }
}

fn integer(value: i64, verb: char, spec: Spec, out: &mut String) {
    let magnitude = value.unsigned_abs();
    let (digits, prefix) = match verb {
        'v' | 'd' => (magnitude.to_string(), ""),
        'b' => (format!("{magnitude:b}"), "0b"),
        'o' => (format!("{magnitude:o}"), "0"),
        'O' => (format!("{magnitude:o}"), "0o"),
        'x' => (format!("{magnitude:x}"), "0x"),
        'X' => (format!("{magnitude:X}"), "0X"),
        'c' | 'q' | 'U' => {
            let c = u32::try_from(value).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
            let text = match verb {
                'c' => c.to_string(),
                'q' => quoted_char(c),
                _ if spec.sharp => format!("U+{magnitude:04X} '{c}'"),
                _ => format!("U+{magnitude:04X}"),
            };
            return pad(&text, Spec { zero: false, ..spec }, out);
        }
        _ => return bad_verb(&Value::Int(value), verb, spec, out),
    };
    let sign = if value < 0 {
        "-"
    } else if spec.plus {
        "+"
    } else if spec.space {
        " "
    } else {
        ""
    };
    let prefix = if verb == 'O' || (spec.sharp && !matches!(verb, 'v' | 'd')) { prefix } else { "" };
    if spec.precision == Some(0) && value == 0 {
        return pad("", Spec { zero: false, ..spec }, out);
    }
    let least = match (spec.precision, spec.width) {
        (Some(precision), _) => precision,
        (None, Some(width)) if spec.zero && !spec.minus => width.saturating_sub(sign.len()),
        _ => 0,
    };
    let digits = format!("{digits:0>least$}");
    pad(&format!("{sign}{prefix}{digits}"), Spec { zero: false, ..spec }, out);
}

fn floating(value: f64, verb: char, spec: Spec, out: &mut String) {
    let text = match verb {
        'v' | 'g' => float::general(value, spec.precision),
        'G' => float::general(value, spec.precision).replace('e', "E"),
        'e' => float::exponent(value, spec.precision),
        'E' => float::exponent(value, spec.precision).replace('e', "E"),
        'f' | 'F' => float::fixed(value, spec.precision),
        _ => return bad_verb(&Value::Float(value), verb, spec, out),
    };
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) if text.starts_with('-') => ("-", digits),
        Some(digits) => ("+", digits),
        None => ("", text.as_str()),
    };
    let sign = match sign {
        "-" => "-",
        _ if spec.plus => "+",
        _ if spec.space => " ",
        sign => sign,
    };
    let zero = spec.zero && !spec.minus && value.is_finite();
    let least = if zero { spec.width.unwrap_or(0).saturating_sub(sign.len()) } else { 0 };
    pad(&format!("{sign}{digits:0>least$}"), Spec { zero: false, ..spec }, out);
}

fn string(text: &str, verb: char, spec: Spec, out: &mut String) {
    let cut = |text: &str| match spec.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text.to_owned(),
    };
    match verb {
        'v' | 's' => pad(&cut(text), spec, out),
        'q' if spec.sharp
            && !text.contains(['`', '\u{feff}'])
            && !text.chars().any(|c| c.is_control() && c != '\t') =>
        {
            pad(&format!("`{}`", cut(text)), spec, out);
        }
        'q' => pad(&quoted(&cut(text)), spec, out),
        'x' | 'X' => {
            let bytes = &text.as_bytes()[..spec.precision.unwrap_or(text.len()).min(text.len())];
            let separator = if spec.space { " " } else { "" };
            let mut hex = bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(separator);
            if spec.sharp && !bytes.is_empty() {
                hex.insert_str(0, "0x");
            }
            pad(&if verb == 'X' { hex.to_uppercase() } else { hex }, spec, out);
        }
        _ => bad_verb(&Value::from(text), verb, spec, out),
    }
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
    nested(value, 'v', spec, out, 0);
    out.push(')');
}

fn typed(value: &Value) -> String {
    if matches!(value, Value::Nil) {
        return "<nil>".to_owned();
    }
    let mut text = format!("{}=", value.type_name());
    print::plain(value, &mut text);
    text
}

/// The value as Go source (`%#v`).
fn syntax(value: &Value, depth: usize) -> String {
    let name = value.type_name();
    match value {
        _ if depth > MAX_DEPTH => "...".to_owned(),
        Value::Nil => "interface {}(nil)".to_owned(),
        Value::Str(text) => quoted(text),
        Value::List(list) => {
            let items: Vec<_> = list.items().iter().map(|item| syntax(item, depth + 1)).collect();
            format!("{name}{{{}}}", items.join(", "))
        }
        Value::Map(map) => {
            let entries: Vec<_> = map
                .snapshot()
                .iter()
                .map(|(key, item)| format!("{}:{}", quoted(key), syntax(item, depth + 1)))
                .collect();
            format!("{name}{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}
