//! Tests of the rules.

mod cases;
mod peer;
mod session;
mod snapshot;
