//! Where a point lies in the tree.

use std::cmp::Ordering;

/// Cells in a unit. A double's 53 bits and 33 behind the point cover the sphere to 0.8 mm and the largest planar
/// coordinate, 2^30, alike: one tree for both worlds, which need not tell it their size.
const CELLS_PER_UNIT: f64 = (1_u64 << 33) as f64;
/// Digits, three bits each, of a number.
const ID_DIGITS: u32 = u32::BITS.div_ceil(3);
/// Digits of a key.
pub(super) const DIGITS: u32 = u64::BITS + ID_DIGITS;
/// Bytes of a key that is written out.
pub(in crate::live) const KEY_BYTES: usize = 28;

/// A point as 64 digits of its place, each one of eight octants, and behind them those of its number: points at
/// one place are set apart too, so that a bucket never has to hold more than so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::live) struct Key {
    /// The finest cell that the point is in, of each axis; the least coordinate has number 0.
    cells: [u64; 3],
    id: u32,
}

impl Key {
    #[inline]
    pub(in crate::live) fn new(id: u32, point: &[f64; 3]) -> Self {
        Self { cells: point.map(cell), id }
    }

    /// The height of the first digit in which two keys differ, counted from the last one.
    #[inline]
    pub(super) fn parting(&self, other: &Self) -> Option<u32> {
        let [x, y, z] = [0, 1, 2].map(|axis| self.cells[axis] ^ other.cells[axis]);
        match (x | y | z).checked_ilog2() {
            Some(bit) => Some(ID_DIGITS + bit),
            None => (self.id ^ other.id).checked_ilog2().map(|bit| bit / 3),
        }
    }

    /// The digit of a height, below eight.
    #[inline]
    pub(super) fn digit(&self, height: u32) -> usize {
        match height.checked_sub(ID_DIGITS) {
            Some(bit) => {
                let [x, y, z] = self.cells.map(|cell| usize::from(cell >> bit & 1 == 1));
                x | y << 1 | z << 2
            }
            None => (self.id >> (3 * height)) as usize & 7,
        }
    }

    /// The box of all points that have the digits above a height in common with this one, cut in two across each
    /// axis: the lower and the upper half of x, of y and of z, from the least to the largest coordinate. The
    /// borders are rounded, but rounding keeps order: a point of a half is never outside of its borders.
    #[inline]
    pub(super) fn halves(&self, height: u32) -> [[[f64; 2]; 2]; 3] {
        self.cells.map(|cell| {
            let Some(bit) = height.checked_sub(ID_DIGITS) else {
                // All are in one cell.
                let whole = [coordinate(cell, 0.0), coordinate(cell, 1.0)];
                return [whole, whole];
            };
            let mask = u64::MAX >> (63 - bit);
            let middle = coordinate((cell & !mask) | 1 << bit, 0.0);
            [[coordinate(cell & !mask, 0.0), middle], [middle, coordinate(cell | mask, 1.0)]]
        })
    }
}

/// Keys of regions: all keys that have their first digits in common and any in the `free` last ones.
impl Key {
    /// The least key of a region.
    pub(super) fn least(&self, free: u32) -> Self {
        let (cells, id) = free_bits(free);
        Self { cells: self.cells.map(|cell| cell & !cells), id: self.id & !id }
    }

    /// The greatest key of a region.
    pub(super) fn greatest(&self, free: u32) -> Self {
        let (cells, id) = free_bits(free);
        Self { cells: self.cells.map(|cell| cell | cells), id: self.id | id }
    }

    /// The least key of those that have the digits above a height in common with this one, and this digit there.
    pub(super) fn child(&self, height: u32, digit: usize) -> Self {
        let mut key = self.least(height + 1);
        match height.checked_sub(ID_DIGITS) {
            Some(bit) => {
                for (axis, cell) in key.cells.iter_mut().enumerate() {
                    *cell |= u64::from(digit >> axis & 1 == 1) << bit;
                }
            }
            None => key.id |= u32::try_from(digit).expect("a digit is below eight") << (3 * height),
        }
        key
    }

    /// The least corner of the finest cell that the point is in.
    pub(in crate::live) fn corner(&self) -> [f64; 3] {
        self.cells.map(|cell| coordinate(cell, 0.0))
    }

    /// The box of all points of a region, from the least to the largest coordinates.
    pub(super) fn extent(&self, free: u32) -> [[f64; 3]; 2] {
        let greatest = self.greatest(free).cells.map(|cell| coordinate(cell, 1.0));
        [self.least(free).corner(), greatest]
    }

    pub(in crate::live) fn to_bytes(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        let cells = self.cells.iter().flat_map(|cell| cell.to_be_bytes());
        for (byte, told) in bytes.iter_mut().zip(cells.chain(self.id.to_be_bytes())) {
            *byte = told;
        }
        bytes
    }

    pub(in crate::live) fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Self {
        let read = |at: usize| bytes[at..at + 8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let id = bytes[24..].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        Self { cells: [read(0), read(8), read(16)], id }
    }
}

/// By their digits, the first one first: the order of a walk through the tree.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let parting = self.parting(other);
        parting.map_or(Ordering::Equal, |height| self.digit(height).cmp(&other.digit(height)))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The bits that the last digits have of each cell, and of the number.
fn free_bits(free: u32) -> (u64, u32) {
    let cells = u64::MAX.checked_shr(DIGITS - free.max(ID_DIGITS)).unwrap_or(0);
    let id = u32::MAX.checked_shr(u32::BITS.saturating_sub(3 * free)).unwrap_or(0);
    (cells, id)
}

/// The sign bit is turned so that negative coordinates come first.
const SIGN: u64 = 1 << 63;

#[inline]
fn cell(coordinate: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "whole, and positions are below 2^30 units")]
    let cell = (coordinate * CELLS_PER_UNIT).floor() as i64;
    cell.cast_unsigned() ^ SIGN
}

/// The coordinate of the border that is `above` cells above a cell's lower border.
#[inline]
fn coordinate(cell: u64, above: f64) -> f64 {
    ((cell ^ SIGN).cast_signed() as f64 + above) / CELLS_PER_UNIT
}
