//! The arithmetic of vehicles, as `kernel_traffic.cu` does it: operation by operation in 32-bit floating point, so that both have the same bits.
//!
//! Vehicles follow each other by the Intelligent Driver Model (M. Treiber, A. Hennecke, D. Helbing, Physical Review E 62, 2000), with the parameters
//! of city traffic: a time gap of 1 s, 2 m when standing, 1 m/s² and 1.5 m/s².

use kernels::traffic::{Arc, CROSSES, SIGNALS, WEIGHT};
use kernels::traffic::{Car, Junction};

/// Seconds of a step.
pub const STEP_S: f64 = 0.5;
/// Steps from one adaptation of weights and ways to the next.
pub const STEPS_ADAPTED: u32 = 10;
/// Steps from one snapshot of all weights, by which whole routes are planned, to the next: they cross the bus to the processor, which takes longer than a step.
pub(crate) const STEPS_SNAPSHOT: u32 = 120;
/// From bumper to bumper, in mm.
pub(crate) const CAR_MM: i32 = 4500;
/// The room of a vehicle that stands, in mm.
pub(crate) const SLOT_MM: u32 = 6500;
/// How near one comes to the vehicle ahead, at worst, in mm.
pub(crate) const CLEAR_MM: i32 = 300;
/// Arcs ahead that the first of a lane looks along, at most.
pub(crate) const ARCS_AHEAD: u32 = 5;
/// Green and a pause of a junction with signals, in steps.
const TURN: u32 = 58;
const GREEN: u32 = 50;
/// Steps after which the lesser street takes its turn, and an equal one.
pub(crate) const PATIENCE: u16 = 30;
pub(crate) const TURN_LEAST: u32 = 8;
/// Steps in which nobody may go when the turn changes while others come.
pub(crate) const CHANGE: u32 = 2;
/// Steps after which one that stands at a full street takes another one.
pub(crate) const DETOUR: u16 = 40;

/// 32 random bits of a vehicle, for its nth choice.
///
/// Source: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014: the finaliser of SplitMix64.
pub(crate) fn chance(seed: u64, vehicle: u32, nth: u32) -> u32 {
    let count = u64::from(vehicle) << 32 | u64::from(nth);
    let state = seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    high(state ^ (state >> 31))
}

/// The upper half.
fn high(bits: u64) -> u32 {
    u32::try_from(bits >> 32).unwrap_or(0)
}

/// A vehicle's claim to a lane: greater than all claims of earlier steps, and unlike those of all others.
pub(crate) fn claim(vehicle: u32, step: u32) -> u64 {
    let turn = vehicle.wrapping_mul(0x9e37_79b1).wrapping_add(step.wrapping_mul(0x85eb_ca6b));
    u64::from(step + 1) << 32 | u64::from(turn)
}

/// The speed limit in mm/s.
pub(crate) fn limit(arc: &Arc) -> u32 {
    arc.limits & 0xffff
}

pub(crate) fn lanes(arc: &Arc) -> u32 {
    (arc.limits >> 16 & 3) + 1
}

/// The group at the junction at its end.
pub(crate) fn group(arc: &Arc) -> u32 {
    arc.limits >> 18 & 7
}

/// How fast a vehicle likes to drive, in mm/s.
pub(crate) fn desired(arc: &Arc, factor: u8) -> i32 {
    (limit(arc) * u32::from(factor) / 200).cast_signed()
}

/// The gap that one would like to have, in mm.
pub(crate) fn wanted(speed: i32, approach: i32) -> f32 {
    let braking = float(speed) * float(approach) / 2_449.489_7;
    let dynamic = float(speed) + braking;
    2000.0 + if dynamic > 0.0 { dynamic } else { 0.0 }
}

/// The acceleration on a free road, as a share of the greatest.
pub(crate) fn free(speed: i32, desired: i32) -> f32 {
    let ratio = float(speed) / float(desired);
    let squared = ratio * ratio;
    1.0 - squared * squared
}

/// In mm/s², with somebody `gap` ahead.
pub(crate) fn acceleration(free: f32, speed: i32, gap: i32, speed_ahead: i32) -> f32 {
    let share = wanted(speed, speed - speed_ahead) / float(gap.max(10));
    1000.0 * (free - share * share)
}

/// The speed at which one still comes down to another one on the way there.
pub(crate) fn speed_before(then: i32, to_end: i32) -> i32 {
    let room = 3000.0 * float(to_end);
    whole((float(then) * float(then) + room).sqrt())
}

/// Speed and way after a step: constant acceleration, and no driving backwards.
pub(crate) fn moved(speed: i32, acceleration: f32) -> (i32, i32) {
    let then = float(speed) + acceleration * 0.5;
    if then >= 0.0 {
        (whole(then + 0.5), whole((float(speed) + then) * 0.25))
    } else {
        // It stands before the step is over.
        (0, whole(-0.5 * (float(speed) * float(speed)) / acceleration))
    }
}

/// Whether one that is `to_end` before its end may not go over the junction, and still can stop: 3 m/s².
pub(crate) fn is_closed(junction: &Junction, arc: &Arc, step: u32, car: &Car, to_end: i32) -> bool {
    if arc.limits & CROSSES == 0 {
        return false;
    }
    let is_open = if is_by_clock(junction) {
        let within = step.wrapping_add(junction.ready) % (TURN * groups(junction));
        within / TURN == group(arc) && within % TURN < GREEN
    } else {
        u32::from(junction.open) == group(arc) && step >= junction.ready
    };
    let speed = u64::from(car.speed);
    !is_open && speed * speed <= 6000 * u64::try_from(to_end).unwrap_or(0)
}

/// Whether a junction has signals.
pub(crate) fn is_by_clock(junction: &Junction) -> bool {
    u32::from(junction.kind) & SIGNALS != 0
}

pub(crate) fn groups(junction: &Junction) -> u32 {
    u32::from(junction.kind) & 0xff
}

/// How long an arc takes with `count` vehicles on it, in ms: by Greenshields's speed, which falls to nothing where vehicles stand bumper to bumper, and
/// at least a sixteenth of the limit.
///
/// Source: A. May, Traffic Flow Fundamentals, 1990, to which the paper refers.
pub(crate) fn weight(arc: &Arc, count: u32) -> u32 {
    let (lanes_mm, full_mm) =
        (u64::from(arc.length_mm) * u64::from(lanes(arc)), u64::from(SLOT_MM) * u64::from(count));
    let limit = u64::from(limit(arc));
    let speed = if full_mm < lanes_mm { limit * (lanes_mm - full_mm) / lanes_mm } else { 0 };
    let weight = u64::from(arc.length_mm) * 1000 / speed.max(limit / 16 + 1) + 1;
    u32::try_from(weight).unwrap_or(WEIGHT).min(WEIGHT)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to the nearest, as on the device")]
fn float(number: i32) -> f32 {
    number as f32
}

/// The whole part of a number that is not negative.
#[expect(clippy::cast_possible_truncation, reason = "below 2^31 for lengths and speeds of vehicles")]
pub(crate) fn whole(number: f32) -> i32 {
    number as i32
}
