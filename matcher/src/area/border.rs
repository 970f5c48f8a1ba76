//! The border of a polygon whose holes cross each other or its outer ring: the parts of the rings that belong to it.

use robust::{Coord, orient2d};

use super::extent::Extent;
use super::line::{Line, Side};
use crate::geo::World;

/// How often the rings of a polygon may cross each other between their vertices. Each crossing costs a look at the rings, so that this
/// bounds what reading a polygon costs.
pub const RING_CROSSINGS_MAX: usize = 2_000;

/// How many pairs of edges of two rings may lie side by side, so that their boxes touch.
const NEIGHBOURS_MAX: usize = 1_000_000;

/// How near to an edge a place counts as on it, as a share of the largest coordinate: what rounding does to places between
/// two vertices, ten thousand times over.
const NEAR: f64 = 1e-12;

/// Where on a piece it is looked whether the piece is part of the border. Between crossings all of a piece lies on
/// one side of each ring, and where one place is too near to a ring to tell, others are not.
const SAMPLES: [f64; 3] = [0.5, 0.21, 0.83];

/// The rings cross each other too often.
pub(super) struct TooManyCrossings;

/// The lines that make up the border of an outer ring without the insides of its holes; `None` where these are the rings
/// themselves.
pub(super) fn cut(
    world: World,
    outer: &Line,
    holes: &[Line],
) -> Result<Option<Box<[Line]>>, TooManyCrossings> {
    if holes.is_empty() {
        return Ok(None);
    }
    let mut cutter = Cutter { outer, holes, neighbours: 0, crossings: 0, changed: false };
    let mut lines = Vec::new();
    for index in 0..=holes.len() {
        cutter.cut_ring(index, &mut |vertices| lines.push(vertices))?;
    }
    let lines = || lines.into_iter().map(|vertices| Line::new(world, vertices.into())).collect();
    Ok(cutter.changed.then(lines))
}

struct Cutter<'a> {
    outer: &'a Line,
    holes: &'a [Line],
    neighbours: usize,
    crossings: usize,
    /// Whether some piece is no part of the border.
    changed: bool,
}

impl Cutter<'_> {
    /// The outer ring is number 0.
    fn ring(&self, index: usize) -> &Line {
        index.checked_sub(1).map_or(self.outer, |hole| &self.holes[hole])
    }

    /// Hands on the parts of a ring that belong to the border.
    fn cut_ring(
        &mut self,
        index: usize,
        hand_on: &mut impl FnMut(Vec<Coord<f64>>),
    ) -> Result<(), TooManyCrossings> {
        let ring = self.ring(index).clone();
        let others: Vec<usize> = (0..=self.holes.len())
            .filter(|other| *other != index && self.ring(*other).extent().touches(ring.extent()))
            .collect();
        let mut line: Vec<Coord<f64>> = Vec::new();
        let mut kept = None;
        for edge in ring.edges() {
            let mut from = 0.0;
            let met = self.crossings(&edge, &others)?.into_iter().map(|share| (share, true));
            for (to, is_met) in met.chain([(1.0, false)]) {
                if to > from {
                    let piece = [from, to].map(|share| between(edge, share));
                    // Where no ring was met in between, it is on the same side of everything as the piece before.
                    let belongs = kept.unwrap_or_else(|| self.belongs(index, &others, piece));
                    self.append(belongs, piece, &mut line, hand_on);
                    kept = Some(belongs);
                    from = to;
                }
                if is_met {
                    let at = between(edge, to);
                    if line.is_empty() && self.belongs(index, &others, [at, at]) {
                        // Where rings touch, or three meet, a single place may be all that belongs.
                        hand_on(vec![at, at]);
                    }
                    kept = None;
                }
            }
        }
        if line.len() > 1 {
            hand_on(line);
        }
        Ok(())
    }

    fn append(
        &mut self,
        belongs: bool,
        piece: [Coord<f64>; 2],
        line: &mut Vec<Coord<f64>>,
        hand_on: &mut impl FnMut(Vec<Coord<f64>>),
    ) {
        if belongs {
            if line.is_empty() {
                line.push(piece[0]);
            }
            line.push(piece[1]);
            return;
        }
        self.changed = true;
        if line.len() > 1 {
            hand_on(std::mem::take(line));
        }
        line.clear();
    }

    /// Where other rings meet an edge, its ends included, as shares of its length, ascending.
    fn crossings(&mut self, edge: &[Coord<f64>; 2], others: &[usize]) -> Result<Vec<f64>, TooManyCrossings> {
        let (mut shares, mut neighbours) = (Vec::new(), 0);
        for other in others {
            self.ring(*other).visit_touching(&Extent::around(edge), &mut |other| {
                neighbours += 1;
                append_crossings(edge, &other, &mut shares);
            });
        }
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        self.neighbours += neighbours;
        self.crossings += shares.iter().filter(|share| **share > 0.0 && **share < 1.0).count();
        if self.neighbours > NEIGHBOURS_MAX || self.crossings > RING_CROSSINGS_MAX {
            return Err(TooManyCrossings);
        }
        Ok(shares)
    }

    /// Whether a piece of a ring belongs to the border: it is not clearly inside of a hole, nor clearly outside of the
    /// outer ring.
    fn belongs(&self, index: usize, others: &[usize], piece: [Coord<f64>; 2]) -> bool {
        let clearly = |other: &usize| {
            let ring = self.ring(*other);
            SAMPLES.iter().any(|share| {
                let at = between(piece, *share);
                ring.side(at) == off_side(*other) && !is_near(ring, at)
            })
        };
        let apart = index > 0 && !others.contains(&0);
        !apart && !others.iter().any(clearly)
    }
}

/// On which side of a ring a place is off the polygon.
fn off_side(index: usize) -> Side {
    if index == 0 { Side::Outside } else { Side::Inside }
}

fn between([from, to]: [Coord<f64>; 2], share: f64) -> Coord<f64> {
    if share == 1.0 {
        return to;
    }
    Coord { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

/// Appends where one edge meets another, as shares of the first.
fn append_crossings(edge: &[Coord<f64>; 2], other: &[Coord<f64>; 2], shares: &mut Vec<f64>) {
    let [from, to] = *edge;
    let [left, right] = other.map(|at| orient2d(from, to, at));
    if left * right > 0.0 {
        return;
    }
    let [before, behind] = edge.map(|at| orient2d(other[0], other[1], at));
    if before * behind > 0.0 {
        return;
    }
    let mut push = |share: f64| {
        if (0.0..=1.0).contains(&share) {
            shares.push(share);
        }
    };
    if before != behind {
        push(before / (before - behind));
        return;
    }
    // In line: it begins and ends where the other's ends are.
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    for at in other {
        push(if dx.abs() > dy.abs() { (at.x - from.x) / dx } else { (at.y - from.y) / dy });
    }
}

/// Whether a place is as near to an edge as rounding may have brought it.
fn is_near(ring: &Line, at: Coord<f64>) -> bool {
    let Extent { min, max } = ring.extent();
    let near = NEAR * [min.x, min.y, max.x, max.y].map(f64::abs).into_iter().fold(0.0, f64::max);
    let around = Extent { min: at, max: at }.widened(near);
    let mut found = false;
    ring.visit_touching(&around, &mut |[from, to]| {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = dx.hypot(dy);
        found |= length <= near || orient2d(from, to, at).abs() <= near * length;
    });
    found
}
