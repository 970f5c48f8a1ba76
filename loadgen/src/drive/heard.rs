//! What came of a phase, as the reader counts it.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::shared::Nanos;

/// The longest latency that is told apart, in microseconds.
const LATENCY_MAX_US: u64 = 600_000_000;

/// Different texts of errors that are kept; further ones are counted together.
const ERRORS_MAX: usize = 50;

/// A second of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct SecondHeard {
    /// Deliveries that came in it.
    pub deliveries: u64,
    /// Events that were accepted.
    pub accepted: u64,
    /// Events that were refused.
    pub refused: u64,
    /// Publish to delivery, in microseconds: p50, p90, p99, p99.9 and the longest.
    pub latency_us: [u64; 5],
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
    /// Second by second.
    pub seconds: Vec<SecondHeard>,
    /// Deliveries, of those moves brought, and of those events of others.
    pub deliveries: u64,
    /// Deliveries that a move brought.
    pub deliveries_by_move: u64,
    /// Deliveries of events that are not ours, or of an earlier phase.
    pub foreign: u64,
    /// Events that the broker took.
    pub accepted: u64,
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
    /// When the first and the last delivery came.
    pub first_delivery: Option<Nanos>,
    /// The last.
    pub last_delivery: Option<Nanos>,
    /// The journal: what the check asks for.
    pub journal: HeardJournal,
    current_us: Histogram<u64>,
}

/// Of the clients and the events that are checked.
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
    /// Clients that were told of a loss.
    pub lossy: Vec<u32>,
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
            seconds: Vec::new(),
            deliveries: 0,
            deliveries_by_move: 0,
            foreign: 0,
            accepted: 0,
            moves_in_force: 0,
            refused: BTreeMap::new(),
            errors: BTreeMap::new(),
            gaps: 0,
            lost: 0,
            duplicates: 0,
            holes: 0,
            bytes: 0,
            first_delivery: None,
            last_delivery: None,
            journal: HeardJournal::default(),
        })
    }

    /// The second that is counted now. Earlier ones are closed; says the 99th percentile of the last of them.
    pub(super) fn second(&mut self, second: usize) -> (&mut SecondHeard, Option<u64>) {
        let mut closed = None;
        if second >= self.seconds.len() {
            if let Some(last) = self.seconds.last_mut() {
                let latency = &self.current_us;
                last.latency_us =
                    [0.5, 0.9, 0.99, 0.999, 1.0].map(|quantile| latency.value_at_quantile(quantile));
                closed = Some(last.latency_us[2]);
            }
            self.current_us.reset();
            self.seconds.resize(second + 1, SecondHeard::default());
        }
        (&mut self.seconds[second], closed)
    }

    /// Closes the last second.
    pub(super) fn close(&mut self) {
        let next = self.seconds.len();
        self.second(next);
        self.seconds.pop();
    }

    pub(super) fn deliver(&mut self, latency_us: u64, is_measured: bool) {
        self.current_us.saturating_record(latency_us);
        if is_measured {
            self.delivery_us.saturating_record(latency_us);
        }
    }

    /// Counts something that went wrong.
    pub fn error(&mut self, what: &str) {
        count(&mut self.errors, what);
    }

    /// Counts an event that was refused.
    pub(super) fn refuse(&mut self, why: &str, events: u64) {
        *entry(&mut self.refused, why) += events;
    }
}

fn count(counts: &mut BTreeMap<String, u64>, what: &str) {
    *entry(counts, what) += 1;
}

fn entry<'a>(counts: &'a mut BTreeMap<String, u64>, what: &str) -> &'a mut u64 {
    let what: String = if counts.len() >= ERRORS_MAX && !counts.contains_key(what) {
        "others".to_owned()
    } else {
        what.chars().take(200).collect()
    };
    counts.entry(what).or_default()
}
