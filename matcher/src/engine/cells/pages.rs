//! Memory for what grows large: pages that never move, on huge pages where the system has them.
//!
//! An engine of millions of filters reads memory at random, and with pages of 4 KiB each read also misses the
//! processor's table of pages: on a virtual machine of two cores that doubled the time of a read (255 ns against
//! 139 ns for one in 256 MiB). An engine of a few thousand has none of that: it is in ordinary memory, without a page or a
//! thread.

use std::io;
use std::thread::{self, JoinHandle};

use memmap2::MmapMut;

use super::arena::LINE_BYTES;

/// Bytes a page. Only what is written takes memory.
pub(super) const PAGE_BYTES: usize = 32 << 20;
/// Bytes of the first page up to which they are in ordinary memory: a huge page. Copying them takes half a millisecond.
const SMALL_MAX: usize = 2 << 20;
/// Bytes of ordinary memory to begin with.
const SMALL_MIN: usize = 4 << 10;

/// A cache line of ordinary memory.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
struct Line([u8; LINE_BYTES]);

/// Pages side by side in number, not in memory.
#[derive(Debug, Default)]
pub(super) struct Pages {
    count: usize,
    /// What is reserved of the first page, while there is no map.
    small: Vec<Line>,
    maps: Vec<MmapMut>,
    /// A page that a thread makes ready.
    next: Option<JoinHandle<io::Result<MmapMut>>>,
}

impl Pages {
    /// Adds a page; answers how many there are, or `None` when the system has no memory. Of the first one, every byte has
    /// to be reserved before it is used.
    pub(super) fn add(&mut self) -> Option<usize> {
        if self.count > 0 {
            if self.maps.is_empty() {
                self.map_first()?;
            }
            let prepared = self.next.take().and_then(|next| next.join().ok());
            let map = match prepared {
                Some(Ok(map)) => map,
                Some(Err(_)) | None => map().ok()?,
            };
            self.maps.push(map);
        }
        self.count += 1;
        Some(self.count)
    }

    /// Makes sure that there is memory up to an offset in the first page, or on another page; `None` when the system has
    /// none.
    pub(super) fn reserve(&mut self, end: usize) -> Option<()> {
        if !self.maps.is_empty() || end <= self.small.len() * LINE_BYTES {
            return Some(());
        }
        if end > SMALL_MAX {
            return self.map_first();
        }
        let bytes = end.next_power_of_two().max(SMALL_MIN);
        self.small.resize(bytes / LINE_BYTES, Line([0; LINE_BYTES]));
        Some(())
    }

    fn map_first(&mut self) -> Option<()> {
        let mut map = map().ok()?;
        let small: &[u8] = bytemuck::cast_slice(&self.small);
        map[..small.len()].copy_from_slice(small);
        self.maps.push(map);
        self.small = Vec::new();
        Some(())
    }

    /// Lets a thread prepare the page that comes next, so that its first writes do not wait for the system: it takes
    /// milliseconds to clear one.
    pub(super) fn prepare(&mut self) {
        if self.next.is_none() {
            let prepare = || {
                let map = map()?;
                #[cfg(target_os = "linux")]
                {
                    // A system that cannot do this clears the page when it is written to.
                    let _ = map.advise(memmap2::Advice::PopulateWrite);
                }
                Ok(map)
            };
            // Without a thread, the page is made when it is needed.
            self.next = thread::Builder::new().name("cells-memory".into()).spawn(prepare).ok();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Bytes that lie in one page.
    #[inline]
    pub(super) fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let start = offset % PAGE_BYTES;
        match self.maps.get(offset / PAGE_BYTES) {
            Some(map) => &map[start..start + len],
            None => &bytemuck::cast_slice::<Line, u8>(&self.small)[start..start + len],
        }
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let start = offset % PAGE_BYTES;
        match self.maps.get_mut(offset / PAGE_BYTES) {
            Some(map) => &mut map[start..start + len],
            None => &mut bytemuck::cast_slice_mut::<Line, u8>(&mut self.small)[start..start + len],
        }
    }
}

fn map() -> io::Result<MmapMut> {
    let map = MmapMut::map_anon(PAGE_BYTES)?;
    #[cfg(target_os = "linux")]
    {
        // Where the system does not know huge pages, small ones do.
        let _ = map.advise(memmap2::Advice::HugePage);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_mapped_when_it_is_large_and_keeps_what_it_held() {
        let mut pages = Pages::default();
        assert_eq!(pages.add(), Some(1));
        for end in [64, SMALL_MIN + 64, SMALL_MAX] {
            pages.reserve(end).unwrap();
            pages.bytes_mut(end - 1, 1)[0] = 7;
            assert!(pages.maps.is_empty() && pages.small.len() * LINE_BYTES >= end);
        }
        pages.reserve(SMALL_MAX + 64).unwrap();
        assert!(pages.maps.len() == 1 && pages.small.is_empty());
        for end in [64, SMALL_MIN + 64, SMALL_MAX] {
            assert_eq!(pages.bytes(end - 1, 1), [7]);
        }
        assert_eq!((pages.add(), pages.maps.len()), (Some(2), 2));
    }

    #[test]
    fn a_second_page_comes_after_a_small_first_one() {
        let mut pages = Pages::default();
        pages.add().unwrap();
        pages.reserve(64).unwrap();
        pages.bytes_mut(0, 1)[0] = 7;
        assert_eq!(pages.add(), Some(2));
        assert_eq!((pages.bytes(0, 1), pages.bytes(PAGE_BYTES, 1)), (&[7][..], &[0][..]));
        // A page that was skipped half-way is mapped whole.
        assert_eq!(pages.bytes(PAGE_BYTES - 1, 1), [0]);
    }
}
