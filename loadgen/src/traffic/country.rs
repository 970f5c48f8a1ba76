//! Traffic of whole countries: on the processor and on a device, with the same results.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use device::Device;
use streets::{Country, Network};
use traffic_gpu::{Engine, Error, Gpu, Kernels, Processor, Roads, Row, STEP_S, Settings, measure};

/// Why traffic of a country was not measured.
#[derive(Debug, thiserror::Error)]
pub enum CountryError {
    /// There is no such traffic, or no device for it.
    #[error(transparent)]
    Traffic(#[from] Error),
    /// There are no threads to be had.
    #[error("no threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Two engines came to different states, which is a mistake of ours.
    #[error("the engines came to different states")]
    Unequal,
}

/// Where a country's traffic is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the processor.
    Processor,
    /// On the first CUDA device.
    Device,
}

/// Which streets.
#[derive(Debug)]
pub enum Streets {
    /// The streets of a map.
    Network(Arc<Network>),
    /// A country that is made up, with as many nodes.
    Made(u32),
}

/// A measurement.
#[derive(Debug)]
pub struct Measurement {
    /// The streets.
    pub streets: Streets,
    /// How much traffic.
    pub settings: Settings,
    /// Where it is driven.
    pub place: Place,
    /// Drives the same on the other place, too, and compares the states.
    pub is_checked: bool,
    /// Seconds of the country that are driven before the time is taken.
    pub before_s: f64,
    /// Seconds of the country.
    pub seconds: f64,
    /// How many threads; 0 for one for each core.
    pub threads: usize,
}

impl Measurement {
    /// Measures, and tells the results as comma-separated values with a head.
    ///
    /// # Errors
    /// [`CountryError`]
    pub fn run(&self) -> Result<String, CountryError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        pool.install(|| self.rows())
    }

    fn rows(&self) -> Result<String, CountryError> {
        let seed = self.settings.seed;
        // A device that is not there is better said before a minute than after it.
        let kernels = if self.is_checked || self.place == Place::Device {
            let mut devices = Device::all().map_err(Error::from)?;
            Some(Kernels::load(&devices.swap_remove(0)).map_err(Error::from)?)
        } else {
            None
        };
        let roads = Arc::new(match &self.streets {
            Streets::Network(network) => Roads::of_network(network, seed)?,
            Streets::Made(nodes) => Roads::of_country(&Country::new(*nodes, seed), seed)?,
        });
        let other = if self.place == Place::Device { Place::Processor } else { Place::Device };
        let places = [Some(self.place), self.is_checked.then_some(other)];
        let (mut text, mut digests) = (format!("{}\n", Row::HEAD), Vec::new());
        for place in places.into_iter().flatten() {
            let began = Instant::now();
            let (engine_name, mut engine): (_, Box<dyn Engine>) = match &kernels {
                Some(kernels) if place == Place::Device => {
                    ("gpu", Box::new(Gpu::new(kernels, &roads, self.settings)?))
                }
                _ => ("cpu", Box::new(Processor::new(&roads, self.settings)?)),
            };
            let loading_s = began.elapsed().as_secs_f64();
            let measured = measure(&mut *engine, steps(self.before_s), steps(self.seconds))?;
            let (settings, bytes) = (self.settings, engine.bytes());
            let row = Row { engine: engine_name, roads: &roads, settings, bytes, loading_s, measured };
            writeln!(text, "{row}").unwrap_or_default();
            digests.push(measured.digest);
        }
        if digests.iter().any(|digest| *digest != digests[0]) {
            return Err(CountryError::Unequal);
        }
        Ok(text)
    }
}

/// Steps that take that long, at most those of four months.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds that fit")]
fn steps(seconds: f64) -> u32 {
    (seconds / STEP_S).round().clamp(0.0, 2e7) as u32
}
