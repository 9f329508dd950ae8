//! `os.time` and `os.date`. All times are UTC, whatever the machine's zone.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use mlua::{Error, Lua, MultiValue, Table, Value};

/// Longest format of a date, in bytes: what it makes is not counted otherwise.
const MAX_FORMAT: usize = 1024;

/// The functions, for a run at one time.
pub(super) fn library(lua: &Lua, now: Timestamp) -> Result<Table, Error> {
    let library = lua.create_table()?;
    library.raw_set("time", lua.create_function(move |_, at: Option<Table>| time(at.as_ref(), now))?)?;
    library.raw_set("date", lua.create_function(move |lua, arguments| date(lua, arguments, now))?)?;
    Ok(library)
}

fn time(at: Option<&Table>, now: Timestamp) -> Result<i64, Error> {
    let Some(at) = at else { return Ok(now.as_second()) };
    let whole = |name: &str, otherwise: Option<i64>| -> Result<i64, Error> {
        let given = match at.raw_get::<Value>(name)? {
            Value::Nil => otherwise,
            Value::Integer(number) => Some(number),
            Value::String(text) => text.to_str().ok().and_then(|text| text.trim().parse().ok()),
            _ => None,
        };
        given.ok_or_else(|| fault(format!("field '{name}' missing in date table")))
    };
    let (year, month, day) = (whole("year", None)?, whole("month", None)?, whole("day", None)?);
    let (hour, minute, second) = (whole("hour", Some(12))?, whole("min", Some(0))?, whole("sec", Some(0))?);
    seconds(year, month, day, hour, minute, second)
        .ok_or_else(|| fault("time result cannot be represented".to_owned()))
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

fn date(lua: &Lua, arguments: MultiValue, now: Timestamp) -> Result<Value, Error> {
    let format = match arguments.front() {
        None | Some(Value::Nil) => "%c".to_owned(),
        Some(Value::String(text)) if text.as_bytes().len() > MAX_FORMAT => {
            return Err(fault("bad argument #1 to 'date' (the format is too large)".to_owned()));
        }
        Some(Value::String(text)) => text.to_string_lossy(),
        Some(_) => return Err(fault("bad argument #1 to 'date' (string expected)".to_owned())),
    };
    let at = match arguments.get(1) {
        None | Some(Value::Nil) => now,
        Some(Value::Integer(seconds)) => {
            Timestamp::from_second(*seconds).map_err(|_| fault("time out of range".to_owned()))?
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float out of range saturates, and is refused then"
        )]
        Some(Value::Number(seconds)) => {
            Timestamp::from_second(*seconds as i64).map_err(|_| fault("time out of range".to_owned()))?
        }
        Some(_) => return Err(fault("bad argument #2 to 'date' (number expected)".to_owned())),
    };
    let at = at.to_zoned(TimeZone::UTC).datetime();
    let format = format.trim_start_matches('!');
    if format.starts_with("*t") {
        return fields(lua, at).map(Value::Table);
    }
    Ok(Value::String(lua.create_string(print(format, at))?))
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

fn fault(message: String) -> Error {
    Error::RuntimeError(message)
}
