//! What came of a phase, as the reader counts it.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::shared::Nanos;

/// The longest latency that is told apart, in microseconds.
const LATENCY_MAX_US: u64 = 600_000_000;

/// Different texts of errors that are kept; further ones are counted together.
const ERRORS_MAX: usize = 50;

/// What came of an alarm.
#[derive(Clone, Copy, Debug)]
pub struct AlarmHeard {
    /// Deliveries.
    pub deliveries: u64,
    /// From when it should have been sent to the last of them, in nanoseconds.
    pub last_after: Nanos,
}

/// What the reader counts.
#[derive(Debug)]
pub struct Heard {
    /// From when an event should have been sent to its delivery, where its publishing brought that.
    pub delivery_us: Histogram<u64>,
    /// From when a client's last move should have been sent to a delivery that a move brought.
    pub move_delivery_us: Histogram<u64>,
    /// From when an event should have been sent to its being accepted.
    pub accepted_us: Histogram<u64>,
    /// From when a move should have been sent to its being in force, of the clients that are checked.
    pub in_force_us: Histogram<u64>,
    /// From when a connection was to break to the answer to all that the client said anew.
    pub reconnect_us: Histogram<u64>,
    /// Deliveries of events that should have been sent after the warm-up; so are the next.
    pub deliveries: u64,
    /// Deliveries that a move brought.
    pub deliveries_by_move: u64,
    /// Deliveries of events that are not ours, or of an earlier phase.
    pub foreign: u64,
    /// Events that the broker took.
    pub accepted: u64,
    /// Events that it took or did not, warm-up included.
    pub answered: u64,
    /// Moves that it said are in force.
    pub moves_in_force: u64,
    /// Events that it did not take, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Everything else that went wrong.
    pub errors: BTreeMap<String, u64>,
    /// Gaps that were told.
    pub gaps: u64,
    /// Deliveries that were told to be lost.
    pub lost: u64,
    /// Deliveries whose place in the session was had already.
    pub duplicates: u64,
    /// Deliveries that are missing in a session without a word.
    pub holes: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Alarms by their numbers.
    pub alarms: BTreeMap<u64, AlarmHeard>,
    /// The journal: what the check asks for.
    pub journal: HeardJournal,
    /// Publish to delivery, of all that came since somebody looked.
    pub(super) current_us: Histogram<u64>,
    /// Moves in force, the same.
    pub(super) current_in_force_us: Histogram<u64>,
}

/// Record of what came to checked clients and of checked events.
#[derive(Debug, Default)]
pub struct HeardJournal {
    /// Deliveries to clients that are checked: who, the event's number, when.
    pub deliveries: Vec<(u32, u64, Nanos)>,
    /// Events that are checked, and when they were accepted; none for one that was refused.
    pub events: Vec<(u64, Option<Nanos>)>,
    /// Moves that were in force: who, which of its moves, when.
    pub moves: Vec<(u32, u64, Nanos)>,
    /// Clients whose wishes were in force again, and when.
    pub returns: Vec<(u32, Nanos)>,
    /// Clients that were told of a loss, and of how many deliveries.
    pub lossy: Vec<(u32, u64)>,
}

impl Heard {
    pub(super) fn new() -> anyhow::Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, LATENCY_MAX_US, 3);
        Ok(Self {
            delivery_us: histogram()?,
            move_delivery_us: histogram()?,
            accepted_us: histogram()?,
            in_force_us: histogram()?,
            reconnect_us: histogram()?,
            current_us: histogram()?,
            current_in_force_us: histogram()?,
            deliveries: 0,
            deliveries_by_move: 0,
            foreign: 0,
            accepted: 0,
            answered: 0,
            moves_in_force: 0,
            refused: BTreeMap::new(),
            errors: BTreeMap::new(),
            gaps: 0,
            lost: 0,
            duplicates: 0,
            holes: 0,
            bytes: 0,
            alarms: BTreeMap::new(),
            journal: HeardJournal::default(),
        })
    }

    /// Counts something that went wrong.
    pub fn error(&mut self, what: &str) {
        count(&mut self.errors, what);
    }

    /// Counts an event that was refused.
    pub(super) fn refuse(&mut self, why: &str) {
        count(&mut self.refused, why);
    }
}

pub(super) fn count(counts: &mut BTreeMap<String, u64>, what: &str) {
    let what: String = if counts.len() >= ERRORS_MAX && !counts.contains_key(what) {
        "others".to_owned()
    } else {
        what.chars().take(200).collect()
    };
    *counts.entry(what).or_default() += 1;
}
