//! What the thread that sends and the one that reads both know.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::heard::Heard;

/// Events of which it is known when they should have been sent: a delivery that comes later than so many further events counts as
/// one of unknown latency.
const SLOTS: usize = 1 << 21;

/// Nanoseconds since the load began.
pub(super) type Nanos = u64;

/// Shared by both threads.
pub(super) struct Shared {
    started: Instant,
    slots: Box<[Slot]>,
    clients: Box<[ClientCell]>,
    /// Every so many events is held against the oracle.
    pub(super) stride: u64,
    /// What counts begins here.
    pub(super) measured_from: AtomicU64,
    /// Where the phase began, from which its seconds are counted.
    pub(super) phase_from: AtomicU64,
    /// Locked by the reader while it works through what has come, and by others when a phase begins and ends.
    heard: Mutex<Heard>,
    pub(super) live: Arc<Live>,
}

/// What happens now, for those who look on.
#[derive(Debug, Default)]
pub struct Live {
    /// Steps that should have been carried out by now.
    pub intended: AtomicU64,
    /// Events that were sent.
    pub events: AtomicU64,
    /// Moves that were sent.
    pub moves: AtomicU64,
    /// Deliveries that came.
    pub deliveries: AtomicU64,
    /// Things that went wrong.
    pub errors: AtomicU64,
    /// Connections whose conversation has begun.
    pub ready: AtomicU64,
    /// Answers to what clients said of themselves.
    pub introduced: AtomicU64,
    /// The 99th percentile of the last whole second, publish to delivery, in microseconds.
    pub p99_us: AtomicU64,
    /// How far the run is, in milliseconds of its own time.
    pub at_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    number: AtomicU64,
    intended: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct ClientCell {
    /// When its last move should have been sent.
    pub(super) moved: AtomicU64,
}

impl Shared {
    pub(super) fn new(clients: usize, stride: u64) -> anyhow::Result<Self> {
        Ok(Self {
            started: Instant::now(),
            slots: std::iter::repeat_with(Slot::default).take(SLOTS).collect(),
            clients: std::iter::repeat_with(ClientCell::default).take(clients).collect(),
            stride: stride.max(1),
            measured_from: AtomicU64::new(u64::MAX),
            phase_from: AtomicU64::new(0),
            heard: Mutex::new(Heard::new()?),
            live: Arc::default(),
        })
    }

    pub(super) fn now(&self) -> Nanos {
        nanos(self.started.elapsed())
    }

    /// Notes when an event should have been sent.
    pub(super) fn intend(&self, number: u64, at: Nanos) {
        let slot = self.slot(number);
        slot.intended.store(at, Relaxed);
        slot.number.store(number, Relaxed);
    }

    /// When it should have been; none where that is forgotten.
    pub(super) fn intended(&self, number: u64) -> Option<Nanos> {
        let slot = self.slot(number);
        (slot.number.load(Relaxed) == number).then(|| slot.intended.load(Relaxed))
    }

    fn slot(&self, number: u64) -> &Slot {
        // Of a remainder by the number of slots there is a slot.
        &self.slots[usize::try_from(number % SLOTS as u64).unwrap_or_default()]
    }

    pub(super) fn client(&self, client: u32) -> &ClientCell {
        &self.clients[client as usize]
    }

    pub(super) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_measured(&self, at: Nanos) -> bool {
        at >= self.measured_from.load(Relaxed)
    }
}

pub(super) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
