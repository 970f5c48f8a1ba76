//! Searches in the tree.
//!
//! A box is passed over, or taken whole, by the squared chords to its nearest and to its furthest corner. They are
//! computed as a point's own is, difference by difference, and rounding keeps order: what is computed for a point of
//! the box lies between them, to the last bit. So boxes need no margin, and no point is judged other than by itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use wide::f64x4;

use super::Points;
use super::store::{LANES, Leaf, Link, Node, Target};
use crate::area::Ball;
use crate::geo::squared_chord;

/// Room that a search by distance has from the start: enough for the first dozens.
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
        let whole = chords.whole(square);
        // Bits rather than branches: which children a circle touches cannot be foreseen.
        for digit in bits(chords.touched(square) & node.present()) {
            let child = node.children[digit];
            if whole >> digit & 1 == 1 {
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

    /// Calls `found` for every point, in any order, but for those of boxes about which there is nothing to know:
    /// `narrow` makes of what is known of a box what is known of a smaller one, told by a ball around that, or nothing.
    pub fn narrowing<K>(
        &self,
        known: &K,
        narrow: &impl Fn(&K, &Ball) -> Option<K>,
        found: &mut impl FnMut(&K, u32),
    ) {
        self.narrowing_link(self.root, known, narrow, found);
    }

    fn narrowing_link<K>(
        &self,
        link: Link,
        known: &K,
        narrow: &impl Fn(&K, &Ball) -> Option<K>,
        found: &mut impl FnMut(&K, u32),
    ) {
        let Target::Node(node) = link.target() else { return self.all(link, &mut |id| found(known, id)) };
        let node = &self.nodes[node];
        let halves = node.key.halves(node.height);
        for digit in bits(node.present()) {
            let sides = [0, 1, 2].map(|axis: usize| halves[axis][digit >> axis & 1]);
            let centre = sides.map(|[min, max]| f64::midpoint(min, max));
            let corner = sides.map(|[_, max]| max);
            let ball = Ball { centre, reach: squared_chord(&centre, &corner).sqrt() };
            if let Some(known) = narrow(known, &ball) {
                self.narrowing_link(node.children[digit], &known, narrow, found);
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
#[inline]
fn test(leaf: &Leaf, ball: &Ball, found: &mut impl FnMut(u32)) {
    let square = f64x4::splat(ball.reach * ball.reach);
    let centre = ball.centre.map(f64x4::splat);
    let mut held = 0;
    for (index, block) in leaf.blocks().iter().enumerate() {
        held |= squares(&centre, block).simd_le(square).to_bitmask() << (index * LANES);
    }
    let ids = leaf.ids();
    for index in bits(held).take_while(|index| *index < ids.len()) {
        found(ids[index]);
    }
}

/// The squared chords of four points, each one to the last bit what [`crate::geo::squared_chord`] says.
#[inline]
fn squares(centre: &[f64x4; 3], block: &[[f64; LANES]; 3]) -> f64x4 {
    let [dx, dy, dz] = [0, 1, 2].map(|axis| centre[axis] - f64x4::new(block[axis]));
    dx * dx + dy * dy + dz * dz
}

/// The numbers of the bits that are set.
#[inline]
fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}

/// A search by distance.
pub(super) struct Nearest<'a> {
    points: &'a Points,
    centre: &'a [f64; 3],
    /// Steps that have been seen and not yet visited, the nearest first.
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
                    let leaf = &self.points.leaves[leaf];
                    let centre = self.centre.map(f64x4::splat);
                    for (ids, block) in leaf.ids().chunks(LANES).zip(leaf.blocks()) {
                        for (id, square) in ids.iter().zip(squares(&centre, block).to_array()) {
                            self.see(square, Step::Point(*id));
                        }
                    }
                }
                Step::Node(node) => {
                    let node = &self.points.nodes[node];
                    let chords = Chords::new(node, self.centre);
                    for (child, square) in node.children.into_iter().zip(chords.nearest()) {
                        self.see_link(square, child);
                    }
                }
            }
        }
    }
}

/// Squared chords to the nearest and to the furthest corners of the boxes of a node's children, by four.
struct Chords {
    nearest: [f64x4; 2],
    furthest: [f64x4; 2],
}

impl Chords {
    #[inline]
    fn new(node: &Node, centre: &[f64; 3]) -> Self {
        let halves = node.key.halves(node.height);
        Self {
            nearest: octants(&halves, centre, |centre, [min, max]| (min - centre).max(centre - max).max(0.0)),
            furthest: octants(&halves, centre, |centre, [min, max]| (centre - min).max(max - centre)),
        }
    }

    /// A bit for each child, set when its box is not all beyond so large a chord.
    #[inline]
    fn touched(&self, square: f64) -> u32 {
        at_most(&self.nearest, square)
    }

    /// A bit for each child, set when its box is all within so large a chord.
    #[inline]
    fn whole(&self, square: f64) -> u32 {
        at_most(&self.furthest, square)
    }

    #[inline]
    fn nearest(&self) -> impl Iterator<Item = f64> {
        self.nearest.into_iter().flat_map(f64x4::to_array)
    }
}

/// The squared chords of all eight boxes, from the distances of the halves along each axis.
#[inline]
fn octants(
    halves: &[[[f64; 2]; 2]; 3],
    centre: &[f64; 3],
    distance: impl Fn(f64, [f64; 2]) -> f64,
) -> [f64x4; 2] {
    let [x, y, z] = [0, 1, 2].map(|axis: usize| {
        halves[axis].map(|half| {
            let distance = distance(centre[axis], half);
            distance * distance
        })
    });
    let flat = f64x4::new([x[0], x[1], x[0], x[1]]) + f64x4::new([y[0], y[0], y[1], y[1]]);
    z.map(|z| flat + f64x4::splat(z))
}

#[inline]
fn at_most(squares: &[f64x4; 2], square: f64) -> u32 {
    let [low, high] = squares.map(|squares| squares.simd_le(f64x4::splat(square)).to_bitmask());
    low | high << LANES
}
