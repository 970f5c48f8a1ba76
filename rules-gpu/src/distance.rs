//! Distances of guards: what a device has is the great circle of the processor, but for its last digits.

use rules::Setting;

use crate::run::Error;
use crate::subset::{Program, Refusal};

/// Radius of the sphere in metres, as `kernels/include/rules_run.cuh` has it.
const RADIUS_M: f64 = 6_371_008.8;
/// How much the functions of two libraries may differ here, as a share.
const SHARE: f64 = 1e-12;
/// Longitudes and latitudes from and to, all over the globe.
const PROBES: [[f64; 4]; 6] = [
    [0.0, 0.0, 0.0, 0.0],
    [-8.61, 41.15, -8.62, 41.16],
    [179.5, -17.0, -179.5, -16.0],
    [13.4, 52.5, -122.4, 37.8],
    [10.0, 90.0, -20.0, 89.0],
    [0.0, 0.5, 179.0, 0.25],
];

/// Holds the distance of a setting against that of the kernels, where a program has one.
///
/// # Errors
/// A refusal, where the setting measures otherwise.
pub(crate) fn measured(program: &Program, setting: &Setting) -> Result<(), Error> {
    let is_same = |[from_lon, from_lat, to_lon, to_lat]: [f64; 4]| {
        let found = (setting.distance)([from_lon, from_lat], [to_lon, to_lat]);
        let expected = great_circle_m([from_lon, from_lat], [to_lon, to_lat]);
        (found - expected).abs() <= SHARE * expected
    };
    // What is no place is infinitely far.
    let is_bounded = (setting.distance)([0.0, 0.0], [180.5, 0.0]).is_infinite();
    if !program.measures || (is_bounded && PROBES.into_iter().all(is_same)) {
        return Ok(());
    }
    let what = "a device measures distance/4 along great circles alone".to_owned();
    Err(Refusal::Faults(vec![rules::view::fault(&program.text, 0, what)]).into())
}

/// The haversine formula.
fn great_circle_m(from: [f64; 2], to: [f64; 2]) -> f64 {
    let half = |apart: f64| (apart.to_radians() / 2.0).sin().powi(2);
    let share =
        half(to[1] - from[1]) + from[1].to_radians().cos() * to[1].to_radians().cos() * half(to[0] - from[0]);
    2.0 * RADIUS_M * share.min(1.0).sqrt().asin()
}
