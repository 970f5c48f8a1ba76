//! Positions, worlds and distances.
//!
//! Both worlds are seen as points in space: a geodetic position is a point of the unit sphere, a planar one
//! lies in the plane z = 0. A circle is then the set of points within a *chord* of its centre, and there is
//! no seam at the poles or at the antimeridian.

use std::f64::consts::PI;

/// Mean radius of the Earth in metres (IUGG), the one that `PROTOCOL` names for great-circle distances.
pub const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// The largest absolute planar coordinate, in metres: a billion metres either side of the origin.
pub const PLANAR_LIMIT_M: f64 = 1e9;

/// How much a chord that was computed from two unit vectors, and a haversine distance, may together be off,
/// in units of the sphere's radius. Each coordinate of a vector is within 4e-16 of the truth (a rounded angle
/// below pi, a rounded sine, a product), so a chord is within 2e-15; a haversine distance up to 0.9 pi, seen
/// as a chord, is within 3e-15. The sum is quadrupled.
const CHORD_ERROR: f64 = 2e-14;

/// Bound on the error of computed planar distances, as a share of the square: twenty roundings. The square root itself
/// is rounded correctly.
const SQUARE_ERROR: f64 = 1e-14;

/// Squares below this lose digits to underflow, so that only the distance itself decides there.
const SQUARE_MIN: f64 = 1e-290;

/// Past this angle a chord says too little of the angle, and circles are decided by the haversine alone.
const CHORD_ANGLE_MAX: f64 = 0.9 * PI;

/// The surface that positions lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum World {
    /// Longitude and latitude in WGS 84 degrees; distances are great circles on a sphere.
    Geodetic,
    /// Cartesian metres; distances are Euclid's. The paper's model.
    Planar,
}

/// A checked position in some world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Longitude in degrees, or x in metres.
    x: f64,
    /// Latitude in degrees, or y in metres.
    y: f64,
    /// The position as a point: on the unit sphere, or in the plane z = 0.
    point: [f64; 3],
}

/// Why numbers are not a position.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PositionError {
    /// Too few or too many numbers.
    #[error("a position has two or three numbers, found {found}")]
    Dimensions {
        /// Numbers found.
        found: usize,
    },
    /// A number is NaN or infinite.
    #[error("coordinate {index} is not a finite number")]
    NotFinite {
        /// Index of the number, from 0.
        index: usize,
    },
    /// A number is outside of the world.
    #[error("{axis} {value} is outside of {min} to {max}")]
    OutOfRange {
        /// `longitude`, `latitude`, `x` or `y`.
        axis: &'static str,
        /// The number found.
        value: f64,
        /// The least allowed.
        min: f64,
        /// The largest allowed.
        max: f64,
    },
}

impl World {
    /// Checks the numbers of a position, `[longitude, latitude]` or `[x, y]`; a third number, the altitude,
    /// must be finite and is otherwise ignored.
    ///
    /// # Errors
    /// [`PositionError`], which says which number is wrong.
    pub fn position(self, coordinates: &[f64]) -> Result<Position, PositionError> {
        let &[x, y, ..] = coordinates else {
            return Err(PositionError::Dimensions { found: coordinates.len() });
        };
        if coordinates.len() > 3 {
            return Err(PositionError::Dimensions { found: coordinates.len() });
        }
        if let Some(index) = coordinates.iter().position(|number| !number.is_finite()) {
            return Err(PositionError::NotFinite { index });
        }
        let check = |axis, value: f64, max: f64| {
            if value.abs() <= max {
                Ok(())
            } else {
                Err(PositionError::OutOfRange { axis, value, min: -max, max })
            }
        };
        match self {
            Self::Geodetic => {
                check("longitude", x, 180.0)?;
                check("latitude", y, 90.0)?;
                Ok(Position { x, y, point: unit_vector(x, y) })
            }
            Self::Planar => {
                check("x", x, PLANAR_LIMIT_M)?;
                check("y", y, PLANAR_LIMIT_M)?;
                Ok(Position { x, y, point: [x, y, 0.0] })
            }
        }
    }

    /// The distance in metres: haversine with [`EARTH_RADIUS_M`], or Euclid. This is what *exact* means:
    /// every engine decides as if by this function.
    #[must_use]
    pub fn distance_m(self, a: &Position, b: &Position) -> f64 {
        match self {
            Self::Geodetic => {
                // Differences are taken in degrees, where those of neighbours are exact, and the short way
                // around, so that both names of the antimeridian are one place.
                let half_lat = (b.y - a.y).to_radians() / 2.0;
                let apart = (b.x - a.x).abs();
                let half_lon = (if apart > 180.0 { 360.0 - apart } else { apart }).to_radians() / 2.0;
                let cosines = latitude_sin_cos(a.y).1 * latitude_sin_cos(b.y).1;
                let h = half_lat.sin().powi(2) + cosines * half_lon.sin().powi(2);
                if h <= 0.5 {
                    return 2.0 * EARTH_RADIUS_M * h.sqrt().asin();
                }
                // The arc sine loses digits where it is steep, next to the other side of the globe: from there the way is
                // half the globe less the way to the opposite of the one.
                let half_lat = (b.y + a.y).to_radians() / 2.0;
                let half_lon = (180.0 - apart).to_radians() / 2.0;
                let h = half_lat.sin().powi(2) + cosines * half_lon.sin().powi(2);
                EARTH_RADIUS_M * (PI - 2.0 * h.min(0.5).sqrt().asin())
            }
            Self::Planar => {
                let (dx, dy) = (b.x - a.x, b.y - a.y);
                (dx * dx + dy * dy).sqrt()
            }
        }
    }
}

impl Position {
    /// Longitude in degrees, or x in metres.
    #[must_use]
    pub fn x(&self) -> f64 {
        self.x
    }

    /// Latitude in degrees, or y in metres.
    #[must_use]
    pub fn y(&self) -> f64 {
        self.y
    }

    /// The point in space: of the unit sphere, or of the plane z = 0 in metres.
    #[must_use]
    pub fn point(&self) -> &[f64; 3] {
        &self.point
    }
}

/// A checked radius, with what a fast exact test needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radius {
    metres: f64,
    chord: f64,
    inside_sq: f64,
    outside_sq: f64,
}

/// Why a number is not a radius.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a radius is a finite number of metres, 0 or more, found {found}")]
pub struct RadiusError {
    /// The number found.
    pub found: f64,
}

impl Radius {
    /// Checks a radius in metres.
    ///
    /// # Errors
    /// [`RadiusError`] when it is negative, NaN or infinite.
    pub fn new(world: World, metres: f64) -> Result<Self, RadiusError> {
        if !metres.is_finite() || metres < 0.0 {
            return Err(RadiusError { found: metres });
        }
        let radius = match world {
            World::Geodetic => {
                let angle = metres / EARTH_RADIUS_M;
                if angle > CHORD_ANGLE_MAX {
                    Self { metres, chord: 2.0 + CHORD_ERROR, inside_sq: -1.0, outside_sq: f64::INFINITY }
                } else {
                    let chord = 2.0 * (angle / 2.0).sin();
                    let (inside, outside) = (chord - CHORD_ERROR, chord + CHORD_ERROR);
                    let inside_sq = if inside > 0.0 { inside * inside } else { -1.0 };
                    Self { metres, chord: outside, inside_sq, outside_sq: outside * outside }
                }
            }
            World::Planar => {
                let square = metres * metres;
                Self {
                    metres,
                    chord: metres * (1.0 + SQUARE_ERROR) + SQUARE_MIN.sqrt(),
                    inside_sq: if square > SQUARE_MIN { square * (1.0 - SQUARE_ERROR) } else { -1.0 },
                    outside_sq: square.max(SQUARE_MIN) * (1.0 + SQUARE_ERROR),
                }
            }
        };
        Ok(radius)
    }

    /// Metres along the surface.
    #[must_use]
    pub fn metres(&self) -> f64 {
        self.metres
    }

    /// The straight-line reach, in the units of [`Position::point`]: no position within the radius is further
    /// than this from the centre in space. Rounding is allowed for (2e-14 on the sphere, which is a tenth of
    /// a micrometre, one part in 10^14 in the plane), so that it is above zero for a radius of zero.
    #[must_use]
    pub fn chord(&self) -> f64 {
        self.chord
    }

    /// Whether `position` is within the radius of `centre`: the same answer as
    /// `world.distance_m(centre, position) <= metres`, mostly without its trigonometry. A squared chord that
    /// is off the border by more than its own error decides; in between the distance itself does.
    #[must_use]
    pub fn holds(&self, world: World, centre: &Position, position: &Position) -> bool {
        let square = squared_chord(&centre.point, &position.point);
        if square <= self.inside_sq {
            return true;
        }
        if square > self.outside_sq {
            return false;
        }
        world.distance_m(centre, position) <= self.metres
    }
}

/// The squared straight-line distance of two points.
#[must_use]
pub fn squared_chord(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    let (dx, dy, dz) = (a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    dx * dx + dy * dy + dz * dz
}

/// Each place has one point: a pole has the same one under every longitude, the antimeridian under both.
fn unit_vector(lon_deg: f64, lat_deg: f64) -> [f64; 3] {
    let (lon_sin, lon_cos) =
        if lon_deg.abs() == 180.0 { (0.0, -1.0) } else { lon_deg.to_radians().sin_cos() };
    let (lat_sin, lat_cos) = latitude_sin_cos(lat_deg);
    [lat_cos * lon_cos, lat_cos * lon_sin, lat_sin]
}

/// Sine and cosine, exact at the poles, where the cosine of the rounded angle is 6e-17.
fn latitude_sin_cos(lat_deg: f64) -> (f64, f64) {
    if lat_deg.abs() == 90.0 { (lat_deg.signum(), 0.0) } else { lat_deg.to_radians().sin_cos() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_of_the_world_are_refused_by_name() {
        assert_eq!(
            World::Geodetic.position(&[200.0, 0.0]).unwrap_err().to_string(),
            "longitude 200 is outside of -180 to 180"
        );
        assert!(matches!(
            World::Planar.position(&[0.0, f64::NAN]),
            Err(PositionError::NotFinite { index: 1 })
        ));
        assert!(matches!(World::Planar.position(&[0.0]), Err(PositionError::Dimensions { found: 1 })));
        assert!(World::Geodetic.position(&[180.0, -90.0, 12.0]).is_ok());
        assert!(Radius::new(World::Planar, -1.0).is_err());
    }

    #[test]
    fn every_place_has_one_point() {
        let at = |lon, lat| World::Geodetic.position(&[lon, lat]).unwrap();
        for (a, b) in [
            (at(180.0, 12.0), at(-180.0, 12.0)),
            (at(17.0, 90.0), at(-120.0, 90.0)),
            (at(0.0, -90.0), at(180.0, -90.0)),
        ] {
            assert_eq!(a.point(), b.point());
            assert_eq!(World::Geodetic.distance_m(&a, &b), 0.0);
        }
    }

    /// Vincenty's formula on the sphere, which loses nothing anywhere but where its arguments do.
    fn reference_m(a: &Position, b: &Position) -> f64 {
        let ((a_sin, a_cos), (b_sin, b_cos)) = (latitude_sin_cos(a.y), latitude_sin_cos(b.y));
        let (lon_sin, lon_cos) = (b.x - a.x).to_radians().sin_cos();
        let across = (b_cos * lon_sin).hypot(a_cos * b_sin - a_sin * b_cos * lon_cos);
        EARTH_RADIUS_M * across.atan2(a_sin * b_sin + a_cos * b_cos * lon_cos)
    }

    #[test]
    fn distances_are_exact_next_to_the_other_side_of_the_globe() {
        let world = World::Geodetic;
        for step in 0..40_000_u32 {
            let t = f64::from(step);
            let (lon, lat) = ((t * 7.31) % 180.0, (t * 3.17) % 90.0);
            let off = 10_f64.powf(-9.0 + f64::from(step % 11));
            let turn = t * 2.4;
            let (x, y) = (lon - 180.0 + off * turn.sin().abs(), -lat + off * turn.cos());
            let a = world.position(&[lon, lat]).unwrap();
            let b = world.position(&[x.clamp(-180.0, 180.0), y.clamp(-90.0, 90.0)]).unwrap();
            let (distance, reference) = (world.distance_m(&a, &b), reference_m(&a, &b));
            assert!((distance - reference).abs() < 1e-7, "{a:?} {b:?} {distance} {reference}");
            assert_eq!(distance, world.distance_m(&b, &a), "{a:?} {b:?}");
            for metres in [distance.next_down(), distance, distance.next_up()] {
                let radius = Radius::new(world, metres).unwrap();
                assert_eq!(radius.holds(world, &a, &b), distance <= metres, "{a:?} {b:?} {metres}");
            }
        }
        let at = |lon, lat| world.position(&[lon, lat]).unwrap();
        let half_m = EARTH_RADIUS_M * PI;
        // Along a meridian the way is what the latitudes say, to the last digits.
        for off in [1e-9, 1e-7, 1e-5, 1e-3, 0.1] {
            let expected = half_m - EARTH_RADIUS_M * f64::to_radians((45.0 + off) - 45.0);
            let distance = world.distance_m(&at(10.0, 45.0 + off), &at(-170.0, -45.0));
            assert!((distance - expected).abs() < 1e-8, "{off}: {distance} {expected}");
        }
        assert_eq!(world.distance_m(&at(0.0, 0.0), &at(180.0, 0.0)), half_m);
        assert_eq!(world.distance_m(&at(77.0, 90.0), &at(-10.0, -90.0)), half_m);
    }

    #[test]
    fn the_fast_test_agrees_with_the_distance_at_the_border() {
        // Radii of exactly the distance, and its neighbours among the floats, are the hardest cases.
        for world in [World::Geodetic, World::Planar] {
            for step in 0..20_000_u32 {
                let t = f64::from(step);
                let a = world.position(&[(t * 7.31) % 180.0, (t * 3.17) % 90.0]).unwrap();
                let reach = 10_f64.powf(-16.0 + f64::from(step % 19));
                let b =
                    world.position(&[(a.x() - reach).max(-180.0), (a.y() - reach * 0.7).max(-90.0)]).unwrap();
                let distance = world.distance_m(&a, &b);
                let near = [1.0 - 1e-13, 1.0 - 1e-15, 1.0, 1.0 + 1e-15, 1.0 + 1e-13].map(|f| f * distance);
                for metres in [distance.next_up(), distance.next_down().max(0.0)].into_iter().chain(near) {
                    let radius = Radius::new(world, metres).unwrap();
                    let held = radius.holds(world, &a, &b);
                    assert_eq!(held, distance <= metres, "{world:?} {a:?} {b:?} {metres}");
                    let chord = squared_chord(a.point(), b.point()).sqrt();
                    assert!(!held || chord <= radius.chord(), "{world:?} {a:?} {b:?} {metres}");
                }
            }
        }
    }

    #[test]
    fn squares_that_underflow_decide_nothing() {
        let world = World::Planar;
        let origin = world.position(&[0.0, 0.0]).unwrap();
        for exponent in -330..-100 {
            for metres in [1.0, 1.3, 2.7].map(|digits| digits * 10_f64.powi(exponent)) {
                for offset in [0.999, 1.0, 1.001].map(|share| share * metres) {
                    let position = world.position(&[offset, 0.0]).unwrap();
                    let radius = Radius::new(world, metres).unwrap();
                    let expected = world.distance_m(&origin, &position) <= metres;
                    assert_eq!(radius.holds(world, &origin, &position), expected, "{metres:e} {offset:e}");
                }
            }
        }
    }
}
