//! Groups of live objects.

mod bounds;
mod cases;
mod definitions;
mod random;
mod world;

/// Whether the long form of tests is asked for.
fn is_soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1")
}
