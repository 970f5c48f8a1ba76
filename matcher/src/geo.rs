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
/// in units of the sphere's radius. Each coordinate of a vector is within 2.3e-16 of the truth, so a chord is
/// within 8e-16; the haversine of distances up to 0.9 pi is within 1e-14. The sum is doubled.
const CHORD_ERROR: f64 = 2e-14;

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
    /// The same as a point: on the unit sphere, or in the plane z = 0.
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
        /// Which number, from 0.
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
                let half_lat = (b.y.to_radians() - a.y.to_radians()) / 2.0;
                let half_lon = (b.x.to_radians() - a.x.to_radians()) / 2.0;
                let h = half_lat.sin().powi(2)
                    + a.y.to_radians().cos() * b.y.to_radians().cos() * half_lon.sin().powi(2);
                2.0 * EARTH_RADIUS_M * h.min(1.0).sqrt().asin()
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
        Ok(match world {
            World::Geodetic => {
                let angle = metres / EARTH_RADIUS_M;
                if angle > CHORD_ANGLE_MAX {
                    Self { metres, chord: 2.0, inside_sq: -1.0, outside_sq: f64::INFINITY }
                } else {
                    let chord = 2.0 * (angle / 2.0).sin();
                    let inside = chord - CHORD_ERROR;
                    let inside_sq = if inside > 0.0 { inside * inside } else { -1.0 };
                    Self { metres, chord, inside_sq, outside_sq: (chord + CHORD_ERROR).powi(2) }
                }
            }
            World::Planar => {
                let square = metres * metres;
                // One part in 10^14 is twenty roundings; the square root itself is rounded correctly.
                Self {
                    metres,
                    chord: metres,
                    inside_sq: if square > 0.0 { square * (1.0 - 1e-14) } else { -1.0 },
                    outside_sq: square * (1.0 + 1e-14),
                }
            }
        })
    }

    /// Metres along the surface.
    #[must_use]
    pub fn metres(&self) -> f64 {
        self.metres
    }

    /// The straight-line reach, in the units of [`Position::point`]: no position within the radius is further
    /// than this from the centre in space, up to rounding of one part in 10^13.
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

fn unit_vector(lon_deg: f64, lat_deg: f64) -> [f64; 3] {
    let (lon_sin, lon_cos) = lon_deg.to_radians().sin_cos();
    let (lat_sin, lat_cos) = lat_deg.to_radians().sin_cos();
    [lat_cos * lon_cos, lat_cos * lon_sin, lat_sin]
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
    fn the_fast_test_agrees_with_the_distance_at_the_border() {
        // Radii of exactly the distance, and its neighbours among the floats, are the hardest cases.
        for world in [World::Geodetic, World::Planar] {
            for step in 0..2_000_u32 {
                let t = f64::from(step);
                let a = world.position(&[(t * 7.31) % 180.0, (t * 3.17) % 90.0]).unwrap();
                let reach = 10_f64.powf(-7.0 + f64::from(step % 9));
                let b =
                    world.position(&[(a.x() + reach).min(180.0), (a.y() - reach * 0.7).max(-90.0)]).unwrap();
                let distance = world.distance_m(&a, &b);
                for metres in [distance, distance.next_up(), distance.next_down().max(0.0)] {
                    let radius = Radius::new(world, metres).unwrap();
                    assert_eq!(
                        radius.holds(world, &a, &b),
                        distance <= metres,
                        "{world:?} {a:?} {b:?} {metres}"
                    );
                }
            }
        }
    }
}
