//! Waits between tries.

use std::time::Duration;

use crate::chance::Chance;

/// Full jitter: each wait is a random time up to a bound that doubles with every try, so that clients do not come back in step.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    base: Duration,
    cap: Duration,
    tries: u32,
    chance: Chance,
}

impl Backoff {
    pub(crate) fn new(base: Duration, cap: Duration, chance: Chance) -> Self {
        Self { base, cap, tries: 0, chance }
    }

    /// The next wait, no shorter than what the broker asked for.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        let bound = self.base.saturating_mul(1 << self.tries.min(20)).min(self.cap);
        self.tries += 1;
        bound.mul_f64(self.chance.fraction()).max(retry_after.unwrap_or_default())
    }

    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::SmallRng};

    use super::*;

    #[test]
    fn waits_are_random_up_to_a_bound_that_doubles() {
        let (base, cap) = (Duration::from_millis(250), Duration::from_secs(30));
        let chance = Chance::new().with_random(SmallRng::seed_from_u64(1));
        let mut longest = [Duration::ZERO; 12];
        for _ in 0..2000 {
            let mut backoff = Backoff::new(base, cap, chance.clone());
            for longest in &mut longest {
                *longest = backoff.next(None).max(*longest);
            }
        }
        for (tries, longest) in longest.into_iter().enumerate() {
            let bound = (base * (1 << tries)).min(cap);
            assert!(longest < bound && longest > bound.mul_f64(0.98), "{tries}: {longest:?}");
        }
        let mut backoff = Backoff::new(base, cap, chance);
        assert_eq!(backoff.next(Some(cap * 2)), cap * 2, "what the broker asks for is kept");
        (0..100).for_each(|_| assert!(backoff.next(None) <= cap));
        backoff.reset();
        assert!(backoff.next(None) <= base);
    }
}
