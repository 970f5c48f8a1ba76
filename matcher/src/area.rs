//! Areas of relevance.

use crate::geo::{Position, Radius, World};

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

/// Polygons with holes; edges are straight in the coordinates and belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    bounds: Ball,
}

/// All within a distance of a line of great-circle (or straight) segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Corridor {
    bounds: Ball,
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

impl Polygon {
    /// A ball that holds it.
    #[must_use]
    pub fn bounds(&self) -> Ball {
        self.bounds
    }

    /// Whether a position is inside or on an edge.
    #[must_use]
    pub fn holds(&self, _position: &Position) -> bool {
        false
    }
}

impl Corridor {
    /// A ball that holds it.
    #[must_use]
    pub fn bounds(&self) -> Ball {
        self.bounds
    }

    /// Whether a position is within the radius of one of the segments.
    #[must_use]
    pub fn holds(&self, _world: World, _position: &Position) -> bool {
        false
    }
}
