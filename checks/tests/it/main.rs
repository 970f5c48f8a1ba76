//! Checks from outside.

mod documents;
mod links;
mod presets;
mod random;
mod reports;
mod shapes;
mod taxis;
mod windows;
mod world;

/// Whether the long form of tests is asked for.
fn is_soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1")
}
