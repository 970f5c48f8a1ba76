//! The check: `scan` sees the same moves and events in the same order, and every delivery has to be one that it found.
//!
//! One thread takes facts from one bounded queue. What `scan` found and what a socket received cancel each other
//! out, in whichever order they come, so that memory stays bounded by what is under way however long the demo runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Instant;

use hdrhistogram::Histogram;
use matcher::engine::scan::Scan;
use matcher::engine::{Engine as _, MatchRows};
use matcher::event::Event;
use matcher::geo::Position;
use matcher::subscription::{ClientId, SubscriptionId};
use tokio::sync::{mpsc, oneshot};

use super::fleet::{Role, WORLD};

/// How many facts may wait for the thread; a full queue holds up sockets and replay, nothing is lost.
pub(super) const FACTS_MAX: usize = 16 * 1024;

/// How many wrong deliveries are kept to be shown; all are counted.
const EXAMPLES_MAX: usize = 5;

/// The longest latency that the histograms tell apart, in microseconds.
const LATENCY_MAX_US: u64 = 60_000_000;

/// Something that happened, told by the replay or by a socket.
#[derive(Debug)]
pub(super) enum Fact {
    /// The broker has answered a move.
    Moved { client_idx: u32, position: Position },
    /// The broker has answered a publish; `sent_at` is when it was sent.
    Published { number: u64, event: Box<Event>, sent_at: Instant },
    /// A socket received an event; `subscriptions` is a set of [`Role::bit`]s.
    Delivered { client_idx: u32, number: u64, offset: u64, subscriptions: u64, received_at: Instant },
    /// A socket received an event that somebody else published, from the console perhaps: the oracle knows nothing of it.
    Foreign { client_idx: u32, offset: u64 },
    /// A socket received what the check has found.
    Violated { client_idx: u32, offset: u64 },
    /// The broker told a client of deliveries that are lost.
    Lost { count: u64 },
    /// Somebody wants to know how things stand.
    Asked { answer: oneshot::Sender<Figures> },
    /// Nothing more will be published: say when all that was expected has come.
    Ended { settled: oneshot::Sender<()> },
}

/// How things stand.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) vehicles: usize,
    pub(super) moves: u64,
    pub(super) events: u64,
    /// Events that reached somebody beside the operator.
    pub(super) events_matched: u64,
    pub(super) deliveries: u64,
    /// Deliveries that `scan` found and that have not come.
    pub(super) missing: u64,
    /// Deliveries that came and that `scan` did not find.
    pub(super) spurious: u64,
    /// Deliveries that came again.
    pub(super) duplicates: u64,
    /// Deliveries that the broker told were lost, and jumps in offsets.
    pub(super) gaps: u64,
    /// Deliveries of events that others published, which nothing is held against.
    pub(super) foreign: u64,
    /// What the check has found, of which the operator gets all.
    pub(super) violations: u64,
    /// From the sending of the publish to the receipt of the delivery, in microseconds; since the last time
    /// that somebody asked, or of the whole run at its end.
    pub(super) latency_us: Histogram<u64>,
    /// Some of the missing and the spurious ones, in words.
    pub(super) examples: Vec<String>,
}

impl Figures {
    /// Whether what came is what had to come.
    pub(super) fn exact(&self) -> bool {
        self.missing == 0 && self.spurious == 0 && self.duplicates == 0 && self.gaps == 0
    }
}

/// One side of a delivery that waits for the other.
#[derive(Clone, Copy, Debug)]
enum Open {
    Expected { subscriptions: u64, sent_at: Instant },
    Received { subscriptions: u64, received_at: Instant },
}

/// The thread's state.
pub(super) struct Oracle {
    roles: Vec<std::sync::Arc<Role>>,
    operator_idx: u32,
    scan: Scan,
    /// Owners by subscription id: the client, and the subscription's bit there.
    owners: Vec<(u32, u64)>,
    rows: MatchRows,
    open: HashMap<(u32, u64), Open>,
    expected_open: usize,
    /// By client: the last of the demo's events that came, and the offset of the last event of all; both ascending.
    last: Vec<(Option<u64>, Option<u64>)>,
    told_position: Vec<bool>,
    figures: Figures,
    latency_us: Histogram<u64>,
    settled: Option<oneshot::Sender<()>>,
}

impl Oracle {
    /// Installs what the roles subscribe to. The index of a role is its client's number.
    pub(super) fn new(roles: &[std::sync::Arc<Role>], operator_idx: u32) -> anyhow::Result<Self> {
        let mut scan = Scan::new(WORLD);
        let mut owners = Vec::new();
        for (client_idx, role) in (0_u32..).zip(roles) {
            for wish in &role.wishes {
                let id = SubscriptionId(u32::try_from(owners.len())?);
                scan.install(id, &wish.subscription(ClientId(client_idx))?)?;
                owners.push((client_idx, role.bit(wish.id)));
            }
        }
        let latency_us = Histogram::new_with_bounds(1, LATENCY_MAX_US, 3)?;
        let figures = Figures {
            vehicles: 0,
            moves: 0,
            events: 0,
            events_matched: 0,
            deliveries: 0,
            missing: 0,
            spurious: 0,
            duplicates: 0,
            gaps: 0,
            foreign: 0,
            violations: 0,
            latency_us: latency_us.clone(),
            examples: Vec::new(),
        };
        Ok(Self {
            operator_idx,
            scan,
            owners,
            rows: MatchRows::new(),
            open: HashMap::new(),
            expected_open: 0,
            last: vec![(None, None); roles.len()],
            told_position: vec![false; roles.len()],
            roles: roles.to_vec(),
            figures,
            latency_us,
            settled: None,
        })
    }

    /// Takes facts until nobody can tell more; then says how it ended.
    pub(super) fn watch(mut self, mut facts: mpsc::Receiver<Fact>) -> anyhow::Result<Figures> {
        while let Some(fact) = facts.blocking_recv() {
            self.take(fact)?;
            if self.expected_open == 0
                && let Some(settled) = self.settled.take()
            {
                // Whoever asked may have run out of patience.
                let _ = settled.send(());
            }
        }
        Ok(self.conclude())
    }

    fn take(&mut self, fact: Fact) -> anyhow::Result<()> {
        match fact {
            Fact::Moved { client_idx, position } => {
                self.scan.move_client(ClientId(client_idx), Some(position));
                self.figures.moves += 1;
                let told = &mut self.told_position[client_idx as usize];
                self.figures.vehicles += usize::from(!*told);
                *told = true;
            }
            Fact::Published { number, event, sent_at } => self.expect(number, &event, sent_at)?,
            Fact::Delivered { client_idx, number, offset, subscriptions, received_at } => {
                self.receive(client_idx, number, offset, subscriptions, received_at);
            }
            Fact::Foreign { client_idx, offset } => {
                self.figures.foreign += 1;
                self.follows(client_idx, offset);
            }
            Fact::Violated { client_idx, offset } => {
                self.figures.violations += u64::from(client_idx == self.operator_idx);
                self.follows(client_idx, offset);
            }
            Fact::Lost { count } => self.figures.gaps += count,
            Fact::Asked { answer } => {
                let figures = self.figures.clone();
                self.figures.latency_us.reset();
                // Whoever asked may be gone.
                let _ = answer.send(figures);
            }
            Fact::Ended { settled } => self.settled = Some(settled),
        }
        Ok(())
    }

    /// Finds the clients that have to get an event.
    fn expect(&mut self, number: u64, event: &Event, sent_at: Instant) -> anyhow::Result<()> {
        self.figures.events += 1;
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        self.scan.match_batch(&[event], &mut rows)?;
        let mut matched = false;
        // Ids are given out client by client, so those of a client stand together.
        let by_client = |a: &SubscriptionId, b: &SubscriptionId| self.owner(*a).0 == self.owner(*b).0;
        let expected: Vec<(u32, u64)> = rows
            .row(0)
            .chunk_by(by_client)
            .map(|ids| (self.owner(ids[0]).0, ids.iter().fold(0, |set, id| set | self.owner(*id).1)))
            .collect();
        for (client_idx, subscriptions) in expected {
            matched |= client_idx != self.operator_idx;
            match self.open.entry((client_idx, number)) {
                Entry::Vacant(entry) => {
                    entry.insert(Open::Expected { subscriptions, sent_at });
                    self.expected_open += 1;
                }
                Entry::Occupied(entry) => {
                    if let Open::Received { subscriptions: received, received_at } = *entry.get() {
                        entry.remove();
                        self.pair((client_idx, number), subscriptions, received, sent_at, received_at);
                    }
                }
            }
        }
        self.figures.events_matched += u64::from(matched);
        self.rows = rows;
        Ok(())
    }

    fn receive(&mut self, client_idx: u32, number: u64, offset: u64, subscriptions: u64, at: Instant) {
        self.figures.deliveries += 1;
        let (last, _) = &mut self.last[client_idx as usize];
        // Events are published one after the other, so each client gets them in the order of their numbers.
        if last.is_some_and(|last| number <= last) {
            self.figures.duplicates += 1;
            return;
        }
        *last = Some(number);
        self.follows(client_idx, offset);
        match self.open.remove(&(client_idx, number)) {
            Some(Open::Expected { subscriptions: expected, sent_at }) => {
                self.expected_open -= 1;
                self.pair((client_idx, number), expected, subscriptions, sent_at, at);
            }
            Some(Open::Received { .. }) | None => {
                self.open.insert((client_idx, number), Open::Received { subscriptions, received_at: at });
            }
        }
    }

    /// Takes down an offset, and whether it is the one behind the last.
    fn follows(&mut self, client_idx: u32, offset: u64) {
        let (_, last) = &mut self.last[client_idx as usize];
        self.figures.gaps += u64::from(last.is_some_and(|last| offset != last + 1));
        *last = Some(offset);
    }

    /// Both sides of a delivery are there. Other subscriptions than expected are a delivery that is missing and
    /// one that is spurious.
    fn pair(&mut self, key: (u32, u64), expected: u64, received: u64, sent_at: Instant, at: Instant) {
        let latency_us = u64::try_from(at.saturating_duration_since(sent_at).as_micros()).unwrap_or(u64::MAX);
        self.figures.latency_us.saturating_record(latency_us);
        self.latency_us.saturating_record(latency_us);
        if expected != received {
            self.figures.missing += 1;
            self.figures.spurious += 1;
            self.example(key, &format!("subscriptions {received:#b} instead of {expected:#b}"));
        }
    }

    /// Ends the check: everything that is still open is wrong.
    fn conclude(mut self) -> Figures {
        for (key, open) in std::mem::take(&mut self.open) {
            match open {
                Open::Expected { .. } => {
                    self.figures.missing += 1;
                    self.example(key, "missing");
                }
                Open::Received { .. } => {
                    self.figures.spurious += 1;
                    self.example(key, "spurious");
                }
            }
        }
        Figures { latency_us: self.latency_us, ..self.figures }
    }

    fn example(&mut self, (client_idx, number): (u32, u64), what: &str) {
        if self.figures.examples.len() < EXAMPLES_MAX {
            let client = &self.roles[client_idx as usize].client;
            self.figures.examples.push(format!("event {number} for {client}: {what}"));
        }
    }

    fn owner(&self, id: SubscriptionId) -> (u32, u64) {
        self.owners[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::fleet;
    use std::sync::Arc;

    /// Two taxis and the operator; a slow busy taxi reports where both taxis are.
    fn oracle() -> Oracle {
        let roles = [fleet::taxi(1), fleet::taxi(2), fleet::operator()].map(Arc::new);
        let mut oracle = Oracle::new(&roles, 2).unwrap();
        let here = WORLD.position(&[114.0, 22.5]).unwrap();
        for client_idx in [0, 1] {
            oracle.take(Fact::Moved { client_idx, position: here }).unwrap();
        }
        oracle
    }

    fn published(number: u64) -> Fact {
        let event = Event::at(WORLD.position(&[114.001, 22.5]).unwrap())
            .with("speed_kmh", 3.0)
            .with("status", "hired");
        Fact::Published { number, event: Box::new(event), sent_at: Instant::now() }
    }

    fn delivered(client_idx: u32, number: u64, offset: u64, subscriptions: u64) -> Fact {
        Fact::Delivered { client_idx, number, offset, subscriptions, received_at: Instant::now() }
    }

    fn conclude(facts: impl IntoIterator<Item = Fact>) -> Figures {
        let mut oracle = oracle();
        facts.into_iter().for_each(|fact| oracle.take(fact).unwrap());
        oracle.conclude()
    }

    #[test]
    fn deliveries_before_and_after_the_answer_to_the_publish_are_exact() {
        let figures =
            conclude([delivered(0, 1, 1, 1), published(1), delivered(1, 1, 1, 1), delivered(2, 1, 1, 1)]);
        assert!(figures.exact(), "{figures:?}");
        assert_eq!((figures.deliveries, figures.events_matched, figures.vehicles), (3, 1, 2));
        assert_eq!(figures.latency_us.len(), 3);
    }

    #[test]
    fn what_does_not_come_is_missing() {
        let figures = conclude([published(1), delivered(0, 1, 1, 1)]);
        assert_eq!((figures.missing, figures.spurious), (2, 0));
        assert_eq!(figures.examples.len(), 2);
    }

    #[test]
    fn what_nobody_expected_is_spurious() {
        let all = |number| [0, 1, 2].map(|client_idx| delivered(client_idx, number, number, 1));
        let figures = conclude([published(1)].into_iter().chain(all(1)).chain(all(2)));
        assert_eq!((figures.missing, figures.spurious), (0, 3));
        assert!(!figures.exact());
    }

    #[test]
    fn a_wrong_set_of_subscriptions_is_missing_and_spurious() {
        let figures =
            conclude([published(1), delivered(0, 1, 1, 1), delivered(1, 1, 1, 1), delivered(2, 1, 1, 3)]);
        assert_eq!((figures.missing, figures.spurious), (1, 1));
    }

    #[test]
    fn events_of_others_are_not_held_against_anything_and_have_their_offsets() {
        let figures = conclude([
            Fact::Foreign { client_idx: 2, offset: 1 },
            published(1),
            delivered(0, 1, 1, 1),
            delivered(1, 1, 1, 1),
            delivered(2, 1, 2, 1),
            Fact::Foreign { client_idx: 2, offset: 3 },
            Fact::Violated { client_idx: 2, offset: 4 },
            Fact::Violated { client_idx: 1, offset: 2 },
        ]);
        assert!(figures.exact() && figures.foreign == 2 && figures.violations == 1, "{figures:?}");
        let figures = conclude([2, 4].map(|offset| Fact::Foreign { client_idx: 0, offset }));
        assert_eq!(figures.gaps, 1);
    }

    #[test]
    fn repetitions_and_jumps_in_offsets_are_told() {
        let all = |number| [0, 1, 2].map(|client_idx| delivered(client_idx, number, number, 1));
        let figures = conclude([published(1)].into_iter().chain(all(1)).chain([delivered(0, 1, 2, 1)]));
        assert_eq!((figures.missing, figures.spurious, figures.duplicates), (0, 0, 1));
        let third = [published(3)].into_iter().chain(all(3));
        let figures = conclude([published(1)].into_iter().chain(all(1)).chain(third));
        assert_eq!((figures.missing, figures.spurious, figures.gaps), (0, 0, 3));
    }
}
