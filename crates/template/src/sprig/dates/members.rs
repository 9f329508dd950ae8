//! What templates can ask times, durations, months and weekdays.

use baton_grammar::duration::Duration;

use super::format::{MONTHS, WEEKDAYS};
use super::instant::Instant;
use super::zone::Zone;
use super::{Outcome, fixed, local, metered, pay, receiver, rounded, str_of};
use crate::function::Function;
use crate::function::Param::{Any, Int, Object as Typed, Str};
use crate::object::{Member, Object, Thing};
use crate::value::Value;

pub(super) const TIME_TYPE: &str = "time.Time";
const DURATION_TYPE: &str = "time.Duration";

pub(super) fn time_value(time: Instant) -> Value {
    Value::Object(Object::new(Time(time)))
}

/// A time as a value.
pub(super) struct Time(Instant);

impl Time {
    /// The time a value is.
    pub(super) fn of(value: &Value) -> Option<&Instant> {
        let Value::Object(object) = value else { return None };
        object.downcast::<Time>().map(|time| &time.0)
    }
}

impl Thing for Time {
    fn type_name(&self) -> &'static str {
        TIME_TYPE
    }

    fn kind_name(&self) -> &'static str {
        "struct"
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }

    fn member(&self, name: &str) -> Option<Member> {
        method(TIME_METHODS, name)
    }

    /// Zones count, as they do for Go.
    fn equals(&self, other: &Object) -> bool {
        other.downcast::<Time>().is_some_and(|other| {
            self.0.nanoseconds() == other.0.nanoseconds() && self.0.zone_at() == other.0.zone_at()
        })
    }

    fn json(&self) -> Result<String, String> {
        Ok(format!("\"{}\"", self.0.format("2006-01-02T15:04:05.999999999Z07:00")))
    }
}

fn method(methods: &'static [Function], name: &str) -> Option<Member> {
    methods.iter().find(|method| method.name == name).map(Member::Method)
}

const OTHER: crate::function::Param = Typed(TIME_TYPE);

static TIME_METHODS: &[Function] = &[
    fixed("Year", &[], |args| Ok(Value::Int(receiver(args, 0)?.local().year))),
    fixed("Month", &[], |args| {
        let month = receiver(args, 0)?.local().month;
        Ok(Value::Object(Object::new(Named::month(month.into()))))
    }),
    fixed("Day", &[], |args| Ok(Value::Int(receiver(args, 0)?.local().day.into()))),
    fixed("Hour", &[], |args| Ok(Value::Int(receiver(args, 0)?.local().hour.into()))),
    fixed("Minute", &[], |args| Ok(Value::Int(receiver(args, 0)?.local().minute.into()))),
    fixed("Second", &[], |args| Ok(Value::Int(receiver(args, 0)?.local().second.into()))),
    fixed("Nanosecond", &[], |args| Ok(Value::Int(receiver(args, 0)?.nanosecond().into()))),
    fixed("YearDay", &[], |args| Ok(Value::Int(receiver(args, 0)?.local().year_day()))),
    fixed("Weekday", &[], |args| {
        Ok(Value::Object(Object::new(Named::weekday(receiver(args, 0)?.local().weekday() as i64))))
    }),
    fixed("Unix", &[], |args| Ok(Value::Int64(receiver(args, 0)?.unix()))),
    fixed("UnixMilli", &[], |args| Ok(Value::Int64(thousandth(args, 1_000_000)?))),
    fixed("UnixMicro", &[], |args| Ok(Value::Int64(thousandth(args, 1_000)?))),
    // Beyond the years a duration reaches the number wraps around, as it does in Go.
    fixed("UnixNano", &[], |args| Ok(Value::Int64(thousandth(args, 1)?))),
    metered("Format", &[Str], None, |context, args| {
        pay(context, str_of(&args[1]))?;
        Ok(receiver(args, 0)?.format(str_of(&args[1])).into())
    }),
    fixed("String", &[], |args| Ok(receiver(args, 0)?.to_string().into())),
    fixed("UTC", &[], |args| Ok(time_value(receiver(args, 0)?.clone().told_in(Zone::UTC)))),
    metered("Local", &[], None, |context, args| {
        Ok(time_value(receiver(args, 0)?.clone().told_in(Zone::Region(local(context)))))
    }),
    fixed("Add", &[Any], |args| Ok(time_value(receiver(args, 0)?.plus(span(&args[1])?)))),
    fixed("AddDate", &[Int, Int, Int], |args| {
        let [years, months, days] = [1, 2, 3].map(|index| super::super::int_of(&args[index]));
        Ok(time_value(receiver(args, 0)?.plus_date(years, months, days)))
    }),
    fixed("Sub", &[OTHER], |args| {
        Ok(Value::Object(Object::new(Span(receiver(args, 0)?.since(receiver(args, 1)?)))))
    }),
    fixed("After", &[OTHER], |args| {
        Ok(Value::Bool(receiver(args, 0)?.nanoseconds() > receiver(args, 1)?.nanoseconds()))
    }),
    fixed("Before", &[OTHER], |args| {
        Ok(Value::Bool(receiver(args, 0)?.nanoseconds() < receiver(args, 1)?.nanoseconds()))
    }),
    fixed("Equal", &[OTHER], |args| {
        Ok(Value::Bool(receiver(args, 0)?.nanoseconds() == receiver(args, 1)?.nanoseconds()))
    }),
    fixed("Compare", &[OTHER], |args| {
        Ok(Value::Int(receiver(args, 0)?.nanoseconds().cmp(&receiver(args, 1)?.nanoseconds()) as i64))
    }),
    fixed("IsZero", &[], |args| {
        Ok(Value::Bool(receiver(args, 0)?.nanoseconds() == Instant::zero().nanoseconds()))
    }),
    fixed("Truncate", &[Any], |args| {
        let (time, unit) = (receiver(args, 0)?, span(&args[1])?.nanoseconds());
        Ok(time_value(if unit <= 0 { time.clone() } else { time.plus(back(time, unit)) }))
    }),
    fixed("Round", &[Any], |args| {
        let (time, unit) = (receiver(args, 0)?, span(&args[1])?.nanoseconds());
        if unit <= 0 {
            return Ok(time_value(time.clone()));
        }
        let down = back(time, unit).nanoseconds();
        let up = if -down < unit + down { 0 } else { unit };
        Ok(time_value(time.plus(Duration::from_nanoseconds(down + up))))
    }),
];

/// The time since 1970 in units of so many nanoseconds.
fn thousandth(args: &[Value], unit: i128) -> Result<i64, String> {
    Ok(receiver(args, 0)?.nanoseconds().div_euclid(unit) as i64)
}

/// How far back the last multiple of a unit is, counted from the time of year one.
fn back(time: &Instant, unit: i64) -> Duration {
    let since = time.nanoseconds() - Instant::zero().nanoseconds();
    // Less than the unit, so it fits.
    Duration::from_nanoseconds(-(since.rem_euclid(i128::from(unit)) as i64))
}

/// The duration of an argument: one, or nanoseconds.
fn span(value: &Value) -> Result<Duration, String> {
    match value {
        Value::Int(nanoseconds) | Value::Int64(nanoseconds) => Ok(Duration::from_nanoseconds(*nanoseconds)),
        Value::Object(object) if object.downcast::<Span>().is_some() => {
            Ok(object.downcast::<Span>().map(|span| span.0).unwrap_or_default())
        }
        other => Err(format!("wrong type for value; expected time.Duration; got {}", other.type_name())),
    }
}

/// A duration as a value.
struct Span(Duration);

impl Thing for Span {
    fn type_name(&self) -> &'static str {
        DURATION_TYPE
    }

    fn kind_name(&self) -> &'static str {
        "int64"
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }

    fn truth(&self) -> bool {
        self.0.nanoseconds() != 0
    }

    fn integer(&self) -> Option<i64> {
        Some(self.0.nanoseconds())
    }

    fn member(&self, name: &str) -> Option<Member> {
        method(DURATION_METHODS, name)
    }

    fn equals(&self, other: &Object) -> bool {
        other.downcast::<Span>().is_some_and(|other| self.0 == other.0)
    }

    fn json(&self) -> Result<String, String> {
        Ok(self.0.nanoseconds().to_string())
    }
}

static DURATION_METHODS: &[Function] = &[
    fixed("Hours", &[], |args| Ok(Value::Float(in_units(&args[0], 3600.0)?))),
    fixed("Minutes", &[], |args| Ok(Value::Float(in_units(&args[0], 60.0)?))),
    fixed("Seconds", &[], |args| Ok(Value::Float(in_units(&args[0], 1.0)?))),
    fixed("Milliseconds", &[], |args| Ok(Value::Int64(span(&args[0])?.nanoseconds() / 1_000_000))),
    fixed("Microseconds", &[], |args| Ok(Value::Int64(span(&args[0])?.nanoseconds() / 1_000))),
    fixed("Nanoseconds", &[], |args| Ok(Value::Int64(span(&args[0])?.nanoseconds()))),
    fixed("String", &[], |args| Ok(span(&args[0])?.to_string().into())),
    fixed("Abs", &[], |args| {
        let positive = span(&args[0])?.nanoseconds().checked_abs().unwrap_or(i64::MAX);
        Ok(span_value(Duration::from_nanoseconds(positive)))
    }),
    fixed("Round", &[Any], |args| Ok(span_value(rounded(span(&args[0])?, span(&args[1])?.nanoseconds())))),
    fixed("Truncate", &[Any], |args| {
        let (whole, unit) = (span(&args[0])?.nanoseconds(), span(&args[1])?.nanoseconds());
        let kept = if unit <= 0 { whole } else { whole - whole % unit };
        Ok(span_value(Duration::from_nanoseconds(kept)))
    }),
];

fn span_value(span: Duration) -> Value {
    Value::Object(Object::new(Span(span)))
}

fn in_units(value: &Value, seconds: f64) -> Result<f64, String> {
    let nanoseconds = span(value)?.nanoseconds();
    let unit = (seconds * 1e9) as i64;
    // Whole units and the rest apart, as Go does it: large durations would lose digits otherwise.
    Ok((nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / (seconds * 1e9))
}

/// A month or a weekday: a number with a name.
struct Named {
    type_name: &'static str,
    number: i64,
    name: &'static str,
}

impl Named {
    fn month(number: i64) -> Named {
        let index = usize::try_from(number - 1).unwrap_or(0);
        Named { type_name: "time.Month", number, name: MONTHS.get(index).copied().unwrap_or_default() }
    }

    fn weekday(number: i64) -> Named {
        let index = usize::try_from(number).unwrap_or(0);
        Named { type_name: "time.Weekday", number, name: WEEKDAYS.get(index).copied().unwrap_or_default() }
    }
}

impl Thing for Named {
    fn type_name(&self) -> &'static str {
        self.type_name
    }

    fn kind_name(&self) -> &'static str {
        "int"
    }

    fn shown(&self) -> String {
        self.name.to_owned()
    }

    fn truth(&self) -> bool {
        self.number != 0
    }

    fn integer(&self) -> Option<i64> {
        Some(self.number)
    }

    fn member(&self, name: &str) -> Option<Member> {
        method(NAMED_METHODS, name)
    }

    fn equals(&self, other: &Object) -> bool {
        other
            .downcast::<Named>()
            .is_some_and(|other| (self.type_name, self.number) == (other.type_name, other.number))
    }

    fn json(&self) -> Result<String, String> {
        Ok(self.number.to_string())
    }
}

static NAMED_METHODS: &[Function] = &[fixed("String", &[], named_text)];

fn named_text(args: &[Value]) -> Outcome {
    Ok(args[0].to_string().into())
}
