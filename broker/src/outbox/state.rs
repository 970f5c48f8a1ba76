//! What waits for a connection besides the log of its session: answers, and alarms ahead of their turn.

use std::collections::VecDeque;
use std::sync::Arc;

use super::log::{DeliveryLog, Log};
use super::{Bounds, Close};
use crate::budget::Held;
use crate::model::delivery::{Delivery, ENTRY_BYTES, Entry};
use crate::model::sent_offsets::SentOffsets;

/// The state of a connection. Its lock is taken before that of the log.
#[derive(Default)]
pub(super) struct State {
    /// Entries that are not in the log, in their order.
    lane: VecDeque<InLane>,
    pub(super) answers_count: usize,
    /// Bytes of the answers.
    pub(super) answer_bytes: usize,
    ahead_count: usize,
    /// Bytes of the other entries of the lane.
    ahead_bytes: usize,
    /// The log that it reads.
    pub(super) log: Option<Arc<DeliveryLog>>,
    pub(super) close: Option<Close>,
    pub(super) sleeps: bool,
    /// Where it is noted what the writer takes, if anywhere.
    pub(super) recipient: Option<Arc<SentOffsets>>,
    pub(super) charged: Charged,
}

/// An entry of the lane, which comes behind what the log has up to an offset.
struct InLane {
    after: u64,
    entry: Entry,
}

/// The charges to the connection's account for the lane.
#[derive(Default)]
pub(super) struct Charged {
    pub(super) answers: Held,
    pub(super) others: Held,
}

/// Divisor of the bounds that gives the room for alarms ahead of their turn.
const ALARMS_PART: usize = 8;

/// Granularity of an account, in bytes. Most entries wait too short a time to be worth counting.
const CHARGE_BYTES: u64 = 4_096;

/// Entries that an idle connection keeps memory for.
const IDLE: usize = 64;

impl State {
    /// Whether nothing is in the lane.
    pub(super) fn has_no_answers(&self) -> bool {
        self.lane.is_empty()
    }

    /// How many alarms are in the lane, and the bytes of the lane.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.ahead_count, self.answer_bytes + self.ahead_bytes)
    }

    /// Puts an answer, or a gap, behind what waits.
    pub(super) fn push(&mut self, connection: u64, entry: Entry) {
        let after = self.log.as_ref().map_or(0, |log| log.lock().mark(connection));
        match &entry {
            Entry::Answer(_) => {
                self.answers_count += 1;
                self.answer_bytes += entry.bytes();
            }
            Entry::Delivery(_) | Entry::Gap(_) => self.ahead_bytes += entry.bytes(),
        }
        self.lane.push_back(InLane { after, entry });
        self.charge();
    }

    /// Puts an alarm ahead of the deliveries that wait, if there are any and there is room for it; says whether it did.
    pub(super) fn push_ahead(
        &mut self,
        connection: u64,
        log: &mut Log,
        alarm: Delivery,
        bounds: &Bounds,
    ) -> bool {
        let bytes = ENTRY_BYTES + alarm.bytes();
        let has_room = self.ahead_count == 0
            || (self.ahead_count < bounds.frames / ALARMS_PART
                && self.ahead_bytes + bytes <= bounds.bytes / ALARMS_PART);
        let may_overtake = bounds.has_alarms_ahead && has_room && self.close.is_none();
        if !may_overtake || !log.overtake(connection, alarm.offset) {
            return false;
        }
        self.ahead_count += 1;
        self.ahead_bytes += bytes;
        let entry = Entry::Delivery(Delivery { is_ahead: true, ..alarm });
        self.lane.push_back(InLane { after: 0, entry });
        self.charge();
        true
    }

    /// Whether an alarm is in the lane.
    pub(super) fn waits_ahead(&self, offset: u64) -> bool {
        let is_it = |one: &InLane| matches!(&one.entry, Entry::Delivery(alarm) if alarm.offset == offset);
        self.ahead_count > 0 && self.lane.iter().any(is_it)
    }

    /// Moves entries into `batch`: at least one, and up to `bytes_max` bytes. Says whether answers were among them.
    pub(super) fn take(&mut self, connection: u64, batch: &mut Vec<Entry>, bytes_max: usize) -> bool {
        let Self { lane, answers_count, answer_bytes, ahead_count, ahead_bytes, recipient, .. } = self;
        let answers_before = *answers_count;
        let mut log = self.log.as_ref().map(|log| log.lock());
        let mut written = recipient.as_deref().map(SentOffsets::written);
        let mut note = |offset: u64| {
            if let Some(written) = &mut written {
                written.add(offset);
            }
        };
        let mut bytes_taken = 0;
        loop {
            let room = if bytes_taken == 0 { usize::MAX } else { bytes_max.saturating_sub(bytes_taken) };
            let at = log.as_ref().and_then(|log| log.position(connection)).unwrap_or(u64::MAX);
            let next = lane.front().map_or(u64::MAX, |next| next.after);
            if next > at {
                let Some(entry) = log.as_mut().and_then(|log| log.read(connection, next, room)) else {
                    break;
                };
                if let Entry::Delivery(delivery) = &entry {
                    note(delivery.offset);
                }
                bytes_taken += entry.bytes();
                batch.push(entry);
                continue;
            }
            if lane.front().is_none_or(|first| first.entry.bytes() > room) {
                break;
            }
            let Some(InLane { mut entry, .. }) = lane.pop_front() else { break };
            let bytes = entry.bytes();
            match &mut entry {
                Entry::Answer(_) => {
                    *answers_count -= 1;
                    *answer_bytes -= bytes;
                }
                Entry::Delivery(alarm) => {
                    *ahead_count -= 1;
                    *ahead_bytes -= bytes;
                    if alarm.is_past_deadline() {
                        // A gap says so in its turn.
                        if let Some(log) = &mut log {
                            log.put_back_in_turn(connection, alarm.offset);
                        }
                        continue;
                    }
                    note(alarm.offset);
                    alarm.offset = at;
                }
                Entry::Gap(_) => *ahead_bytes -= bytes,
            }
            bytes_taken += bytes;
            batch.push(entry);
        }
        if let Some(log) = &mut log {
            log.end_turn(connection);
        }
        let has_answers = *answers_count < answers_before;
        drop((log, written));
        if self.lane.is_empty() && self.lane.capacity() > IDLE {
            // A burst leaves a large one behind.
            self.lane = VecDeque::new();
        }
        self.charge();
        has_answers
    }

    /// Notes that the writer sleeps, unless the log has something for it.
    pub(super) fn sleep(&mut self, connection: u64) -> bool {
        self.sleeps = self.log.as_ref().is_none_or(|log| log.lock().sleep(connection));
        self.sleeps
    }

    /// Forgets everything that waits, and says how many deliveries that were.
    pub(super) fn abandon(&mut self, connection: u64, close: Close) -> u64 {
        let unread = self.log.take().map_or(0, |log| log.lock().leave(connection));
        let recipient = self.recipient.take();
        *self = Self { close: Some(close), sleeps: self.sleeps, recipient, ..Self::default() };
        unread
    }

    /// Tells the connection's account what is in the lane now.
    fn charge(&mut self) {
        let charge = |held: &mut Held, bytes: usize| {
            let bytes = bytes as u64;
            if bytes.abs_diff(held.bytes()) >= CHARGE_BYTES || bytes == 0 {
                held.set(bytes);
            }
        };
        charge(&mut self.charged.answers, self.answer_bytes);
        charge(&mut self.charged.others, self.ahead_bytes);
    }
}
