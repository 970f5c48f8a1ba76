//! Arrays that grow without moving what they hold, so that growth never pauses matching.

use std::ops::{Index, IndexMut};

/// Elements a page. Large enough that the page table stays in the cache, small enough that filling a page with
/// defaults takes microseconds.
const PAGE_LEN: usize = 4096;

/// An array of pages with a list of free places.
#[derive(Debug, Default)]
pub struct Slab<T> {
    pages: Vec<Vec<T>>,
    len: u32,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    /// An empty array.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a value into a free place; `None` when all 32-bit numbers are used.
    pub fn insert(&mut self, value: T) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            self[index] = value;
            return Some(index);
        }
        let index = self.len;
        // The last number is left out: users mark "none" with it.
        if index == u32::MAX {
            return None;
        }
        self.grow_to(index);
        self[index] = value;
        Some(index)
    }

    /// Takes a value out and frees its place.
    pub fn remove(&mut self, index: u32) -> T {
        self.free.push(index);
        std::mem::take(&mut self[index])
    }

    /// Makes sure that there is a place of this number; for slabs whose numbers the caller gives out. Pages
    /// between numbers far apart stay empty.
    pub fn grow_to(&mut self, index: u32) {
        if index < self.len && !self.pages[index as usize / PAGE_LEN].is_empty() {
            return;
        }
        let page = index as usize / PAGE_LEN;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, Vec::new);
        }
        if self.pages[page].is_empty() {
            self.pages[page] = std::iter::repeat_with(T::default).take(PAGE_LEN).collect();
        }
        self.len = self.len.max(index.saturating_add(1));
    }

    /// One past the largest number given out.
    #[must_use]
    pub fn end(&self) -> usize {
        self.len as usize
    }

    /// The value of a place, where there is one.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&T> {
        self.pages.get(index as usize / PAGE_LEN)?.get(index as usize % PAGE_LEN)
    }

    /// Bytes allocated, what the values own aside.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let places: usize = self.pages.iter().map(Vec::capacity).sum();
        places * size_of::<T>()
            + self.pages.capacity() * size_of::<Vec<T>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.pages[index as usize / PAGE_LEN][index as usize % PAGE_LEN]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.pages[index as usize / PAGE_LEN][index as usize % PAGE_LEN]
    }
}
