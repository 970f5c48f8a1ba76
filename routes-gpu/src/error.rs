//! Errors.

use device::DriverError;

use crate::evaluator::OutOfOrder;

/// Why a device did not find routes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The graphs or the queries have more parts than are numbered on the device. The processor can take them.
    #[error("{count} {parts} are more than a device is given")]
    TooLarge {
        /// How many there are.
        count: u64,
        /// The name of the parts that are too many.
        parts: &'static str,
    },
    /// A kernel, or a result, was asked for before its turn. Nothing has changed.
    #[error(transparent)]
    OutOfOrder(#[from] OutOfOrder),
    /// The device failed, or has too little memory.
    #[error(transparent)]
    Device(#[from] DriverError),
}

/// A count of parts as the device has it.
pub(crate) fn number(count: usize, parts: &'static str) -> Result<u32, Error> {
    u32::try_from(count).map_err(|_| Error::TooLarge { count: count as u64, parts })
}
