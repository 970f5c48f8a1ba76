//! Areas of relevance.

mod corridor;
mod polygon;

pub use corridor::{CORRIDOR_POSITIONS_MAX, Corridor, CorridorError};
pub use polygon::{POLYGON_POSITIONS_MAX, Polygon, PolygonError};

use crate::geo::{Position, Radius, World, squared_chord};

/// What a ball on the sphere is wider than its area: 1e-13 of the Earth's radius is less than a micrometre,
/// and fifty times what rounding can do to the unit vectors, angles and chords of a ball.
const SPHERE_MARGIN: f64 = 1e-13;

/// What a ball in the plane is wider than its area, beside one part in 10^12: the middle of two coordinates
/// of up to a billion metres is off by up to 1.2e-7.
const PLANE_MARGIN_M: f64 = 1e-6;

/// Caps wider than this (153 degrees from the middle) are not worth bounding.
const CAP_ANGLE_MAX: f64 = 0.85 * std::f64::consts::PI;

/// Where a filter is interested.
#[derive(Clone, Debug, PartialEq)]
pub enum Area {
    /// Everywhere.
    Everywhere,
    /// A circle around the client's position, wherever that is; nowhere while the client has told none.
    Following(Radius),
    /// A circle that stays.
    Circle {
        /// Its centre.
        centre: Position,
        /// Its radius.
        radius: Radius,
    },
    /// Polygons with holes.
    Polygon(Box<Polygon>),
    /// All within a distance of a line.
    Corridor(Box<Corridor>),
}

/// A ball in space that holds an area: a point as in [`Position::point`] and a straight-line reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ball {
    /// Its centre.
    pub centre: [f64; 3],
    /// How far it reaches; infinite for an area too large to bound.
    pub reach: f64,
}

impl Area {
    /// Whether the area holds a position; `client` is where its client is.
    #[must_use]
    pub fn holds(&self, world: World, client: Option<&Position>, position: &Position) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Following(radius) => client.is_some_and(|centre| radius.holds(world, centre, position)),
            Self::Circle { centre, radius } => radius.holds(world, centre, position),
            Self::Polygon(polygon) => polygon.holds(position),
            Self::Corridor(corridor) => corridor.holds(world, position),
        }
    }
}

impl Ball {
    /// A ball too large to say anything.
    pub const UNBOUNDED: Self = Self { centre: [0.0; 3], reach: f64::INFINITY };

    /// Whether it holds a point.
    #[must_use]
    pub fn holds(&self, point: &[f64; 3]) -> bool {
        squared_chord(&self.centre, point) <= self.reach * self.reach
    }

    /// The ball around a cap of the unit sphere, unbounded where the cap is so wide that a ball would hold
    /// about everything.
    fn around_cap(centre: [f64; 3], angle: f64) -> Self {
        if angle > CAP_ANGLE_MAX {
            return Self::UNBOUNDED;
        }
        Self { centre, reach: 2.0 * (angle / 2.0).sin() + SPHERE_MARGIN }
    }

    /// The ball around a circle in the plane.
    fn around_disc(centre: [f64; 2], reach_m: f64) -> Self {
        Self { centre: [centre[0], centre[1], 0.0], reach: reach_m * (1.0 + 1e-12) + PLANE_MARGIN_M }
    }
}
