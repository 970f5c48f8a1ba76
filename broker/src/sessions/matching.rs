//! Engine time that the matching of events takes, and the subscriptions whose conditions cause it.
//!
//! Mostly that is little, and nobody is asked. Where it took long, some of it is ascribed: the events at hand are held once more
//! against the subscriptions with long conditions, with counting. That takes long as well, so it is done for some events of one run of many,
//! which stand for the others of the run, and the run for all that came since the last time: the longer one took, the more likely it is the
//! one.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use matcher::effort::Effort;
use matcher::event::Event;
use matcher::geo::World;
use matcher::subscription::{ClientId, SubscriptionId};
use matcher::violated;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};

use super::Sessions;
use super::costs::{LONG, Open, nanoseconds};
use crate::model::clock;

/// Subscriptions with as many constraints, weighed as `limits.constraints_per_client` does, are looked at, and all of a client whose
/// subscriptions come to more together: a thousand others take little.
const HEAVY: u64 = 16;

/// Matching that takes less for an event is never ascribed, however many events there are.
const LONG_EVENT: Duration = Duration::from_micros(100);

/// Events of a run that are looked at: those with most in them, and some of the others, which stand for these. They are drawn, so that
/// nobody can publish beside them.
const LARGEST: usize = 4;
const DRAWN: usize = 12;

/// No more subscriptions are looked at once that has taken so long: others wait meanwhile.
const LONGEST: Duration = Duration::from_millis(50);

/// Finding out for whom matching takes long may take one part in `PART` of its time.
const PART: u32 = 8;

/// The measurements of a shard's matching.
#[derive(Debug)]
pub(super) struct Matching {
    world: World,
    /// The subscriptions with long conditions, and others of clients that have much.
    looked_at: [Turns; 2],
    /// Time that the run of events at hand took, if that was long.
    took: Duration,
    open: Open,
    random: StdRng,
}

/// Subscriptions. Should they be many, they take turns.
#[derive(Debug, Default)]
struct Turns {
    numbers: BTreeSet<u32>,
    /// The one that is looked at first the next time.
    next: u32,
}

impl Turns {
    fn iter(&self) -> impl Iterator<Item = u32> {
        self.numbers.range(self.next..).chain(self.numbers.range(..self.next)).copied()
    }
}

impl Matching {
    pub(super) fn new(world: World, seed: u64) -> Self {
        let (open, random) = (Open::new(seed), StdRng::seed_from_u64(seed));
        Self { world, looked_at: Default::default(), took: Duration::ZERO, open, random }
    }

    /// Notes how many constraints a subscription has, and whether those of its client are many.
    pub(super) fn installed(&mut self, number: u32, constraints: u64, of_many: bool) {
        self.ended(number);
        if constraints >= HEAVY || of_many {
            self.looked_at[usize::from(constraints < HEAVY)].numbers.insert(number);
        }
    }

    /// Notes that a subscription has ended.
    pub(super) fn ended(&mut self, number: u32) {
        for turns in &mut self.looked_at {
            turns.numbers.remove(&number);
        }
    }

    fn looks_at_any(&self) -> bool {
        self.looked_at.iter().any(|turns| !turns.numbers.is_empty())
    }
}

impl Sessions {
    /// Notes how long it took to match the run of events at hand.
    pub(super) fn matched(&mut self, events_count: usize, took: Duration) {
        let long = LONG.max(LONG_EVENT * u32::try_from(events_count).unwrap_or(u32::MAX));
        let is_long = took >= long && self.matching.looks_at_any();
        self.matching.took = if is_long { self.worked(took) } else { Duration::ZERO };
    }

    /// Charges the owners of long conditions for what the matching of the run of events at hand took, should it have been long.
    pub(crate) fn charge_matching(&mut self, events: &[&Event]) {
        let took = std::mem::take(&mut self.matching.took);
        if took.is_zero() {
            return;
        }
        let Some(open) = self.matching.open.add(took) else { return };
        let began = clock::now();
        let work = self.effort(events, began + LONGEST);
        // What the counting does not explain is not charged.
        let all = work.iter().map(|(_, ns)| ns).sum::<u64>().max(nanoseconds(took));
        self.charge_shares(open, &work, all);
        self.matching.open.wait(LONG.max(clock::now().saturating_duration_since(began) * PART));
    }

    /// Time that long conditions took for these events, in nanoseconds, as far as there is time to find out.
    fn effort(&mut self, events: &[&Event], deadline: Instant) -> Vec<(SubscriptionId, u64)> {
        let Self { matching: Matching { world, looked_at, random, .. }, subscriptions, tracker, .. } = self;
        let mut events = events.to_vec();
        events.sort_by_cached_key(|event| Reverse(event.bytes()));
        let largest_count = LARGEST.min(events.len());
        let (largest, others) = events.split_at_mut(largest_count);
        let others_count = others.len() as u64;
        let (drawn, _) = others.partial_shuffle(random, DRAWN);
        let mut efforts: Vec<_> =
            largest.iter().chain(&*drawn).map(|event| Effort::new(*world, event)).collect();
        // Should one kind be more than there is time for, the other one is still looked at every other time.
        for kind in if random.random() { [0, 1] } else { [1, 0] } {
            let turns = &mut looked_at[kind];
            let mut next = turns.next;
            for number in turns.iter() {
                if clock::now() >= deadline {
                    break;
                }
                next = number.saturating_add(1);
                let id = SubscriptionId(number);
                let Some((watch, held)) = tracker.watch(id).zip(subscriptions.get(number)) else {
                    violated!("a subscription that is looked at is in force");
                    continue;
                };
                let position = tracker.fix(ClientId(held.client)).map(|fix| &fix.position);
                for effort in &mut efforts {
                    effort.hold(id, watch.filters(), position, || clock::now() < deadline);
                }
            }
            turns.next = next;
        }
        let (of_largest, of_drawn) = efforts.split_at(largest_count);
        let of_others = of_drawn.iter().flat_map(Effort::shares);
        let of_others = of_others.map(|(id, ns)| (id, ns * others_count / drawn.len() as u64));
        of_largest.iter().flat_map(Effort::shares).chain(of_others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;

    #[test]
    fn long_conditions_pay_for_the_events_that_they_slow_down_and_others_do_not() {
        let mut bench = Bench::with(None, |config| config.admission.engine_ms_per_second = 10);
        let filters: Vec<_> =
            (0..16).map(|idx| format!(r#"{{"where":"text LIKE '%_{idx}_and_and%'"}}"#)).collect();
        let heavy = format!(r#"{{"filters":[{}]}}"#, filters.join(","));
        bench.install_document("costly", "heavy", &heavy, None).unwrap();
        bench.install_document("costly", "cheap", r#"{"filters":[{"where":"kind = 'x'"}]}"#, None).unwrap();
        bench
            .install_document("neighbour", "cheap", r#"{"filters":[{"where":"kind = 'x'"}]}"#, None)
            .unwrap();
        bench
            .install_document("careful", "some", r#"{"filters":[{"where":"text LIKE '%q%'"}]}"#, None)
            .unwrap();
        let text = (0..1_000).map(|idx| format!("{idx} and ")).collect::<String>();
        let place = World::Planar.position(&[0.0, 0.0]).unwrap();
        let event = Event::at(place).with("kind", "x").with("text", &*text);
        let short = Event::at(place).with("kind", "x").with("text", "short");
        let cost = |bench: &Bench, client: &str| {
            let id = bench.sessions.ids[client];
            bench.sessions.clients.get(id).unwrap().costs.total_ms()
        };

        // What took long for other reasons is nobody's affair.
        for _ in 0..100 {
            bench.sessions.matching.took = Duration::from_millis(100);
            bench.sessions.charge_matching(&[&short]);
        }
        assert_eq!(cost(&bench, "costly"), 0);

        let is_suspended = |bench: &Bench| {
            bench.sessions.document("costly", "heavy").unwrap().contains("\"suspended\":true")
        };
        let mut rounds = 0;
        while !is_suspended(&bench) {
            assert!(rounds < 100_000, "it goes on");
            rounds += 1;
            // About what it takes.
            bench.sessions.matching.took = Duration::from_millis(1);
            bench.sessions.charge_matching(&[&short, &event]);
        }
        assert!(cost(&bench, "costly") >= 300, "{}", cost(&bench, "costly"));
        assert!(bench.sessions.engine_time.charge("costly", Duration::ZERO, clock::now()), "it owes nothing");
        assert_eq!(cost(&bench, "neighbour"), 0);
        assert!(cost(&bench, "careful") * 20 < cost(&bench, "costly"), "{}", cost(&bench, "careful"));
        assert!(!bench.sessions.document("costly", "cheap").unwrap().contains("suspended"));
        // It is not looked at any more.
        assert_eq!(bench.sessions.matching.looked_at[0].numbers.len(), 1);
    }

    #[test]
    fn events_that_are_drawn_stand_for_the_others_and_large_ones_hide_none() {
        let mut bench = Bench::with(None, |_| {});
        let heavy = r#"{"filters":[{"where":"text LIKE '%_q_%'"}]}"#;
        bench.install_document("costly", "heavy", heavy, None).unwrap();
        let place = World::Planar.position(&[0.0, 0.0]).unwrap();
        let long = Event::at(place).with("text", &*"a".repeat(1_000));
        let decoy = Event::at(place).with("other", &*"a".repeat(2_000));
        let later = || clock::now() + Duration::from_secs(3_600);
        let mut taken = |longs: usize, decoys: usize| {
            let events = std::iter::repeat_n(&decoy, decoys).chain(std::iter::repeat_n(&long, longs));
            let work = bench.sessions.effort(&events.collect::<Vec<_>>(), later());
            work.iter().map(|(_, ns)| ns).sum::<u64>()
        };
        let one = taken(1, 0);
        assert!(one > 1_000);
        for (longs, decoys) in [(3, 0), (16, 0), (1_000, 0), (1_000, LARGEST)] {
            let off = taken(longs, decoys).abs_diff(one * longs as u64);
            assert!(off < longs as u64, "{longs} {decoys}");
        }
        let half = taken(1_000, 1_000) / one;
        assert!((500..=1_800).contains(&half), "{half}");
        assert_eq!(taken(0, 100), 0);
    }

    #[test]
    fn many_small_subscriptions_of_one_client_are_looked_at() {
        let mut bench = Bench::with(None, |config| config.limits.subscriptions_per_client = 100);
        let small = r#"{"filters":[{"where":"tags IN ('a','b','c')"}]}"#;
        let looked_at = |bench: &Bench| {
            bench.sessions.matching.looked_at.iter().map(|turns| turns.numbers.len()).collect::<Vec<_>>()
        };
        for (number, expected) in (1..=10).zip([0, 0, 0, 0, 0, 0, 0, 8, 9, 10]) {
            bench.install_document("many", &number.to_string(), small, None).unwrap();
            assert_eq!(looked_at(&bench), [0, expected]);
        }
        bench.install_document("few", "1", small, None).unwrap();
        let large = r#"{"filters":[{"where":"tags LIKE '%a%'"}]}"#;
        bench.install_document("many", "1", large, None).unwrap();
        assert_eq!(looked_at(&bench), [1, 9]);
        bench.install_document("many", "1", small, None).unwrap();
        for number in 8..=10 {
            assert!(bench.sessions.remove("many", &number.to_string()));
        }
        assert_eq!(looked_at(&bench), [0, 0]);
    }

    #[test]
    fn what_is_quick_is_not_looked_into() {
        let mut bench = Bench::with(None, |_| {});
        let ms = Duration::from_millis;
        bench.sessions.matched(1, ms(50));
        assert!(bench.sessions.matching.took.is_zero(), "there are no long conditions");
        bench.sessions.matching.installed(0, HEAVY, false);
        for (events_count, took) in [(1, Duration::from_micros(999)), (1_000, ms(99))] {
            bench.sessions.matched(events_count, took);
            assert!(bench.sessions.matching.took.is_zero());
        }
        bench.sessions.matched(1_000, ms(100));
        assert!(!bench.sessions.matching.took.is_zero());
        bench.sessions.matching.installed(0, HEAVY - 1, false);
        assert!(!bench.sessions.matching.looks_at_any());
    }
}
