//! Tests of the crate, as one program.

mod matching;
mod network;

/// Whether the long form of tests is asked for.
fn is_soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1")
}
