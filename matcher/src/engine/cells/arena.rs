//! Memory given out in cache lines, on huge pages; what is given back is given out again.

use super::pages::{PAGE_BYTES, Pages};

/// Bytes a line; everything given out starts at a multiple of it.
pub(super) const LINE_BYTES: usize = 64;
const LINES_PER_PAGE: usize = PAGE_BYTES / LINE_BYTES;
/// Lines up to which each size has its free list; larger sizes are powers of two.
const SMALL_MAX: usize = 512;
const SIZES: usize = SMALL_MAX + 1 + LINES_PER_PAGE.ilog2() as usize;

/// Pieces of memory, known by the number of their first line.
#[derive(Debug)]
pub(super) struct Arena {
    pages: Pages,
    /// Lines given out at least once.
    fresh: usize,
    free: Vec<Vec<u32>>,
}

impl Arena {
    pub(super) fn new() -> Self {
        Self { pages: Pages::default(), fresh: 0, free: vec![Vec::new(); SIZES + 1] }
    }

    /// A piece of `lines` lines with whatever was in it; `None` when numbers or memory are used up.
    pub(super) fn allocate(&mut self, lines: usize) -> Option<u32> {
        debug_assert!(lines <= SMALL_MAX || lines.is_power_of_two(), "no size of its own");
        if let Some(first) = self.free[size(lines)].pop() {
            return Some(first);
        }
        if self.fresh % LINES_PER_PAGE + lines > LINES_PER_PAGE
            || self.fresh == self.pages.count() * LINES_PER_PAGE
        {
            // What is left of the last page is too short for this piece and is left unused.
            self.fresh = self.pages.count() * LINES_PER_PAGE;
            // The last number stands for none.
            if self.fresh + LINES_PER_PAGE > u32::MAX as usize {
                return None;
            }
            self.pages.add()?;
        }
        let first = u32::try_from(self.fresh).ok()?;
        self.pages.reserve((self.fresh + lines) * LINE_BYTES)?;
        self.fresh += lines;
        if self.fresh % LINES_PER_PAGE > LINES_PER_PAGE / 4 {
            self.pages.prepare();
        }
        Some(first)
    }

    /// Takes a piece of `lines` lines back.
    pub(super) fn release(&mut self, first: u32, lines: usize) {
        self.free[size(lines)].push(first);
    }

    #[inline]
    pub(super) fn bytes(&self, first: u32, len: usize) -> &[u8] {
        self.pages.bytes(first as usize * LINE_BYTES, len)
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self, first: u32, len: usize) -> &mut [u8] {
        self.pages.bytes_mut(first as usize * LINE_BYTES, len)
    }

    /// Bytes that have been given out, free lists included.
    pub(super) fn footprint(&self) -> usize {
        let free: usize = self.free.iter().map(|pieces| pieces.capacity() * size_of::<u32>()).sum();
        self.fresh * LINE_BYTES + free
    }
}

fn size(lines: usize) -> usize {
    if lines <= SMALL_MAX { lines } else { SMALL_MAX + lines.ilog2() as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_and_do_not_straddle_pages() {
        let mut arena = Arena::new();
        let first = arena.allocate(3).unwrap();
        let second = arena.allocate(LINES_PER_PAGE).unwrap();
        assert_eq!(second as usize, LINES_PER_PAGE);
        arena.bytes_mut(second, PAGE_BYTES).fill(1);
        assert_eq!(arena.allocate(1).unwrap() as usize, 2 * LINES_PER_PAGE);
        arena.release(first, 3);
        assert_eq!(arena.allocate(3), Some(first));
    }
}
