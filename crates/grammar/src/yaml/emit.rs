//! YAML as go-yaml version 2 writes it: block style, folded at eighty columns, quoted where text would read as
//! something else.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::resolve;

/// Columns after which a blank becomes a line break.
const WIDTH: usize = 80;
const INDENT: usize = 2;
/// Longest key that stands before its colon on one line.
const LONGEST_SIMPLE_KEY: usize = 128;

/// The value as `sigs.k8s.io/yaml` prints it, with a line break at the end.
///
/// # Caveats
/// Takes stack for every level of nesting.
#[must_use]
pub fn to_string(value: &Value) -> String {
    let mut emitter = Emitter { out: String::new(), column: 0, indent: None, blank: true, indention: true };
    emitter.node(value, Place::Root);
    emitter.new_line();
    emitter.out
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Item,
    Value,
    Key,
    SimpleKey,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

struct Emitter {
    out: String,
    column: usize,
    /// None outside of everything.
    indent: Option<usize>,
    /// What was written last separates what follows.
    blank: bool,
    /// Nothing but indentation was written in this line.
    indention: bool,
}

impl Emitter {
    fn node(&mut self, value: &Value, place: Place) {
        match value {
            Value::Null => self.scalar("null", Style::Plain, place),
            Value::Bool(flag) => self.scalar(if *flag { "true" } else { "false" }, Style::Plain, place),
            Value::Number(number) => self.scalar(&number_text(number), Style::Plain, place),
            Value::String(text) => self.scalar(text, wanted_style(text), place),
            Value::Array(items) if items.is_empty() => self.indicator("[]", true, false),
            Value::Object(entries) if entries.is_empty() => self.indicator("{}", true, false),
            Value::Array(items) => self.sequence(items, place),
            Value::Object(entries) => self.mapping(entries),
        }
    }

    fn sequence(&mut self, items: &[Value], place: Place) {
        let outer = self.indent;
        // The items of a key's value stand right under the key.
        if place != Place::Value || self.indention {
            self.indent = Some(outer.map_or(0, |indent| indent + INDENT));
        }
        for item in items {
            self.new_line();
            self.indicator("-", true, true);
            self.node(item, Place::Item);
        }
        self.indent = outer;
    }

    fn mapping(&mut self, entries: &Map<String, Value>) {
        let outer = self.indent;
        self.indent = Some(outer.map_or(0, |indent| indent + INDENT));
        for (key, value) in sorted(entries.iter().collect()) {
            self.new_line();
            if key.len() <= LONGEST_SIMPLE_KEY && !key.chars().any(is_break) {
                self.scalar(key, wanted_style(key), Place::SimpleKey);
                self.indicator(":", false, false);
            } else {
                self.indicator("?", true, true);
                self.scalar(key, wanted_style(key), Place::Key);
                self.new_line();
                self.indicator(":", true, true);
            }
            self.node(value, Place::Value);
        }
        self.indent = outer;
    }

    fn scalar(&mut self, text: &str, wanted: Style, place: Place) {
        let outer = self.indent;
        self.indent = Some(outer.map_or(INDENT, |indent| indent + INDENT));
        let folds = place != Place::SimpleKey;
        match Shape::of(text).style(wanted) {
            Style::Plain => self.plain(text, folds),
            Style::Single => self.single_quoted(text, folds),
            Style::Double => self.double_quoted(text, folds),
            Style::Literal => self.literal(text),
        }
        self.indent = outer;
    }

    fn plain(&mut self, text: &str, folds: bool) {
        if !self.blank {
            self.put(' ');
        }
        let mut after_space = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ' ' && folds && !after_space && self.column > WIDTH && chars.peek() != Some(&' ') {
                self.new_line();
            } else {
                self.put(c);
                self.indention &= c == ' ';
            }
            after_space = c == ' ';
        }
        self.blank = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, folds: bool) {
        self.indicator("'", true, false);
        let mut after_space = false;
        let mut after_break = false;
        let mut chars = text.chars().enumerate().peekable();
        while let Some((index, c)) = chars.next() {
            if is_break(c) {
                self.put_break(c);
                self.indention = true;
                after_break = true;
                continue;
            }
            if c == ' ' {
                let may_break = index > 0 && chars.peek().is_some_and(|(_, next)| *next != ' ');
                if folds && !after_space && self.column > WIDTH && may_break {
                    self.new_line();
                } else {
                    self.put(c);
                }
                after_space = true;
                continue;
            }
            if after_break {
                self.new_line();
            }
            if c == '\'' {
                self.put('\'');
            }
            self.put(c);
            self.indention = false;
            after_space = false;
            after_break = false;
        }
        self.indicator("'", false, false);
    }

    fn double_quoted(&mut self, text: &str, folds: bool) {
        self.indicator("\"", true, false);
        // Go asks for a byte order mark at the start of the text, whichever character it is at.
        let all_escaped = text.starts_with('\u{feff}');
        let mut after_space = false;
        let mut chars = text.chars().enumerate().peekable();
        while let Some((index, c)) = chars.next() {
            if all_escaped || !is_printable(c) || is_break(c) || matches!(c, '"' | '\\') {
                self.escape(c);
                after_space = false;
            } else if c == ' '
                && folds
                && !after_space
                && self.column > WIDTH
                && index > 0
                && chars.peek().is_some()
            {
                self.new_line();
                if chars.peek().is_some_and(|(_, next)| *next == ' ') {
                    self.put('\\');
                }
                after_space = true;
            } else {
                self.put(c);
                after_space = c == ' ';
            }
        }
        self.indicator("\"", false, false);
    }

    fn escape(&mut self, c: char) {
        let short = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            c => {
                let code = c as u32;
                let before = self.out.len();
                match code {
                    0..=0xff => write!(self.out, "\\x{code:02X}"),
                    0x100..=0xffff => write!(self.out, "\\u{code:04X}"),
                    _ => write!(self.out, "\\U{code:08X}"),
                }
                .unwrap_or_default();
                self.column += self.out.len() - before;
                return;
            }
        };
        self.put('\\');
        self.put(short);
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.indicator("2", false, false);
        }
        let mut last = text.chars().rev();
        match (last.next().is_some_and(is_break), last.next().is_none_or(is_break)) {
            (false, _) => self.indicator("-", false, false),
            (true, true) => self.indicator("+", false, false),
            (true, false) => {}
        }
        self.put_break('\n');
        self.indention = true;
        self.blank = true;
        let mut after_break = true;
        for c in text.chars() {
            if is_break(c) {
                self.put_break(c);
                self.indention = true;
                after_break = true;
                continue;
            }
            if after_break {
                self.new_line();
            }
            self.put(c);
            self.indention = false;
            after_break = false;
        }
    }

    /// Goes to where a line of the current depth starts, if it is not there.
    fn new_line(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.blank) {
            self.put_break('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.blank = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, apart: bool, keeps_indention: bool) {
        if apart && !self.blank {
            self.put(' ');
        }
        self.out.push_str(text);
        self.column += text.len();
        self.blank = false;
        self.indention &= keeps_indention;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }
}

/// What a text allows.
struct Shape {
    plain: bool,
    single: bool,
    literal: bool,
}

impl Shape {
    fn of(text: &str) -> Shape {
        let is_space = |c: char| c == ' ';
        let spaced_ends = text.starts_with(is_space) || text.ends_with(is_space);
        let special = text.chars().any(|c| !is_printable(c));
        let pairs = || text.chars().zip(text.chars().skip(1));
        let break_then_space = pairs().any(|(first, second)| is_break(first) && second == ' ');
        let space_then_break = pairs().any(|(first, second)| first == ' ' && is_break(second));
        let breaks = text.chars().any(is_break);
        let awkward = special || space_then_break;
        Shape {
            plain: !(spaced_ends || breaks || awkward || has_indicators(text)),
            single: !(awkward || break_then_space),
            literal: !(awkward || text.ends_with(is_space)),
        }
    }

    fn style(&self, wanted: Style) -> Style {
        match wanted {
            Style::Plain if self.plain => Style::Plain,
            Style::Plain if self.single => Style::Single,
            Style::Literal if self.literal => Style::Literal,
            _ => Style::Double,
        }
    }
}

/// Whether a plain text would be taken for syntax.
fn has_indicators(text: &str) -> bool {
    let blank = |c: char| matches!(c, ' ' | '\t');
    let ends_or_blank = |rest: &str| rest.is_empty() || rest.starts_with(blank);
    let Some(first) = text.chars().next() else {
        return false;
    };
    let after_first = &text[first.len_utf8()..];
    let starts_as_syntax = match first {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
            true
        }
        '?' | ':' | '-' => ends_or_blank(after_first),
        _ => false,
    };
    let colon = || text.char_indices().skip(1).any(|(at, c)| c == ':' && ends_or_blank(&text[at + 1..]));
    let comment = || {
        let pairs = text.chars().zip(text.chars().skip(1));
        pairs.into_iter().any(|(before, c)| c == '#' && (blank(before) || is_break(before) || before == '\0'))
    };
    starts_as_syntax || text.starts_with("---") || text.starts_with("...") || colon() || comment()
}

fn wanted_style(text: &str) -> Style {
    if text.contains('\n') {
        Style::Literal
    } else if resolve::is_plain_text(text) {
        Style::Plain
    } else {
        Style::Double
    }
}

/// A number as Go has it after a trip through JSON: whole ones are integers while they fit.
fn number_text(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    let value = number.as_f64().unwrap_or(0.0);
    // JSON has the fewest digits that read back the same, zeros after them.
    let digits = value.to_string();
    if digits == "-0" {
        return "0".to_owned();
    }
    if digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok() {
        return digits;
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return digits;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// The entries in go-yaml's order of keys, numbers inside texts by their value. That is no total order, which rules
/// the standard library's sorting out.
fn sorted<T: Clone>(entries: Vec<(&String, T)>) -> Vec<(&String, T)> {
    if entries.len() < 2 {
        return entries;
    }
    let mut left = entries;
    let right = left.split_off(left.len() / 2);
    let (left, right) = (sorted(left), sorted(right));
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some((first, _)), Some((second, _))) = (left.peek(), right.peek()) {
        let next = if compared(first, second) == Ordering::Greater { right.next() } else { left.next() };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

fn compared(left: &str, right: &str) -> Ordering {
    let pairs = left.char_indices().zip(right.chars());
    let Some(((at, first), second)) = pairs.into_iter().find(|((_, left), right)| left != right) else {
        return left.len().cmp(&right.len());
    };
    match (is_letter(first), is_letter(second)) {
        (true, true) => return first.cmp(&second),
        (false, true) => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (false, false) => {}
    }
    // Zeros after other digits count; zeros in front do not.
    let inside = (first == '0' || second == '0')
        && left[..at].chars().rev().take_while(|c| is_digit(*c)).any(|c| c != '0');
    let (left_number, left_length) = number_at(&left[at..], inside);
    let (right_number, right_length) = number_at(&right[at..], inside);
    left_number.cmp(&right_number).then(left_length.cmp(&right_length)).then(first.cmp(&second))
}

fn number_at(text: &str, inside: bool) -> (i64, usize) {
    let digits = text.chars().take_while(|c| is_digit(*c));
    digits.fold((i64::from(inside), 0), |(number, length), digit| {
        let value = i64::from(digit as u32) - i64::from(b'0');
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}

fn is_letter(c: char) -> bool {
    static LETTER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{L}$").expect("the expression is a constant that compiles"));
    if c.is_ascii() { c.is_ascii_alphabetic() } else { LETTER.is_match(c.encode_utf8(&mut [0; 4])) }
}

fn is_digit(c: char) -> bool {
    static DIGIT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{Nd}$").expect("the expression is a constant that compiles"));
    if c.is_ascii() { c.is_ascii_digit() } else { DIGIT.is_match(c.encode_utf8(&mut [0; 4])) }
}
