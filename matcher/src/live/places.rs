//! Where the live events of one partition are, and how far their own areas reach.

use std::collections::BTreeMap;

use super::Points;
use crate::area::{Area, Ball, Part, Track};
use crate::geo::{EARTH_RADIUS_M, Position, Radius, World, squared_chord};
use crate::violated;

/// The places of a partition's live events.
#[derive(Debug, Default)]
pub(super) struct Places {
    points: Points,
    /// Points of events with an area of their own, by the size of the area.
    reaches: BTreeMap<i32, Reaches>,
}

/// Events whose own areas are about as large.
#[derive(Debug)]
struct Reaches {
    points: Points,
    /// As straight lines, of all that there have been since the first.
    least: f64,
    most: f64,
}

/// A straight line in space from where a client was to where it is, as far as circles around points go.
struct Step<'a> {
    after: &'a Position,
    length: f64,
}

/// Margin above the error of computed chords; in the plane a millimetre, where coordinates are largest.
const CHORD_MARGIN: f64 = 1e-9;
const PLANE_MARGIN_M: f64 = 1e-3;

/// Sizes in each doubling of the reach. The largest reach of a size is less than 1.1 times the smallest, so that a move
/// does not look at circles whose border it is far from.
const SIZES_PER_OCTAVE: f64 = 8.0;

/// On the sphere: beyond this angle areas are told apart by what they leave out.
const WIDE_ANGLE: f64 = 2.0;

/// First size of areas wider than [`WIDE_ANGLE`], beyond the sizes of all others.
const WIDE_OFFSET: i32 = 1_000_000;

/// Up to here areas that follow are large enough for a walk along their border, as a share of their radius.
const STEP_MAX: f64 = 0.5;

impl Places {
    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    pub(super) fn points(&self) -> &Points {
        &self.points
    }

    /// Whether any event has an area of its own.
    pub(super) fn have_reaches(&self) -> bool {
        !self.reaches.is_empty()
    }

    pub(super) fn insert(&mut self, world: World, number: u32, position: &Position, reach: Option<&Radius>) {
        self.points.insert(number, *position.point());
        let Some(reach) = reach else { return };
        let chord = chord(world, reach);
        let new = || Reaches { points: Points::new(), least: chord, most: chord };
        let alike = self.reaches.entry(size(world, reach)).or_insert_with(new);
        (alike.least, alike.most) = (alike.least.min(chord), alike.most.max(chord));
        alike.points.insert(number, *position.point());
    }

    pub(super) fn remove(&mut self, world: World, number: u32, position: &Position, reach: Option<&Radius>) {
        if !self.points.remove(number, position.point()) {
            violated!("an event is where it was put in");
        }
        let Some(size) = reach.map(|reach| size(world, reach)) else { return };
        let Some(alike) = self.reaches.get_mut(&size) else {
            return violated!("there are reaches of an event's size");
        };
        if !alike.points.remove(number, position.point()) {
            violated!("a reach is where it was put in");
        }
        if alike.points.is_empty() {
            self.reaches.remove(&size);
        }
    }

    /// Calls `found` for the events in a ball.
    pub(super) fn within(&self, ball: &Ball, found: impl FnMut(u32)) {
        self.points.within(ball, found);
    }

    /// Calls `found` for the events that a circle around a client holds now and may not have held before its last step,
    /// and others in the circle.
    ///
    /// Cost: where the step is small, what is near the circle's border.
    pub(super) fn come_within(
        &self,
        world: World,
        radius: &Radius,
        before: &Position,
        after: &Position,
        mut found: impl FnMut(u32),
    ) {
        let Some(ball) = Area::Following(*radius).ball(world, Some(after)) else {
            return violated!("an area that follows a client lies around its position");
        };
        let step = Step::new(before, after);
        let inner = chord(world, radius);
        if step.length > inner * STEP_MAX || !ball.reach.is_finite() {
            return self.points.within(&ball, found);
        }
        let margin = margin(world, inner);
        let narrow = |(): &(), part: &Ball| {
            let to_after = distance(part, &ball.centre);
            let is_outside = to_after - part.reach > ball.reach + margin;
            let was_inside = distance(part, before.point()) + part.reach + margin < inner;
            (!is_outside && !was_inside).then_some(())
        };
        self.points.narrowing(&(), &narrow, &mut |(), number| found(number));
    }

    /// Calls `found` for the events whose own area a step may have led into or out of, and some more.
    ///
    /// Cost: the sizes that there are, and the areas whose border is near.
    pub(super) fn crossed(
        &self,
        world: World,
        before: &Position,
        after: &Position,
        mut found: impl FnMut(u32),
    ) {
        let step = Step::new(before, after);
        for Reaches { points, least, most } in self.reaches.values() {
            let margin = margin(world, *most);
            let narrow = |(): &(), part: &Ball| {
                let to_after = distance(part, step.after.point());
                let are_outside = to_after - part.reach - step.length > *most + margin;
                let are_inside = to_after + part.reach + step.length + margin < *least;
                (!are_outside && !are_inside).then_some(())
            };
            points.narrowing(&(), &narrow, &mut |(), number| found(number));
        }
    }

    /// Calls `found` for the events that may be within a radius of a track, with what of the track decides it.
    pub(super) fn along(&self, track: &Track, radius: &Radius, mut found: impl FnMut(&Part, u32)) {
        let narrow = |part: &_, ball: &Ball| track.narrowed(part, ball, radius);
        self.points.narrowing(&track.whole(), &narrow, &mut found);
    }
}

impl<'a> Step<'a> {
    fn new(before: &Position, after: &'a Position) -> Self {
        Self { after, length: squared_chord(before.point(), after.point()).sqrt() }
    }
}

fn distance(ball: &Ball, point: &[f64; 3]) -> f64 {
    squared_chord(&ball.centre, point).sqrt()
}

fn margin(world: World, reach: f64) -> f64 {
    match world {
        World::Geodetic => CHORD_MARGIN,
        World::Planar => PLANE_MARGIN_M + reach * CHORD_MARGIN,
    }
}

/// A radius as a straight line, for the widest, too: all within it, but for the margin, is in the circle, and nothing
/// else.
fn chord(world: World, radius: &Radius) -> f64 {
    match world {
        World::Geodetic => 2.0 * ((radius.metres() / EARTH_RADIUS_M).min(std::f64::consts::PI) / 2.0).sin(),
        World::Planar => radius.metres(),
    }
}

/// Number of the size that a reach has. Chords tell angles of nearly half the globe badly: what counts there is how
/// much is left.
fn size(world: World, radius: &Radius) -> i32 {
    let angle = radius.metres() / EARTH_RADIUS_M;
    let (offset, length) = match world {
        World::Geodetic if angle > WIDE_ANGLE => (WIDE_OFFSET, (std::f64::consts::PI - angle).max(1e-9)),
        // As little as nothing: the margins are wider.
        World::Geodetic | World::Planar => (0, chord(world, radius).max(1e-12)),
    };
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a finite number is small")]
    let size = (length.log2() * SIZES_PER_OCTAVE).floor() as i32;
    offset + size
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::geo::PLANAR_LIMIT_M;

    fn anywhere(world: World, rng: &mut SmallRng) -> Position {
        let [x, y] = match world {
            World::Geodetic => [180.0, 90.0],
            World::Planar => [PLANAR_LIMIT_M; 2],
        };
        world.position(&[rng.random_range(-x..=x), rng.random_range(-y..=y)]).unwrap()
    }

    fn beside(world: World, position: &Position, rng: &mut SmallRng) -> Position {
        let scale = if world == World::Planar { 1e5 } else { 1.0 };
        let mut off =
            || scale * 10_f64.powf(rng.random_range(-9.0..1.5)) * [-1.0, 1.0][rng.random_range(0..2)];
        let [x, y] = match world {
            World::Geodetic => [180.0, 90.0],
            World::Planar => [PLANAR_LIMIT_M; 2],
        };
        let coordinates = [(position.x() + off()).clamp(-x, x), (position.y() + off()).clamp(-y, y)];
        world.position(&coordinates).unwrap()
    }

    /// Circles of all sizes whose border is near to somewhere.
    fn circle(world: World, rng: &mut SmallRng, near: &Position) -> (Position, Radius) {
        let centre =
            if rng.random_range(0..3) == 0 { anywhere(world, rng) } else { beside(world, near, rng) };
        let border = world.distance_m(&centre, near);
        let metres = match rng.random_range(0..5) {
            0 => border,
            1 => border * rng.random_range(0.9..1.1),
            2 => 0.0,
            3 => 2e7,
            _ => border + rng.random_range(-10.0..10.0),
        };
        (centre, Radius::new(world, metres.max(0.0)).unwrap())
    }

    #[test]
    fn no_border_is_crossed_unseen() {
        let mut rng = SmallRng::seed_from_u64(3);
        let mut crossed_count = 0;
        for case in 0..400 {
            let world = [World::Geodetic, World::Planar][case % 2];
            let before = anywhere(world, &mut rng);
            let after =
                if case % 7 == 0 { anywhere(world, &mut rng) } else { beside(world, &before, &mut rng) };
            let circles: Vec<_> = (0..200).map(|_| circle(world, &mut rng, &before)).collect();
            let mut places = Places::default();
            for (number, (centre, radius)) in (0..).zip(&circles) {
                places.insert(world, number, centre, Some(radius));
            }
            let mut found = vec![false; circles.len()];
            places.crossed(world, &before, &after, |number| found[number as usize] = true);
            for (number, (centre, radius)) in circles.iter().enumerate() {
                let [was, is] = [&before, &after].map(|at| radius.holds(world, centre, at));
                crossed_count += usize::from(was != is);
                assert!(was == is || found[number], "case {case}: {centre:?} {radius:?}");
            }
            for (number, (centre, radius)) in (0..).zip(&circles) {
                places.remove(world, number, centre, Some(radius));
            }
            assert!(places.is_empty() && !places.have_reaches());
        }
        assert!(crossed_count > 5_000, "{crossed_count}");
    }

    #[test]
    fn nothing_comes_within_unseen() {
        let mut rng = SmallRng::seed_from_u64(4);
        let mut come_count = 0;
        for case in 0..400 {
            let world = [World::Geodetic, World::Planar][case % 2];
            let before = anywhere(world, &mut rng);
            let after = beside(world, &before, &mut rng);
            let points: Vec<_> = (0..200).map(|_| beside(world, &after, &mut rng)).collect();
            let mut places = Places::default();
            for (number, point) in (0..).zip(&points) {
                places.insert(world, number, point, None);
            }
            let step_m = world.distance_m(&before, &after);
            for times in [0.5, 1.0, 2.1, 5.0, 100.0] {
                let radius = Radius::new(world, step_m * times).unwrap();
                let mut found = vec![false; points.len()];
                places.come_within(world, &radius, &before, &after, |number| found[number as usize] = true);
                for (number, point) in points.iter().enumerate() {
                    let comes = radius.holds(world, &after, point) && !radius.holds(world, &before, point);
                    come_count += usize::from(comes);
                    assert!(!comes || found[number], "case {case}: {point:?} {radius:?}");
                }
            }
        }
        assert!(come_count > 5_000, "{come_count}");
    }
}
