//! Floating point numbers in Go's notations.

/// A number in any of Go's notations; none where it does not fit.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let (negative, body) = match text.strip_prefix(['+', '-']) {
        Some(body) => (text.starts_with('-'), body),
        None => (false, text),
    };
    if body.starts_with(['+', '-']) {
        return None;
    }
    let hexadecimal = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X"));
    let digits = hexadecimal.unwrap_or(body);
    if !underscores_separate(digits, hexadecimal.is_some()) {
        return None;
    }
    let digits = digits.replace('_', "");
    let value = match hexadecimal {
        Some(_) => parse_hexadecimal(&digits)?,
        None => digits.parse::<f64>().ok()?,
    };
    let written_as_infinite = body.starts_with(['i', 'I']);
    (!value.is_infinite() || written_as_infinite).then_some(if negative { -value } else { value })
}

/// Whether every underscore stands between digits, or between a prefix and a digit.
pub(crate) fn underscores_separate(digits: &str, prefixed: bool) -> bool {
    let mut after_digit = prefixed;
    let mut after_underscore = false;
    for byte in digits.bytes() {
        let is_digit = byte.is_ascii_digit() || (prefixed && byte.is_ascii_hexdigit());
        if (byte == b'_' && !after_digit) || (after_underscore && !is_digit) {
            return false;
        }
        after_digit = is_digit;
        after_underscore = byte == b'_';
    }
    !after_underscore
}

/// Hexadecimal digits with a point perhaps, and a power of two.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.abs() < 5_000)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    // Sixteen digits are more than a float holds; nobody writes more.
    let value = u64::from_str_radix(digits.trim_start_matches('0'), 16)
        .ok()
        .or_else(|| (!digits.is_empty() && digits.bytes().all(|b| b == b'0')).then_some(0))?;
    let exponent = exponent - 4 * i32::try_from(fraction.len()).ok()?;
    // In two halves, so that neither overflows before the other makes up for it.
    let half = exponent / 2;
    Some(value as f64 * 2f64.powi(half) * 2f64.powi(exponent - half))
}

/// `%v`: the shortest digits that read back the same, with an exponent below 1e-4 and from 1e+06 on.
pub(crate) fn shortest(value: f64) -> String {
    general(value, None)
}

/// `%g` and `%G` (before upper-casing) with an optional precision.
pub(crate) fn general(value: f64, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let scientific = match precision {
        Some(precision) => format!("{value:.*e}", precision.max(1) - 1),
        None => format!("{value:e}"),
    };
    let (digits, exponent) = split(&scientific);
    let threshold = precision.map_or(6, |precision| precision.max(1) as i32);
    if exponent < -4 || exponent >= threshold {
        let digits = if precision.is_some() { without_trailing_zeros(digits) } else { digits };
        return with_exponent(digits, exponent);
    }
    match precision {
        Some(precision) => {
            let decimals = (precision.max(1) as i32 - 1 - exponent).max(0) as usize;
            without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
        }
        None => format!("{value}"),
    }
}

/// `%e` with a precision, six digits unless told otherwise.
pub(crate) fn exponent(value: f64, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let scientific = format!("{value:.*e}", precision.unwrap_or(6));
    let (digits, exponent) = split(&scientific);
    with_exponent(digits, exponent)
}

/// `%f` with a precision, six digits unless told otherwise.
pub(crate) fn fixed(value: f64, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    format!("{value:.*}", precision.unwrap_or(6))
}

/// `%x`: hexadecimal digits and a power of two.
pub(crate) fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let (mut mantissa, mut exponent) = parts(value);
    exponent = if mantissa == 0 { 0 } else { exponent + 52 };
    // The leading digit goes to bit 60, so that fifteen digits follow it.
    mantissa <<= 8;
    while mantissa != 0 && mantissa >> 60 == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let dropped = 60 - 4 * precision as u32;
        let extra = mantissa & ((1 << dropped) - 1);
        mantissa >>= dropped;
        let half = 1 << (dropped - 1);
        mantissa += u64::from(extra > half || (extra == half && mantissa & 1 == 1));
        mantissa <<= dropped;
        if mantissa >> 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let leading = mantissa >> 60;
    let digits = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let fraction = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(precision) => format!("{digits:0<precision$}")[..precision].to_owned(),
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}0x{leading}{point}{fraction}p{exponent_sign}{:02}", exponent.abs())
}

/// `%b`: a whole number and a power of two.
pub(crate) fn binary(value: f64) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let (mantissa, exponent) = parts(value);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{mantissa}p{exponent:+}")
}

/// A finite number as a whole number times a power of two.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52 & 0x7ff) as i32 {
        0 => (fraction, -1074),
        exponent => (fraction | 1 << 52, exponent - 1075),
    }
}

fn not_finite(value: f64) -> String {
    let text = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    };
    text.to_owned()
}

fn split(scientific: &str) -> (&str, i32) {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (digits, exponent.parse().unwrap_or(0))
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
