//! Tests of the rules.

mod arithmetic;
mod cases;
mod large;
mod peer;
mod session;
mod snapshot;
mod unknown;
