//! The crate from outside: runs.

mod runs;
