//! Words: their case, their first letters, and lines made of them.

use super::letters::{is_punctuation, lower, upper};
use super::{MAX_TEXT, Outcome, bytes, fixed, int_of, metered, str_of};
use crate::function::Function;
use crate::function::Param::{Int, Str};

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("camelcase", &[Str], |args| Ok(pascal(str_of(&args[0])).into())),
    metered("snakecase", &[Str], None, |context, args| {
        context.budget.values(str_of(&args[0]).len() / 8)?;
        Ok(separated(str_of(&args[0]), '_').into())
    }),
    metered("kebabcase", &[Str], None, |context, args| {
        context.budget.values(str_of(&args[0]).len() / 8)?;
        Ok(separated(str_of(&args[0]), '-').into())
    }),
    fixed("swapcase", &[Str], |args| Ok(swapped(str_of(&args[0])).into())),
    fixed("untitle", &[Str], |args| Ok(untitled(str_of(&args[0])).into())),
    fixed("initials", &[Str], |args| Ok(initials(str_of(&args[0])).into())),
    fixed("plural", &[Str, Str, Int], |args| Ok(args[if int_of(&args[2]) == 1 { 0 } else { 1 }].clone())),
    fixed("abbrev", &[Int, Str], |args| Ok(abbreviated(0, int_of(&args[0]), str_of(&args[1])).into())),
    fixed("abbrevboth", &[Int, Int, Str], |args| {
        let (left, right) = (int_of(&args[0]), int_of(&args[1]));
        if left > 0 && right < 7 {
            return Ok(args[2].clone());
        }
        Ok(abbreviated(left, right, str_of(&args[2])).into())
    }),
    fixed("wrap", &[Int, Str], |args| wrapped(int_of(&args[0]), "\n", false, str_of(&args[1]))),
    fixed("wrapWith", &[Int, Str, Str], |args| {
        let separator = Some(str_of(&args[1])).filter(|separator| !separator.is_empty());
        wrapped(int_of(&args[0]), separator.unwrap_or("\n"), true, str_of(&args[2]))
    }),
    fixed("hello", &[], |_| Ok("Hello!".into())),
];

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

/// Words run together, each with a capital. Of the connectors between two words one is dropped; those at the ends
/// stay.
fn pascal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let words = text.trim_start_matches(is_connector);
    let leading = &text[..text.len() - words.len()];
    out.push_str(leading);
    if words.is_empty() {
        // The last one twice: a slip of the library sprig calls, kept because names depend on it.
        out.extend(leading.chars().last());
        return out;
    }
    let mut gap = String::new();
    let mut starts = true;
    let mut shouting = false;
    for c in words.chars() {
        if is_connector(c) {
            gap.push(c);
            shouting = false;
        } else if starts || !gap.is_empty() {
            gap.pop();
            out.push_str(&gap);
            gap.clear();
            shouting = c.is_uppercase();
            out.push(upper(c));
        } else {
            shouting = shouting && c.is_uppercase();
            out.push(if shouting { lower(c) } else { c });
        }
        starts = false;
    }
    out + &gap
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A capital with the small letters after it, or capitals only.
    Capital,
    Small,
    Number,
    Connector,
    Punctuation,
    Other,
}

impl Kind {
    fn of(c: char) -> Kind {
        match c {
            c if is_connector(c) => Kind::Connector,
            c if is_punctuation(c) => Kind::Punctuation,
            c if c.is_uppercase() => Kind::Capital,
            c if is_letter(c) => Kind::Small,
            c if c.is_numeric() => Kind::Number,
            _ => Kind::Other,
        }
    }

    fn is_word(self) -> bool {
        !matches!(self, Kind::Connector | Kind::Punctuation)
    }
}

/// Chinese characters are no letters here.
fn is_letter(c: char) -> bool {
    let chinese = matches!(c, '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}');
    c.is_alphabetic() && !chinese
}

/// The words of a text and what is between them.
fn words(text: &str) -> Vec<(Kind, &str)> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = Kind::of(first);
        let run = |kind: Kind, text: &str| {
            let goes_on = |c: char| match kind {
                // Dashes and underscores too, once it has begun.
                Kind::Punctuation => is_punctuation(c),
                kind => Kind::of(c) == kind,
            };
            text.find(|c| !goes_on(c)).unwrap_or(text.len())
        };
        let mut end = run(kind, rest);
        if kind == Kind::Capital {
            let follows = rest[end..].chars().next().is_some_and(|c| Kind::of(c) == Kind::Small);
            let last = rest[..end].char_indices().next_back().map_or(0, |(last, _)| last);
            end = match (follows, last) {
                // "HTTPServer": the last capital is the next word's.
                (true, 1..) => last,
                (true, 0) => end + run(Kind::Small, &rest[end..]),
                (false, _) => end,
            };
        }
        words.push((kind, &rest[..end]));
        rest = &rest[end..];
    }
    words
}

/// Words in lower case with a connector between. A number belongs to the word before it, unless small letters follow
/// it: then these and any further numbers make a word with it.
fn separated(text: &str, connector: char) -> String {
    let words = words(text);
    let kind = |index: usize| words.get(index).map(|(kind, _)| *kind);
    let mut out = String::with_capacity(text.len() + words.len());
    let mut index = 0;
    while let Some((this, word)) = words.get(index) {
        push_lower(&mut out, *this, word, connector);
        index += 1;
        match this {
            Kind::Connector | Kind::Punctuation => continue,
            Kind::Number => {
                while let Some((kind @ (Kind::Small | Kind::Number), word)) = words.get(index) {
                    push_lower(&mut out, *kind, word, connector);
                    index += 1;
                }
            }
            _ => match (kind(index), kind(index + 1)) {
                (Some(Kind::Number), None) => continue,
                (Some(Kind::Number), Some(after)) if after != Kind::Small => {
                    out.push_str(words[index].1);
                    index += 1;
                }
                _ => {}
            },
        }
        if kind(index).is_some_and(Kind::is_word) {
            out.push(connector);
        }
    }
    out
}

fn push_lower(out: &mut String, kind: Kind, word: &str, connector: char) {
    match kind {
        Kind::Capital => out.extend(word.chars().map(lower)),
        Kind::Connector => out.extend(word.chars().map(|_| connector)),
        _ => out.push_str(word),
    }
}

fn swapped(text: &str) -> String {
    text.chars().map(|c| if c.is_lowercase() { upper(c) } else { lower(c) }).collect()
}

/// Every word's first letter in lower case.
fn untitled(text: &str) -> String {
    let mut starts = true;
    let change = |c: char| {
        let changed = if starts && !c.is_whitespace() { lower(c) } else { c };
        starts = c.is_whitespace();
        changed
    };
    text.chars().map(change).collect()
}

fn initials(text: &str) -> String {
    text.split_whitespace().filter_map(|word| word.chars().next()).collect()
}

/// The text in `width` bytes, three of them dots where something is left out; from `offset` on if that is not near
/// the start.
fn abbreviated(offset: i64, width: i64, text: &str) -> String {
    let Some(width) = usize::try_from(width).ok().filter(|width| *width >= 4) else {
        return text.to_owned();
    };
    if text.len() <= width {
        return text.to_owned();
    }
    let kept = width - 3;
    let offset = usize::try_from(offset).unwrap_or(0).min(text.len() - kept);
    if offset <= 4 {
        return format!("{}...", bytes(text, 0, kept));
    }
    if offset + kept < text.len() {
        let rest = bytes(text, offset, text.len()).to_string();
        // Too narrow for dots at both ends, where the library says an error that sprig drops.
        let rest = if kept < 4 { String::new() } else { abbreviated(0, kept as i64, &rest) };
        return format!("...{rest}");
    }
    format!("...{}", bytes(text, text.len() - kept, text.len()))
}

/// Lines of at most `width` bytes. A longer word has a line of its own, or is cut.
fn wrapped(width: i64, separator: &str, cuts: bool, text: &str) -> Outcome {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while rest.len() > width {
        if rest[0] == b' ' {
            rest = &rest[1..];
            continue;
        }
        let (end, next) = match rest[..=width].iter().rposition(|byte| *byte == b' ') {
            Some(blank) => (blank, blank + 1),
            None if cuts => (width, width),
            None => match rest[width..].iter().position(|byte| *byte == b' ') {
                Some(blank) => (width + blank, width + blank + 1),
                None => break,
            },
        };
        out.extend_from_slice(&rest[..end]);
        out.extend_from_slice(separator.as_bytes());
        rest = &rest[next..];
        if out.len() > MAX_TEXT {
            return Err(format!("result is longer than {MAX_TEXT} bytes"));
        }
    }
    out.extend_from_slice(rest);
    Ok(String::from_utf8_lossy(&out).into_owned().into())
}
