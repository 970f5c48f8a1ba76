//! How vehicles follow each other: the Intelligent Driver Model.
//!
//! M. Treiber, A. Hennecke, D. Helbing, Congested traffic states in empirical observations and microscopic simulations,
//! Physical Review E 62, 2000, equations 3 and 4. A vehicle of speed v, desired speed v0, gap s to the rear of the one before it,
//! which is slower by Δv, accelerates by
//!
//! ```text
//! a [1 - (v / v0)^4 - (s* / s)²],    s* = s0 + max(0, v T + v Δv / (2 √(a b)))
//! ```
//!
//! with a the acceleration, b the comfortable deceleration, T the time gap, s0 the gap when standing.
//!
//! Where we deviate: the maximum with 0 (so that one does not flee from who drives off), which the authors use, too, in later work;
//! and time goes by in steps, at whose end nobody is nearer than 0.3 m to where the one before was at its beginning.

use super::settings::Idm;

/// How near one comes to whom one follows, at worst.
pub(super) const CLEAR_M: f32 = 0.3;

/// What is in the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Obstacle {
    /// The gap to it, in metres.
    pub(super) gap_m: f32,
    pub(super) speed_ms: f32,
}

impl Idm {
    /// The acceleration in m/s²; `desired_ms` is above 0.
    #[inline]
    pub(super) fn acceleration(&self, speed_ms: f32, desired_ms: f32, obstacle: Option<Obstacle>) -> f32 {
        let ratio = speed_ms / desired_ms;
        let ratio_squared = ratio * ratio;
        let nearness = obstacle.map_or(0.0, |obstacle| {
            let wanted_m = self.wanted_gap_m(speed_ms, speed_ms - obstacle.speed_ms);
            let share = wanted_m / obstacle.gap_m.max(0.01);
            share * share
        });
        self.acceleration * (1.0 - ratio_squared * ratio_squared - nearness)
    }

    /// The gap that one would like to have, in metres.
    #[inline]
    pub(super) fn wanted_gap_m(&self, speed_ms: f32, approach_ms: f32) -> f32 {
        let braking = speed_ms * approach_ms / (2.0 * (self.acceleration * self.deceleration).sqrt());
        self.gap_m + (speed_ms * self.headway_s + braking).max(0.0)
    }
}

/// Speed and way after a step: constant acceleration, and no driving backwards.
#[inline]
pub(super) fn moved(speed_ms: f32, acceleration: f32, dt_s: f32) -> (f32, f32) {
    let then_ms = speed_ms + acceleration * dt_s;
    if then_ms >= 0.0 {
        (then_ms, 0.5 * (speed_ms + then_ms) * dt_s)
    } else {
        // It stands before the step is over.
        (0.0, -0.5 * speed_ms * speed_ms / acceleration)
    }
}
