//! What the matching of events takes an engine, and whose conditions do.
//!
//! Mostly that is little, and nobody is asked. Where it took long, some of it is ascribed: the events at hand are held once more
//! against the subscriptions with long conditions, with counting. That takes long as well, so it is done for one run of events of many,
//! and stands for all that came since the last time: the longer a run took, the more likely it is the one.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use matcher::effort::Effort;
use matcher::event::Event;
use matcher::geo::World;
use matcher::subscription::{ClientId, SubscriptionId};

use super::Sessions;
use super::costs::LONG;
use crate::model::clock;

/// Subscriptions with fewer constraints, weighed as `limits.constraints_per_client` does, are not looked at: a thousand of them take
/// little.
const HEAVY: u64 = 16;

/// Matching that takes less for an event is never ascribed, however many events there are.
const LONG_EVENT: Duration = Duration::from_micros(100);

/// Events of a run that are looked at: those with most in them.
const EVENTS: usize = 16;

/// No more subscriptions are looked at once that has taken so long: others wait meanwhile.
const LONGEST: Duration = Duration::from_millis(50);

/// Finding out for whom matching takes long may take one part in `PART` of its time.
const PART: u32 = 8;

/// What is known of the matching of a shard.
#[derive(Debug)]
pub(super) struct Matching {
    world: World,
    /// The subscriptions with long conditions.
    heavy: BTreeSet<u32>,
    /// Of these the one that is looked at first the next time: should they be many, they take turns.
    next: u32,
    /// What the run of events at hand took, where that was long.
    took: Duration,
    /// What nobody has been charged for yet.
    open: Duration,
    /// From here on somebody is.
    enough: Duration,
}

impl Matching {
    pub(super) fn new(world: World) -> Self {
        Self {
            world,
            heavy: BTreeSet::new(),
            next: 0,
            took: Duration::ZERO,
            open: Duration::ZERO,
            enough: LONG,
        }
    }

    /// Notes that a subscription was installed, and how many constraints it has.
    pub(super) fn installed(&mut self, number: u32, constraints: u64) {
        if constraints >= HEAVY {
            self.heavy.insert(number);
        } else {
            self.heavy.remove(&number);
        }
    }

    /// Notes that a subscription has ended.
    pub(super) fn ended(&mut self, number: u32) {
        self.heavy.remove(&number);
    }
}

impl Sessions {
    /// Notes how long it took to match the run of events at hand.
    pub(super) fn matched(&mut self, events_count: usize, took: Duration) {
        let long = LONG.max(LONG_EVENT * u32::try_from(events_count).unwrap_or(u32::MAX));
        let is_long = took >= long && !self.matching.heavy.is_empty();
        self.matching.took = if is_long { self.worked(took) } else { Duration::ZERO };
    }

    /// Charges the owners of long conditions for what the matching of the run of events at hand took, should it have been long.
    pub(crate) fn charge_matching(&mut self, events: &[&Event]) {
        let took = std::mem::take(&mut self.matching.took);
        self.matching.open += took;
        if took.is_zero() || self.matching.open < self.matching.enough {
            return;
        }
        let open = std::mem::take(&mut self.matching.open);
        let began = clock::now();
        let work = self.effort(events, began + LONGEST);
        let all = work.iter().map(|(_, ns)| ns).sum::<u64>();
        // What the counting does not explain is not charged.
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.charge_shares(open, &work, all.max(took_ns));
        self.matching.enough = LONG.max(clock::now().saturating_duration_since(began) * PART);
    }

    /// What long conditions took for these events, in nanoseconds, as far as there is time to find out.
    fn effort(&mut self, events: &[&Event], deadline: Instant) -> Vec<(SubscriptionId, u64)> {
        let mut events = events.to_vec();
        events.sort_by_cached_key(|event| Reverse(event.bytes()));
        events.truncate(EVENTS);
        let mut efforts: Vec<_> =
            events.iter().map(|event| Effort::new(self.matching.world, event)).collect();
        let heavy = &self.matching.heavy;
        let mut next = self.matching.next;
        for number in heavy.range(next..).chain(heavy.range(..next)) {
            let id = SubscriptionId(*number);
            let held = self.subscriptions.get(*number);
            let Some((watch, held)) = self.tracker.watch(id).zip(held) else { continue };
            let position = self.tracker.fix(ClientId(held.client)).map(|fix| &fix.position);
            for effort in &mut efforts {
                effort.hold(id, watch.filters(), position);
            }
            next = number.saturating_add(1);
            if clock::now() >= deadline {
                break;
            }
        }
        let work = efforts.iter().flat_map(Effort::shares).collect();
        self.matching.next = next;
        work
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
        assert_eq!(bench.sessions.matching.heavy.len(), 1);
    }

    #[test]
    fn what_is_quick_is_not_looked_into() {
        let mut bench = Bench::with(None, |_| {});
        let ms = Duration::from_millis;
        bench.sessions.matched(1, ms(50));
        assert!(bench.sessions.matching.took.is_zero(), "there are no long conditions");
        bench.sessions.matching.installed(0, HEAVY);
        for (events_count, took) in [(1, Duration::from_micros(999)), (1_000, ms(99))] {
            bench.sessions.matched(events_count, took);
            assert!(bench.sessions.matching.took.is_zero());
        }
        bench.sessions.matched(1_000, ms(100));
        assert!(!bench.sessions.matching.took.is_zero());
        bench.sessions.matching.installed(0, HEAVY - 1);
        assert!(bench.sessions.matching.heavy.is_empty());
    }
}
