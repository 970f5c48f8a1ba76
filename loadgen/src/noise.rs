//! What receivers say of where they are: the truth, and an error of a stated model.
//!
//! The error of a receiver, in metres to the east and to the north, is the sum of three independent parts:
//!
//! - *bias*: drawn once, normal with standard deviation `bias_m` on each axis;
//! - *jitter*: a first-order Gauss-Markov process on each axis, stationary with standard deviation `jitter_m`, whose correlation
//!   falls to 1/e in `correlation_s` (after t seconds it is e^(-t/τ) of what it was, plus a normal number of variance
//!   σ² (1 - e^(-2t/τ))). Source: A. Gelb, Applied Optimal Estimation, 1974, section 3.8;
//! - *jumps*: they begin after exponential times, `jumps_per_h` on average while there is none, last an exponential time of
//!   `jump_mean_s`, and are `jump_m` times 0.5 to 1.5 long (evenly) in any direction.
//!
//! What a broker should deliver follows from what it was told; the truth stays with the caller.

use matcher::geo::World;
use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::traffic::chance;
use streets::displaced;

/// How wrong receivers are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The standard deviation of the constant error on each axis, in metres.
    pub bias_m: f64,
    /// The standard deviation of what comes and goes, on each axis, in metres.
    pub jitter_m: f64,
    /// How long that takes, in seconds.
    pub correlation_s: f64,
    /// How often a receiver jumps, per hour.
    pub jumps_per_h: f64,
    /// How far on average, in metres.
    pub jump_m: f64,
    /// For how long on average, in seconds.
    pub jump_mean_s: f64,
}

impl Default for Settings {
    /// A phone in a street.
    fn default() -> Self {
        Self {
            bias_m: 3.0,
            jitter_m: 4.0,
            correlation_s: 20.0,
            jumps_per_h: 0.5,
            jump_m: 200.0,
            jump_mean_s: 8.0,
        }
    }
}

/// Why there is no noise.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("noise {name} {value} is not within {min} to {max}")]
pub struct NoiseError {
    /// Which setting.
    pub name: &'static str,
    /// What it is.
    pub value: f64,
    /// The least that makes sense.
    pub min: f64,
    /// The most.
    pub max: f64,
}

/// The errors of many receivers, in flat arrays.
///
/// The error of each goes its own way: it depends on the seed, the receiver's number, and at which times it was asked.
#[derive(Clone, Debug)]
pub struct Noise {
    settings: Settings,
    seed: u64,
    /// East and north, as all offsets here.
    bias_m: Vec<[f64; 2]>,
    jitter_m: Vec<[f64; 2]>,
    jump_m: Vec<[f64; 2]>,
    is_away: Vec<bool>,
    /// When each jumps next, or, of one that is away, comes back.
    turns_s: Vec<f64>,
    asked_s: Vec<f64>,
    draws: Vec<u64>,
}

impl Noise {
    /// The errors of a number of receivers, at time 0.
    ///
    /// # Errors
    /// [`NoiseError`]: a setting is out of range, or not a number.
    pub fn new(receivers_count: u32, settings: Settings, seed: u64) -> Result<Self, NoiseError> {
        for (name, value, min, max) in [
            ("bias_m", settings.bias_m, 0.0, 1e5),
            ("jitter_m", settings.jitter_m, 0.0, 1e5),
            ("correlation_s", settings.correlation_s, 1e-3, 1e9),
            ("jumps_per_h", settings.jumps_per_h, 0.0, 3600.0),
            ("jump_m", settings.jump_m, 0.0, 1e6),
            ("jump_mean_s", settings.jump_mean_s, 1e-3, 1e9),
        ] {
            // Also false for NaN.
            if !(min..=max).contains(&value) {
                return Err(NoiseError { name, value, min, max });
            }
        }
        let count = receivers_count as usize;
        let mut noise = Self {
            settings,
            seed,
            bias_m: vec![[0.0; 2]; count],
            jitter_m: vec![[0.0; 2]; count],
            jump_m: vec![[0.0; 2]; count],
            is_away: vec![false; count],
            turns_s: vec![f64::INFINITY; count],
            asked_s: vec![0.0; count],
            draws: vec![0; count],
        };
        for receiver in 0..count {
            let mut generator = noise.generator(receiver);
            noise.bias_m[receiver] = normal(&mut generator, settings.bias_m);
            noise.jitter_m[receiver] = normal(&mut generator, settings.jitter_m);
            if settings.jumps_per_h > 0.0 {
                noise.turns_s[receiver] = span_s(&mut generator, 3600.0 / settings.jumps_per_h);
            }
        }
        Ok(noise)
    }

    /// Where a receiver says that it is: the truth and its error. Asked for an earlier time than before it answers for that one.
    ///
    /// # Panics
    /// There is no such receiver.
    pub fn told(&mut self, world: World, receiver: u32, now_s: f64, truth: [f64; 2]) -> [f64; 2] {
        displaced(world, truth, self.error_m(receiver, now_s))
    }

    /// How far off a receiver is, in metres to the east and to the north.
    ///
    /// # Panics
    /// There is no such receiver.
    pub fn error_m(&mut self, receiver: u32, now_s: f64) -> [f64; 2] {
        let at = receiver as usize;
        let after_s = now_s - self.asked_s[at];
        if after_s > 0.0 && now_s.is_finite() {
            self.asked_s[at] = now_s;
            let mut generator = self.generator(at);
            let Settings { jitter_m, correlation_s, .. } = self.settings;
            let stays = (-after_s / correlation_s).exp();
            let fresh = normal(&mut generator, jitter_m * (1.0 - stays * stays).sqrt());
            for (jitter, fresh) in self.jitter_m[at].iter_mut().zip(fresh) {
                *jitter = *jitter * stays + fresh;
            }
            self.jump(at, now_s, &mut generator);
        }
        std::array::from_fn(|axis| self.bias_m[at][axis] + self.jitter_m[at][axis] + self.jump_m[at][axis])
    }

    /// Whether a receiver was away when it was last asked.
    ///
    /// # Panics
    /// There is no such receiver.
    #[must_use]
    pub fn is_away(&self, receiver: u32) -> bool {
        self.is_away[receiver as usize]
    }

    /// All jumps until now.
    fn jump(&mut self, at: usize, now_s: f64, generator: &mut SmallRng) {
        let Settings { jumps_per_h, jump_m, jump_mean_s, .. } = self.settings;
        while self.turns_s[at] <= now_s {
            self.is_away[at] = !self.is_away[at];
            if self.is_away[at] {
                let (far_m, angle) = (
                    jump_m * generator.random_range(0.5..1.5),
                    generator.random_range(0.0..std::f64::consts::TAU),
                );
                self.jump_m[at] = [far_m * angle.cos(), far_m * angle.sin()];
                self.turns_s[at] += span_s(generator, jump_mean_s);
            } else {
                self.jump_m[at] = [0.0; 2];
                self.turns_s[at] += span_s(generator, 3600.0 / jumps_per_h);
            }
        }
    }

    fn generator(&mut self, at: usize) -> SmallRng {
        self.draws[at] += 1;
        chance::generator(self.seed, at as u64, self.draws[at])
    }
}

fn normal(generator: &mut SmallRng, deviation_m: f64) -> [f64; 2] {
    std::array::from_fn(|_| deviation_m * Distribution::<f64>::sample(&StandardNormal, generator))
}

fn span_s(generator: &mut SmallRng, mean_s: f64) -> f64 {
    // Never nothing, so that time goes on.
    Exp::new(1.0 / mean_s).map_or(mean_s, |spans| spans.sample(generator)).max(1e-3)
}
