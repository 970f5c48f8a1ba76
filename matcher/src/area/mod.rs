//! Areas of relevance.

mod border;
mod corridor;
mod edges;
mod extent;
mod line;
mod polygon;
mod segment;
mod track;

pub use border::RING_CROSSINGS_MAX;
pub use corridor::{CORRIDOR_POSITIONS_MAX, Corridor, CorridorError};
pub use edges::EDGE_TOLERANCE_M;
pub use polygon::{POLYGON_POSITIONS_MAX, Polygon, PolygonError};
pub use segment::are_opposite;
pub(crate) use track::{Part, Track};

use crate::geo::{Position, Radius, World, squared_chord};

/// Margin by which a ball on the sphere is wider than its area: 1e-13 of the Earth's radius is less than a micrometre,
/// and fifty times what rounding can do to the unit vectors, angles and chords of a ball.
const SPHERE_MARGIN: f64 = 1e-13;

/// Margin in metres by which a ball in the plane is wider than its area, beside one part in 10^12: the middle of two
/// coordinates of up to a billion metres is off by up to 1.2e-7.
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

    /// How many metres a position is outside of the area: above 0 exactly when [`Area::holds`] does not hold it,
    /// and infinite for an area that follows a client which is nowhere, or that has no line.
    ///
    /// Circles and corridors: the distance to the centre or line less the radius. Polygons: the distance to the
    /// nearest edge, see [`Polygon::distance_to_edges_m`].
    #[must_use]
    pub fn outside_m(&self, world: World, client: Option<&Position>, position: &Position) -> f64 {
        if self.holds(world, client, position) {
            return 0.0;
        }
        let outside_m = match self {
            Self::Everywhere => 0.0,
            Self::Polygon(polygon) => polygon.distance_to_edges_m(position),
            Self::Following(radius) | Self::Circle { radius, .. } => {
                self.distance_m(world, client, position).map_or(f64::INFINITY, |m| m - radius.metres())
            }
            Self::Corridor(corridor) => corridor.distance_m(world, position) - corridor.radius().metres(),
        };
        // A neighbour among the floats may be outside and too near for a distance.
        outside_m.max(f64::MIN_POSITIVE)
    }

    /// Whether [`Area::outside_m`] is above a limit. Mostly much cheaper than the distance itself, which is looked for only next to
    /// the limit.
    #[must_use]
    pub fn is_outside_by_more_than(
        &self,
        world: World,
        client: Option<&Position>,
        position: &Position,
        limit_m: f64,
    ) -> bool {
        if limit_m < f64::MIN_POSITIVE {
            // What is outside is so by more than the least that can be told.
            return self.outside_m(world, client, position) > limit_m;
        }
        match self {
            Self::Polygon(polygon) => {
                !polygon.holds(position) && polygon.is_further_from_edges_than(limit_m, position)
            }
            Self::Corridor(corridor) => {
                !corridor.holds(world, position) && corridor.is_outside_by_more_than(world, limit_m, position)
            }
            Self::Everywhere | Self::Following(_) | Self::Circle { .. } => {
                self.outside_m(world, client, position) > limit_m
            }
        }
    }

    /// How far a position is from what the radius of the area is measured from, a centre or a line, in metres;
    /// `None` for an area without a radius, for one that follows a client which is nowhere, and for a corridor without a line.
    #[must_use]
    pub fn distance_m(&self, world: World, client: Option<&Position>, position: &Position) -> Option<f64> {
        match self {
            Self::Following(_) => client.map(|centre| world.distance_m(centre, position)),
            Self::Circle { centre, .. } => Some(world.distance_m(centre, position)),
            Self::Corridor(corridor) if corridor.is_nowhere() => None,
            Self::Corridor(corridor) => Some(corridor.distance_m(world, position)),
            Self::Everywhere | Self::Polygon(_) => None,
        }
    }

    /// The radius of a circle or a corridor.
    #[must_use]
    pub fn radius(&self) -> Option<Radius> {
        match self {
            Self::Following(radius) | Self::Circle { radius, .. } => Some(*radius),
            Self::Corridor(corridor) => Some(corridor.radius()),
            Self::Everywhere | Self::Polygon(_) => None,
        }
    }

    /// A ball that holds all that the area holds; `None` for an area that follows a client which is nowhere.
    #[must_use]
    pub fn ball(&self, world: World, client: Option<&Position>) -> Option<Ball> {
        let centre = self.centre(client)?;
        let reach = self.reach(world);
        Some(if reach.is_finite() { Ball { centre, reach } } else { Ball::UNBOUNDED })
    }

    /// Around which point the area lies: `None` for one that follows a client which is nowhere.
    #[must_use]
    pub fn centre(&self, client: Option<&Position>) -> Option<[f64; 3]> {
        match self {
            Self::Everywhere => Some([0.0; 3]),
            Self::Following(_) => client.map(|client| *client.point()),
            Self::Circle { centre, .. } => Some(*centre.point()),
            Self::Polygon(polygon) => Some(polygon.bounds().centre),
            Self::Corridor(corridor) => Some(corridor.bounds().centre),
        }
    }

    /// How far the area reaches from its centre, in the units of points; infinite without a bound.
    #[must_use]
    pub fn reach(&self, world: World) -> f64 {
        match self {
            Self::Everywhere => f64::INFINITY,
            // A chord does not bound circles of nearly half the globe.
            Self::Following(radius) | Self::Circle { radius, .. } => match world {
                World::Geodetic if radius.chord() >= 2.0 => f64::INFINITY,
                World::Geodetic | World::Planar => radius.chord(),
            },
            Self::Polygon(polygon) => polygon.bounds().reach,
            Self::Corridor(corridor) => corridor.bounds().reach,
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
