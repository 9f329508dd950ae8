//! Floating point numbers in Go's notations.

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
