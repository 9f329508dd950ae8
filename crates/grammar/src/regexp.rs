//! Regular expressions as Go's `regexp` reads them, matched by the `regex` crate.
//!
//! Both match in linear time and prefer the same match; what differs is syntax (`\d` and `\b` are ASCII in Go, `x{,2}`
//! is text, `a**` an error, …), so expressions are read here and written anew. Names of Unicode classes are those of
//! the `regex` crate, which knows more of them.

mod classes;
mod expand;
mod translate;

use regex::bytes::{Regex, RegexBuilder};

/// What a compiled expression may take, in bytes. Go allows some more for repeated Unicode classes.
const MAX_SIZE: usize = 2 << 20;

/// What searching may remember, in bytes. A larger memory is slower to find out that it does not help.
const MAX_MEMORY: usize = 1 << 20;

/// Expressions of so many parts are searched for as fast as the text is read. With more, each part may have to be
/// tried at each byte, which takes so many times as long.
const FAST_SIZE: u64 = 8;
const SLOWNESS: u64 = 16;

/// A longer expression or replacement is refused.
const MAX_LENGTH: usize = 64 << 10;

/// Characters of an expression an error shows.
const MAX_SHOWN: usize = 256;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Regexp {
    // Over bytes, as only there a boundary between ASCII words can be asked for.
    regex: Regex,
    names: Vec<Option<String>>,
    /// Written with no character at all.
    is_empty: bool,
    size: u64,
}

/// Why a text is no regular expression, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {reason}: `{expression}`")]
pub struct Error {
    reason: &'static str,
    expression: String,
}

impl Error {
    fn new(reason: &'static str, expression: &str) -> Error {
        match expression.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => Error { reason, expression: format!("{}…", &expression[..end]) },
            None => Error { reason, expression: expression.to_owned() },
        }
    }
}

/// What may be done to find or replace every match. A search looks at each byte once, but there is a search for every
/// match, so all of them together may look at the text as often as it has bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Bytes that may be looked at still; those of large expressions count many times.
    pub bytes: u64,
    /// The longest result.
    pub longest: usize,
}

/// More work than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// A result would be longer than allowed.
    #[error("result is longer than {0} bytes")]
    Length(usize),
    /// The expression looks at the text too often.
    #[error("the expression takes too long")]
    Bytes,
}

impl Regexp {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When the expression is not one of Go's, or needs too much memory.
    pub fn parse(text: &str) -> Result<Regexp, Error> {
        let too_large = || Error::new("expression too large", text);
        if text.len() > MAX_LENGTH {
            return Err(too_large());
        }
        let translation = translate::translate(text)?;
        let compiled = RegexBuilder::new(&translation.pattern)
            .size_limit(MAX_SIZE)
            .dfa_size_limit(MAX_MEMORY)
            .nest_limit(translate::MAX_DEPTH as u32 * 5)
            .build();
        match compiled {
            Ok(regex) => {
                let is_empty = text.is_empty();
                Ok(Regexp { regex, names: translation.names, is_empty, size: translation.measure.size })
            }
            Err(regex::Error::CompiledTooBig(_)) => Err(too_large()),
            Err(_) => match classes::unknown(&translation.unicode_classes) {
                Some(class) => Err(Error::new("invalid character class range", class)),
                None => Err(too_large()),
            },
        }
    }

    /// Whether the text holds a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.find(text).is_some()
    }

    /// The leftmost match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.matches(text).next().map(|(start, end)| &text[start..end])
    }

    /// The groups of the leftmost match, the whole match first; `None` for a group that took no part.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<Option<&'t str>>> {
        let captures = self.captures_iter(text).next()?;
        Some(captures.iter().map(|group| group.map(|group| &text[group.range()])).collect())
    }

    /// The names of the groups, the whole match first.
    pub fn names(&self) -> impl Iterator<Item = Option<&str>> {
        self.names.iter().map(Option::as_deref)
    }

    /// The first `limit` matches that do not overlap.
    ///
    /// # Errors
    /// When this takes more work than allowed.
    pub fn find_all<'t>(
        &self,
        text: &'t str,
        limit: usize,
        work: &mut Work,
    ) -> Result<Vec<&'t str>, Exhausted> {
        let mut found = Vec::new();
        if limit > 0 {
            self.search(text.len(), work)?;
        }
        for (start, end) in self.matches(text).take(limit) {
            found.push(&text[start..end]);
            if found.len() < limit {
                self.search(text.len() - end, work)?;
            }
        }
        Ok(found)
    }

    /// The text with every match replaced, `$1`, `$name` and `${name}` in the template standing for groups.
    ///
    /// # Errors
    /// When this takes more work than allowed.
    pub fn replace_all(&self, text: &str, template: &str, work: &mut Work) -> Result<String, Exhausted> {
        if template.len() > MAX_LENGTH {
            return Err(Exhausted::Length(MAX_LENGTH));
        }
        let pieces = expand::pieces(template, &self.names);
        let longest = work.longest;
        self.replaced(text, work, |out, captures| {
            for piece in &pieces {
                match piece {
                    expand::Piece::Text(piece) => out.push_str(piece),
                    expand::Piece::Groups(groups) => {
                        let group = groups.iter().find_map(|group| captures.get(*group));
                        out.push_str(group.map_or("", |group| &text[group.range()]));
                    }
                }
                // A template of many groups outgrows any limit within one match.
                if out.len() > longest {
                    return;
                }
            }
        })
    }

    /// The text with every match replaced by another text as it stands.
    ///
    /// # Errors
    /// When this takes more work than allowed.
    pub fn replace_all_literal(
        &self,
        text: &str,
        replacement: &str,
        work: &mut Work,
    ) -> Result<String, Exhausted> {
        self.replaced(text, work, |out, _| out.push_str(replacement))
    }

    fn replaced(
        &self,
        text: &str,
        work: &mut Work,
        replace: impl Fn(&mut String, &regex::bytes::Captures<'_>),
    ) -> Result<String, Exhausted> {
        let fitting = |out: &str| match out.len() > work.longest {
            true => Err(Exhausted::Length(work.longest)),
            false => Ok(()),
        };
        let mut left = *work;
        let mut out = String::new();
        let mut copied = 0;
        self.search(text.len(), &mut left)?;
        for captures in self.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            out.push_str(&text[copied..whole.start()]);
            copied = whole.end();
            replace(&mut out, &captures);
            fitting(&out)?;
            self.search(text.len() - copied, &mut left)?;
        }
        out.push_str(&text[copied..]);
        fitting(&out)?;
        *work = left;
        Ok(out)
    }

    /// The texts between matches: at most `limit` of them, the last with all that is left.
    ///
    /// # Errors
    /// When this takes more work than allowed.
    pub fn split<'t>(&self, text: &'t str, limit: usize, work: &mut Work) -> Result<Vec<&'t str>, Exhausted> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        if text.is_empty() && !self.is_empty {
            return Ok(vec![""]);
        }
        let mut parts = Vec::new();
        let (mut begin, mut end) = (0, 0);
        self.search(text.len(), work)?;
        for (start, stop) in self.matches(text) {
            if parts.len() + 1 == limit {
                break;
            }
            end = start;
            // An empty match before the first character separates nothing.
            if stop != 0 {
                parts.push(&text[begin..end]);
            }
            begin = stop;
            self.search(text.len() - stop, work)?;
        }
        if end != text.len() {
            parts.push(&text[begin..]);
        }
        Ok(parts)
    }

    /// Takes a search of so many bytes off the work allowed.
    fn search(&self, bytes: usize, work: &mut Work) -> Result<(), Exhausted> {
        let slowness = if self.size <= FAST_SIZE { 1 } else { self.size.saturating_mul(SLOWNESS) };
        let cost = (bytes as u64).saturating_mul(slowness);
        work.bytes = work.bytes.checked_sub(cost).ok_or(Exhausted::Bytes)?;
        Ok(())
    }

    /// Where the matches are, on boundaries of characters.
    fn matches<'t>(&self, text: &'t str) -> impl Iterator<Item = (usize, usize)> + use<'t, '_> {
        let matches = self.regex.find_iter(text.as_bytes()).map(|found| (found.start(), found.end()));
        matches.filter(|(start, _)| text.is_char_boundary(*start))
    }

    fn captures_iter<'t>(
        &self,
        text: &'t str,
    ) -> impl Iterator<Item = regex::bytes::Captures<'t>> + use<'t, '_> {
        let starts_well = |captures: &regex::bytes::Captures<'_>| {
            captures.get(0).is_some_and(|whole| text.is_char_boundary(whole.start()))
        };
        self.regex.captures_iter(text.as_bytes()).filter(starts_well)
    }
}

/// About what it takes to compile an expression, in microseconds; at most some fifty thousand, as it ends when the
/// expression turns out to be too large.
///
/// # Errors
/// When the expression is not one of Go's.
pub fn compile_cost(text: &str) -> Result<u64, Error> {
    const MOST: u64 = 50_000;
    if text.len() > MAX_LENGTH {
        return Err(Error::new("expression too large", text));
    }
    Ok(translate::translate(text)?.measure.cost.min(MOST))
}

/// An expression that matches the text and nothing else.
pub fn quote_meta(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}
