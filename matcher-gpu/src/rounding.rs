//! Bounds on the error of distances in single precision, so that pre-tests on a device are never false negatives.
//!
//! With u = 2^-24, a coordinate rounded to a float is off by at most u of itself, so an event at e and a centre at c are
//! off by u |e| and u |c| <= u (|e| + d), where d is their distance; the difference, the squares, their sum and the root add
//! less than 4 u of the result. What a device computes is then within d (1 +- 6 u) +- 2.1 u |e|. [`slack`] is 4 u |e|, and
//! tests stretch reaches by 16 u. A centre within reach is never taken for one outside, and one that is inside by
//! [`slack`] and 16 u of the reach is never taken for one within it wrongly. Squares of less than 1e-38 lose digits,
//! that is, distances of less than 1e-19, which the constant allows for.

/// Added to every slack, for numbers that are too small for a float.
const UNDERFLOW: f64 = 1e-18;

/// By how much a computed distance from this point may be off, besides a share of itself; in units of points.
pub(crate) fn slack(point: &[f64; 3]) -> f64 {
    let norm = point.iter().map(|axis| axis * axis).sum::<f64>().sqrt();
    norm * f64::from(f32::EPSILON) * 2.0 + UNDERFLOW
}

/// A point in single precision.
pub(crate) fn rounded(point: &[f64; 3]) -> [f32; 3] {
    point.map(to_f32)
}

/// The nearest float.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
pub(crate) fn to_f32(number: f64) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computed_distance_is_within_its_bound() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        for step in 0..200_000 {
            let magnitude = 10_f64.powi(step % 19 - 9);
            let e = [random(), random(), random()].map(|axis| axis * magnitude);
            let apart = 10_f64.powi(step % 13 - 6) * magnitude.max(1e-9);
            let c = e.map(|axis| axis + random() * apart);
            let exact = (0..3).map(|axis| (e[axis] - c[axis]).powi(2)).sum::<f64>().sqrt();
            let (e32, c32) = (rounded(&e), rounded(&c));
            let computed = (0..3).map(|axis| (e32[axis] - c32[axis]).powi(2)).sum::<f32>().sqrt();
            let bound = exact * 6.0 * f64::from(f32::EPSILON) / 2.0 + slack(&e);
            assert!((f64::from(computed) - exact).abs() <= bound, "{e:?} {c:?}");
        }
    }
}
