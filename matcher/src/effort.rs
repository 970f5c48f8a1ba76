//! Time that tests of an event take in long conditions, by subscription.
//!
//! Engines do not count: that would slow down every event for the few that take long. Where one did, this goes once more through what
//! an engine has to test for it, and counts.

use std::collections::HashMap;

use crate::compiled::constraints::hash_constraint;
use crate::condition::expression::{Comparand, Constraint, Test, Truth};
use crate::condition::normal::Conjunction;
use crate::condition::reading::Reading;
use crate::event::{Event, Value};
use crate::geo::{Position, World};
use crate::subscription::{Filter, SubscriptionId};

/// Time that the long conditions of some subscriptions take in the matching of one event, in nanoseconds, about.
///
/// As in an engine, a condition is tested only where the event is near to the filter's area and what is tested by codes holds, and
/// equal constraints are tested once: those that have them share what that takes. What does not depend on the condition is left out.
#[derive(Debug)]
pub struct Effort<'a> {
    world: World,
    event: &'a Event,
    reading: Reading<'a>,
    /// Constraints that were tested, by their hashes.
    tested: HashMap<u64, Tested>,
    /// Tests by subscription, each with the hash of its constraint.
    uses: Vec<(SubscriptionId, u64)>,
}

/// Outcome of a test, the nanoseconds that it took, and the number of filters that it was for.
#[derive(Debug)]
struct Tested {
    truth: Truth,
    ns: u64,
    uses: u64,
}

impl<'a> Effort<'a> {
    /// Begins with no subscription counted.
    #[must_use]
    pub fn new(world: World, event: &'a Event) -> Self {
        Self { world, event, reading: Reading::default(), tested: HashMap::new(), uses: Vec::new() }
    }

    /// Holds the event against the filters of a subscription, whose client is there, for as long as `goes_on` says so, which is asked
    /// before each conjunction.
    pub fn hold(
        &mut self,
        id: SubscriptionId,
        filters: &[Filter],
        client: Option<&Position>,
        mut goes_on: impl FnMut() -> bool,
    ) {
        self.reading.turn_to(client);
        for filter in filters {
            let ball = filter.area.ball(self.world, client);
            if !ball.is_some_and(|ball| ball.holds(self.event.position.point())) {
                continue;
            }
            for conjunction in filter.condition.normal().conjunctions() {
                if !goes_on() {
                    return;
                }
                self.hold_conjunction(id, conjunction);
            }
        }
    }

    fn hold_conjunction(&mut self, id: SubscriptionId, conjunction: &Conjunction) {
        let event = self.event;
        let mut rest = Vec::new();
        if conjunction.required().any(|name| event.value(name).is_none()) {
            return;
        }
        for literal in &conjunction.literals {
            match event.value(&literal.constraint.name) {
                Some(value) if !is_quick(&literal.constraint, value) => rest.push((literal, value)),
                value if literal.satisfied(value) => {}
                _ => return,
            }
        }
        for (literal, value) in rest {
            let expected = if literal.negated { Truth::False } else { Truth::True };
            let constraint = &literal.constraint;
            let test = |reading: &mut Reading<'a>| reading.truth(constraint, Some(value));
            if self.test(id, hash_constraint(constraint), test) != expected {
                return;
            }
        }
        for literal in &conjunction.residuals {
            let expected = if literal.negated { Truth::False } else { Truth::True };
            let residual = &literal.residual;
            let test = |reading: &mut Reading<'a>| reading.residual(residual, event);
            // Where it depends on the client, none that has it has the same.
            let own = if residual.reads_client() { u64::from(id.0) << 32 | 1 } else { 0 };
            if self.test(id, residual.hash() ^ own, test) != expected {
                return;
            }
        }
    }

    /// The outcome of a test, by its hash: it is made once, and those that ask for it share what it takes.
    fn test(&mut self, id: SubscriptionId, hash: u64, test: impl FnOnce(&mut Reading<'a>) -> Truth) -> Truth {
        self.uses.push((id, hash));
        if let Some(tested) = self.tested.get_mut(&hash) {
            tested.uses += 1;
            return tested.truth;
        }
        let before = self.reading.ns();
        let truth = test(&mut self.reading);
        let ns = self.reading.ns() - before;
        self.tested.insert(hash, Tested { truth, ns, uses: 1 });
        truth
    }

    /// The subscriptions that took something, in the order in which they were held, each with how many nanoseconds.
    pub fn shares(&self) -> impl Iterator<Item = (SubscriptionId, u64)> {
        let share = |(_, hash): &(SubscriptionId, u64)| {
            self.tested.get(hash).map_or(0, |Tested { ns, uses, .. }| ns / uses)
        };
        let of_one = self.uses.chunk_by(|a, b| a.0 == b.0);
        of_one.map(move |uses| (uses[0].0, uses.iter().map(share).sum()))
    }
}

/// Whether engines test it for many filters at once, or by one comparison.
fn is_quick(constraint: &Constraint, value: &Value) -> bool {
    let is_plain = |other: &Comparand| matches!(other, Comparand::Scalar(_));
    let is_one = match &constraint.test {
        Test::Compare(_, other) => is_plain(other),
        Test::Between(low, high) => is_plain(low) && is_plain(high),
        Test::IsNull => true,
        Test::In(_) | Test::Like(_) => false,
    };
    is_one && !constraint.casei && matches!(value, Value::Scalar(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::Area;
    use crate::condition::Condition;
    use crate::condition::reading::TEST_NS;
    use crate::event::Scalar;
    use crate::geo::Radius;

    const WORLD: World = World::Planar;

    fn filter(condition: &str) -> Filter {
        Filter { area: Area::Everywhere, condition: Condition::parse(condition).unwrap() }
    }

    /// Nanoseconds of each subscription's share.
    fn shares(event: &Event, subscriptions: &[Vec<Filter>]) -> Vec<u64> {
        let mut effort = Effort::new(WORLD, event);
        for (id, filters) in (0..).zip(subscriptions) {
            effort.hold(SubscriptionId(id), filters, None, || true);
        }
        let mut sums = vec![0; subscriptions.len()];
        effort.shares().for_each(|(id, ns)| sums[id.0 as usize] += ns);
        sums
    }

    fn event() -> Event {
        let position = WORLD.position(&[0.0, 0.0]).unwrap();
        Event::at(position).with("kind", "x").with("text", &*"Lorem ipsum ".repeat(1_000))
    }

    #[test]
    fn who_has_texts_read_takes_it_and_nobody_else() {
        let heavy = (0..10).map(|idx| filter(&format!("text LIKE '%_{idx}%'"))).collect();
        let subscriptions = [
            heavy,
            vec![filter("kind = 'x'")],
            vec![filter("kind = 'y' AND text LIKE '%a%'")],
            vec![filter("absent = 1 AND text LIKE '%a%'")],
            vec![filter("text LIKE '%a%'")],
        ];
        let taken = shares(&event(), &subscriptions);
        assert!(taken[0] > 10 * 12_000 && taken[4] > 10_000, "{taken:?}");
        assert_eq!(taken[1..4], [0, 0, 0]);
        assert!(taken[0] > 10 * taken[4], "{taken:?}");
    }

    #[test]
    fn it_ends_in_the_middle_of_a_subscription() {
        let filters: Vec<_> =
            (0..4).map(|idx| filter(&format!("kind = 'y' OR text LIKE '%_{idx}%'"))).collect();
        let event = event();
        let mut effort = Effort::new(WORLD, &event);
        let mut left = 5;
        let goes_on = || {
            left -= 1;
            left >= 0
        };
        effort.hold(SubscriptionId(0), &filters, None, goes_on);
        assert_eq!(effort.uses.len(), 2);
    }

    #[test]
    fn what_several_have_they_share() {
        let one = shares(&event(), &[vec![filter("text LIKE '%a%'")]]);
        let two = shares(&event(), &[vec![filter("text LIKE '%a%'")], vec![filter("text LIKE '%a%'")]]);
        assert_eq!(two, [one[0] / 2, one[0] / 2]);
    }

    #[test]
    fn an_area_elsewhere_takes_nothing() {
        let area = |x: f64| Area::Circle {
            centre: WORLD.position(&[x, 0.0]).unwrap(),
            radius: Radius::new(WORLD, 10.0).unwrap(),
        };
        let there = |x| vec![Filter { area: area(x), ..filter("text LIKE '%a%'") }];
        let taken = shares(&event(), &[there(0.0), there(1_000.0)]);
        assert!(taken[0] > 0 && taken[1] == 0, "{taken:?}");
    }

    #[test]
    fn arrays_are_tested_element_by_element_and_texts_are_folded_once() {
        let texts = (0..256).map(|idx| Scalar::Text(format!("Text {idx}").as_str().into()));
        let event = event().with("texts", Value::Array(texts.collect()));
        let subscriptions = [
            vec![filter("texts = 'a'")],
            vec![filter("texts LIKE '%zz%'")],
            vec![filter("CASEI(text) = 'a'"), filter("CASEI(text) = 'b'")],
        ];
        let taken = shares(&event, &subscriptions);
        assert_eq!(taken[0], 256 * TEST_NS);
        assert!(taken[1] > 2 * taken[0], "{taken:?}");
        assert_eq!(taken[2], 12_000 * 16 + 2 * TEST_NS);
    }

    #[test]
    fn what_no_index_serves_is_counted_where_what_it_requires_is_there() {
        let taken = shares(
            &event(),
            &[
                vec![filter("ACCENTI(text) = kind")],
                vec![filter("ACCENTI(text) = kind AND absent = 1")],
                vec![filter("ACCENTI(text) = absent")],
                vec![filter("kind <> 'x' AND ACCENTI(text) = kind")],
            ],
        );
        assert!(taken[0] > 12_000, "{taken:?}");
        assert_eq!(taken[1..], [0, 0, 0]);
    }
}
