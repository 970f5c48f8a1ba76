//! The engines that shards own: which ones, how many of them, and what they say of themselves; and those of checks.

use std::fmt;
use std::sync::Arc;

use checks::{Bounds, Check, Kind};
#[cfg(feature = "gpu")]
use device::{Device, DriverError};
use matcher::engine::Engine;
use matcher::engine::cells::Cells;
use matcher::engine::scan::Scan;
use matcher::geo::World;
#[cfg(feature = "gpu")]
use matcher_gpu::Auto;

use crate::config::{Config, EngineName, SituationEngine};

/// The engines of a broker, one for each shard, empty. Made before it listens, so that one that cannot be had is told at once.
pub struct Engines {
    made: Vec<Made>,
}

/// An engine and what it says of itself.
pub(crate) struct Made {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) report: Report,
}

/// The report of an engine on itself, at any time and on any thread: [`Display`](fmt::Display) is the reason for it.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// It is on the CPU and stays there.
    Cpu { engine: &'static str, why: &'static str },
    /// It may use a device.
    #[cfg(feature = "gpu")]
    Guarded(matcher_gpu::Report),
}

/// An engine that was asked for cannot be had here.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// One of shards.
    #[error(
        "engine {engine} cannot be had: {reason}; --engine auto takes a GPU where there is one, --engine cells needs none"
    )]
    Matching {
        /// Its name.
        engine: &'static str,
        /// Why it cannot be had.
        reason: String,
    },
    /// That of checks on a device.
    #[error("situations.engine is gpu, which cannot be had: {0}; auto and cpu need no device")]
    Checks(String),
}

/// Makes the engines of checks, where `situations.engine` says.
#[derive(Clone, Debug, Default)]
pub struct CheckEngines {
    #[cfg(feature = "gpu")]
    kernels: Option<checks_gpu::Kernels>,
}

impl CheckEngines {
    /// Finds what the setting asks for, on the first device if it needs one. `auto` is the processor, which does not do again what did not
    /// change.
    ///
    /// # Errors
    /// [`EngineError`] where `gpu` is asked for and there is no device.
    pub fn find(config: &Config) -> Result<Self, EngineError> {
        match config.situations.engine {
            SituationEngine::Auto | SituationEngine::Cpu => Ok(Self::default()),
            SituationEngine::Gpu => Self::find_device(),
        }
    }

    #[cfg(feature = "gpu")]
    fn find_device() -> Result<Self, EngineError> {
        let found = Device::all().and_then(|devices| devices.into_iter().next().ok_or(DriverError::NoDevice));
        found.and_then(|device| Self::on(&device)).map_err(|error| EngineError::Checks(error.to_string()))
    }

    #[cfg(not(feature = "gpu"))]
    fn find_device() -> Result<Self, EngineError> {
        Err(EngineError::Checks(NO_GPU.to_owned()))
    }

    /// Makes engines on a device.
    ///
    /// # Errors
    /// [`DriverError`]
    #[cfg(feature = "gpu")]
    pub fn on(device: &Device) -> Result<Self, DriverError> {
        Ok(Self { kernels: Some(checks_gpu::Kernels::load(device)?) })
    }

    /// The engine of a check. One that does not fit on the device is evaluated by the processor.
    pub(crate) fn engine(&self, check: &Arc<Check>) -> Box<dyn checks::engine::Engine> {
        let bounds = Bounds::default();
        #[cfg(feature = "gpu")]
        if let Some(kernels) = &self.kernels {
            let engine = checks_gpu::Gpu::new(Arc::clone(check), bounds, kernels, Default::default());
            match engine.refusal() {
                None => return Box::new(engine),
                Some(reason) => tracing::warn!(reason, "a check is evaluated by the processor"),
            }
        }
        Kind::Incremental.engine(check, bounds)
    }
}

/// Why there is none on a device.
#[cfg(not(feature = "gpu"))]
const NO_GPU: &str = "this build has no GPU engines, for it was made without the feature gpu";

impl Engines {
    /// Makes what the settings ask for, on all devices that are found if it needs any.
    ///
    /// # Errors
    /// [`EngineError`] where `gpu` or `clcb` is asked for and cannot be had.
    pub fn find(config: &Config) -> Result<Self, EngineError> {
        match config.server.engine {
            EngineName::Scan => {
                Ok(Self::on_cpu(config, "it was asked for", |world| Box::new(Scan::new(world))))
            }
            EngineName::Cells => Ok(Self::cells(config, "it was asked for")),
            EngineName::Auto | EngineName::Gpu | EngineName::Clcb => Self::find_devices(config),
        }
    }

    #[cfg(feature = "gpu")]
    fn find_devices(config: &Config) -> Result<Self, EngineError> {
        let found = Device::all();
        if let Err(error) = &found {
            tracing::debug!(%error, "no GPU was found");
        }
        Self::with_devices(config, found.as_deref())
    }

    #[cfg(not(feature = "gpu"))]
    fn find_devices(config: &Config) -> Result<Self, EngineError> {
        let refused = |engine| Err(EngineError::Matching { engine, reason: NO_GPU.to_owned() });
        match config.server.engine {
            EngineName::Gpu => refused("gpu"),
            EngineName::Clcb => refused("clcb"),
            EngineName::Auto | EngineName::Cells | EngineName::Scan => Ok(Self::cells(config, NO_GPU)),
        }
    }

    /// Makes what the settings ask for on these devices, or on none for this reason. All other engines do not look at them.
    ///
    /// # Errors
    /// [`EngineError`] where `gpu` or `clcb` is asked for and cannot be had.
    #[cfg(feature = "gpu")]
    pub fn with_devices(
        config: &Config,
        found: Result<&[Device], &DriverError>,
    ) -> Result<Self, EngineError> {
        let world = World::from(config.server.world);
        // Shards beyond one split the clients, not the devices: that is no gain unless it is asked for.
        let on_devices = config.server.shards.max(1);
        match config.server.engine {
            EngineName::Auto => {
                let first = Auto::new(world, found);
                let has_device = first.report().has_device();
                let count = if has_device { on_devices } else { config.shards_count() };
                let others = (1..count).map(|_| Auto::new(world, found));
                Ok(Self { made: std::iter::once(first).chain(others).map(Made::from).collect() })
            }
            EngineName::Gpu => Self::guarded("gpu", on_devices, found, |devices| Auto::gpu(world, devices)),
            EngineName::Clcb => {
                if let Ok([first, _, ..]) = found {
                    tracing::info!(device = first.name(), "clcb uses one GPU, the first");
                }
                Self::guarded("clcb", on_devices, found, |devices| Auto::clcb(world, &devices[0]))
            }
            EngineName::Cells | EngineName::Scan => Self::find(config),
        }
    }

    #[cfg(feature = "gpu")]
    fn guarded(
        engine: &'static str,
        count: usize,
        found: Result<&[Device], &DriverError>,
        make: impl Fn(&[Device]) -> Result<Auto, DriverError>,
    ) -> Result<Self, EngineError> {
        let make = || match found {
            Ok([]) => Err(DriverError::NoDevice),
            Ok(devices) => make(devices),
            Err(error) => Err(error.clone()),
        };
        let made = (0..count).map(|_| make().map(Made::from)).collect::<Result<_, _>>();
        let made = made.map_err(|error| EngineError::Matching { engine, reason: error.to_string() })?;
        Ok(Self { made })
    }

    fn cells(config: &Config, why: &'static str) -> Self {
        Self::on_cpu(config, why, |world| Box::new(Cells::new(world)))
    }

    fn on_cpu(config: &Config, why: &'static str, make: fn(World) -> Box<dyn Engine>) -> Self {
        let made = |_| {
            let engine = make(config.server.world.into());
            Made { report: Report::Cpu { engine: engine.name(), why }, engine }
        };
        Self { made: (0..config.shards_count()).map(made).collect() }
    }

    /// Makes `count` engines, of which the last panics at the first event.
    #[cfg(test)]
    pub(crate) fn faulty(count: usize) -> Self {
        let report = || Report::Cpu { engine: "cells", why: "of a test" };
        let made = |index| {
            let engine: Box<dyn Engine> = if index + 1 < count {
                Box::new(Cells::new(World::Geodetic))
            } else {
                Box::new(faulty::Faulty)
            };
            Made { engine, report: report() }
        };
        Self { made: (0..count).map(made).collect() }
    }

    /// How many there are: at least one.
    pub(crate) fn count(&self) -> usize {
        self.made.len()
    }

    pub(crate) fn into_made(self) -> impl Iterator<Item = Made> {
        self.made.into_iter()
    }
}

#[cfg(feature = "gpu")]
impl From<Auto> for Made {
    fn from(auto: Auto) -> Self {
        Self { report: Report::Guarded(auto.report()), engine: Box::new(auto) }
    }
}

impl Report {
    /// Name of the engine that is at work.
    pub(crate) fn engine(&self) -> &'static str {
        match self {
            Self::Cpu { engine, .. } => engine,
            #[cfg(feature = "gpu")]
            Self::Guarded(report) => report.engine(),
        }
    }

    /// Whether it uses a device.
    pub(crate) fn has_device(&self) -> bool {
        match self {
            Self::Cpu { .. } => false,
            #[cfg(feature = "gpu")]
            Self::Guarded(report) => report.has_device(),
        }
    }

    /// Why it no longer uses the device that it used.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Cpu { .. } => None,
            #[cfg(feature = "gpu")]
            Self::Guarded(report) => report.failure(),
        }
    }

    /// How many events were matched on a device.
    pub(crate) fn device_events(&self) -> u64 {
        match self {
            Self::Cpu { .. } => 0,
            #[cfg(feature = "gpu")]
            Self::Guarded(report) => report.device_events(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu { engine, why } => write!(formatter, "{engine} on the CPU, for {why}"),
            #[cfg(feature = "gpu")]
            Self::Guarded(report) => report.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod faulty {
    use matcher::engine::{Engine, Footprint, InstallError, MatchError, MatchRows};
    use matcher::event::Event;
    use matcher::geo::Position;
    use matcher::subscription::{ClientId, Subscription, SubscriptionId};

    /// Panics when it is to match something.
    pub(super) struct Faulty;

    impl Engine for Faulty {
        fn name(&self) -> &'static str {
            "faulty"
        }

        fn install(&mut self, _: SubscriptionId, _: &Subscription) -> Result<(), InstallError> {
            Ok(())
        }

        fn remove(&mut self, _: SubscriptionId) -> bool {
            true
        }

        fn move_client(&mut self, _: ClientId, _: Option<Position>) {}

        fn match_batch(&mut self, _: &[&Event], _: &mut MatchRows) -> Result<(), MatchError> {
            panic!("as the test asks")
        }

        fn footprint(&self) -> Footprint {
            Footprint::default()
        }
    }
}
