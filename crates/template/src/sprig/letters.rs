//! Letters as Go tells and changes them: one character for one.

use std::sync::LazyLock;

use regex::Regex;

/// The upper case of a letter where that is one character; Go leaves others as they are.
pub(super) fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => c,
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
