//! A torus in nine regions, each with a stream.

use std::collections::BTreeSet;

use cluster::events::Stream;
use rand::Rng as _;
use rand::rngs::StdRng;

/// Regions along an edge.
const EDGE: u32 = 3;
pub(super) const STREAMS: u32 = EDGE * EDGE;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    x: f64,
    y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Disc {
    pub(super) at: Point,
    pub(super) radius: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) at: Point,
}

fn apart(a: f64, b: f64) -> f64 {
    let apart = (a - b).abs();
    apart.min(1.0 - apart)
}

fn cell(at: f64) -> u32 {
    // A product may be rounded up.
    (0..EDGE).rev().find(|cell| at >= f64::from(*cell) / f64::from(EDGE)).unwrap_or(0)
}

impl Point {
    pub(super) fn any(random: &mut StdRng) -> Self {
        Self { x: random.random(), y: random.random() }
    }

    pub(super) fn near(self, random: &mut StdRng, by: f64) -> Self {
        let mut along = |at: f64| (at + random.random_range(-by..=by)).rem_euclid(1.0);
        Self { x: along(self.x), y: along(self.y) }
    }

    pub(super) fn stream(self) -> Stream {
        Stream(cell(self.y) * EDGE + cell(self.x))
    }
}

impl Disc {
    pub(super) fn holds(&self, point: Point) -> bool {
        apart(self.at.x, point.x).hypot(apart(self.at.y, point.y)) <= self.radius
    }

    /// The streams of the regions that it touches.
    pub(super) fn cover(&self) -> BTreeSet<Stream> {
        let to_cell = |at: f64, idx: u32| {
            let side = |idx: u32| f64::from(idx) / f64::from(EDGE);
            if cell(at) == idx { 0.0 } else { apart(at, side(idx)).min(apart(at, side(idx + 1))) }
        };
        let all = (0..EDGE).flat_map(|y| (0..EDGE).map(move |x| (x, y)));
        // Rounding may not leave out a region that is touched.
        all.filter(|(x, y)| to_cell(self.at.x, *x).hypot(to_cell(self.at.y, *y)) <= self.radius + 1e-9)
            .map(|(x, y)| Stream(y * EDGE + x))
            .collect()
    }

    pub(super) fn wider(&self, by: f64) -> Self {
        Self { radius: self.radius + by, ..*self }
    }
}

impl Event {
    pub(super) fn bytes(&self, padding: usize) -> Vec<u8> {
        let mut bytes = self.id.to_le_bytes().to_vec();
        bytes.extend(self.at.x.to_le_bytes());
        bytes.extend(self.at.y.to_le_bytes());
        bytes.resize(bytes.len() + padding, 0);
        bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes[at..at + 8].try_into().unwrap();
        let at = Point { x: f64::from_le_bytes(word(8)), y: f64::from_le_bytes(word(16)) };
        Self { id: u64::from_le_bytes(word(0)), at }
    }
}

/// A disc that holds a point touches the point's region.
#[test]
fn a_cover_has_all_that_a_disc_holds() {
    let mut random = rand::SeedableRng::seed_from_u64(1);
    for _ in 0..20_000 {
        let at = Point::any(&mut random);
        let disc = Disc { at, radius: random.random_range(0.0..0.4) };
        let point = at.near(&mut random, 0.4);
        assert!(!disc.holds(point) || disc.cover().contains(&point.stream()), "{disc:?} {point:?}");
    }
}
