//! doublestar version 4: `path.Match` with `**` for whole directories, `{a,b}` and classes with `!`.

use super::machine::{Builder, Class, Machine, Step};
use super::{Error, characters};

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Machine);

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// A class that is empty or has no end, braces that do not pair, a `\` at the end. Go reports some of these only
    /// for names that lead to them.
    pub fn new(pattern: &str) -> Result<Pattern, Error> {
        let fault = |why| Error::new(pattern, why);
        let text = characters(pattern)?;
        let mut builder = Builder::new();
        let mut at = 0;
        while let Some(char) = text.get(at).copied() {
            at += 1;
            match char {
                '*' if text.get(at) == Some(&'*') => {
                    at += 1;
                    builder.steps.push(Step::Segments);
                }
                '*' => builder.steps.push(Step::Star),
                '?' => builder.steps.push(Step::One),
                '/' => builder.steps.push(Step::Slash),
                '[' => builder.steps.push(Step::Class(class(&text, &mut at).map_err(fault)?)),
                '{' => builder.open(),
                ',' if builder.is_open() => builder.next_branch(),
                '}' if builder.is_open() => builder.close(),
                '}' => return Err(fault("a } closes nothing")),
                '\\' => {
                    let escaped =
                        text.get(at).copied().ok_or_else(|| fault("nothing follows the last \\"))?;
                    at += 1;
                    builder.steps.push(Step::Char(escaped));
                }
                other => builder.steps.push(Step::Char(other)),
            }
        }
        if builder.is_open() {
            return Err(fault("a { is not closed"));
        }
        Ok(Pattern(Machine::with_directories(builder.finish())))
    }

    /// Whether the pattern matches the whole name. `a/**` matches `a` too.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }
}

/// Reads a class after its `[`.
fn class(text: &[char], at: &mut usize) -> Result<Class, &'static str> {
    const ENDLESS: &str = "a class has no end";
    let negated = matches!(text.get(*at), Some('!' | '^'));
    *at += usize::from(negated);
    if text.get(*at) == Some(&']') {
        return Err("a class is empty");
    }
    let mut ranges = Vec::new();
    let mut low = None;
    loop {
        let mut char = *text.get(*at).ok_or(ENDLESS)?;
        *at += 1;
        if char == ']' {
            return Ok(Class { negated, ranges });
        }
        let in_range = char == '-' && text.get(*at) != Some(&']');
        if let (Some(low), true) = (low.take(), in_range) {
            let mut high = *text.get(*at).ok_or(ENDLESS)?;
            *at += 1;
            if high == '\\' {
                high = *text.get(*at).ok_or(ENDLESS)?;
                *at += 1;
            }
            ranges.push((low, high));
            continue;
        }
        if char == '\\' {
            char = *text.get(*at).ok_or(ENDLESS)?;
            *at += 1;
        }
        ranges.push((char, char));
        low = Some(char);
    }
}
