//! Errors of devices.

/// Why the driver did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// This program was built for a platform without CUDA.
    #[error("this build has no CUDA: it is not for Linux on x86-64")]
    NotBuilt,
    /// The driver's library cannot be loaded: most machines have none.
    #[error("no NVIDIA driver on this machine: {reason}")]
    NoDriver {
        /// The loader's words.
        reason: String,
    },
    /// There is a driver, and no device for it.
    #[error("the NVIDIA driver finds no device")]
    NoDevice,
    /// The driver cannot read our kernels. A newer one can.
    #[error("the NVIDIA driver is for CUDA {found}, and CUDA {needed} or later is needed")]
    DriverTooOld {
        /// The CUDA version that the driver is for.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// No device can run our kernels.
    #[error("{name} has compute capability {found}, and {needed} or later is needed")]
    DeviceTooOld {
        /// The name of the newest device.
        name: String,
        /// Its compute capability.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// The device's memory is used up. Nothing has changed; a smaller request may succeed.
    #[error("{requested_bytes} bytes of device memory are more than the {free_bytes} that are free")]
    OutOfMemory {
        /// The bytes that were asked for.
        requested_bytes: u64,
        /// The bytes that were free then.
        free_bytes: u64,
    },
    /// The machine gives no more page-locked memory. Nothing has changed.
    #[error("the machine has no {requested_bytes} bytes of page-locked memory left")]
    OutOfPinnedMemory {
        /// The bytes that were asked for.
        requested_bytes: u64,
    },
    /// The device, or our context on it, is gone for good. Fall back to a CPU engine.
    #[error("device lost: {reason}")]
    DeviceLost {
        /// The first sign of the loss.
        reason: String,
    },
    /// A kernel could not be started or stopped halfway: this one or, as such errors come late, an earlier one.
    #[error("a kernel failed, seen by {operation}: {reason}")]
    LaunchFailed {
        /// The operation at which the failure showed.
        operation: &'static str,
        /// CUDA's words.
        reason: String,
    },
    /// Anything else.
    #[error("{operation} failed: {reason}")]
    Other {
        /// The operation that failed.
        operation: &'static str,
        /// CUDA's words.
        reason: String,
    },
}
