//! Faults on order, so that tests see what callers do then, and the state after a fault that stays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::DriverError;

/// Fault that is made to happen, by [`Device::inject`](crate::Device::inject).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An allocation of device memory answers `OutOfMemory`. The device goes on.
    OutOfMemory,
    /// A launch answers `LaunchFailed`; the device is lost from then on.
    LaunchFailed,
    /// A source finds no compiler. The device goes on.
    NoCompiler,
    /// Any operation answers `DeviceLost`; the device is lost from then on.
    DeviceLost,
}

/// Operation that is about to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Allocate,
    Launch,
    Compile,
    Other,
}

/// The faults of one device.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Why the device is lost, once it is.
    lost: OnceLock<String>,
    /// Whether `ordered` holds anything, so that the usual case takes no lock.
    armed: AtomicBool,
    /// Each with how many of its operations are still to succeed. Held for a few instructions.
    ordered: Mutex<Vec<(Fault, u32)>>,
}

impl Faults {
    pub(crate) fn order(&self, fault: Fault, after: u32) {
        let mut ordered = self.ordered.lock().unwrap_or_else(PoisonError::into_inner);
        ordered.push((fault, after.saturating_sub(1)));
        self.armed.store(true, Ordering::Release);
    }

    /// From now on nothing works. The first reason stays.
    pub(crate) fn lose(&self, reason: &str) {
        // A second loss changes nothing.
        let _ = self.lost.set(reason.to_owned());
    }

    /// The fault that is due at this operation, if any; counts the operation.
    pub(crate) fn due(&self, operation: Operation) -> Option<Fault> {
        if !self.armed.load(Ordering::Acquire) {
            return None;
        }
        let mut ordered = self.ordered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = None;
        ordered.retain_mut(|(fault, before)| {
            if due.is_some() || !fault.concerns(operation) {
                return true;
            }
            if *before > 0 {
                *before -= 1;
                return true;
            }
            due = Some(*fault);
            false
        });
        self.armed.store(!ordered.is_empty(), Ordering::Release);
        due
    }

    /// # Errors
    /// `DeviceLost` once the device is.
    pub(crate) fn check(&self) -> Result<(), DriverError> {
        match self.lost.get() {
            None => Ok(()),
            Some(reason) => Err(DriverError::DeviceLost { reason: reason.clone() }),
        }
    }
}

impl Fault {
    fn concerns(self, operation: Operation) -> bool {
        match self {
            Self::OutOfMemory => operation == Operation::Allocate,
            Self::LaunchFailed => operation == Operation::Launch,
            Self::NoCompiler => operation == Operation::Compile,
            Self::DeviceLost => true,
        }
    }
}
