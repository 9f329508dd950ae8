//! Schedules of CronJobs.

use super::checks::{Errors, invalid};

/// Bounds and names of the five fields: minute, hour, day of month, month, day of week.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const NAMED: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// What is wrong with a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    if schedule.contains("TZ") {
        return Err("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    }
    if schedule.starts_with('@') {
        let every = schedule.strip_prefix("@every ");
        return match every {
            Some(period) if period.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) => Ok(()),
            None if NAMED.contains(&schedule) => Ok(()),
            Some(period) => Err(format!("failed to parse duration {period}")),
            None => Err(format!("unrecognized descriptor: {schedule}")),
        };
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(FIELDS) {
        for range in field.split(',') {
            check_range(range, bounds)?;
        }
    }
    Ok(())
}

fn check_range(range: &str, (least, most, names): (u32, u32, &[&str])) -> Result<(), String> {
    let mut parts = range.split('/');
    let (span, step, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    if rest.is_some() {
        return Err(format!("too many slashes: {range}"));
    }
    let (start, end) = if span == "*" || span == "?" {
        (least, most)
    } else {
        let mut ends = span.split('-');
        let (first, last, more) = (ends.next().unwrap_or_default(), ends.next(), ends.next());
        if more.is_some() {
            return Err(format!("too many hyphens: {range}"));
        }
        let start = number(first, names)?;
        let end = match last {
            Some(last) => number(last, names)?,
            // `5/10` means from 5 on.
            None if step.is_some() => most,
            None => start,
        };
        (start, end)
    };
    if let Some(step) = step
        && number(step, &[])? == 0
    {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {range}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {range}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
    }
    Ok(())
}

fn number(text: &str, names: &[&str]) -> Result<u32, String> {
    if let Some(place) = names.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        // Months count from one, days of the week from zero.
        let first = u32::from(names.len() == 12);
        return Ok(u32::try_from(place).unwrap_or(0) + first);
    }
    text.parse().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing \"{text}\": invalid syntax")
    })
}

/// A time zone must look like one. Which ones exist depends on the machine, so it is not asked here.
pub(super) fn check_zone(errors: &mut Errors, path: &str, zone: &str) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_+-".contains(c);
    let plausible = zone.split('/').all(|part| !part.is_empty() && part.chars().all(allowed));
    if zone.is_empty() {
        invalid(errors, path, zone, "timeZone must be nil or non-empty string");
    } else if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        invalid(errors, path, zone, detail);
    } else if !plausible {
        invalid(errors, path, zone, format!("unknown time zone {zone}"));
    }
}
