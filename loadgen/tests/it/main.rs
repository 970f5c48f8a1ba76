//! The crate from outside: traffic by what is known of it, the errors of receivers, and whole runs, also
//! against other brokers.

mod country;
mod noise;
mod peers;
mod runs;
mod traffic;
mod traffic_flow;
