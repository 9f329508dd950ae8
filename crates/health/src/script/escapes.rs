//! Escapes that Lua 5.1 reads and later versions refuse.
//!
//! In Lua 5.1 a backslash before a character that makes no escape stands for nothing: `'%d+\.'` is `%d+.`. Scripts
//! written for Argo CD rely on it. Here such backslashes are dropped before the script is compiled.

use std::borrow::Cow;

/// The script with those backslashes dropped; lines keep their numbers.
pub(super) fn lenient(script: &str) -> Cow<'_, str> {
    if !script.contains('\\') {
        return Cow::Borrowed(script);
    }
    let mut result = Vec::with_capacity(script.len());
    let mut rest = script.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let length = match byte {
            b'"' | b'\'' => {
                rest = quoted(*byte, after, &mut result);
                continue;
            }
            b'-' if after.first() == Some(&b'-') => comment(rest),
            b'[' => long(rest).unwrap_or(1),
            _ => 1,
        };
        let (taken, left) = rest.split_at(length);
        result.extend_from_slice(taken);
        rest = left;
    }
    match String::from_utf8(result) {
        Ok(text) => Cow::Owned(text),
        // Only whole ASCII characters were dropped, so this is not reached; the script as it is would be right.
        Err(_) => Cow::Borrowed(script),
    }
}

/// Copies a text in quotes without the backslashes that stand for nothing; returns what follows it.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], result: &mut Vec<u8>) -> &'a [u8] {
    result.push(quote);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.first()) {
            (b'\\', Some(escaped)) => {
                if b"abfnrtv\\\"'\n\r0123456789".contains(escaped) {
                    result.push(b'\\');
                }
                result.push(*escaped);
                rest = &after[1..];
            }
            (byte, _) => {
                result.push(*byte);
                // A line's end in quotes is a mistake Lua reports; what follows is read as code again.
                if *byte == quote || *byte == b'\n' {
                    break;
                }
            }
        }
    }
    rest
}

/// Length of the comment a text begins with.
fn comment(text: &[u8]) -> usize {
    if let Some(length) = long(&text[2..]) {
        return 2 + length;
    }
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

/// Length of the long bracket a text begins with, `[[…]]` or `[==[…]==]`, if it does.
fn long(text: &[u8]) -> Option<usize> {
    let inside = text.strip_prefix(b"[")?;
    let level = inside.iter().take_while(|byte| **byte == b'=').count();
    if inside.get(level) != Some(&b'[') {
        return None;
    }
    let close: Vec<u8> = [b"]".as_slice(), &inside[..level], b"]"].concat();
    let end = text.windows(close.len()).position(|window| window == close);
    Some(end.map_or(text.len(), |end| end + close.len()))
}

#[cfg(test)]
mod tests {
    use super::lenient;

    #[test]
    fn a_backslash_that_makes_no_escape_is_dropped() {
        for (script, expected) in [
            (r"'a\.b\d'", "'a.bd'"),
            (r#""\/" .. '\x41'"#, r#""/" .. 'x41'"#),
            (r"'\n\\\'\065' .. '\.'", r"'\n\\\'\065' .. '.'"),
            ("'a\\\nb\\.'", "'a\\\nb.'"),
            (r"[[a\.b]] .. '\.'", r"[[a\.b]] .. '.'"),
            (r"[==[a\.]] ' ]==] .. '\.'", r"[==[a\.]] ' ]==] .. '.'"),
            ("-- it's \\.\nx = '\\.'", "-- it's \\.\nx = '.'"),
            ("--[[ it's\n\\. ]] x = '\\.'", "--[[ it's\n\\. ]] x = '.'"),
            (r"t['a'][1] = '\ü'", "t['a'][1] = 'ü'"),
            (r"'open \.", "'open ."),
            (r"'ends with \", r"'ends with \"),
            (r"x = '\\.'", r"x = '\\.'"),
        ] {
            assert_eq!(lenient(script), expected, "{script}");
        }
    }
}
