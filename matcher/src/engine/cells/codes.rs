//! Codes of values: 16 bits that keep their order, for the tests of many filters at once.
//!
//! Numbers have codes in their order, so a value outside of an interval of codes is outside of the interval of numbers,
//! and one strictly inside is strictly inside. Equal codes leave a doubt, which exact constraints settle.

use super::view::Kind;

/// The code of zero. Positive numbers lie above it, negative ones below.
const ZERO: u16 = 0x7eff;
/// The largest distance of a number's code from that of zero.
const MAGNITUDE_MAX: u64 = (ZERO - PRESENT - 1) as u64;
/// Below the codes of all values, and above that of an absent one.
const PRESENT: u16 = 2;
/// Above the codes of all numbers.
const NUMBERS_END: u16 = 0xfdff;
/// The first code of truth values and texts, which share a few hundred.
const OTHERS_START: u16 = 0xfe00;
/// Magnitudes below 2 to the power of -32 share the code of zero.
const EXPONENT_MIN: u64 = (1023 - 32) << 52;
/// A code has nine bits of a number's mantissa.
const MANTISSA_SHIFT: u32 = 52 - 9;

/// From code to code, both included; `low > high` holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: u16,
    pub(super) high: u16,
}

impl Interval {
    /// Of every value and of none.
    pub(super) const ANYTHING: Self = Self { low: 0, high: u16::MAX };
    /// Of every value.
    pub(super) const VALUES: Self = Self { low: PRESENT, high: u16::MAX };
    /// Of every number.
    pub(super) const NUMBERS: Self = Self { low: PRESENT, high: NUMBERS_END };

    pub(super) fn at_least(number: f64) -> Self {
        Self { low: number_code(number), high: NUMBERS_END }
    }

    pub(super) fn at_most(number: f64) -> Self {
        Self { low: PRESENT, high: number_code(number) }
    }

    pub(super) fn between(low: f64, high: f64) -> Self {
        Self { low: number_code(low), high: number_code(high) }
    }

    /// Of the text with this number, among others.
    pub(super) fn text(number: u64) -> Self {
        let code = other_code(number);
        Self { low: code, high: code }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }
}

/// The code of a value as intervals are compared with it: with their low ends, and its complement with the complements
/// of their high ends. Whoever has the larger of the two is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueCode {
    pub(super) low: u16,
    pub(super) high: u16,
}

/// Below every interval of values, strictly inside [`Interval::ANYTHING`].
pub(super) const ABSENT: ValueCode = ValueCode { low: 1, high: u16::MAX };

impl ValueCode {
    /// The code of an attribute. An array passes every test, since any of its elements may.
    #[inline]
    pub(super) fn of(kind: Kind, bits: u64) -> Self {
        let code = match kind {
            Kind::Number => number_code(f64::from_bits(bits)),
            Kind::Text | Kind::Bool => other_code(bits),
            Kind::Array => return Self { low: u16::MAX, high: u16::MAX },
        };
        Self { low: code, high: !code }
    }
}

/// The code of a finite number; a larger number never has a smaller one.
#[inline]
fn number_code(number: f64) -> u16 {
    let magnitude = number.abs().to_bits().saturating_sub(EXPONENT_MIN) >> MANTISSA_SHIFT;
    let magnitude = magnitude.min(MAGNITUDE_MAX) as u16;
    if number < 0.0 { ZERO - magnitude } else { ZERO + magnitude }
}

#[inline]
fn other_code(bits: u64) -> u16 {
    OTHERS_START + (bits & 0xff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_the_order_of_numbers() {
        let mut numbers = vec![0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 1e-10, -1e-10];
        for index in -2_000..2_000 {
            numbers.extend([f64::from(index), f64::from(index) * 0.37, f64::from(index).powi(7)]);
        }
        numbers.sort_by(f64::total_cmp);
        let codes: Vec<u16> = numbers.iter().map(|number| number_code(*number)).collect();
        assert!(codes.is_sorted(), "{codes:?}");
        assert!(codes.iter().all(|code| (PRESENT + 1..NUMBERS_END).contains(code)));
        assert_eq!(number_code(-0.0), number_code(0.0));
        assert!(number_code(50.0) < number_code(50.1), "fine enough to decide most");
    }

    #[test]
    fn values_of_other_types_are_outside_of_intervals_of_numbers() {
        assert!((0..1_000).chain([u64::MAX]).all(|bits| other_code(bits) > Interval::NUMBERS.high));
        assert!((0..1_000).all(|bits| other_code(bits) < Interval::VALUES.high));
        let one = Interval::at_least(1.0).and(Interval::at_most(2.0));
        assert_eq!(one, Interval::between(1.0, 2.0));
    }
}
