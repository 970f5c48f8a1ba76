//! A square with hot spots, and its parts that hold equally many places.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// Kilometres east and north of the corner in the south-west.
pub(crate) type Place = [f64; 2];

/// A square in which some hot spots hold three places of five.
pub(crate) struct World {
    side: f64,
    /// How far a hot spot reaches: the standard deviation, in kilometres.
    spread: f64,
    hot_spots: Vec<Place>,
    pub(crate) random: StdRng,
}

impl World {
    pub(crate) fn new(side: f64, hot_spots: usize, spread: f64, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let hot_spots =
            (0..hot_spots).map(|_| [(); 2].map(|()| random.random_range(0.1 * side..0.9 * side))).collect();
        Self { side, spread, hot_spots, random }
    }

    pub(crate) fn places(&mut self, count: usize) -> Vec<Place> {
        (0..count).map(|_| self.place()).collect()
    }

    pub(crate) fn place(&mut self) -> Place {
        if self.random.random_bool(0.6) {
            let middle = self.hot_spots[self.random.random_range(0..self.hot_spots.len())];
            middle.map(|at| (at + self.spread * self.normal()).clamp(0.0, self.side))
        } else {
            [(); 2].map(|()| self.random.random_range(0.0..self.side))
        }
    }

    /// A number of a normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (one, two): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }
}

/// A part of the square: its least and its greatest corner.
#[derive(Clone, Copy)]
struct Space {
    least: Place,
    greatest: Place,
}

impl Space {
    fn touches(&self, place: Place, radius: f64) -> bool {
        let away =
            |axis: usize| (self.least[axis] - place[axis]).max(place[axis] - self.greatest[axis]).max(0.0);
        away(0).hypot(away(1)) <= radius
    }
}

/// The parts of a square that hold equally many places, by borders that always cross the longer side.
pub(crate) struct Parts {
    spaces: Vec<Space>,
    root: Node,
}

enum Node {
    Part(usize),
    Border { axis: usize, at: f64, below: Box<Node>, above: Box<Node> },
}

impl Parts {
    /// Cuts a square with a side of some kilometres.
    pub(crate) fn of(side: f64, places: &[Place], parts: usize) -> Self {
        let mut spaces = Vec::with_capacity(parts);
        let square = Space { least: [0.0; 2], greatest: [side; 2] };
        let root = cut(square, &mut places.to_vec(), parts, &mut spaces);
        Self { spaces, root }
    }

    /// The part that holds a place.
    pub(crate) fn holding(&self, place: Place) -> usize {
        let mut node = &self.root;
        loop {
            match node {
                Node::Part(part) => return *part,
                Node::Border { axis, at, below, above } => {
                    node = if place[*axis] < *at { below } else { above }
                }
            }
        }
    }

    /// Calls a function with each part that a circle touches.
    pub(crate) fn touched(&self, place: Place, radius: f64, mut each: impl FnMut(usize)) {
        let mut open = vec![&self.root];
        while let Some(node) = open.pop() {
            match node {
                Node::Part(part) if self.spaces[*part].touches(place, radius) => each(*part),
                Node::Part(_) => {}
                Node::Border { axis, at, below, above } => {
                    if place[*axis] - radius <= *at {
                        open.push(below);
                    }
                    if place[*axis] + radius >= *at {
                        open.push(above);
                    }
                }
            }
        }
    }
}

fn cut(space: Space, places: &mut [Place], parts: usize, spaces: &mut Vec<Space>) -> Node {
    if parts == 1 {
        spaces.push(space);
        return Node::Part(spaces.len() - 1);
    }
    let axis = usize::from(space.greatest[1] - space.least[1] > space.greatest[0] - space.least[0]);
    places.sort_unstable_by(|one, two| one[axis].total_cmp(&two[axis]));
    let first_parts = parts / 2;
    let (first, rest) = places.split_at_mut(places.len() * first_parts / parts);
    let at = rest.first().map_or(space.greatest[axis], |place| place[axis]);
    let (mut below, mut above) = (space, space);
    (below.greatest[axis], above.least[axis]) = (at, at);
    let below = Box::new(cut(below, first, first_parts, spaces));
    let above = Box::new(cut(above, rest, parts - first_parts, spaces));
    Node::Border { axis, at, below, above }
}
