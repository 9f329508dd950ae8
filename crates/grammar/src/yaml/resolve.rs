//! What a scalar means: the types go-yaml version 2 finds in plain text.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::compose::Scalar;

const PREFIX: &str = "tag:yaml.org,2002:";

/// A scalar with its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Typed {
    Null,
    Bool(bool),
    Int(i64),
    /// Only what no signed integer holds.
    Uint(u64),
    Float(f64),
    Text(String),
    /// Text of a date, which stays text unless a tag asks for another type.
    Timestamp,
}

impl Typed {
    fn tag(&self) -> &'static str {
        match self {
            Typed::Null => "null",
            Typed::Bool(_) => "bool",
            Typed::Int(_) | Typed::Uint(_) => "int",
            Typed::Float(_) => "float",
            Typed::Text(_) => "str",
            Typed::Timestamp => "timestamp",
        }
    }
}

/// Whether a key is the merge key.
pub(super) fn is_merge(scalar: &Scalar) -> bool {
    scalar.text == "<<" && (scalar.implicit || scalar.tag.strip_prefix(PREFIX) == Some("merge"))
}

/// Whether the text reads back as itself when nothing is put around it. What YAML 1.1 takes for a number to the base
/// of sixty does not, though nothing here reads it so.
pub(super) fn is_plain_text(text: &str) -> bool {
    text != "<<" && matches!(implicit(text, true), Typed::Text(_)) && !is_base_60(text)
}

/// `1:30`, `-1:30:59.5` and the like.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits_or_underscores = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let sexagesimal = |part: &&str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [b'0'..=b'5', digit] => digit.is_ascii_digit(),
        _ => false,
    };
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits_or_underscores(first)
        && !rest.is_empty()
        && rest.iter().all(sexagesimal)
        && digits_or_underscores(fraction)
}

/// Finds the type of a scalar; the error is a message without a place.
pub(super) fn resolve(scalar: &Scalar) -> Result<Typed, String> {
    let text = || Typed::Text(scalar.text.clone());
    if scalar.tag.is_empty() {
        return Ok(if scalar.implicit { implicit(&scalar.text, true) } else { text() });
    }
    let tag = scalar.tag.strip_prefix(PREFIX);
    match tag {
        Some("binary") => binary(&scalar.text).map(Typed::Text),
        Some(wanted @ ("bool" | "int" | "float" | "null" | "timestamp")) => {
            let found = implicit(&scalar.text, wanted == "timestamp");
            match found {
                Typed::Int(int) if wanted == "float" => Ok(Typed::Float(int as f64)),
                found if found.tag() == wanted => Ok(found),
                found => Err(format!("cannot decode !!{} `{}` as a !!{wanted}", found.tag(), scalar.text)),
            }
        }
        // Unknown tags say nothing: the scalar is text.
        _ => Ok(text()),
    }
    .map(|typed| if typed == Typed::Timestamp { text() } else { typed })
}

fn implicit(text: &str, timestamps: bool) -> Typed {
    let as_text = || Typed::Text(text.to_owned());
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Typed::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Typed::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Typed::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Typed::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Typed::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Typed::Float(f64::NEG_INFINITY),
        _ => {}
    }
    match text.as_bytes()[0] {
        b'.' => float(text).map_or_else(as_text, Typed::Float),
        b'0'..=b'9' | b'+' | b'-' => {
            if timestamps && is_timestamp(text) {
                // Without a tag Go keeps the text; the caller does the same for both.
                return Typed::Timestamp;
            }
            number(&text.replace('_', "")).unwrap_or_else(as_text)
        }
        _ => as_text(),
    }
}

fn number(text: &str) -> Option<Typed> {
    if let Some(int) = integer(text) {
        return Some(int);
    }
    if let Some(float) = float(text) {
        return Some(Typed::Float(float));
    }
    // Go tries the digits after `0b` once more as a number of their own, sign and all.
    let digits = text.strip_prefix("0b")?;
    i64::from_str_radix(digits, 2).ok().map(Typed::Int)
}

/// Integers by their prefix: `0x`, `0o` or `0` alone, `0b`, decimal.
fn integer(text: &str) -> Option<Typed> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (Some('-'), &text[1..]),
        b'+' => (Some('+'), &text[1..]),
        _ => (None, text),
    };
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match lower.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(two) if two.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    match sign {
        Some('-') => 0i64.checked_sub_unsigned(magnitude).map(Typed::Int),
        _ => match i64::try_from(magnitude) {
            Ok(int) => Some(Typed::Int(int)),
            Err(_) if sign.is_none() => Some(Typed::Uint(magnitude)),
            Err(_) => None,
        },
    }
}

/// Decimal floats that a 64-bit float can hold: what overflows is text, such as the commit `123e4567`.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let sound_mantissa =
        all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let sound_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    if !sound_mantissa || !sound_exponent {
        return None;
    }
    text.parse().ok().filter(|float: &f64| float.is_finite())
}

/// Whether text is one of the date forms go-yaml knows.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((&text[at..=at], &text[at + 1..]))),
        None => (text, None),
    };
    is_date(date)
        && match time {
            None => true,
            Some((" ", time)) => is_time(time),
            Some((_, time)) => match time.strip_suffix('Z') {
                Some(time) => is_time(time),
                None => {
                    time.rfind(['+', '-']).is_some_and(|at| is_time(&time[..at]) && is_zone(&time[at + 1..]))
                }
            },
        }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4, 4), digits(month, 1, 2), digits(day, 1, 2))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let (clock, fraction) = match text.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let below = |part, limit| digits(part, 1, 2).is_some_and(|value| value < limit);
    below(hour, 24)
        && below(minute, 60)
        && below(second, 60)
        && fraction.is_none_or(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_zone(text: &str) -> bool {
    text.split_once(':').is_some_and(|(hour, minute)| {
        digits(hour, 2, 2).is_some_and(|hour| hour <= 24)
            && digits(minute, 2, 2).is_some_and(|minute| minute <= 60)
    })
}

fn digits(text: &str, least: usize, most: usize) -> Option<u32> {
    let sound = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().ok() } else { None }
}

/// Base64 as Go's standard encoding reads it; bytes that are no UTF-8 become U+FFFD, one for each, as in Go's JSON.
fn binary(text: &str) -> Result<String, String> {
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    let joined: String = text.chars().filter(|char| !matches!(char, '\r' | '\n')).collect();
    let bytes =
        engine.decode(joined).map_err(|_| "!!binary value contains invalid base64 data".to_owned())?;
    let mut decoded = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(decoded)
}
