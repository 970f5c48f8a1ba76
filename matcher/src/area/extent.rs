//! Boxes in the coordinates, and balls around them.

use robust::Coord;

use super::Ball;
use crate::geo::World;

/// A box in the coordinates, its border included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    pub(super) min: Coord<f64>,
    pub(super) max: Coord<f64>,
}

impl Extent {
    /// The box around some vertices, of which there is one at least.
    pub(super) fn around(vertices: &[Coord<f64>]) -> Self {
        let start = Self { min: vertices[0], max: vertices[0] };
        vertices.iter().map(|&at| Self { min: at, max: at }).fold(start, Self::union)
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: Coord { x: self.min.x.min(other.min.x), y: self.min.y.min(other.min.y) },
            max: Coord { x: self.max.x.max(other.max.x), y: self.max.y.max(other.max.y) },
        }
    }

    pub(super) fn holds(&self, at: Coord<f64>) -> bool {
        self.min.x <= at.x && at.x <= self.max.x && self.min.y <= at.y && at.y <= self.max.y
    }

    pub(super) fn touches(&self, other: &Self) -> bool {
        self.min.x <= other.max.x
            && other.min.x <= self.max.x
            && self.min.y <= other.max.y
            && other.min.y <= self.max.y
    }

    /// The extent made wider by `by` on each side.
    pub(super) fn widened(self, by: f64) -> Self {
        Self {
            min: Coord { x: self.min.x - by, y: self.min.y - by },
            max: Coord { x: self.max.x + by, y: self.max.y + by },
        }
    }
}

/// A ball that holds all that lies in some boxes.
pub(super) fn bounds(world: World, extents: impl Iterator<Item = Extent> + Clone) -> Ball {
    match world {
        World::Geodetic => geodetic_bounds(extents),
        World::Planar => planar_bounds(extents),
    }
}

fn planar_bounds(extents: impl Iterator<Item = Extent>) -> Ball {
    let Some(Extent { min, max }) = extents.reduce(Extent::union) else {
        return Ball::UNBOUNDED;
    };
    let centre = [(min.x + max.x) / 2.0, (min.y + max.y) / 2.0];
    Ball::around_disc(centre, (max.x - min.x).hypot(max.y - min.y) / 2.0)
}

/// The better one of a cap around the middle of the smallest box that holds all boxes, which may go across
/// the antimeridian, and a cap around a pole.
fn geodetic_bounds(extents: impl Iterator<Item = Extent> + Clone) -> Ball {
    let extents = || extents.clone();
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
