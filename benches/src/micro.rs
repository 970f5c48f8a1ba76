//! What the micro-benchmarks share: small worlds when tests run them, and engines that are checked.

use anyhow::ensure;
use matcher::engine::cells::Cells;
use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::fixtures::workload::{Config, Workload};
use matcher::geo::Position;
use matcher::subscription::ClientId;

use crate::engines::contender::fill;
use crate::engines::oracle::{Oracle, Tally};

/// Events that brute force checks before a benchmark's figures mean anything.
const CHECKED_EVENTS: u64 = 50;

/// Whether figures are wanted: `cargo bench` says so, tests run each benchmark once.
#[must_use]
pub fn measures() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// A workload with so many subscriptions, or a few when tests run it.
///
/// # Panics
/// When it cannot be had.
#[must_use]
pub fn workload(config: Config) -> Workload {
    let subscriptions = if measures() { config.subscriptions } else { 200 };
    Workload::new(Config { subscriptions, ..config }).expect("benchmarks ask for what there is")
}

/// The default engine with all of a workload.
///
/// # Panics
/// When it takes no more.
#[must_use]
pub fn filled(workload: &Workload) -> Cells {
    let mut cells = Cells::new(workload.world());
    fill(&mut cells, workload).expect("it takes a workload");
    cells
}

/// Compares an engine with brute force, after clients have moved to where `moved` says.
///
/// # Errors
/// The first wrong answer.
pub fn check(
    engine: &mut dyn Engine,
    workload: &Workload,
    moved: impl IntoIterator<Item = (ClientId, Position)>,
) -> anyhow::Result<()> {
    let mut oracle = Oracle::new(workload);
    moved.into_iter().for_each(|(client, position)| oracle.move_client(client, position));
    for index in 0..CHECKED_EVENTS {
        let event = workload.event(index);
        let found = Tally::of(answer(engine, &event)?);
        let expected = oracle.truths(&event).subscriptions;
        ensure!(found == expected, "event {index}: found {found:?}, brute force {expected:?}");
    }
    Ok(())
}

/// The subscriptions that an event finds.
///
/// # Errors
/// When the engine fails.
pub fn answer(engine: &mut dyn Engine, event: &Event) -> anyhow::Result<Vec<u32>> {
    let mut rows = MatchRows::new();
    engine.match_batch(&[event], &mut rows)?;
    Ok(rows.row(0).iter().map(|id| id.0).collect())
}
