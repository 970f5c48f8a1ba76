//! Flows of publishers and movers: what of theirs is under way, and how fast they may.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::Semaphore;

use super::bucket::Bucket;
use super::changes::{OF_ALL, OF_ONE, OF_TENANT};
use super::controller::Feedback;
use super::named::Named;
use super::turns::Turns;
use crate::ingest::Confinement;

/// The requests of one client, one connection or one tenant.
#[derive(Debug)]
pub(crate) struct ClientLimiter {
    /// Its events on their way to the engines, counted while there is a need.
    under_way: AtomicUsize,
    pub(super) events: Bucket,
    pub(super) moves: Bucket,
    /// Bytes of large documents.
    pub(super) change_bytes: Bucket,
    /// How many more changes it may have under way.
    pub(super) changing: Arc<Semaphore>,
    pub(super) turns: Turns,
}

/// Events, moves and bytes of large documents that one flow may have in a second; 0 for any number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    pub(super) events: u32,
    pub(super) moves: u32,
    pub(super) change_bytes: u32,
}

/// Seconds whose worth of large documents may come at once: a client that begins brings what is to stay.
const CHANGES_AT_ONCE_S: u32 = 2;

/// The flows that have a name.
#[derive(Debug)]
pub(super) struct Flows {
    rates: Rates,
    /// Whether the names are those of tenants.
    are_tenants: bool,
    known: Named<ClientLimiter>,
}

/// The publisher of an event that is being published.
#[derive(Clone, Debug)]
pub(crate) struct Publisher {
    /// The client where it has said who it is, else its connection.
    pub(super) own: Arc<ClientLimiter>,
    pub(super) tenant: Option<Arc<ClientLimiter>>,
    /// To what its token is confined: it is told of nothing that was made under another one.
    pub(super) confinement: Option<Arc<Confinement>>,
}

/// Counts an event as under way until the last shard has dealt it out.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    publisher: Publisher,
    /// What is to know how long that took, and since when.
    feedback: Option<(Arc<Feedback>, Instant)>,
}

impl ClientLimiter {
    pub(super) fn new(rates: Rates) -> Arc<Self> {
        Self::with_changes(rates, OF_ONE)
    }

    fn with_changes(rates: Rates, changes: usize) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            under_way: AtomicUsize::new(0),
            events: Bucket::new(rates.events, now),
            moves: Bucket::new(rates.moves, now),
            change_bytes: Bucket::holding(rates.change_bytes, CHANGES_AT_ONCE_S, now),
            changing: Arc::new(Semaphore::new(changes)),
            turns: Turns::default(),
        })
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Whether a new one would do as well, as far as its rates are concerned.
    fn is_rested(&self, now: Instant) -> bool {
        [&self.events, &self.moves, &self.change_bytes].iter().all(|bucket| bucket.is_full(now))
    }
}

impl Flows {
    pub(super) fn new(rates: Rates) -> Self {
        Self { rates, are_tenants: false, known: Named::default() }
    }

    /// Makes the flows of tenants, of which one may have no name.
    pub(super) fn of_tenants(rates: Rates) -> Self {
        Self { are_tenants: true, ..Self::new(rates) }
    }

    /// The flow of a name.
    pub(super) fn of(&self, name: &str) -> Arc<ClientLimiter> {
        let now = Instant::now();
        let changes = match (self.are_tenants, name) {
            (false, _) => OF_ONE,
            (true, "") => OF_ALL,
            (true, _) => OF_TENANT,
        };
        self.known.of(name, |flow| flow.is_rested(now), || ClientLimiter::with_changes(self.rates, changes))
    }
}

impl InFlightGuard {
    pub(super) fn new(publisher: &Publisher, feedback: Option<(Arc<Feedback>, Instant)>) -> Arc<Self> {
        for flow in publisher.flows() {
            flow.under_way.fetch_add(1, Ordering::Relaxed);
        }
        Arc::new(Self { publisher: publisher.clone(), feedback })
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        for flow in self.publisher.flows() {
            flow.under_way.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some((feedback, taken)) = &self.feedback {
            feedback.took(taken.elapsed());
        }
    }
}

impl Publisher {
    pub(super) fn flows(&self) -> impl Iterator<Item = &Arc<ClientLimiter>> {
        std::iter::once(&self.own).chain(&self.tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::super::named::FEW;
    use super::*;

    #[test]
    fn a_name_has_one_flow_as_long_as_that_tells_anything() {
        let flows = Flows::new(Rates { events: 1, ..Rates::default() });
        let now = Instant::now();
        let (held, spent) = (flows.of("held"), flows.of("spent"));
        assert!(spent.events.take(now));
        let spent = Arc::downgrade(&spent);
        for index in 0..3 * FEW {
            flows.of(&index.to_string());
        }
        assert!(Arc::ptr_eq(&held, &flows.of("held")));
        assert!(!flows.of("spent").events.take(now), "it would begin anew");
        assert!(spent.upgrade().is_some());
        assert!(flows.known.len() <= 2 * FEW);
    }

    #[test]
    fn an_event_is_under_way_until_the_last_has_dealt_it_out() {
        let flows = Flows::new(Rates::default());
        let publisher = Publisher { own: flows.of("a"), tenant: Some(flows.of("b")), confinement: None };
        let pass = InFlightGuard::new(&publisher, None);
        let other = Arc::clone(&pass);
        let counts = || [publisher.own.under_way(), publisher.tenant.as_ref().unwrap().under_way()];
        drop(pass);
        assert_eq!(counts(), [1, 1]);
        drop(other);
        assert_eq!(counts(), [0, 0]);
    }
}
