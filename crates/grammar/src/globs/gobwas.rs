//! gobwas/glob 0.2: `*` up to a separator, `**` across them, `{a,b}`, and classes of characters or of one range.

use super::machine::{Builder, Class, Machine, Step};
use super::{Error, characters};

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    machine: Machine,
    /// Texts around the only wildcard.
    around: Option<(String, String)>,
}

impl Pattern {
    /// Compiles a pattern. Without separators `*` matches everything, as `**` does. Braces that are not closed end
    /// with the pattern.
    ///
    /// # Errors
    /// A class that is empty, has no end, mixes a range with more, or whose range goes down.
    pub fn new(pattern: &str, separators: &[char]) -> Result<Pattern, Error> {
        let fault = |why| Error::new(pattern, why);
        let text = characters(pattern)?;
        let mut builder = Builder::new();
        let mut at = 0;
        while let Some(char) = text.get(at).copied() {
            at += 1;
            match char {
                '*' if text.get(at) == Some(&'*') => {
                    at += 1;
                    builder.steps.push(Step::Everything);
                }
                '*' => builder.steps.push(Step::Star),
                '?' => builder.steps.push(Step::One),
                '[' => builder.steps.push(Step::Class(class(&text, &mut at).map_err(fault)?)),
                '{' => builder.open(),
                ',' if builder.is_open() => builder.next_branch(),
                '}' if builder.is_open() => builder.close(),
                '\\' => {
                    // A last backslash stands for nothing.
                    if let Some(escaped) = text.get(at) {
                        builder.steps.push(Step::Char(*escaped));
                        at += 1;
                    }
                }
                other => builder.steps.push(Step::Char(other)),
            }
        }
        let steps = builder.finish();
        let around = around_wildcard(&steps, separators);
        Ok(Pattern { machine: Machine::new(steps, separators), around })
    }

    /// Whether the pattern matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        // gobwas lets the texts around a lone wildcard overlap, so that in Argo CD `a/**/b` matches `a/b`.
        let overlaps = |(prefix, suffix): &(String, String)| {
            name.starts_with(prefix.as_str()) && name.ends_with(suffix.as_str())
        };
        self.around.as_ref().is_some_and(overlaps) || self.machine.matches(name)
    }
}

/// The texts before and after the wildcard of a pattern that has nothing else.
fn around_wildcard(steps: &[Step], separators: &[char]) -> Option<(String, String)> {
    let wild = |step: &Step| *step == Step::Everything || (*step == Step::Star && separators.is_empty());
    let at = steps.iter().position(wild)?;
    let text = |steps: &[Step]| -> Option<String> {
        steps.iter().map(|step| if let Step::Char(char) = step { Some(*char) } else { None }).collect()
    };
    let (_, after) = steps[at..].split_first()?;
    let (_, after) = after.split_last()?;
    Some((text(&steps[..at])?, text(after)?))
}

/// Reads a class after its `[`: one range, or characters among which `-` is nothing special.
fn class(text: &[char], at: &mut usize) -> Result<Class, &'static str> {
    const ENDLESS: &str = "a class has no end";
    let negated = text.get(*at) == Some(&'!');
    *at += usize::from(negated);
    let first = *text.get(*at).ok_or(ENDLESS)?;
    if text.get(*at + 1) == Some(&'-') {
        let last = *text.get(*at + 2).ok_or(ENDLESS)?;
        if last < first {
            return Err("a range goes down");
        }
        if text.get(*at + 3) != Some(&']') {
            return Err("a range is followed by more");
        }
        *at += 4;
        return Ok(Class { negated, ranges: vec![(first, last)] });
    }
    let mut ranges = Vec::new();
    loop {
        let mut char = *text.get(*at).ok_or(ENDLESS)?;
        *at += 1;
        if char == ']' {
            break;
        }
        if char == '\\' {
            char = *text.get(*at).ok_or(ENDLESS)?;
            *at += 1;
        }
        ranges.push((char, char));
    }
    if ranges.is_empty() {
        return Err("a class is empty");
    }
    Ok(Class { negated, ranges })
}
