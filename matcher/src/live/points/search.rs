//! What is found in the tree.
//!
//! A box is passed over, or taken whole, by the squared chords to its nearest and to its furthest corner. They are
//! computed as a point's own is, difference by difference, and rounding keeps order: what is computed for a point of
//! the box lies between them, to the last bit. So boxes need no margin, and no point is judged other than by itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::Points;
use super::store::{Leaf, Link, Node, Target};
use crate::area::Ball;
use crate::geo::squared_chord;

/// What a search by distance has room for from the start: enough for the first dozens.
const SEEN_LEN: usize = 256;

impl Points {
    /// Calls `found` for every point in a ball, in any order.
    pub fn within(&self, ball: &Ball, mut found: impl FnMut(u32)) {
        match self.root.target() {
            Target::Nothing => {}
            Target::Leaf(leaf) => test(&self.leaves[leaf], ball, &mut found),
            Target::Node(node) => self.within_node(node, ball, &mut found),
        }
    }

    fn within_node(&self, node: u32, ball: &Ball, found: &mut impl FnMut(u32)) {
        let node = &self.nodes[node];
        let square = ball.reach * ball.reach;
        let chords = Chords::new(node, &ball.centre);
        for (digit, child) in node.children.into_iter().enumerate() {
            if child == Link::NOTHING || chords.nearest(digit) > square {
                continue;
            }
            if chords.furthest(digit) <= square {
                self.all(child, found);
                continue;
            }
            match child.target() {
                Target::Nothing => {}
                Target::Leaf(leaf) => test(&self.leaves[leaf], ball, found),
                Target::Node(node) => self.within_node(node, ball, found),
            }
        }
    }

    fn all(&self, link: Link, found: &mut impl FnMut(u32)) {
        match link.target() {
            Target::Nothing => {}
            Target::Leaf(leaf) => self.leaves[leaf].ids().iter().for_each(|id| found(*id)),
            Target::Node(node) => self.nodes[node].children.iter().for_each(|child| self.all(*child, found)),
        }
    }

    /// Calls `visit` with the number and the squared distance of each point, the nearest first, until it breaks.
    /// Points equally far come in any order. Costs what is visited, not what there is.
    pub fn by_distance(&self, centre: &[f64; 3], mut visit: impl FnMut(u32, f64) -> ControlFlow<()>) {
        for (id, square) in self.nearest(centre) {
            if visit(id, square).is_break() {
                return;
            }
        }
    }

    pub(super) fn nearest<'a>(&'a self, centre: &'a [f64; 3]) -> Nearest<'a> {
        let mut nearest =
            Nearest { points: self, centre, seen: BinaryHeap::with_capacity(SEEN_LEN.min(self.len)) };
        nearest.see_link(0.0, self.root);
        nearest
    }
}

/// Calls `found` for the points of a leaf that are in a ball.
fn test(leaf: &Leaf, ball: &Ball, found: &mut impl FnMut(u32)) {
    for (id, point) in leaf.iter() {
        if ball.holds(point) {
            found(id);
        }
    }
}

/// A search by distance.
pub(super) struct Nearest<'a> {
    points: &'a Points,
    centre: &'a [f64; 3],
    /// What has been seen and not yet visited, the nearest first.
    pub(super) seen: BinaryHeap<Reverse<(u64, Step)>>,
}

/// Points come before what is as near but may take long to look through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Point(u32),
    Leaf(u32),
    Node(u32),
}

impl Nearest<'_> {
    /// Squares are not negative, and so are ordered as their bits are.
    fn see(&mut self, square: f64, step: Step) {
        self.seen.push(Reverse((square.to_bits(), step)));
    }

    fn see_link(&mut self, square: f64, link: Link) {
        match link.target() {
            Target::Nothing => {}
            Target::Leaf(leaf) => self.see(square, Step::Leaf(leaf)),
            Target::Node(node) => self.see(square, Step::Node(node)),
        }
    }
}

impl Iterator for Nearest<'_> {
    type Item = (u32, f64);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Reverse((square, step)) = self.seen.pop()?;
            match step {
                Step::Point(id) => return Some((id, f64::from_bits(square))),
                Step::Leaf(leaf) => {
                    for (id, point) in self.points.leaves[leaf].iter() {
                        self.see(squared_chord(self.centre, point), Step::Point(id));
                    }
                }
                Step::Node(node) => {
                    let node = &self.points.nodes[node];
                    let chords = Chords::new(node, self.centre);
                    for (digit, child) in node.children.into_iter().enumerate() {
                        self.see_link(chords.nearest(digit), child);
                    }
                }
            }
        }
    }
}

/// Squared distances along each axis from a point to the two halves of a node's box.
struct Chords {
    nearest: [[f64; 2]; 3],
    furthest: [[f64; 2]; 3],
}

impl Chords {
    #[inline]
    fn new(node: &Node, centre: &[f64; 3]) -> Self {
        let halves = node.key.halves(node.height);
        let of = |distance: fn(f64, [f64; 2]) -> f64| {
            [0, 1, 2].map(|axis: usize| {
                halves[axis].map(|half| {
                    let distance = distance(centre[axis], half);
                    distance * distance
                })
            })
        };
        Self {
            nearest: of(|centre, [min, max]| (min - centre).max(centre - max).max(0.0)),
            furthest: of(|centre, [min, max]| (centre - min).max(max - centre)),
        }
    }

    /// The squared chord to the nearest corner, edge or side of a child's box.
    #[inline]
    fn nearest(&self, digit: usize) -> f64 {
        octant(&self.nearest, digit)
    }

    /// The squared chord to the furthest corner of a child's box.
    #[inline]
    fn furthest(&self, digit: usize) -> f64 {
        octant(&self.furthest, digit)
    }
}

#[inline]
fn octant(squares: &[[f64; 2]; 3], digit: usize) -> f64 {
    squares[0][digit & 1] + squares[1][digit >> 1 & 1] + squares[2][digit >> 2 & 1]
}
