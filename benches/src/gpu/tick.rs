//! A tick for everybody: all areas move, and then everybody's event is joined with everybody's area (the case of Lettich,
//! Orlando, Silvestri and Jensen, "Manycore GPU processing of repeated range queries over streams of moving objects", 2014).

use std::thread;
use std::time::Instant;

use anyhow::ensure;
use device::Device;
use matcher::engine::cells::Cells;
use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::fixtures::workload::{Config, Spot, Workload};
use matcher::geo::Position;
use matcher::subscription::ClientId;
use matcher_gpu::Gpu;

use super::figures::{Figure, Figures};
use crate::engines::oracle::{Oracle, Tally};
use crate::engines::report::thousands;

/// Areas that hold an event, on average.
const AROUND: f64 = 10.0;
/// Metres that everybody moves in a tick.
const STEP_M: f64 = 14.0;
/// Events of a batch.
const BATCH: usize = 65_536;
/// Events of the first tick that brute force checks.
const CHECKED: usize = 20;

/// Where everybody is, and the events posted from there.
struct Crowd {
    workload: Workload,
    spots: Vec<Spot>,
    positions: Vec<Position>,
    events: Vec<Event>,
}

impl Crowd {
    /// Clients with one area each, whose condition the given share of the events satisfies.
    fn new(clients: u32, selectivity: f64) -> anyhow::Result<Self> {
        let config = Config {
            subscriptions: clients,
            filters_per_subscription: 1,
            coverage: AROUND / f64::from(clients),
            selectivity,
            names: 5,
            topics: 1,
            constraints: 1..=2,
            attributes: 5..=5,
            ..Config::default()
        };
        let workload = Workload::new(config)?;
        let spots: Vec<Spot> = (0..clients).map(|client| workload.home(ClientId(client))).collect();
        let positions: Vec<Position> = spots.iter().map(|spot| workload.position(*spot)).collect();
        let events = (0..).zip(&positions).map(|(index, position)| Event {
            attributes: workload.event(index).attributes,
            ..Event::at(*position)
        });
        let events = events.collect();
        Ok(Self { workload, spots, positions, events })
    }

    fn step(&mut self, tick: u64) {
        for (index, spot) in self.spots.iter_mut().enumerate() {
            *spot = self.workload.step((tick << 32) | index as u64, *spot, STEP_M);
            let position = self.workload.position(*spot);
            self.positions[index] = position;
            self.events[index].position = position;
        }
    }
}

/// A strip of the ground from south to north with an engine of its own, which one core serves.
///
/// It has every subscription, and knows the positions of the clients whose areas reach into it.
struct Strip {
    engine: Cells,
    west: f64,
    east: f64,
    here: Vec<bool>,
    /// The events within it, by their numbers, and their rows.
    events: Vec<u32>,
    rows: MatchRows,
}

impl Strip {
    fn tick(&mut self, crowd: &Crowd, reach_m: f64) -> anyhow::Result<()> {
        self.events.clear();
        self.rows.clear();
        for (client, position) in (0..).zip(&crowd.positions) {
            let x = position.x();
            let here = &mut self.here[client as usize];
            if x >= self.west - reach_m && x < self.east + reach_m {
                self.engine.move_client(ClientId(client), Some(*position));
                *here = true;
            } else if std::mem::take(here) {
                self.engine.move_client(ClientId(client), None);
            }
            if (self.west..self.east).contains(&x) {
                self.events.push(client);
            }
        }
        let events: Vec<&Event> = self.events.iter().map(|index| &crowd.events[*index as usize]).collect();
        for batch in events.chunks(BATCH) {
            self.engine.match_batch(batch, &mut self.rows)?;
        }
        Ok(())
    }
}

/// `cells` on several cores, each of which has a strip of the ground.
struct Strips {
    strips: Vec<Strip>,
    reach_m: f64,
}

impl Strips {
    fn new(crowd: &Crowd, cores: usize) -> anyhow::Result<Self> {
        let side_m = crowd.workload.terrain().area_m2().sqrt();
        let edge = |number: usize| match number {
            0 => f64::NEG_INFINITY,
            _ if number == cores => f64::INFINITY,
            _ => side_m * (number as f64 / cores as f64 - 0.5),
        };
        let strip = |number: usize| -> anyhow::Result<Strip> {
            let mut engine = Cells::new(crowd.workload.world());
            for (id, subscription) in crowd.workload.subscriptions() {
                engine.install(id, &subscription)?;
            }
            Ok(Strip {
                engine,
                west: edge(number),
                east: edge(number + 1),
                here: vec![false; crowd.positions.len()],
                events: Vec::new(),
                rows: MatchRows::new(),
            })
        };
        let strips: anyhow::Result<Vec<Strip>> = thread::scope(|scope| {
            let running: Vec<_> = (0..cores).map(|number| scope.spawn(move || strip(number))).collect();
            running.into_iter().map(|strip| strip.join().expect("a strip does not panic")).collect()
        });
        let radii = crowd.workload.radii().iter().map(|radius| radius.metres());
        // An area may reach a rounding further than its radius.
        Ok(Self { strips: strips?, reach_m: 1.0 + radii.fold(0.0, f64::max) })
    }

    fn tick(&mut self, crowd: &Crowd) -> anyhow::Result<()> {
        let reach_m = self.reach_m;
        thread::scope(|scope| {
            let running: Vec<_> =
                self.strips.iter_mut().map(|strip| scope.spawn(move || strip.tick(crowd, reach_m))).collect();
            running.into_iter().try_for_each(|strip| strip.join().expect("a strip does not panic"))
        })
    }

    /// The rows in the order of the events.
    fn rows(&self, events: usize) -> MatchRows {
        let mut places = vec![(0, 0); events];
        for (number, strip) in self.strips.iter().enumerate() {
            for (row, event) in strip.events.iter().enumerate() {
                places[*event as usize] = (number, row);
            }
        }
        let mut rows = MatchRows::new();
        for (strip, row) in places {
            rows.push_with(|ids| ids.extend_from_slice(self.strips[strip].rows.row(row)));
        }
        rows
    }
}

/// Ticks of this number of clients by `gpu`, and by `cells` on one core and on all: milliseconds for all moves and all answers.
///
/// # Errors
/// When an engine fails, or answers differ from the other's or from those of brute force.
pub fn tick(
    devices: &[Device],
    clients: u32,
    rounds: usize,
    figures: &mut Figures,
) -> anyhow::Result<String> {
    let cores = thread::available_parallelism()?.get();
    let mut pairs = Vec::new();
    for (scenario, selectivity) in [("every event", 1.0), ("a tenth of the events", 0.1)] {
        let mut crowd = Crowd::new(clients, selectivity)?;
        let mut gpu = Gpu::new(crowd.workload.world(), devices)?;
        for (id, subscription) in crowd.workload.subscriptions() {
            gpu.install(id, &subscription)?;
        }
        let mut on_cores = [Strips::new(&crowd, 1)?, Strips::new(&crowd, cores)?];
        let mut values = [const { Vec::new() }; 4];
        for round in 0..=rounds {
            crowd.step(round as u64);
            let events: Vec<&Event> = crowd.events.iter().collect();
            let mut rows = MatchRows::new();
            let start = Instant::now();
            for (client, position) in (0..).map(ClientId).zip(&crowd.positions) {
                gpu.move_client(client, Some(*position));
            }
            gpu.settle()?;
            let moved = start.elapsed();
            for batch in events.chunks(BATCH) {
                gpu.match_batch(batch, &mut rows)?;
            }
            let mut times = vec![moved, start.elapsed()];
            for strips in &mut on_cores {
                let start = Instant::now();
                strips.tick(&crowd)?;
                times.push(start.elapsed());
                ensure!(rows == strips.rows(events.len()), "tick {round}: gpu and cells differ");
            }
            // The first round warms up.
            if round > 0 {
                for (values, time) in values.iter_mut().zip(times) {
                    values.push(time.as_secs_f64() * 1e3);
                }
            } else {
                check(&crowd, &rows)?;
                pairs.push(format!("{scenario}: {} pairs", thousands(rows.pairs_count() as u64)));
            }
        }
        let all = format!("cells, {cores} cores");
        for (engine, values) in ["gpu, moves alone", "gpu", "cells, one core", &all].into_iter().zip(values) {
            figures.push(Figure {
                section: "tick",
                scenario: scenario.to_owned(),
                filters: u64::from(clients),
                engine: engine.to_owned(),
                what: "all moves, all events".to_owned(),
                unit: "ms",
                values,
            });
        }
    }
    Ok(format!(
        "ticks of {} clients: all engines gave the same rows after every tick, and brute force those of {CHECKED} events ({})",
        thousands(u64::from(clients)),
        pairs.join(", ")
    ))
}

fn check(crowd: &Crowd, rows: &MatchRows) -> anyhow::Result<()> {
    let mut oracle = Oracle::new(&crowd.workload);
    for (client, position) in (0..).map(ClientId).zip(&crowd.positions) {
        oracle.move_client(client, *position);
    }
    for (index, event) in crowd.events.iter().enumerate().step_by(crowd.events.len().div_ceil(CHECKED)) {
        let found = Tally::of(rows.row(index).iter().map(|id| id.0));
        let expected = oracle.truths(event).subscriptions;
        ensure!(found == expected, "event {index}: gpu found {found:?}, brute force {expected:?}");
    }
    Ok(())
}
