//! Tracks: where somebody has been, and what was near on the way.

use std::ops::ControlFlow;

use super::Ball;
use super::segment::{Segment, add, norm, sub};
use super::{PLANE_MARGIN_M, SPHERE_MARGIN};
use crate::geo::{Position, Radius, World, squared_chord};

/// A line from position to position, along great circles or, in the plane, straight, of any length and number.
///
/// A track differs from the line of a [`Corridor`](super::Corridor) in three ways. The radius is given with each
/// question. A single position is a line too, and neighbours on opposite sides of the globe, which no single great
/// circle joins, are two positions with nothing between them. Balls around its segments, and around those of neighbours
/// up to the whole, let a test cost the logarithm of its length.
#[derive(Debug)]
pub(crate) struct Track {
    world: World,
    end: Option<Position>,
    segments: Vec<Segment>,
    /// A binary tree: around the node of number 1 everything, around that of number `n` what 2 `n` and 2 `n` + 1 hold, and
    /// from the number of segments on around a segment each.
    balls: Vec<Ball>,
}

/// Some of a track's nodes.
#[derive(Debug)]
pub(crate) struct Part(Vec<usize>);

impl Track {
    /// `None` without a position.
    pub(crate) fn new(world: World, positions: &[Position]) -> Option<Self> {
        let mut segments = Vec::with_capacity(positions.len());
        let point = |position| Segment::between(world, position, position);
        match positions {
            [] => return None,
            [only] => segments.extend(point(only)),
            [..] => {
                for ends in positions.windows(2) {
                    match Segment::between(world, &ends[0], &ends[1]) {
                        Some(segment) => segments.push(segment),
                        None => segments.extend(ends.iter().filter_map(point)),
                    }
                }
            }
        }
        let count = segments.len();
        let mut balls = vec![Ball::UNBOUNDED; count];
        balls.extend(segments.iter().map(|segment| around_segment(world, segment)));
        for node in (1..count).rev() {
            balls[node] = around_both(world, &balls[2 * node], &balls[2 * node + 1]);
        }
        Some(Self { world, end: positions.last().copied(), segments, balls })
    }

    /// Its last position.
    pub(crate) fn end(&self) -> Option<&Position> {
        self.end.as_ref()
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Part {
        Part(vec![1])
    }

    /// Narrows a part to the pieces that decide whether positions in a ball are within a radius of the part. For those
    /// positions the question is the same. `None` where none of the part can be within the radius.
    ///
    /// Cost: linear in the pieces of the part, and logarithmic in the segments of those that are split.
    pub(crate) fn narrowed(&self, part: &Part, ball: &Ball, radius: &Radius) -> Option<Part> {
        let mut near = Vec::new();
        for node in &part.0 {
            if let ControlFlow::Break(all) = self.narrow(*node, ball, radius.chord(), &mut near) {
                // It is near to all of the ball: what else there is does not matter.
                return Some(Part(vec![all]));
            }
        }
        (!near.is_empty()).then_some(Part(near))
    }

    /// Appends the pieces of a node that come near; breaks with one that is within the chord of all of the ball.
    fn narrow(&self, node: usize, ball: &Ball, chord: f64, near: &mut Vec<usize>) -> ControlFlow<usize> {
        let margin = margin(self.world);
        let reach = (ball.reach + chord) * (1.0 + RELATIVE_MARGIN) + margin;
        let held = &self.balls[node];
        let square = squared_chord(&held.centre, &ball.centre);
        if square > (held.reach + reach).powi(2) {
            return ControlFlow::Continue(());
        }
        let (far, pieces) = match node.checked_sub(self.segments.len()) {
            Some(segment) => {
                let distance = self.segments[segment].distance_in_space(&ball.centre);
                if distance > reach {
                    return ControlFlow::Continue(());
                }
                (distance, None)
            }
            None => (square.sqrt() + held.reach, (held.reach > reach).then_some([2 * node, 2 * node + 1])),
        };
        // Chords of nearly the whole globe say too little.
        let is_small = self.world == World::Planar || chord < CHORD_MAX;
        if is_small && (far + ball.reach) * (1.0 + RELATIVE_MARGIN) + margin <= chord {
            return ControlFlow::Break(node);
        }
        match pieces {
            Some(pieces) => pieces.into_iter().try_for_each(|piece| self.narrow(piece, ball, chord, near)),
            None => {
                near.push(node);
                ControlFlow::Continue(())
            }
        }
    }

    /// Whether some place of a part is within a radius of a position, for the whole to the last bit as a corridor of
    /// that radius says.
    pub(crate) fn comes_within(&self, part: &Part, radius: &Radius, position: &Position) -> bool {
        part.0.iter().any(|node| self.node_comes_within(*node, radius, position))
    }

    fn node_comes_within(&self, node: usize, radius: &Radius, position: &Position) -> bool {
        let (ball, point) = (&self.balls[node], position.point());
        let reach = ball.reach + radius.chord();
        if squared_chord(&ball.centre, point) > reach * reach {
            return false;
        }
        if let Some(segment) = node.checked_sub(self.segments.len()) {
            return self.segments[segment].is_within(self.world, radius, position);
        }
        // The nearer one first: where it is near, that is all.
        let [left, right] = [2 * node, 2 * node + 1];
        let [to_left, to_right] = [left, right].map(|child| squared_chord(&self.balls[child].centre, point));
        let order = if to_left <= to_right { [left, right] } else { [right, left] };
        order.into_iter().any(|child| self.node_comes_within(child, radius, position))
    }
}

/// On the unit sphere: where chords tell angles well.
const CHORD_MAX: f64 = 1.9;

/// Share by which balls around balls are wider than need be, beside the margin of their world.
const RELATIVE_MARGIN: f64 = 1e-12;

fn margin(world: World) -> f64 {
    match world {
        World::Geodetic => SPHERE_MARGIN,
        World::Planar => PLANE_MARGIN_M,
    }
}

/// No place of an arc up to a half circle is further from the middle of its chord than its ends.
fn around_segment(world: World, segment: &Segment) -> Ball {
    let [from, to] = segment.ends().each_ref().map(|end| *end.point());
    let centre = add(from, to).map(|sum| sum / 2.0);
    let reach = norm(sub(from, centre)).max(norm(sub(to, centre)));
    Ball { centre, reach: reach * (1.0 + RELATIVE_MARGIN) + margin(world) }
}

fn around_both(world: World, a: &Ball, b: &Ball) -> Ball {
    let apart = norm(sub(b.centre, a.centre));
    if apart + b.reach <= a.reach {
        return *a;
    }
    if apart + a.reach <= b.reach {
        return *b;
    }
    let reach = (apart + a.reach + b.reach) / 2.0;
    let share = (reach - a.reach) / apart;
    let centre = [0, 1, 2].map(|axis| a.centre[axis] + (b.centre[axis] - a.centre[axis]) * share);
    Ball { centre, reach: reach * (1.0 + RELATIVE_MARGIN) + margin(world) }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::area::Corridor;
    use crate::geo::{EARTH_RADIUS_M, PLANAR_LIMIT_M};

    const WORLDS: [World; 2] = [World::Geodetic, World::Planar];

    fn anywhere(world: World, rng: &mut SmallRng) -> Position {
        let [x, y] = match world {
            World::Geodetic => [180.0, 90.0],
            World::Planar => [PLANAR_LIMIT_M; 2],
        };
        let coordinates = [rng.random_range(-x..=x), rng.random_range(-y..=y)];
        world.position(&coordinates).unwrap()
    }

    /// A position some way off, down to a micrometre.
    fn beside(world: World, position: &Position, rng: &mut SmallRng) -> Position {
        let mut off = || 10_f64.powf(rng.random_range(-11.0..1.5)) * [-1.0, 1.0][rng.random_range(0..2)];
        let (x, y) = (position.x(), position.y());
        let coordinates = match world {
            World::Geodetic => [(x + off()).clamp(-180.0, 180.0), (y + off()).clamp(-90.0, 90.0)],
            World::Planar => {
                [x + off() * 1e5, y + off() * 1e5].map(|c| c.clamp(-PLANAR_LIMIT_M, PLANAR_LIMIT_M))
            }
        };
        world.position(&coordinates).unwrap()
    }

    fn track(world: World, rng: &mut SmallRng) -> Vec<Position> {
        let mut line = vec![anywhere(world, rng)];
        for _ in 1..rng.random_range(2..60) {
            let last = *line.last().unwrap();
            line.push(match rng.random_range(0..10) {
                0 => anywhere(world, rng),
                1 => last,
                _ => beside(world, &last, rng),
            });
        }
        line
    }

    #[test]
    fn a_track_is_as_near_as_its_corridor_says() {
        let mut rng = SmallRng::seed_from_u64(11);
        let mut counts = [0; 2];
        for case in 0..600 {
            let world = WORLDS[case % 2];
            let line = track(world, &mut rng);
            let track = Track::new(world, &line).unwrap();
            for _ in 0..30 {
                let vertex = line[rng.random_range(0..line.len())];
                let position = beside(world, &vertex, &mut rng);
                let border = world.distance_m(&vertex, &position);
                let metres = match rng.random_range(0..4) {
                    0 => border,
                    1 => border.next_down().max(0.0),
                    2 => rng.random_range(0.0..2.0) * border,
                    _ => rng.random_range(0.0..PI * EARTH_RADIUS_M),
                };
                let radius = Radius::new(world, metres).unwrap();
                let corridor = Corridor::new(world, &line, radius).unwrap();
                let expected = corridor.holds(world, &position);
                let comes_within = |part: &Part| track.comes_within(part, &radius, &position);
                assert_eq!(comes_within(&track.whole()), expected, "case {case}: {metres} m");
                // What is left for balls that hold the position, each in the one before, says the same.
                let mut part = Some(track.whole());
                let mut reach = [1.0, 10.0][rng.random_range(0..2)] * radius.chord();
                for _ in 0..6 {
                    let mut centre = *position.point();
                    centre[rng.random_range(0..3)] += reach * rng.random_range(-0.999..0.999);
                    part = part.and_then(|part| track.narrowed(&part, &Ball { centre, reach }, &radius));
                    assert_eq!(part.as_ref().is_some_and(comes_within), expected, "case {case}: {metres} m");
                    reach *= rng.random_range(0.0..1.0);
                }
                counts[usize::from(expected)] += 1;
            }
        }
        assert!(counts.iter().all(|count| *count > 2_000), "{counts:?}");
    }

    #[test]
    fn a_position_is_a_track_and_opposite_sides_are_two() {
        let world = World::Geodetic;
        let at = |x, y| world.position(&[x, y]).unwrap();
        let radius = Radius::new(world, 1_000.0).unwrap();
        let comes_within =
            |track: &Track, there: &Position| track.comes_within(&track.whole(), &radius, there);
        assert!(Track::new(world, &[]).is_none());
        let circle = Track::new(world, &[at(9.0, 45.0)]).unwrap();
        assert!(comes_within(&circle, &at(9.0, 45.008)) && !comes_within(&circle, &at(9.0, 45.01)));
        let opposite = Track::new(world, &[at(0.0, 0.0), at(180.0, 0.0), at(180.0, 1.0)]).unwrap();
        for (there, expected) in
            [(at(0.001, 0.0), true), (at(90.0, 0.0), false), (at(0.0, 90.0), false), (at(-180.0, 0.5), true)]
        {
            assert_eq!(comes_within(&opposite, &there), expected, "{there:?}");
        }
    }
}
