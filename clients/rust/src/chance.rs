//! Randomness and the time of day: what a test hands in.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::SystemTime,
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
    pub(crate) fn fraction(&self) -> f64 {
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
