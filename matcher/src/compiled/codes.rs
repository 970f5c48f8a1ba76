//! Codes of values: 32 bits that keep their order, so that a coarse test needs no types.
//!
//! Numbers have codes in their order, so a value outside of an interval of codes is outside of the interval of numbers,
//! and one strictly inside is strictly inside. Equal codes leave a doubt, which exact constraints settle. The upper half
//! of a code is a code itself, only coarser.

use super::view::Kind;

/// The code of zero. Positive numbers lie above it, negative ones below.
const ZERO: u32 = 0x7eff_8000;
/// The largest distance of a number's code from that of zero.
const MAGNITUDE_MAX: u64 = (ZERO - PRESENT - (2 << 16)) as u64;
/// At or below the codes of all values, and above that of an absent one, in the upper half too.
pub const PRESENT: u32 = 2 << 16;
/// Above the codes of all numbers.
const NUMBERS_END: u32 = 0xfdff_ffff;
/// The first code of truth values and texts.
const OTHERS_START: u32 = 0xfe00_0000;
/// Magnitudes below 2 to the power of -32 share the code of zero.
const EXPONENT_MIN: u64 = (1023 - 32) << 52;
/// A code has 25 bits of a number's mantissa.
const MANTISSA_SHIFT: u32 = 52 - 25;

/// From code to code, both included; `low > high` holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least code.
    pub low: u32,
    /// The largest code.
    pub high: u32,
}

impl Interval {
    /// The interval of every value.
    pub const VALUES: Self = Self { low: PRESENT, high: u32::MAX };
    /// The interval of every number.
    pub const NUMBERS: Self = Self { low: PRESENT, high: NUMBERS_END };

    /// The interval of the numbers from `number` on.
    #[must_use]
    pub fn at_least(number: f64) -> Self {
        Self { low: number_code(number), high: NUMBERS_END }
    }

    /// The interval of the numbers up to `number`.
    #[must_use]
    pub fn at_most(number: f64) -> Self {
        Self { low: PRESENT, high: number_code(number) }
    }

    /// The interval of the numbers from `low` to `high`.
    #[must_use]
    pub fn between(low: f64, high: f64) -> Self {
        Self { low: number_code(low), high: number_code(high) }
    }

    /// The interval of the text with this number. Other values may have the same code.
    #[must_use]
    pub fn text(number: u64) -> Self {
        let code = other_code(number);
        Self { low: code, high: code }
    }

    /// The codes that both intervals hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }
}

/// The code of a value by its kind and bits; `None` for an array, any of whose elements may count.
#[inline]
#[must_use]
pub fn value_code(kind: Kind, bits: u64) -> Option<u32> {
    match kind {
        Kind::Number => Some(number_code(f64::from_bits(bits))),
        Kind::Text | Kind::Bool => Some(other_code(bits)),
        Kind::Array => None,
    }
}

/// The code of a finite number; a larger number never has a smaller one.
#[inline]
fn number_code(number: f64) -> u32 {
    let magnitude = number.abs().to_bits().saturating_sub(EXPONENT_MIN) >> MANTISSA_SHIFT;
    let magnitude = magnitude.min(MAGNITUDE_MAX) as u32;
    if number < 0.0 { ZERO - magnitude } else { ZERO + magnitude }
}

/// Spreads the numbers of texts, which are small, over both halves of the code.
#[inline]
fn other_code(bits: u64) -> u32 {
    OTHERS_START + (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted_numbers() -> Vec<f64> {
        let mut numbers = vec![0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 1e-10, -1e-10];
        for index in -2_000..2_000 {
            numbers.extend([f64::from(index), f64::from(index) * 0.37, f64::from(index).powi(7)]);
        }
        numbers.sort_by(f64::total_cmp);
        numbers
    }

    #[test]
    fn codes_and_their_upper_halves_keep_the_order_of_numbers() {
        let codes: Vec<u32> = sorted_numbers().into_iter().map(number_code).collect();
        assert!(codes.is_sorted(), "{codes:?}");
        assert!(codes.iter().all(|code| PRESENT >> 16 < code >> 16 && code >> 16 < NUMBERS_END >> 16));
        assert_eq!(number_code(-0.0), number_code(0.0));
        assert!(number_code(50.0) < number_code(50.000_001), "fine enough to decide nearly all");
        assert!(number_code(50.0) >> 16 < number_code(50.1) >> 16, "fine enough to decide most");
    }

    #[test]
    fn values_of_other_types_are_outside_of_intervals_of_numbers() {
        let others = (0..1_000).chain([u64::MAX]).map(other_code);
        assert!(others.clone().all(|code| code > Interval::NUMBERS.high && code < Interval::VALUES.high));
        let mut halves: Vec<u32> = others.map(|code| code >> 16).collect();
        halves.sort_unstable();
        halves.dedup();
        assert!(halves.len() > 250, "{}", halves.len());
        let one = Interval::at_least(1.0).and(Interval::at_most(2.0));
        assert_eq!(one, Interval::between(1.0, 2.0));
    }
}
