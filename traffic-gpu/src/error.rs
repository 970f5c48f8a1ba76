//! Errors.

use device::DriverError;

/// Why nobody drives.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The streets cannot hold the vehicles, bumper to bumper.
    #[error("{vehicles} vehicles do not fit onto {lanes_km:.1} km of lanes: at most {room}")]
    TooMany {
        /// How many were asked for.
        vehicles: u32,
        /// How long all lanes are together, in km.
        lanes_km: f64,
        /// How many fit.
        room: u64,
    },
    /// More vehicles are to have destinations than there are.
    #[error("{routed} of {vehicles} vehicles cannot have destinations")]
    TooManyRouted {
        /// How many are to have destinations.
        routed: u32,
        /// How many vehicles there are.
        vehicles: u32,
    },
    /// There are more nodes, arcs or lanes than are numbered.
    #[error("{count} {parts} are more than traffic is driven on")]
    TooLarge {
        /// How many there are.
        count: u64,
        /// The name of the parts that are too many.
        parts: &'static str,
    },
    /// A vehicle that came to a node could not go on from there.
    #[error("node {node} has no street that leaves it")]
    DeadEnd {
        /// The first such node.
        node: u32,
    },
    /// The device failed, or has too little memory.
    #[error(transparent)]
    Device(#[from] DriverError),
}
