//! Fig. 5: what it takes to move the area of one filter.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Instant;

use anyhow::ensure;
use matcher::engine::Engine;
use matcher::fixtures::workload::Workload;
use matcher::geo::Position;
use matcher::subscription::ClientId;

use super::checks::check_now;
use super::field::{Field, LONE_COUNT, lone_clients};
use super::figures::Figures;
use super::matching::Ladder;
use super::plan::{Plan, Who};
use crate::baseline::Circle;
use crate::baseline::rtree::Circles;
use crate::engines::process::Stopwatch;
use crate::gpu::figures::us_each;

/// Unit of an update time.
pub const UNIT: &str = "us a filter";
/// The R*-tree, one filter of a client at a time.
pub const RTREE_LONE: &str = "rtree, a lone filter";
/// The same, all filters of a client after each other: the time of one of these.
pub const RTREE_SHARED: &str = "rtree, filters of one client";
/// The engine on the CPU, clients of as many filters as the workload gives them: the time of one of these.
pub const CELLS_SHARED: &str = "cells, filters of one client";
/// The same, clients with a single filter.
pub const CELLS_LONE: &str = "cells, a lone filter";
/// Events on which the answers are checked afterwards.
const CHECKED: usize = 50;
/// Clients of which the R*-tree moves one filter at a time, at most: their others follow without a clock.
const SCATTERED: usize = 2_000;
/// Updates that a device is waited for one by one.
const WAITED_FOR: usize = 500;

/// Moves of one turn, the same for all.
struct Turn {
    /// Different clients, whose filters all move.
    clients: Vec<(ClientId, Position)>,
    /// Others, of which the R*-tree is timed with one filter of each; the rest of their filters follow.
    scattered: Vec<(ClientId, Position)>,
    /// Clients with a single filter.
    lone: Vec<(ClientId, Position)>,
}

impl Turn {
    fn new(workload: &Workload, round: usize, filters: usize) -> Self {
        let per_client = workload.config().filters_per_subscription as usize;
        // Streams of moves that do not overlap for any plan.
        let first = round as u64 * 10_000_000;
        let mut seen = HashSet::new();
        let count = (filters / per_client).clamp(1, workload.config().subscriptions as usize / 4 + 1);
        let mut different = (first..)
            .map(|index| workload.jump(index))
            .filter(|(client, _)| seen.insert(*client))
            .map(|(client, spot)| (client, workload.position(spot)));
        let clients = different.by_ref().take(count).collect();
        let most = workload.config().subscriptions as usize / 4 + 1;
        let scattered = different.take(filters.min(SCATTERED).min(most)).collect();
        let anywhere = |(index, client): (u64, ClientId)| (client, workload.position(workload.jump(index).1));
        let lone = (first + 5_000_000..).zip(lone_clients().cycle()).take(filters).map(anywhere).collect();
        Self { clients, scattered, lone }
    }
}

/// One size of a panel: all who take part make the same moves in turns; then their answers are checked.
///
/// # Errors
/// A wrong answer, or what a device fails with.
pub fn measure(
    plan: &Plan,
    panel: &'static str,
    field: &mut Field,
    ladder: &Ladder,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let size = field.subscriptions();
    let workload = field.workload()?;
    let mut tree = plan.has(Who::Rtree).then(|| field.tree());
    field.add_lone()?;
    let places: Vec<_> = lone_clients()
        .zip(0..)
        .map(|(client, index)| (client, workload.position(workload.jump(4_000_000 + index).1)))
        .collect();
    debug_assert_eq!(places.len(), LONE_COUNT as usize, "every lone client has a place");
    field.engines().into_iter().for_each(|engine| tell(engine, &places));
    field.settle()?;
    let mut results: Vec<(String, Vec<f64>)> = Vec::new();
    for round in 0..=plan.rounds {
        let turn = Turn::new(&workload, round, plan.moves);
        let mut measured = Vec::new();
        if let Some(tree) = &mut tree {
            measured.extend(rtree(tree, field, &workload, &turn)?);
        }
        measured.extend(cells(field, &workload, &turn));
        measured.extend(devices(field, &turn)?);
        field.note_moves(&turn.clients);
        field.note_moves(&turn.scattered);
        // The first round warms up.
        if round > 0 {
            results.resize_with(measured.len(), Default::default);
            for ((label, values), (whose, us)) in results.iter_mut().zip(measured) {
                *label = whose;
                values.push(us);
            }
        }
    }
    results.into_iter().for_each(|(series, values)| figures.push(panel, series, size, UNIT, values));
    check_now(panel, field, &workload, (ladder, CHECKED), tree.as_ref(), figures)?;
    if field.clcb.is_some() || field.gpu.is_some() {
        many(plan, panel, field, &workload, figures)?;
        check_now(panel, field, &workload, (ladder, CHECKED), None, figures)?;
    }
    field.remove_lone();
    Ok(())
}

fn tell(engine: &mut dyn Engine, moves: &[(ClientId, Position)]) {
    moves.iter().for_each(|(client, position)| engine.move_client(*client, Some(*position)));
}

fn rtree(
    tree: &mut Circles,
    field: &Field,
    workload: &Workload,
    turn: &Turn,
) -> anyhow::Result<Vec<(String, f64)>> {
    let per_client = workload.config().filters_per_subscription;
    let lone = relocate(tree, field, per_client, &turn.scattered, 0..1)?;
    relocate(tree, field, per_client, &turn.scattered, 1..per_client)?;
    let shared = relocate(tree, field, per_client, &turn.clients, 0..per_client)?;
    Ok(vec![(RTREE_LONE.to_owned(), lone), (RTREE_SHARED.to_owned(), shared)])
}

/// Removes and inserts some filters of each client.
fn relocate(
    tree: &mut Circles,
    field: &Field,
    per_client: u32,
    moves: &[(ClientId, Position)],
    numbers: Range<u32>,
) -> anyhow::Result<f64> {
    let mut changes = Vec::new();
    for (client, position) in moves {
        for filter in numbers.clone().map(|number| client.0 * per_client + number) {
            let from = field.circle(filter);
            let to = Circle { centre: [position.x(), position.y()], radius_m: from.radius_m };
            changes.push((filter, from, to));
        }
    }
    let stopwatch = Stopwatch::start();
    let found = changes.iter().filter(|(filter, from, to)| tree.relocate(*filter, *from, *to)).count();
    let us = us_each(stopwatch.stop(), changes.len());
    ensure!(found == changes.len(), "the tree has lost {} filters", changes.len() - found);
    Ok(us)
}

fn cells(field: &mut Field, workload: &Workload, turn: &Turn) -> Vec<(String, f64)> {
    let Some(engine) = &mut field.cells else { return Vec::new() };
    let per_client = workload.config().filters_per_subscription as usize;
    let mut time = |moves: &[(ClientId, Position)], filters: usize| {
        let stopwatch = Stopwatch::start();
        tell(engine, moves);
        us_each(stopwatch.stop(), moves.len() * filters)
    };
    let (shared, lone) = (time(&turn.clients, per_client), time(&turn.lone, 1));
    tell(engine, &turn.scattered);
    vec![(CELLS_SHARED.to_owned(), shared), (CELLS_LONE.to_owned(), lone)]
}

/// Lone filters, each waited for until its device has it. The turn's clients move as well, without a clock.
fn devices(field: &mut Field, turn: &Turn) -> anyhow::Result<Vec<(String, f64)>> {
    let mut measured = Vec::new();
    let (waited_for, rest) = turn.lone.split_at(WAITED_FOR.min(turn.lone.len()));
    if let Some(clcb) = &mut field.clcb {
        let start = Instant::now();
        for one in waited_for {
            tell(clcb, &[*one]);
            clcb.settle()?;
        }
        measured.push(("clcb, a lone filter".to_owned(), us_each(start.elapsed(), waited_for.len())));
        tell(clcb, rest);
        tell(clcb, &turn.clients);
        tell(clcb, &turn.scattered);
        clcb.settle()?;
    }
    if let Some(gpu) = &mut field.gpu {
        let start = Instant::now();
        for one in waited_for {
            tell(gpu, &[*one]);
            gpu.settle()?;
        }
        measured.push(("gpu, a lone filter".to_owned(), us_each(start.elapsed(), waited_for.len())));
        tell(gpu, rest);
        tell(gpu, &turn.clients);
        tell(gpu, &turn.scattered);
        gpu.settle()?;
    }
    Ok(measured)
}

/// Many clients at once, until the devices have them all.
fn many(
    plan: &Plan,
    panel: &'static str,
    field: &mut Field,
    workload: &Workload,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let size = field.subscriptions();
    let per_client = workload.config().filters_per_subscription as usize;
    let clients = plan.many.min(size);
    let (mut clcb_us, mut gpu_us) = (Vec::new(), Vec::new());
    for round in 0..=plan.rounds {
        let first = 1 << 40 | (round as u64) << 32;
        let anywhere = |client: u32| {
            let spot = workload.jump(first + u64::from(client)).1;
            (ClientId(client * (size / clients)), workload.position(spot))
        };
        let moves: Vec<_> = (0..clients).map(anywhere).collect();
        let filters = moves.len() * per_client;
        if let Some(clcb) = &mut field.clcb {
            let start = Instant::now();
            tell(clcb, &moves);
            clcb.settle()?;
            clcb_us.push(us_each(start.elapsed(), filters));
        }
        if let Some(gpu) = &mut field.gpu {
            let start = Instant::now();
            tell(gpu, &moves);
            gpu.settle()?;
            gpu_us.push(us_each(start.elapsed(), filters));
        }
        if let Some(cells) = &mut field.cells {
            tell(cells, &moves);
        }
        field.note_moves(&moves);
    }
    for (series, values) in [("clcb, many at once", clcb_us), ("gpu, many at once", gpu_us)] {
        if values.len() > 1 {
            // The first round warmed up.
            figures.push(panel, series, size, UNIT, values[1..].to_vec());
        }
    }
    Ok(())
}
