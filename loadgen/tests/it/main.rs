//! The crate from outside: streets as they are read, traffic by what is known of it, the errors of receivers, and whole runs, also
//! against other brokers.

mod noise;
mod peers;
mod runs;
mod streets;
mod streets_faults;
mod traffic;
mod traffic_flow;
