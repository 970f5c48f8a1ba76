//! What is measured on a field, each with its answers checked by [`Field::check`].

use std::time::Instant;

use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::subscription::ClientId;
use matcher_gpu::{Form, Step};

use super::field::{Field, LONE};
use super::figures::{Figure, Figures, us_each};

/// Events sent one by one in a round.
const LONE_EVENTS: usize = 1_000;
/// Events whose steps are timed.
const STEP_EVENTS: usize = 200;

/// One event at a time: CLCB in both forms, the batched engine, the CPU.
///
/// # Errors
/// When an engine fails.
pub fn lone(field: &mut Field, events: &[Event], rounds: usize, figures: &mut Figures) -> anyhow::Result<()> {
    let events = &events[..LONE_EVENTS.min(events.len())];
    let labels = ["clcb plain", "clcb", "gpu", "cells"];
    let mut values = [const { Vec::new() }; 4];
    for round in 0..=rounds {
        for (label, values) in labels.iter().zip(&mut values) {
            field.clcb.set_form(if *label == "clcb plain" { Form::Plain } else { Form::Fast });
            let engine: &mut dyn Engine = match *label {
                "gpu" => &mut field.gpu,
                "cells" => &mut field.cells,
                _ => &mut field.clcb,
            };
            let us = one_by_one(engine, events)?;
            // The first round warms up.
            if round > 0 {
                values.push(us);
            }
        }
    }
    for (label, values) in labels.into_iter().zip(values) {
        push(figures, field, "lone", label, "one by one", "us an event", values);
    }
    Ok(())
}

fn one_by_one(engine: &mut dyn Engine, events: &[Event]) -> anyhow::Result<f64> {
    let mut rows = MatchRows::new();
    let start = Instant::now();
    for event in events {
        rows.clear();
        engine.match_batch(&[event], &mut rows)?;
    }
    Ok(us_each(start.elapsed(), events.len()))
}

/// Batches of several sizes: the batched engine, with everything in, and the CPU on one core.
///
/// # Errors
/// When an engine fails.
pub fn batches(
    field: &mut Field,
    events: &[Event],
    sizes: &[usize],
    rounds: usize,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let all: Vec<&Event> = events.iter().collect();
    let mut rows = MatchRows::new();
    for size in sizes.iter().filter(|size| **size <= all.len()) {
        let mut values = [const { Vec::new() }; 2];
        for round in 0..=rounds {
            for (which, values) in values.iter_mut().enumerate() {
                // A CPU takes as long for each event of a large batch as of a smaller one.
                let most = if which == 0 { all.len() } else { 16_384.max(*size).min(all.len()) };
                let batches =
                    all[..most / size * size].chunks_exact(*size).take(if which == 0 { 1_000 } else { 100 });
                let count = batches.len() * size;
                let engine: &mut dyn Engine = if which == 0 { &mut field.gpu } else { &mut field.cells };
                let start = Instant::now();
                for batch in batches {
                    rows.clear();
                    engine.match_batch(batch, &mut rows)?;
                }
                if round > 0 {
                    values.push(us_each(start.elapsed(), count));
                }
            }
        }
        for (label, values) in ["gpu", "cells"].into_iter().zip(values) {
            push(figures, field, "batches", label, &size.to_string(), "us an event", values);
        }
    }
    Ok(())
}

/// Location updates: single ones, each waited for, and many at once; in microseconds for each filter.
///
/// # Errors
/// When an engine fails.
pub fn moves(field: &mut Field, rounds: usize, figures: &mut Figures) -> anyhow::Result<()> {
    let workload = field.workload()?;
    let filters_per_client = workload.config().filters_per_subscription;
    let per_client = filters_per_client as usize;
    let clients = field.clients();
    // A million filters' moves, or everybody's.
    let many = clients.min(1_000_000 / filters_per_client);
    for engine in ["clcb", "gpu"] {
        let (mut alone, mut single) = (Vec::new(), Vec::new());
        let (mut together, mut taken) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let draw =
                |index: u64, client: u32| (ClientId(client), workload.position(workload.jump(index).1));
            let first = round as u64 * 10_000_000;
            let lone: Vec<_> = (0..500).map(|index| draw(first + index, workload.jump(index).0.0)).collect();
            let stride = clients / many;
            let batch: Vec<_> =
                (0..many).map(|index| draw(first + 1_000 + u64::from(index), index * stride)).collect();
            let start = Instant::now();
            for (_, position) in &lone {
                tell(field, engine, LONE, *position);
                settle(field, engine)?;
            }
            let alone_us = us_each(start.elapsed(), lone.len());
            let start = Instant::now();
            for (client, position) in &lone {
                tell(field, engine, *client, *position);
                settle(field, engine)?;
            }
            let single_us = us_each(start.elapsed(), lone.len());
            let start = Instant::now();
            batch.iter().for_each(|(client, position)| tell(field, engine, *client, *position));
            let taken_us = us_each(start.elapsed(), batch.len() * per_client);
            settle(field, engine)?;
            let together_us = us_each(start.elapsed(), batch.len() * per_client);
            field.moved(&lone, engine);
            field.moved(&batch, engine);
            if round > 0 {
                alone.push(alone_us);
                single.push(single_us);
                taken.push(taken_us);
                together.push(together_us);
            }
        }
        push(figures, field, "moves", engine, "a filter alone", "us", alone);
        push(figures, field, "moves", engine, "a client of ten filters alone", "us", single);
        push(figures, field, "moves", engine, "many: taken in", "us a filter", taken);
        push(figures, field, "moves", engine, "many: on the device", "us a filter", together);
    }
    Ok(())
}

fn tell(field: &mut Field, engine: &str, client: ClientId, position: matcher::geo::Position) {
    match engine {
        "clcb" => field.clcb.move_client(client, Some(position)),
        _ => field.gpu.move_client(client, Some(position)),
    }
}

fn settle(field: &mut Field, engine: &str) -> anyhow::Result<()> {
    match engine {
        "clcb" => field.clcb.settle()?,
        _ => field.gpu.settle()?,
    }
    Ok(())
}

/// Bytes of device memory.
pub fn memory(field: &mut Field, figures: &mut Figures) {
    let (held, all) = (field.clcb.arrays_bytes(), field.clcb.device_bytes());
    let gpu = field.gpu.device_bytes();
    let filters = field.filters() as f64;
    for (engine, what, bytes) in [("clcb", "filters", held), ("clcb", "all", all), ("gpu", "all", gpu)] {
        push(figures, field, "memory", engine, what, "bytes a filter", vec![bytes as f64 / filters]);
        push(figures, field, "memory", engine, what, "MiB", vec![bytes as f64 / 1_048_576.0]);
    }
}

/// The paper's five steps (Fig. 6), in both forms.
///
/// # Errors
/// When the device fails.
pub fn steps(field: &mut Field, events: &[Event], figures: &mut Figures) -> anyhow::Result<()> {
    let mut rows = MatchRows::new();
    for (label, form) in [("clcb plain", Form::Plain), ("clcb", Form::Fast)] {
        field.clcb.set_form(form);
        let mut values = [const { Vec::new() }; 5];
        for (index, event) in events.iter().cycle().take(2 * STEP_EVENTS).enumerate() {
            rows.clear();
            let times = field.clcb.match_timed(event, &mut rows)?;
            if index >= STEP_EVENTS {
                for (step, values) in Step::ALL.into_iter().zip(&mut values) {
                    values.push(us_each(times.of(step), 1));
                }
            }
        }
        for (step, values) in Step::ALL.into_iter().zip(values) {
            push(figures, field, "steps", label, step.name(), "us", values);
        }
    }
    field.clcb.set_form(Form::Fast);
    Ok(())
}

fn push(
    figures: &mut Figures,
    field: &Field,
    section: &'static str,
    engine: &str,
    what: &str,
    unit: &'static str,
    values: Vec<f64>,
) {
    figures.push(Figure {
        section,
        scenario: field.scenario.clone(),
        filters: field.filters(),
        engine: engine.to_owned(),
        what: what.to_owned(),
        unit,
        values,
    });
}
