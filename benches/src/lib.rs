//! What nearcast's engines gain over what one would otherwise use.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod chr;
pub mod csp;
pub mod durable;
pub mod engines;
pub mod fanout;
pub mod fences;
pub mod gain;
pub mod gpu;
pub mod hostile;
pub mod live;
pub mod micro;
pub mod overload;
pub mod paper;
pub mod pickups;
pub mod workload_args;
