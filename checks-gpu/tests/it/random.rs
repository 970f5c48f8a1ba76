//! Random formulas over random worlds, and the paper's shapes, in all variants.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use checks::engine::Sequential;
use checks::{Binding, Bounds, Check, Checker, Clock, Document, Engine, Kind, Link, Sets};
use checks_gpu::{Figures, Gpu, Kernels, Settings};
use matcher::World;
use rand::Rng;
use rand::rngs::SmallRng;

use crate::shapes::{FAMILIES, shaped};
use crate::world;

/// Random checks: a second or two.
const RUNS: u64 = 300;

fn runs() -> u64 {
    let asked = std::env::var("NEARCAST_CHECKS_RUNS").ok().and_then(|runs| runs.parse().ok());
    asked.unwrap_or(RUNS)
}

/// What evaluations of a test came to.
#[derive(Default)]
struct Seen {
    links: usize,
    violations: usize,
    figures: Figures,
}

/// Lets random events come and go, and compares every answer with the oracle's.
fn compare(
    random: &mut SmallRng,
    world: World,
    check: &Arc<Check>,
    engine: &mut Gpu,
    events: usize,
    seen: &mut Seen,
) -> Result<(), String> {
    let set = |links: Vec<Link>| links.into_iter().collect::<BTreeSet<_>>();
    let mut oracle = Sequential::new(check.clone(), Bounds::default());
    let mut sets = Sets::new(check);
    let mut now_ms = 1_000_000;
    for event in 0..events {
        let arrival = world::random_arrival(random, world, now_ms);
        now_ms = arrival.arrival_ms;
        if !sets.admit(check, &arrival) {
            continue;
        }
        let expected = oracle.evaluate(&sets).map_err(|error| error.to_string())?;
        let found = engine.evaluate(&sets).map_err(|error| error.to_string())?;
        let answers = [(expected, oracle.links(&sets)), (found, engine.links(&sets))];
        let [expected, found] = answers.map(|(said, links)| (said.violated, set(said.told), set(links)));
        if expected != found {
            return Err(format!("event {event}: {found:?}, not {expected:?}"));
        }
        seen.links += expected.2.len();
        seen.violations += usize::from(expected.0);
        sets.settle();
        if random.random_bool(0.1) {
            sets.retract();
        }
    }
    let figures = engine.figures();
    seen.figures.on_device += figures.on_device;
    seen.figures.on_host += figures.on_host;
    seen.figures.doubts += figures.doubts;
    Ok(())
}

fn engine(check: &Arc<Check>, kernels: &Kernels, settings: Settings) -> Gpu {
    Gpu::new(check.clone(), Bounds::default(), kernels, settings)
}

/// Runs of one thread out of several.
fn random_formulas(kernels: &Kernels, thread: u64, threads: u64) -> Seen {
    let variants = crate::variants();
    // A device takes a hundred microseconds however small the world is.
    let events = if crate::is_on_device() { 64 } else { 16 };
    let mut seen = Seen::default();
    for seed in (thread..runs()).step_by(usize::try_from(threads).expect("few")) {
        let mut random = world::generator(seed);
        let world = if seed % 4 == 0 { World::Geodetic } else { World::Planar };
        let (document, check) = world::check(&mut random, world);
        let settings = variants[usize::try_from(seed % variants.len() as u64).expect("small")];
        let mut engine = engine(&check, kernels, settings);
        assert_eq!(engine.refusal(), None, "seed {seed}: {document:#?}");
        let found = compare(&mut random, world, &check, &mut engine, events, &mut seen);
        found.unwrap_or_else(|error| panic!("seed {seed}, {settings:?}: {error}\n{document:#?}"));
    }
    seen
}

#[test]
fn random_formulas_have_the_oracles_answers() {
    let kernels = crate::kernels(&crate::device());
    let threads = if crate::is_on_device() { 8 } else { 1 };
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let kernels = &kernels;
                    move || random_formulas(kernels, thread, threads)
                })
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join().expect("all answers are right")).collect()
    });
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
    let [on_device, on_host] = [sum(|seen| seen.figures.on_device), sum(|seen| seen.figures.on_host)];
    let [doubts, violations] = [sum(|seen| seen.figures.doubts), sum(|seen| seen.violations as u64)];
    eprintln!(
        "{}: {on_device} evaluations on the device, {on_host} not, {doubts} leaves in doubt, {violations} violations, {} links",
        kernels.device().name(),
        sum(|seen| seen.links as u64)
    );
    assert!(on_device > 40 * on_host && doubts > 0 && violations > runs() / 4, "the device does the work");
}

/// Lets random events come several at once, and compares what each brings, and all links after each of the batches, with what the oracle says
/// when they come one by one.
fn compare_batches(
    random: &mut SmallRng,
    world: World,
    check: &Arc<Check>,
    engine: Gpu,
    events: usize,
    seen: &mut Seen,
) -> Result<(), String> {
    let mut oracle = Checker::new(check.clone(), Kind::Sequential, Bounds::default());
    let mut checker = Checker::with_engine(check.clone(), Box::new(engine));
    let mut now_ms = 1_000_000;
    let mut number = 0;
    while number < events {
        // Batches of one, of less than a word and of several words.
        let count = match random.random_range(0..4) {
            0 => 1,
            1 => events,
            _ => random.random_range(1..events),
        };
        let batch: Vec<_> = (number..number + count)
            .map(|event| {
                let arrival = world::random_arrival(random, world, now_ms);
                now_ms = arrival.arrival_ms;
                (event, arrival)
            })
            .collect();
        number += count;
        let mut expected = Vec::new();
        for (event, arrival) in &batch {
            let outcome = oracle.take(*event, arrival).map_err(|error| error.to_string())?;
            expected.push(outcome.map(|outcome| (outcome.violated, named(&oracle, &outcome.told))));
        }
        let mut found = Vec::new();
        checker.take_all(batch, |checker, taken| {
            let outcome = taken.expect("as few links as the oracle has");
            found.push(outcome.map(|outcome| {
                let told = named(checker, &outcome.told);
                assert_eq!(told.len(), outcome.told.len(), "a link is told once");
                (outcome.violated, told)
            }));
            ControlFlow::Continue(())
        });
        if let Some(at) = (0..expected.len()).find(|at| expected[*at] != found[*at]) {
            let first = number - count;
            return Err(format!("event {} after {first}: {:?}, not {:?}", first + at, found[at], expected[at]));
        }
        let [all, wanted] = [&checker, &oracle].map(|checker| named(checker, &checker.links()));
        if all != wanted {
            return Err(format!("before event {number}: {all:?}, not {wanted:?}"));
        }
        seen.links += expected.iter().flatten().map(|(_, told)| told.len()).sum::<usize>();
        seen.violations += expected.iter().flatten().filter(|(violated, _)| *violated).count();
        if random.random_bool(0.2) {
            [&mut oracle, &mut checker].map(|checker| checker.retract().expect("few links"));
        }
    }
    Ok(())
}

/// Links by the events that they bind, which have their own numbers.
fn named(checker: &Checker<usize>, links: &[Link]) -> BTreeSet<Vec<(usize, usize)>> {
    let event = |binding: &Binding| *checker.event(binding).expect("it is there").1;
    let named =
        |link: &Link| link.bindings().iter().map(|binding| (binding.variable, event(binding))).collect();
    links.iter().map(named).collect()
}

#[test]
fn batches_of_random_events_have_the_answers_of_each_by_itself() {
    let kernels = crate::kernels(&crate::device());
    let mut seen = Seen::default();
    for seed in 0..runs() {
        let mut random = world::generator(seed);
        let world = if seed % 4 == 0 { World::Geodetic } else { World::Planar };
        let (document, check) = world::check(&mut random, world);
        let engine = engine(&check, &kernels, Settings::default());
        assert_eq!(engine.refusal_of_batches(), None, "seed {seed}: {document:#?}");
        let events = if seed % 8 == 0 { 150 } else { 20 };
        let found = compare_batches(&mut random, world, &check, engine, events, &mut seen);
        found.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{document:#?}"));
    }
    eprintln!("{} violations, {} links", seen.violations, seen.links);
}

#[test]
fn the_papers_shapes_have_the_oracles_answers_in_all_variants() {
    let kernels = crate::kernels(&crate::device());
    for family in FAMILIES {
        for nth in 0..3 {
            for settings in crate::variants() {
                let mut random = world::generator(nth);
                let formula = shaped(&mut random, &family);
                let contexts = world::contexts(&mut random);
                let document = Document { contexts, formula, clock: Clock::Event };
                let check = Arc::new(Check::new(World::Planar, &document).expect("it is sound"));
                let mut engine = engine(&check, &kernels, settings);
                let mut seen = Seen::default();
                let found = compare(&mut random, World::Planar, &check, &mut engine, 40, &mut seen);
                found.unwrap_or_else(|error| {
                    panic!("{} {nth}, {settings:?}: {error}\n{document:#?}", family.name)
                });
                assert_eq!((engine.refusal(), seen.figures.on_host), (None, 0), "{document:#?}");
            }
        }
    }
}
