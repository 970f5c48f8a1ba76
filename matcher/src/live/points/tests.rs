//! The tree against a list that is searched from end to end.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::store::{LEAF_LEN, Link, MERGE_LEN, Target};
use super::{Points, key::Key};
use crate::area::Ball;
use crate::geo::{PLANAR_LIMIT_M, Radius, World, squared_chord};

/// Brute force.
#[derive(Debug, Default)]
struct List(Vec<(u32, [f64; 3])>);

impl List {
    fn insert(&mut self, id: u32, point: [f64; 3]) {
        self.0.push((id, point));
    }

    fn remove(&mut self, id: u32, point: &[f64; 3]) -> bool {
        let found = self.0.iter().position(|held| held.0 == id && held.1 == *point);
        found.map(|index| self.0.swap_remove(index)).is_some()
    }

    fn within(&self, ball: &Ball) -> Vec<u32> {
        let mut ids: Vec<_> =
            self.0.iter().filter(|(_, point)| ball.holds(point)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// The numbers at each distance, the nearest first.
    fn by_distance(&self, centre: &[f64; 3]) -> Vec<(f64, Vec<u32>)> {
        ranks(self.0.iter().map(|(id, point)| (*id, squared_chord(centre, point))))
    }
}

/// Points equally far come in any order: they are put together.
fn ranks(visits: impl IntoIterator<Item = (u32, f64)>) -> Vec<(f64, Vec<u32>)> {
    let mut ranks: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (id, square) in visits {
        ranks.entry(square.to_bits()).or_default().push(id);
    }
    ranks.values_mut().for_each(|ids| ids.sort_unstable());
    ranks.into_iter().map(|(bits, ids)| (f64::from_bits(bits), ids)).collect()
}

fn within(points: &Points, ball: &Ball) -> Vec<u32> {
    let mut ids = Vec::new();
    points.within(ball, |id| ids.push(id));
    ids.sort_unstable();
    ids
}

fn visits(points: &Points, centre: &[f64; 3], limit: usize) -> Vec<(u32, f64)> {
    let mut visits = Vec::new();
    points.by_distance(centre, |id, square| {
        visits.push((id, square));
        if visits.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    visits
}

/// Both answer alike: what is in the ball, who comes in which order, and who comes first.
#[track_caller]
fn check(points: &Points, list: &List, ball: &Ball) {
    assert_eq!(within(points, ball), list.within(ball), "{ball:?}");
    let visited = visits(points, &ball.centre, usize::MAX);
    assert!(visited.is_sorted_by(|a, b| a.1 <= b.1), "{ball:?}");
    assert_eq!(ranks(visited.iter().copied()), list.by_distance(&ball.centre), "{ball:?}");
    for limit in [1, 7] {
        assert_eq!(visits(points, &ball.centre, limit), visited[..limit.min(visited.len())]);
    }
}

/// The tree is as it says that it is, and has no memory in use that it does not need.
#[track_caller]
fn check_shape(points: &Points) {
    let (mut nodes, mut leaves) = (0, 0);
    let held = check_link(points, points.root, None, &mut nodes, &mut leaves);
    assert_eq!(held.len(), points.len());
    assert_eq!(held.is_empty(), points.is_empty());
    assert_eq!((nodes, leaves), (points.nodes.len(), points.leaves.len()));
}

fn check_link(
    points: &Points,
    link: Link,
    above: Option<u32>,
    nodes: &mut usize,
    leaves: &mut usize,
) -> Vec<(u32, [f64; 3])> {
    match link.target() {
        Target::Nothing => Vec::new(),
        Target::Leaf(leaf) => {
            *leaves += 1;
            let leaf = &points.leaves[leaf];
            assert!((1..=LEAF_LEN).contains(&leaf.ids().len()));
            leaf.iter().collect()
        }
        Target::Node(index) => {
            *nodes += 1;
            let node = &points.nodes[index];
            assert!(node.len > MERGE_LEN && above.is_none_or(|above| node.height < above));
            assert!(node.children.iter().filter(|child| **child != Link::NOTHING).count() >= 2);
            let halves = node.key.halves(node.height);
            let mut held = Vec::new();
            for (digit, child) in node.children.into_iter().enumerate() {
                let below = check_link(points, child, Some(node.height), nodes, leaves);
                for (id, point) in &below {
                    let key = Key::new(*id, point);
                    assert!(node.key.parting(&key).is_none_or(|height| height <= node.height));
                    assert_eq!(key.digit(node.height), digit);
                    for axis in 0..3 {
                        let [min, max] = halves[axis][digit >> axis & 1];
                        assert!((min..=max).contains(&point[axis]), "{point:?} {min} {max}");
                    }
                }
                held.extend(below);
            }
            assert_eq!(held.len(), node.len as usize);
            held
        }
    }
}

/// Where the points of a case are.
#[derive(Clone, Copy, Debug)]
enum Cloud {
    /// All over the sphere, and at its poles, its antimeridian and the borders of its octants.
    Globe,
    /// Two kilometres of it, across the meridian of Greenwich.
    City,
    /// Five places and their next neighbours among the doubles.
    Crowds,
    /// The whole plane.
    Plane,
    /// Twenty kilometres of it, far from its origin, on a grid of whole metres.
    Town,
    /// Around the plane's origin, at all scales down to where squares underflow.
    Origin,
}

const CLOUDS: [Cloud; 6] =
    [Cloud::Globe, Cloud::City, Cloud::Crowds, Cloud::Plane, Cloud::Town, Cloud::Origin];

impl Cloud {
    fn world(self) -> World {
        match self {
            Self::Globe | Self::City | Self::Crowds => World::Geodetic,
            Self::Plane | Self::Town | Self::Origin => World::Planar,
        }
    }

    /// A point and a reach that means something around it.
    fn draw(self, rng: &mut SmallRng) -> ([f64; 3], f64) {
        let at = |x, y| *self.world().position(&[x, y]).expect("inside of the world").point();
        let edges = [-180.0, -90.0, 0.0, 90.0, 180.0, 179.999_999_99, 1e-12];
        let mut signed = |exponent: f64| {
            10_f64.powf(rng.random_range(-exponent..1.0)) * if rng.random() { 1.0 } else { -1.0 }
        };
        match self {
            Self::Globe => {
                let (x, y) = (rng.random_range(-180.0..=180.0), rng.random_range(-90.0..=90.0));
                let x = if rng.random_bool(0.3) { *edges.choose(rng).expect("some") } else { x };
                let y: f64 = if rng.random_bool(0.3) { *edges.choose(rng).expect("some") } else { y };
                (at(x, y.clamp(-90.0, 90.0)), rng.random_range(0.0..0.5))
            }
            Self::City => {
                let (x, y) = (rng.random_range(-0.01..0.01), 51.5 + rng.random_range(-0.01..0.01));
                (at(x, y), rng.random_range(0.0..1e-4))
            }
            Self::Crowds => {
                let mut point = at(f64::from(rng.random_range(0..5_u8)) * 17.0, 30.0);
                let axis = rng.random_range(0..3);
                for _ in 0..rng.random_range(0..3) {
                    point[axis] = point[axis].next_up();
                }
                (point, *[0.0, 1e-16, 1e-9, 0.4].choose(rng).expect("some"))
            }
            Self::Plane => {
                let mut side = || rng.random_range(-PLANAR_LIMIT_M..=PLANAR_LIMIT_M);
                (at(side(), side()), rng.random_range(0.0..5e8))
            }
            Self::Town => {
                let mut side = || f64::from(rng.random_range(0..20_000));
                (at(side() - 9e8, side() + 123_456.0), f64::from(rng.random_range(0..2_000)))
            }
            Self::Origin => (at(signed(200.0), signed(200.0)), 10_f64.powf(rng.random_range(-200.0..1.0))),
        }
    }

    /// Balls of which many border on a point, or hold everything, or nothing.
    fn ball(self, list: &List, rng: &mut SmallRng) -> Ball {
        let (point, reach) = self.draw(rng);
        let centre = list.0.choose(rng).filter(|_| rng.random()).map_or(point, |held| held.1);
        let border = list.0.choose(rng).map_or(0.0, |held| squared_chord(&centre, &held.1).sqrt());
        let reaches = [reach, border, border.next_down().max(0.0), border.next_up(), 0.0, f64::INFINITY, 2.0];
        Ball { centre, reach: *reaches.choose(rng).expect("some") }
    }
}

/// Points come until there are so many, change, and go, and all is compared again and again.
fn live(cloud: Cloud, seed: u64, crowd: usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut points, mut list) = (Points::new(), List::default());
    let mut spare: Vec<u32> = (0..).step_by(3).take(3 * crowd).collect();
    for target in [crowd, crowd / 2, crowd, crowd / 10, crowd / 3, 0] {
        while list.0.len() != target {
            // Three steps in the wrong direction to five in the right one.
            if (list.0.len() < target) == rng.random_bool(0.625) && !spare.is_empty() || list.0.is_empty() {
                let id = spare.swap_remove(rng.random_range(0..spare.len()));
                let (point, _) = cloud.draw(&mut rng);
                points.insert(id, point);
                list.insert(id, point);
            } else {
                let (id, point) = *list.0.choose(&mut rng).expect("some");
                assert!(points.remove(id, &point) && list.remove(id, &point));
                assert!(!points.remove(id, &point), "it has gone");
                spare.push(id);
            }
            if rng.random_bool(0.02) {
                check(&points, &list, &cloud.ball(&list, &mut rng));
            }
        }
        check_shape(&points);
        (0..10).for_each(|_| check(&points, &list, &cloud.ball(&list, &mut rng)));
    }
    assert_eq!((points.nodes.len(), points.leaves.len()), (0, 0), "memory is given back");
}

#[test]
fn thousands_come_and_go_as_in_a_list() {
    for (seed, cloud) in (0..).zip(CLOUDS) {
        live(cloud, seed, 2_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_few_come_and_go_as_in_a_list(cloud in prop::sample::select(CLOUDS.to_vec()), seed: u64, crowd in 0..150_usize) {
        live(cloud, seed, crowd);
    }
}

#[test]
fn nothing_is_found_among_none() {
    let points = Points::new();
    check(&points, &List::default(), &Ball::UNBOUNDED);
    check_shape(&points);
}

#[test]
fn any_number_of_points_may_be_at_one_place() {
    let point = *World::Geodetic.position(&[9.19, 45.46]).expect("a place").point();
    let mut points = Points::new();
    (0..50_000).for_each(|id| points.insert(id, point));
    check_shape(&points);
    let everyone: Vec<u32> = (0..50_000).collect();
    assert_eq!(within(&points, &Ball { centre: point, reach: 0.0 }), everyone);
    assert_eq!(within(&points, &Ball { centre: [0.0; 3], reach: 0.5 }), []);
    assert_eq!(visits(&points, &point, 3).len(), 3);
    assert!(!points.remove(50_000, &point));
    assert!(!points.remove(7, &[0.0; 3]), "it is not there");
    for id in everyone {
        assert!(points.remove(id, &point));
    }
    check_shape(&points);
}

#[test]
fn numbers_of_all_sizes_share_a_place() {
    let mut points = Points::new();
    let ids: Vec<u32> = (0..32).flat_map(|bit| [1 << bit, u32::MAX - (1 << bit), u32::MAX >> bit]).collect();
    let ids: std::collections::BTreeSet<u32> = ids.into_iter().collect();
    ids.iter().for_each(|id| points.insert(*id, [0.0, -0.0, 0.0]));
    check_shape(&points);
    assert_eq!(within(&points, &Ball { centre: [0.0; 3], reach: 0.0 }), Vec::from_iter(ids.iter().copied()));
    assert!(
        ids.iter().all(|id| points.remove(*id, &[-0.0, 0.0, 0.0])),
        "zero has two signs and is one place"
    );
    assert!(points.is_empty());
}

#[test]
fn the_first_of_many_are_found_without_looking_at_all() {
    let mut rng = SmallRng::seed_from_u64(5);
    let mut points = Points::new();
    (0..100_000).for_each(|id| points.insert(id, Cloud::Globe.draw(&mut rng).0));
    let centre = Cloud::Globe.draw(&mut rng).0;
    let mut search = points.nearest(&centre);
    let nearest: Vec<_> = search.by_ref().take(20).collect();
    assert!(search.seen.len() < 2_000, "it has looked at {}", search.seen.len());
    let reach = nearest[19].1.sqrt();
    let border = Ball { centre, reach: reach.next_up() };
    let mut inside = within(&points, &border);
    assert!(inside.len() >= 20 && inside.len() < 40, "{} of them", inside.len());
    inside.retain(|id| nearest.iter().any(|visit| visit.0 == *id));
    assert_eq!(inside.len(), 20);
}

#[test]
fn memory_is_used_again() {
    let mut rng = SmallRng::seed_from_u64(6);
    let mut points = Points::new();
    let mut held: Vec<_> = (0..5_000).map(|id| (id, Cloud::Town.draw(&mut rng).0)).collect();
    held.iter().for_each(|(id, point)| points.insert(*id, *point));
    let bytes = points.bytes();
    for _ in 0..20 {
        for (id, point) in &mut held {
            assert!(points.remove(*id, point));
            *point = Cloud::Town.draw(&mut rng).0;
            points.insert(*id, *point);
        }
    }
    check_shape(&points);
    assert!(points.bytes() < bytes * 3 / 2, "{} bytes after {bytes}", points.bytes());
    assert!(bytes < 5_000 * 120, "{bytes}");
}

#[test]
fn no_circle_misses_a_position_that_it_holds() {
    let mut rng = SmallRng::seed_from_u64(7);
    for cloud in [Cloud::Globe, Cloud::City, Cloud::Plane, Cloud::Town] {
        let world = cloud.world();
        let mut points = Points::new();
        let mut places = Vec::new();
        let spans = match cloud {
            Cloud::City => [0.02, 0.02],
            Cloud::Town => [20_000.0; 2],
            Cloud::Plane => [PLANAR_LIMIT_M; 2],
            Cloud::Globe | Cloud::Crowds | Cloud::Origin => [180.0, 90.0],
        };
        for id in 0..3_000 {
            let [x, y] = spans.map(|span| rng.random_range(-span..=span));
            let place = world.position(&[x, y]).expect("inside of the world");
            points.insert(id, *place.point());
            places.push(place);
        }
        for _ in 0..300 {
            let [centre, border] = [0; 2].map(|_| *places.choose(&mut rng).expect("some"));
            let radius = Radius::new(world, world.distance_m(&centre, &border)).expect("a radius");
            let found = within(&points, &Ball { centre: *centre.point(), reach: radius.chord() });
            for (id, place) in (0_u32..).zip(&places) {
                if radius.holds(world, &centre, place) {
                    assert!(found.binary_search(&id).is_ok(), "{place:?} within {radius:?} of {centre:?}");
                }
            }
        }
    }
}
