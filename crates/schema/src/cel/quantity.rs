//! Kubernetes quantities (`500m`, `1Gi`) as CEL values.

use cel::objects::Opaque;

/// The name of the type in expressions.
pub(super) const TYPE: &str = "kubernetes.Quantity";

/// What is said of text that is none.
pub(super) const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// An amount in billionths, the finest a quantity can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quantity(i128);

const BILLION: i128 = 1_000_000_000;

impl Opaque for Quantity {
    fn runtime_type_name(&self) -> &str {
        TYPE
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Quantity(i128::from(number) * BILLION)
    }
}

impl Quantity {
    /// Reads a quantity; finer parts than a billionth are rounded up, as upstream does.
    pub(super) fn parse(text: &str) -> Option<Quantity> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || number.len() > 40 {
            return None;
        }
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        let (times, tens) = scale(suffix)?;
        let tens = tens + 9 - i32::try_from(fraction.len()).ok()?;
        let scaled = digits.checked_mul(times)?;
        let power = 10_i128.checked_pow(tens.unsigned_abs());
        let amount = match (tens >= 0, power) {
            (true, Some(power)) => scaled.checked_mul(power)?,
            (true, None) if scaled == 0 => 0,
            (true, None) => return None,
            (false, Some(power)) => scaled / power + i128::from(scaled % power != 0),
            (false, None) => i128::from(scaled != 0),
        };
        Some(Quantity(if negative { -amount } else { amount }))
    }

    pub(super) fn plus(self, other: Quantity) -> Option<Quantity> {
        self.0.checked_add(other.0).map(Quantity)
    }

    pub(super) fn negated(self) -> Quantity {
        Quantity(self.0.saturating_neg())
    }

    pub(super) fn integer(self) -> Option<i64> {
        if self.0 % BILLION == 0 { i64::try_from(self.0 / BILLION).ok() } else { None }
    }

    pub(super) fn float(self) -> f64 {
        self.0 as f64 / BILLION as f64
    }
}

/// What a suffix multiplies by: a factor and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(at) = BINARY.iter().position(|known| *known == suffix) {
        return Some((1_i128 << (10 * (at + 1)), 0));
    }
    let tens = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
            if !(-64..=64).contains(&exponent) {
                return None;
            }
            exponent
        }
    };
    Some((1, tens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_and_compared() {
        for (text, billionths) in [
            ("1", Some(BILLION)),
            ("500m", Some(BILLION / 2)),
            ("0.5", Some(BILLION / 2)),
            (".5", Some(BILLION / 2)),
            ("1Ki", Some(1024 * BILLION)),
            ("1k", Some(1000 * BILLION)),
            ("1e3", Some(1000 * BILLION)),
            ("1E", Some(1_000_000_000_000_000_000 * BILLION)),
            ("-1.5", Some(-BILLION * 3 / 2)),
            ("0.0000000001", Some(1)),
            ("", None),
            ("m", None),
            ("1x", None),
            ("1.2.3", None),
            ("1e999", None),
            ("99999999999999999999999999999999999999", None),
        ] {
            assert_eq!(Quantity::parse(text).map(|quantity| quantity.0), billionths, "{text}");
        }
        assert_eq!(Quantity::parse("2k").and_then(Quantity::integer), Some(2000));
        assert_eq!(Quantity::parse("1500m").and_then(Quantity::integer), None);
        let (half, one) = (Quantity::parse("500m").expect("valid"), Quantity::from(1));
        assert!(half < one);
        assert_eq!(half.plus(half), Some(one));
        assert_eq!(one.plus(half.negated()), Some(half));
    }
}
