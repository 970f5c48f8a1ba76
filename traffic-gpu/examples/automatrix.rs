//! How many times faster than the clock traffic is, on a device and on the processor.
//!
//! `automatrix [--nodes N] [--vehicles N,N,...] [--routed N] [--seconds S] [--warm-up S] [--seed N] [--engine gpu|cpu] [--check]`
//!
//! A line of comma-separated values for each number of vehicles, under a head. With `--check` the other engine drives the same, and has to come to the same state.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use device::Device;
use streets::Country;
use traffic_gpu::{Engine, Gpu, Kernels, Processor, Roads, Row, STEP_S, Settings, measure};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut nodes, mut vehicles, mut routed, mut seed) = (24_000_000, vec![16_000_000], 1000, 2012);
    let (mut seconds, mut warm_up, mut is_gpu, mut is_checked) = (60.0, 30.0, true, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        if flag == "--check" {
            is_checked = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{flag}: no value"))?;
        match &*flag {
            "--nodes" => nodes = value.parse()?,
            "--vehicles" => vehicles = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--routed" => routed = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            "--warm-up" => warm_up = value.parse()?,
            "--seed" => seed = value.parse()?,
            "--engine" if value == "cpu" || value == "gpu" => is_gpu = value == "gpu",
            "--engine" => return Err(format!("--engine {value}: neither cpu nor gpu").into()),
            _ => return Err(format!("{flag}: no such flag").into()),
        }
    }
    let began = Instant::now();
    let roads = Arc::new(Roads::of_country(&Country::new(nodes, seed), seed)?);
    eprintln!(
        "{} nodes, {} arcs, {:.0} km of lanes in {:.1} s",
        roads.nodes_count(),
        roads.arcs_count(),
        roads.lanes_km(),
        began.elapsed().as_secs_f64()
    );
    let kernels = if is_gpu || is_checked { Some(Kernels::load(&device()?)?) } else { None };
    println!("{}", Row::HEAD);
    for vehicles in vehicles {
        let settings = Settings { vehicles, routed: routed.min(vehicles), seed };
        let mut digests = Vec::new();
        for is_gpu in if is_checked { vec![is_gpu, !is_gpu] } else { vec![is_gpu] } {
            let began = Instant::now();
            let mut engine: Box<dyn Engine> = match &kernels {
                Some(kernels) if is_gpu => Box::new(Gpu::new(kernels, &roads, settings)?),
                _ => Box::new(Processor::new(&roads, settings)?),
            };
            let loading_s = began.elapsed().as_secs_f64();
            let measured = measure(&mut *engine, steps(warm_up), steps(seconds))?;
            let (engine_name, bytes) = (if is_gpu { "gpu" } else { "cpu" }, engine.bytes());
            println!("{}", Row { engine: engine_name, roads: &roads, settings, bytes, loading_s, measured });
            digests.push(measured.digest);
        }
        if digests.iter().any(|digest| *digest != digests[0]) {
            return Err(format!("{vehicles} vehicles: the engines came to different states").into());
        }
    }
    Ok(())
}

/// The first CUDA device, or with `NEARCAST_HOST=1` the processor as one.
fn device() -> Result<Device, Box<dyn Error>> {
    if std::env::var_os("NEARCAST_HOST").is_some() {
        return Ok(Device::host(1 << 34));
    }
    Ok(Device::all()?.swap_remove(0))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hours at most")]
fn steps(seconds: f64) -> u32 {
    (seconds / STEP_S).round() as u32
}
