//! Polygons and multipolygons with holes.

use robust::Coord;

use super::border::{self, RING_CROSSINGS_MAX, TooManyCrossings};
use super::extent::bounds;
use super::line::{Line, Side};
use super::{Ball, edges};
use crate::geo::{Position, World};

/// The most positions that the rings of a polygon or multipolygon may have together.
pub const POLYGON_POSITIONS_MAX: usize = 10_000;

/// One or more polygons with holes. Edges are straight in the coordinates (longitude and latitude, or x and y)
/// and belong to it, those of holes too.
///
/// A position is inside a ring when a ray from it crosses the ring an odd number of times. It is inside a polygon when it
/// is inside the outer ring or on it, and inside none of the holes; on a hole's edge it is not inside that hole. Each hole counts on its
/// own, whether holes overlap, repeat each other or lie outside of the outer ring. It is inside a multipolygon when it is inside of one of
/// its polygons. Decided exactly: a position is on an edge only if its coordinates are, as far as differences of coordinates stay
/// above 1e-120.
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
        /// Index of the polygon, from 0.
        polygon: usize,
    },
    /// A ring that cannot enclose anything.
    #[error("ring {ring} of polygon {polygon} has {found} positions, at least 4 are needed")]
    RingTooShort {
        /// Index of the polygon, from 0.
        polygon: usize,
        /// Index of the ring in the polygon, from 0; 0 is the outer one.
        ring: usize,
        /// Positions found.
        found: usize,
    },
    /// A ring whose last position is not its first.
    #[error("ring {ring} of polygon {polygon} is not closed: position {position} differs from position 0")]
    RingOpen {
        /// Index of the polygon, from 0.
        polygon: usize,
        /// Index of the ring in the polygon, from 0; 0 is the outer one.
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
    /// Rings that cross each other more than [`RING_CROSSINGS_MAX`] times.
    #[error("the rings of polygon {polygon} cross each other more than {RING_CROSSINGS_MAX} times")]
    TooManyCrossings {
        /// Index of the polygon, from 0.
        polygon: usize,
    },
}

/// One polygon.
#[derive(Clone, Debug, PartialEq)]
struct Member {
    outer: Line,
    holes: Box<[Line]>,
    /// Lines that bound the member, where those are not all of its rings.
    border: Option<Box<[Line]>>,
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
            .map(|(index, rings)| Member::new(world, index, rings))
            .collect::<Result<_, _>>();
        let members: Box<[Member]> = members?;
        let bounds = bounds(world, members.iter().map(|member| *member.outer.extent()));
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
    /// Cost: linear in the members, and for those whose box holds the position in their holes; logarithmic in the vertices of rings of
    /// a usual shape, and at worst linear.
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

    /// The distance to the border in metres, within [`EDGE_TOLERANCE_M`](super::EDGE_TOLERANCE_M) in the
    /// geodetic world, whose edges are no great circles, and within rounding in the planar one. From outside this
    /// is the distance to the polygon. Parts of a hole's edge that lie in another hole or outside of the outer ring are no border.
    /// Infinite where the holes leave nothing.
    ///
    /// Cost: for large rings logarithmic in the vertices, and a few halvings for each long edge that may be the nearest; at worst
    /// linear.
    #[must_use]
    pub fn distance_to_edges_m(&self, position: &Position) -> f64 {
        edges::distance_m(self.world, || self.border(), position)
    }

    /// Whether [`Polygon::distance_to_edges_m`] is above a limit. Mostly much cheaper than the distance.
    #[must_use]
    pub fn is_further_from_edges_than(&self, limit_m: f64, position: &Position) -> bool {
        edges::is_further_than(self.world, || self.border(), limit_m, position)
    }

    /// The rings of its polygons as they were given, the first of each its outer one.
    #[must_use]
    pub fn rings(&self) -> Vec<Vec<Vec<[f64; 2]>>> {
        let ring = |line: &Line| line.vertices().iter().map(|at| [at.x, at.y]).collect();
        let rings = |member: &Member| std::iter::once(&member.outer).chain(&member.holes).map(ring).collect();
        self.members.iter().map(rings).collect()
    }

    fn border(&self) -> impl Iterator<Item = &Line> {
        self.members.iter().flat_map(Member::border)
    }

    fn holds_coordinates(&self, at: Coord<f64>) -> bool {
        self.members.iter().any(|member| member.holds(at))
    }
}

impl Member {
    fn new(world: World, polygon: usize, rings: &[Vec<Position>]) -> Result<Self, PolygonError> {
        let mut rings: Vec<Line> = rings
            .iter()
            .enumerate()
            .map(|(index, positions)| ring(world, polygon, index, positions))
            .collect::<Result<_, _>>()?;
        if rings.is_empty() {
            return Err(PolygonError::NoRings { polygon });
        }
        let holes = rings.split_off(1);
        let outer = rings.remove(0);
        let border = border::cut(world, &outer, &holes)
            .map_err(|TooManyCrossings| PolygonError::TooManyCrossings { polygon })?;
        Ok(Self { outer, holes: holes.into(), border })
    }

    fn holds(&self, at: Coord<f64>) -> bool {
        self.outer.side(at) != Side::Outside && self.holes.iter().all(|hole| hole.side(at) != Side::Inside)
    }

    fn border(&self) -> impl Iterator<Item = &Line> {
        let (cut, whole) = match &self.border {
            Some(lines) => (&lines[..], None),
            None => (&self.holes[..], Some(&self.outer)),
        };
        whole.into_iter().chain(cut)
    }

    fn touches_latitude(&self, lat_deg: f64) -> bool {
        let extent = self.outer.extent();
        extent.min.y == lat_deg || extent.max.y == lat_deg
    }
}

/// A closed line.
fn ring(world: World, polygon: usize, ring: usize, positions: &[Position]) -> Result<Line, PolygonError> {
    let found = positions.len();
    if found < 4 {
        return Err(PolygonError::RingTooShort { polygon, ring, found });
    }
    let vertices: Box<[_]> =
        positions.iter().map(|position| Coord { x: position.x(), y: position.y() }).collect();
    if vertices[0] != vertices[found - 1] {
        return Err(PolygonError::RingOpen { polygon, ring, position: found - 1 });
    }
    Ok(Line::new(world, vertices))
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
    fn each_hole_counts_on_its_own() {
        let square = |from: [f64; 2], to: [f64; 2]| [from, [to[0], from[1]], to, [from[0], to[1]], from];
        let (one, two) = (square([2.0, 2.0], [6.0, 6.0]), square([4.0, 4.0], [8.0, 8.0]));
        // In both, in one, on the edge of one inside the other, on the edge of one alone.
        let outside = [[5.0, 5.0], [3.0, 3.0], [7.0, 7.0], [4.0, 5.0], [5.0, 6.0]];
        check(
            World::Planar,
            &[&[SQUARE, &one, &two]],
            &[[2.0, 3.0], [8.0, 7.0], [6.0, 4.0], [4.0, 6.0]],
            &outside,
        );
        check(World::Geodetic, &[&[SQUARE, &one, &two]], &[[2.0, 3.0], [1.0, 1.0]], &outside);
        check(World::Planar, &[&[SQUARE, &one, &one]], &[[2.0, 3.0], [7.0, 7.0]], &[[3.0, 3.0]]);
        // Outside of the ring and across it.
        let (apart, across) = (square([20.0, 20.0], [22.0, 22.0]), square([9.0, 4.0], [12.0, 6.0]));
        check(
            World::Planar,
            &[&[SQUARE, &apart, &across]],
            &[[9.0, 5.0], [10.0, 4.0]],
            &[[21.0, 21.0], [20.0, 20.0], [10.0, 5.0], [11.0, 5.0], [12.0, 5.0]],
        );
        // Side by side: the edge between them belongs to neither.
        let beside = square([6.0, 2.0], [8.0, 6.0]);
        check(
            World::Planar,
            &[&[SQUARE, &one, &beside]],
            &[[6.0, 3.0], [6.0, 6.0]],
            &[[5.9, 3.0], [6.1, 3.0]],
        );
    }

    #[test]
    fn a_ring_that_crosses_itself_counts_even_odd() {
        // A pentagram: its middle is gone round twice.
        let star: &[[f64; 2]] =
            &[[0.0, 10.0], [6.0, -8.0], [-9.0, 3.0], [9.0, 3.0], [-6.0, -8.0], [0.0, 10.0]];
        check(World::Planar, &[&[star]], &[[0.0, 6.0], [6.0, 2.0], [0.0, 3.0]], &[[0.0, 0.0], [5.0, 5.0]]);
        let around: &[[f64; 2]] =
            &[[-20.0, -20.0], [20.0, -20.0], [20.0, 20.0], [-20.0, 20.0], [-20.0, -20.0]];
        check(
            World::Planar,
            &[&[around, star]],
            &[[0.0, 0.0], [5.0, 5.0], [0.0, 3.0]],
            &[[0.0, 6.0], [6.0, 2.0]],
        );
    }

    #[test]
    fn rings_that_cross_too_often_are_refused() {
        let comb = |turned: bool| -> Vec<[f64; 2]> {
            let teeth = (0..100_u32).flat_map(|tooth| {
                let x = f64::from(tooth);
                [[x, 0.0], [x, 100.0], [x + 0.5, 100.0], [x + 0.5, 0.0]]
            });
            let ring: Vec<[f64; 2]> = teeth.chain([[0.0, 0.0]]).collect();
            ring.iter().map(|[x, y]| if turned { [y + 0.1, x + 0.1] } else { [*x, *y] }).collect()
        };
        let error = polygon(World::Planar, &[&[&comb(false), &comb(true)]]).unwrap_err();
        assert_eq!(error.to_string(), "the rings of polygon 0 cross each other more than 2000 times");
        assert!(polygon(World::Planar, &[&[&comb(false)], &[&comb(true)]]).is_ok());
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
