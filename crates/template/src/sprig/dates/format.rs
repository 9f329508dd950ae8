//! Times written by a layout.

use std::fmt::Write;

use super::civil::Civil;
use super::instant::Instant;
use super::layout::{self, Element, OffsetForm};

pub(super) const MONTHS: [&str; 12] = [
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

/// From Sunday on.
pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The time as the layout has it.
pub(super) fn format(time: &Instant, layout: &str) -> String {
    let mut out = String::with_capacity(layout.len() + 16);
    let told = Told { local: time.local(), zone: time.zone_at(), nanosecond: time.nanosecond() };
    let mut rest = layout;
    while let Some((before, _, element, after)) = layout::next(rest) {
        out.push_str(before);
        // Writing to a string cannot fail.
        write_element(&told, element, &mut out).unwrap_or_default();
        rest = after;
    }
    out + rest
}

/// A time as its zone has it.
struct Told {
    local: Civil,
    zone: (i32, String),
    nanosecond: u32,
}

fn write_element(time: &Told, element: Element, out: &mut String) -> std::fmt::Result {
    let local = &time.local;
    let (year, hour) = (local.year, local.hour);
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let month = MONTHS[usize::from(local.month).saturating_sub(1) % 12];
    let weekday = WEEKDAYS[local.weekday() % 7];
    match element {
        Element::LongYear if year < 0 => write!(out, "-{:04}", year.unsigned_abs()),
        Element::LongYear => write!(out, "{year:04}"),
        Element::Year => write!(out, "{:02}", year.unsigned_abs() % 100),
        Element::LongMonth => out.write_str(month),
        Element::Month => out.write_str(&month[..3]),
        Element::NumberMonth => write!(out, "{}", local.month),
        Element::ZeroMonth => write!(out, "{:02}", local.month),
        Element::LongWeekday => out.write_str(weekday),
        Element::Weekday => out.write_str(&weekday[..3]),
        Element::Day => write!(out, "{}", local.day),
        Element::UnderDay => write!(out, "{:2}", local.day),
        Element::ZeroDay => write!(out, "{:02}", local.day),
        Element::UnderYearDay => write!(out, "{:3}", local.year_day()),
        Element::ZeroYearDay => write!(out, "{:03}", local.year_day()),
        Element::Hour => write!(out, "{hour:02}"),
        Element::Hour12 => write!(out, "{twelve}"),
        Element::ZeroHour12 => write!(out, "{twelve:02}"),
        Element::Minute => write!(out, "{}", local.minute),
        Element::ZeroMinute => write!(out, "{:02}", local.minute),
        Element::Second => write!(out, "{}", local.second),
        Element::ZeroSecond => write!(out, "{:02}", local.second),
        Element::Noon { capital } => out.write_str(match (capital, hour >= 12) {
            (true, true) => "PM",
            (true, false) => "AM",
            (false, true) => "pm",
            (false, false) => "am",
        }),
        Element::ZoneName => {
            let (offset, name) = &time.zone;
            if name.is_empty() {
                write_offset(*offset, OffsetForm::Minutes, out)
            } else {
                out.write_str(name)
            }
        }
        Element::Offset { zulu, form } => match time.zone.0 {
            0 if zulu => out.write_str("Z"),
            offset => write_offset(offset, form, out),
        },
        Element::Fraction { digits, trimmed, separator } => {
            let text = format!("{:09}", time.nanosecond);
            let text = &text[..digits.min(9)];
            match text.trim_end_matches('0') {
                "" if trimmed => Ok(()),
                shorter if trimmed => write!(out, "{separator}{shorter}"),
                _ => write!(out, "{separator}{text}"),
            }
        }
    }
}

fn write_offset(offset: i32, form: OffsetForm, out: &mut String) -> std::fmt::Result {
    // Less than a minute west of Greenwich is written as east, as Go has it.
    let sign = if offset <= -60 { '-' } else { '+' };
    let offset = offset.unsigned_abs();
    let colon = if form.has_colons() { ":" } else { "" };
    write!(out, "{sign}{:02}", offset / 3600)?;
    if form.has_minutes() {
        write!(out, "{colon}{:02}", offset / 60 % 60)?;
    }
    if form.has_seconds() {
        write!(out, "{colon}{:02}", offset % 60)?;
    }
    Ok(())
}
