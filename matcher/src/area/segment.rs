//! Segments: the shortest line between two positions, and how far others are from it.

use crate::geo::{EARTH_RADIUS_M, Position, Radius, World};

/// Ends closer to antipodal than this (6 m, in radians) give no usable great circle: a rounding of the
/// position would already move the middle of the segment by a millimetre.
const ANTIPODAL_MARGIN: f64 = 1e-6;

/// Part of a great circle or, in the plane, of a straight line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    ends: [Position; 2],
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// Both ends are one place.
    Point,
    /// Part of a great circle, the one in the plane through the origin with this normal.
    Arc {
        normal: [f64; 3],
        /// The direction in which the arc leaves its first end: together with that end, a frame of its plane.
        forward: [f64; 3],
        /// The direction back along the arc at its second end.
        backward: [f64; 3],
    },
    /// A straight line of the plane.
    Straight { along: [f64; 2], length: f64 },
}

/// Whether two positions lie on opposite sides of the globe, or within 6 m of that, so that no single great circle joins
/// them. In a planar world none do.
#[must_use]
pub fn are_opposite(world: World, one: &Position, other: &Position) -> bool {
    Segment::between(world, one, other).is_none()
}

impl Segment {
    /// `None` when the ends are antipodal.
    pub(super) fn between(world: World, from: &Position, to: &Position) -> Option<Self> {
        let shape = match world {
            World::Geodetic => arc(*from.point(), *to.point())?,
            World::Planar => straight(from, to),
        };
        Some(Self { ends: [*from, *to], shape })
    }

    pub(super) fn ends(&self) -> &[Position; 2] {
        &self.ends
    }

    /// The distance to the nearest place of the segment.
    pub(super) fn distance_m(&self, world: World, position: &Position) -> f64 {
        let to_end =
            self.ends.iter().map(|end| world.distance_m(end, position)).fold(f64::INFINITY, f64::min);
        self.cross_track_m(position).map_or(to_end, |across| across.min(to_end))
    }

    /// Whether some place of the segment is within a radius of a position.
    pub(super) fn is_within(&self, world: World, radius: &Radius, position: &Position) -> bool {
        self.ends.iter().any(|end| radius.holds(world, end, position))
            || self.cross_track_m(position).is_some_and(|across| across <= radius.metres())
    }

    /// The straight-line distance to a point in space, which need not be one of the world, in the units of points.
    pub(super) fn distance_in_space(&self, point: &[f64; 3]) -> f64 {
        let [start, end] = self.ends.each_ref().map(|end| *end.point());
        let to_ends = norm(sub(*point, start)).min(norm(sub(*point, end)));
        match &self.shape {
            Shape::Point => to_ends,
            Shape::Arc { normal, forward, backward } => {
                if dot(*forward, *point) < 0.0 || dot(*backward, *point) < 0.0 {
                    return to_ends;
                }
                let height = dot(*normal, *point);
                let in_plane = norm(sub(*point, normal.map(|axis| axis * height)));
                height.hypot(in_plane - 1.0).min(to_ends)
            }
            Shape::Straight { along, length } => {
                let along = [along[0] / length, along[1] / length, 0.0];
                let from_start = sub(*point, start);
                let progress = dot(along, from_start);
                if progress < 0.0 || progress > *length {
                    return to_ends;
                }
                norm(sub(from_start, along.map(|axis| axis * progress))).min(to_ends)
            }
        }
    }

    /// The distance to the line through the segment, `None` where the foot of the perpendicular is beyond the
    /// ends; the ends themselves are for the caller.
    pub(super) fn cross_track_m(&self, position: &Position) -> Option<f64> {
        match &self.shape {
            Shape::Point => None,
            Shape::Arc { normal, forward, backward } => {
                let (start, end) = (self.ends[0].point(), self.ends[1].point());
                let point = *position.point();
                // Measured from the nearer end, so that nothing cancels for positions near a short segment.
                let (from_start, from_end) = (sub(point, *start), sub(point, *end));
                let progress = dot(*forward, from_start);
                if progress < 0.0 || dot(*backward, from_end) < 0.0 {
                    return None;
                }
                let from_start_nearer = dot(from_start, from_start) < dot(from_end, from_end);
                let height = dot(*normal, if from_start_nearer { from_start } else { from_end }).abs();
                // The arc sine alone would lose half of the digits near 90 degrees.
                let in_plane = dot(*start, point).hypot(progress);
                Some(EARTH_RADIUS_M * height.atan2(in_plane))
            }
            Shape::Straight { along, length } => {
                let [from_start, from_end] = [&self.ends[0], &self.ends[1]]
                    .map(|end| [position.x() - end.x(), position.y() - end.y()]);
                let [progress, regress] =
                    [from_start, from_end].map(|offset| along[0] * offset[0] + along[1] * offset[1]);
                if progress < 0.0 || regress > 0.0 {
                    return None;
                }
                let nearer = if progress < -regress { from_start } else { from_end };
                Some((along[0] * nearer[1] - along[1] * nearer[0]).abs() / length)
            }
        }
    }
}

fn straight(from: &Position, to: &Position) -> Shape {
    let along = [to.x() - from.x(), to.y() - from.y()];
    let length = along[0].hypot(along[1]);
    if length > 0.0 { Shape::Straight { along, length } } else { Shape::Point }
}

/// `None` when the ends are antipodal.
fn arc(a: [f64; 3], b: [f64; 3]) -> Option<Shape> {
    // With the difference (or, for ends far apart, the sum) in place of `b` the product keeps its digits:
    // the normal is perpendicular to both ends within 3e-16 even when they are a metre apart.
    let apart = dot(a, b) < 0.0;
    let normal = cross(a, if apart { add(b, a) } else { sub(b, a) });
    if apart && norm(normal) < ANTIPODAL_MARGIN {
        return None;
    }
    // Without a normal the ends are one place.
    Some(unit(normal).map_or(Shape::Point, |normal| Shape::Arc {
        normal,
        forward: cross(normal, a),
        backward: cross(b, normal),
    }))
}

pub(super) fn add(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The angle of two unit vectors, small ones to full precision.
pub(super) fn angle_between(a: [f64; 3], b: [f64; 3]) -> f64 {
    norm(cross(a, sub(b, a))).atan2(dot(a, b))
}

pub(super) fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

/// The unit vector, `None` for one too short to have a direction.
pub(super) fn unit(a: [f64; 3]) -> Option<[f64; 3]> {
    let length = norm(a);
    (length > 1e-15).then(|| a.map(|coordinate| coordinate / length))
}
