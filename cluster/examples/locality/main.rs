//! What a cluster gains where each broker reads the regions alone that its clients' areas touch: a Monte Carlo model.
//!
//! `cargo run --release -p nearcast-cluster --no-default-features --example locality` prints tables in Markdown. With `-- minutes` it
//! prints those of a thousand brokers over ten minutes instead (`minutes.rs`).
//!
//! A square of 100 km, in which six hot spots hold three of five clients and events. Regions hold equally many events each. Clients are
//! dealt to brokers by place or by hash. `k` is how many brokers read an event on average; `busiest` is the part of all events that
//! the broker reads which reads most.

mod minutes;
mod world;

use rand::Rng as _;

use crate::world::{Parts, World};

/// Kilometres.
const SIDE: f64 = 100.0;
const CLIENTS: usize = 30_000;
const EVENTS: usize = 100_000;
const HOT_SPOTS: usize = 6;
/// How far a hot spot reaches: the standard deviation, in kilometres.
const SPREAD: f64 = 3.0;
const SEEDS: u64 = 5;

/// Processor time of an event in microseconds, as measured on one machine (`docs/results`): taking it in, once; all of it on a
/// broker by itself but for its deliveries; a delivery.
const TAKING_IN: f64 = 3.3;
const ALONE: f64 = 3.9;
const DELIVERY: f64 = 4.0;
/// To read an event and match it. Not measured, so that there are three of them.
const READING: [f64; 3] = [0.75, 1.5, 3.0];

/// Where clients are, and what their areas are.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    radius: f64,
    /// How far clients have gone since they were dealt.
    drift: f64,
    /// Whether one client of a hundred has an area of 50 km.
    some_are_wide: bool,
    /// Whether those are with brokers of their own, one of ten.
    is_pooled: bool,
    is_by_hash: bool,
}

const PLAIN: Case =
    Case { name: "", radius: 2.0, drift: 0.0, some_are_wide: false, is_pooled: false, is_by_hash: false };

const CASES: [Case; 7] = [
    Case { name: "0.5 km", radius: 0.5, ..PLAIN },
    Case { name: "2 km", ..PLAIN },
    Case { name: "10 km", radius: 10.0, ..PLAIN },
    Case { name: "2 km, 1 % of 50 km", some_are_wide: true, ..PLAIN },
    Case { name: "the same, in a pool", some_are_wide: true, is_pooled: true, ..PLAIN },
    Case { name: "2 km, 3 km from where they were dealt", drift: 3.0, ..PLAIN },
    Case { name: "2 km, by hash", is_by_hash: true, ..PLAIN },
];

#[derive(Clone, Copy, Default)]
struct Found {
    k: f64,
    busiest: f64,
}

fn model(brokers: usize, regions: usize, case: Case, seed: u64) -> Found {
    let mut world = World::new(SIDE, HOT_SPOTS, SPREAD, seed);
    let events = world.places(EVENTS);
    let clients = world.places(CLIENTS);
    let spaces = Parts::of(SIDE, &events, regions);
    let mut share = vec![0.0; regions];
    events.iter().for_each(|event| share[spaces.holding(*event)] += 1.0 / EVENTS as f64);
    let pool = if case.is_pooled { brokers.div_ceil(10) } else { 0 };
    let grounds = Parts::of(SIDE, &clients, brokers - pool);
    let mut reads = vec![vec![false; regions]; brokers];
    for (client, place) in clients.into_iter().enumerate() {
        let is_wide = case.some_are_wide && client % 100 == 0;
        let broker = if is_wide && pool > 0 {
            brokers - pool + client / 100 % pool
        } else if case.is_by_hash {
            client % brokers
        } else {
            grounds.holding(place)
        };
        let angle = world.random.random_range(0.0..std::f64::consts::TAU);
        let now = [place[0] + case.drift * angle.cos(), place[1] + case.drift * angle.sin()];
        let radius = if is_wide { 50.0 } else { case.radius };
        spaces.touched(now, radius, |region| reads[broker][region] = true);
    }
    let read = |broker: &Vec<bool>| -> f64 {
        broker.iter().zip(&share).map(|(reads, share)| f64::from(u8::from(*reads)) * share).sum()
    };
    let by_broker: Vec<f64> = reads.iter().map(read).collect();
    Found { k: by_broker.iter().sum(), busiest: by_broker.iter().copied().fold(0.0, f64::max) }
}

/// The mean of some seeds.
fn mean(brokers: usize, regions: usize, case: Case) -> Found {
    let sum =
        (1..=SEEDS).map(|seed| model(brokers, regions, case, seed)).fold(Found::default(), |sum, found| {
            Found { k: sum.k + found.k, busiest: sum.busiest + found.busiest }
        });
    Found { k: sum.k / SEEDS as f64, busiest: sum.busiest / SEEDS as f64 }
}

/// How many times the events of one broker these carry, by the processor time of the busiest.
fn speed_up(brokers: usize, busiest: f64, reading: f64, deliveries: f64) -> f64 {
    let each = brokers as f64;
    (ALONE + DELIVERY * deliveries) / (TAKING_IN / each + reading * busiest + DELIVERY * deliveries / each)
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("minutes") {
        return minutes::main();
    }
    println!("k / busiest\n");
    println!("| brokers | regions | {} |", CASES.map(|case| case.name).join(" | "));
    println!("| ---: | ---: |{}", " ---: |".repeat(CASES.len()));
    let mut plain = Vec::new();
    for (brokers, regions) in [
        (3, 16),
        (3, 64),
        (3, 256),
        (10, 16),
        (10, 64),
        (10, 256),
        (10, 1_024),
        (30, 64),
        (30, 256),
        (30, 1_024),
    ] {
        let found = CASES.map(|case| mean(brokers, regions, case));
        let cells = found.map(|Found { k, busiest }| format!("{k:.1} / {busiest:.2}"));
        println!("| {brokers} | {regions} | {} |", cells.join(" | "));
        plain.push((brokers, regions, found[1].busiest));
    }
    println!("\nTimes the events of one broker, areas of 2 km, with {READING:?} us to read an event\n");
    println!("| brokers | regions | no deliveries | 1 an event | 10 an event | 100 an event |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    let all = [3, 10, 30].map(|brokers| (brokers, 1, 1.0));
    for (brokers, regions, busiest) in all.into_iter().chain(plain) {
        let cells = [0.0, 1.0, 10.0, 100.0].map(|deliveries| {
            READING
                .map(|reading| format!("{:.1}", speed_up(brokers, busiest, reading, deliveries)))
                .join(", ")
        });
        let regions = if regions == 1 { "all read all".to_owned() } else { regions.to_string() };
        println!("| {brokers} | {regions} | {} |", cells.join(" | "));
    }
}
