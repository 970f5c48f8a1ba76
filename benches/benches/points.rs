//! What does an index of live events cost: one that goes to where another comes, a circle, the nearest?
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::f64::consts::PI;
use std::ops::ControlFlow;

use benches::micro::measures;
use divan::{Bencher, black_box};
use matcher::area::Ball;
use matcher::geo::{Position, Radius, World};
use matcher::live::Points;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// From what fits the caches to what is far from it.
const POINTS: [u32; 3] = [10_000, 200_000, 1_000_000];
/// Each has so much ground, whatever their number: 200,000 in a square of the size of Milan.
const GROUND_M2: f64 = 13_470.0 * 13_470.0 / 200_000.0;
/// The middle of the square.
const MIDDLE: [f64; 2] = [9.19, 45.464];
/// Metres a degree of latitude.
const DEGREE_M: f64 = 111_195.0;
/// Points that a circle holds, and that a search for the nearest looks for.
const SOUGHT: u8 = 20;
/// Searches that brute force checks before the figures mean anything.
const CHECKED: usize = 50;

fn main() {
    divan::main();
}

/// Points in a square of a city, on the sphere.
struct City {
    points: Points,
    places: Vec<[f64; 3]>,
    side_m: f64,
    rng: SmallRng,
}

impl City {
    fn new(points: u32) -> Self {
        let points = if measures() { points } else { 500 };
        let side_m = (f64::from(points) * GROUND_M2).sqrt();
        let mut city =
            Self { points: Points::new(), places: Vec::new(), side_m, rng: SmallRng::seed_from_u64(1) };
        for id in 0..points {
            let place = *city.draw().point();
            city.points.insert(id, place);
            city.places.push(place);
        }
        city
    }

    fn draw(&mut self) -> Position {
        let half = self.side_m / DEGREE_M / 2.0;
        let (x, y) = (self.rng.random_range(-half..half), self.rng.random_range(-half..half));
        let longitude = MIDDLE[0] + x / MIDDLE[1].to_radians().cos();
        World::Geodetic.position(&[longitude, MIDDLE[1] + y]).expect("it is on the sphere")
    }

    /// A circle anywhere that holds so many points on average.
    fn ball(&mut self) -> Ball {
        let radius_m = (f64::from(SOUGHT) * GROUND_M2 / PI).sqrt();
        let radius = Radius::new(World::Geodetic, radius_m).expect("it is a radius");
        Ball { centre: *self.draw().point(), reach: radius.chord() }
    }

    /// Another place for one of the points.
    fn change(&mut self) -> (u32, [f64; 3], [f64; 3]) {
        let to = *self.draw().point();
        let index = self.rng.random_range(0..self.places.len());
        let from = std::mem::replace(&mut self.places[index], to);
        (u32::try_from(index).expect("there are fewer"), from, to)
    }

    /// Compares searches with brute force.
    fn check(&mut self) {
        let mut held = 0;
        for _ in 0..CHECKED {
            let ball = self.ball();
            let mut expected: Vec<_> = (0_u32..)
                .zip(&self.places)
                .map(|(id, place)| (matcher::geo::squared_chord(&ball.centre, place), id))
                .collect();
            expected.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut inside = within(&self.points, &ball);
            inside.sort_unstable();
            let mut oracle: Vec<_> = (0_u32..)
                .zip(&self.places)
                .filter(|(_, place)| ball.holds(place))
                .map(|(id, _)| id)
                .collect();
            oracle.sort_unstable();
            assert_eq!(inside, oracle, "{ball:?}");
            held += inside.len();
            let visits = nearest(&self.points, &ball.centre);
            assert!(visits.iter().eq(&expected[..visits.len()]), "{:?}", ball.centre);
            assert_eq!(visits.len(), usize::from(SOUGHT));
        }
        assert!(!measures() || (10..30).contains(&(held / CHECKED)), "circles hold {held} in all");
    }
}

fn within(points: &Points, ball: &Ball) -> Vec<u32> {
    let mut ids = Vec::new();
    points.within(ball, |id| ids.push(id));
    ids
}

/// The squared chords and the numbers of the nearest.
fn nearest(points: &Points, centre: &[f64; 3]) -> Vec<(f64, u32)> {
    let mut visits = Vec::with_capacity(usize::from(SOUGHT));
    points.by_distance(centre, |id, square| {
        visits.push((square, id));
        if visits.len() < usize::from(SOUGHT) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    visits
}

/// A point is taken out and put in elsewhere.
#[divan::bench(args = POINTS)]
fn remove_and_insert(bencher: Bencher<'_, '_>, points: u32) {
    let mut city = City::new(points);
    let mut index = std::mem::take(&mut city.points);
    let city = RefCell::new(city);
    bencher.with_inputs(|| city.borrow_mut().change()).bench_local_values(|(id, from, to)| {
        assert!(index.remove(id, &from), "it is there");
        index.insert(id, to);
    });
    let mut city = city.into_inner();
    city.points = index;
    city.check();
}

/// A circle that holds twenty points.
#[divan::bench(args = POINTS)]
fn within_circle(bencher: Bencher<'_, '_>, points: u32) {
    let mut city = City::new(points);
    city.check();
    let index = std::mem::take(&mut city.points);
    let city = RefCell::new(city);
    bencher.with_inputs(|| city.borrow_mut().ball()).bench_local_values(|ball| {
        let mut sum = 0;
        index.within(&ball, |id| sum ^= id);
        black_box(sum)
    });
}

/// The twenty nearest of a place, in order.
#[divan::bench(args = POINTS)]
fn first_by_distance(bencher: Bencher<'_, '_>, points: u32) {
    let mut city = City::new(points);
    city.check();
    let index = std::mem::take(&mut city.points);
    let city = RefCell::new(city);
    bencher.with_inputs(|| *city.borrow_mut().draw().point()).bench_local_values(|centre| {
        let (mut left, mut sum) = (SOUGHT, 0);
        index.by_distance(&centre, |id, _| {
            sum ^= id;
            left -= 1;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        black_box(sum)
    });
}
