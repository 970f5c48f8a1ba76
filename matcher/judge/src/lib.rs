//! Nothing but its tests: `cargo test --manifest-path matcher/judge/Cargo.toml`.
