//! Random formulas over random worlds, and the paper's shapes, in all variants.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use checks::engine::{Evaluation, Sequential};
use checks::{Binding, Bounds, Check, Checker, Clock, Document, Engine, Kind, Link, Overflow, Sets, Step};
use checks_gpu::{Figures, Gpu, Kernels, Settings};
use matcher::World;
use rand::Rng;
use rand::rngs::SmallRng;

use crate::shapes::{FAMILIES, shaped};
use crate::world;

/// Random checks: a second or two.
const RUNS: u64 = 300;

/// Random checks in the long form.
const SOAK_RUNS: u64 = 1_000_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

fn runs() -> u64 {
    let is_soak = std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1");
    number("NEARCAST_CHECKS_RUNS").unwrap_or(if is_soak { SOAK_RUNS } else { RUNS })
}

/// Seeds of one thread out of several, until the seconds that were asked for are over.
fn seeds(thread: u64, threads: u64) -> impl Iterator<Item = u64> {
    let until =
        number("NEARCAST_CHECKS_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    (thread..runs())
        .step_by(usize::try_from(threads).expect("few"))
        .take_while(move |_| until.is_none_or(|until| Instant::now() < until))
}

/// Runs a test on several threads, or on one where the device does one thing at a time.
fn on_threads(test: impl Fn(u64, u64) -> Seen + Sync) -> Seen {
    let threads = if crate::is_on_device() { 8 } else { 1 };
    let mut all = Seen::default();
    std::thread::scope(|scope| {
        let test = &test;
        let spawned: Vec<_> = (0..threads).map(|thread| scope.spawn(move || test(thread, threads))).collect();
        for thread in spawned {
            all.add(&thread.join().expect("all answers are right"));
        }
    });
    all
}

/// What evaluations of a test came to.
#[derive(Default)]
struct Seen {
    formulas: u64,
    /// Evaluations: pairs of a formula and a world.
    pairs: u64,
    links: u64,
    violations: u64,
    figures: Figures,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.formulas += other.formulas;
        self.pairs += other.pairs;
        self.links += other.links;
        self.violations += other.violations;
        self.figures(other.figures);
    }

    fn figures(&mut self, figures: Figures) {
        self.figures.on_device += figures.on_device;
        self.figures.on_host += figures.on_host;
        self.figures.doubts += figures.doubts;
        self.figures.at_once += figures.at_once;
        self.figures.entries += figures.entries;
    }

    fn show(&self, kernels: &Kernels) {
        let Self { formulas, pairs, links, violations, figures } = self;
        let Figures { on_device, on_host, doubts, at_once, .. } = figures;
        eprintln!(
            "{}: {formulas} formulas, {pairs} pairs of formula and world: {on_device} evaluations on the device, {at_once} of them several \
             at once, {on_host} not, {doubts} leaves in doubt, {violations} violations, {links} links",
            kernels.device().name()
        );
    }
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
        seen.pairs += 1;
        seen.links += expected.2.len() as u64;
        seen.violations += u64::from(expected.0);
        sets.settle();
        if random.random_bool(0.1) {
            sets.retract();
        }
    }
    seen.formulas += 1;
    seen.figures(engine.figures());
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
    for seed in seeds(thread, threads) {
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
    let seen = on_threads(|thread, threads| random_formulas(&kernels, thread, threads));
    seen.show(&kernels);
    let Figures { on_device, on_host, doubts, .. } = seen.figures;
    // Some formulas have no leaf that a device leaves to the processor.
    let doubts_are_seen = doubts > 0 || seen.pairs < 5_000;
    assert!(
        on_device > 40 * on_host && doubts_are_seen && seen.violations > seen.formulas / 4,
        "the device does the work"
    );
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
    let figures = Arc::new(Mutex::new(Figures::default()));
    let engine = Watched { engine, figures: figures.clone() };
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
                assert_eq!(told.len(), outcome.told.len(), "a link comes once");
                (outcome.violated, told)
            }));
            ControlFlow::Continue(())
        });
        if let Some(at) = (0..expected.len()).find(|at| expected[*at] != found[*at]) {
            let first = number - count;
            return Err(format!(
                "event {} after {first}: {:?}, not {:?}",
                first + at,
                found[at],
                expected[at]
            ));
        }
        let [all, wanted] = [&checker, &oracle].map(|checker| named(checker, &checker.links()));
        if all != wanted {
            return Err(format!("before event {number}: {all:?}, not {wanted:?}"));
        }
        for (violated, told) in expected.iter().flatten() {
            seen.pairs += 1;
            seen.links += told.len() as u64;
            seen.violations += u64::from(*violated);
        }
        if random.random_bool(0.2) {
            for checker in [&mut oracle, &mut checker] {
                checker.retract().expect("few links");
            }
        }
    }
    seen.formulas += 1;
    seen.figures(*figures.lock().expect("nobody panics with it"));
    Ok(())
}

/// Links by the events that they bind, which have their own numbers.
fn named(checker: &Checker<usize>, links: &[Link]) -> BTreeSet<Vec<(usize, usize)>> {
    let event = |binding: &Binding| *checker.event(binding).expect("it is there").1;
    let named =
        |link: &Link| link.bindings().iter().map(|binding| (binding.variable, event(binding))).collect();
    links.iter().map(named).collect()
}

/// An engine that goes into a checker, with its figures outside.
struct Watched {
    engine: Gpu,
    figures: Arc<Mutex<Figures>>,
}

impl Engine for Watched {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn evaluate(&mut self, sets: &Sets) -> Result<Evaluation, Overflow> {
        let evaluation = self.engine.evaluate(sets);
        *self.figures.lock().expect("nobody panics with it") = self.engine.figures();
        evaluation
    }

    fn steps_max(&self) -> usize {
        self.engine.steps_max()
    }

    fn evaluate_all(&mut self, sets: &Sets, steps: &[Step]) -> Option<Vec<Evaluation>> {
        let evaluations = self.engine.evaluate_all(sets, steps);
        *self.figures.lock().expect("nobody panics with it") = self.engine.figures();
        evaluations
    }

    fn links(&self, sets: &Sets) -> Vec<Link> {
        self.engine.links(sets)
    }

    fn links_count(&self) -> usize {
        self.engine.links_count()
    }

    fn clear(&mut self) {
        self.engine.clear();
    }

    fn bytes(&self) -> usize {
        self.engine.bytes()
    }
}

/// Runs of one thread out of several.
fn random_batches(kernels: &Kernels, thread: u64, threads: u64) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds(thread, threads) {
        let mut random = world::generator(seed);
        let world = if seed % 4 == 0 { World::Geodetic } else { World::Planar };
        let (document, check) = world::check(&mut random, world);
        let engine = engine(&check, kernels, Settings::default());
        assert_eq!(engine.refusal_of_batches(), None, "seed {seed}: {document:#?}");
        // Now and then more than a word has states.
        let events = if seed % 8 == 0 { 150 } else { 20 };
        let found = compare_batches(&mut random, world, &check, engine, events, &mut seen);
        found.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{document:#?}"));
    }
    seen
}

#[test]
fn batches_of_random_events_have_the_answers_of_each_by_itself() {
    let kernels = crate::kernels(&crate::device());
    let seen = on_threads(|thread, threads| random_batches(&kernels, thread, threads));
    seen.show(&kernels);
    let Figures { on_host, doubts, at_once, .. } = seen.figures;
    // Some formulas have no leaf that a device leaves to the processor.
    let doubts_are_seen = doubts > 0 || seen.pairs < 5_000;
    assert!(
        10 * at_once > 9 * seen.pairs && at_once > 40 * on_host && doubts_are_seen,
        "the device takes them several at once"
    );
}

#[test]
fn the_papers_shapes_have_the_oracles_answers_in_all_variants() {
    let kernels = crate::kernels(&crate::device());
    // A sanitizer takes a hundred times as long for each event.
    let events = if runs() < RUNS { 8 } else { 40 };
    for family in FAMILIES {
        for nth in 0..runs().min(3) {
            for settings in crate::variants() {
                let mut random = world::generator(nth);
                let formula = shaped(&mut random, &family);
                let contexts = world::contexts(&mut random);
                let document = Document { contexts, formula, clock: Clock::Event };
                let check = Arc::new(Check::new(World::Planar, &document).expect("it is sound"));
                let mut engine = engine(&check, &kernels, settings);
                let mut seen = Seen::default();
                let found = compare(&mut random, World::Planar, &check, &mut engine, events, &mut seen);
                found.unwrap_or_else(|error| {
                    panic!("{} {nth}, {settings:?}: {error}\n{document:#?}", family.name)
                });
                assert_eq!((engine.refusal(), seen.figures.on_host), (None, 0), "{document:#?}");
            }
        }
    }
}
