//! Where checks are evaluated, by a setting.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use checks::engine::{Engine, Kind};
use checks::{Bounds, Check};

use crate::engine::Gpu;
use crate::launchers::Kernels;
use crate::memory::Settings;

/// Where checks are evaluated: a setting with the values `auto`, `cpu` and `gpu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Where it is fastest, which is the processor: `incremental` does not do again what did not change.
    #[default]
    Auto,
    /// On the processor.
    Cpu,
    /// On the device.
    Gpu,
}

impl Placement {
    /// Makes the engine of a check. `kernels` are asked for only by [`Placement::Gpu`]; without a device the processor evaluates.
    #[must_use]
    pub fn engine(self, check: &Arc<Check>, bounds: Bounds, kernels: Option<&Kernels>) -> Box<dyn Engine> {
        match (self, kernels) {
            (Self::Gpu, Some(kernels)) => {
                Box::new(Gpu::new(check.clone(), bounds, kernels, Settings::default()))
            }
            _ => Kind::Incremental.engine(check, bounds),
        }
    }
}

impl FromStr for Placement {
    type Err = UnknownPlacement;

    fn from_str(text: &str) -> Result<Self, UnknownPlacement> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "gpu" => Ok(Self::Gpu),
            _ => Err(UnknownPlacement(text.to_owned())),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        })
    }
}

/// A text that is no placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("checks are evaluated on `auto`, `cpu` or `gpu`, found `{0}`")]
pub struct UnknownPlacement(String);
