//! Words that the host and a kernel see at the same time: news without a copy and without a wait for a whole stream.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::device::Device;
use super::error::DriverError;
use super::memory::Pinned;
use super::stream::Stream;

/// A kernel that says nothing for so long has probably failed; the stream knows.
const PATIENCE: Duration = Duration::from_millis(1);
/// Looks at a word between looks at the clock.
const LOOKS: u32 = 256;

/// Page-locked words that are never seen but one at a time, atomically.
#[derive(Debug)]
pub struct SharedWords {
    /// Its contents are never borrowed as plain words.
    pinned: Pinned<u32>,
}

impl SharedWords {
    pub(super) fn new(device: &Device, len: usize) -> Result<Self, DriverError> {
        Ok(Self { pinned: Pinned::new(device, len)? })
    }

    /// The words. A kernel may write them at any time.
    #[must_use]
    pub fn words(&self) -> &[AtomicU32] {
        self.pinned.atomic_words()
    }

    /// Writes words one by one, from the `at`-th on; a kernel that is started later sees them.
    ///
    /// # Panics
    /// When there are not as many.
    pub fn write(&self, at: usize, words: &[u32]) {
        for (place, word) in self.words()[at..at + words.len()].iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
    }

    /// Waits until a kernel of this stream has written `value` to a word. What it wrote before, with a fence for the whole
    /// system in between, is seen then.
    ///
    /// # Errors
    /// [`DriverError`] when the stream ends without it.
    ///
    /// # Panics
    /// When there is no such word.
    pub fn wait(&self, stream: &Stream, index: usize, value: u32) -> Result<(), DriverError> {
        let word = &self.words()[index];
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            for _ in 0..LOOKS {
                if word.load(Ordering::Acquire) == value {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
        }
        stream.synchronize()?;
        if word.load(Ordering::Acquire) == value {
            return Ok(());
        }
        Err(DriverError::Other {
            operation: "waiting for a kernel's word",
            reason: "the stream ended without it".to_owned(),
        })
    }

    pub(super) fn pinned(&mut self) -> &mut Pinned<u32> {
        &mut self.pinned
    }
}
