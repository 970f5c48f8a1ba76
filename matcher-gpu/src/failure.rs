//! Errors of a match for the failures of a device.

use matcher::engine::MatchError;

use device::DriverError;

/// Out of memory, or gone: nothing else can happen to work that was put together rightly.
pub(crate) fn match_error(error: DriverError) -> MatchError {
    match error {
        DriverError::OutOfMemory { .. } | DriverError::OutOfPinnedMemory { .. } => {
            MatchError::OutOfMemory(Box::new(error))
        }
        DriverError::NotBuilt
        | DriverError::NoDriver { .. }
        | DriverError::NoDevice
        | DriverError::DriverTooOld { .. }
        | DriverError::DeviceTooOld { .. }
        | DriverError::DeviceLost { .. }
        | DriverError::LaunchFailed { .. }
        | DriverError::Other { .. } => MatchError::DeviceLost(Box::new(error)),
    }
}
