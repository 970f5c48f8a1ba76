//! How does the time to match an event grow with what its content satisfies, and with radii of several sizes?
#![forbid(unsafe_code)]

use std::fmt::{self, Display};

use benches::micro::{check, filled, measures, workload};
use divan::Bencher;
use divan::counter::ItemsCount;
use matcher::engine::{Engine as _, MatchRows};
use matcher::event::Event;
use matcher::fixtures::workload::Config;

/// Subscriptions of ten filters: few enough to be filled in a second, too many for the caches.
const SUBSCRIPTIONS: u32 = 50_000;
/// Ten times the default: enough filters near an event for their content to matter.
const COVERAGE: f64 = 0.001;
/// Up to nearly all filters whose names an event has.
const SELECTIVITIES: [f64; 3] = [0.000_5, 0.005, 0.02];
/// Radii that cover the same share of the ground on average.
const RADII: [Radii; 3] = [Radii(&[]), Radii(&[30.0, 300.0]), Radii(&[10.0, 1_000.0, 100_000.0])];
/// Events that take turns.
const EVENTS: u64 = 1_000;

#[derive(Clone, Copy)]
struct Radii(&'static [f64]);

impl Display for Radii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("one radius"),
            radii => write!(f, "{radii:?} m"),
        }
    }
}

fn main() {
    divan::main();
}

#[divan::bench(args = SELECTIVITIES)]
fn by_selectivity(bencher: Bencher<'_, '_>, selectivity: f64) {
    one_by_one(bencher, Config { selectivity, ..Config::default() });
}

#[divan::bench(args = RADII)]
fn by_radius_mix(bencher: Bencher<'_, '_>, radii: Radii) {
    one_by_one(bencher, Config { radii_m: radii.0.to_vec(), ..Config::default() });
}

fn one_by_one(bencher: Bencher<'_, '_>, config: Config) {
    let workload = workload(Config { subscriptions: SUBSCRIPTIONS, coverage: COVERAGE, ..config });
    let mut engine = filled(&workload);
    check(&mut engine, &workload, []).expect("answers equal brute force");
    let events: Vec<Event> =
        (0..if measures() { EVENTS } else { 10 }).map(|index| workload.event(index)).collect();
    let mut turns = events.iter().cycle();
    let mut rows = MatchRows::new();
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        rows.clear();
        let event = turns.next().expect("events go round");
        engine.match_batch(&[event], &mut rows).expect("an engine on the CPU never fails");
        rows.pairs_count()
    });
}
