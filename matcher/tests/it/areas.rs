//! Areas against slower and simpler definitions of the same, on seeded random shapes.

use std::ops::RangeInclusive;

use nearcast_matcher::area::{Ball, Corridor, Polygon, PolygonError};
use nearcast_matcher::geo::{EARTH_RADIUS_M, Position, Radius, World};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

type Rings = Vec<Vec<(i32, i32)>>;

/// Where a place lies seen from one ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Edge,
    Inside,
    Outside,
}

/// Even-odd with edges, in whole numbers: nothing is rounded, each edge is looked at.
fn side_in_whole_numbers(ring: &[(i32, i32)], (x, y): (i32, i32)) -> Side {
    let (x, y) = (i64::from(x), i64::from(y));
    let mut inside = false;
    for edge in ring.windows(2) {
        let ends = [edge[0], edge[1]].map(|(x, y)| (i64::from(x), i64::from(y)));
        let ((low_x, low_y), (high_x, high_y)) =
            if ends[0].1 <= ends[1].1 { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        let turn = (high_x - low_x) * (y - low_y) - (high_y - low_y) * (x - low_x);
        let in_box = (low_y..=high_y).contains(&y) && (low_x.min(high_x)..=low_x.max(high_x)).contains(&x);
        if turn == 0 && in_box {
            return Side::Edge;
        }
        inside ^= low_y <= y && y < high_y && turn > 0;
    }
    if inside { Side::Inside } else { Side::Outside }
}

/// In one of the polygons and in none of that polygon's holes, each on its own.
fn holds_in_whole_numbers(members: &[Rings], place: (i32, i32)) -> bool {
    members.iter().any(|rings| {
        let mut sides = rings.iter().map(|ring| side_in_whole_numbers(ring, place));
        sides.next() != Some(Side::Outside) && sides.all(|side| side != Side::Inside)
    })
}

fn random_rings(rng: &mut StdRng, corner: (i32, i32), side: i32) -> Rings {
    let rings_count = rng.random_range(1..=4);
    let vertices_max = if rng.random_bool(0.1) { 2_000 } else { 9 };
    let ring = |rng: &mut StdRng| {
        let vertices_count = rng.random_range(3..=vertices_max);
        let mut vertex = || (corner.0 + rng.random_range(0..=side), corner.1 + rng.random_range(0..=side));
        let mut ring: Vec<_> = (0..vertices_count).map(|_| vertex()).collect();
        ring.push(ring[0]);
        ring
    };
    let mut rings: Rings = (0..rings_count).map(|_| ring(rng)).collect();
    // Now and then a ring twice.
    if rng.random_bool(0.2) {
        rings.push(rings[rng.random_range(0..rings.len())].clone());
    }
    rings
}

#[test]
fn polygons_agree_with_whole_numbers() {
    // Small grids, so that every third position is on an edge, a vertex or in line with one.
    let mut on_both_sides = [0_u32; 2];
    for seed in 0..1_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        let members_count = rng.random_range(1..=2);
        let members: Vec<Rings> = (0..members_count).map(|_| random_rings(&mut rng, (-6, -6), 12)).collect();
        for world in [World::Planar, World::Geodetic] {
            let at = |(x, y): (i32, i32)| world.position(&[f64::from(x) * 3.0, f64::from(y) * 3.0]).unwrap();
            let positions: Vec<Vec<Vec<Position>>> = members
                .iter()
                .map(|rings| rings.iter().map(|ring| ring.iter().copied().map(at).collect()).collect())
                .collect();
            let polygon = match Polygon::new(world, &positions) {
                Ok(polygon) => polygon,
                Err(PolygonError::TooManyCrossings { .. }) => continue,
                Err(error) => panic!("seed {seed}: {error}"),
            };
            for x in -7..=7 {
                for y in -7..=7 {
                    let (position, expected) = (at((x, y)), holds_in_whole_numbers(&members, (x, y)));
                    assert_eq!(polygon.holds(&position), expected, "seed {seed} {world:?} {x} {y}");
                    assert!(!expected || polygon.bounds().holds(position.point()), "seed {seed} {x} {y}");
                    on_both_sides[usize::from(expected)] += 1;
                }
            }
        }
    }
    assert!(on_both_sides.iter().all(|count| *count > 50_000), "{on_both_sides:?}");
}

/// A position in one of many ways, from clusters of millimetres to the whole world.
pub(crate) fn random_position(rng: &mut StdRng, world: World, around: Option<&Position>) -> Position {
    let (x_max, y_max) = match world {
        World::Geodetic => (180.0, 90.0),
        World::Planar => (1e7, 1e7),
    };
    let (x, y) = match around {
        Some(near) => {
            let scale = 10_f64.powf(rng.random_range(-8.0..2.2)) * x_max / 180.0;
            (near.x() + rng.random_range(-scale..=scale), near.y() + rng.random_range(-scale..=scale))
        }
        None => (rng.random_range(-x_max..=x_max), rng.random_range(-y_max..=y_max)),
    };
    let wrapped = if world == World::Geodetic && x.abs() > 180.0 { x - 360.0_f64.copysign(x) } else { x };
    world.position(&[wrapped.clamp(-x_max, x_max), y.clamp(-y_max, y_max)]).unwrap()
}

/// The distance to a segment by a search along it: the distance from a position falls and then rises on a
/// segment of less than 180 degrees, or first rises and then falls, and then it is least at an end.
pub(crate) fn searched_distance_m(world: World, [a, b]: [&Position; 2], position: &Position) -> f64 {
    let between = |share: f64| match world {
        World::Planar => {
            world.position(&[a.x() + (b.x() - a.x()) * share, a.y() + (b.y() - a.y()) * share]).unwrap()
        }
        World::Geodetic => {
            // Along the chord, lifted to the sphere: not in equal steps, but in order.
            let point: [f64; 3] =
                std::array::from_fn(|axis| a.point()[axis] + (b.point()[axis] - a.point()[axis]) * share);
            let lon = point[1].atan2(point[0]).to_degrees();
            let lat = point[2].atan2(point[0].hypot(point[1])).to_degrees();
            world.position(&[lon.clamp(-180.0, 180.0), lat.clamp(-90.0, 90.0)]).unwrap()
        }
    };
    let distance = |share: f64| world.distance_m(&between(share), position);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let (left, right) = (low + (high - low) * 0.45, low + (high - low) * 0.55);
        if distance(left) <= distance(right) { high = right } else { low = left }
    }
    distance(f64::midpoint(low, high)).min(world.distance_m(a, position)).min(world.distance_m(b, position))
}

#[test]
fn corridors_agree_with_a_search_along_the_line() {
    let mut on_both_sides = [0_u32; 2];
    for seed in 0..20_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        for world in [World::Geodetic, World::Planar] {
            let a = random_position(&mut rng, world, None);
            let b = random_position(&mut rng, world, Some(&a));
            let end = if rng.random() { &a } else { &b };
            let position = random_position(&mut rng, world, Some(end));
            let distance = searched_distance_m(world, [&a, &b], &position);
            // Coordinates of a degree are rounded to nanometres, a flat minimum is found to its square root.
            let slack = 1e-6 + distance * 1e-9;
            for (metres, expected) in [(distance + slack, true), (distance - slack, false)] {
                if metres < 0.0 {
                    continue;
                }
                let radius = Radius::new(world, metres).unwrap();
                let Ok(corridor) = Corridor::new(world, &[a, b], radius) else { continue };
                let held = corridor.holds(world, &position);
                assert_eq!(held, expected, "seed {seed} {world:?} {a:?} {b:?} {position:?} {metres}");
                assert!(!held || corridor.bounds().holds(position.point()), "seed {seed}");
                on_both_sides[usize::from(held)] += 1;
            }
        }
    }
    assert!(on_both_sides.iter().all(|count| *count > 10_000), "{on_both_sides:?}");
}

/// Draws positions near and far and counts those that are held; each must be in the ball.
fn held_within(
    rng: &mut StdRng,
    world: World,
    ball: Ball,
    near: &[Position],
    holds: impl Fn(&Position) -> bool,
) -> u32 {
    let mut held = 0;
    for round in 0..200 {
        let around = (round % 4 != 0).then(|| &near[rng.random_range(0..near.len())]);
        let position = random_position(rng, world, around);
        if holds(&position) {
            assert!(ball.holds(position.point()), "{world:?} {position:?} {ball:?}");
            held += 1;
        }
    }
    held
}

#[test]
fn bounds_hold_all_that_the_area_holds() {
    let (mut held, mut bounded) = (0, 0);
    for seed in 0..2_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        for world in [World::Geodetic, World::Planar] {
            let start = random_position(&mut rng, world, None);
            let (members_count, vertices_count): (usize, usize) =
                (rng.random_range(1..=3), rng.random_range(3..=6));
            let line: Vec<Position> = std::iter::once(start)
                .chain((1..vertices_count).map(|_| random_position(&mut rng, world, Some(&start))))
                .collect();
            let ring: Vec<Position> = line.iter().copied().chain([start]).collect();
            let members: Vec<_> = (0..members_count)
                .map(|_| {
                    // Members apart from each other, often on both sides of the antimeridian.
                    let other = random_position(&mut rng, world, Some(&start));
                    let rest = random_position(&mut rng, world, Some(&other));
                    vec![ring.clone(), vec![other, rest, start, other]]
                })
                .collect();
            let polygon = Polygon::new(world, &members).unwrap();
            held += held_within(&mut rng, world, polygon.bounds(), &ring, |position| polygon.holds(position));
            let metres = 10_f64.powf(rng.random_range(-3.0..7.3));
            let radius = Radius::new(world, metres).unwrap();
            let Ok(corridor) = Corridor::new(world, &line, radius) else { continue };
            held += held_within(&mut rng, world, corridor.bounds(), &line, |at| corridor.holds(world, at));
            bounded +=
                [polygon.bounds(), corridor.bounds()].iter().filter(|ball| ball.reach.is_finite()).count();
        }
    }
    assert!(held > 100_000 && bounded > 5_000, "{held} {bounded}");
}

#[test]
fn a_ball_is_not_much_wider_than_its_area() {
    let at = |lon: f64, lat: f64| World::Geodetic.position(&[lon, lat]).unwrap();
    let metres = |ball: Ball| 2.0 * (ball.reach / 2.0).asin() * EARTH_RADIUS_M;
    let near = |found: f64, expected: RangeInclusive<f64>| assert!(expected.contains(&found), "{found}");
    let block = [at(114.0, 22.5), at(114.01, 22.5), at(114.01, 22.51), at(114.0, 22.51), at(114.0, 22.5)];
    near(metres(Polygon::new(World::Geodetic, &[vec![block.to_vec()]]).unwrap().bounds()), 755.0..=765.0);
    let radius = Radius::new(World::Geodetic, 200.0).unwrap();
    near(metres(Corridor::new(World::Geodetic, &block[..2], radius).unwrap().bounds()), 710.0..=720.0);
}
