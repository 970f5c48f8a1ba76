//! The suite itself: engines with one small fault each have to be caught.

use nearcast_matcher::engine::scan::Scan;
use nearcast_matcher::engine::{Engine, Footprint, InstallError, MatchError, MatchRows};
use nearcast_matcher::event::Event;
use nearcast_matcher::fixtures::{conformance, random};
use nearcast_matcher::geo::{Position, World};
use nearcast_matcher::subscription::{ClientId, Subscription, SubscriptionId};

/// What is wrong with an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// One match of a thousand is left out.
    DropsMatch,
    /// One match of a thousand brings another subscription with it.
    AddsMatch,
    /// One move of a hundred does nothing.
    IgnoresMove,
    /// A client that loses its position stays where it was.
    IgnoresVanishing,
    /// One removal of a hundred does nothing but say that it did.
    IgnoresRemoval,
    /// A replacement adds its filters to those that are there.
    KeepsReplaced,
    /// The event's own area is not looked at.
    IgnoresReach,
    /// Positions are rounded to 32 bits.
    RoundsPositions,
    /// Rows are not in order.
    ReversesRows,
    /// An earlier batch's rows are gone.
    ClearsRows,
}

/// An engine that is right but for its fault.
struct Faulty {
    fault: Fault,
    inner: Scan,
    world: World,
    installed: std::collections::HashMap<SubscriptionId, Subscription>,
    /// Matches, moves or removals so far, whichever the fault counts.
    turns: usize,
}

impl Faulty {
    fn new(fault: Fault, world: World) -> Self {
        Self { fault, inner: Scan::new(world), world, installed: Default::default(), turns: 0 }
    }

    fn is_turn(&mut self, period: usize) -> bool {
        self.turns += 1;
        self.turns.is_multiple_of(period)
    }

    fn spoil(&mut self, mut row: Vec<SubscriptionId>) -> Vec<SubscriptionId> {
        if self.fault == Fault::DropsMatch {
            row.retain(|_| !self.is_turn(1_000));
        }
        if self.fault == Fault::AddsMatch && row.iter().any(|_| self.is_turn(1_000)) {
            row.extend(self.installed.keys().find(|id| !row.contains(id)).copied());
        }
        row
    }

    fn seen(&self, event: &Event) -> Event {
        let mut event = event.clone();
        if self.fault == Fault::IgnoresReach {
            event.reach = None;
        }
        if self.fault == Fault::RoundsPositions {
            #[expect(clippy::cast_possible_truncation, reason = "this is the fault")]
            let rounded = [event.position.x(), event.position.y()].map(|number| f64::from(number as f32));
            event.position = self.world.position(&rounded).expect("no number leaves the world by rounding");
        }
        event
    }
}

impl Engine for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError> {
        let mut subscription = subscription.clone();
        if let (Fault::KeepsReplaced, Some(old)) = (self.fault, self.installed.get(&id)) {
            subscription.filters.extend(old.filters.iter().cloned());
        }
        self.inner.install(id, &subscription)?;
        self.installed.insert(id, subscription);
        Ok(())
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        let there = self.installed.remove(&id).is_some();
        if self.fault != Fault::IgnoresRemoval || !there || !self.is_turn(100) {
            self.inner.remove(id);
        }
        there
    }

    fn move_client(&mut self, client: ClientId, position: Option<Position>) {
        let move_ignored = self.fault == Fault::IgnoresMove && position.is_some() && self.is_turn(100);
        let vanishing_ignored = self.fault == Fault::IgnoresVanishing && position.is_none();
        if !move_ignored && !vanishing_ignored {
            self.inner.move_client(client, position);
        }
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        if self.fault == Fault::ClearsRows {
            rows.clear();
        }
        let seen: Vec<Event> = events.iter().map(|event| self.seen(event)).collect();
        let mut found = MatchRows::new();
        self.inner.match_batch(&seen.iter().collect::<Vec<_>>(), &mut found)?;
        let mut found: Vec<_> = found.iter().map(<[_]>::to_vec).map(|row| self.spoil(row)).collect();
        if self.fault == Fault::ReversesRows {
            found.reverse();
        }
        for row in found {
            rows.push_with(|ids| ids.extend(row));
        }
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        Footprint { subscriptions: self.installed.len(), ..self.inner.footprint() }
    }
}

/// Pairs that the random worlds get to find a fault; an ordinary run has many times as many.
const PAIRS: u64 = 1_000_000;

fn caught_by_cases(fault: Fault) -> bool {
    !conformance::failures(&|world| Box::new(Faulty::new(fault, world))).is_empty()
}

fn caught_by_random_worlds(fault: Fault) -> bool {
    random::run_pairs(&|world| Box::new(Faulty::new(fault, world)), 0, PAIRS).is_err()
}

#[test]
fn an_engine_without_a_fault_passes() {
    assert!(!caught_by_cases(Fault::None) && !caught_by_random_worlds(Fault::None));
}

#[test]
fn random_worlds_catch_rare_faults() {
    for fault in [
        Fault::DropsMatch,
        Fault::AddsMatch,
        Fault::IgnoresMove,
        Fault::IgnoresVanishing,
        Fault::IgnoresRemoval,
        Fault::KeepsReplaced,
        Fault::IgnoresReach,
        Fault::RoundsPositions,
        Fault::ReversesRows,
    ] {
        assert!(caught_by_random_worlds(fault), "{fault:?}");
    }
}

#[test]
fn named_cases_catch_steady_faults() {
    for fault in [
        Fault::DropsMatch,
        Fault::IgnoresVanishing,
        Fault::IgnoresRemoval,
        Fault::KeepsReplaced,
        Fault::IgnoresReach,
        Fault::RoundsPositions,
        Fault::ReversesRows,
        Fault::ClearsRows,
    ] {
        assert!(caught_by_cases(fault), "{fault:?}");
    }
}

#[test]
fn a_failure_says_where_to_look() {
    let make = |world| -> Box<dyn Engine> { Box::new(Faulty::new(Fault::DropsMatch, world)) };
    let failure = random::run_pairs(&make, 0, PAIRS).expect_err("matches are dropped").to_string();
    assert!(failure.starts_with("random world of seed "), "{failure}");
    assert!(failure.contains("round") && failure.contains("missing ["), "{failure}");
    // The same seed fails in the same way.
    assert_eq!(random::run_pairs(&make, 0, PAIRS).unwrap_err().to_string(), failure);
}
