//! Go's `Sprintf`: formats read, arguments chosen.

use std::fmt::Write;

use crate::budget::Budget;
use crate::value::Value;
use crate::verbs::{self, Spec};

/// Widths and precisions Go takes from arguments; a larger one is reported in the output. In a format it gives up
/// when it meets a further digit after one that large.
const MAX_WIDTH: usize = 1_000_000;

/// What is shown of a value in a message.
const MAX_SHOWN: usize = 1 << 20;

/// Formats as Go does, mistakes included: they show up in the text (`%!d(string=x)`).
///
/// # Errors
/// Output that costs more than is left.
pub(crate) fn format(format: &str, args: &[Value], budget: &mut Budget) -> Result<String, String> {
    let most = budget.limits().output;
    let mut printer = Printer { rest: format, args, next: 0, reordered: false, good_index: true };
    let mut out = String::new();
    while let Some(start) = printer.rest.find('%') {
        out.push_str(&printer.rest[..start]);
        printer.rest = &printer.rest[start + 1..];
        printer.directive(&mut out, most)?;
        if out.len() > most {
            return Err(format!("text is longer than {most} bytes"));
        }
    }
    out.push_str(printer.rest);
    printer.extra(&mut out, most)?;
    budget.bytes(out.len())?;
    Ok(out)
}

/// The value as `%s` prints it, for messages; `...` stands for what is beyond all reason.
pub(crate) fn as_text(value: &Value) -> String {
    let mut out = String::new();
    if verbs::argument(value, 's', Spec::default(), &mut out, MAX_SHOWN).is_err() {
        out.push_str("...");
    }
    out
}

struct Printer<'a> {
    /// The format after what was read.
    rest: &'a str,
    args: &'a [Value],
    /// The argument the next verb takes.
    next: usize,
    /// An index was given, so arguments left over are no mistake.
    reordered: bool,
    /// The index of this directive, if it has one, names an argument.
    good_index: bool,
}

impl Printer<'_> {
    /// What follows a `%`, its verb included.
    fn directive(&mut self, out: &mut String, most: usize) -> Result<(), String> {
        self.good_index = true;
        let mut spec = Spec::default();
        self.flags(&mut spec);
        let mut after_index = self.index();
        self.width(&mut spec, &mut after_index, out);
        if self.skip('.') {
            self.precision(&mut spec, &mut after_index, out);
        }
        if !after_index {
            self.index();
        }
        let Some(verb) = self.rest.chars().next() else {
            out.push_str("%!(NOVERB)");
            return Ok(());
        };
        self.rest = &self.rest[verb.len_utf8()..];
        let arg = self.args.get(self.next);
        match (verb, arg) {
            ('%', _) => out.push('%'),
            _ if !self.good_index => write!(out, "%!{verb}(BADINDEX)").unwrap_or_default(),
            (_, None) => write!(out, "%!{verb}(MISSING)").unwrap_or_default(),
            (_, Some(arg)) => {
                self.next += 1;
                verbs::argument(arg, verb, spec, out, most)?;
            }
        }
        Ok(())
    }

    fn flags(&mut self, spec: &mut Spec) {
        loop {
            match self.rest.bytes().next() {
                Some(b'+') => spec.plus = true,
                Some(b'-') => spec.minus = true,
                Some(b'#') => spec.sharp = true,
                Some(b' ') => spec.space = true,
                Some(b'0') => spec.zero = true,
                _ => return,
            }
            self.rest = &self.rest[1..];
        }
    }

    fn width(&mut self, spec: &mut Spec, after_index: &mut bool, out: &mut String) {
        if !self.skip('*') {
            spec.width = self.number();
            // An index belongs right before its verb.
            self.good_index &= !(*after_index && spec.width.is_some());
            return;
        }
        *after_index = false;
        match self.argument_as_number() {
            Some(width) => {
                spec.minus |= width < 0;
                spec.zero &= width >= 0;
                spec.width = Some(width.unsigned_abs() as usize);
            }
            None => out.push_str("%!(BADWIDTH)"),
        }
    }

    fn precision(&mut self, spec: &mut Spec, after_index: &mut bool, out: &mut String) {
        self.good_index &= !*after_index;
        *after_index = self.index();
        if !self.skip('*') {
            spec.precision = Some(self.number().unwrap_or(0));
            return;
        }
        *after_index = false;
        match self.argument_as_number() {
            Some(precision) if precision >= 0 => spec.precision = Some(precision.unsigned_abs() as usize),
            _ => out.push_str("%!(BADPREC)"),
        }
    }

    /// Reads `[n]`; true if it was one, even one that names no argument.
    fn index(&mut self) -> bool {
        if !self.rest.starts_with('[') {
            return false;
        }
        self.reordered = true;
        let Some(close) = self.rest.find(']').filter(|_| self.rest.len() >= 3) else {
            self.good_index = false;
            self.rest = &self.rest[1..];
            return false;
        };
        let digits = &self.rest[1..close];
        self.rest = &self.rest[close + 1..];
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let number = digits.parse::<usize>().ok().filter(|number| is_number && *number / 10 <= MAX_WIDTH);
        match number.and_then(|number| number.checked_sub(1)).filter(|index| *index < self.args.len()) {
            Some(index) => self.next = index,
            None => self.good_index = false,
        }
        number.is_some()
    }

    fn skip(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn number(&mut self) -> Option<usize> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return None;
        }
        let (digits, rest) = self.rest.split_at(length);
        let number = digits.parse().ok().filter(|number: &usize| *number / 10 <= MAX_WIDTH);
        // A number beyond reason takes the rest of the format with it.
        self.rest = if number.is_some() { rest } else { "" };
        number
    }

    /// The next argument, where `*` asks for a number.
    fn argument_as_number(&mut self) -> Option<i64> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        arg.as_integer().filter(|number| number.unsigned_abs() <= MAX_WIDTH as u64)
    }

    /// Shows arguments no verb asked for.
    fn extra(&self, out: &mut String, most: usize) -> Result<(), String> {
        let extra = self.args.get(self.next..).unwrap_or_default();
        if self.reordered || extra.is_empty() {
            return Ok(());
        }
        out.push_str("%!(EXTRA ");
        for (index, arg) in extra.iter().enumerate() {
            out.push_str(if index > 0 { ", " } else { "" });
            if !matches!(arg, Value::Nil) {
                out.push_str(arg.type_name());
                out.push('=');
            }
            verbs::argument(arg, 'v', Spec::default(), out, most)?;
        }
        out.push(')');
        Ok(())
    }
}
