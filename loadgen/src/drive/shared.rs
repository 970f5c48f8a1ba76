//! What the thread that sends and the one that reads both know.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::heard::Heard;
use crate::report::record::{Percentiles, Second};

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
    /// Stride of the events that are compared with the oracle.
    pub(super) stride: u64,
    /// What counts begins here.
    pub(super) measured_from: AtomicU64,
    /// Microseconds within which a delivery has to come; none where it does not matter.
    delay_us: Option<u64>,
    /// Events that are due in each second of the phase, as far as the plan has been made ready.
    pub(super) due_seconds: Mutex<Vec<u64>>,
    /// Locked by the reader while it works through what has come, and by others when a phase begins and ends.
    heard: Mutex<Heard>,
    pub(super) live: Arc<Live>,
}

/// What happens now, for those who look on.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Events that were sent.
    pub(super) events: AtomicU64,
    /// Moves that were sent.
    pub(super) moves: AtomicU64,
    /// Deliveries that came.
    pub(super) deliveries: AtomicU64,
    /// Events and moves that were refused.
    pub(super) refused: AtomicU64,
    /// Other things that went wrong.
    pub(super) errors: AtomicU64,
    /// Deliveries that gaps told to be lost.
    pub(super) lost: AtomicU64,
    /// Connections whose conversation has begun.
    pub(super) ready: AtomicU64,
    /// Answers to what clients said of themselves.
    pub(super) introduced: AtomicU64,
}

/// Looks on, second by second.
pub struct Watch {
    shared: Arc<Shared>,
    seen: [u64; 6],
    /// Seconds whose events were told to be due.
    told: usize,
}

impl Watch {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let mut watch = Self { shared: Arc::clone(shared), seen: [0; 6], told: 0 };
        watch.seen = watch.counts();
        watch
    }

    fn counts(&self) -> [u64; 6] {
        let Live { events, moves, deliveries, refused, errors, lost, .. } = &*self.shared.live;
        [events, moves, deliveries, refused, errors, lost].map(|count| count.load(Relaxed))
    }

    /// Fills in what was counted since the last time.
    pub fn fill(&mut self, row: &mut Second) {
        let counts = self.counts();
        let mut since = counts;
        since.iter_mut().zip(self.seen).for_each(|(now, before)| *now -= before);
        self.seen = counts;
        [row.events_sent, row.moves, row.deliveries, row.refused, row.errors, row.gap_deliveries] = since;
        // A row ends some milliseconds after its second.
        row.events_intended = 0;
        for due in self.shared.due_seconds().iter().skip(self.told) {
            if self.told as f64 + 0.5 > row.at_s {
                break;
            }
            row.events_intended += due;
            self.told += 1;
        }
        let mut heard = self.shared.heard();
        row.delivery = Percentiles::of(&heard.current_us);
        let late = |delay_us: u64| heard.current_us.count_between(delay_us + 1, heard.current_us.high());
        row.late = self.shared.delay_us.map_or(0, late);
        row.move_in_force = Percentiles::of(&heard.current_in_force_us);
        heard.current_us.reset();
        heard.current_in_force_us.reset();
    }
}

#[derive(Debug, Default)]
struct Slot {
    number: AtomicU64,
    intended: AtomicU64,
    is_alarm: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct ClientCell {
    /// When its last move should have been sent.
    pub(super) moved: AtomicU64,
    /// When those should have been sent that are answered, by their numbers.
    answered: Mutex<VecDeque<(u64, Nanos)>>,
}

impl ClientCell {
    /// A move that will be answered is due.
    pub(super) fn ask(&self, number: u64, due: Nanos) {
        self.lock().push_back((number, due));
    }

    /// When a move that was answered was due; those before it were in force with it.
    pub(super) fn due(&self, number: u64) -> Option<Nanos> {
        let mut asked = self.lock();
        while let Some((first, due)) = asked.front().copied() {
            if first > number {
                return None;
            }
            asked.pop_front();
            if first == number {
                return Some(due);
            }
        }
        None
    }

    /// Nobody will answer those any more.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, Nanos)>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub(super) fn new(clients: usize, stride: u64, delay: Option<Duration>) -> anyhow::Result<Self> {
        Ok(Self {
            started: Instant::now(),
            slots: std::iter::repeat_with(Slot::default).take(SLOTS).collect(),
            clients: std::iter::repeat_with(ClientCell::default).take(clients).collect(),
            stride: stride.max(1),
            measured_from: AtomicU64::new(u64::MAX),
            delay_us: delay.map(|delay| nanos(delay) / 1_000),
            due_seconds: Mutex::default(),
            heard: Mutex::new(Heard::new()?),
            live: Arc::default(),
        })
    }

    pub(super) fn now(&self) -> Nanos {
        nanos(self.started.elapsed())
    }

    /// Notes when an event should have been sent.
    pub(super) fn intend(&self, number: u64, at: Nanos, is_alarm: bool) {
        let slot = self.slot(number);
        slot.is_alarm.store(is_alarm, Relaxed);
        slot.intended.store(at, Relaxed);
        slot.number.store(number, Relaxed);
    }

    /// When it should have been; none where that is forgotten.
    pub(super) fn intended(&self, number: u64) -> Option<Nanos> {
        let slot = self.slot(number);
        (slot.number.load(Relaxed) == number).then(|| slot.intended.load(Relaxed))
    }

    pub(super) fn is_alarm(&self, number: u64) -> bool {
        self.slot(number).is_alarm.load(Relaxed)
    }

    fn slot(&self, number: u64) -> &Slot {
        // Of a remainder by the number of slots there is a slot.
        &self.slots[usize::try_from(number % SLOTS as u64).unwrap_or_default()]
    }

    pub(super) fn client(&self, client: u32) -> &ClientCell {
        &self.clients[client as usize]
    }

    pub(super) fn due_seconds(&self) -> MutexGuard<'_, Vec<u64>> {
        self.due_seconds.lock().unwrap_or_else(PoisonError::into_inner)
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
