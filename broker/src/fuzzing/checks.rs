//! Checks: what is read is what is shown, and the engines agree about it.

use std::sync::Arc;

use checks::cost::estimate;
use checks::{Arrival, Bounds, Check, Checker, Kind};
use matcher::event::Event;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::documents::{Readers, read};
use crate::ingest::check::{ReadCheck, read as read_check};

/// Events that each check is evaluated with.
const EVENTS: usize = 12;

/// Comparisons beyond which a check is read and not evaluated.
const COMPARISONS_MAX: f64 = 10_000.0;

/// A check, as `PUT /v1/checks/{name}` takes it.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parse = |readers: &Readers, text: &str| read_check(&readers.subscriptions, text);
    read(text, parse, |readers, ReadCheck { document, text, .. }| {
        let again = parse(readers, &text).expect("what is shown can be put again");
        assert_eq!(again.text, text);
        match Check::new(readers.world, &document) {
            Ok(check) => compare(readers, Arc::new(check), data.len()),
            Err(error) => assert!(error.pointer.starts_with('/') && !error.fault.to_string().is_empty()),
        }
    });
}

/// Evaluates a check with two engines, which give the same outcomes.
fn compare(readers: &Readers, check: Arc<Check>, seed: usize) {
    let costs = estimate(&check, |_| 12.0);
    if costs.whole.max(costs.change) > COMPARISONS_MAX {
        return;
    }
    let mut random = StdRng::seed_from_u64(seed as u64);
    let mut checkers = [Kind::Sequential, Kind::Incremental]
        .map(|kind| Checker::new(Arc::clone(&check), kind, Bounds::default()));
    for _ in 0..EVENTS {
        let mut number = || f64::from(random.random_range(0..4_u8));
        let place = [number() / 1_000.0, number()];
        let position = readers.world.position(&place).expect("a place");
        let mut event = Event::at(position);
        for name in ["x", "speed", "status", "taxi"] {
            event = event.with(name, number());
        }
        let arrival_ms = 1_000 * random.random_range(0..120_i64);
        let arrival = Arrival { event: Arc::new(event), time_ms: Some(arrival_ms), arrival_ms };
        let outcomes = checkers.each_mut().map(|checker| {
            let outcome = checker.take((), &arrival);
            outcome.map(|outcome| {
                outcome.map(|mut outcome| {
                    outcome.told.sort_unstable();
                    outcome
                })
            })
        });
        // How far an engine comes with too many links is its own affair.
        if let [Ok(one), Ok(other)] = outcomes {
            assert_eq!(one, other);
        } else {
            return;
        }
    }
}
