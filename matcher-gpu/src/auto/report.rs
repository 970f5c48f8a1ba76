//! Report of an engine with a fallback on itself, for logs and figures.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::crossover::Side;

/// Which engine matches and why: [`Display`](fmt::Display) is one sentence. Clones tell of the same engine, as it is when
/// they are asked, on any thread.
#[derive(Clone, Debug)]
pub struct Report {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    choice: Choice,
    /// Why the device was given up.
    failure: OnceLock<String>,
    /// The least batch for the device; 0 while no size is known.
    device_from: AtomicUsize,
    cells_events: AtomicU64,
    device_events: AtomicU64,
}

/// Engines that were chosen at the start.
#[derive(Debug)]
pub(super) enum Choice {
    /// No device, for this reason.
    Cells { reason: String },
    /// Both, as measured.
    Measured { devices: String },
    /// The device for every batch, by an engine of that name.
    Device { engine: &'static str, devices: String },
}

impl Report {
    pub(super) fn new(choice: Choice) -> Self {
        let shared = Shared {
            choice,
            failure: OnceLock::new(),
            device_from: AtomicUsize::new(0),
            cells_events: AtomicU64::new(0),
            device_events: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The engine at work: `cells` where there is no device or no longer one, else `auto`, `gpu` or `clcb`.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        if self.failure().is_some() {
            return "cells";
        }
        match self.shared.choice {
            Choice::Cells { .. } => "cells",
            Choice::Measured { .. } => "auto",
            Choice::Device { engine, .. } => engine,
        }
    }

    /// Whether a device is at work.
    #[must_use]
    pub fn has_device(&self) -> bool {
        !matches!(self.shared.choice, Choice::Cells { .. }) && self.failure().is_none()
    }

    /// Why the device that was at work is no longer; `None` while it is, and where there never was one.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failure.get().map(String::as_str)
    }

    /// From how many events on batches go to the device; `None` where none do.
    #[must_use]
    pub fn device_from(&self) -> Option<usize> {
        if self.failure().is_some() {
            return None;
        }
        match self.shared.choice {
            Choice::Cells { .. } => None,
            Choice::Measured { .. } => {
                Some(self.shared.device_from.load(Ordering::Relaxed)).filter(|from| *from > 0)
            }
            Choice::Device { .. } => Some(1),
        }
    }

    /// How many events `cells` has matched.
    #[must_use]
    pub fn cells_events(&self) -> u64 {
        self.shared.cells_events.load(Ordering::Relaxed)
    }

    /// How many events the device has matched.
    #[must_use]
    pub fn device_events(&self) -> u64 {
        self.shared.device_events.load(Ordering::Relaxed)
    }

    /// Names of the devices.
    pub(super) fn devices(&self) -> &str {
        match &self.shared.choice {
            Choice::Cells { .. } => "no device",
            Choice::Measured { devices } | Choice::Device { devices, .. } => devices,
        }
    }

    pub(super) fn fail(&self, why: String) {
        // Only the first failure finds a device.
        let _ = self.shared.failure.set(why);
    }

    pub(super) fn count(&self, side: Side, events: usize) {
        let counter = match side {
            Side::Cells => &self.shared.cells_events,
            Side::Device => &self.shared.device_events,
        };
        counter.fetch_add(events as u64, Ordering::Relaxed);
    }

    pub(super) fn set_device_from(&self, from: Option<usize>) {
        self.shared.device_from.store(from.unwrap_or_default(), Ordering::Relaxed);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(failure) = self.failure() {
            return write!(formatter, "cells on the CPU alone, for {} failed: {failure}", self.devices());
        }
        match &self.shared.choice {
            Choice::Cells { reason } => write!(formatter, "cells on the CPU, for {reason}"),
            Choice::Device { devices, .. } => {
                write!(formatter, "{devices} for every batch, and cells on the CPU should that fail")
            }
            Choice::Measured { devices } => match self.device_from() {
                Some(1) => write!(formatter, "{devices} for every batch, as measured"),
                Some(from) => write!(
                    formatter,
                    "{devices} for batches of {from} events or more and cells on the CPU for smaller ones, as measured"
                ),
                None => write!(
                    formatter,
                    "cells on the CPU and {devices}, which takes batches once it is measured to be quicker"
                ),
            },
        }
    }
}
