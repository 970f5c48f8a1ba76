//! Tests of the crate, as one program.

mod matching;
