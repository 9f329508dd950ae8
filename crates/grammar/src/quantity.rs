//! Resource quantities: `500m`, `1.5Gi`, `2e3`.

use std::cmp::Ordering;

/// What is said of text that is no quantity.
pub const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// An exact amount, to a thousand-millionth; finer fractions are rounded up, as Kubernetes does. Amounts are equal however
/// they were written.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

/// How the amount was written, which is how it is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

const NANOS: i128 = 1_000_000_000;
/// Amounts beyond this are capped to it.
const LARGEST: i128 = i64::MAX as i128 * NANOS;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Reads an amount; `None` where the text is none.
    pub fn parse(text: &str) -> Option<Quantity> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
        let (number, suffix) = digits.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let (form, ten, two) = scale(suffix)?;
        let nanos = amount(whole, fraction, ten, two);
        Some(Quantity { nanos: if negative { -nanos } else { nanos }, form })
    }

    /// Whether it is less than nothing.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The sum; `None` where it is too large to hold.
    pub fn plus(self, other: Quantity) -> Option<Quantity> {
        Some(Quantity { nanos: self.nanos.checked_add(other.nanos)?, form: self.form })
    }

    /// As much below nothing as this is above.
    pub fn negated(self) -> Quantity {
        Quantity { nanos: self.nanos.saturating_neg(), form: self.form }
    }

    /// The amount as a whole number, where it is one.
    pub fn integer(self) -> Option<i64> {
        if self.nanos % NANOS == 0 { i64::try_from(self.nanos / NANOS).ok() } else { None }
    }

    /// The nearest floating-point number.
    pub fn float(self) -> f64 {
        self.nanos as f64 / NANOS as f64
    }

    /// The amount in thousandths, rounded up.
    pub fn milli(self) -> i128 {
        const NANOS_IN_MILLI: i128 = 1_000_000;
        self.nanos.div_euclid(NANOS_IN_MILLI) + i128::from(self.nanos.rem_euclid(NANOS_IN_MILLI) != 0)
    }

    /// The one way this amount is written: no fraction, the largest suffix that allows that.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let whole = self.nanos % NANOS == 0;
        if self.form == Form::Binary && whole && self.nanos.abs() >= 1024 * NANOS {
            let units = self.nanos / NANOS;
            let fits = |bits: u32| units % (1i128 << bits) == 0;
            let (suffix, bits) =
                BINARY_SUFFIXES.into_iter().rev().find(|&(_, bits)| fits(bits)).unwrap_or(("", 0));
            return format!("{}{suffix}", units >> bits);
        }
        let mut mantissa = self.nanos;
        let mut exponent = -9;
        while exponent < 18 && mantissa % 1000 == 0 {
            mantissa /= 1000;
            exponent += 3;
        }
        if self.form == Form::Exponent {
            return if exponent == 0 { mantissa.to_string() } else { format!("{mantissa}e{exponent}") };
        }
        let suffix =
            DECIMAL_SUFFIXES.iter().find(|(_, power)| *power == exponent).map_or("", |(suffix, _)| suffix);
        format!("{mantissa}{suffix}")
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Quantity { nanos: i128::from(number) * NANOS, form: Form::Decimal }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// The form a suffix means, with its powers of ten and two.
fn scale(suffix: &str) -> Option<(Form, i32, u32)> {
    if let Some(&(_, power)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some((Form::Decimal, power, 0));
    }
    if let Some(&(_, bits)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some((Form::Binary, 0, bits));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Beyond these every amount is nothing or the largest there is.
    let power: i32 = exponent.parse().unwrap_or(if exponent.starts_with('-') { -1000 } else { 1000 });
    Some((Form::Exponent, power.clamp(-1000, 1000), 0))
}

/// The amount in nanos, rounded up and capped. Leading zeros aside, digits past the cap need not be read.
fn amount(whole: &str, fraction: &str, ten: i32, two: u32) -> i128 {
    let mut digits = format!("{whole}{fraction}");
    let mut power = ten.saturating_add(9).saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
    let significant = digits.trim_start_matches('0').len();
    digits.drain(..digits.len() - significant);
    if digits.is_empty() {
        return 0;
    }
    // Fold the power of ten into the digits, remembering whether anything that matters for rounding was cut off.
    let mut cut = false;
    const MOST_DIGITS: usize = 60;
    while power < 0 && !digits.is_empty() && two == 0 {
        cut |= digits.pop() != Some('0');
        power += 1;
    }
    if power < 0 && two == 0 {
        return 1;
    }
    let zeros = usize::try_from(power).unwrap_or(0);
    if digits.len() + zeros > MOST_DIGITS {
        return LARGEST;
    }
    digits.extend(std::iter::repeat_n('0', zeros));
    let mut nanos: i128 = 0;
    for digit in digits.bytes() {
        nanos = nanos.saturating_mul(10).saturating_add(i128::from(digit - b'0'));
        if nanos > LARGEST.saturating_mul(1 << 20) {
            return LARGEST;
        }
    }
    nanos = nanos.saturating_mul(1i128 << two);
    while power < 0 {
        cut |= nanos % 10 != 0;
        nanos /= 10;
        power += 1;
    }
    (nanos + i128::from(cut)).min(LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_in_their_one_form() {
        for (text, expected) in [
            ("0", "0"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1000", "1k"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1024Ki", "1Mi"),
            ("1000Ki", "1000Ki"),
            ("128974848", "128974848"),
            ("129e6", "129e6"),
            ("12e2", "1200"),
            ("1E3", "1e3"),
            ("1E", "1E"),
            ("+1", "1"),
            ("-1.5", "-1500m"),
            (".5", "500m"),
            ("5.", "5"),
            ("0.1n", "1n"),
            ("00100m", "100m"),
            ("1e-3", "1e-3"),
        ] {
            assert_eq!(Quantity::parse(text).map(Quantity::canonical).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", ".", "-", "1 ", "1KiB", "abc", "1e", "1e+", "1..2", "1.2.3", "0x10", "1ki", "NaN"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }

    #[test]
    fn huge_and_tiny_amounts_stay_in_bounds() {
        let largest = Quantity::from(i64::MAX);
        for text in ["1e1000", "999999999999999999999999999999999E", "9e99999999999", "16Ei"] {
            assert_eq!(Quantity::parse(text), Some(largest), "{text}");
        }
        assert_eq!(Quantity::parse("1e-1000").expect("a number").canonical(), "1e-9");
        assert_eq!(Quantity::parse(&"9".repeat(5000)), Some(largest));
    }

    #[test]
    fn amounts_compare_and_add_across_suffixes() {
        let read = |text| Quantity::parse(text).expect("a number");
        assert_eq!(read("1Gi"), read("1024Mi"));
        assert!(read("1G") < read("1Gi"));
        assert_eq!(read("0.0001").milli(), 1);
        assert_eq!(read("500m").plus(read("0.5")), Some(Quantity::from(1)));
        assert_eq!(read("1").plus(read("500m").negated()), Some(read("500m")));
    }

    #[test]
    fn amounts_turn_into_numbers() {
        let read = |text| Quantity::parse(text).expect("a number");
        assert_eq!(read("2k").integer(), Some(2000));
        assert_eq!(read("1500m").integer(), None);
        assert!((read("1500m").float() - 1.5).abs() < f64::EPSILON);
    }

    proptest::proptest! {
        #[test]
        fn the_one_form_reads_back_as_itself(text in "[-+]?[0-9]{0,30}(\\.[0-9]{0,20})?(m|k|Ki|Gi|E|n|e-?[0-9]{1,4})?") {
            if let Some(read) = Quantity::parse(&text) {
                let written = read.canonical();
                let again = Quantity::parse(&written).expect("what is written can be read");
                proptest::prop_assert_eq!(again, read);
                proptest::prop_assert_eq!(again.canonical(), written);
            }
        }
    }
}
