//! Errors.

use device::DriverError;

/// Why a device did not make a network arc consistent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The network has more parts than are numbered on the device. The processor can take it.
    #[error("{count} {parts} are more than a device is given")]
    TooLarge {
        /// How many there are.
        count: u64,
        /// The name of the parts that are too many.
        parts: &'static str,
    },
    /// The device failed, or has too little memory.
    #[error(transparent)]
    Device(#[from] DriverError),
}

/// A count of parts as the device has it.
pub(crate) fn number(count: u64, parts: &'static str) -> Result<u32, Error> {
    u32::try_from(count).map_err(|_| Error::TooLarge { count, parts })
}
