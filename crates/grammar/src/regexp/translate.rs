//! Go's syntax written in the `regex` crate's.

use std::ops::Range;

use super::{Error, classes};

/// Groups inside each other.
pub(super) const MAX_DEPTH: usize = 100;

/// The largest repeat count, nested ones multiplied.
const MAX_REPEAT: u32 = 1000;

/// An expression in the syntax of the `regex` crate.
pub(super) struct Translation<'t> {
    pub(super) pattern: String,
    /// The names of the groups, the whole match first.
    pub(super) names: Vec<Option<String>>,
    /// Unicode classes as they were written; whether they exist is not known yet.
    pub(super) unicode_classes: Vec<&'t str>,
    pub(super) measure: Measure,
}

/// What an expression takes, its parts counted as often as they are repeated.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measure {
    /// How many parts there are: each may have to be tried at every character of a text.
    pub(super) size: u64,
    /// What compiling takes, in microseconds or so.
    pub(super) cost: u64,
}

impl Measure {
    const LITERAL: Measure = Measure { size: 1, cost: 1 };
    /// A class of characters, which is many sequences of bytes.
    const CLASS: Measure = Measure { size: 1, cost: 8 };
    const UNICODE_CLASS: Measure = Measure { size: 2, cost: 500 };

    fn plus(self, other: Measure) -> Measure {
        Measure { size: self.size.saturating_add(other.size), cost: self.cost.saturating_add(other.cost) }
    }

    fn times(self, count: u64) -> Measure {
        Measure { size: self.size.saturating_mul(count), cost: self.cost.saturating_mul(count) }
    }

    fn minus(self, other: Measure) -> Measure {
        Measure { size: self.size.saturating_sub(other.size), cost: self.cost.saturating_sub(other.cost) }
    }
}

pub(super) fn translate(text: &str) -> Result<Translation<'_>, Error> {
    let mut translator = Translator {
        whole: text,
        rest: text,
        out: Translation {
            pattern: String::new(),
            names: vec![None],
            unicode_classes: Vec::new(),
            measure: Measure::default(),
        },
        open: Vec::new(),
        operand: None,
        operand_measure: Measure::default(),
        operand_at: 0..0,
        start: 0,
        ungreedy: false,
        operand_ungreedy: false,
        heaviest: 1,
        repeat: None,
    };
    while !translator.rest.is_empty() {
        translator.next()?;
    }
    if !translator.open.is_empty() {
        return Err(Error::new("missing closing )", text));
    }
    Ok(translator.out)
}

/// A character written with a backslash, and the text after it.
pub(super) fn escape(text: &str) -> Result<(u32, &str), Error> {
    let mut rest = text[1..].chars();
    let Some(c) = rest.next() else {
        return Err(Error::new("trailing backslash at end of expression", ""));
    };
    let code = match c {
        '0'..='7' => octal(c, &mut rest),
        'x' => hexadecimal(&mut rest),
        'a' => Some(7),
        'f' => Some(12),
        'n' => Some(10),
        'r' => Some(13),
        't' => Some(9),
        'v' => Some(11),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c as u32),
        _ => None,
    };
    match code {
        Some(code) => Ok((code, rest.as_str())),
        None => Err(Error::new("invalid escape sequence", &text[..text.len() - rest.as_str().len()])),
    }
}

/// Up to three digits; a single one that is not zero would be a reference to a group, of which there are none.
fn octal(first: char, rest: &mut std::str::Chars<'_>) -> Option<u32> {
    let mut code = first.to_digit(8)?;
    let mut digits = 1;
    while let Some(digit) = rest.as_str().chars().next().and_then(|c| c.to_digit(8)).filter(|_| digits < 3) {
        code = code * 8 + digit;
        digits += 1;
        rest.next();
    }
    (first == '0' || digits > 1).then_some(code)
}

fn hexadecimal(rest: &mut std::str::Chars<'_>) -> Option<u32> {
    let first = rest.next()?;
    if first != '{' {
        let second = rest.next()?;
        return Some(first.to_digit(16)? * 16 + second.to_digit(16)?);
    }
    let mut code: Option<u32> = None;
    loop {
        match rest.next()? {
            '}' => return code,
            c => {
                let next = code.unwrap_or(0) * 16 + c.to_digit(16)?;
                code = Some(next).filter(|code| *code <= char::MAX as u32);
                code?;
            }
        }
    }
}

/// What is known outside an open group.
struct Outer {
    /// The heaviest operand at that level so far.
    heaviest: u32,
    /// The measure of all before the group.
    measure: Measure,
    /// Where the group starts in what is written.
    start: usize,
    ungreedy: bool,
}

struct Translator<'t> {
    whole: &'t str,
    rest: &'t str,
    out: Translation<'t>,
    open: Vec<Outer>,
    /// What a repetition would apply to, by how often its parts are repeated already.
    operand: Option<u32>,
    operand_measure: Measure,
    /// Where the operand is in what is written: flags may be set between it and its repetition.
    operand_at: Range<usize>,
    /// Where the part being read starts in what is written.
    start: usize,
    /// Whether repetitions prefer the shortest match, now and where the operand is.
    ungreedy: bool,
    operand_ungreedy: bool,
    heaviest: u32,
    /// Where the repetition just read starts.
    repeat: Option<&'t str>,
}

impl<'t> Translator<'t> {
    fn next(&mut self) -> Result<(), Error> {
        let before = self.rest;
        let Some(c) = before.chars().next() else {
            return Ok(());
        };
        let last_repeat = self.repeat.take();
        self.start = self.out.pattern.len();
        self.rest = &before[c.len_utf8()..];
        match c {
            '(' if self.rest.starts_with('?') => return self.flags_or_group(before),
            '(' => return self.open_group("(", Some(None)),
            '|' => {
                self.out.pattern.push('|');
                self.operand = None;
            }
            ')' => return self.close_group(),
            '*' | '+' | '?' => return self.repeat(before, last_repeat, 1),
            '{' => return self.counted(before, last_repeat),
            '^' | '$' | '.' => {
                self.out.pattern.push(c);
                self.operand(Measure::CLASS);
            }
            '[' => {
                let (class, unicode, rest) = classes::bracketed(before)?;
                self.out.pattern.push_str(&class);
                self.operand(Measure::CLASS.plus(Measure::UNICODE_CLASS.times(unicode.len() as u64)));
                self.out.unicode_classes.extend(unicode);
                self.rest = rest;
            }
            '\\' => return self.backslash(before),
            c => self.literal(c as u32),
        }
        Ok(())
    }

    fn operand(&mut self, measure: Measure) {
        self.operand = Some(1);
        self.operand_measure = measure;
        self.out.measure = self.out.measure.plus(measure);
        self.operand_at = self.start..self.out.pattern.len();
        self.operand_ungreedy = self.ungreedy;
    }

    fn literal(&mut self, code: u32) {
        self.start = self.out.pattern.len();
        match char::from_u32(code) {
            Some(c) => self.out.pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            // Half of a surrogate pair is in no text.
            None => self.out.pattern.push_str("[^\\x{0}-\\x{10FFFF}]"),
        }
        self.operand(Measure::LITERAL);
    }

    fn backslash(&mut self, before: &'t str) -> Result<(), Error> {
        let assertion = match before.as_bytes().get(1) {
            Some(b'A') => Some("\\A"),
            Some(b'z') => Some("\\z"),
            Some(b'b') => Some("(?-u:\\b)"),
            Some(b'B') => Some("(?-u:\\B)"),
            Some(b'C') => return Err(Error::new("invalid escape sequence", &before[..2])),
            Some(b'Q') => {
                let (literal, rest) = before[2..].split_once("\\E").unwrap_or((&before[2..], ""));
                literal.chars().for_each(|c| self.literal(c as u32));
                self.rest = rest;
                return Ok(());
            }
            _ => None,
        };
        if let Some(assertion) = assertion {
            self.out.pattern.push_str(assertion);
            self.operand(Measure::LITERAL);
            self.rest = &before[2..];
        } else if let Some((class, rest)) = classes::unicode(before)? {
            self.out.unicode_classes.push(&before[..before.len() - rest.len()]);
            self.out.pattern.push_str(&class);
            self.operand(Measure::UNICODE_CLASS);
            self.rest = rest;
        } else if let Some((class, rest)) = classes::perl(before) {
            self.out.pattern.push_str(&class);
            self.operand(Measure::CLASS);
            self.rest = rest;
        } else {
            let (code, rest) = escape(before)?;
            self.literal(code);
            self.rest = rest;
        }
        Ok(())
    }

    fn open_group(&mut self, opening: &str, name: Option<Option<String>>) -> Result<(), Error> {
        if self.open.len() == MAX_DEPTH {
            return Err(Error::new("expression nests too deeply", self.whole));
        }
        let (heaviest, measure, ungreedy) = (self.heaviest, self.out.measure, self.ungreedy);
        self.open.push(Outer { heaviest, measure, start: self.start, ungreedy });
        self.out.pattern.push_str(opening);
        self.out.names.extend(name);
        self.heaviest = 1;
        self.operand = None;
        Ok(())
    }

    fn close_group(&mut self) -> Result<(), Error> {
        let Some(outer) = self.open.pop() else {
            return Err(Error::new("unexpected )", self.whole));
        };
        self.out.pattern.push(')');
        self.operand = Some(self.heaviest);
        self.operand_measure = self.out.measure.minus(outer.measure);
        self.operand_at = outer.start..self.out.pattern.len();
        self.heaviest = self.heaviest.max(outer.heaviest);
        self.ungreedy = outer.ungreedy;
        self.operand_ungreedy = outer.ungreedy;
        Ok(())
    }

    /// `(?P<name>…`, `(?<name>…`, `(?i-s:…` or `(?i)`. Groups are numbered only: the `regex` crate knows fewer names.
    fn flags_or_group(&mut self, before: &'t str) -> Result<(), Error> {
        for opening in ["(?P<", "(?<"] {
            let Some(body) = before.strip_prefix(opening).filter(|body| !body.is_empty()) else { continue };
            let end = body.find('>').ok_or_else(|| Error::new("invalid named capture", before))?;
            let name = &body[..end];
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(Error::new("invalid named capture", &before[..opening.len() + end + 1]));
            }
            self.rest = &body[end + 1..];
            return self.open_group("(", Some(Some(name.to_owned())));
        }
        let mut flags = String::new();
        let mut sure = true;
        let mut negated = false;
        let mut rest = before[2..].chars();
        for c in rest.by_ref() {
            match c {
                'i' | 'm' | 's' | 'U' => {
                    flags.push(c);
                    sure = true;
                }
                '-' if !negated => {
                    flags.push(c);
                    negated = true;
                    sure = false;
                }
                ')' | ':' if sure => {
                    self.rest = rest.as_str();
                    let (on, off) = flags.split_once('-').unwrap_or((&flags, ""));
                    let ungreedy = (self.ungreedy || on.contains('U')) && !off.contains('U');
                    if c == ':' {
                        self.open_group(&format!("(?{flags}:"), None)?;
                    } else if !flags.is_empty() {
                        self.out.pattern.push_str(&format!("(?{flags})"));
                    }
                    self.ungreedy = ungreedy;
                    return Ok(());
                }
                _ => break,
            }
        }
        let read = &before[..before.len() - rest.as_str().len()];
        Err(Error::new("invalid or unsupported Perl syntax", read))
    }

    fn counted(&mut self, before: &'t str, last_repeat: Option<&'t str>) -> Result<(), Error> {
        let Some((least, most, rest)) = counts(&before[1..]) else {
            self.literal('{' as u32);
            return Ok(());
        };
        let most = most.unwrap_or(least);
        if least > most || most > MAX_REPEAT {
            return Err(Error::new("invalid repeat count", &before[..before.len() - rest.len()]));
        }
        self.rest = rest;
        self.repeat(before, last_repeat, most.max(1))
    }

    /// A repetition: `self.rest` is after the operator.
    fn repeat(&mut self, before: &'t str, last_repeat: Option<&'t str>, times: u32) -> Result<(), Error> {
        self.rest = self.rest.strip_prefix('?').unwrap_or(self.rest);
        let operator = &before[..before.len() - self.rest.len()];
        if let Some(last) = last_repeat {
            let operators = &last[..last.len() - self.rest.len()];
            return Err(Error::new("invalid nested repetition operator", operators));
        }
        let Some(weight) = self.operand else {
            return Err(Error::new("missing argument to repetition operator", operator));
        };
        let weight = weight.saturating_mul(times);
        if weight > MAX_REPEAT {
            return Err(Error::new("invalid repeat count", operator));
        }
        self.push_repetition(operator);
        self.operand = Some(weight);
        self.heaviest = self.heaviest.max(weight);
        let repeated = self.operand_measure.times(times.into());
        self.out.measure = self.out.measure.plus(repeated.minus(self.operand_measure));
        self.operand_measure = repeated;
        self.repeat = Some(before);
        Ok(())
    }

    /// Writes a repetition after its operand, which flags may have been set after.
    fn push_repetition(&mut self, operator: &str) {
        let Range { start, end } = self.operand_at.clone();
        if end == self.out.pattern.len() {
            self.out.pattern.push_str(operator);
            self.operand_at.end = self.out.pattern.len();
            return;
        }
        let flags = self.out.pattern.split_off(end);
        let operand = self.out.pattern.split_off(start);
        // Flags that change what is preferred do so for the repetition, but are written after it.
        let operator = match (operator.strip_suffix('?').filter(|rest| !rest.is_empty()), self.ungreedy) {
            (_, ungreedy) if ungreedy == self.operand_ungreedy => operator.to_owned(),
            (Some(plain), _) => plain.to_owned(),
            (None, _) => format!("{operator}?"),
        };
        self.out.pattern.push_str(&format!("(?:{operand}){operator}"));
        self.operand_at = start..self.out.pattern.len();
        self.out.pattern.push_str(&flags);
    }
}

/// The `2,3}` of a count: the least, and the most if both a bound and another number.
fn counts(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (least, rest) = count(text)?;
    if let Some(rest) = rest.strip_prefix('}').or_else(|| rest.strip_prefix(",}")) {
        return Some((least, None, rest));
    }
    let (most, rest) = count(rest.strip_prefix(',')?)?;
    Some((least, Some(most), rest.strip_prefix('}')?))
}

/// A number without leading zeros; one too large to be one is as good as the largest.
fn count(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
