//! GAIN's experiments, as figures in CSV: `cargo run --release --example gain -- FILE [CONTEXTS] [ROUNDS] [ROUNDS OF THE PROCESSOR] [past]`; with `past` those past the paper alone.
//! `make bench ARGS="--only checks"`
//! makes plots of the same.

#[path = "../../benches/src/gain/measure.rs"]
#[allow(unreachable_pub, reason = "a library has it, too")]
mod measure;

use measure::{Measuring, Scale, csv};

fn main() -> std::io::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number =
        |nth: usize, default| arguments.get(nth).and_then(|text| text.parse().ok()).unwrap_or(default);
    let file = arguments.first().map_or("gain.csv", String::as_str);
    let rounds = number(2, 7);
    let scale = Scale { contexts: number(1, 5_000), rounds: [number(3, rounds.min(3)), rounds] };
    let found = device::Device::all().and_then(|devices| checks_gpu::Kernels::load(&devices[0]));
    match &found {
        Ok(kernels) => println!("on {}", kernels.device().name()),
        Err(error) => println!("without a device: {error}"),
    }
    let Some(mut measuring) = Measuring::new(scale, found.as_ref().ok()) else { return Ok(()) };
    let began = std::time::Instant::now();
    let mut written = Ok(());
    let show = |rows: &[measure::Row]| {
        println!("{} figures after {:.0} s", rows.len(), began.elapsed().as_secs_f64());
        written = std::fs::write(file, csv(rows));
    };
    if arguments.get(4).is_some_and(|only| only == "past") {
        measuring.past(show);
    } else {
        measuring.all(show);
    }
    written
}
