//! Schedules in cron's five fields, as robfig/cron reads them in Argo CD's sync windows.
//!
//! A field is a list of `*`, `?`, `n`, `n-m`, each with an optional `/step`; months and days of the week have English
//! names. Where both days are restricted either matches. A time zone may stand before them, as `TZ=Asia/Tokyo`. `@daily`
//! and the like are refused, as Argo CD does.

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, ToSpan};

/// When something recurs, in wall-clock time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    time_zone: Option<String>,
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

/// Why a text is no schedule, in the library's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
}

/// Longest schedule that is read, in bytes.
pub const MAX_SCHEDULE: usize = 1 << 10;

/// How many years ahead a recurrence is looked for.
const YEARS: i16 = 5;

/// The numbers that match, and whether it was written as `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    bits: u64,
    any: bool,
}

struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAYS: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: Bounds = Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

// === impl Schedule ===

impl Schedule {
    /// Reads five fields: minute, hour, day of the month, month, day of the week.
    ///
    /// # Errors
    /// Another number of fields, numbers out of bounds, descriptors.
    pub fn parse(text: &str) -> Result<Schedule, Error> {
        if text.is_empty() {
            return Err(Error::new("empty spec string"));
        }
        if text.len() > MAX_SCHEDULE {
            return Err(Error::new("the schedule is too long"));
        }
        let zoned = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (time_zone, text) = match zoned.map(|zoned| zoned.split_once(' ').unwrap_or((zoned, ""))) {
            Some((zone, text)) => (Some(zone.to_owned()), text.trim()),
            None => (None, text),
        };
        if text.starts_with('@') {
            return Err(Error::new(format!("parser does not accept descriptors: {text}")));
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            let (count, fields) = (fields.len(), fields.join(" "));
            return Err(Error::new(format!("expected exactly 5 fields, found {count}: [{fields}]")));
        };
        Ok(Schedule {
            time_zone,
            minute: field(minute, &MINUTES)?,
            hour: field(hour, &HOURS)?,
            day: field(day, &DAYS)?,
            month: field(month, &MONTHS)?,
            weekday: field(weekday, &WEEKDAYS)?,
        })
    }

    /// The time zone it names, whether there is one of that name or not.
    pub fn time_zone(&self) -> Option<&str> {
        self.time_zone.as_deref()
    }

    /// The first recurrence after a time; none where there is none in the next five years.
    pub fn next(&self, after: DateTime) -> Option<DateTime> {
        let start = after.checked_add(1.second()).ok()?.with().subsec_nanosecond(0).build().ok()?;
        let last_year = start.year().saturating_add(YEARS);
        let mut date = start.date();
        let mut from = Some(start.time());
        while date.year() <= last_year {
            if !self.month.has(date.month()) {
                let next = date.first_of_month().checked_add(1.month()).ok()?;
                (date, from) = (next, None);
                continue;
            }
            if self.day_matches(date)
                && let Some(time) = self.time_from(from)
            {
                return Some(DateTime::from_parts(date, time));
            }
            (date, from) = (date.checked_add(Span::new().days(1)).ok()?, None);
        }
        None
    }

    fn day_matches(&self, date: Date) -> bool {
        let day = self.day.has(date.day());
        let weekday = self.weekday.has(date.weekday().to_sunday_zero_offset());
        if self.day.any || self.weekday.any { day && weekday } else { day || weekday }
    }

    /// First time of a day that matches, not before the given one. Recurrences are at full minutes.
    fn time_from(&self, from: Option<Time>) -> Option<Time> {
        let first = match from {
            None => 0,
            Some(time) => {
                let begun = i32::from(time.second() > 0);
                i32::from(time.hour()) * 60 + i32::from(time.minute()) + begun
            }
        };
        let matches =
            |minute: &i32| self.hour.has((minute / 60) as i8) && self.minute.has((minute % 60) as i8);
        let minute = (first..24 * 60).find(matches)?;
        Time::new((minute / 60) as i8, (minute % 60) as i8, 0, 0).ok()
    }
}

impl Field {
    fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits & (1 << number) != 0)
    }
}

impl Error {
    fn new(message: impl Into<String>) -> Error {
        Error { message: message.into() }
    }
}

fn field(text: &str, bounds: &Bounds) -> Result<Field, Error> {
    let mut all = Field { bits: 0, any: false };
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let part = range(part, bounds)?;
        all = Field { bits: all.bits | part.bits, any: all.any || part.any };
    }
    Ok(all)
}

fn range(text: &str, bounds: &Bounds) -> Result<Field, Error> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let star = matches!(ends[0], "*" | "?");
    // Faults are found in the order the library finds them.
    let start = if star { bounds.min } else { number_or_name(ends[0], bounds)? };
    let mut end = match ends[..] {
        _ if star => bounds.max,
        [_] => start,
        [_, high] => number_or_name(high, bounds)?,
        _ => return Err(Error::new(format!("too many hyphens: {text}"))),
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            // `n/step` goes on to the greatest number.
            if ends.len() == 1 {
                end = bounds.max;
            }
            step
        }
        _ => return Err(Error::new(format!("too many slashes: {text}"))),
    };
    if start < bounds.min {
        let min = bounds.min;
        return Err(Error::new(format!("beginning of range ({start}) below minimum ({min}): {text}")));
    }
    if end > bounds.max {
        return Err(Error::new(format!("end of range ({end}) above maximum ({}): {text}", bounds.max)));
    }
    if start > end {
        let fault = format!("beginning of range ({start}) beyond end of range ({end}): {text}");
        return Err(Error::new(fault));
    }
    if step == 0 {
        return Err(Error::new(format!("step of range should be a positive number: {text}")));
    }
    let bits = (start..=end).step_by(step as usize).fold(0, |bits, number| bits | 1 << number);
    Ok(Field { bits, any: star && step == 1 })
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u32, Error> {
    let named = bounds.names.iter().position(|name| text.eq_ignore_ascii_case(name));
    match named.and_then(|index| u32::try_from(index).ok()) {
        Some(index) => Ok(index + bounds.min),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, Error> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let quoted = crate::duration::quoted(text);
        let fault =
            format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax");
        return Err(Error::new(fault));
    }
    let number: i64 = text.parse().map_err(|_| {
        let quoted = crate::duration::quoted(text);
        Error::new(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {quoted}: value out of range"
        ))
    })?;
    if number < 0 {
        return Err(Error::new(format!("negative number ({number}) not allowed: {text}")));
    }
    // What no field can hold is reported by its bounds; a step beyond them leaves the first number alone.
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> Option<String> {
        let schedule = Schedule::parse(schedule).expect(schedule);
        schedule.next(after.parse().expect(after)).map(|time| time.to_string())
    }

    #[test]
    fn the_next_recurrence_comes_after_the_given_time() {
        for (schedule, after, expected) in [
            ("* * * * *", "2026-01-01T00:00:00", "2026-01-01T00:01:00"),
            ("* * * * *", "2026-01-01T00:00:59.999", "2026-01-01T00:01:00"),
            ("* * * * *", "2026-01-01T23:59:00", "2026-01-02T00:00:00"),
            ("0/15 * * * *", "2026-01-01T14:45:00", "2026-01-01T15:00:00"),
            ("5-59/20 * * * *", "2026-01-01T00:06:00", "2026-01-01T00:25:00"),
            ("0 22 * * *", "2026-01-01T22:00:00", "2026-01-02T22:00:00"),
            ("0 22 * * *", "2026-01-01T21:59:59", "2026-01-01T22:00:00"),
            ("0 0 1 * ?", "2026-01-15T12:00:00", "2026-02-01T00:00:00"),
            ("0 0 31 * *", "2026-02-01T00:00:00", "2026-03-31T00:00:00"),
            ("0 0 29 feb *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
            ("0 0 * * MON-fri", "2026-01-03T00:00:00", "2026-01-05T00:00:00"),
            ("0 0 * * 0", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
            ("0 12 1,15 * *", "2026-01-02T00:00:00", "2026-01-15T12:00:00"),
            // Both days restricted: either matches.
            ("0 0 13 * fri", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
            ("0 0 13 * fri", "2026-01-09T00:00:00", "2026-01-13T00:00:00"),
            // A star with a step of one restricts nothing, with a larger one it does.
            ("0 0 */1 * mon", "2026-01-01T00:00:00", "2026-01-05T00:00:00"),
            ("0 0 */2 * mon", "2026-01-01T00:00:00", "2026-01-03T00:00:00"),
            ("30 10 10 dec *", "2026-12-10T10:30:00", "2027-12-10T10:30:00"),
        ] {
            assert_eq!(next(schedule, after).as_deref(), Some(expected), "{schedule} after {after}");
        }
    }

    #[test]
    fn a_day_that_never_comes_is_none() {
        assert_eq!(next("0 0 30 2 *", "2026-01-01T00:00:00"), None);
        assert_eq!(next("0 0 , * *", "2026-01-01T00:00:00"), None);
        assert_eq!(next("* * * * *", "9999-12-31T23:59:59"), None);
    }

    #[test]
    fn a_time_zone_may_stand_before_the_fields() {
        for (schedule, zone) in [
            ("TZ=Asia/Tokyo 0 17 * * *", Some("Asia/Tokyo")),
            ("CRON_TZ=  0 17 * * *", Some("")),
            ("0 17 * * *", None),
        ] {
            assert_eq!(Schedule::parse(schedule).expect(schedule).time_zone(), zone);
            assert_eq!(next(schedule, "2026-01-01T00:00:00").as_deref(), Some("2026-01-01T17:00:00"));
        }
    }

    #[test]
    fn what_is_no_schedule_is_said_as_the_library_says_it() {
        for (schedule, expected) in [
            ("", "empty spec string"),
            ("@daily", "parser does not accept descriptors: @daily"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("0 * * * * *", "expected exactly 5 fields, found 6: [0 * * * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("TZ=UTC", "expected exactly 5 fields, found 0: []"),
            ("TZ=UTC @daily", "parser does not accept descriptors: @daily"),
        ] {
            assert_eq!(Schedule::parse(schedule).expect_err(schedule).to_string(), expected, "{schedule}");
        }
        assert!(Schedule::parse(&"1,".repeat(MAX_SCHEDULE)).is_err());
        assert!(Schedule::parse("0/99999999999999999999 * * * *").is_err());
        assert!(Schedule::parse("0/4294967299 * * * *").is_ok());
    }
}
