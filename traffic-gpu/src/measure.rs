//! How fast an engine is.

use std::fmt;
use std::time::Instant;

use crate::fleet::{Figures, Settings};
use crate::model::STEP_S;
use crate::roads::Roads;
use crate::{Engine, Error};

/// The results of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// How much time went by for the vehicles, in seconds.
    pub simulated_s: f64,
    /// How long that took, in seconds, without the warm-up.
    pub took_s: f64,
    /// Figures about the vehicles in the end.
    pub figures: Figures,
    /// The digest of their state then, the same for all engines.
    pub digest: u64,
}

impl Measured {
    /// How many times faster than the clock.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        self.simulated_s / self.took_s
    }
}

/// A measurement with its circumstances, as a line of comma-separated values.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The engine's name.
    pub engine: &'a str,
    /// Which streets.
    pub roads: &'a Roads,
    /// How much traffic.
    pub settings: Settings,
    /// Bytes that it took where it was driven on.
    pub bytes: u64,
    /// Seconds until the first step could begin, without those in which the streets were made.
    pub loading_s: f64,
    /// Its results.
    pub measured: Measured,
}

impl Row<'_> {
    /// The names of the values.
    pub const HEAD: &'static str = "engine,vehicles,routed,nodes,arcs,simulated_s,took_s,times_the_clock,bytes,loading_s,speed_kmh,standing,entered,arrivals,lost,digest";
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, roads, settings, bytes, loading_s, measured } = self;
        let Measured { simulated_s, took_s, figures, digest } = measured;
        let (nodes, arcs) = (roads.nodes_count(), roads.arcs_count());
        write!(formatter, "{engine},{},{},{nodes},{arcs},", settings.vehicles, settings.routed)?;
        write!(formatter, "{simulated_s},{took_s:.4},{:.2},{bytes},{loading_s:.2},", measured.speedup())?;
        write!(formatter, "{:.2},{:.4},", figures.speed_kmh, figures.standing)?;
        write!(formatter, "{},{},{},{digest:016x}", figures.entered, figures.arrivals, figures.lost)
    }
}

/// Drives for `warm_up` steps and then for `steps`, and takes the time of the latter.
///
/// # Errors
/// As [`Engine::advance`].
pub fn measure(engine: &mut dyn Engine, warm_up: u32, steps: u32) -> Result<Measured, Error> {
    engine.advance(warm_up)?;
    let began = Instant::now();
    engine.advance(steps)?;
    let took_s = began.elapsed().as_secs_f64();
    let state = engine.state()?;
    let simulated_s = f64::from(steps) * STEP_S;
    Ok(Measured { simulated_s, took_s, figures: state.figures(), digest: state.digest() })
}
