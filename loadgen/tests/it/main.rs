//! The crate from outside: runs, streets as they are read, traffic by what is known of it, and the errors of receivers.

mod noise;
mod runs;
mod streets;
mod streets_faults;
mod traffic;
mod traffic_flow;
