//! Randomness and the time of day: what a test hands in.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use rand::{RngCore, SeedableRng, rngs::SmallRng};

use crate::Id;

/// Where random numbers and the time of day come from. (How time passes is tokio's affair, which can be paused.)
#[derive(Clone)]
pub(crate) struct Chance {
    random: Arc<Mutex<dyn RngCore + Send>>,
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Chance {
    pub(crate) fn new() -> Self {
        Self { random: Arc::new(Mutex::new(SmallRng::from_os_rng())), now: Arc::new(SystemTime::now) }
    }

    pub(crate) fn with_random(self, random: impl RngCore + Send + 'static) -> Self {
        Self { random: Arc::new(Mutex::new(random)), ..self }
    }

    pub(crate) fn with_clock(self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), ..self }
    }

    /// From 0 to below 1.
    fn fraction(&self) -> f64 {
        f64::from(self.next() >> 1) / f64::from(1_u32 << 31)
    }

    fn next(&self) -> u32 {
        self.random.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next_u32()
    }

    /// 128 random bits. They only have to differ.
    pub(crate) fn id(&self) -> Id {
        Id::Text((0..4).map(|_| format!("{:08x}", self.next())).collect())
    }

    pub(crate) fn unix_s(&self) -> f64 {
        (self.now)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance")
    }
}

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
