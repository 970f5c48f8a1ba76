//! How far a position is from edges that are straight in the coordinates.
//!
//! In the plane that is elementary. On the globe an edge that is straight in longitude and latitude is neither a
//! great circle nor any other line with a formula for its distance, so that it is halved until what is left is a
//! great circle for all that matters: branch and bound, with two bounds from below. One is the distance to the
//! piece's box in longitude and latitude, which is tight for edges along a parallel, the other the distance to the
//! great circle between its ends less what lies between the two, which falls with the square of the length.

use robust::Coord;

use super::extent::Extent;
use super::line::{Cover, Line, Run};
use super::segment::Segment;
use crate::geo::{EARTH_RADIUS_M, Position, World, squared_chord};

/// How far the distance to an edge may be off in the geodetic world: a millimetre.
pub const EDGE_TOLERANCE_M: f64 = 1e-3;

/// On the unit sphere: up to here chords tell angles well.
const CHORD_MAX: f64 = 1.9;

/// How far from a limit a distance has to be for [`is_further_than`] to say without it on which side it is: more than twice what a
/// distance may be off.
const LIMIT_MARGIN_M: f64 = 4.0 * EDGE_TOLERANCE_M;

/// The distance to the nearest of some lines in metres, infinite where there is none.
pub(super) fn distance_m<'a, L: Iterator<Item = &'a Line>>(
    world: World,
    lines: impl Fn() -> L,
    position: &Position,
) -> f64 {
    let mut search = Search { world, position, nearest_m: f64::INFINITY, enough_m: 0.0 };
    search.lines(&lines);
    search.nearest_m
}

/// Whether that distance is above a limit.
pub(super) fn is_further_than<'a, L: Iterator<Item = &'a Line>>(
    world: World,
    lines: impl Fn() -> L,
    limit_m: f64,
    position: &Position,
) -> bool {
    let (above_m, below_m) = (limit_m + LIMIT_MARGIN_M, limit_m - LIMIT_MARGIN_M);
    let mut search = Search { world, position, nearest_m: above_m, enough_m: below_m };
    search.lines(&lines);
    if search.nearest_m >= above_m {
        return true;
    }
    search.nearest_m > below_m && distance_m(world, lines, position) > limit_m
}

/// Looks for the nearest place on lines.
struct Search<'a> {
    world: World,
    position: &'a Position,
    /// The distance of the nearest place so far.
    nearest_m: f64,
    /// Nothing nearer than this is asked for.
    enough_m: f64,
}

impl Search<'_> {
    /// The line that may be the nearest goes first, so that most others need no look.
    fn lines<'a, L: Iterator<Item = &'a Line>>(&mut self, lines: &impl Fn() -> L) {
        let first = least(lines().map(|line| self.at_least_m(line.cover())));
        let Some(first) = first else { return };
        if let Some(line) = lines().nth(first) {
            self.visit(line, line.whole());
        }
        for (_, line) in lines().enumerate().filter(|(index, _)| *index != first) {
            if self.may_be_nearer(line.cover()) {
                self.visit(line, line.whole());
            }
        }
    }

    fn visit(&mut self, line: &Line, run: Run) {
        if let Some(vertices) = line.run(run) {
            return self.visit_edges(vertices);
        }
        let Some(first) = least(line.parts(run).map(|(_, cover)| self.at_least_m(cover))) else { return };
        if let Some((part, cover)) = line.parts(run).nth(first)
            && self.may_be_nearer(cover)
        {
            self.visit(line, part);
        }
        for (_, (part, cover)) in line.parts(run).enumerate().filter(|(index, _)| *index != first) {
            if self.may_be_nearer(cover) {
                self.visit(line, part);
            }
        }
    }

    fn visit_edges(&mut self, vertices: &[Coord<f64>]) {
        // The ends first: they say which edges need a closer look.
        for vertex in vertices {
            self.nearest_m = self.nearest_m.min(self.distance_to_m(*vertex));
        }
        for edge in vertices.windows(2) {
            if self.nearest_m <= self.enough_m {
                return;
            }
            match self.world {
                World::Planar => {
                    if let Some(segment) = self.segment(edge[0], edge[1]) {
                        self.nearest_m = self.nearest_m.min(segment.distance_m(self.world, self.position));
                    }
                }
                World::Geodetic => self.refine(edge[0], edge[1]),
            }
        }
    }

    /// A distance that nothing in a ball falls below, quickly.
    fn at_least_m(&self, cover: &Cover) -> f64 {
        let apart = squared_chord(&cover.ball.centre, self.position.point()).sqrt();
        let chord = (apart - cover.ball.reach).max(0.0);
        match self.world {
            World::Planar => chord * (1.0 - 1e-12),
            // Chords of nearly the whole globe say too little.
            World::Geodetic => 2.0 * (chord.min(CHORD_MAX) / 2.0).asin() * EARTH_RADIUS_M,
        }
    }

    fn may_be_nearer(&self, cover: &Cover) -> bool {
        let Extent { min, max } = cover.extent;
        let bound_m = match self.world {
            World::Geodetic => self.nearest_m - EDGE_TOLERANCE_M,
            World::Planar => self.nearest_m,
        };
        self.nearest_m > self.enough_m
            && self.at_least_m(cover) < bound_m
            && (self.world == World::Planar || self.distance_to_box_m(min, max) < bound_m)
    }

    /// Lowers `nearest_m` to the distance of a piece of an edge, unless that is larger; the ends of the piece were
    /// looked at before. Halving takes a quarter of what lies between piece and great circle, so that it ends after
    /// 19 steps at the most.
    fn refine(&mut self, from: Coord<f64>, to: Coord<f64>) {
        if self.nearest_m <= self.enough_m
            || self.distance_to_box_m(from, to) >= self.nearest_m - EDGE_TOLERANCE_M
        {
            return;
        }
        let bulge_m = bulge_m(from, to);
        if let Some(segment) = self.segment(from, to) {
            let distance_m = segment.distance_m(self.world, self.position);
            if distance_m - bulge_m >= self.nearest_m - EDGE_TOLERANCE_M {
                return;
            }
            if bulge_m <= EDGE_TOLERANCE_M {
                self.nearest_m = self.nearest_m.min(distance_m);
                return;
            }
        }
        let middle = Coord { x: f64::midpoint(from.x, to.x), y: f64::midpoint(from.y, to.y) };
        self.nearest_m = self.nearest_m.min(self.distance_to_m(middle));
        let mut halves = [(from, middle), (middle, to)];
        if self.distance_to_m(to) < self.distance_to_m(from) {
            halves.reverse();
        }
        for (from, to) in halves {
            self.refine(from, to);
        }
    }

    /// The distance to the box of longitudes and latitudes between two corners. At one latitude places are further
    /// away the more their longitudes differ, so that the nearest is on the position's own meridian, or else on the
    /// nearer side of the box.
    fn distance_to_box_m(&self, from: Coord<f64>, to: Coord<f64>) -> f64 {
        let (west, east) = (from.x.min(to.x), from.x.max(to.x));
        let (south, north) = (from.y.min(to.y), from.y.max(to.y));
        let (x, y) = (self.position.x(), self.position.y());
        if [x, x - 360.0, x + 360.0].iter().any(|x| (west..=east).contains(x)) {
            return (y - y.clamp(south, north)).abs().to_radians() * EARTH_RADIUS_M;
        }
        let apart = |lon: f64| ((lon - x).abs()).min(360.0 - (lon - x).abs());
        let side = if apart(west) <= apart(east) { west } else { east };
        let to_corners = [south, north].map(|lat| self.distance_to_m(Coord { x: side, y: lat }));
        // The whole meridian is nearest where a great circle meets it at a right angle.
        let (lat_sin, lat_cos) = y.to_radians().sin_cos();
        let foot = lat_sin.atan2(lat_cos * apart(side).to_radians().cos()).to_degrees();
        let to_corner = to_corners[0].min(to_corners[1]);
        if (south..=north).contains(&foot) {
            to_corner.min(self.distance_to_m(Coord { x: side, y: foot }))
        } else {
            to_corner
        }
    }

    fn distance_to_m(&self, at: Coord<f64>) -> f64 {
        self.world.distance_m(&self.place(at), self.position)
    }

    /// `None` when the ends are antipodal.
    fn segment(&self, from: Coord<f64>, to: Coord<f64>) -> Option<Segment> {
        Segment::between(self.world, &self.place(from), &self.place(to))
    }

    fn place(&self, at: Coord<f64>) -> Position {
        self.world.position(&[at.x, at.y]).expect("what lies between positions is in their world")
    }
}

/// Index of the least of some numbers.
fn least(numbers: impl Iterator<Item = f64>) -> Option<usize> {
    let less = |a: (usize, f64), b: (usize, f64)| if b.1 < a.1 { b } else { a };
    numbers.enumerate().reduce(less).map(|(index, _)| index)
}

/// How far a piece of an edge and the great circle between its ends may be apart, in metres along the surface.
///
/// Let `g(t)` be the piece as a curve in space, `t` from 0 to 1, and `c(t)` the chord between its ends. They are
/// within `max |g''| / 8` of each other (the error of linear interpolation), and `c(t)` is as near to the sphere,
/// onto which it projects the great circle. With steps `l` in longitude and `p` in latitude, and `k` the largest
/// cosine of a latitude, `|g''|` is at most `p^2 + k^2 l^2` towards the centre and `|l| sqrt(k^2 l^2 + 4 p^2)` along
/// the surface.
fn bulge_m(from: Coord<f64>, to: Coord<f64>) -> f64 {
    let (l, p) = ((to.x - from.x).to_radians(), (to.y - from.y).to_radians());
    let nearest_to_equator = if from.y * to.y <= 0.0 { 0.0 } else { from.y.abs().min(to.y.abs()) };
    let k = nearest_to_equator.to_radians().cos();
    let bend = p * p + (k * l).powi(2) + l.abs() * (k * l).hypot(2.0 * p);
    2.0 * (bend / 8.0).min(1.0).asin() * EARTH_RADIUS_M
}
