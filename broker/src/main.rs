//! The program `nearcast`.
fn main() {}
