//! Durations as Go reads and prints them: `1h30m0s`, `1.5h`, `-5m`, `0`.

use std::fmt;
use std::str::FromStr;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// A signed span of time in nanoseconds, up to about 292 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration {
    nanoseconds: i64,
}

/// Why a text is no duration, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
}

impl Duration {
    /// A duration of so many nanoseconds.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Duration {
        Duration { nanoseconds }
    }

    /// How many nanoseconds it is.
    pub const fn nanoseconds(self) -> i64 {
        self.nanoseconds
    }

    /// As a duration of the standard library; none when negative.
    pub fn to_std(self) -> Option<std::time::Duration> {
        u64::try_from(self.nanoseconds).ok().map(std::time::Duration::from_nanos)
    }
}

impl FromStr for Duration {
    type Err = Error;

    fn from_str(text: &str) -> Result<Duration, Error> {
        let invalid = || Error { message: format!("time: invalid duration {}", quoted(text)) };
        let negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Duration::default());
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        // One more than the largest positive number, for the smallest negative one.
        const MOST: u64 = 1 << 63;
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (whole, after) = digits(rest);
            let (fraction, after) = match after.strip_prefix('.') {
                Some(after) => digits(after),
                None => ("", after),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(invalid());
            }
            let unit_end =
                after.find(|char: char| char == '.' || char.is_ascii_digit()).unwrap_or(after.len());
            let (unit, after) = after.split_at(unit_end);
            let scale = scale(unit, text)?;
            let amount = match whole {
                "" => 0,
                _ => whole.parse::<u64>().ok().filter(|amount| *amount <= MOST).ok_or_else(invalid)?,
            };
            let amount = amount.checked_mul(scale).filter(|amount| *amount <= MOST).ok_or_else(invalid)?;
            let amount = amount + fraction_of(fraction, scale);
            total = total.checked_add(amount).filter(|total| *total <= MOST).ok_or_else(invalid)?;
            rest = after;
        }
        let nanoseconds = if negative {
            0i64.checked_sub_unsigned(total).ok_or_else(invalid)?
        } else {
            i64::try_from(total).map_err(|_| invalid())?
        };
        Ok(Duration { nanoseconds })
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len()))
}

fn scale(unit: &str, text: &str) -> Result<u64, Error> {
    match unit {
        "ns" => Ok(1),
        "us" | "µs" | "μs" => Ok(MICROSECOND),
        "ms" => Ok(MILLISECOND),
        "s" => Ok(SECOND),
        "m" => Ok(MINUTE),
        "h" => Ok(HOUR),
        "" => Err(Error { message: format!("time: missing unit in duration {}", quoted(text)) }),
        _ => Err(Error {
            message: format!("time: unknown unit {} in duration {}", quoted(unit), quoted(text)),
        }),
    }
}

/// A decimal fraction of a unit, by Go's arithmetic: digits an integer cannot hold are dropped, the product is a
/// float's.
fn fraction_of(digits: &str, scale: u64) -> u64 {
    let mut value: u64 = 0;
    let mut power = 1.0;
    for digit in digits.bytes() {
        if value > (i64::MAX as u64) / 10 {
            break;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > 1 << 63 {
            break;
        }
        value = next;
        power *= 10.0;
    }
    (value as f64 * (scale as f64 / power)) as u64
}

/// Text in quotes as Go's `time` writes it: bytes outside printable ASCII in hexadecimal.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            ' '..='~' | '\u{7f}' => quoted.push(char),
            _ => char
                .encode_utf8(&mut [0; 4])
                .bytes()
                .for_each(|byte| quoted.push_str(&format!("\\x{byte:02x}"))),
        }
    }
    quoted.push('"');
    quoted
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.nanoseconds.unsigned_abs();
        let sign = if self.nanoseconds < 0 { "-" } else { "" };
        let text = match total {
            0 => "0s".to_owned(),
            1..MICROSECOND => format!("{total}ns"),
            MICROSECOND..MILLISECOND => format!("{}µs", decimal(total, MICROSECOND)),
            MILLISECOND..SECOND => format!("{}ms", decimal(total, MILLISECOND)),
            _ => {
                let seconds = decimal(total % MINUTE, SECOND);
                match (total / HOUR, total / MINUTE % 60) {
                    (0, 0) => format!("{seconds}s"),
                    (0, minutes) => format!("{minutes}m{seconds}s"),
                    (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
                }
            }
        };
        write!(formatter, "{sign}{text}")
    }
}

/// A number of units with as many decimals as it needs.
fn decimal(total: u64, unit: u64) -> String {
    let (whole, fraction) = (total / unit, total % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{}", format!("{fraction:0width$}").trim_end_matches('0'))
}
