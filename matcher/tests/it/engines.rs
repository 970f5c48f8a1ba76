//! Every engine against the conformance suite and, in random worlds, against the oracle.

use nearcast_matcher::engine::cells::Cells;
use nearcast_matcher::engine::scan::Scan;
use nearcast_matcher::engine::{Engine, MatchRows};
use nearcast_matcher::event::Event;
use nearcast_matcher::fixtures::workload::{Config, Terrain, Workload};
use nearcast_matcher::fixtures::{conformance, random};
use nearcast_matcher::geo::World;

/// Event x filter pairs that an ordinary run compares.
const PAIRS: u64 = 10_000_000;
/// The same with `NEARCAST_SOAK=1`.
const SOAK_PAIRS: u64 = 1_000_000_000;
/// Where the seeds of a soak begin, beyond those of ordinary runs.
const SOAK_SEED: u64 = 1_000_000;

fn scan(world: World) -> Box<dyn Engine> {
    Box::new(Scan::new(world))
}

fn cells(world: World) -> Box<dyn Engine> {
    Box::new(Cells::new(world))
}

/// Compares the answers of two engines, and says how many pairs they have.
fn compared(engines: &mut [Box<dyn Engine>; 2], events: &[Event], config: &Config) -> usize {
    let answers = engines.each_mut().map(|engine| {
        let mut rows = MatchRows::new();
        engine.match_batch(&events.iter().collect::<Vec<_>>(), &mut rows).unwrap();
        rows
    });
    assert_eq!(answers[0], answers[1], "{config:?}");
    answers[0].pairs_count()
}

#[test]
fn scan_passes_the_conformance_suite() {
    conformance::check(&scan);
}

#[test]
fn cells_passes_the_conformance_suite() {
    conformance::check(&cells);
}

#[test]
fn cells_answers_what_scan_answers_in_random_worlds() {
    let soak = std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1");
    let (first_seed, pairs) = if soak { (SOAK_SEED, SOAK_PAIRS) } else { (0, PAIRS) };
    let tally = random::run_pairs(&cells, first_seed, pairs).unwrap_or_else(|failure| panic!("{failure}"));
    println!("compared {tally:?}, 0 mismatches");
    assert!(tally.pairs >= pairs, "{tally:?}");
    // Worlds in which hardly anything matches or changes would prove little.
    assert!(tally.matches >= pairs / 100, "{tally:?}");
    assert!(tally.changes + tally.moves >= pairs / 1_000, "{tally:?}");
}

/// Filters that combine names in more ways than clusters of names can follow, installed, removed and replaced.
#[test]
fn cells_answers_what_scan_answers_when_names_are_combined_at_random() {
    let config = |names, constraints, attributes| Config {
        subscriptions: 400,
        coverage: 0.8,
        selectivity: 0.002,
        names,
        topics: 1,
        constraints,
        attributes,
        ..Config::default()
    };
    for config in [config(40, 1..=5, 25..=40), config(12, 1..=9, 8..=12), config(7, 2..=7, 5..=7)] {
        let workload = Workload::new(config).unwrap();
        let events: Vec<Event> = (0..200).map(|index| workload.event(index)).collect();
        let mut engines = [scan(workload.world()), cells(workload.world())];
        let mut matches = 0;
        let mut compare = |engines: &mut _| matches += compared(engines, &events, workload.config());
        let change = |engines: &mut [Box<dyn Engine>; 2], change: &dyn Fn(&mut dyn Engine)| {
            engines.iter_mut().for_each(|engine| change(engine.as_mut()));
        };
        for (id, subscription) in workload.subscriptions() {
            let home = workload.position(workload.home(subscription.client));
            change(&mut engines, &|engine| {
                engine.move_client(subscription.client, Some(home));
                engine.install(id, &subscription).unwrap();
            });
        }
        compare(&mut engines);
        for (id, _) in workload.subscriptions().filter(|(id, _)| id.0 % 3 != 0) {
            change(&mut engines, &|engine| assert!(engine.remove(id)));
        }
        compare(&mut engines);
        // Each takes the place, and the conditions, of its neighbour.
        let all: Vec<_> = workload.subscriptions().collect();
        for ((id, _), (_, neighbour)) in all.iter().zip(all.iter().skip(1)) {
            change(&mut engines, &|engine| engine.install(*id, neighbour).unwrap());
        }
        compare(&mut engines);
        assert!(matches > 1_000, "{matches} matches prove little");
    }
}

/// Many areas around every event, so that cells are crowded; clients go a little way, far away, and leave.
#[test]
fn cells_answers_what_scan_answers_where_many_areas_overlap() {
    let plane = Terrain::Plane { side_m: 20_000.0 };
    let region = Terrain::Region { lon: 9.19, lat: 71.0, side_m: 20_000.0 };
    for (terrain, coverage) in [(plane, 0.005), (plane, 0.02), (plane, 0.1), (region, 0.005), (region, 0.1)] {
        let config = Config {
            subscriptions: 2_000,
            coverage,
            selectivity: 0.1,
            names: 10,
            topics: 2,
            terrain,
            ..Config::default()
        };
        let workload = Workload::new(config).unwrap();
        let world = workload.world();
        let events: Vec<Event> = (0..120).map(|index| workload.event(index)).collect();
        let mut engines = [scan(world), cells(world)];
        let mut matches = 0;
        let mut compare = |engines: &mut _| matches += compared(engines, &events, workload.config());
        let move_client = |engines: &mut [Box<dyn Engine>; 2], client, spot| {
            let position = workload.position(spot);
            engines.iter_mut().for_each(|engine| engine.move_client(client, Some(position)));
        };
        for (id, subscription) in workload.subscriptions() {
            engines.iter_mut().for_each(|engine| engine.install(id, &subscription).unwrap());
            move_client(&mut engines, subscription.client, workload.home(subscription.client));
        }
        compare(&mut engines);
        for (step, (_, subscription)) in (0..).zip(workload.subscriptions()) {
            let home = workload.home(subscription.client);
            move_client(&mut engines, subscription.client, workload.step(step, home, 200.0));
        }
        compare(&mut engines);
        for (client, spot) in (0..3_000).map(|index| workload.jump(index)) {
            move_client(&mut engines, client, spot);
        }
        compare(&mut engines);
        for (id, _) in workload.subscriptions().filter(|(id, _)| id.0 % 20 != 0) {
            assert!(engines.iter_mut().all(|engine| engine.remove(id)));
        }
        compare(&mut engines);
        // Crowds have gone; those that are left go on, and then crowds come again.
        for (client, spot) in (3_000..9_000).map(|index| workload.jump(index)) {
            move_client(&mut engines, client, spot);
        }
        compare(&mut engines);
        for (id, subscription) in workload.subscriptions() {
            engines.iter_mut().for_each(|engine| engine.install(id, &subscription).unwrap());
        }
        for (client, spot) in (9_000..12_000).map(|index| workload.jump(index)) {
            move_client(&mut engines, client, spot);
        }
        compare(&mut engines);
        assert!(matches > 1_000, "{matches} matches prove little");
    }
}
