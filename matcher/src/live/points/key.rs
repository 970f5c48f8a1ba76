//! Where a point lies in the tree.

/// Cells in a unit. A double's 53 bits and 33 behind the point cover the sphere to 0.8 mm and the largest planar
/// coordinate, 2^30, alike: one tree for both worlds, which need not tell it their size.
const CELLS_PER_UNIT: f64 = (1_u64 << 33) as f64;
/// Digits, three bits each, of a number.
const ID_DIGITS: u32 = u32::BITS.div_ceil(3);

/// A point as 64 digits of its place, each one of eight octants, and behind them those of its number: points at
/// one place are set apart too, so that a bucket never has to hold more than so many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key {
    /// The finest cell that the point is in, of each axis; the least coordinate has number 0.
    cells: [u64; 3],
    id: u32,
}

impl Key {
    #[inline]
    pub(super) fn new(id: u32, point: &[f64; 3]) -> Self {
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
