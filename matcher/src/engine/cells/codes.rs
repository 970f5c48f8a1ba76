//! Codes of values in 16 bits, for the tests of many filters at once: the upper halves of those of all engines.

use crate::compiled::codes::{self, PRESENT};
use crate::compiled::view::Kind;

/// From code to code, both included; `low > high` holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: u16,
    pub(super) high: u16,
}

impl Interval {
    /// The interval that holds every value, and the absence of one.
    pub(super) const ANYTHING: Self = Self { low: 0, high: u16::MAX };

    pub(super) fn and(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }
}

impl From<codes::Interval> for Interval {
    fn from(interval: codes::Interval) -> Self {
        Self { low: upper_half(interval.low), high: upper_half(interval.high) }
    }
}

/// The code of a value as intervals are compared with it: with their low ends, and its complement with the complements
/// of their high ends. A value is outside where the interval has the larger number in either comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueCode {
    pub(super) low: u16,
    pub(super) high: u16,
}

/// Below every interval of values, strictly inside [`Interval::ANYTHING`].
pub(super) const ABSENT: ValueCode = ValueCode { low: 1, high: u16::MAX };
const _: () = assert!(PRESENT >> 16 > ABSENT.low as u32);

impl ValueCode {
    /// The code of an attribute. An array passes every test, since any of its elements may.
    #[inline]
    pub(super) fn of(kind: Kind, bits: u64) -> Self {
        match codes::value_code(kind, bits).map(upper_half) {
            Some(code) => Self { low: code, high: !code },
            None => Self { low: u16::MAX, high: u16::MAX },
        }
    }
}

#[inline]
fn upper_half(code: u32) -> u16 {
    (code >> 16) as u16
}
