//! Waits between tries.

use std::time::Duration;

use crate::chance::Chance;

/// Bound of the first wait, where the application sets no other.
pub(crate) const BASE: Duration = Duration::from_secs(1);
/// Bound of all of them.
pub(crate) const CAP: Duration = Duration::from_secs(30);
/// While a broker has been away for less than [`AWAY`] no wait is longer than this.
const AWAY_CAP: Duration = Duration::from_secs(3);
/// So long the waits for a broker that is away are together before they grow: several times as long as a takeover takes.
const AWAY: Duration = Duration::from_secs(60);

/// Full jitter: each wait is a random time up to a bound that doubles with every try, so that clients do not come back in step. Where the
/// broker is away, the bound stays low for a minute: its standby takes over within seconds.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    base: Duration,
    cap: Duration,
    chance: Chance,
    bound: Duration,
    /// Sum of the waits. The time of a machine that sleeps does not count.
    waited: Duration,
}

impl Backoff {
    pub(crate) fn new(base: Duration, cap: Duration, chance: Chance) -> Self {
        Self { base, cap, chance, bound: base, waited: Duration::ZERO }
    }

    /// The next wait, no shorter than what the broker asked for. `away`: see [`Error::is_away`](crate::Error::is_away).
    pub(crate) fn next(&mut self, away: bool, retry_after: Option<Duration>) -> Duration {
        let is_new = away && self.waited < AWAY;
        let cap = if is_new { self.cap.min(self.base.max(AWAY_CAP)) } else { self.cap };
        let bound = self.bound.min(cap);
        let wait = bound.mul_f64(self.chance.fraction()).max(retry_after.unwrap_or_default());
        // A bound that was low for a minute grows from there.
        self.bound = bound.saturating_mul(2).min(cap);
        self.waited = self.waited.saturating_add(wait);
        wait
    }

    pub(crate) fn reset(&mut self) {
        self.bound = self.base;
        self.waited = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngCore, SeedableRng, rngs::SmallRng};

    use super::*;

    /// Always the same number.
    struct Share(u32);

    impl RngCore for Share {
        fn next_u32(&mut self) -> u32 {
            self.0
        }

        fn next_u64(&mut self) -> u64 {
            self.0.into()
        }

        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }

    /// Waits that are as long as they may be, but for a nanosecond or two.
    fn longest(base_s: f64, cap_s: f64) -> Backoff {
        let chance = Chance::new().with_random(Share(u32::MAX));
        Backoff::new(Duration::from_secs_f64(base_s), Duration::from_secs_f64(cap_s), chance)
    }

    fn seeded(seed: u64) -> Chance {
        Chance::new().with_random(SmallRng::seed_from_u64(seed))
    }

    fn round_s(time: Duration) -> f64 {
        (time.as_secs_f64() * 1000.0).round() / 1000.0
    }

    /// When it is tried within an outage, in seconds.
    fn tries(outage_s: f64, away: bool) -> Vec<f64> {
        let mut backoff = longest(1.0, 30.0);
        let mut now = Duration::ZERO;
        std::iter::from_fn(|| {
            now += backoff.next(away, None);
            Some(round_s(now)).filter(|now_s| *now_s <= outage_s)
        })
        .collect()
    }

    #[test]
    fn a_broker_that_is_away_is_tried_every_three_seconds_for_a_minute() {
        assert_eq!(tries(20.0, true), [1.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
        let minute = (1..=20).map(|tries| f64::from(3 * tries));
        // The nanoseconds that the waits are short of put one more of them into the minute.
        let later = [63.0, 66.0, 72.0, 84.0, 108.0, 138.0, 168.0, 198.0, 228.0, 258.0, 288.0];
        let expected: Vec<f64> = [1.0].into_iter().chain(minute).chain(later).collect();
        assert_eq!(tries(300.0, true), expected);
    }

    #[test]
    fn a_broker_that_has_too_much_to_do_is_tried_less_and_less_often() {
        assert_eq!(tries(20.0, false), [1.0, 3.0, 7.0, 15.0]);
        let later = (0..9).map(|tries| 31.0 + 30.0 * f64::from(tries));
        let expected: Vec<f64> = [1.0, 3.0, 7.0, 15.0].into_iter().chain(later).collect();
        assert_eq!(tries(300.0, false), expected);
    }

    #[test]
    fn ten_thousand_clients_are_back_within_seconds_of_a_takeover() {
        let chance = seeded(1);
        let ready = Duration::from_secs(9);
        let mut attempts = vec![0; 20];
        let mut back: Vec<Duration> = (0..10_000)
            .map(|_| {
                let mut backoff = Backoff::new(BASE, CAP, chance.clone());
                let mut now = Duration::ZERO;
                while now < ready {
                    now += backoff.next(true, None);
                    attempts[usize::try_from(now.as_secs()).expect("seconds")] += 1;
                }
                now
            })
            .collect();
        back.sort_unstable();
        assert!(back[5000] < Duration::from_secs(10), "{:?}", back[5000]);
        assert!(back[9900] < Duration::from_millis(11_800), "{:?}", back[9900]);
        assert!(back[9999] < Duration::from_secs(12), "{:?}", back[9999]);
        assert!(attempts.iter().all(|count| *count < 13_000), "{attempts:?}");
        assert!(attempts[9..].iter().all(|count| *count < 6000), "{attempts:?}");
    }

    #[test]
    fn each_wait_is_random_up_to_its_bound() {
        let chance = seeded(2);
        let mut outages: Vec<_> = (0..2000).map(|_| Backoff::new(BASE, CAP, chance.clone())).collect();
        for bound_s in [1, 2, 3, 3] {
            let bound = Duration::from_secs(bound_s);
            let waits: Vec<_> = outages.iter_mut().map(|outage| outage.next(true, None)).collect();
            let (shortest, longest) = (waits.iter().min().expect("some"), waits.iter().max().expect("some"));
            assert!(*shortest < bound.mul_f64(0.02), "{shortest:?}");
            assert!(*longest > bound.mul_f64(0.98) && *longest < bound, "{longest:?}");
        }
    }

    #[test]
    fn no_wait_is_shorter_than_the_broker_asked_for_and_the_application_sets_the_bounds() {
        let mut backoff = longest(1.0, 4.0);
        assert_eq!(backoff.next(true, Some(Duration::from_secs(5))), Duration::from_secs(5));
        assert_eq!(round_s(backoff.next(true, None)), 2.0);
        assert_eq!(round_s(backoff.next(false, Some(BASE))), 3.0);
        backoff.reset();
        assert_eq!(round_s(backoff.next(true, None)), 1.0);
        let waits = |mut backoff: Backoff| [(); 3].map(|()| round_s(backoff.next(true, None)));
        assert_eq!(waits(longest(60.0, 60.0)), [60.0, 60.0, 60.0]);
        assert_eq!(waits(longest(0.1, 0.2)), [0.1, 0.2, 0.2]);
    }

    #[test]
    fn a_broker_that_was_too_busy_and_then_is_away_is_tried_soon() {
        let mut backoff = longest(1.0, 30.0);
        let away = [false, false, false, false, true, true, false];
        let waits = away.map(|away| round_s(backoff.next(away, None)));
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 3.0, 3.0, 3.0]);
    }
}
