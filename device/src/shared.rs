//! Words that the host and the device see at the same time: news without a copy and without a wait for a whole stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::device::Device;
use crate::error::DriverError;
use crate::in_flight::Queue;
use crate::memory::Pinned;
use crate::stream::Stream;

/// Time after which a kernel that says nothing has probably failed; the stream knows.
const PATIENCE: Duration = Duration::from_millis(1);
/// Looks at a word between looks at the clock.
const LOOKS: u32 = 256;

/// Page-locked words that are never seen but one at a time, atomically.
#[derive(Debug)]
pub struct SharedWords {
    /// Its contents are never borrowed as plain words.
    pinned: Pinned<u64>,
    /// The queue of the stream that was last asked to tell something, and how much that stream had been given before.
    told: Option<(Arc<Queue>, u64)>,
}

impl SharedWords {
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self, DriverError> {
        Ok(Self { pinned: Pinned::new(device, len)?, told: None })
    }

    /// The words. A kernel may write them at any time.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        self.pinned.atomic_words()
    }

    /// Writes words one by one, from the `at`-th on; a kernel that is started later sees them.
    ///
    /// # Panics
    /// When there are not as many.
    pub fn write(&self, at: usize, words: &[u64]) {
        for (place, word) in self.words()[at..at + words.len()].iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
    }

    /// Waits until a word is as it should be and answers it. What the device wrote before that word, in the order of its
    /// stream or with a fence in between, is seen then.
    ///
    /// # Errors
    /// [`DriverError`] when the stream ends without it.
    ///
    /// # Panics
    /// When there is no such word.
    pub fn wait(
        &self,
        stream: &Stream,
        index: usize,
        holds: impl Fn(u64) -> bool,
    ) -> Result<u64, DriverError> {
        let word = &self.words()[index];
        let started = Instant::now();
        loop {
            for _ in 0..LOOKS {
                let value = word.load(Ordering::Acquire);
                if holds(value) {
                    return Ok(value);
                }
                std::hint::spin_loop();
            }
            if started.elapsed() > PATIENCE {
                break;
            }
        }
        stream.synchronize()?;
        let value = word.load(Ordering::Acquire);
        if holds(value) {
            return Ok(value);
        }
        Err(DriverError::Other {
            operation: "waiting for a device's word",
            reason: "the stream ended without it".to_owned(),
        })
    }

    /// Waits for what [`Stream::tell`] was last asked to tell; all that the stream was given before is done then.
    ///
    /// # Errors
    /// [`DriverError`] when the stream ends without it.
    ///
    /// # Panics
    /// When there is no such word.
    pub fn wait_told(&self, stream: &Stream, index: usize, value: u32) -> Result<(), DriverError> {
        self.wait(stream, index, |word| word == u64::from(value))?;
        if let Some((queue, issued)) = &self.told {
            queue.complete(*issued);
        }
        Ok(())
    }

    /// Remembers what is done once this has been told.
    pub(crate) fn set_told(&mut self, queue: &Arc<Queue>, issued: u64) {
        self.told = Some((Arc::clone(queue), issued));
    }

    pub(crate) fn pinned(&mut self) -> &mut Pinned<u64> {
        &mut self.pinned
    }
}
