//! Letters as Go tells and changes them: one character for one.

use std::sync::LazyLock;

use regex::Regex;

/// The upper case of a letter where that is one character; Go leaves others as they are, but for Greek ones with an
/// iota below, which it keeps there.
pub(super) fn upper(c: char) -> char {
    if matches!(c, '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}') {
        return char::from_u32(c as u32 + 8).unwrap_or(c);
    }
    if matches!(c, '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}') {
        return char::from_u32(c as u32 + 9).unwrap_or(c);
    }
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

/// The form of a letter a title starts with: of the digraphs that are one letter, only the first half is upper case.
pub(super) fn title(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        c => upper(c),
    }
}

/// The lower case of a letter; its first character where that is more than one, as for the dotted capital I.
pub(super) fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Every letter in upper case.
pub(super) fn upper_case(text: &str) -> String {
    text.chars().map(upper).collect()
}

/// Every letter in lower case.
pub(super) fn lower_case(text: &str) -> String {
    text.chars().map(lower).collect()
}

/// Punctuation, which `$`, `+`, `<`, `=`, `>`, `^`, `` ` ``, `|` and `~` are not.
pub(super) fn is_punctuation(c: char) -> bool {
    static PUNCTUATION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{P}").expect("the expression is well-formed"));
    if c.is_ascii() {
        return c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c);
    }
    PUNCTUATION.is_match(c.encode_utf8(&mut [0; 4]))
}
