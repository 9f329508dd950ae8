//! Times and durations.
//!
//! The clock and the local zone are the caller's ([`crate::Execution`]).

mod civil;
mod format;
mod instant;
mod layout;
mod members;
mod parse;
mod zone;

use baton_grammar::duration::Duration;
use jiff::tz::TimeZone;

use self::instant::Instant;
use self::members::{Time, time_value};
use self::zone::Zone;
use super::{Outcome, fixed, metered, str_of};
use crate::function::Param::{Any, Object, Str};
use crate::function::{Context, Function, Param};
use crate::value::Value;

const TIME: Param = Object(members::TIME_TYPE);
const DAY_LAYOUT: &str = "2006-01-02";
const SECOND: i64 = 1_000_000_000;

pub(super) static FUNCTIONS: &[Function] = &[
    metered("now", &[], None, |context, _| Ok(time_value(now(context)?))),
    metered("date", &[Str, Any], None, |context, args| dated(context, str_of(&args[0]), &args[1], "Local")),
    metered("dateInZone", &[Str, Any, Str], None, |context, args| {
        dated(context, str_of(&args[0]), &args[1], str_of(&args[2]))
    }),
    metered("date_in_zone", &[Str, Any, Str], None, |context, args| {
        dated(context, str_of(&args[0]), &args[1], str_of(&args[2]))
    }),
    metered("htmlDate", &[Any], None, |context, args| dated(context, DAY_LAYOUT, &args[0], "Local")),
    metered("htmlDateInZone", &[Any, Str], None, |context, args| {
        dated(context, DAY_LAYOUT, &args[0], str_of(&args[1]))
    }),
    fixed("dateModify", &[Str, TIME], |args| Ok(moved(args).unwrap_or_else(|_| args[1].clone()))),
    fixed("date_modify", &[Str, TIME], |args| Ok(moved(args).unwrap_or_else(|_| args[1].clone()))),
    fixed("mustDateModify", &[Str, TIME], moved),
    fixed("must_date_modify", &[Str, TIME], moved),
    metered("ago", &[Any], None, |context, args| {
        let age = now(context)?.since(&time_of(context, &args[0])?);
        Ok(rounded(age, SECOND).to_string().into())
    }),
    fixed("duration", &[Any], |args| {
        let seconds = match &args[0] {
            Value::Str(text) => saturating(text),
            Value::Int64(seconds) => *seconds,
            _ => 0,
        };
        Ok(Duration::from_nanoseconds(seconds.wrapping_mul(SECOND)).to_string().into())
    }),
    metered("durationRound", &[Any], None, |context, args| {
        let nanoseconds = match &args[0] {
            Value::Str(text) => text.parse::<Duration>().unwrap_or_default().nanoseconds(),
            Value::Int64(nanoseconds) => *nanoseconds,
            value => match Time::of(value) {
                Some(time) => now(context)?.since(time).nanoseconds(),
                None => 0,
            },
        };
        Ok(coarse(nanoseconds.unsigned_abs()).into())
    }),
    metered("toDate", &[Str, Str], None, |context, args| {
        pay(context, str_of(&args[0]))?;
        let time = parse::parse(str_of(&args[0]), str_of(&args[1]), &local(context));
        Ok(time_value(time.unwrap_or_else(|_| Instant::zero())))
    }),
    metered("mustToDate", &[Str, Str], None, |context, args| {
        pay(context, str_of(&args[0]))?;
        parse::parse(str_of(&args[0]), str_of(&args[1]), &local(context)).map(time_value)
    }),
    fixed("unixEpoch", &[TIME], |args| Ok(receiver(args, 0)?.unix().to_string().into())),
];

/// A time so long from now, in UTC.
pub(super) fn in_utc(context: &Context<'_>, later: Duration, layout: &str) -> Result<String, String> {
    Ok(now(context)?.plus(later).told_in(Zone::UTC).format(layout))
}

fn now(context: &Context<'_>) -> Result<Instant, String> {
    context.now().map(Instant::new)
}

impl Value {
    /// A time, told in its own zone: Go's `time.Time`.
    pub fn time(at: &jiff::Zoned) -> Value {
        time_value(Instant::new(at))
    }
}

/// The zone times are told in unless another is named: the clock's, UTC where there is none.
fn local(context: &Context<'_>) -> TimeZone {
    context.now().map_or(TimeZone::UTC, |now| now.time_zone().clone())
}

/// A time, or one given as seconds after 1970; now for anything else, floats among them, as sprig has it.
fn time_of(context: &Context<'_>, value: &Value) -> Result<Instant, String> {
    match value {
        Value::Int(seconds) | Value::Int64(seconds) => {
            Ok(Instant::from_unix(*seconds, Zone::Region(local(context))))
        }
        value => Time::of(value).map_or_else(|| now(context), |time| Ok(time.clone())),
    }
}

/// Pays for a layout: every character may be an element of it.
fn pay(context: &mut Context<'_>, layout: &str) -> Result<(), String> {
    context.budget.pay(1 + layout.len() as u64 / 16)
}

/// A time by a layout, in a zone; in UTC if nobody knows the zone.
fn dated(context: &mut Context<'_>, layout: &str, value: &Value, zone: &str) -> Outcome {
    pay(context, layout)?;
    let zone = Zone::named(zone, &local(context)).unwrap_or(Zone::UTC);
    Ok(time_of(context, value)?.told_in(zone).format(layout).into())
}

/// The time of the argument, which the engine has checked to be one.
fn receiver(args: &[Value], index: usize) -> Result<&Instant, String> {
    args.get(index).and_then(Time::of).ok_or_else(|| "not a time".to_owned())
}

fn moved(args: &[Value]) -> Outcome {
    let span = str_of(&args[0]).parse::<Duration>().map_err(|error| error.to_string())?;
    Ok(time_value(receiver(args, 1)?.plus(span)))
}

/// A number in decimal; the largest or smallest there is if it is beyond them, zero if it is none.
fn saturating(text: &str) -> i64 {
    text.parse().unwrap_or_else(|error: std::num::ParseIntError| match error.kind() {
        std::num::IntErrorKind::PosOverflow => i64::MAX,
        std::num::IntErrorKind::NegOverflow => i64::MIN,
        _ => 0,
    })
}

/// The duration to the next multiple of a unit, halves away from zero.
fn rounded(span: Duration, unit: i64) -> Duration {
    let nanoseconds = span.nanoseconds();
    if unit <= 0 {
        return span;
    }
    let over = nanoseconds % unit;
    let down = nanoseconds - over;
    if over.unsigned_abs() < unit.unsigned_abs() - over.unsigned_abs() {
        return Duration::from_nanoseconds(down);
    }
    Duration::from_nanoseconds(down.saturating_add(if nanoseconds < 0 { -unit } else { unit }))
}

/// In the largest unit there is more than one of.
fn coarse(nanoseconds: u64) -> String {
    const UNITS: [(&str, u64); 6] =
        [("y", 365 * 86_400), ("mo", 30 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let unit = UNITS.into_iter().map(|(name, seconds)| (name, seconds * SECOND as u64));
    match unit.into_iter().find(|(_, unit)| nanoseconds > *unit) {
        Some((name, unit)) => format!("{}{name}", nanoseconds / unit),
        None => "0s".to_owned(),
    }
}
