//! `os.time` and `os.date`. All times are UTC, whatever the machine's zone.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use mlua::{Error, Lua, Table, Value};

use super::convert::type_name;

/// Longest format of a date, in bytes: what it makes is not counted otherwise.
const MAX_FORMAT: usize = 1024;

/// The functions, for a run at one time. The prelude wraps them: they return `true` and their result, or `false` and
/// what is wrong.
pub(super) fn library(lua: &Lua, now: Timestamp) -> Result<Table, Error> {
    let library = lua.create_table()?;
    library.raw_set(
        "time",
        lua.create_function(move |lua, at| answer(lua, time(&at, now).map(Value::Integer)))?,
    )?;
    let date = move |lua: &Lua, (format, at): (Value, Value)| answer(lua, date(lua, &format, &at, now));
    library.raw_set("date", lua.create_function(date)?)?;
    Ok(library)
}

fn answer(lua: &Lua, result: Result<Value, String>) -> Result<(bool, Value), Error> {
    match result {
        Ok(value) => Ok((true, value)),
        Err(why) => Ok((false, Value::String(lua.create_string(why)?))),
    }
}

fn time(at: &Value, now: Timestamp) -> Result<i64, String> {
    let at = match at {
        Value::Nil => return Ok(now.as_second()),
        Value::Table(at) => at,
        other => return Err(format!("bad argument #1 to 'time' (table expected, got {})", type_name(other))),
    };
    let whole = |name: &str, otherwise: Option<i64>| -> Result<i64, String> {
        let given = match at.raw_get::<Value>(name).unwrap_or(Value::Nil) {
            Value::Nil => otherwise,
            Value::Integer(number) => Some(number),
            Value::String(text) => text.to_str().ok().and_then(|text| text.trim().parse().ok()),
            _ => None,
        };
        given.ok_or_else(|| format!("field '{name}' missing in date table"))
    };
    let (year, month, day) = (whole("year", None)?, whole("month", None)?, whole("day", None)?);
    let (hour, minute, second) = (whole("hour", Some(12))?, whole("min", Some(0))?, whole("sec", Some(0))?);
    seconds(year, month, day, hour, minute, second)
        .ok_or_else(|| "time result cannot be represented".to_owned())
}

/// Seconds since 1970; values beyond their range carry over, as in C's `mktime`.
fn seconds(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    let months = year.checked_mul(12)?.checked_add(month.checked_sub(1)?)?;
    let year = i16::try_from(months.div_euclid(12)).ok()?;
    let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
    let first = DateTime::new(year, month, 1, 0, 0, 0, 0).ok()?;
    let start = first.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    let days = day.checked_sub(1)?.checked_mul(86_400)?;
    let clock = hour.checked_mul(3600)?.checked_add(minute.checked_mul(60)?)?.checked_add(second)?;
    start.checked_add(days)?.checked_add(clock)
}

fn date(lua: &Lua, format: &Value, at: &Value, now: Timestamp) -> Result<Value, String> {
    let format = match format {
        Value::Nil => "%c".to_owned(),
        Value::String(text) if text.as_bytes().len() > MAX_FORMAT => {
            return Err("bad argument #1 to 'date' (the format is too large)".to_owned());
        }
        Value::String(text) => text.to_string_lossy(),
        other => {
            return Err(format!("bad argument #1 to 'date' (string expected, got {})", type_name(other)));
        }
    };
    let at = match at {
        Value::Nil => Ok(now),
        Value::Integer(seconds) => Timestamp::from_second(*seconds),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float out of range saturates, and is refused then"
        )]
        Value::Number(seconds) => Timestamp::from_second(*seconds as i64),
        other => {
            return Err(format!("bad argument #2 to 'date' (number expected, got {})", type_name(other)));
        }
    };
    let at = at.map_err(|_| "time out of range".to_owned())?.to_zoned(TimeZone::UTC).datetime();
    let format = format.trim_start_matches('!');
    let made = if format.starts_with("*t") {
        fields(lua, at).map(Value::Table)
    } else {
        lua.create_string(print(format, at)).map(Value::String)
    };
    made.map_err(|error| super::explain(error).to_string())
}

fn fields(lua: &Lua, at: DateTime) -> Result<Table, Error> {
    let fields = lua.create_table()?;
    fields.raw_set("year", at.year())?;
    fields.raw_set("month", at.month())?;
    fields.raw_set("day", at.day())?;
    fields.raw_set("hour", at.hour())?;
    fields.raw_set("min", at.minute())?;
    fields.raw_set("sec", at.second())?;
    fields.raw_set("wday", at.weekday().to_sunday_one_offset())?;
    fields.raw_set("yday", at.day_of_year())?;
    fields.raw_set("isdst", false)?;
    Ok(fields)
}

/// `strftime` with the conversions of Argo CD's Lua; others stay as they are written.
fn print(format: &str, at: DateTime) -> String {
    let mut text = String::with_capacity(format.len() * 2);
    let mut rest = format.chars();
    while let Some(char) = rest.next() {
        if char != '%' {
            text.push(char);
            continue;
        }
        match rest.next() {
            Some('%') | None => text.push('%'),
            Some('c') => text.push_str(&at.strftime("%d %b %y %H:%M UTC").to_string()),
            Some('x') => text.push_str(&at.strftime("%m/%d/%y").to_string()),
            Some('X') => text.push_str(&at.strftime("%H:%M:%S").to_string()),
            Some('z') => text.push_str("+0000"),
            Some('Z') => text.push_str("UTC"),
            Some(known) if "aAbBdFHIjmMpPSwyY".contains(known) => {
                text.push_str(&at.strftime(&format!("%{known}")).to_string());
            }
            Some(other) => text.extend(['%', other]),
        }
    }
    text
}
