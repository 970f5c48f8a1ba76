//! What a change takes with nested quantifiers over a set of 100,000 events: `cargo run --release --example nested`.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::sync::Arc;
use std::time::Instant;

use checks::{Arrival, Bounds, Check, Checker, Clock, Context, Document, Formula, Kind};
use matcher::World;
use matcher::event::Event;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Events in the set.
const EVENTS: usize = 100_000;
/// Objects that they are of.
const OBJECTS: u32 = 20_000;
/// Changes that are timed.
const CHANGES: usize = 20_000;

fn main() {
    let [a, b] = ["a", "b"].map(|variable| move |that| Formula::forall(variable, "all", that));
    let leaf = |text: &str| Formula::leaf(text);
    let jump = Formula::implies(leaf("a.taxi = b.taxi AND ELAPSED(a, b) > 0"), leaf("SPEED(a, b) <= 100000"));
    let twice = leaf("a.taxi = b.taxi AND ELAPSED(a, b) > 0 AND DISTANCE(a, b) <= 100");
    let alone = Formula::exists("b", "all", leaf("a.taxi = b.taxi AND NOT SAME(a, b)"));
    let near = leaf("DISTANCE(a, b) <= 100 AND a.taxi <> b.taxi AND ABS(ELAPSED(a, b)) <= 1");
    let in_company = Formula::exists("b", "all", leaf("DISTANCE(a, b) <= 500 AND a.taxi <> b.taxi"));
    let third =
        Formula::exists("c", "all", leaf("DISTANCE(b, c) <= 200 AND c.taxi <> a.taxi AND c.taxi <> b.taxi"));
    let three = Formula::implies(leaf("a.taxi <> b.taxi AND DISTANCE(a, b) <= 50"), third);
    let checks = [
        ("forall forall, joined by an attribute", a(b(jump))),
        ("forall forall, by attribute and place", a(b(Formula::negated(twice)))),
        ("forall exists, joined by an attribute", a(alone)),
        ("forall forall, joined by place", a(b(Formula::negated(near)))),
        ("forall exists, joined by place", a(in_company)),
        ("forall forall exists, joined by place", a(b(three))),
    ];
    for (name, formula) in checks {
        let contexts = vec![Context::of_all("all", 100.0)];
        let check = Check::new(World::Geodetic, &Document { contexts, formula, clock: Clock::Event });
        let check = Arc::new(check.expect("the check is sound"));
        let mut random = SmallRng::seed_from_u64(7);
        // One a millisecond, so that the set holds as many as it holds milliseconds.
        let arrivals = (0..EVENTS + CHANGES).map(|time_ms| {
            let place = [random.random_range(113.0..114.5), random.random_range(22.0..23.0)];
            let position = World::Geodetic.position(&place).expect("a place");
            let event = Event::at(position).with("taxi", f64::from(random.random_range(0..OBJECTS)));
            let time_ms = i64::try_from(time_ms).expect("small");
            Arrival { event: Arc::new(event), time_ms: Some(time_ms), arrival_ms: time_ms }
        });
        let arrivals: Vec<_> = arrivals.collect();
        let bounds = Bounds { links_max: 10_000_000, ..Bounds::default() };
        let mut checker = Checker::new(check, Kind::Incremental, bounds);
        let mut times_us = Vec::new();
        let mut told = 0;
        for (idx, arrival) in arrivals.iter().enumerate() {
            let started = Instant::now();
            let outcome = checker.take((), arrival).expect("few links");
            if idx >= EVENTS {
                times_us.push(started.elapsed().as_secs_f64() * 1e6);
                told += outcome.map_or(0, |outcome| outcome.told.len());
            }
        }
        let mean = times_us.iter().sum::<f64>() / times_us.len() as f64;
        times_us.sort_unstable_by(f64::total_cmp);
        let [median, p99] = [50, 99].map(|percent| times_us[times_us.len() * percent / 100]);
        println!(
            "{name}: {} events, a change {mean:.1} us, median {median:.1}, 99% {p99:.1}; {:.1} links a change, {} MB",
            checker.sets().count(0),
            told as f64 / CHANGES as f64,
            checker.bytes() / 1_000_000,
        );
    }
}
