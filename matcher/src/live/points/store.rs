//! Parts of the tree: nodes, leaves, and memory for them that is used again.

use std::ops::{Index, IndexMut};

use super::key::Key;

/// Points a leaf holds, at most as many as there are bits in a mask. In a city of 200,000 on the sphere circles of twenty took
/// half as long again with 8, and as long with 16 (2026-11-21, a busy machine).
pub(super) const LEAF_LEN: usize = 32;
/// A node that holds so few becomes a leaf again. Half a leaf, so that points that come and go at the border do not
/// split and merge it each time.
pub(super) const MERGE_LEN: u32 = 16;

/// Link to a part of the tree: nothing, a leaf or a node, in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u32);

/// A link, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Nothing,
    Leaf(u32),
    Node(u32),
}

const NODE: u32 = 1 << 31;

impl Link {
    pub(super) const NOTHING: Self = Self(u32::MAX);

    #[inline]
    pub(super) fn leaf(index: u32) -> Self {
        Self(index)
    }

    #[inline]
    pub(super) fn node(index: u32) -> Self {
        Self(index | NODE)
    }

    #[inline]
    pub(super) fn target(self) -> Target {
        match self.0 {
            u32::MAX => Target::Nothing,
            index if index & NODE == 0 => Target::Leaf(index),
            index => Target::Node(index & !NODE),
        }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::NOTHING
    }
}

/// A fork with at least two children. Forks are only where points part: a crowd in a wide world hangs a few steps below
/// the root, not one for each halving of the world.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Node {
    /// Key of some point below. All points below share its digits above `height`.
    pub(super) key: Key,
    /// Number of the digit that tells the children apart.
    pub(super) height: u32,
    /// Number of points below.
    pub(super) len: u32,
    pub(super) children: [Link; 8],
}

impl Node {
    /// A bit for each child that there is.
    #[inline]
    pub(super) fn present(&self) -> u32 {
        (0..8).map(|digit| u32::from(self.children[digit] != Link::NOTHING) << digit).sum()
    }
}

/// Points side by side that are tested together.
pub(super) const LANES: usize = 4;

/// Up to [`LEAF_LEN`] points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    len: u32,
    ids: [u32; LEAF_LEN],
    /// By four: their x, their y, their z.
    blocks: [[[f64; LANES]; 3]; LEAF_LEN / LANES],
}

impl Default for Leaf {
    fn default() -> Self {
        Self { len: 0, ids: [0; LEAF_LEN], blocks: [[[0.0; LANES]; 3]; LEAF_LEN / LANES] }
    }
}

impl Leaf {
    #[inline]
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids[..self.len as usize]
    }

    /// Blocks of its points, four points each. Places behind the last point mean nothing.
    #[inline]
    pub(super) fn blocks(&self) -> &[[[f64; LANES]; 3]] {
        &self.blocks[..self.ids().len().div_ceil(LANES)]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, [f64; 3])> {
        self.ids().iter().enumerate().map(|(index, id)| (*id, self.point(index)))
    }

    pub(super) fn is_full(&self) -> bool {
        self.ids().len() == LEAF_LEN
    }

    /// Takes one in; the caller has looked whether there is room.
    pub(super) fn push(&mut self, id: u32, point: [f64; 3]) {
        self.put(self.ids().len(), id, point);
        self.len += 1;
    }

    pub(super) fn position(&self, id: u32, point: &[f64; 3]) -> Option<usize> {
        (0..self.ids().len()).find(|index| self.ids[*index] == id && self.point(*index) == *point)
    }

    pub(super) fn swap_remove(&mut self, index: usize) {
        let last = self.ids().len() - 1;
        self.put(index, self.ids[last], self.point(last));
        self.len -= 1;
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline]
    fn point(&self, index: usize) -> [f64; 3] {
        self.blocks[index / LANES].map(|axis| axis[index % LANES])
    }

    fn put(&mut self, index: usize, id: u32, point: [f64; 3]) {
        self.ids[index] = id;
        for (axis, coordinate) in self.blocks[index / LANES].iter_mut().zip(point) {
            axis[index % LANES] = coordinate;
        }
    }
}

/// Elements a page: growth takes memory by some ten kilobytes and never copies what is held.
const PAGE_LEN: usize = 64;

/// Elements of one kind under numbers; a number given back is given out again.
#[derive(Debug)]
pub(super) struct Store<T> {
    pages: Vec<Box<[T; PAGE_LEN]>>,
    /// Numbers given out at least once.
    fresh: u32,
    free: Vec<u32>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), fresh: 0, free: Vec::new() }
    }
}

impl<T: Copy + Default> Store<T> {
    /// A number, under which there is whatever was left there.
    pub(super) fn allocate(&mut self) -> u32 {
        if let Some(index) = self.free.pop() {
            return index;
        }
        let index = self.fresh;
        if index as usize == self.pages.len() * PAGE_LEN {
            self.pages.push(Box::new([T::default(); PAGE_LEN]));
        }
        self.fresh += 1;
        index
    }

    pub(super) fn release(&mut self, index: u32) {
        self.free.push(index);
    }

    /// How many are in use.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.fresh as usize - self.free.len()
    }

    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        self.pages.len() * size_of::<[T; PAGE_LEN]>()
            + self.pages.capacity() * size_of::<Box<[T; PAGE_LEN]>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> Index<u32> for Store<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.pages[index as usize / PAGE_LEN][index as usize % PAGE_LEN]
    }
}

impl<T> IndexMut<u32> for Store<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.pages[index as usize / PAGE_LEN][index as usize % PAGE_LEN]
    }
}
