//! Corridors: all within a distance of a line.

use std::f64::consts::PI;
use std::sync::Arc;

use super::Ball;
use super::segment::{Segment, add, angle_between, unit};
use crate::geo::{EARTH_RADIUS_M, Position, Radius, World, squared_chord};

/// The most positions that the line of a corridor may have: a test costs time linear in them, about 20 us for
/// this many.
pub const CORRIDOR_POSITIONS_MAX: usize = 10_000;

/// Margin for rounding in the quick rejection of a segment, on the unit sphere.
const SPHERE_MARGIN: f64 = 1e-13;

/// Margin for rounding in the quick rejection of a segment in the plane, as a share of the reach and in metres. The
/// middle of a segment is rounded.
const PLANE_MARGIN: (f64, f64) = (1e-12, 1e-6);

/// All within a radius of one of a line's segments, great-circle ones or, in the plane, straight ones.
///
/// The distance to a segment is the cross-track distance when the foot of the perpendicular is on the segment,
/// and else the distance to the nearer end by [`World::distance_m`].
#[derive(Clone, Debug, PartialEq)]
pub struct Corridor {
    radius: Radius,
    /// Shared by all copies: there is one for each engine.
    stretches: Arc<[Stretch]>,
    bounds: Ball,
}

/// Why positions are not a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorridorError {
    /// Not a line.
    #[error("a line has at least 2 positions, found {found}")]
    TooFewPositions {
        /// Positions found.
        found: usize,
    },
    /// More than [`CORRIDOR_POSITIONS_MAX`].
    #[error("the line has {found} positions, at most {CORRIDOR_POSITIONS_MAX} are allowed")]
    TooManyPositions {
        /// Positions found.
        found: usize,
    },
    /// A segment whose ends lie opposite each other: no single great circle joins them.
    #[error("the segment from position {position} to the next joins opposite sides of the globe")]
    Antipodal {
        /// The index of the segment's first position.
        position: usize,
    },
}

/// A segment with what its quick rejection needs.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    segment: Segment,
    /// No position further from the middle than this is within the corridor's radius.
    middle: [f64; 3],
    reach_sq: f64,
}

impl Corridor {
    /// Checks a line; its positions are in order, and repeated ones are fine.
    ///
    /// # Errors
    /// [`CorridorError`], which says where the line is wrong.
    pub fn new(world: World, line: &[Position], radius: Radius) -> Result<Self, CorridorError> {
        let found = line.len();
        if found < 2 {
            return Err(CorridorError::TooFewPositions { found });
        }
        if found > CORRIDOR_POSITIONS_MAX {
            return Err(CorridorError::TooManyPositions { found });
        }
        let stretches = line
            .windows(2)
            .enumerate()
            .map(|(position, ends)| {
                Stretch::new(world, &ends[0], &ends[1], radius).ok_or(CorridorError::Antipodal { position })
            })
            .collect::<Result<_, _>>()?;
        let bounds = match world {
            World::Geodetic => geodetic_bounds(line, radius),
            World::Planar => planar_bounds(line, radius),
        };
        Ok(Self { radius, stretches, bounds })
    }

    /// A corridor around a line that is not there yet: it holds nothing. `near` is a place where the line may come to lie.
    #[must_use]
    pub fn nowhere(world: World, near: &Position, radius: Radius) -> Self {
        let line = std::slice::from_ref(near);
        let bounds = match world {
            World::Geodetic => geodetic_bounds(line, radius),
            World::Planar => planar_bounds(line, radius),
        };
        Self { radius, stretches: Arc::default(), bounds }
    }

    /// Whether there is no line, so that the corridor holds nothing.
    #[must_use]
    pub fn is_nowhere(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Bytes that it takes, together with all its copies, beside their own size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.stretches)
    }

    /// A ball that holds it, a micrometre wider than need be; unbounded when the line does not fit into half
    /// of the globe or the area takes up most of it.
    #[must_use]
    pub fn bounds(&self) -> Ball {
        self.bounds
    }

    /// Whether a position is within the radius of one of the segments.
    ///
    /// Cost: linear in the segments, a few nanoseconds for one that is out of reach.
    #[must_use]
    pub fn holds(&self, world: World, position: &Position) -> bool {
        self.stretches.iter().any(|stretch| stretch.holds(world, position, &self.radius))
    }

    /// The radius around the line.
    #[must_use]
    pub fn radius(&self) -> Radius {
        self.radius
    }

    /// The distance to the line in metres, its radius left aside; infinite where there is no line.
    ///
    /// Cost: linear in the segments, without short cuts.
    #[must_use]
    pub fn distance_m(&self, world: World, position: &Position) -> f64 {
        let distances = self.stretches.iter().map(|stretch| stretch.segment.distance_m(world, position));
        distances.fold(f64::INFINITY, f64::min)
    }

    /// Whether a position is further than `limit_m` metres outside of the corridor.
    ///
    /// Cost: linear in the segments, a few nanoseconds for one that is out of reach.
    #[must_use]
    pub fn is_outside_by_more_than(&self, world: World, limit_m: f64, position: &Position) -> bool {
        // Chords add up to more than the chord of the sum, so that nothing near enough is passed over.
        let limit_chord = Radius::new(world, limit_m).map_or(f64::INFINITY, |limit| limit.chord());
        let radius_m = self.radius.metres();
        !self.stretches.iter().any(|stretch| {
            let reach = (stretch.reach_sq.sqrt() + limit_chord) * (1.0 + PLANE_MARGIN.0);
            squared_chord(&stretch.middle, position.point()) <= reach * reach
                && stretch.segment.distance_m(world, position) - radius_m <= limit_m
        })
    }
}

impl Stretch {
    /// `None` when the ends are antipodal.
    fn new(world: World, from: &Position, to: &Position, radius: Radius) -> Option<Self> {
        let segment = Segment::between(world, from, to)?;
        let (middle, reach_sq) = match world {
            World::Geodetic => {
                let (a, b) = (*from.point(), *to.point());
                // The middle of a very long segment is off by more than rounding; the angles from it are not.
                let middle = unit(add(a, b)).unwrap_or(a);
                let half_angle = angle_between(middle, a).max(angle_between(middle, b));
                (middle, sphere_reach_sq(half_angle, radius))
            }
            World::Planar => {
                let length = (to.x() - from.x()).hypot(to.y() - from.y());
                let middle = [f64::midpoint(from.x(), to.x()), f64::midpoint(from.y(), to.y()), 0.0];
                let reach = (length / 2.0 + radius.metres()) * (1.0 + PLANE_MARGIN.0) + PLANE_MARGIN.1;
                (middle, reach * reach)
            }
        };
        Some(Self { segment, middle, reach_sq })
    }

    fn holds(&self, world: World, position: &Position, radius: &Radius) -> bool {
        squared_chord(&self.middle, position.point()) <= self.reach_sq
            && self.segment.is_within(world, radius, position)
    }
}

/// The squared chord of an angle around a segment's middle plus the radius; infinite when that is all around.
fn sphere_reach_sq(half_angle: f64, radius: Radius) -> f64 {
    let angle = half_angle + radius.metres() / EARTH_RADIUS_M;
    if angle >= PI { f64::INFINITY } else { (2.0 * (angle / 2.0).sin() + SPHERE_MARGIN).powi(2) }
}

/// A cap of less than 90 degrees that holds the vertices holds the segments too, being convex.
fn geodetic_bounds(line: &[Position], radius: Radius) -> Ball {
    let (min, max) = box_of(line);
    let Some(centre) = unit(add(min, max)) else { return Ball::UNBOUNDED };
    let angle = line.iter().map(|vertex| angle_between(centre, *vertex.point())).fold(0.0, f64::max);
    if angle >= 0.499 * PI {
        return Ball::UNBOUNDED;
    }
    Ball::around_cap(centre, angle + radius.metres() / EARTH_RADIUS_M)
}

fn planar_bounds(line: &[Position], radius: Radius) -> Ball {
    let (min, max) = box_of(line);
    let centre = [f64::midpoint(min[0], max[0]), f64::midpoint(min[1], max[1])];
    let reach =
        line.iter().map(|vertex| (vertex.x() - centre[0]).hypot(vertex.y() - centre[1])).fold(0.0, f64::max);
    Ball::around_disc(centre, reach + radius.metres())
}

/// The box in space that holds the vertices.
fn box_of(line: &[Position]) -> ([f64; 3], [f64; 3]) {
    line.iter().fold(([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]), |(min, max), vertex| {
        let point = vertex.point();
        let axes = [0, 1, 2];
        (axes.map(|axis| min[axis].min(point[axis])), axes.map(|axis| max[axis].max(point[axis])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corridor(world: World, line: &[[f64; 2]], metres: f64) -> Result<Corridor, CorridorError> {
        let line: Vec<_> = line.iter().map(|numbers| world.position(numbers).unwrap()).collect();
        Corridor::new(world, &line, Radius::new(world, metres).unwrap())
    }

    #[track_caller]
    fn check(world: World, line: &[[f64; 2]], metres: f64, inside: &[[f64; 2]], outside: &[[f64; 2]]) {
        let corridor = corridor(world, line, metres).unwrap();
        let holds = |numbers: &[f64; 2]| corridor.holds(world, &world.position(numbers).unwrap());
        assert!(inside.iter().all(holds), "all of {inside:?} are inside");
        assert!(!outside.iter().any(holds), "none of {outside:?} is inside");
    }

    #[test]
    fn a_planar_corridor_has_round_ends_and_straight_sides() {
        let inside = [[-5.0, 0.0], [-3.0, 4.0], [0.0, 5.0], [50.0, -5.0], [104.0, -3.0], [105.0, 0.0]];
        let outside = [[-4.0, 4.0], [-5.000_001, 0.0], [50.0, 5.000_001], [104.0, 3.000_001]];
        check(World::Planar, &[[0.0, 0.0], [100.0, 0.0]], 5.0, &inside, &outside);
        check(World::Planar, &[[7.0, 7.0], [7.0, 7.0]], 5.0, &[[7.0, 12.0], [4.0, 3.0]], &[[3.0, 3.0]]);
    }

    #[test]
    fn a_segment_is_a_great_circle_and_not_a_parallel() {
        // Between two places at 60 degrees north the great circle passes far north of the parallel.
        let line = [[-60.0, 60.0], [60.0, 60.0]];
        let top = (60_f64.to_radians().tan() / 60_f64.to_radians().cos()).atan().to_degrees();
        check(
            World::Geodetic,
            &line,
            1.0,
            &[[0.0, top], line[0], line[1]],
            &[[0.0, 60.0], [0.0, top - 1e-4]],
        );
    }

    #[test]
    fn neither_the_antimeridian_nor_a_pole_is_a_seam() {
        let line = [[179.0, 0.0], [-179.0, 0.0]];
        check(
            World::Geodetic,
            &line,
            1_000.0,
            &[[180.0, 0.008], [-180.0, -0.008]],
            &[[0.0, 0.0], [177.0, 0.0]],
        );
        let line = [[10.0, 89.0], [-170.0, 89.0]];
        check(
            World::Geodetic,
            &line,
            1_000.0,
            &[[77.0, 90.0], [10.0, 89.5], [-170.0, 89.5]],
            &[[100.0, 89.5]],
        );
    }

    #[test]
    fn what_is_nowhere_holds_nothing() {
        for world in [World::Geodetic, World::Planar] {
            let at = world.position(&[9.0, 45.0]).unwrap();
            let corridor = Corridor::nowhere(world, &at, Radius::new(world, 500.0).unwrap());
            assert!(corridor.is_nowhere() && !corridor.holds(world, &at));
            assert!(corridor.distance_m(world, &at).is_infinite());
            assert!(corridor.is_outside_by_more_than(world, 1e9, &at));
        }
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        let refused = |line: &[[f64; 2]]| corridor(World::Geodetic, line, 1.0).unwrap_err().to_string();
        assert_eq!(refused(&[[1.0, 2.0]]), "a line has at least 2 positions, found 1");
        assert_eq!(
            refused(&[[0.0, 0.0], [90.0, 0.0], [-90.0, 0.0]]),
            "the segment from position 1 to the next joins opposite sides of the globe"
        );
        let long = vec![[0.0, 0.0]; CORRIDOR_POSITIONS_MAX + 1];
        assert_eq!(refused(&long), "the line has 10001 positions, at most 10000 are allowed");
        assert!(corridor(World::Geodetic, &[[33.0, 90.0], [-120.0, -89.999]], 1.0).is_ok());
    }
}
