//! Times read by a layout.

use baton_grammar::duration::quoted;
use jiff::tz::TimeZone;

use super::civil::{Civil, days_in, is_leap};
use super::format::{MONTHS, WEEKDAYS};
use super::instant::Instant;
use super::layout::{self, Element, OffsetForm};
use super::zone::Zone;

/// Reads a time; one that names no zone is the local zone's.
///
/// # Errors
/// With Go's message.
pub(super) fn parse(layout: &str, text: &str, local: &TimeZone) -> Result<Instant, String> {
    let mut read = Read::default();
    let (mut pattern, mut rest) = (layout, text);
    let mismatch = |element: &str, rest: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quoted(text),
            quoted(layout),
            quoted(rest),
            quoted(element)
        )
    };
    let wrong = |what: &str| format!("parsing time {}: {what}", quoted(text));
    while let Some((before, written, element, after)) = layout::next(pattern) {
        rest = skip(rest, before).map_err(|rest| mismatch(before, rest))?;
        pattern = after;
        rest = match read.element(element, rest, pattern) {
            Ok(rest) => rest,
            Err(Fault::Mismatch) => return Err(mismatch(written, rest)),
            Err(Fault::Range(what)) => return Err(wrong(&format!("{what} out of range"))),
        };
    }
    rest = skip(rest, pattern).map_err(|rest| mismatch(pattern, rest))?;
    if !rest.is_empty() {
        return Err(wrong(&format!("extra text: {}", quoted(rest))));
    }
    read.time(local).map_err(wrong)
}

/// The text after a prefix, blanks of which stand for any number of blanks.
fn skip<'t>(mut text: &'t str, mut prefix: &str) -> Result<&'t str, &'t str> {
    while let Some(c) = prefix.chars().next() {
        if c == ' ' {
            if !text.is_empty() && !text.starts_with(' ') {
                return Err(text);
            }
            prefix = prefix.trim_start_matches(' ');
            text = text.trim_start_matches(' ');
        } else {
            text = text.strip_prefix(c).ok_or(text)?;
            prefix = &prefix[c.len_utf8()..];
        }
    }
    Ok(text)
}

#[derive(Clone, Copy)]
enum Fault {
    Mismatch,
    Range(&'static str),
}

type Step<'t, T> = Result<(T, &'t str), Fault>;

/// What has been read so far.
#[derive(Default)]
struct Read {
    year: i16,
    month: Option<u8>,
    day: Option<u8>,
    year_day: Option<i16>,
    hour: u8,
    minute: u8,
    second: u8,
    nanosecond: u32,
    afternoon: Option<bool>,
    utc: bool,
    offset: Option<i32>,
    zone_name: String,
}

impl Read {
    fn element<'t>(&mut self, element: Element, text: &'t str, pattern: &str) -> Result<&'t str, Fault> {
        let rest;
        match element {
            Element::LongYear => (self.year, rest) = exactly(4, text)?,
            Element::Year => {
                // A sign counts as a digit.
                let short =
                    text.get(..2).and_then(|short| short.parse::<i16>().ok()).ok_or(Fault::Mismatch)?;
                let after = &text[2..];
                self.year = short + if short >= 69 { 1900 } else { 2000 };
                rest = after;
            }
            Element::LongMonth | Element::Month => {
                let (index, after) = name(&MONTHS, element == Element::Month, text)?;
                self.month = Some(index as u8 + 1);
                rest = after;
            }
            Element::NumberMonth | Element::ZeroMonth => {
                let (month, after) = number(2, element == Element::ZeroMonth, text)?;
                (self.month, rest) = (Some(within(month, 1, 12, "month")?), after);
            }
            Element::LongWeekday | Element::Weekday => {
                (_, rest) = name(&WEEKDAYS, element == Element::Weekday, text)?;
            }
            Element::Day | Element::UnderDay | Element::ZeroDay => {
                let blank = element == Element::UnderDay;
                let text = text.strip_prefix(' ').filter(|_| blank).unwrap_or(text);
                let (day, after) = number(2, element == Element::ZeroDay, text)?;
                (self.day, rest) = (Some(day as u8), after);
            }
            Element::UnderYearDay | Element::ZeroYearDay => {
                let blanks = text.bytes().take(2).take_while(|byte| *byte == b' ').count();
                let text = if element == Element::UnderYearDay { &text[blanks..] } else { text };
                let (day, after) = number(3, element == Element::ZeroYearDay, text)?;
                (self.year_day, rest) = (Some(day), after);
            }
            Element::Hour => {
                let (hour, after) = number(2, false, text)?;
                (self.hour, rest) = (within(hour, 0, 23, "hour")?, after);
            }
            Element::Hour12 | Element::ZeroHour12 => {
                let (hour, after) = number(2, element == Element::ZeroHour12, text)?;
                (self.hour, rest) = (within(hour, 0, 12, "hour")?, after);
            }
            Element::Minute | Element::ZeroMinute => {
                let (minute, after) = number(2, element == Element::ZeroMinute, text)?;
                (self.minute, rest) = (within(minute, 0, 59, "minute")?, after);
            }
            Element::Second | Element::ZeroSecond => {
                let (second, after) = number(2, element == Element::ZeroSecond, text)?;
                self.second = within(second, 0, 59, "second")?;
                rest = self.unasked_fraction(after, pattern);
            }
            Element::Noon { capital } => {
                let names = if capital { ["AM", "PM"] } else { ["am", "pm"] };
                let index = names.iter().position(|name| text.starts_with(name)).ok_or(Fault::Mismatch)?;
                (self.afternoon, rest) = (Some(index == 1), &text[2..]);
            }
            Element::ZoneName => rest = self.zone_name(text)?,
            Element::Offset { zulu, form } => match text.strip_prefix('Z').filter(|_| zulu) {
                Some(after) => (self.utc, rest) = (true, after),
                None => {
                    let (offset, after) = offset(form, text)?;
                    (self.offset, rest) = (Some(offset), after);
                }
            },
            Element::Fraction { digits, trimmed: false, .. } => {
                let fits = text.starts_with(['.', ','])
                    && text
                        .get(1..=digits)
                        .is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                if !fits {
                    return Err(Fault::Mismatch);
                }
                (self.nanosecond, rest) = (nanoseconds(&text[1..=digits]), &text[digits + 1..]);
            }
            Element::Fraction { .. } => rest = self.any_fraction(text),
        }
        Ok(rest)
    }

    /// A fraction of a second the layout does not have.
    fn unasked_fraction<'t>(&mut self, text: &'t str, pattern: &str) -> &'t str {
        let asked = matches!(layout::next(pattern), Some((_, _, Element::Fraction { .. }, _)));
        if asked { text } else { self.any_fraction(text) }
    }

    fn any_fraction<'t>(&mut self, text: &'t str) -> &'t str {
        let Some(digits) = text.strip_prefix(['.', ',']) else {
            return text;
        };
        let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &digits[..digits.len() - rest.len()];
        if digits.is_empty() {
            return text;
        }
        self.nanosecond = nanoseconds(digits);
        rest
    }

    fn zone_name<'t>(&mut self, text: &'t str) -> Result<&'t str, Fault> {
        if let Some(rest) = text.strip_prefix("UTC") {
            self.utc = true;
            return Ok(rest);
        }
        let length = zone_name_length(text).ok_or(Fault::Mismatch)?;
        self.zone_name = text[..length].to_owned();
        Ok(&text[length..])
    }

    fn time(self, local: &TimeZone) -> Result<Instant, &'static str> {
        let (month, day) = match self.year_day {
            None => (self.month.unwrap_or(1), self.day.unwrap_or(1)),
            Some(year_day) => {
                let year = self.year.into();
                if year_day < 1 || year_day > 365 + i16::from(is_leap(year)) {
                    return Err("day-of-year out of range");
                }
                let first = Civil { year, month: 1, day: 1, hour: 0, minute: 0, second: 0 };
                let date = Civil::from_seconds(first.seconds() + i64::from(year_day - 1) * 86_400);
                if self.month.is_some_and(|month| month != date.month) {
                    return Err("day-of-year does not match month");
                }
                if self.day.is_some_and(|day| day != date.day) {
                    return Err("day-of-year does not match day");
                }
                (date.month, date.day)
            }
        };
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let year = self.year.into();
        if day < 1 || day > days_in(year, month) {
            return Err("day out of range");
        }
        let date = Civil { year, month, day, hour, minute: self.minute, second: self.second };
        let told = |zone: Zone| Instant::in_zone(date, self.nanosecond, zone);
        let region = Zone::Region(local.clone());
        Ok(if self.utc {
            told(Zone::UTC)
        } else if let Some(seconds) = self.offset {
            let fixed = told(Zone::Fixed { seconds, name: self.zone_name.as_str().into() });
            let (offset, name) = region.at(fixed.unix());
            let is_local = offset == seconds && (self.zone_name.is_empty() || self.zone_name == name);
            if is_local { fixed.told_in(region) } else { fixed }
        } else if self.zone_name.is_empty() {
            told(region)
        } else {
            abbreviated(told, &self.zone_name, region)
        })
    }
}

/// A time with the name of a zone only: the local zone's if it goes by that name in some season, else one nobody knows
/// the offset of.
fn abbreviated(told: impl Fn(Zone) -> Instant, name: &str, local: Zone) -> Instant {
    const HALF_A_YEAR: i64 = 182 * 24 * 3600;
    let there = told(local.clone()).unix();
    let seasons = [0, HALF_A_YEAR, -HALF_A_YEAR].map(|away| local.at(there.saturating_add(away)));
    if let Some((seconds, _)) = seasons.into_iter().find(|(_, known)| known == name) {
        return told(Zone::Fixed { seconds, name: name.into() }).told_in(local);
    }
    let hours = name.strip_prefix("GMT").and_then(|hours| hours.parse::<i32>().ok()).unwrap_or(0);
    // Read as UTC, then told in the zone made up.
    told(Zone::UTC).told_in(Zone::Fixed { seconds: hours * 3600, name: name.into() })
}

fn within(number: i16, least: i16, most: i16, what: &'static str) -> Result<u8, Fault> {
    if number < least || number > most {
        return Err(Fault::Range(what));
    }
    u8::try_from(number).map_err(|_| Fault::Range(what))
}

/// A number of so many digits and no fewer.
fn exactly(digits: usize, text: &str) -> Step<'_, i16> {
    let number = text.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.and_then(|number| number.parse().ok()).ok_or(Fault::Mismatch)?;
    Ok((number, &text[digits..]))
}

/// A number of up to so many digits, of just as many if it is fixed.
fn number(most: usize, fixed: bool, text: &str) -> Step<'_, i16> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if digits == 0 || (fixed && digits < most) {
        return Err(Fault::Mismatch);
    }
    exactly(digits, text)
}

/// One of the names in any case, or of their first three letters.
fn name<'t>(names: &[&str], short: bool, text: &'t str) -> Step<'t, usize> {
    let fits = |name: &&str| {
        let name = if short { &name[..3] } else { name };
        text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    let index = names.iter().position(fits).ok_or(Fault::Mismatch)?;
    Ok((index, &text[if short { 3 } else { names[index].len() }..]))
}

fn nanoseconds(digits: &str) -> u32 {
    let digits = &digits[..digits.len().min(9)];
    format!("{digits:0<9}").parse().unwrap_or(0)
}

/// An offset: any sign, as one that is neither plus nor minus is found out last.
fn offset(form: OffsetForm, text: &str) -> Step<'_, i32> {
    let sign = text.chars().next().filter(char::is_ascii).ok_or(Fault::Mismatch)?;
    let mut rest = &text[1..];
    let mut part = |wanted: bool, colon: bool| -> Result<&str, Fault> {
        if !wanted {
            return Ok("00");
        }
        let after = if colon { rest.strip_prefix(':').ok_or(Fault::Mismatch)? } else { rest };
        let digits = after.get(..2).ok_or(Fault::Mismatch)?;
        rest = &after[2..];
        Ok(digits)
    };
    let parts = [
        part(true, false)?,
        part(form.has_minutes(), form.has_colons())?,
        part(form.has_seconds(), form.has_colons())?,
    ];
    // What follows a part that is no number is not read, but what came before it must be in range.
    let [hours, minutes, seconds] =
        parts.map(|digits| exactly(2, digits).map(|(number, _)| i32::from(number)));
    let minutes = hours.and(minutes);
    let seconds = minutes.and(seconds);
    for (number, most, what) in [
        (seconds, 60, "time zone offset second"),
        (minutes, 60, "time zone offset minute"),
        (hours, 24, "time zone offset hour"),
    ] {
        if number.is_ok_and(|number| number > most) {
            return Err(Fault::Range(what));
        }
    }
    let (hours, minutes, seconds) = (hours?, minutes?, seconds?);
    let offset = hours * 3600 + minutes * 60 + seconds;
    match sign {
        '+' => Ok((offset, rest)),
        '-' => Ok((-offset, rest)),
        _ => Err(Fault::Mismatch),
    }
}

/// How much of a text looks like the name of a zone: `CET`, `AEST`, `GMT+3`, `-03`.
fn zone_name_length(text: &str) -> Option<usize> {
    if ["ChST", "MeST"].iter().any(|name| text.starts_with(name)) {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix("GMT") {
        return Some(3 + signed_hours(rest).unwrap_or(0));
    }
    if text.starts_with(['+', '-']) {
        return signed_hours(text).filter(|_| text.len() >= 3);
    }
    let capitals = text.bytes().take(6).take_while(u8::is_ascii_uppercase).count();
    let fits = match capitals {
        3 => true,
        4 => text.as_bytes()[3] == b'T' || text.starts_with("WITA"),
        5 => text.as_bytes()[4] == b'T',
        _ => false,
    };
    fits.then_some(capitals)
}

fn signed_hours(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(['+', '-'])?;
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let hours: u64 = digits[..count].parse().ok()?;
    (hours <= 23).then_some(count + 1)
}
