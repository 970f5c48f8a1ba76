//! The matching against its oracle, after each of many random changes.

use groups::matching::{Bounds, Candidate, Matching, Naive, RoleSet};
use matcher::World;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};

use super::is_soak;
use super::world::{self, Written};

/// Changes of a run.
const CHANGES: usize = 40;

/// Changes in the long form.
const SOAK_CHANGES: usize = 1_000_000;

fn runs(short: u64) -> u64 {
    if is_soak() { (SOAK_CHANGES / CHANGES) as u64 } else { short }
}

/// What is put, by the number of an object.
type Put = Vec<Option<(RoleSet, Candidate)>>;

/// Puts and removes objects at random, and compares everything after each change; what is put in the end, and how much was told.
fn compare(
    random: &mut SmallRng,
    written: &Written,
    objects: u32,
    changes: usize,
    bounds: Bounds,
) -> (Put, usize, usize) {
    let definition = written.definition();
    let mut matching = Matching::new(definition.clone(), bounds);
    let mut naive = Naive::new(definition);
    let mut put: Put = vec![None; objects as usize];
    let (mut told, mut refused) = (0, 0);
    for change in 0..changes {
        let object = random.random_range(0..objects);
        let name = world::name(object);
        let before = world::state(&matching);
        let roles = world::roles(random, written.roles);
        let candidate = world::candidate(random, written.world);
        // Now and then most leave.
        let is_put = random.random_bool(if change % 200 < 120 { 0.9 } else { 0.1 });
        let found =
            if is_put { matching.put(&name, roles, candidate.clone()) } else { matching.remove(&name) };
        let Ok(found) = found else {
            refused += 1;
            assert_eq!(world::state(&matching), before, "change {change}: a refused change changes nothing");
            continue;
        };
        let expected = if is_put { naive.put(&name, roles, candidate.clone()) } else { naive.remove(&name) };
        put[object as usize] = (is_put && !roles.is_empty()).then_some((roles, candidate));
        assert_eq!(world::shown(&found), world::shown(&expected), "change {change}");
        assert_eq!(world::state(&matching), world::expected(&naive), "change {change}");
        told += found.len();
    }
    (put, told, refused)
}

fn print_on_panic<T>(seed: u64, written: &Written, run: impl FnOnce() -> T) -> T {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    result.unwrap_or_else(|panic| {
        eprintln!("seed {seed}: {written:#?}");
        std::panic::resume_unwind(panic)
    })
}

fn world_of(seed: u64) -> World {
    if seed.is_multiple_of(3) { World::Geodetic } else { World::Planar }
}

#[test]
fn groups_and_consistency_are_those_of_the_oracle() {
    let mut told_count = 0;
    for seed in 0..runs(1_200) {
        let mut random = world::generator(seed);
        let roles = random.random_range(1..=4);
        let written = Written::random(&mut random, world_of(seed), roles);
        let objects = [12, 12, 10, 8][roles - 1];
        print_on_panic(seed, &written, || {
            let (put, told, refused) = compare(&mut random, &written, objects, CHANGES, Bounds::default());
            assert_eq!(refused, 0);
            told_count += told;
            follows_from_candidates(&mut random, &written, &put);
        });
    }
    assert!(told_count > 10_000, "{told_count}");
}

/// Groups are the same in whatever order the candidates are put.
fn follows_from_candidates(random: &mut SmallRng, written: &Written, put: &Put) {
    let mut naive = Naive::new(written.definition());
    let mut matching = Matching::new(written.definition(), Bounds::default());
    let mut all: Vec<_> =
        (0..).zip(put).filter_map(|(object, put)| put.clone().map(|put| (object, put))).collect();
    all.shuffle(random);
    for (object, (roles, candidate)) in all {
        naive.put(&world::name(object), roles, candidate.clone());
        matching.put(&world::name(object), roles, candidate).expect("few");
    }
    assert_eq!(world::state(&matching), world::expected(&naive), "put in another order");
}

/// So many groups that most are behind the cut, and some are looked for again.
#[test]
fn groups_behind_the_cut_come_back() {
    const LOOSE: [&str; 3] = ["DISTANCE(taxi, rider) <= 30", "taxi.x <= rider.y", "taxi.x + rider.y > 0"];
    for seed in 0..runs(400) / 25 {
        let mut random = world::generator(seed);
        let roles = if seed % 4 == 0 { 3 } else { 2 };
        let mut written = Written::random(&mut random, world_of(seed), roles);
        written.conditions = vec![(*LOOSE.choose(&mut random).expect("some")).to_owned()];
        written.limit = random.random_range(1..4);
        print_on_panic(seed, &written, || {
            compare(&mut random, &written, if roles == 2 { 60 } else { 36 }, 200, Bounds::default());
        });
    }
}

/// An object that comes brings more groups than are kept; then all leave in turn.
#[test]
fn one_object_brings_many_groups() {
    for seed in 0..runs(40) {
        let mut random = world::generator(seed);
        let order = ["DISTANCE(taxi, rider)", "taxi.x", "stand.y - rider.x", "taxi.k"].choose(&mut random);
        let written = Written {
            world: world_of(seed),
            roles: 3,
            conditions: vec!["taxi.x + rider.y > 0".to_owned()],
            order: order.filter(|_| seed % 4 > 0).map(|order| (*order).to_owned()),
            limit: random.random_range(1..4),
        };
        print_on_panic(seed, &written, || {
            let mut naive = Naive::new(written.definition());
            let mut matching = Matching::new(written.definition(), Bounds::default());
            for object in 0..52 {
                let roles = RoleSet::EMPTY.with([0, 1, 2][object as usize / 25]);
                let candidate = world::candidate(&mut random, written.world);
                let found = matching.put(&world::name(object), roles, candidate.clone()).expect("few");
                assert_eq!(found, naive.put(&world::name(object), roles, candidate));
            }
            let mut objects: Vec<_> = (0..50).collect();
            objects.shuffle(&mut random);
            for object in objects {
                let found = matching.remove(&world::name(object)).expect("few");
                assert_eq!(found, naive.remove(&world::name(object)));
                assert_eq!(world::state(&matching), world::expected(&naive));
            }
        });
    }
}

#[test]
fn a_change_past_a_bound_changes_nothing() {
    let mut refused_count = 0;
    for seed in 0..runs(200) {
        let mut random = world::generator(seed);
        let roles = random.random_range(2..=4);
        let written = Written::random(&mut random, world_of(seed), roles);
        let bounds = Bounds {
            candidates_max: random.random_range(5..30),
            pairs_max: random.random_range(3..60),
            looks_max: random.random_range(2..80),
        };
        print_on_panic(seed, &written, || {
            refused_count += compare(&mut random, &written, 9, CHANGES, bounds).2;
        });
    }
    assert!(refused_count > 100, "{refused_count}");
}

#[test]
fn what_stands_in_the_way_adds_up() {
    for seed in 0..runs(60) {
        let mut random = world::generator(seed);
        let written = Written::random(&mut random, world_of(seed), 3);
        let mut matching = Matching::new(written.definition(), Bounds::default());
        for object in 0..12 {
            let roles = world::roles(&mut random, 3);
            let put = matching.put(&world::name(object), roles, world::candidate(&mut random, written.world));
            put.expect("few");
        }
        let counts = matching.counts();
        let mut consistent = [0; 3];
        for object in 0..12 {
            for standing in matching.why(&world::name(object)) {
                let is_supported = standing.partners.iter().all(|partners| partners.consistent > 0);
                assert_eq!(standing.is_consistent, standing.failed.is_empty() && is_supported, "seed {seed}");
                consistent[standing.role] += usize::from(standing.is_consistent);
                for partners in &standing.partners {
                    let least = partners.left.iter().map(|left| left.alone).min().expect("a condition");
                    assert!(partners.consistent <= partners.fitting && partners.fitting <= least);
                    assert_eq!(partners.left.last().map(|left| left.together), Some(partners.fitting));
                    assert!(least <= partners.candidates);
                }
            }
        }
        assert_eq!(consistent.to_vec(), counts.iter().map(|count| count.consistent).collect::<Vec<_>>());
    }
}
