//! The functions expressions know by name, and what those of `repo` do.

use std::borrow::Cow;

use baton_grammar::duration::Duration;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::evaluate::{Evaluation, Outcome, fault};
use super::value::Value;

/// What is done with each element of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closure {
    Any,
    All,
    None,
    One,
    Filter,
    Map,
    Count,
    Find,
}

/// A function with arguments that are values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Len,
    First,
    Last,
    Keys,
    Values,
    Upper,
    Lower,
    Trim,
    Split,
    Join,
    Replace,
    String,
    Int,
    Float,
    Abs,
    Now,
    Duration,
}

/// What Go's `url.QueryEscape` leaves as it is; blanks become `+`.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

// === impl Closure ===

impl Closure {
    pub(super) fn named(name: &str) -> Option<Closure> {
        Some(match name {
            "any" => Closure::Any,
            "all" => Closure::All,
            "none" => Closure::None,
            "one" => Closure::One,
            "filter" => Closure::Filter,
            "map" => Closure::Map,
            "count" => Closure::Count,
            "find" => Closure::Find,
            _ => return None,
        })
    }
}

// === impl Function ===

impl Function {
    pub(super) fn named(name: &str) -> Option<Function> {
        Some(match name {
            "len" => Function::Len,
            "first" => Function::First,
            "last" => Function::Last,
            "keys" => Function::Keys,
            "values" => Function::Values,
            "upper" => Function::Upper,
            "lower" => Function::Lower,
            "trim" => Function::Trim,
            "split" => Function::Split,
            "join" => Function::Join,
            "replace" => Function::Replace,
            "string" => Function::String,
            "int" => Function::Int,
            "float" => Function::Float,
            "abs" => Function::Abs,
            "now" => Function::Now,
            "duration" => Function::Duration,
            _ => return None,
        })
    }

    pub(super) fn takes(self, count: usize) -> bool {
        match self {
            Function::Now => count == 0,
            Function::Split => count == 2,
            Function::Join => (1..=2).contains(&count),
            Function::Replace => count == 3,
            _ => count == 1,
        }
    }
}

/// Calls a function with as many arguments as it takes.
pub(super) fn call<'a>(
    evaluation: &mut Evaluation<'_, 'a>,
    at: usize,
    function: Function,
    arguments: &[Value<'a>],
) -> Outcome<'a> {
    let wrong = |value: &Value<'_>| fault(at, format!("this is not for {}", value.kind()));
    match (function, arguments) {
        (Function::Now, _) => Ok(Value::Time(evaluation.now)),
        (Function::Len, [value]) => {
            value.length().map_or_else(|| wrong(value), |length| Ok(Value::Int(length as i64)))
        }
        (Function::First, [value]) => {
            value.items().map_or_else(|| wrong(value), |mut items| Ok(items.next().unwrap_or(Value::Nil)))
        }
        (Function::Last, [value]) => {
            value.items().map_or_else(|| wrong(value), |items| Ok(items.last().unwrap_or(Value::Nil)))
        }
        (Function::Keys, [value]) => match value.keys() {
            Some(keys) => evaluation.list(at, keys.into_iter().map(|key| Value::Text(key.into())).collect()),
            None => wrong(value),
        },
        (Function::Values, [value]) => match value.keys() {
            Some(keys) => evaluation.list(at, keys.iter().filter_map(|key| value.entry(key)).collect()),
            None => wrong(value),
        },
        (Function::Upper, [Value::Text(text)]) => evaluation.text(at, text.to_uppercase().into()),
        (Function::Lower, [Value::Text(text)]) => evaluation.text(at, text.to_lowercase().into()),
        (Function::Trim, [Value::Text(text)]) => evaluation.text(at, text.trim().to_owned().into()),
        (Function::Split, [Value::Text(text), Value::Text(separator)]) => {
            evaluation.pay(at, text.len() as u64)?;
            let parts = text.split(separator.as_ref()).map(|part| Value::Text(part.to_owned().into()));
            evaluation.list(at, parts.collect())
        }
        (Function::Join, [list, rest @ ..]) => join(evaluation, at, list, rest.first()),
        (Function::Replace, [Value::Text(text), Value::Text(from), Value::Text(to)]) => {
            replaced(evaluation, at, text, from, to)
        }
        (Function::String, [value]) => {
            evaluation.walk(at, value, 0)?;
            evaluation.text(at, value.to_string().into())
        }
        (Function::Int, [value]) => match value {
            Value::Int(number) => Ok(Value::Int(*number)),
            Value::Float(number) => Ok(Value::Int(*number as i64)),
            Value::Text(text) => match text.parse() {
                Ok(number) => Ok(Value::Int(number)),
                Err(_) => fault(at, "the text is no whole number"),
            },
            other => wrong(other),
        },
        (Function::Float, [value]) => match (value.number(), value) {
            (Some(number), _) => Ok(Value::Float(number)),
            (None, Value::Text(text)) => match text.parse() {
                Ok(number) => Ok(Value::Float(number)),
                Err(_) => fault(at, "the text is no number"),
            },
            (None, other) => wrong(other),
        },
        (Function::Abs, [Value::Int(number)]) => Ok(Value::Int(number.saturating_abs())),
        (Function::Abs, [Value::Float(number)]) => Ok(Value::Float(number.abs())),
        (Function::Duration, [Value::Text(text)]) => match text.parse::<Duration>() {
            Ok(span) => Ok(Value::Span(span)),
            Err(error) => fault(at, error.to_string()),
        },
        (_, [value, ..]) => wrong(value),
        (_, []) => fault(at, "an argument is missing"),
    }
}

fn join<'a>(
    evaluation: &mut Evaluation<'_, 'a>,
    at: usize,
    list: &Value<'a>,
    glue: Option<&Value<'a>>,
) -> Outcome<'a> {
    let (Some(items), glue) = (list.items(), glue.map(ToString::to_string).unwrap_or_default()) else {
        return fault(at, format!("a list is wanted, this is {}", list.kind()));
    };
    let mut out = String::new();
    for (index, item) in items.enumerate() {
        let Value::Text(text) = item else { return fault(at, "only texts can be joined") };
        evaluation.pay(at, 1 + (text.len() + glue.len()) as u64)?;
        if index > 0 {
            out.push_str(&glue);
        }
        out.push_str(&text);
    }
    evaluation.text(at, out.into())
}

/// A text with every occurrence of another replaced, paid for before it is made.
pub(super) fn replaced<'a>(
    evaluation: &mut Evaluation<'_, 'a>,
    at: usize,
    text: &str,
    from: &str,
    to: &str,
) -> Outcome<'a> {
    let count = text.matches(from).count();
    let growth = count.saturating_mul(to.len());
    evaluation.pay(at, (text.len().saturating_add(growth)) as u64)?;
    evaluation.text(at, Cow::Owned(text.replace(from, to)))
}

/// The web address of a repository: `git@host:a/b.git` and `ssh://git@host/a/b.git` become `https://host/a/b`.
pub(crate) fn repo_url_to_https(url: &str) -> String {
    let url = url.trim();
    let bare = url.strip_suffix(".git").unwrap_or(url);
    if let Some((scheme, rest)) = bare.split_once("://") {
        let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
        return match scheme {
            "http" => format!("http://{rest}"),
            _ => format!("https://{rest}"),
        };
    }
    let rest = bare.split_once('@').map_or(bare, |(_, rest)| rest);
    format!("https://{}", rest.replacen(':', "/", 1))
}

/// Owner and name of a repository: `a/b` of `https://host/a/b.git`.
pub(crate) fn full_name_by_repo_url(url: &str) -> String {
    let https = repo_url_to_https(url);
    let path =
        https.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    path.trim_matches('/').to_owned()
}

/// A text as it stands in a query of a URL.
pub(crate) fn query_escape(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string().replace("%20", "+")
}
