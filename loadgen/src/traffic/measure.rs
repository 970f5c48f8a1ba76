//! How fast the simulation is.

use std::sync::Arc;
use std::time::Instant;

use super::{Settings, State, Traffic, TrafficError};
use streets::Network;

/// What a measurement found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// How many vehicles there were.
    pub vehicles: u32,
    /// On how many threads.
    pub threads: usize,
    /// How much time went by for the vehicles, in seconds.
    pub simulated_s: f64,
    /// How long that took, in seconds. The setting up, and half a minute before, in which vehicles get into their stride, do not count.
    pub took_s: f64,
    /// Vehicles to a kilometre of lane.
    pub per_lane_km: f64,
    /// How fast those who drive are on average at the end, in km/h.
    pub speed_kmh: f64,
    /// Which share of them stands.
    pub standing: f64,
    /// How many incidents began.
    pub incidents: u64,
}

impl Measured {
    /// How many times faster than the clock.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        self.simulated_s / self.took_s
    }
}

/// Drives for `simulated_s` seconds in steps of `dt_s`, on so many threads (0: one for each core), and takes the time.
///
/// # Errors
/// [`TrafficError`], as [`Traffic::new`]; also where there are no threads to be had.
pub fn measure(
    network: &Arc<Network>,
    settings: &Settings,
    seed: u64,
    threads: usize,
    simulated_s: f64,
    dt_s: f32,
) -> Result<Measured, TrafficError> {
    for (name, value, min, max) in
        [("dt_s", f64::from(dt_s), 0.01, 60.0), ("simulated_s", simulated_s, 0.01, 1e7)]
    {
        if !(min..=max).contains(&value) {
            return Err(TrafficError::Setting { name, value, min, max });
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| {
        let mut traffic = Traffic::new(Arc::clone(network), settings.clone(), seed)?;
        while traffic.now_s() < 30.0 {
            traffic.step(dt_s);
        }
        let (begin, before_s) = (Instant::now(), traffic.now_s());
        let mut incidents = 0;
        while traffic.now_s() < before_s + simulated_s {
            let changes = traffic.step(dt_s).iter();
            incidents += changes.filter(|change| matches!(change, super::Change::Began(_))).count() as u64;
        }
        let took_s = begin.elapsed().as_secs_f64();
        let driving = (0..traffic.vehicles_count()).filter(|car| traffic.state(*car) != State::Parked);
        let (mut count, mut sum_ms, mut standing) = (0.0, 0.0, 0.0);
        for speed_ms in driving.map(|car| f64::from(traffic.speed_ms(car))) {
            count += 1.0;
            sum_ms += speed_ms;
            standing += if speed_ms < 0.5 { 1.0 } else { 0.0 };
        }
        Ok(Measured {
            vehicles: traffic.vehicles_count(),
            threads: pool.current_num_threads(),
            simulated_s: traffic.now_s() - before_s,
            took_s,
            per_lane_km: count / (network.lanes_m() / 1000.0),
            speed_kmh: sum_ms / f64::max(count, 1.0) * 3.6,
            standing: standing / f64::max(count, 1.0),
            incidents,
        })
    })
}
