//! Sets of characters: `[a-z]`, `\d`, `\pL`, `[[:alpha:]]`.

use regex::Regex;

use super::Error;
use super::translate::escape;

const DIGIT: &str = "0-9";
const SPACE: &str = "\\t\\n\\x0C\\r ";
const WORD: &str = "0-9A-Za-z_";

const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// The first of the classes that does not exist.
pub(super) fn unknown<'c>(classes: &[&'c str]) -> Option<&'c str> {
    classes.iter().copied().find(|class| {
        let (written, _) = unicode(class).ok().flatten().unwrap_or_default();
        written.is_empty() || Regex::new(&written).is_err()
    })
}

/// `\d` and the like: what stands for it, and the text after it.
pub(super) fn perl(text: &str) -> Option<(String, &str)> {
    let (inner, negated) = match text.as_bytes().get(..2)? {
        br"\d" => (DIGIT, false),
        br"\D" => (DIGIT, true),
        br"\s" => (SPACE, false),
        br"\S" => (SPACE, true),
        br"\w" => (WORD, false),
        br"\W" => (WORD, true),
        _ => return None,
    };
    let caret = if negated { "^" } else { "" };
    Some((format!("[{caret}{inner}]"), &text[2..]))
}

/// `\pL`, `\P{Greek}`, `\p{^Greek}`: what stands for it, and the text after it.
pub(super) fn unicode(text: &str) -> Result<Option<(String, &str)>, Error> {
    let Some(kind) = text.strip_prefix('\\').and_then(|rest| rest.chars().next()) else {
        return Ok(None);
    };
    if !matches!(kind, 'p' | 'P') {
        return Ok(None);
    }
    let range = |expression: &str| Error::new("invalid character class range", expression);
    let after = &text[2..];
    let (name, sequence, rest) = match after.chars().next() {
        None => return Err(range(text)),
        Some('{') => {
            let end = after.find('}').ok_or_else(|| range(text))?;
            (&after[1..end], &text[..2 + end + 1], &after[end + 1..])
        }
        Some(c) => (&after[..c.len_utf8()], &text[..2 + c.len_utf8()], &after[c.len_utf8()..]),
    };
    let (name, flipped) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(range(sequence));
    }
    let kind = if (kind == 'P') != flipped { 'P' } else { 'p' };
    Ok(Some((format!("\\{kind}{{{name}}}"), rest)))
}

/// A class in brackets: what stands for it, the Unicode classes in it, and the text after it.
pub(super) fn bracketed(text: &str) -> Result<(String, Vec<&str>, &str), Error> {
    let mut out = String::from("[");
    let mut unicode_classes = Vec::new();
    let mut rest = &text[1..];
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    // Holds the class together when no range in it is left.
    out.push_str("[^\\x{0}-\\x{10FFFF}]");
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((class, after)) = named(rest)? {
            out.push_str(&class);
            rest = after;
        } else if let Some((class, after)) = unicode(rest)? {
            unicode_classes.push(&rest[..rest.len() - after.len()]);
            out.push_str(&class);
            rest = after;
        } else if let Some((class, after)) = perl(rest) {
            out.push_str(&class);
            rest = after;
        } else {
            let (low, mut after) = character(rest, text)?;
            let mut high = low;
            if let Some(upper) =
                after.strip_prefix('-').filter(|upper| !upper.is_empty() && !upper.starts_with(']'))
            {
                (high, after) = character(upper, text)?;
            }
            if high < low {
                let expression = &rest[..rest.len() - after.len()];
                return Err(Error::new("invalid character class range", expression));
            }
            push_range(low, high, &mut out);
            rest = after;
        }
    }
    out.push(']');
    Ok((out, unicode_classes, &rest[1..]))
}

/// `[:alpha:]` or `[:^alpha:]`; text that only starts like one is none.
fn named(text: &str) -> Result<Option<(String, &str)>, Error> {
    let Some(body) = text.strip_prefix("[:") else {
        return Ok(None);
    };
    let Some(end) = body.find(":]") else {
        return Ok(None);
    };
    let name = &body[..end];
    let class = &text[..end + 4];
    if !NAMED.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(Error::new("invalid character class range", class));
    }
    Ok(Some((class.to_owned(), &text[class.len()..])))
}

fn character<'t>(text: &'t str, class: &str) -> Result<(u32, &'t str), Error> {
    match text.chars().next() {
        None => Err(Error::new("missing closing ]", class)),
        Some('\\') => escape(text),
        Some(c) => Ok((c as u32, &text[c.len_utf8()..])),
    }
}

/// A range without the surrogates, which are no characters of any text.
fn push_range(low: u32, high: u32, out: &mut String) {
    const SURROGATES: std::ops::RangeInclusive<u32> = 0xd800..=0xdfff;
    let low = if SURROGATES.contains(&low) { SURROGATES.end() + 1 } else { low };
    let high = if SURROGATES.contains(&high) { SURROGATES.start() - 1 } else { high };
    if low <= high {
        out.push_str(&format!("\\x{{{low:X}}}-\\x{{{high:X}}}"));
    }
}
