//! The bench itself, tiny: so that it neither rots nor lies.

mod chr;
mod gpu;
mod hostile;
mod live;
mod paper;
mod pickups;

use std::process::Command;

use benches::baseline::counting::Location;
use benches::baseline::{Circle, Prepared};
use benches::engines::contender::{
    Baselines, Contender, ENGINES, Finds, OneByOne, counting_name, engine, fill,
};
use benches::engines::moves::{Travel, Travellers, counting_moves};
use benches::engines::oracle::{Oracle, check};
use benches::engines::race::{Entrant, Events, race};
use benches::engines::scenario::{matching, worlds};
use matcher::fixtures::workload::{Config, Workload};

/// A small part of a scenario, with areas so much larger that events still find something.
fn tiny(config: Config) -> Workload {
    let coverage = (config.coverage * 100.0).min(0.05);
    Workload::new(Config { subscriptions: config.subscriptions / 2_000, coverage, ..config }).unwrap()
}

fn filled(name: &str, workload: &Workload) -> OneByOne {
    let mut engine = engine(name, workload.world()).unwrap();
    fill(engine.as_mut(), workload).unwrap();
    OneByOne::new(engine)
}

#[test]
fn everyone_finds_what_brute_force_finds_in_every_scenario() {
    for scenario in matching(&Config::default()) {
        let workload = tiny(scenario.config);
        let events = Events::new(&workload, 100).unwrap();
        let baselines = Baselines::new(&workload).unwrap();
        let mut entrants = vec![
            Entrant::new("rtree", baselines.rtree(), &events),
            Entrant::new("rtree + content", baselines.rtree_and_content(), &events),
            Entrant::new("counting", baselines.counting().unwrap(), &events),
        ];
        for location in [Location::Ignored, Location::Intervals, Location::Comparisons] {
            let contender = baselines.counting_with(location).unwrap();
            entrants.push(Entrant::new(counting_name(location), contender, &events));
        }
        #[cfg(feature = "atree")]
        entrants.push(Entrant::new("a-tree", baselines.atree().unwrap(), &events));
        entrants.extend(ENGINES.map(|name| Entrant::new(name, filled(name, &workload), &events)));
        let checked = check(&Oracle::new(&workload), &mut entrants, 100).unwrap();
        assert_eq!(checked.events, 100);
        assert!(checked.nearby > 0 && checked.by_content > 0, "{}", scenario.key);
        let timings = race(&mut entrants, 2).unwrap();
        assert!(timings.iter().all(|timing| timing.means_us.len() == 2 && timing.events_ns.len() == 200));
    }
}

#[test]
fn engines_find_what_brute_force_finds_in_every_world() {
    for scenario in worlds(&Config::default()) {
        let workload = tiny(scenario.config);
        let events = Events::new(&workload, 300).unwrap();
        let mut entrants: Vec<_> =
            ENGINES.iter().map(|name| Entrant::new(name, filled(name, &workload), &events)).collect();
        let checked = check(&Oracle::new(&workload), &mut entrants, 300).unwrap();
        assert!(checked.pairs > 0, "{}", scenario.key);
    }
}

#[test]
fn after_moves_the_answers_are_those_of_the_new_places() {
    let workload = tiny(Config::default());
    for name in ENGINES {
        let mut moved = filled(name, &workload);
        let mut travellers = Travellers::new(&workload);
        for travel in [Travel::Jump, Travel::Step(500.0)] {
            let timing = travellers.travel(moved.engine(), travel, 1_000).unwrap();
            assert_eq!(timing.moves_ns.len(), 1_000);
        }
        let mut oracle = Oracle::new(&workload);
        travellers.positions().for_each(|(client, position)| oracle.move_client(client, position));
        let events = Events::new(&workload, 300).unwrap();
        check(&oracle, &mut [Entrant::new(name, moved, &events)], 300).unwrap();
        // Those of the old places are others.
        let unmoved = filled(name, &workload);
        check(&oracle, &mut [Entrant::new(name, unmoved, &events)], 300).unwrap_err();
    }
}

#[test]
fn after_moves_of_its_filters_the_counting_matcher_knows_the_new_places() {
    let workload = tiny(Config::default());
    let baselines = Baselines::new(&workload).unwrap();
    let (circles, _) = baselines.parts();
    let events = Events::new(&workload, 300).unwrap();
    let mut oracle = Oracle::new(&workload);
    let mut entrants = Vec::new();
    for location in [Location::Intervals, Location::Comparisons] {
        let mut contender = baselines.counting_with(location).unwrap();
        for index in 0..200 {
            let (client, spot) = workload.jump(index);
            let position = workload.position(spot);
            oracle.move_client(client, position);
            for filter in client.0 * 10..client.0 * 10 + 10 {
                let to = Circle { centre: [position.x(), position.y()], ..circles[filter as usize] };
                assert!(contender.counting().relocate(filter, to));
            }
        }
        entrants.push(Entrant::new(counting_name(location), contender, &events));
    }
    check(&oracle, &mut entrants, 300).unwrap();
    // Where location comes afterwards there is nothing to relocate.
    let mut contender = baselines.counting_with(Location::Afterwards).unwrap();
    assert!(!contender.counting().relocate(0, circles[0]));
    for travel in [Travel::Jump, Travel::Step(10.0)] {
        let timing = counting_moves(&workload, Location::Intervals, travel, (20, 1)).unwrap();
        assert!(timing.relocate_ns > 0.0 && timing.rebuild_ns > 0.0);
    }
}

/// Finds nothing.
struct Idle;

impl Contender for Idle {
    fn name(&self) -> &str {
        "idle"
    }

    fn finds(&self) -> Finds {
        Finds::Subscriptions
    }

    fn find(&mut self, _event: &Prepared) {}

    fn answer(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        Box::new(std::iter::empty())
    }
}

#[test]
fn a_wrong_answer_is_told() {
    let workload = tiny(Config::default());
    let events = Events::new(&workload, 300).unwrap();
    let error = check(&Oracle::new(&workload), &mut [Entrant::new("idle", Idle, &events)], 300).unwrap_err();
    assert!(error.to_string().contains("idle found"), "{error}");
}

#[test]
fn the_program_names_the_scenarios_that_there_are() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_engines")).args(["--scenario", "nonsense"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cover-0.001"));
    let output = Command::new(env!("CARGO_BIN_EXE_engines")).args(["--only", "nobody"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("counting-box"));
}
