//! How far outside of an area a position is, against slower and simpler definitions, on seeded random shapes.

use nearcast_matcher::area::{Area, Corridor, EDGE_TOLERANCE_M, Polygon};
use nearcast_matcher::geo::{EARTH_RADIUS_M, Position, Radius, World};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::areas::{random_position, searched_distance_m};

/// Rings in the numbers of their world: polygons of one ring each.
type Members = Vec<Vec<[f64; 2]>>;

fn polygon(world: World, members: &Members) -> Area {
    let at = |numbers: &[f64; 2]| world.position(numbers).unwrap();
    let members: Vec<_> = members.iter().map(|ring| vec![ring.iter().map(at).collect()]).collect();
    Area::Polygon(Box::new(Polygon::new(world, &members).unwrap()))
}

/// One or two rings of any size, closed, often with edges along a parallel or a meridian; one around the
/// antimeridian comes cut in two.
fn random_members(rng: &mut StdRng, world: World) -> Members {
    if world == World::Geodetic && rng.random_bool(0.3) {
        return cut_members(rng);
    }
    let start = random_position(rng, world, None);
    let members_count = rng.random_range(1..=2);
    (0..members_count)
        .map(|_| {
            let vertices_count = rng.random_range(3..=6);
            let mut ring: Vec<[f64; 2]> = (0..vertices_count)
                .map(|_| random_position(rng, world, Some(&start)))
                .map(|vertex| [vertex.x(), vertex.y()])
                .collect();
            for index in 1..ring.len() {
                match rng.random_range(0..6) {
                    0 => ring[index][0] = ring[index - 1][0],
                    1 => ring[index][1] = ring[index - 1][1],
                    _ => {}
                }
            }
            ring.push(ring[0]);
            ring
        })
        .collect()
}

/// A band around the antimeridian, up to a pole now and then, as RFC 7946 wants it: cut in two.
fn cut_members(rng: &mut StdRng) -> Members {
    let reach = 10_f64.powf(rng.random_range(-3.0..2.2));
    let south = rng.random_range(-90.0..89.0);
    let north = if rng.random_bool(0.3) { 90.0 } else { rng.random_range(south..90.0) };
    let slant = rng.random_range(0.0..=1.0) * (north - south);
    vec![
        vec![
            [180.0 - reach, south],
            [180.0, south + slant],
            [180.0, north],
            [180.0 - reach, north],
            [180.0 - reach, south],
        ],
        vec![
            [-180.0, south + slant],
            [reach - 180.0, south],
            [reach - 180.0, north],
            [-180.0, north],
            [-180.0, south + slant],
        ],
    ]
}

fn random_area(rng: &mut StdRng, world: World) -> (Area, Position) {
    let near = random_position(rng, world, None);
    let radius = Radius::new(world, 10_f64.powf(rng.random_range(-3.0..7.0))).unwrap();
    match rng.random_range(0..4) {
        0 => (Area::Circle { centre: near, radius }, near),
        1 => (Area::Following(radius), near),
        2 => {
            let members = random_members(rng, world);
            let near = world.position(&members[0][0]).unwrap();
            (polygon(world, &members), near)
        }
        _ => {
            let mut line = vec![near];
            line.extend((0..3).map(|_| random_position(rng, world, Some(&near))));
            match Corridor::new(world, &line, radius) {
                Ok(corridor) => (Area::Corridor(Box::new(corridor)), near),
                // Antipodal ends.
                Err(_) => random_area(rng, world),
            }
        }
    }
}

#[test]
fn outside_is_above_zero_exactly_where_the_area_does_not_hold() {
    let mut on_both_sides = [0_u32; 2];
    for seed in 0..4_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        for world in [World::Geodetic, World::Planar] {
            let (area, near) = random_area(&mut rng, world);
            let ball = area.ball(world, Some(&near)).unwrap();
            for round in 0..12 {
                let around = (round % 4 != 0).then_some(&near);
                let position = random_position(&mut rng, world, around);
                let outside_m = area.outside_m(world, Some(&near), &position);
                let held = area.holds(world, Some(&near), &position);
                assert_eq!(outside_m == 0.0, held, "seed {seed} {area:?} {position:?} {outside_m:e}");
                assert!(outside_m >= 0.0, "seed {seed} {outside_m}");
                assert!(!held || ball.holds(position.point()), "seed {seed} {area:?} {position:?} {ball:?}");
                on_both_sides[usize::from(held)] += 1;
            }
        }
    }
    assert!(on_both_sides.iter().all(|count| *count > 10_000), "{on_both_sides:?}");
}

#[test]
fn outside_grows_no_faster_than_the_way() {
    let mut compared = 0;
    for seed in 0..4_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        for world in [World::Geodetic, World::Planar] {
            let (area, near) = random_area(&mut rng, world);
            let here = random_position(&mut rng, world, Some(&near));
            let there = random_position(&mut rng, world, Some(&here));
            let way_m = world.distance_m(&here, &there);
            let [from, to] = [&here, &there].map(|position| area.outside_m(world, Some(&near), position));
            let slack_m = 2.0 * EDGE_TOLERANCE_M + 1e-5;
            assert!(
                (from - to).abs() <= way_m + slack_m,
                "seed {seed} {area:?} {here:?} {there:?} {from} {to}"
            );
            compared += u32::from(from > 0.0 && to > 0.0);
        }
    }
    assert!(compared > 2_000, "{compared}");
}

/// The distance to an edge that is straight in the numbers: many places on it, and a search around each that is
/// nearer than its neighbours.
fn sampled_distance_m(world: World, [from, to]: [[f64; 2]; 2], position: &Position) -> f64 {
    const STEPS: u32 = 1_000;
    let distance = |share: f64| {
        let numbers = [0, 1].map(|axis| from[axis] + (to[axis] - from[axis]) * share);
        world.distance_m(&world.position(&numbers.map(|n| n.clamp(-1e9, 1e9))).unwrap(), position)
    };
    let share = |step: u32| f64::from(step) / f64::from(STEPS);
    let distances: Vec<f64> = (0..=STEPS).map(|step| distance(share(step))).collect();
    let mut least = distances.iter().copied().fold(f64::INFINITY, f64::min);
    for step in 1..STEPS {
        let index = step as usize;
        if distances[index] <= distances[index - 1] && distances[index] <= distances[index + 1] {
            let (mut low, mut high) = (share(step - 1), share(step + 1));
            for _ in 0..80 {
                let (left, right) = (low + (high - low) * 0.4, low + (high - low) * 0.6);
                if distance(left) <= distance(right) { high = right } else { low = left }
            }
            least = least.min(distance(f64::midpoint(low, high)));
        }
    }
    // The ends of the edge have only one neighbour.
    for (mut low, mut high) in [(0.0, share(1)), (share(STEPS - 1), 1.0)] {
        for _ in 0..80 {
            let (left, right) = (low + (high - low) * 0.4, low + (high - low) * 0.6);
            if distance(left) <= distance(right) { high = right } else { low = left }
        }
        least = least.min(distance(f64::midpoint(low, high)));
    }
    least
}

#[test]
fn polygons_agree_with_places_along_their_edges() {
    let mut compared = 0;
    for seed in 0..250 {
        let mut rng = StdRng::seed_from_u64(seed);
        for world in [World::Geodetic, World::Planar] {
            let members = random_members(&mut rng, world);
            let area = polygon(world, &members);
            let near = world.position(&members[0][0]).unwrap();
            for around in [None, Some(&near), Some(&near)] {
                let position = random_position(&mut rng, world, around);
                let outside_m = area.outside_m(world, None, &position);
                if outside_m == 0.0 {
                    continue;
                }
                let edges = members.iter().flat_map(|ring| ring.windows(2));
                let sampled_m = edges
                    .map(|edge| sampled_distance_m(world, [edge[0], edge[1]], &position))
                    .fold(f64::INFINITY, f64::min);
                let off_m = (outside_m - sampled_m).abs();
                // Numbers of up to 1e7 metres or 180 degrees are rounded to nanometres, and a search in a flat
                // valley stops early.
                assert!(
                    off_m <= EDGE_TOLERANCE_M + 1e-5,
                    "seed {seed} {members:?} {position:?} {outside_m} {sampled_m}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 800, "{compared}");
}

#[test]
fn corridors_agree_with_a_search_along_the_line() {
    let mut compared = 0;
    for seed in 0..4_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        for world in [World::Geodetic, World::Planar] {
            let line: Vec<Position> =
                std::iter::successors(Some(random_position(&mut rng, world, None)), |last| {
                    Some(random_position(&mut rng, world, Some(last)))
                })
                .take(4)
                .collect();
            let radius = Radius::new(world, 10_f64.powf(rng.random_range(-3.0..5.0))).unwrap();
            let Ok(corridor) = Corridor::new(world, &line, radius) else { continue };
            let position = random_position(&mut rng, world, Some(&line[1]));
            let outside_m = Area::Corridor(Box::new(corridor)).outside_m(world, None, &position);
            let searched =
                line.windows(2).map(|ends| searched_distance_m(world, [&ends[0], &ends[1]], &position));
            let searched_m = searched.fold(f64::INFINITY, f64::min) - radius.metres();
            let slack_m = 1e-5 + searched_m.abs() * 1e-8;
            assert!(
                (outside_m - searched_m.max(0.0)).abs() <= slack_m,
                "seed {seed} {line:?} {position:?} {outside_m} {searched_m}"
            );
            compared += u32::from(outside_m > 0.0);
        }
    }
    assert!(compared > 2_000, "{compared}");
}

/// Of a geodetic polygon: the metres outside, within the tolerance.
#[track_caller]
fn check(members: &[&[[f64; 2]]], position: [f64; 2], expected_m: f64) {
    let members: Members = members.iter().map(|ring| ring.to_vec()).collect();
    let position = World::Geodetic.position(&position).unwrap();
    let outside_m = polygon(World::Geodetic, &members).outside_m(World::Geodetic, None, &position);
    assert!((outside_m - expected_m).abs() <= EDGE_TOLERANCE_M, "{outside_m} is not {expected_m}");
}

const DEGREE_M: f64 = EARTH_RADIUS_M * std::f64::consts::PI / 180.0;

#[test]
fn an_edge_follows_its_parallel_around_a_pole() {
    let cap: &[[f64; 2]] = &[[-180.0, 80.0], [180.0, 80.0], [180.0, 90.0], [-180.0, 90.0], [-180.0, 80.0]];
    check(&[cap], [33.3, 79.0], DEGREE_M);
    check(&[cap], [-180.0, 70.0], 10.0 * DEGREE_M);
    check(&[cap], [5.0, -90.0], 170.0 * DEGREE_M);
    // From the pole every place of the border of a band is equally far: no search may go through all of them.
    let band: &[[f64; 2]] = &[[-180.0, 60.0], [180.0, 60.0], [180.0, 80.0], [-180.0, 80.0], [-180.0, 60.0]];
    check(&[band], [17.0, 90.0], 10.0 * DEGREE_M);
    check(&[band], [17.0, 89.999], 9.999 * DEGREE_M);
    check(&[&band.repeat(1_000)], [17.0, 90.0], 10.0 * DEGREE_M);
}

#[test]
fn the_antimeridian_is_no_border() {
    let west: &[[f64; 2]] = &[[170.0, -5.0], [180.0, -5.0], [180.0, 5.0], [170.0, 5.0], [170.0, -5.0]];
    let east: &[[f64; 2]] = &[[-180.0, -5.0], [-170.0, -5.0], [-170.0, 5.0], [-180.0, 5.0], [-180.0, -5.0]];
    check(&[west, east], [-169.0, 0.0], DEGREE_M);
    check(&[west], [-179.0, 0.0], DEGREE_M);
    check(&[east], [179.0, 0.0], DEGREE_M);
    check(&[west, east], [180.0, 6.0], DEGREE_M);
}

#[test]
fn a_hole_is_outside_and_its_border_is_not() {
    let square = |reach: f64| {
        [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]]
            .map(|[x, y]: [f64; 2]| World::Planar.position(&[x * reach, y * reach]).unwrap())
            .to_vec()
    };
    let area =
        Area::Polygon(Box::new(Polygon::new(World::Planar, &[vec![square(10.0), square(4.0)]]).unwrap()));
    let outside_m = |x, y| area.outside_m(World::Planar, None, &World::Planar.position(&[x, y]).unwrap());
    assert_eq!(outside_m(1.0, 0.0), 3.0);
    assert_eq!(outside_m(4.0, 0.0), 0.0);
    assert_eq!(outside_m(13.0, 14.0), 5.0);
}

#[test]
fn a_neighbour_among_the_floats_is_outside() {
    let triangle: &[[f64; 2]] = &[[12.0, 12.0], [24.0, 24.0], [30.0, 0.0], [12.0, 12.0]];
    for world in [World::Planar, World::Geodetic] {
        let area = polygon(world, &vec![triangle.to_vec()]);
        let above = world.position(&[18.0, 18.0_f64.next_up()]).unwrap();
        let outside_m = area.outside_m(world, None, &above);
        assert!(outside_m > 0.0 && outside_m <= EDGE_TOLERANCE_M, "{outside_m:e}");
    }
}

#[test]
fn who_follows_nobody_is_nowhere() {
    let world = World::Geodetic;
    let here = world.position(&[9.0, 45.0]).unwrap();
    let following = Area::Following(Radius::new(world, 1e9).unwrap());
    assert_eq!(following.outside_m(world, None, &here), f64::INFINITY);
    assert_eq!(following.ball(world, None), None);
    assert_eq!(following.outside_m(world, Some(&here), &here), 0.0);
    assert_eq!(Area::Everywhere.outside_m(world, None, &here), 0.0);
}

#[test]
fn a_limit_is_passed_where_the_distance_passes_it() {
    let mut on_both_sides = [0_u32; 2];
    for seed in 0..3_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        for world in [World::Geodetic, World::Planar] {
            let (area, near) = random_area(&mut rng, world);
            for round in 0..6 {
                let position = random_position(&mut rng, world, (round % 3 != 0).then_some(&near));
                let outside_m = area.outside_m(world, Some(&near), &position);
                let around = [0.0, 0.5, 1.0 - 1e-7, 1.0, 1.0 + 1e-7, 2.0].map(|share| share * outside_m);
                let beside = [outside_m.next_down().max(0.0), outside_m.next_up()];
                let offsets = [-5e-3, -3e-3, 3e-3, 5e-3].map(|off| (outside_m + off).max(0.0));
                for limit_m in [around.as_slice(), &beside, &offsets, &[2.1e7]].concat() {
                    let is_outside = area.is_outside_by_more_than(world, Some(&near), &position, limit_m);
                    assert_eq!(
                        is_outside,
                        outside_m > limit_m,
                        "seed {seed} {area:?} {position:?} {limit_m}"
                    );
                    on_both_sides[usize::from(is_outside)] += 1;
                }
            }
        }
    }
    assert!(on_both_sides.iter().all(|count| *count > 20_000), "{on_both_sides:?}");
}

/// Whether a place is inside of a ring by the even-odd rule; `None` within so much of an edge.
fn is_inside(ring: &[[f64; 2]], [x, y]: [f64; 2], near: f64) -> Option<bool> {
    let mut inside = false;
    for edge in ring.windows(2) {
        let ([ax, ay], [bx, by]) = (edge[0], edge[1]);
        let (dx, dy) = (bx - ax, by - ay);
        let length_sq = dx * dx + dy * dy;
        let along = if length_sq > 0.0 { ((x - ax) * dx + (y - ay) * dy) / length_sq } else { 0.0 };
        let along = along.clamp(0.0, 1.0);
        if (x - ax - along * dx).hypot(y - ay - along * dy) <= near {
            return None;
        }
        inside ^= (ay > y) != (by > y) && x < ax + (y - ay) * dx / dy;
    }
    Some(inside)
}

/// Where the lines through two edges cross, if that is on both.
fn crossing(one: &[[f64; 2]], other: &[[f64; 2]]) -> Option<[f64; 2]> {
    let [[ax, ay], [bx, by]] = [one[0], [one[1][0] - one[0][0], one[1][1] - one[0][1]]];
    let [[cx, cy], [dx, dy]] = [other[0], [other[1][0] - other[0][0], other[1][1] - other[0][1]]];
    let turn = bx * dy - by * dx;
    let along = ((cx - ax) * dy - (cy - ay) * dx) / turn;
    let beside = ((cx - ax) * by - (cy - ay) * bx) / turn;
    let is_on = |share: f64| (-1e-9..=1.0 + 1e-9).contains(&share);
    (is_on(along) && is_on(beside)).then_some([ax + along * bx, ay + along * by])
}

#[test]
fn holes_that_overlap_repeat_or_lie_outside_agree_with_places_along_their_edges() {
    const STEPS: u32 = 2_000;
    let mut compared = [0_u32; 2];
    for seed in 0..200 {
        let mut rng = StdRng::seed_from_u64(seed);
        let whole = |rng: &mut StdRng, from: i32, to: i32| f64::from(rng.random_range(from..=to));
        let outer = vec![[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0], [0.0, 0.0]];
        let mut rings = vec![outer];
        for _ in 0..rng.random_range(1..=4) {
            let (x, y) = (whole(&mut rng, -3, 12), whole(&mut rng, -3, 12));
            let size = whole(&mut rng, 1, 6);
            let mut hole = if rng.random_bool(0.5) {
                vec![[x, y], [x + size, y], [x + size, y + size], [x, y + size]]
            } else {
                (0..rng.random_range(3..6))
                    .map(|_| [whole(&mut rng, -3, 13), whole(&mut rng, -3, 13)])
                    .collect()
            };
            hole.push(hole[0]);
            rings.push(if rng.random_bool(0.2) { rings[rings.len() - 1].clone() } else { hole });
        }
        let world = World::Planar;
        let at = |numbers: &[f64; 2]| world.position(numbers).unwrap();
        let positions: Vec<Vec<Position>> = rings.iter().map(|ring| ring.iter().map(at).collect()).collect();
        let area = Area::Polygon(Box::new(Polygon::new(world, &[positions]).unwrap()));
        let belongs = |place: [f64; 2]| {
            is_inside(&rings[0], place, 1e-9) != Some(false)
                && rings[1..].iter().all(|hole| is_inside(hole, place, 1e-9) != Some(true))
        };
        let places = rings.iter().flat_map(|ring| ring.windows(2)).flat_map(|edge| {
            (0..=STEPS).map(|step| {
                let share = f64::from(step) / f64::from(STEPS);
                [0, 1].map(|axis| edge[0][axis] + (edge[1][axis] - edge[0][axis]) * share)
            })
        });
        // Where three edges meet, nothing but that place may belong.
        let edges: Vec<&[[f64; 2]]> = rings.iter().flat_map(|ring| ring.windows(2)).collect();
        let pairs = edges.iter().flat_map(|one| edges.iter().map(move |other| (one, other)));
        let crossings = pairs.filter_map(|(one, other)| crossing(one, other));
        let border: Vec<[f64; 2]> = places.chain(crossings).filter(|place| belongs(*place)).collect();
        for _ in 0..30 {
            let place = [rng.random_range(-4.0..14.0), rng.random_range(-4.0..14.0)];
            let outside_m = area.outside_m(world, None, &at(&place));
            let held = belongs(place);
            assert_eq!(outside_m == 0.0, held, "seed {seed} {rings:?} {place:?} {outside_m}");
            compared[usize::from(held)] += 1;
            if !held {
                let distances = border.iter().map(|[x, y]| (x - place[0]).hypot(y - place[1]));
                let sampled_m = distances.fold(f64::INFINITY, f64::min);
                let agrees = outside_m == sampled_m || (outside_m - sampled_m).abs() < 0.01;
                assert!(agrees, "seed {seed} {rings:?} {place:?} {outside_m} {sampled_m}");
            }
        }
    }
    assert!(compared.iter().all(|count| *count > 500), "{compared:?}");
}
