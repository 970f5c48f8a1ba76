//! Tests of the rules.

mod cases;
