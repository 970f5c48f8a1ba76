//! How many contexts a second each engine takes: the twelve rules over an hour of Shenzhen's taxis.
//!
//! `cargo run --release --example hour [-- all-on] [dense] [ENGINE ..]`: `all-on` puts every taxi in service, `dense` makes time ten times
//! as short.

#[path = "../tests/it/documents.rs"]
mod documents;
#[path = "../tests/it/reports.rs"]
#[expect(dead_code, reason = "tests look at more of a report")]
mod reports;

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use checks::{Bounds, Checker, Kind};
use matcher::World;

/// The longest that an engine is looked at.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let Some(folder) = reports::folder() else { return };
    let mut all = reports::reports(&folder, "taxi_h11.csv.gz");
    for report in &mut all {
        if has("all-on") {
            report.status = 1.0;
        }
        if has("dense") {
            report.ts_ms /= 10;
        }
    }
    let arrivals: Vec<_> = all.iter().map(reports::Report::arrival).collect();
    let documents = documents::read(World::Geodetic, include_str!("../tests/data/taxis.json"));
    let two = NonZeroUsize::new(2).expect("two is not zero");
    for (name, kind) in [
        ("incremental", Kind::Incremental),
        ("concurrent", Kind::Concurrent(two)),
        ("sequential", Kind::Sequential),
    ] {
        if ["incremental", "concurrent", "sequential"].iter().any(|name| has(name)) && !has(name) {
            continue;
        }
        let new = |(_, check): &(_, std::sync::Arc<checks::Check>)| {
            Checker::new(check.clone(), kind, Bounds::default())
        };
        let mut checkers: Vec<_> = documents.iter().map(new).collect();
        let mut told = 0;
        let mut taken = 0;
        let started = Instant::now();
        for arrival in &arrivals {
            for checker in &mut checkers {
                let outcome = checker.take((), arrival).expect("few links");
                told += outcome.map_or(0, |outcome| outcome.told.len());
            }
            taken += 1;
            if taken % 64 == 0 && started.elapsed() > PATIENCE {
                break;
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        let bytes: usize = checkers.iter().map(Checker::bytes).sum();
        println!(
            "{name}: {taken} contexts in {seconds:.3} s, {:.0} contexts/s, {told} links told, {bytes} bytes at the end",
            f64::from(taken) / seconds
        );
    }
}
