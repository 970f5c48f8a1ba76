//! Memory for what grows large: pages that never move, on huge pages where the system has them.
//!
//! An engine of millions of filters reads memory at random, and with pages of 4 KiB each read also misses the
//! processor's table of pages: on a virtual machine of two cores that doubled the time of a read (255 ns against
//! 139 ns for one in 256 MiB).

use std::io;
use std::thread::{self, JoinHandle};

use memmap2::MmapMut;

/// Bytes a page. Only what is written takes memory.
pub(super) const PAGE_BYTES: usize = 32 << 20;

/// Pages side by side in number, not in memory.
#[derive(Debug, Default)]
pub(super) struct Pages {
    maps: Vec<MmapMut>,
    /// A page that a thread makes ready.
    next: Option<JoinHandle<io::Result<MmapMut>>>,
}

impl Pages {
    /// Adds a page; answers how many there are, or `None` when the system has no memory.
    pub(super) fn add(&mut self) -> Option<usize> {
        let prepared = self.next.take().and_then(|next| next.join().ok());
        let map = match prepared {
            Some(Ok(map)) => map,
            Some(Err(_)) | None => map().ok()?,
        };
        self.maps.push(map);
        Some(self.maps.len())
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
        self.maps.len()
    }

    /// Bytes that lie in one page.
    #[inline]
    pub(super) fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let start = offset % PAGE_BYTES;
        &self.maps[offset / PAGE_BYTES][start..start + len]
    }

    #[inline]
    pub(super) fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let start = offset % PAGE_BYTES;
        &mut self.maps[offset / PAGE_BYTES][start..start + len]
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
