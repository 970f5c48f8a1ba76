//! Lines whose edges are straight in the coordinates, with boxes around runs of their edges.

use std::ops::Range;

use robust::{Coord, orient2d};

use super::Ball;
use super::extent::{Extent, bounds};
use crate::geo::World;

/// How many edges a run has, and how many runs the next larger one. Rings of up to so many edges, which are most, have no
/// boxes but their own.
const FANOUT: usize = 16;

/// A line of vertices. A ring is one whose last vertex is its first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    vertices: Box<[Coord<f64>]>,
    cover: Cover,
    /// Around runs of [`FANOUT`] edges, then around runs of as many of those, up to [`FANOUT`] or fewer.
    levels: Box<[Box<[Cover]>]>,
}

/// Cover of some edges: a box, and for a quick look a ball around the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cover {
    pub(super) extent: Extent,
    pub(super) ball: Ball,
}

/// A run of edges, or of runs; of height 1 it consists of edges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    height: usize,
    index: usize,
}

/// Where a position lies seen from a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Edge,
    Inside,
    Outside,
}

impl Line {
    /// A line of two vertices or more.
    pub(super) fn new(world: World, vertices: Box<[Coord<f64>]>) -> Self {
        let cover = |extent: Extent| Cover { extent, ball: bounds(world, std::iter::once(extent)) };
        let mut levels: Vec<Box<[Cover]>> = Vec::new();
        if vertices.len() - 1 > FANOUT {
            let starts = (0..vertices.len() - 1).step_by(FANOUT);
            let run = |start: usize| &vertices[start..(start + FANOUT + 1).min(vertices.len())];
            levels.push(starts.map(|start| cover(Extent::around(run(start)))).collect());
        }
        while let Some(last) = levels.last().filter(|last| last.len() > FANOUT) {
            let unions = last.chunks(FANOUT).map(|run| run.iter().map(|cover| cover.extent));
            let next = unions.filter_map(|extents| extents.reduce(Extent::union)).map(cover).collect();
            levels.push(next);
        }
        Self { cover: cover(Extent::around(&vertices)), vertices, levels: levels.into() }
    }

    /// Its vertices, in their order.
    pub(super) fn vertices(&self) -> &[Coord<f64>] {
        &self.vertices
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = [Coord<f64>; 2]> + '_ {
        self.vertices.windows(2).map(|edge| [edge[0], edge[1]])
    }

    pub(super) fn cover(&self) -> &Cover {
        &self.cover
    }

    pub(super) fn extent(&self) -> &Extent {
        &self.cover.extent
    }

    /// All of it.
    pub(super) fn whole(&self) -> Run {
        Run { height: self.levels.len() + 1, index: 0 }
    }

    /// The vertices of a run of edges; `None` for a run of runs.
    pub(super) fn run(&self, run: Run) -> Option<&[Coord<f64>]> {
        (run.height == 1).then(|| &self.vertices[self.span(run)])
    }

    /// The parts of a run of runs and what holds each.
    pub(super) fn parts(&self, run: Run) -> impl Iterator<Item = (Run, &Cover)> {
        let height = run.height - 1;
        let covers = height.checked_sub(1).map_or(&[][..], |level| &self.levels[level]);
        let first = run.index * FANOUT;
        let covers = &covers[first..(first + FANOUT).min(covers.len())];
        (first..).zip(covers).map(move |(index, cover)| (Run { height, index }, cover))
    }

    /// The indexes of the vertices of a run.
    fn span(&self, run: Run) -> Range<usize> {
        let edges = (0..run.height).fold(1_usize, |edges, _| edges.saturating_mul(FANOUT));
        let first = run.index * edges;
        first..first.saturating_add(edges).saturating_add(1).min(self.vertices.len())
    }

    /// Counts, by the even-odd rule, the edges of a ring that a ray from the position towards larger x crosses.
    ///
    /// Cost: for large rings of a usual shape logarithmic in the edges, for the worst linear.
    pub(super) fn side(&self, at: Coord<f64>) -> Side {
        if !self.extent().holds(at) {
            return Side::Outside;
        }
        let mut inside = false;
        if self.count_crossings(self.whole(), at, &mut inside) {
            return Side::Edge;
        }
        if inside { Side::Inside } else { Side::Outside }
    }

    /// Counts the crossings of a run; says whether the position is on one of its edges.
    fn count_crossings(&self, run: Run, at: Coord<f64>, inside: &mut bool) -> bool {
        if let Some(vertices) = self.run(run) {
            return crossings_of_edges(vertices, at, inside);
        }
        for (part, Cover { extent, .. }) in self.parts(run) {
            if extent.max.x < at.x || extent.max.y < at.y || extent.min.y > at.y {
                continue;
            }
            if at.x < extent.min.x {
                // The ray crosses every edge that goes from one of its sides to the other: the ends tell whether those are odd.
                let span = self.span(part);
                let (from, to) = (self.vertices[span.start], self.vertices[span.end - 1]);
                *inside ^= (from.y > at.y) != (to.y > at.y);
            } else if self.count_crossings(part, at, inside) {
                return true;
            }
        }
        false
    }

    /// Appends the edges whose boxes touch a box.
    pub(super) fn visit_touching(&self, extent: &Extent, visit: &mut impl FnMut([Coord<f64>; 2])) {
        if self.extent().touches(extent) {
            self.visit_run(self.whole(), extent, visit);
        }
    }

    fn visit_run(&self, run: Run, extent: &Extent, visit: &mut impl FnMut([Coord<f64>; 2])) {
        if let Some(vertices) = self.run(run) {
            let edges = vertices.windows(2).filter(|edge| Extent::around(edge).touches(extent));
            edges.for_each(|edge| visit([edge[0], edge[1]]));
            return;
        }
        for (part, cover) in self.parts(run) {
            if cover.extent.touches(extent) {
                self.visit_run(part, extent, visit);
            }
        }
    }
}

/// An edge counts its lower end and not its upper one, so that a vertex on the ray is crossed once or not at all.
fn crossings_of_edges(vertices: &[Coord<f64>], at: Coord<f64>, inside: &mut bool) -> bool {
    for edge in vertices.windows(2) {
        let (from, to) = (edge[0], edge[1]);
        if from.x.max(to.x) < at.x || from.y.max(to.y) < at.y || from.y.min(to.y) > at.y {
            continue;
        }
        let straddles = (from.y > at.y) != (to.y > at.y);
        if at.x < from.x.min(to.x) {
            *inside ^= straddles;
            continue;
        }
        // The position is in the edge's box: on the edge, if in line with it.
        let turn = orient2d(from, to, at);
        if turn == 0.0 {
            return true;
        }
        *inside ^= straddles && (turn > 0.0) == (to.y > from.y);
    }
    false
}
