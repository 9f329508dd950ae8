//! Go's string literals: written and read.

use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;

/// The text as a double-quoted Go literal (`%q`).
pub(crate) fn quoted(text: &str) -> String {
    literal(text, '"', false)
}

/// The text as a double-quoted literal of ASCII characters (`%+q`).
pub(crate) fn quoted_ascii(text: &str) -> String {
    literal(text, '"', true)
}

/// A character as a Go literal, of ASCII characters if asked to.
pub(crate) fn quoted_char(c: char, ascii: bool) -> String {
    literal(c.encode_utf8(&mut [0; 4]), '\'', ascii)
}

/// Whether the text can stand between backquotes as it is.
pub(crate) fn can_be_raw(text: &str) -> bool {
    text.chars().all(|c| !matches!(c, '`' | '\u{feff}' | '\u{7f}') && (c == '\t' || c >= ' '))
}

/// Whether Go prints the character as it is: letters, marks, numbers, punctuation, symbols and the blank.
pub(crate) fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        c => !UNPRINTABLE.is_match(c.encode_utf8(&mut [0; 4])),
    }
}

static UNPRINTABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[^\p{L}\p{M}\p{N}\p{P}\p{S} ]").expect("the expression is a constant that compiles")
});

fn literal(text: &str, quote: char, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let searched = if plain { "" } else { text };
    let mut unprintable = UNPRINTABLE.find_iter(searched).map(|found| found.start()).peekable();
    for (at, c) in text.char_indices() {
        let printable = unprintable.next_if_eq(&at).is_none();
        if c == quote || c == '\\' {
            out.push('\\');
            out.push(c);
        } else if printable && (c.is_ascii() || !ascii) {
            out.push(c);
        } else {
            escape(c, &mut out);
        }
    }
    out.push(quote);
    out
}

fn escape(c: char, out: &mut String) {
    match c {
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        c if (c as u32) < 0x20 || c as u32 == 0x7f => write!(out, "\\x{:02x}", c as u32).unwrap_or_default(),
        c if (c as u32) < 0x10000 => write!(out, "\\u{:04x}", c as u32).unwrap_or_default(),
        c => write!(out, "\\U{:08x}", c as u32).unwrap_or_default(),
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

/// The number of the character a single-quoted literal starts with, after its quote, and what follows.
pub(crate) fn first_char(body: &str) -> Option<(u32, &str)> {
    let mut chars = body.chars();
    let length = match chars.next()? {
        '\\' => match chars.next()? {
            'x' | '0'..='7' => 4,
            'u' => 6,
            'U' => 10,
            _ => 2,
        },
        c => c.len_utf8(),
    };
    let (first, rest) = body.split_at_checked(length)?;
    let unquoted = unquote(&format!("'{first}'"))?;
    let code = match first.as_bytes() {
        // These name a byte, which is the character of that number.
        [b'\\', b'x', digits @ ..] => u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?,
        [b'\\', digits @ ..] if digits.len() == 3 => {
            u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?
        }
        _ => unquoted.chars().next()? as u32,
    };
    Some((code, rest))
}
