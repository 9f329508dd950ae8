//! What times, durations and bundles of functions can be asked.

use std::borrow::Cow;

use baton_grammar::duration::Duration;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::evaluate::{Evaluation, Outcome, fault};
use super::functions::{full_name_by_repo_url, query_escape, replaced, repo_url_to_https};
use super::parse::Operator;
use super::value::{Library, Value};

const SECOND: i64 = 1_000_000_000;
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// What a bundle has without being called: units of time, days of the week, months.
pub(super) fn constant<'a>(library: Library, name: &str) -> Option<Value<'a>> {
    if library != Library::Time {
        return None;
    }
    let unit = match name {
        "Nanosecond" => Some(1),
        "Microsecond" => Some(1_000),
        "Millisecond" => Some(1_000_000),
        "Second" => Some(SECOND),
        "Minute" => Some(60 * SECOND),
        "Hour" => Some(3600 * SECOND),
        _ => None,
    };
    if let Some(unit) = unit {
        return Some(Value::Span(Duration::from_nanoseconds(unit)));
    }
    let place = |names: &[&str]| names.iter().position(|known| *known == name).map(|place| place as i64);
    place(&DAYS).or_else(|| place(&MONTHS).map(|month| month + 1)).map(Value::Int)
}

/// Calls a method of a value.
pub(super) fn call<'a>(
    evaluation: &mut Evaluation<'_, 'a>,
    at: usize,
    of: &Value<'a>,
    name: &str,
    arguments: &[Value<'a>],
) -> Outcome<'a> {
    match of {
        Value::Nil => fault(at, format!("cannot call {name} of nil")),
        Value::Time(time) => of_time(at, *time, name, arguments),
        Value::Span(span) => of_span(at, *span, name, arguments),
        Value::Library(library) => of_library(evaluation, at, *library, name, arguments),
        other => fault(at, format!("{} has no method {name}", other.kind())),
    }
}

fn of_library<'a>(
    evaluation: &mut Evaluation<'_, 'a>,
    at: usize,
    library: Library,
    name: &str,
    arguments: &[Value<'a>],
) -> Outcome<'a> {
    let texts: Option<Vec<&str>> = arguments
        .iter()
        .map(|argument| if let Value::Text(text) = argument { Some(text.as_ref()) } else { None })
        .collect();
    let Some(texts) = texts else {
        return fault(at, format!("{name} takes texts, this is {}", kinds(arguments)));
    };
    let made = match (library, name, texts.as_slice()) {
        (Library::Time, "Now", []) => return Ok(Value::Time(evaluation.now)),
        (Library::Time, "Parse", [text]) => {
            return match text.parse::<Timestamp>() {
                Ok(time) => Ok(Value::Time(time)),
                Err(_) => fault(at, "the text is no time such as 2026-01-31T10:00:00Z"),
            };
        }
        (Library::Strings, "ReplaceAll", [text, from, to]) => {
            return replaced(evaluation, at, text, from, to);
        }
        (Library::Strings, "ToUpper", [text]) => text.to_uppercase(),
        (Library::Strings, "ToLower", [text]) => text.to_lowercase(),
        (Library::Repo, "RepoURLToHTTPS", [url]) => repo_url_to_https(url),
        (Library::Repo, "FullNameByRepoURL", [url]) => full_name_by_repo_url(url),
        (Library::Repo, "QueryEscape", [text]) => query_escape(text),
        (Library::Repo, "GetCommitMetadata" | "GetAppDetails", _) => {
            return fault(at, format!("repo.{name} reads a repository, which expressions cannot do"));
        }
        _ => return fault(at, format!("there is no {name} that takes {} arguments", arguments.len())),
    };
    evaluation.text(at, Cow::Owned(made))
}

fn of_time<'a>(at: usize, time: Timestamp, name: &str, arguments: &[Value<'a>]) -> Outcome<'a> {
    let utc = || time.to_zoned(TimeZone::UTC);
    Ok(match (name, arguments) {
        ("Sub", [Value::Time(other)]) => Value::Span(between(*other, time)),
        ("Before", [Value::Time(other)]) => Value::Bool(time < *other),
        ("After", [Value::Time(other)]) => Value::Bool(time > *other),
        ("Equal", [Value::Time(other)]) => Value::Bool(time == *other),
        ("Add", [Value::Span(span)]) => match moved(time, span.nanoseconds()) {
            Some(time) => Value::Time(time),
            None => return fault(at, "the time is out of range"),
        },
        ("Unix", []) => Value::Int(time.as_second()),
        ("UTC", []) => Value::Time(time),
        ("Year", []) => Value::Int(utc().year().into()),
        ("Month", []) => Value::Int(utc().month().into()),
        ("Day", []) => Value::Int(utc().day().into()),
        ("Hour", []) => Value::Int(utc().hour().into()),
        ("Minute", []) => Value::Int(utc().minute().into()),
        ("Second", []) => Value::Int(utc().second().into()),
        ("Weekday", []) => Value::Int(utc().weekday().to_sunday_zero_offset().into()),
        _ => return fault(at, format!("a time has no method {name} that takes {}", kinds(arguments))),
    })
}

fn of_span<'a>(at: usize, span: Duration, name: &str, arguments: &[Value<'a>]) -> Outcome<'a> {
    let nanoseconds = span.nanoseconds();
    let units = |unit: i64| (nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64;
    Ok(match (name, arguments) {
        ("Hours", []) => Value::Float(units(3600 * SECOND)),
        ("Minutes", []) => Value::Float(units(60 * SECOND)),
        ("Seconds", []) => Value::Float(units(SECOND)),
        ("Milliseconds", []) => Value::Int(nanoseconds / 1_000_000),
        ("Microseconds", []) => Value::Int(nanoseconds / 1_000),
        ("Nanoseconds", []) => Value::Int(nanoseconds),
        ("String", []) => Value::Text(span.to_string().into()),
        ("Abs", []) => Value::Span(Duration::from_nanoseconds(nanoseconds.saturating_abs())),
        _ => return fault(at, format!("a duration has no method {name} that takes {}", kinds(arguments))),
    })
}

/// Calculating with times and durations; none where it is not about them, and nothing where it leads out of range.
pub(super) fn shifted<'a>(
    operator: Operator,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Option<Option<Value<'a>>> {
    let span = |nanoseconds: Option<i64>| {
        nanoseconds.map(|nanoseconds| Value::Span(Duration::from_nanoseconds(nanoseconds)))
    };
    Some(match (left, operator, right) {
        (Value::Time(left), Operator::Subtract, Value::Time(right)) => {
            Some(Value::Span(between(*right, *left)))
        }
        (Value::Time(time), Operator::Add, Value::Span(by)) => {
            moved(*time, by.nanoseconds()).map(Value::Time)
        }
        (Value::Time(time), Operator::Subtract, Value::Span(by)) => {
            by.nanoseconds().checked_neg().and_then(|by| moved(*time, by)).map(Value::Time)
        }
        (Value::Span(left), Operator::Add, Value::Span(right)) => {
            span(left.nanoseconds().checked_add(right.nanoseconds()))
        }
        (Value::Span(left), Operator::Subtract, Value::Span(right)) => {
            span(left.nanoseconds().checked_sub(right.nanoseconds()))
        }
        (Value::Span(by), Operator::Multiply, Value::Int(times))
        | (Value::Int(times), Operator::Multiply, Value::Span(by)) => {
            span(by.nanoseconds().checked_mul(*times))
        }
        _ => return None,
    })
}

/// The time from one to another; as long as a duration can be, where it is longer.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    let nanoseconds = to.duration_since(from).as_nanos();
    let bounded = nanoseconds.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    Duration::from_nanoseconds(i64::try_from(bounded).unwrap_or_default())
}

fn moved(time: Timestamp, nanoseconds: i64) -> Option<Timestamp> {
    time.checked_add(SignedDuration::from_nanos(nanoseconds)).ok()
}

fn kinds(arguments: &[Value<'_>]) -> String {
    match arguments {
        [] => "nothing".to_owned(),
        some => some.iter().map(Value::kind).collect::<Vec<_>>().join(", "),
    }
}
