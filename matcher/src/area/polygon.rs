//! Polygons and multipolygons with holes.

use robust::{Coord, orient2d};

use super::{Ball, edges};
use crate::geo::{Position, World};

/// The most positions that the rings of a polygon or multipolygon may have together: a test costs time linear
/// in them, about 20 us for this many.
pub const POLYGON_POSITIONS_MAX: usize = 10_000;

/// One or more polygons with holes. Edges are straight in the coordinates (longitude and latitude, or x and y)
/// and belong to it, those of holes too.
///
/// A position is inside a polygon when a ray from it crosses the polygon's rings an odd number of times, and
/// inside a multipolygon when it is inside of one of its polygons. Decided exactly: a position is on an edge
/// only if its coordinates are, as far as differences of coordinates stay above 1e-120.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    world: World,
    members: Box<[Member]>,
    bounds: Ball,
}

/// Why positions are not a polygon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolygonError {
    /// A multipolygon without polygons.
    #[error("a multipolygon has at least one polygon")]
    NoPolygons,
    /// A polygon without rings.
    #[error("polygon {polygon} has no rings")]
    NoRings {
        /// Which polygon, from 0.
        polygon: usize,
    },
    /// A ring that cannot enclose anything.
    #[error("ring {ring} of polygon {polygon} has {found} positions, at least 4 are needed")]
    RingTooShort {
        /// Which polygon, from 0.
        polygon: usize,
        /// Which of its rings, from 0; 0 is the outer one.
        ring: usize,
        /// Positions found.
        found: usize,
    },
    /// A ring whose last position is not its first.
    #[error("ring {ring} of polygon {polygon} is not closed: position {position} differs from position 0")]
    RingOpen {
        /// Which polygon, from 0.
        polygon: usize,
        /// Which of its rings, from 0; 0 is the outer one.
        ring: usize,
        /// The index of the last position.
        position: usize,
    },
    /// More than [`POLYGON_POSITIONS_MAX`].
    #[error("the rings have {found} positions together, at most {POLYGON_POSITIONS_MAX} are allowed")]
    TooManyPositions {
        /// Positions found.
        found: usize,
    },
}

/// One polygon: the outer ring and its holes, which the even-odd rule need not tell apart.
#[derive(Clone, Debug, PartialEq)]
struct Member {
    extent: Extent,
    rings: Box<[Ring]>,
}

/// A closed ring: the last vertex is the first.
#[derive(Clone, Debug, PartialEq)]
struct Ring {
    extent: Extent,
    vertices: Box<[Coord<f64>]>,
}

/// A box in the coordinates, its border included.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extent {
    min: Coord<f64>,
    max: Coord<f64>,
}

/// Where a position lies seen from a ring.
enum Side {
    Edge,
    Inside,
    Outside,
}

impl Polygon {
    /// Checks the rings of a polygon (one member) or a multipolygon: polygons of rings of positions, the first
    /// ring of a polygon its outer one. Winding does not matter.
    ///
    /// # Errors
    /// [`PolygonError`], which says which ring of which polygon is wrong.
    pub fn new(world: World, polygons: &[Vec<Vec<Position>>]) -> Result<Self, PolygonError> {
        if polygons.is_empty() {
            return Err(PolygonError::NoPolygons);
        }
        let found = polygons.iter().flatten().map(Vec::len).sum();
        if found > POLYGON_POSITIONS_MAX {
            return Err(PolygonError::TooManyPositions { found });
        }
        let members = polygons
            .iter()
            .enumerate()
            .map(|(index, rings)| Member::new(index, rings))
            .collect::<Result<_, _>>();
        let members: Box<[Member]> = members?;
        let bounds = match world {
            World::Geodetic => geodetic_bounds(&members),
            World::Planar => planar_bounds(&members),
        };
        Ok(Self { world, members, bounds })
    }

    /// A ball that holds it, a micrometre wider than need be; unbounded when the area takes up most of the
    /// world.
    #[must_use]
    pub fn bounds(&self) -> Ball {
        self.bounds
    }

    /// Whether a position is inside or on an edge.
    ///
    /// A pole is one place whatever its longitude, and so is a position on the antimeridian under both of its
    /// names: a polygon that holds one name holds the place.
    ///
    /// Cost: linear in the vertices of the members whose box holds the position.
    #[must_use]
    pub fn holds(&self, position: &Position) -> bool {
        let (x, y) = (position.x(), position.y());
        if self.world == World::Geodetic {
            if y.abs() == 90.0 {
                // No polygon reaches past a pole, so one that holds it has it in an edge.
                return self.members.iter().any(|member| member.touches_latitude(y));
            }
            if x.abs() == 180.0 && self.holds_coordinates(Coord { x: -x, y }) {
                return true;
            }
        }
        self.holds_coordinates(Coord { x, y })
    }

    /// The distance to the nearest edge in metres, within [`EDGE_TOLERANCE_M`](super::EDGE_TOLERANCE_M) in the
    /// geodetic world, whose edges are no great circles, and within rounding in the planar one. From outside this
    /// is the distance to the polygon.
    ///
    /// Cost: linear in the vertices, and a few halvings for each long edge that may be the nearest.
    #[must_use]
    pub fn distance_to_edges_m(&self, position: &Position) -> f64 {
        let rings = self.members.iter().flat_map(|member| &member.rings);
        edges::distance_m(self.world, rings.flat_map(|ring| ring.vertices.windows(2)), position)
    }

    fn holds_coordinates(&self, at: Coord<f64>) -> bool {
        self.members.iter().any(|member| member.holds(at))
    }
}

impl Member {
    fn new(polygon: usize, rings: &[Vec<Position>]) -> Result<Self, PolygonError> {
        let rings: Box<[Ring]> = rings
            .iter()
            .enumerate()
            .map(|(ring, positions)| Ring::new(polygon, ring, positions))
            .collect::<Result<_, _>>()?;
        let extents = rings.iter().map(|ring| ring.extent);
        let extent = extents.reduce(Extent::union).ok_or(PolygonError::NoRings { polygon })?;
        Ok(Self { extent, rings })
    }

    fn holds(&self, at: Coord<f64>) -> bool {
        if !self.extent.holds(at) {
            return false;
        }
        let mut inside = false;
        for ring in &self.rings {
            match ring.side(at) {
                Side::Edge => return true,
                Side::Inside => inside = !inside,
                Side::Outside => {}
            }
        }
        inside
    }

    fn touches_latitude(&self, lat_deg: f64) -> bool {
        self.extent.min.y == lat_deg || self.extent.max.y == lat_deg
    }
}

impl Ring {
    fn new(polygon: usize, ring: usize, positions: &[Position]) -> Result<Self, PolygonError> {
        let found = positions.len();
        if found < 4 {
            return Err(PolygonError::RingTooShort { polygon, ring, found });
        }
        let vertices: Box<[_]> =
            positions.iter().map(|position| Coord { x: position.x(), y: position.y() }).collect();
        if vertices[0] != vertices[found - 1] {
            return Err(PolygonError::RingOpen { polygon, ring, position: found - 1 });
        }
        let start = Extent { min: vertices[0], max: vertices[0] };
        let extent = vertices.iter().map(|&at| Extent { min: at, max: at }).fold(start, Extent::union);
        Ok(Self { extent, vertices })
    }

    /// Counts the edges that a ray from the position towards larger x crosses. An edge counts its lower end
    /// and not its upper one, so that a vertex on the ray is crossed once or not at all.
    fn side(&self, at: Coord<f64>) -> Side {
        if !self.extent.holds(at) {
            return Side::Outside;
        }
        let mut inside = false;
        for edge in self.vertices.windows(2) {
            let (from, to) = (edge[0], edge[1]);
            if from.x.max(to.x) < at.x || from.y.max(to.y) < at.y || from.y.min(to.y) > at.y {
                continue;
            }
            let straddles = (from.y > at.y) != (to.y > at.y);
            if at.x < from.x.min(to.x) {
                inside ^= straddles;
                continue;
            }
            // The position is in the edge's box: on the edge, if in line with it.
            let turn = orient2d(from, to, at);
            if turn == 0.0 {
                return Side::Edge;
            }
            inside ^= straddles && (turn > 0.0) == (to.y > from.y);
        }
        if inside { Side::Inside } else { Side::Outside }
    }
}

impl Extent {
    fn union(self, other: Self) -> Self {
        Self {
            min: Coord { x: self.min.x.min(other.min.x), y: self.min.y.min(other.min.y) },
            max: Coord { x: self.max.x.max(other.max.x), y: self.max.y.max(other.max.y) },
        }
    }

    fn holds(&self, at: Coord<f64>) -> bool {
        self.min.x <= at.x && at.x <= self.max.x && self.min.y <= at.y && at.y <= self.max.y
    }
}

fn planar_bounds(members: &[Member]) -> Ball {
    let Some(Extent { min, max }) = members.iter().map(|member| member.extent).reduce(Extent::union) else {
        return Ball::UNBOUNDED;
    };
    let centre = [(min.x + max.x) / 2.0, (min.y + max.y) / 2.0];
    Ball::around_disc(centre, (max.x - min.x).hypot(max.y - min.y) / 2.0)
}

/// The better one of a cap around the middle of the smallest box that holds all members, which may go across
/// the antimeridian, and a cap around a pole.
fn geodetic_bounds(members: &[Member]) -> Ball {
    let extents = || members.iter().map(|member| member.extent);
    let south = extents().map(|extent| extent.min.y).fold(90.0, f64::min);
    let north = extents().map(|extent| extent.max.y).fold(-90.0, f64::max);
    let (west, east) = longitudes(extents());
    let around_pole = if south + north >= 0.0 {
        Ball::around_cap([0.0, 0.0, 1.0], (90.0 - south).to_radians())
    } else {
        Ball::around_cap([0.0, 0.0, -1.0], (90.0 + north).to_radians())
    };
    // The distance from the box's middle grows with the difference in longitude, and along a meridian less
    // than 90 degrees of longitude away it has no maximum but the ends: the corners are furthest.
    let half_lon = ((east - west) / 2.0).to_radians();
    if half_lon > 0.5 * std::f64::consts::PI {
        return around_pole;
    }
    let middle = (south + north) / 2.0;
    let (lat_sin, lat_cos) = middle.to_radians().sin_cos();
    let (lon_sin, lon_cos) = ((west + east) / 2.0).to_radians().sin_cos();
    let angle = [south, north].map(|lat| {
        let half_lat = ((lat - middle) / 2.0).to_radians();
        let h = half_lat.sin().powi(2) + lat_cos * lat.to_radians().cos() * (half_lon / 2.0).sin().powi(2);
        2.0 * h.min(1.0).sqrt().asin()
    });
    let around_middle =
        Ball::around_cap([lat_cos * lon_cos, lat_cos * lon_sin, lat_sin], angle[0].max(angle[1]));
    if around_middle.reach <= around_pole.reach { around_middle } else { around_pole }
}

/// The smallest range of longitudes that holds all extents: what is left when the largest gap around the globe
/// is taken out. Its end may be past 180.
fn longitudes(extents: impl Iterator<Item = Extent>) -> (f64, f64) {
    let mut ranges: Vec<(f64, f64)> = extents.map(|extent| (extent.min.x, extent.max.x)).collect();
    ranges.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, mut east) = ranges[0];
    let (mut gap, mut result) = (f64::NEG_INFINITY, (first, east));
    for &(from, to) in &ranges {
        if from - east > gap {
            gap = from - east;
            result = (from, east + 360.0);
        }
        east = east.max(to);
    }
    // The gap around the back, over the antimeridian.
    if first + 360.0 - east >= gap { (first, east) } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rings<'a> = &'a [&'a [[f64; 2]]];

    fn polygon(world: World, members: &[Rings]) -> Result<Polygon, PolygonError> {
        let ring = |ring: &&[[f64; 2]]| ring.iter().map(|at| world.position(at).unwrap()).collect();
        let members: Vec<Vec<Vec<Position>>> =
            members.iter().map(|rings| rings.iter().map(ring).collect()).collect();
        Polygon::new(world, &members)
    }

    #[track_caller]
    fn check(world: World, members: &[Rings], inside: &[[f64; 2]], outside: &[[f64; 2]]) {
        let polygon = polygon(world, members).unwrap();
        for at in inside {
            let position = world.position(at).unwrap();
            assert!(polygon.holds(&position), "{at:?} is inside");
            assert!(polygon.bounds().holds(position.point()), "{at:?} is within bounds");
        }
        for at in outside {
            assert!(!polygon.holds(&world.position(at).unwrap()), "{at:?} is outside");
        }
    }

    const SQUARE: &[[f64; 2]] = &[[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0], [0.0, 0.0]];
    const HOLE: &[[f64; 2]] = &[[4.0, 4.0], [4.0, 6.0], [6.0, 6.0], [6.0, 4.0], [4.0, 4.0]];

    #[test]
    fn edges_belong_to_it_those_of_holes_too() {
        let inside = [[0.0, 0.0], [10.0, 3.0], [4.0, 5.0], [5.0, 6.0], [6.0, 6.0], [1.0, 4.0], [9.0, 6.0]];
        let outside = [[5.0, 5.0], [-1.0, 0.0], [11.0, 10.0], [5.0, 10.1], [4.1, 5.9]];
        check(World::Planar, &[&[SQUARE, HOLE]], &inside, &outside);
        check(World::Geodetic, &[&[SQUARE, HOLE]], &inside, &outside);
    }

    #[test]
    fn a_multipolygon_holds_what_one_member_holds() {
        // The second member fills the hole of the first; under one even-odd count the overlap would cancel.
        let filling: &[[f64; 2]] = &[[3.0, 3.0], [7.0, 3.0], [7.0, 7.0], [3.0, 7.0], [3.0, 3.0]];
        check(World::Planar, &[&[SQUARE, HOLE], &[filling]], &[[5.0, 5.0], [3.5, 3.5]], &[[12.0, 5.0]]);
    }

    #[test]
    fn a_position_on_a_slanted_edge_is_on_it_and_its_neighbours_are_not() {
        // A neighbour among the floats is 4e-15 away, far below what a plain determinant can tell here.
        let triangle: &[[f64; 2]] = &[[12.0, 12.0], [24.0, 24.0], [30.0, 0.0], [12.0, 12.0]];
        let on = [18.0, 18.0];
        let (below, above) = ([18.0, 18.0_f64.next_down()], [18.0, 18.0_f64.next_up()]);
        check(World::Planar, &[&[triangle]], &[on, below], &[above, [18.0_f64.next_down(), 18.0]]);
    }

    #[test]
    fn cut_at_the_antimeridian_it_is_whole_and_bounded() {
        let west: &[[f64; 2]] = &[[170.0, -5.0], [180.0, -5.0], [180.0, 5.0], [170.0, 5.0], [170.0, -5.0]];
        let east: &[[f64; 2]] =
            &[[-180.0, -5.0], [-170.0, -5.0], [-170.0, 5.0], [-180.0, 5.0], [-180.0, -5.0]];
        let inside = [[180.0, 0.0], [-180.0, 0.0], [175.0, 1.0], [-170.0, 5.0]];
        check(World::Geodetic, &[&[west], &[east]], &inside, &[[169.0, 0.0], [-169.0, 0.0], [0.0, 0.0]]);
        check(World::Geodetic, &[&[east]], &[[180.0, 0.0], [-180.0, 0.0]], &[[175.0, 0.0]]);
        assert!(polygon(World::Geodetic, &[&[west], &[east]]).unwrap().bounds().reach < 0.2);
    }

    #[test]
    fn a_pole_is_one_place() {
        let cap: &[[f64; 2]] =
            &[[-180.0, 80.0], [180.0, 80.0], [180.0, 90.0], [-180.0, 90.0], [-180.0, 80.0]];
        check(World::Geodetic, &[&[cap]], &[[33.0, 90.0], [-180.0, 80.0], [99.0, 85.0]], &[[0.0, -90.0]]);
        assert!(polygon(World::Geodetic, &[&[cap]]).unwrap().bounds().reach < 0.18);
        let wedge: &[[f64; 2]] = &[[0.0, 80.0], [10.0, 80.0], [5.0, 90.0], [0.0, 80.0]];
        check(World::Geodetic, &[&[wedge]], &[[-77.0, 90.0]], &[[-77.0, 89.9]]);
    }

    #[test]
    fn rings_that_are_none_are_refused_by_place() {
        let refused = |members: &[Rings]| polygon(World::Planar, members).unwrap_err().to_string();
        assert_eq!(refused(&[]), "a multipolygon has at least one polygon");
        assert_eq!(refused(&[&[SQUARE], &[]]), "polygon 1 has no rings");
        assert_eq!(
            refused(&[&[SQUARE, &SQUARE[..3]]]),
            "ring 1 of polygon 0 has 3 positions, at least 4 are needed"
        );
        assert_eq!(
            refused(&[&[&SQUARE[..4]]]),
            "ring 0 of polygon 0 is not closed: position 3 differs from position 0"
        );
        let long = vec![[0.0, 0.0]; POLYGON_POSITIONS_MAX];
        assert_eq!(
            refused(&[&[&long], &[SQUARE]]),
            "the rings have 10005 positions together, at most 10000 are allowed"
        );
    }
}
