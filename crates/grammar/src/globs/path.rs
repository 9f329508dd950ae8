//! Go's `path.Match`: `*`, `?`, classes with `^`, and `\`; nothing crosses a `/` but a class.

use super::machine::{Class, Machine, Step};
use super::{Error, characters};

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Machine);

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// A class that is empty or has no end, a range without one of its ends, a `\` at the end.
    pub fn new(pattern: &str) -> Result<Pattern, Error> {
        let fault = |why| Error::new(pattern, why);
        let text = characters(pattern)?;
        let mut steps = Vec::new();
        let mut at = 0;
        while let Some(char) = text.get(at).copied() {
            at += 1;
            steps.push(match char {
                '*' => Step::Star,
                '?' => Step::One,
                '[' => Step::Class(class(&text, &mut at).map_err(fault)?),
                '\\' => {
                    let escaped =
                        text.get(at).copied().ok_or_else(|| fault("nothing follows the last \\"))?;
                    at += 1;
                    Step::Char(escaped)
                }
                other => Step::Char(other),
            });
        }
        steps.push(Step::End);
        Ok(Pattern(Machine::new(steps, &['/'])))
    }

    /// Whether the pattern matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }
}

/// Reads a class after its `[`.
fn class(text: &[char], at: &mut usize) -> Result<Class, &'static str> {
    let negated = text.get(*at) == Some(&'^');
    *at += usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        if text.get(*at) == Some(&']') && !ranges.is_empty() {
            *at += 1;
            return Ok(Class { negated, ranges });
        }
        let low = member(text, at)?;
        let mut high = low;
        if text.get(*at) == Some(&'-') {
            *at += 1;
            high = member(text, at)?;
        }
        ranges.push((low, high));
    }
}

fn member(text: &[char], at: &mut usize) -> Result<char, &'static str> {
    const ENDLESS: &str = "a class has no end";
    let mut char = *text.get(*at).ok_or(ENDLESS)?;
    if matches!(char, '-' | ']') {
        return Err("a class is empty, or a range lacks an end");
    }
    *at += 1;
    if char == '\\' {
        char = *text.get(*at).ok_or(ENDLESS)?;
        *at += 1;
    }
    Ok(char)
}
