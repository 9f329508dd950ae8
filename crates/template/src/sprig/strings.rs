//! Texts: cut, joined, quoted, indented.

use super::letters::{self, lower_case, upper_case};
use super::lists::texts;
use super::{MAX_TEXT, Outcome, bytes, fixed, int_of, metered, str_of};
use crate::budget::Budget;
use crate::function::Function;
use crate::function::Param::{Any, Int, Str};
use crate::print;
use crate::quote::quoted;
use crate::value::{List, Map, Value};

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("trim", &[Str], |args| Ok(str_of(&args[0]).trim().into())),
    fixed("upper", &[Str], |args| Ok(upper_case(str_of(&args[0])).into())),
    fixed("lower", &[Str], |args| Ok(lower_case(str_of(&args[0])).into())),
    fixed("title", &[Str], |args| Ok(title(str_of(&args[0])).into())),
    fixed("nospace", &[Str], |args| Ok(str_of(&args[0]).split_whitespace().collect::<String>().into())),
    fixed("trunc", &[Int, Str], |args| Ok(trunc(int_of(&args[0]), str_of(&args[1])))),
    fixed("substr", &[Int, Int, Str], |args| substr(int_of(&args[0]), int_of(&args[1]), str_of(&args[2]))),
    fixed("repeat", &[Int, Str], |args| repeat(int_of(&args[0]), str_of(&args[1]))),
    fixed("trimAll", &[Str, Str], |args| Ok(trim_all(&args[0], &args[1]))),
    fixed("trimall", &[Str, Str], |args| Ok(trim_all(&args[0], &args[1]))),
    fixed("trimSuffix", &[Str, Str], |args| {
        let (suffix, text) = (str_of(&args[0]), str_of(&args[1]));
        Ok(text.strip_suffix(suffix).unwrap_or(text).into())
    }),
    fixed("trimPrefix", &[Str, Str], |args| {
        let (prefix, text) = (str_of(&args[0]), str_of(&args[1]));
        Ok(text.strip_prefix(prefix).unwrap_or(text).into())
    }),
    fixed("contains", &[Str, Str], |args| Ok(Value::Bool(str_of(&args[1]).contains(str_of(&args[0]))))),
    fixed("hasPrefix", &[Str, Str], |args| Ok(Value::Bool(str_of(&args[1]).starts_with(str_of(&args[0]))))),
    fixed("hasSuffix", &[Str, Str], |args| Ok(Value::Bool(str_of(&args[1]).ends_with(str_of(&args[0]))))),
    fixed("replace", &[Str, Str, Str], |args| replace(str_of(&args[0]), str_of(&args[1]), str_of(&args[2]))),
    fixed("indent", &[Int, Str], |args| indent(int_of(&args[0]), str_of(&args[1]), "")),
    fixed("nindent", &[Int, Str], |args| indent(int_of(&args[0]), str_of(&args[1]), "\n")),
    metered("quote", &[], Some(Any), |context, args| {
        each_present(args, context.budget, |text| quoted(&text))
    }),
    metered("squote", &[], Some(Any), |context, args| {
        each_present(args, context.budget, |text| format!("'{text}'"))
    }),
    metered("cat", &[], Some(Any), |context, args| each_present(args, context.budget, |text| text)),
    metered("toString", &[Any], None, |context, args| Ok(print::text(&args[0], context.budget)?.into())),
    metered("toStrings", &[Any], None, |context, args| {
        Ok(Value::List(List::strings(texts(&args[0], context.budget)?)))
    }),
    metered("join", &[Str, Any], None, |context, args| {
        join(str_of(&args[0]), &texts(&args[1], context.budget)?)
    }),
    metered("splitList", &[Str, Str], None, |context, args| {
        Ok(Value::List(List::strings(pieces(str_of(&args[0]), -1, str_of(&args[1]), context.budget)?)))
    }),
    metered("split", &[Str, Str], None, |context, args| {
        Ok(numbered(pieces(str_of(&args[0]), -1, str_of(&args[1]), context.budget)?))
    }),
    metered("splitn", &[Str, Int, Str], None, |context, args| {
        Ok(numbered(pieces(str_of(&args[0]), int_of(&args[1]), str_of(&args[2]), context.budget)?))
    }),
];

/// Every word's first letter upper case; a word ends where neither letter, digit nor underscore stands.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut starts = true;
    for c in text.chars() {
        if starts {
            out.push(letters::title(c))
        } else {
            out.push(c)
        }
        starts = if c.is_ascii() { !(c.is_ascii_alphanumeric() || c == '_') } else { c.is_whitespace() };
    }
    out
}

fn trunc(count: i64, text: &str) -> Value {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if wanted >= text.len() {
        return text.into();
    }
    if count < 0 { bytes(text, text.len() - wanted, text.len()) } else { bytes(text, 0, wanted) }
}

fn substr(start: i64, end: i64, text: &str) -> Outcome {
    let length = text.len() as i64;
    let (from, to) = if start < 0 {
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    if from > to || to > length || to < 0 {
        return Err(format!("slice bounds out of range [{from}:{to}] with length {length}"));
    }
    Ok(bytes(text, from as usize, to as usize))
}

fn repeat(count: i64, text: &str) -> Outcome {
    let count = usize::try_from(count).map_err(|_| "strings: negative Repeat count".to_owned())?;
    bounded(text.len().saturating_mul(count))?;
    Ok(text.repeat(count).into())
}

fn trim_all(cut: &Value, text: &Value) -> Value {
    let cut: Vec<char> = str_of(cut).chars().collect();
    str_of(text).trim_matches(cut.as_slice()).into()
}

fn replace(old: &str, new: &str, text: &str) -> Outcome {
    bounded(text.len().saturating_add(text.matches(old).count().saturating_mul(new.len())))?;
    Ok(text.replace(old, new).into())
}

fn indent(spaces: i64, text: &str, before: &str) -> Outcome {
    let spaces = usize::try_from(spaces).map_err(|_| "strings: negative Repeat count".to_owned())?;
    bounded(spaces.saturating_mul(text.split('\n').count()).saturating_add(text.len()))?;
    let pad = " ".repeat(spaces);
    Ok(format!("{before}{pad}{}", text.replace('\n', &format!("\n{pad}"))).into())
}

fn join(separator: &str, texts: &[String]) -> Outcome {
    bounded(texts.iter().map(|text| text.len() + separator.len()).sum())?;
    Ok(texts.join(separator).into())
}

fn bounded(length: usize) -> Result<(), String> {
    if length > MAX_TEXT {
        return Err(format!("result is longer than {MAX_TEXT} bytes"));
    }
    Ok(())
}

/// The arguments that are not nil, each written, with blanks between.
fn each_present(args: &[Value], budget: &mut Budget, write: fn(String) -> String) -> Outcome {
    let present = args.iter().filter(|arg| !matches!(arg, Value::Nil));
    let texts: Result<Vec<String>, String> = present.map(|arg| print::text(arg, budget).map(write)).collect();
    join(" ", &texts?)
}

/// The text cut at each separator, or at each character if that is empty. No more pieces than `count` unless that is
/// negative: the last is what is left, uncut.
fn pieces<'a>(
    separator: &str,
    count: i64,
    text: &'a str,
    budget: &mut Budget,
) -> Result<Vec<&'a str>, String> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let most = if separator.is_empty() { text.len() } else { text.matches(separator).count() + 1 };
    budget.values(most.min(count))?;
    if separator.is_empty() {
        return Ok(characters(text, count));
    }
    Ok(text.splitn(count, separator).collect())
}

fn characters(text: &str, count: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next()
        && pieces.len() < count
    {
        let length = if pieces.len() + 1 == count { rest.len() } else { c.len_utf8() };
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn numbered(pieces: Vec<&str>) -> Value {
    let pieces = pieces.into_iter().enumerate();
    Value::Map(Map::strings(pieces.map(|(index, piece)| (format!("_{index}"), piece))))
}
