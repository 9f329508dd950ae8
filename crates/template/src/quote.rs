//! Go's string literals: written and read.

use std::fmt::Write;

/// The text as a double-quoted Go literal (`%q`).
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            _ => escape(c, &mut out),
        }
    }
    out.push('"');
    out
}

/// A character as a Go literal.
pub(crate) fn quoted_char(c: char) -> String {
    let mut out = String::from("'");
    if c == '\'' {
        out.push_str("\\'")
    } else {
        escape(c, &mut out)
    }
    out.push('\'');
    out
}

fn escape(c: char, out: &mut String) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        c if (c as u32) < 0x20 || c as u32 == 0x7f => write!(out, "\\x{:02x}", c as u32).unwrap_or_default(),
        c if c.is_control() => write!(out, "\\u{:04x}", c as u32).unwrap_or_default(),
        c => out.push(c),
    }
}

/// The text a quoted literal (`"…"`, `'…'` or a raw one) stands for; `None` if it is none.
pub(crate) fn unquote(literal: &str) -> Option<String> {
    let quote = literal.chars().next()?;
    let body = literal.get(1..literal.len().checked_sub(1)?)?;
    if quote == '`' {
        return Some(body.replace('\r', ""));
    }
    let mut bytes = Vec::with_capacity(body.len());
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            if c == quote || c == '\n' {
                return None;
            }
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let simple = match chars.next()? {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' => b'\\',
            c if c == quote => c as u8,
            'x' => digits(&mut chars, 2, 16, 0)? as u8,
            c @ '0'..='7' => u8::try_from(digits(&mut chars, 2, 8, c.to_digit(8)?)?).ok()?,
            c @ ('u' | 'U') => {
                let code = digits(&mut chars, if c == 'u' { 4 } else { 8 }, 16, 0)?;
                bytes.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            _ => return None,
        };
        bytes.push(simple);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn digits(chars: &mut std::str::Chars<'_>, count: usize, radix: u32, start: u32) -> Option<u32> {
    (0..count).try_fold(start, |code, _| Some(code.checked_mul(radix)? + chars.next()?.to_digit(radix)?))
}
