//! Tests of the rules.

mod cases;
mod peer;
