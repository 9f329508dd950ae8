//! Decimal fractions of any length: sums of tenths come out as tenths.

use num_bigint::{BigInt, Sign};

use crate::float;

/// Digits after the point a quotient is rounded to.
const QUOTIENT_DIGITS: i64 = 16;

/// `digits * 10^exponent`.
#[derive(Debug, Clone)]
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i64,
}

impl Decimal {
    /// The number written with the fewest digits that read back as the float.
    ///
    /// # Errors
    /// What is no number, or not finite.
    pub(super) fn new(value: f64) -> Result<Decimal, String> {
        if !value.is_finite() {
            return Err(format!("Cannot create a Decimal from {}", float::shortest(value)));
        }
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i64);
        let digits = mantissa.replace('.', "").parse().unwrap_or_default();
        Ok(Decimal { digits, exponent: exponent.parse::<i64>().unwrap_or(0) - decimals })
    }

    /// The nearest float.
    pub(super) fn float(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN)
    }

    /// How much memory and work the number is.
    pub(super) fn size(&self) -> usize {
        self.digits.bits() as usize / 8
    }

    pub(super) fn plus(&self, other: &Decimal) -> Decimal {
        let exponent = self.exponent.min(other.exponent);
        Decimal { digits: self.scaled(exponent) + other.scaled(exponent), exponent }
    }

    pub(super) fn minus(&self, other: &Decimal) -> Decimal {
        let exponent = self.exponent.min(other.exponent);
        Decimal { digits: self.scaled(exponent) - other.scaled(exponent), exponent }
    }

    pub(super) fn times(&self, other: &Decimal) -> Decimal {
        Decimal { digits: &self.digits * &other.digits, exponent: self.exponent + other.exponent }
    }

    /// # Errors
    /// Division by zero.
    pub(super) fn over(&self, other: &Decimal) -> Result<Decimal, String> {
        if other.digits.sign() == Sign::NoSign {
            return Err("decimal division by 0".to_owned());
        }
        // Both as whole numbers of the same unit, the dividend with the digits the quotient shall have.
        let unit = (self.exponent + QUOTIENT_DIGITS).min(other.exponent);
        let dividend = Decimal { digits: self.digits.clone(), exponent: self.exponent + QUOTIENT_DIGITS };
        let (dividend, divisor) = (dividend.scaled(unit), other.scaled(unit));
        let (mut quotient, remainder) = (&dividend / &divisor, &dividend % &divisor);
        if remainder.magnitude() * 2u32 >= *divisor.magnitude() {
            quotient += if dividend.sign() == divisor.sign() { 1 } else { -1 };
        }
        Ok(Decimal { digits: quotient, exponent: -QUOTIENT_DIGITS })
    }

    /// The digits of the number in units of `10^exponent`, which is no coarser than its own.
    fn scaled(&self, exponent: i64) -> BigInt {
        let power = u32::try_from(self.exponent - exponent).unwrap_or(0);
        &self.digits * BigInt::from(10).pow(power)
    }
}
