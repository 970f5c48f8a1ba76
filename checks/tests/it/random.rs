//! Engines against their oracle: random formulas over random worlds, and GAIN's families of shapes.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use checks::engine::{Concurrent, Incremental, Sequential};
use checks::{Binding, Bounds, Check, Checker, Clock, Document, Engine, Kind, Link, Sets};
use matcher::World;
use rand::Rng;
use rand::rngs::SmallRng;

use crate::shapes::{FAMILIES, shaped};
use crate::world;

/// Runs of a random test: a second or two.
const RUNS: u64 = 6_000;

/// Runs in the long form.
const SOAK_RUNS: u64 = 1_000_000;

fn runs() -> u64 {
    if crate::is_soak() { SOAK_RUNS } else { RUNS }
}

/// All engines over one check; the first is the oracle.
fn engines(check: &Arc<Check>, with_threads: bool) -> Vec<Box<dyn Engine>> {
    let bounds = Bounds::default();
    let mut engines: Vec<Box<dyn Engine>> = vec![
        Box::new(Sequential::new(check.clone(), bounds)),
        Box::new(Incremental::new(check.clone(), bounds)),
    ];
    if with_threads {
        let two = NonZeroUsize::new(2).expect("two is not zero");
        engines.push(Box::new(Concurrent::new(check.clone(), bounds, two).splitting_from(2)));
    }
    engines
}

fn set(links: Vec<Link>) -> BTreeSet<Link> {
    let count = links.len();
    let set: BTreeSet<_> = links.into_iter().collect();
    assert_eq!(set.len(), count, "a link is told once");
    set
}

/// Lets random events come and go, and compares every answer.
fn compare(
    random: &mut SmallRng,
    world: World,
    check: &Arc<Check>,
    events: usize,
    with_threads: bool,
) -> Result<usize, String> {
    let mut engines = engines(check, with_threads);
    let mut sets = Sets::new(check);
    let mut now_ms = 1_000_000;
    let mut links_count = 0;
    for event in 0..events {
        let arrival = world::random_arrival(random, world, now_ms);
        now_ms = arrival.arrival_ms;
        if !sets.admit(check, &arrival) {
            continue;
        }
        let mut expected = None;
        for engine in &mut engines {
            let evaluation = engine.evaluate(&sets).map_err(|error| error.to_string())?;
            let answer = (evaluation.violated, set(evaluation.told), set(engine.links(&sets)));
            assert_eq!(engine.links_count(), answer.2.len(), "{}", engine.name());
            match &expected {
                None => {
                    links_count += answer.2.len();
                    expected = Some(answer);
                }
                Some(expected) if *expected == answer => {}
                Some(expected) => {
                    return Err(format!("event {event}, {}: {answer:?}, not {expected:?}", engine.name()));
                }
            }
        }
        sets.settle();
        if random.random_bool(0.1) {
            sets.retract();
        }
    }
    Ok(links_count)
}

#[test]
fn engines_agree_about_random_formulas() {
    let mut links_count = 0;
    for seed in 0..runs() {
        let mut random = world::generator(seed);
        let world = if seed % 4 == 0 { World::Geodetic } else { World::Planar };
        let (document, check) = world::check(&mut random, world);
        let found = compare(&mut random, world, &check, 16, seed % 16 == 0);
        links_count += found.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{document:#?}"));
    }
    assert!(links_count > 1_000, "{links_count}");
}

/// Links as the events that their bindings name.
fn named(checker: &Checker<usize>, links: &[Link]) -> BTreeSet<Vec<(usize, usize)>> {
    let event = |binding: &Binding| *checker.event(binding).expect("it is there").1;
    let named =
        |link: &Link| link.bindings().iter().map(|binding| (binding.variable, event(binding))).collect();
    links.iter().map(named).collect()
}

#[test]
fn a_checker_goes_on_from_what_another_held() {
    for seed in 0..runs() / 8 {
        let mut random = world::generator(seed);
        let (document, check) = world::check(&mut random, World::Planar);
        let new = || Checker::new(check.clone(), Kind::Incremental, Bounds::default());
        let mut checker = new();
        let mut now_ms = 1_000_000;
        let mut take = |checker: &mut Checker<usize>, event| {
            let arrival = world::random_arrival(&mut random, World::Planar, now_ms);
            now_ms = arrival.arrival_ms;
            let outcome = checker.take(event, &arrival).expect("few links");
            (outcome.map(|outcome| (outcome.violated, named(checker, &outcome.told))), arrival)
        };
        for event in 0..10 {
            take(&mut checker, event);
        }
        let mut restarted = new();
        for (held, event) in checker.held() {
            restarted.take(*event, &held.arrival()).expect("few links");
        }
        for event in 10..20 {
            let (expected, arrival) = take(&mut checker, event);
            let outcome = restarted.take(event, &arrival).expect("few links");
            let found = outcome.map(|outcome| (outcome.violated, named(&restarted, &outcome.told)));
            assert_eq!(found, expected, "seed {seed}, event {event}: {document:#?}");
        }
    }
}

#[test]
fn engines_agree_where_events_are_withdrawn() {
    let mut withdrawn_count = 0;
    for seed in 0..runs() / 8 {
        let mut random = world::generator(seed);
        let (document, check) = world::check(&mut random, World::Planar);
        let new = |kind| Checker::new(check.clone(), kind, Bounds::default());
        let mut checkers = [new(Kind::Sequential), new(Kind::Incremental)];
        let mut now_ms = 1_000_000;
        for event in 0..20 {
            let arrival = world::random_arrival(&mut random, World::Planar, now_ms);
            now_ms = arrival.arrival_ms;
            let [expected, found] = checkers.each_mut().map(|checker| {
                let outcome = checker.take(event, &arrival).expect("few links");
                outcome.map(|outcome| (outcome.violated, named(checker, &outcome.told)))
            });
            assert_eq!(found, expected, "seed {seed}, event {event}: {document:#?}");
            if random.random_bool(0.3) {
                let wanted = random.random_range(0..=event);
                let [expected, found] = checkers
                    .each_mut()
                    .map(|checker| checker.withdraw(|other| *other == wanted).expect("few links"));
                assert_eq!(found, expected);
                assert!(
                    checkers.iter().all(|checker| checker.held().iter().all(|(_, other)| **other != wanted))
                );
                withdrawn_count += u32::from(found);
            }
        }
    }
    assert!(withdrawn_count > 100, "{withdrawn_count}");
}

#[test]
fn engines_agree_about_the_shapes_of_the_paper() {
    for family in FAMILIES {
        for nth in 0..3 * runs().div_ceil(RUNS) {
            let mut random = world::generator(nth);
            let formula = shaped(&mut random, &family);
            let contexts = world::contexts(&mut random);
            let document = Document { contexts, formula, clock: Clock::Event };
            let check =
                Check::new(World::Planar, &document).unwrap_or_else(|error| panic!("{error}: {document:?}"));
            let found = compare(&mut random, World::Planar, &Arc::new(check), 60, nth < 3);
            found.unwrap_or_else(|error| panic!("{}, seed {nth}: {error}\n{document:#?}", family.name));
        }
    }
}
